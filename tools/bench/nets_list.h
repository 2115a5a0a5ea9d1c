// bench/nets_list.h - the nets of published benchmarks, and what was published about them.
#pragma once

#include <cstdint>
#include <span>

namespace tenon::bench {

/// A net as a benchmark runs it.
struct Net {
  const char* set;   ///< hkbu, cnn, convnet, layers, own (those of models/)
  const char* name;  ///< as the benchmark calls it
  const char* file;  ///< in models/bench/, without .yaml
  std::int64_t batch;
  bool steps;  ///< training takes the optimizer's step; else it ends with the gradients
};
std::span<const Net> benchmark_nets();

/// One figure out of a source, as it stands there.
struct Published {
  const char* set;
  const char* net;       ///< of that set
  const char* phase;     ///< infer: forward; train: forward and backward; backward: alone
  const char* tool;      ///< "Caffe"; "" where the benchmark is about one
  const char* hardware;  ///< "Titan X Pascal, cuDNN 5.1"
  const char* figure;    ///< the digits of the source
  double ms;             ///< what they mean
  const char* source;
};
std::span<const Published> published_figures();

}  // namespace tenon::bench
