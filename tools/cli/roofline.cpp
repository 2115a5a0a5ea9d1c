// SPDX-License-Identifier: Apache-2.0
#include "cli/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "cli/output.h"
#include "cli/roofs.h"
#include "exec/thread_pool.h"
#include "train/model_setup.h"
#include "train/programs.h"

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

/// The dtype whose peak bounds the arithmetic of a kernel.
DType peak_of(DType operands, DType model) {
  for (const DType dtype : {operands, model}) {
    if (dtype == DType::u8) return DType::i8;
    if (dtype == DType::i8 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64) return dtype;
  }
  return DType::f32;
}

void add(Work& to, const Trace::Kernel& kernel, DType peak) {
  to.flops_of[peak] += kernel.flops;
  to.flops += kernel.flops;
  to.size_bytes += kernel.size_bytes;
  to.duration_ns += kernel.best_ns;
}

Roof measure_roof(const Context& context, const std::string& device, const std::set<DType>& dtypes) {
  Roof roof;
  roof.device = device;
  for (const DeviceInfo& info : context.devices()) {
    if (info.name != device || info.kind != DeviceKind::cpu) continue;
    const int requested = context.config().threads;
    const int threads = requested > 0 ? requested : static_cast<int>(exec::available_threads());
    for (const DType dtype : dtypes) {
      if (const auto peak = peak_gflops(dtype, threads)) roof.gflops[dtype] = *peak;
    }
    roof.gb_per_s = memory_bandwidth_gb_s(threads);
  }
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

const Roof* roof_of(const Roofline& roofline, const Work& work) {
  for (const Roof& roof : roofline.roofs) {
    if (roof.device == work.device && roof.covers(work) && roof.gb_per_s > 0) return &roof;
  }
  return nullptr;
}

/// Computes the times of all work for the device that `roofline.expected` describes.
void expect_times(Roofline& roofline) {
  for (std::vector<Work>* list : {&roofline.groups, &roofline.kernels}) {
    for (Work& work : *list) {
      const Roof* const roof = roof_of(roofline, work);
      const double floor_ns = roof == nullptr ? 0 : roof->min_ns(work);
      work.duration_ns = static_cast<std::uint64_t>(floor_ns + 1e3 * roofline.expected->launch_us * static_cast<double>(work.kernels));
    }
  }
}

/// What the times are, and their sum.
std::string expectation_of(const Roofline& roofline) {
  const Peaks& peaks = *roofline.expected;
  std::uint64_t ns = 0, kernels = 0;
  for (const Work& work : roofline.kernels) {
    ns += work.duration_ns;
    kernels += work.kernels;
  }
  return fmt::format(
      "Expected times, nothing was measured: {}, and {:.1f} us a launch (an estimate)\n"
      "{} kernels in {:.1f} us, of which {:.1f} us are launches, if the device runs the kernels of this plan one after the other\n\n",
      peaks.source, peaks.launch_us, kernels, static_cast<double>(ns) / 1e3, static_cast<double>(kernels) * peaks.launch_us);
}

std::string short_number(std::uint64_t value) {
  static constexpr const char* units[] = {"", " k", " M", " G", " T"};
  double number = static_cast<double>(value);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{}", value) : fmt::format("{:.3g}{}", number, units[unit]);
}

std::vector<std::string> row_of(const Roofline& roofline, const Work& work) {
  const Roof* roof = roof_of(roofline, work);
  const double ns = static_cast<double>(work.duration_ns);
  return {work.name,
          work.algorithm.empty() ? std::to_string(work.kernels) : work.algorithm,
          work.device,
          short_number(work.flops),
          short_number(work.size_bytes),
          fmt::format("{:.3g}", work.intensity()),
          roof == nullptr               ? "-"
          : roof->is_memory_bound(work) ? "memory"
                                        : "compute",
          fmt::format("{:.1f}", ns / 1000),
          fmt::format("{:.1f}", roofline.share(work)),
          ns > 0 ? fmt::format("{:.1f}", static_cast<double>(work.flops) / ns) : "-",
          ns > 0 ? fmt::format("{:.1f}", static_cast<double>(work.size_bytes) / ns) : "-",
          roof == nullptr || ns <= 0 ? "-" : fmt::format("{:.0f}", 100 * roof->min_ns(work) / ns)};
}

}  // namespace

bool Roof::covers(const Work& work) const {
  return std::ranges::all_of(work.flops_of, [&](const auto& part) { return part.second == 0 || gflops.contains(part.first); });
}

double Roof::arithmetic_ns(const Work& work) const {
  double ns = 0;
  for (const auto& [dtype, flops] : work.flops_of) {
    if (flops > 0) ns += static_cast<double>(flops) / gflops.at(dtype);
  }
  return ns;
}

double Roof::min_ns(const Work& work) const {
  return std::max(arithmetic_ns(work), static_cast<double>(work.size_bytes) / gb_per_s);
}

bool Roof::is_memory_bound(const Work& work) const {
  return static_cast<double>(work.size_bytes) / gb_per_s >= arithmetic_ns(work);
}

double Roofline::share(const Work& work) const {
  std::uint64_t total = 0;
  for (const Work& kernel : kernels) total += kernel.duration_ns;
  return total == 0 ? 0 : 100 * static_cast<double>(work.duration_ns) / static_cast<double>(total);
}

Roofline measure_roofline(const Context& context, DType dtype, const std::string& group,
                          const std::function<std::string(const Trace::Kernel&)>& group_of, const std::function<void()>& run,
                          const RooflineOptions& options) {
  Roofline result;
  result.group = group;
  result.dtype = dtype;
  result.expected = options.peaks;
  run();
  run();
  const Trace trace(context);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const std::uint64_t fewest = options.peaks == nullptr ? 5 : 1, most = options.peaks == nullptr ? 200 : 1;
  for (; result.steps < fewest || (result.steps < most && Clock::now() - begin < std::chrono::milliseconds(500)); ++result.steps) run();

  std::set<std::string> devices;
  std::set<DType> dtypes{dtype};
  std::map<std::pair<std::string, std::string>, std::size_t> position;  // by group and device
  std::size_t last_group = 0;                                           // of the last kernel with a time
  for (const Trace::Kernel& kernel : trace.kernels()) {
    const bool has_peak = options.peaks != nullptr && options.peaks->gflops.contains(kernel.dtype);
    const DType peak = has_peak ? kernel.dtype : peak_of(kernel.dtype, dtype);
    if (kernel.flops > 0) dtypes.insert(peak);
    // A kernel that ran in the launch of the one before has no time of its own: its work belongs to that one's time.
    const Work* const before = result.kernels.empty() ? nullptr : &result.kernels.back();
    const bool joined = kernel.best_ns == 0 && kernel.algorithm.find(" (joined)") != std::string::npos && before != nullptr &&
                        before->device == kernel.device;
    if (!joined) {
      const std::string name = group_of(kernel);
      const auto [found, inserted] = position.try_emplace({name, kernel.device}, result.groups.size());
      if (inserted) result.groups.push_back({.name = name, .op = {}, .algorithm = {}, .device = kernel.device});
      last_group = found->second;
      result.kernels.push_back({.name = kernel.node, .op = kernel.op, .algorithm = kernel.algorithm, .device = kernel.device});
      ++result.groups[last_group].kernels;
      ++result.kernels.back().kernels;
      devices.insert(kernel.device);
    }
    add(result.groups[last_group], kernel, peak);
    add(result.kernels.back(), kernel, peak);
  }
  for (const std::string& device : devices) {
    result.roofs.push_back(options.peaks == nullptr ? measure_roof(context, device, dtypes) : roof_of(*options.peaks, device, dtypes));
  }
  if (options.peaks != nullptr) expect_times(result);
  std::ranges::stable_sort(result.groups, std::greater(), &Work::duration_ns);
  std::ranges::stable_sort(result.kernels, std::greater(), &Work::duration_ns);
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

std::string as_text(const Roofline& roofline) {
  std::string text;
  for (const Roof& roof : roofline.roofs) {
    const std::string name =
        roofline.expected == nullptr ? roof.device : fmt::format("{} in place of {}", roofline.expected->name, roof.device);
    if (roof.gflops.empty()) {
      text += fmt::format("{}: peak not measured", roof.device);
      text += roof.gb_per_s > 0 ? fmt::format(", {:.1f} GB/s\n", roof.gb_per_s) : "\n";
    }
    for (const auto& [dtype, gflops] : roof.gflops) {
      text += fmt::format("{}: peak {:.1f} GFLOP/s of {} and {:.1f} GB/s; work below {:.2g} FLOP/byte is memory-bound\n", name, gflops,
                          name_of(dtype), roof.gb_per_s, gflops / roof.gb_per_s);
    }
  }
  text += roofline.expected == nullptr
              ? fmt::format("Shortest times of {} runs; above 100 % of the roof, data stays in the caches\n\n", roofline.steps)
              : expectation_of(roofline);
  const std::vector<std::string> columns = {"device", "FLOP",      "bytes",   "FLOP/byte", "bound",
                                            "us",     "% of time", "GFLOP/s", "GB/s",      "% of roof"};
  const auto table_of = [&](const char* first, const char* second, const std::vector<Work>& rows) {
    std::vector<std::string> header{first, second};
    header.insert(header.end(), columns.begin(), columns.end());
    Table table(header);
    for (const Work& work : rows) table.add(row_of(roofline, work));
    return table.str();
  };
  return text + table_of(roofline.group.c_str(), "kernels", roofline.groups) + "\n" + table_of("node", "kernel", roofline.kernels);
}

nlohmann::ordered_json to_json(const Roofline& roofline) {
  using Json = nlohmann::ordered_json;
  const auto row = [&](const Work& work) {
    const Roof* roof = roof_of(roofline, work);
    Json json{{"name", work.name}};
    if (!work.op.empty()) json.update({{"op", work.op}, {"algorithm", work.algorithm}});
    json.update({{"device", work.device},
                 {"kernels", work.kernels},
                 {"flops", work.flops},
                 {"size_bytes", work.size_bytes},
                 {"intensity", work.intensity()},
                 {"duration_ns", work.duration_ns},
                 {"percent_of_time", roofline.share(work)},
                 {"bound", nullptr},
                 {"percent_of_roof", nullptr}});
    if (roof != nullptr) json["bound"] = roof->is_memory_bound(work) ? "memory" : "compute";
    if (roof != nullptr && work.duration_ns > 0) json["percent_of_roof"] = 100 * roof->min_ns(work) / static_cast<double>(work.duration_ns);
    return json;
  };
  Json roofs = Json::array(), groups = Json::array(), kernels = Json::array();
  for (const Roof& roof : roofline.roofs) {
    roofs.push_back({{"device", roof.device}, {"gflop_per_s", nullptr}, {"gb_per_s", nullptr}});
    if (roof.gb_per_s > 0) roofs.back()["gb_per_s"] = roof.gb_per_s;
    if (const auto found = roof.gflops.find(peak_of(roofline.dtype, roofline.dtype)); found != roof.gflops.end())
      roofs.back()["gflop_per_s"] = found->second;
    for (const auto& [dtype, gflops] : roof.gflops) roofs.back()["gflop_per_s_of"][name_of(dtype)] = gflops;
  }
  for (const Work& work : roofline.groups) groups.push_back(row(work));
  for (const Work& work : roofline.kernels) kernels.push_back(row(work));
  const Json expected = roofline.expected == nullptr ? Json() : Json(roofline.expected->name);
  return {{"steps", roofline.steps}, {"expected_on", expected}, {"roofs", roofs}, {roofline.group + "s", groups}, {"kernels", kernels}};
}

}  // namespace tenon::cli
