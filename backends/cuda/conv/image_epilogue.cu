// SPDX-License-Identifier: Apache-2.0
#include "conv/image_epilogue.h"

#include "kernel/dispatch.h"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct Operands {
  T* y;
  const T* biases[2];
  const T* residual;
  std::int64_t packs, channels, inner;
  sdk::Activation activation;
};

/// A pack is within one channel, or, with channels last, has one channel per element.
template <class T, int V>
__global__ void epilogue_kernel(Operands<T> p) {
  for (std::int64_t i = thread_index(); i < p.packs; i += thread_count()) {
    const std::int64_t run = quotient(i * V, p.inner), step = p.inner == 1 ? 1 : 0;
    const std::int64_t channel = run - quotient(run, p.channels) * p.channels;
    const Pack<T, V> y = pack_at<V>(p.y + i * V);
    Pack<T, V> residual{};
    if (p.residual != nullptr) residual = pack_at<V>(p.residual + i * V);
    Wide<T> sums[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sums[v] = widen(y.at[v]);
      for (const T* bias : p.biases) {
        if (bias != nullptr) sums[v] += widen(bias[channel + v * step]);
      }
      if (p.residual != nullptr) sums[v] += widen(residual.at[v]);
      sums[v] = activated(p.activation, sums[v]);
    }
    store_pack<V>(p.y + i * V, narrow<T>(sums));
  }
}

template <class T>
void apply_as(Stream& stream, const ImageEpilogue& work) {
  const bool packs = fits_packs<T>(work.inner == 1 ? work.channels : work.inner, work.y, work.residual);
  const Operands<T> operands{static_cast<T*>(work.y),
                             {static_cast<const T*>(work.biases[0]), static_cast<const T*>(work.biases[1])},
                             static_cast<const T*>(work.residual),
                             work.count / (packs ? pack_width<T> : 1),
                             work.channels,
                             work.inner,
                             work.activation};
  launch_over(stream, operands.packs, packs ? epilogue_kernel<T, pack_width<T>> : epilogue_kernel<T, 1>, operands);
}

}  // namespace

void apply_epilogue(Stream& stream, const ImageEpilogue& work) {
  dispatch_floating(work.dtype, [&]<class T>() { apply_as<T>(stream, work); });
}

}  // namespace tenon::cuda
