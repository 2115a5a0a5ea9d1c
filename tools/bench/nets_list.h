// SPDX-License-Identifier: Apache-2.0
// bench/nets_list.h - the nets of published benchmarks and their published figures.
#pragma once

#include <cstdint>
#include <span>

namespace tenon::bench {

/// A net as a benchmark runs it.
struct Net {
  const char* set;   ///< hkbu, cnn, convnet, layers, own (those of models/)
  const char* name;  ///< its name in the benchmark
  const char* file;  ///< in models/bench/, without .yaml
  std::int64_t batch;
  bool steps;  ///< training includes an optimizer step; otherwise it ends with the gradients
};
std::span<const Net> benchmark_nets();

/// A published figure.
struct Published {
  const char* set;
  const char* net;       ///< a name of that set
  const char* phase;     ///< infer: forward; train: forward and backward; backward: only backward
  const char* tool;      ///< "Caffe"; "" if the benchmark is about a single tool
  const char* hardware;  ///< "Titan X Pascal, cuDNN 5.1"
  const char* figure;    ///< the figure as printed in the source
  double ms;             ///< the figure in ms
  const char* source;
};
std::span<const Published> published_figures();

}  // namespace tenon::bench
