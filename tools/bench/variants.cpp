// SPDX-License-Identifier: Apache-2.0
#include "bench/variants.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <tenon/functions.h>
#include <tenon/program.h>
#include <tenon/stream.h>

#include "bench/machine.h"
#include "bench/statistics.h"
#include "cli/memory_roofs.h"
#include "cli/roofs.h"
#include "exec/context_state.h"

namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kernels_option = "kernels";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The names of the options that the device's backend declares.
std::vector<std::string> options_of(const Device& device) {
  const tenon_backend_info& info = device.state()->loaded->backend->info();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < info.option_count; ++i) {
    names.emplace_back(
        reinterpret_cast<const tenon_option*>(reinterpret_cast<const char*>(info.options) + std::size_t{i} * info.option_stride)->name);
  }
  return names;
}

double product_gflops(const Variant& variant, std::int64_t n, int runs) {
  const DType dtype = dtype_of(variant.precision);
  Graph graph;
  const Value a = graph.input("a", dtype, {n, n}), b = graph.input("b", dtype, {n, n});
  graph.output("c", ops::matmul(a, b));
  Program program(variant.context, graph);
  const std::vector<Tensor> inputs(2, numbers_on_device(variant.context, dtype, {n, n}));
  double min_seconds = std::numeric_limits<double>::max();
  for (int run = 0; run < runs + 1; ++run) {
    const auto begin = Clock::now();
    program.run(inputs);
    if (run > 0) min_seconds = std::min(min_seconds, seconds_since(begin));
  }
  const auto size = static_cast<double>(n);
  return 2 * size * size * size / min_seconds / 1e9;
}

double copy_gb_per_s(const Device& device, std::int64_t bytes, int runs) {
  constexpr int copies = 4;  // several, so that submission does not count
  const Tensor from = Tensor::zeros(DType::u8, {bytes}).to(device);
  Tensor to = device.empty(DType::u8, {bytes});
  const Stream stream(device);
  double min_seconds = std::numeric_limits<double>::max();
  for (int run = 0; run < runs + 1; ++run) {
    const auto begin = Clock::now();
    for (int i = 0; i < copies; ++i) copy_async(from, to, stream);
    stream.synchronize();
    if (run > 0) min_seconds = std::min(min_seconds, seconds_since(begin));
  }
  return 2 * copies * static_cast<double>(bytes) / min_seconds / 1e9;
}

}  // namespace

DType dtype_of(Precision precision) {
  if (precision == Precision::mixed_bfloat16) return DType::bf16;
  return precision == Precision::mixed_float16 ? DType::f16 : DType::f32;
}

Tensor numbers_on_device(const Context& context, DType dtype, const Shape& shape) {
  Tensor host = Tensor::empty(DType::f32, shape);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < host.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    host.data<float>()[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  if (dtype == DType::f32) return host.to(context.default_device());
  Graph graph;
  graph.output("y", ops::cast(graph.input("x", DType::f32, host.shape()), dtype));
  Program program(context, graph);
  std::vector<Tensor> outputs{program.make_output(0)};
  const std::vector<Tensor> inputs{host};
  program.run(inputs, outputs);
  return outputs[0];
}

std::vector<Variant> make_variants(const Options& options) {
  const std::vector<std::string> devices = options.devices.empty() ? std::vector<std::string>(1) : options.devices;
  const std::vector<std::string> precisions = options.precisions.empty() ? std::vector<std::string>(1) : options.precisions;
  std::vector<Variant> variants;
  std::string without_option;
  bool has_option = false;
  for (const std::string& name : devices) {
    std::vector<std::string> kernels(1);
    if (!options.kernels.empty()) {
      const Device device = options.make_context_on(options.threads, name, {}).default_device();
      const std::vector<std::string> backend_options = options_of(device);
      if (std::ranges::find(backend_options, kernels_option) != backend_options.end()) {
        kernels = options.kernels;
        has_option = true;
      } else {
        without_option += fmt::format("{}{} (its options: {})", without_option.empty() ? "" : ", ", device.name(),
                                      backend_options.empty() ? "none" : fmt::format("{}", fmt::join(backend_options, ", ")));
      }
    }
    for (const std::string& kind : kernels) {
      for (const std::string& precision : precisions) {
        std::vector<std::string> sets;
        if (!kind.empty()) {
          const Device device = options.make_context_on(options.threads, name, {}).default_device();
          sets.push_back(fmt::format("backends.options.{}.{}={}", device.info().backend, kernels_option, kind));
        }
        if (!precision.empty()) sets.push_back("precision=" + precision);
        Variant variant{"", options.make_context_on(options.threads, name, sets), kind, Precision::float32};
        variant.precision = variant.context.config().precision;
        variant.name = variant.device().name() + (kind.empty() ? "" : " " + kind) + (precision.empty() ? "" : " " + precision);
        variants.push_back(std::move(variant));
      }
    }
  }
  if (!options.kernels.empty() && !has_option) {
    throw Error(
        fmt::format("--kernels {}: expected a device whose backend has the option '{}', got {}; for naive CPU kernels use --device "
                    "openblas,reference",
                    fmt::join(options.kernels, ","), kernels_option, without_option));
  }
  return variants;
}

/// The dtype of the peak that the variant is compared with. CPUs multiply f16 as f32.
static DType peak_dtype_of(const Variant& variant) {
  return variant.on_cpu() && variant.precision == Precision::mixed_float16 ? DType::f32 : dtype_of(variant.precision);
}

std::string suffix_of(const Variant& variant, std::size_t count) {
  return count > 1 ? ", " + variant.name : "";
}

std::optional<double> Roofs::min_ns(double flops, double bytes) const {
  if (!gflops || gb_per_s <= 0) return std::nullopt;
  return std::max(flops / *gflops, bytes / gb_per_s);
}

Roofs roofs_of(const Variant& variant, int threads, bool tiny) {
  if (variant.on_cpu()) {
    return {cli::peak_gflops(peak_dtype_of(variant), threads), cli::memory_roofs(threads, tiny ? 1 << 20 : std::int64_t{128} << 20).peak()};
  }
  // Naive kernels do not reach the peak of a device.
  if (!variant.is_tuned()) return {};
  return {product_gflops(variant, tiny ? 32 : 8192, tiny ? 1 : 20),
          copy_gb_per_s(variant.device(), tiny ? 1 << 16 : std::int64_t{512} << 20, tiny ? 1 : 10)};
}

std::vector<Contender> make_contenders(const Options& options, nlohmann::ordered_json& out_machine) {
  std::vector<Contender> contenders;
  for (Variant& variant : make_variants(options)) {
    Roofs roofs;
    // Measured once for each device and precision, with tuned kernels.
    for (const Contender& other : contenders) {
      const bool same = other.variant.device().name() == variant.device().name() && other.variant.precision == variant.precision;
      if (same && other.roofs.gflops) roofs = other.roofs;
    }
    if (!roofs.gflops) {
      say("roofs of " + variant.name);
      roofs = roofs_of(variant, options.threads, options.tiny);
    }
    contenders.push_back({std::move(variant), roofs});
  }
  // Naive contenders may precede the tuned ones.
  for (Contender& contender : contenders) {
    for (const Contender& other : contenders) {
      if (!contender.roofs.gflops && other.variant.device().name() == contender.variant.device().name() &&
          other.variant.precision == contender.variant.precision) {
        contender.roofs = other.roofs;
      }
    }
  }
  out_machine = describe_variants(contenders, options.threads);
  return contenders;
}

nlohmann::ordered_json describe_variants(const std::vector<Contender>& contenders, int threads) {
  auto machine = describe_machine(contenders.front().variant.context, threads);
  const auto rounded = [](double value) { return std::round(value * 10) / 10; };
  for (const Contender& contender : contenders) {
    const Device device = contender.variant.device();
    if (contenders.size() > 1) machine["devices"][contender.variant.name] = device.info().product + ", " + device.info().description;
    auto& roofs = contenders.size() > 1 ? machine["roofs"][contender.variant.name] : machine["roofs"];
    const std::string dtype = name_of(peak_dtype_of(contender.variant));
    if (contender.roofs.gflops) roofs[dtype + "_gflop_per_s"] = rounded(*contender.roofs.gflops);
    if (contender.roofs.gb_per_s > 0) roofs["memory_gb_per_s"] = rounded(contender.roofs.gb_per_s);
  }
  return machine;
}

Latency latency_of(const std::function<void()>& run, int runs) {
  for (int i = 0; i < 4; ++i) run();  // warm-up, including runs that a device captures
  std::vector<double> ms;
  for (int i = 0; i < runs; ++i) {
    const auto begin = Clock::now();
    run();
    ms.push_back(seconds_since(begin) * 1e3);
  }
  return {quantile(ms, 0.5), quantile(ms, 0.99)};
}

}  // namespace tenon::bench
