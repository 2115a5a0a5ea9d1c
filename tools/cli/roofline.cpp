// SPDX-License-Identifier: Apache-2.0
#include "cli/roofline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>

#include "cli/memory_roofs.h"
#include "cli/roofs.h"
#include "exec/thread_pool.h"
#include "train/program/model_setup.h"
#include "train/program/programs.h"

namespace tenon::cli {
namespace {

/// Samples without zeros and denormal numbers, which would change the speed of arithmetic.
Tensor synthetic(DType dtype, const Shape& shape) {
  Tensor t = Tensor::zeros(dtype, shape);
  if (dtype != DType::f32 && dtype != DType::f64) return t;
  for (std::int64_t i = 0; i < t.count(); ++i) {
    const double value = 0.05 + 0.9 * static_cast<double>(i * 7919 % 1009) / 1009.0;
    if (dtype == DType::f32) {
      t.data<float>()[i] = static_cast<float>(value);
    } else {
      t.data<double>()[i] = value;
    }
  }
  return t;
}

/// "dense_1", "dense_1 gradient", "optimizer" or "loss": the owner of a node, by its name.
std::string layer_of(const Trace::Kernel& kernel, const std::set<std::string>& layers) {
  std::string name = kernel.node;
  const bool gradient = name.starts_with("gradient/");
  if (gradient) name.erase(0, std::string("gradient/").size());
  name = name.substr(0, name.find('/'));
  if (!layers.contains(name)) name = kernel.op.ends_with("Step") ? "optimizer" : "loss";
  return gradient && name != "optimizer" ? name + " gradient" : name;
}

/// The threads of the kernels of CPUs.
int threads_of(const Context& context) {
  const int requested = context.config().threads;
  return requested > 0 ? requested : static_cast<int>(exec::available_threads());
}

bool is_cpu(const Context& context, const std::string& device) {
  return std::ranges::any_of(context.devices(),
                             [&](const DeviceInfo& info) { return info.name == device && info.kind == DeviceKind::cpu; });
}

Roof measure_roof(const Context& context, const std::string& device, const std::set<DType>& dtypes) {
  Roof roof;
  roof.device = device;
  if (!is_cpu(context, device)) return roof;
  for (const DType dtype : dtypes) {
    if (const auto peak = peak_gflops(dtype, threads_of(context))) roof.gflops[dtype] = *peak;
  }
  roof.gb_per_s = memory_roofs(threads_of(context)).peak();
  return roof;
}

/// The roof of a device with these peaks in place of `device`.
Roof roof_of(const Peaks& peaks, const std::string& device, const std::set<DType>& dtypes) {
  Roof roof{.device = device, .gflops = {}, .gb_per_s = peaks.gb_per_s};
  for (const auto& [dtype, gflops] : peaks.gflops) {
    if (dtypes.contains(dtype)) roof.gflops[dtype] = gflops;
  }
  return roof;
}

}  // namespace

Roofline measure_roofline(const Context& context, DType dtype, const std::string& group,
                          const std::function<std::string(const Trace::Kernel&)>& group_of, const std::function<void()>& run,
                          const RooflineOptions& options) {
  Roofline result;
  result.group = group;
  result.dtype = dtype;
  result.expected = options.peaks;
  // On a machine that others use, too, its memory is not as fast at all times: the peak is the faster one of before and after the runs.
  // CPUs that run only what another device cannot are measured after the runs.
  const bool on_cpu = options.peaks == nullptr && is_cpu(context, context.default_device().name());
  const double gb_per_s_before = on_cpu ? memory_roofs(threads_of(context)).peak() : 0;
  run();
  run();
  const Trace trace(context);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const std::uint64_t fewest = options.peaks == nullptr ? 5 : 1, most = options.peaks == nullptr ? 200 : 1;
  for (; result.steps < fewest || (result.steps < most && Clock::now() - begin < std::chrono::milliseconds(500)); ++result.steps) run();

  const std::vector<Trace::Kernel> kernels = trace.kernels();
  const std::set<DType> dtypes = add_kernels(kernels, group_of, result);
  std::set<std::string> devices;
  for (const Work& kernel : result.kernels) devices.insert(kernel.device);
  for (const std::string& device : devices) {
    result.roofs.push_back(options.peaks == nullptr ? measure_roof(context, device, dtypes) : roof_of(*options.peaks, device, dtypes));
  }
  for (Roof& roof : result.roofs) {
    if (on_cpu && is_cpu(context, roof.device)) roof.gb_per_s = std::max(roof.gb_per_s, gb_per_s_before);
  }
  complete(result);
  return result;
}

Roofline measure_roofline(TrainingRun& run, std::int64_t batch_size, const RooflineOptions& options) {
  Model& model = run.model();
  train::ModelSetup setup(model.definition());
  setup.compile(run.context(), train::compile_options(run.definition()));
  const auto batch = train::BatchType::of(setup, model.inputs(), model.outputs(), batch_size);
  NamedTensors inputs, targets;
  for (std::size_t i = 0; i < batch.inputs.size(); ++i)
    inputs[model.inputs()[i].name] = synthetic(batch.inputs[i].dtype, batch.inputs[i].shape);
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    const OutputLoss& loss = setup.losses[i];
    const std::string& output = loss.output.empty() ? model.outputs()[0].name : loss.output;
    targets[loss.target.empty() ? output : loss.target] = Tensor::zeros(batch.targets[i].dtype, batch.targets[i].shape);
  }
  std::set<std::string> names;
  for (const LayerSummary& layer : model.layers()) names.insert(layer.name);
  return measure_roofline(
      run.context(), model.definition().dtype, "layer", [&](const Trace::Kernel& kernel) { return layer_of(kernel, names); },
      [&] { model.train_batch(inputs, targets); }, options);
}

}  // namespace tenon::cli
