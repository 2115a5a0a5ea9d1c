// bench/variants.h - what one run compares: devices, each with kernels and precisions to choose from.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include <tenon/context.h>

#include "bench/benchmarks.h"

namespace tenon::bench {

/// One way to compute.
struct Variant {
  std::string name;  ///< "cuda:0", "cuda:0 naive", "cuda:0 tf32"
  Context context;
  std::string kernels;  ///< of the knob; "": as the backend has it
  Precision precision = Precision::float32;

  Device device() const { return context.default_device(); }
  bool on_cpu() const { return device().info().kind == DeviceKind::cpu; }
  /// The backend's best, which peers are compared with.
  bool is_tuned() const { return kernels.empty() || kernels == "tuned"; }
};

/// Of each device each kind of kernels, where its backend has the knob, and of each of these each precision.
/// Errors  kernels that no backend has a knob for; those of Context.
std::vector<Variant> make_variants(const Options& options);
/// "" for one alone, else ", cuda:0 naive": what tells its entries apart.
std::string suffix_of(const Variant& variant, std::size_t count);

/// What products compute on: bf16, f16, or f32.
DType dtype_of(Precision precision);
/// Numbers of both signs, dense, in the memory of the context's device: zeros would take less power and run at higher clocks.
Tensor numbers_on_device(const Context& context, DType dtype, const Shape& shape);

/// What arithmetic and memory of a device do at best.
struct Roofs {
  std::optional<double> gflops;  ///< nothing: not known
  double gb_per_s = 0;

  /// The longer of work / peak and bytes / bandwidth, in nanoseconds; nothing where there is no roof.
  std::optional<double> least_ns(double flops, double bytes) const;
};
/// Of a CPU those of roofs.h. Of others what Tenon itself gets out of them: a large product in the variant's precision, and a large copy
/// within the device. Percentages of them compare with what is reached elsewhere, not with a data sheet.
Roofs roofs_of(const Variant& variant, int threads, bool tiny);

/// A variant with its roofs.
struct Contender {
  Variant variant;
  Roofs roofs;
};
/// Measures roofs and writes them to the machine's description.
std::vector<Contender> make_contenders(const Options& options, nlohmann::ordered_json& out_machine);
/// describe_machine() of the first variant, with the names of the others.
nlohmann::ordered_json describe_variants(const std::vector<Contender>& contenders, int threads);

/// How long single runs take, one by one.
struct Latency {
  double p50_ms = 0, p99_ms = 0;
};
Latency latency_of(const std::function<void()>& run, int runs);

}  // namespace tenon::bench
