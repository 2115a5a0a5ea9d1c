// SPDX-License-Identifier: Apache-2.0
// conv_chain.h - a depthwise convolution with the 1x1 convolutions before and after it in one pass over the image: what is between them
// stays in the cache of the core that computes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "conv/conv_direct.h"
#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// A 1x1 convolution of a chain; operands.x of the one after the depthwise convolution is not read.
template <class T>
struct PointwiseStage {
  std::int64_t channels = 0, out_channels = 0;
  DirectOperands<T> operands;
};

/// The results of `expand` and, before `project`, of the depthwise convolution may be overwritten with anything.
template <class T>
struct ConvChain {
  const PointwiseStage<T>* expand = nullptr;   ///< NULL: none
  const PointwiseStage<T>* project = nullptr;  ///< NULL: none
  ConvGeometry depthwise;                      ///< depthwise_tiles_fit()
  const T* x = nullptr;                        ///< of the depthwise convolution; written by `expand`
  const T* w = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  sdk::Activation activation = {};
  const sdk::Call* call = nullptr;  ///< of the depthwise convolution, perhaps with means
  void* means_scratch = nullptr;    ///< depthwise_means_scratch() bytes, if it has
};

/// The sizes of a chain.
struct ChainSizes {
  ConvGeometry depthwise;
  std::int64_t in_channels = 0;   ///< of the image that is expanded; 0: none is
  std::int64_t out_channels = 0;  ///< of the result of the last convolution; 0: it is the depthwise one
  std::size_t element_size = 0;
};

/// Whether a chain takes less time than its convolutions one by one, and its lines fit into the memory of their results.
bool chain_pays(const ChainSizes& sizes, const sdk::Host& host);

/// Bytes of the memory of the results between the convolutions that a chain uses.
struct ChainMemory {
  std::size_t lines = 0;  ///< of the expanded image
  std::size_t rows = 0;   ///< of the depthwise convolution, before `project`
};
ChainMemory chain_memory(const ChainSizes& sizes, const sdk::Host& host);

/// Runs a chain for which chain_pays() was true with at least as many threads. The bits are those of the convolutions one by one.
/// Instantiated for bf16, float and double.
template <class T>
void conv_chain(const ConvChain<T>& chain, const sdk::Host& host);

}  // namespace tenon::openblas
