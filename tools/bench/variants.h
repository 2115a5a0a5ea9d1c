// SPDX-License-Identifier: Apache-2.0
// bench/variants.h - the variants that a benchmark compares: devices, kinds of kernels and precisions.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include <tenon/context.h>

#include "bench/benchmarks.h"

namespace tenon::bench {

/// A device with a kind of kernels and a precision.
struct Variant {
  std::string name;  ///< "cuda:0", "cuda:0 naive", "cuda:0 tf32"
  Context context;
  std::string kernels;  ///< value of the backend option `kernels`; "": the default
  Precision precision = Precision::float32;

  Device device() const { return context.default_device(); }
  bool on_cpu() const { return device().info().kind == DeviceKind::cpu; }
  /// Whether the kernels are the backend's best, which peers are compared with.
  bool is_tuned() const { return kernels.empty() || kernels == "tuned"; }
};

/// All combinations of devices, kinds of kernels (if the backend has the option `kernels`) and precisions.
/// Errors  no backend has the option `kernels` although kinds are requested; those of Context.
std::vector<Variant> make_variants(const Options& options);
/// The suffix that distinguishes entries of several variants: ", cuda:0 naive"; "" for a single variant.
std::string suffix_of(const Variant& variant, std::size_t count);

/// The dtype of matrix products: bf16, f16 or f32.
DType dtype_of(Precision precision);
/// Dense numbers of both signs in the memory of the context's device. Zeros would use less power and run at higher clocks.
Tensor numbers_on_device(const Context& context, DType dtype, const Shape& shape);

/// Peak arithmetic and memory rates of a device.
struct Roofs {
  std::optional<double> gflops;  ///< empty: unknown
  double gb_per_s = 0;

  /// max(work / peak, bytes / bandwidth) in nanoseconds; empty if a rate is unknown.
  std::optional<double> min_ns(double flops, double bytes) const;
};
/// For a CPU, the rates of roofs.h. For other devices, the rates that Tenon itself reaches: a large product in the variant's precision, and
/// a large copy within the device. They are lower than those of a data sheet.
Roofs roofs_of(const Variant& variant, int threads, bool tiny);

/// A variant and its roofs.
struct Contender {
  Variant variant;
  Roofs roofs;
};
/// Makes the variants, measures their roofs and adds them to the description of the machine.
std::vector<Contender> make_contenders(const Options& options, nlohmann::ordered_json& out_machine);
/// describe_machine() of the first variant, with the names of the others.
nlohmann::ordered_json describe_variants(const std::vector<Contender>& contenders, int threads);

/// Latency of runs timed one by one.
struct Latency {
  double p50_ms = 0, p99_ms = 0;
};
Latency latency_of(const std::function<void()>& run, int runs);

}  // namespace tenon::bench
