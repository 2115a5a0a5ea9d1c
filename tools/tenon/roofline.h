// tenon/roofline.h - how near each layer of a training step comes to what the machine can do.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tenon/train_run.h"

namespace tenon::cli {

/// The work of some kernels in one step: arithmetic, bytes that must pass to and from memory, and the shortest time that was measured.
struct Work {
  std::string name;       ///< of the layer and its part ("dense_1 gradient"), or of the node
  std::string op;         ///< of the node
  std::string algorithm;  ///< of the node's kernel
  std::string device;
  std::uint64_t kernels = 0, flops = 0, size_bytes = 0, duration_ns = 0;

  /// Operations per byte.
  double intensity() const { return size_bytes == 0 ? 0 : static_cast<double>(flops) / static_cast<double>(size_bytes); }
};

/// What a device does at best, measured here and now. Only for processors.
struct Roof {
  std::string device;
  std::optional<double> gflops;
  double gb_per_s = 0;

  /// Nanoseconds that the work takes at least.
  double least_ns(const Work& work) const;
  /// True if memory, not arithmetic, sets that time.
  bool is_memory_bound(const Work& work) const;
};

struct Roofline {
  std::vector<Work> layers, kernels;
  std::vector<Roof> roofs;
  std::uint64_t steps = 0;  ///< that were timed
};

/// Times training steps of the model on made-up samples of that shape; what the model has learnt is lost.
Roofline measure_roofline(Run& run, const Shape& sample, std::int64_t batch_size);
std::string as_text(const Roofline& roofline);
nlohmann::ordered_json to_json(const Roofline& roofline);

}  // namespace tenon::cli
