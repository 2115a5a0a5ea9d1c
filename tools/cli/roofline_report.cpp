// SPDX-License-Identifier: Apache-2.0
#include "cli/roofline_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/joined_kernels.h"
#include "core/table.h"
#include "text/counted.h"

namespace tenon::cli {
namespace {

void add(Work& to, const Trace::Kernel& kernel, DType peak) {
  to.flops_of[peak] += kernel.flops;
  to.flops += kernel.flops;
  to.size_bytes += kernel.size_bytes;
  to.duration_ns += kernel.best_ns;
}

const Roof* roof_of(const Roofline& roofline, const Work& work) {
  for (const Roof& roof : roofline.roofs) {
    if (roof.device == work.device && roof.covers(work) && roof.gb_per_s > 0) return &roof;
  }
  return nullptr;
}

/// Of several kernels, whether one exceeds its roof and is bound in this way. A few percent may be those by which a peak was measured too
/// low.
bool any_above_roof(const std::vector<Work>& kernels, std::string_view bound, std::string_view op) {
  return std::ranges::any_of(kernels, [&](const Work& kernel) {
    return kernel.percent_of_roof().value_or(0) > 110 && kernel.bound() == bound && kernel.op.find(op) != std::string::npos;
  });
}

/// What the measured times are, and how they can exceed the roof where they do.
std::string measurement_of(const Roofline& roofline) {
  std::string text = fmt::format("Shortest times of {}, {:.1f} us in all\n", counted(static_cast<std::uint64_t>(roofline.steps), "run"),
                                 static_cast<double>(roofline.duration_ns()) / 1e3);
  if (any_above_roof(roofline.kernels, "memory", "")) text += "Above 100 % of the roof, data of memory-bound kernels stays in the caches\n";
  if (any_above_roof(roofline.kernels, "compute", "Conv"))
    text += "Above 100 % of the roof, compute-bound convolutions need fewer operations than the FLOP of their definition (Winograd)\n";
  return text + "\n";
}

/// The dtypes that kernels compute with and that the roof of their device has no peak of.
std::set<DType> without_peak(const Roofline& roofline) {
  std::set<DType> dtypes;
  for (const Work& kernel : roofline.kernels) {
    for (const auto& [dtype, flops] : kernel.flops_of) {
      const bool known = std::ranges::any_of(
          roofline.roofs, [&, dtype = dtype](const Roof& roof) { return roof.device == kernel.device && roof.gflops.contains(dtype); });
      if (flops > 0 && !known) dtypes.insert(dtype);
    }
  }
  return dtypes;
}

/// What the times are, and their sum.
std::string expectation_of(const Roofline& roofline) {
  const Peaks& peaks = *roofline.expected;
  std::uint64_t kernels = 0;
  for (const Work& work : roofline.kernels) kernels += work.kernels;
  std::string missing;
  for (const DType dtype : without_peak(roofline))
    missing += fmt::format("No peak of {}: of kernels that compute with it only the launches are counted\n", name_of(dtype));
  return fmt::format(
      "Expected times, nothing was measured: {}, and {:.1f} us a launch (an estimate)\n"
      "{} in {:.1f} us, of which {:.1f} us are launches, if the device runs the kernels of this plan one after the other\n"
      "{}\n",
      peaks.source, peaks.launch_us, counted(kernels, "kernel"), static_cast<double>(roofline.duration_ns()) / 1e3,
      static_cast<double>(kernels) * peaks.launch_us, missing);
}

std::string short_number(std::uint64_t value) {
  static constexpr const char* units[] = {"", " k", " M", " G", " T"};
  double number = static_cast<double>(value);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{}", value) : fmt::format("{:.3g}{}", number, units[unit]);
}

std::string kernel_of(const Work& work) {
  return work.joined == 0 ? work.algorithm : fmt::format("{}, {} joined", work.algorithm, work.joined);
}

std::vector<std::string> row_of(const Roofline& roofline, const Work& work) {
  const double ns = static_cast<double>(work.duration_ns);
  const std::optional<double> percent = work.percent_of_roof();
  return {work.name,
          work.algorithm.empty() ? std::to_string(work.kernels) : kernel_of(work),
          work.device,
          short_number(work.flops),
          short_number(work.size_bytes),
          fmt::format("{:.3g}", work.intensity()),
          work.bound() == nullptr ? "-" : work.bound(),
          fmt::format("{:.1f}", ns / 1000),
          fmt::format("{:.1f}", roofline.share(work)),
          ns > 0 ? fmt::format("{:.1f}", static_cast<double>(work.flops) / ns) : "-",
          ns > 0 ? fmt::format("{:.1f}", static_cast<double>(work.size_bytes) / ns) : "-",
          percent ? fmt::format("{:.0f}", *percent) : "-"};
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

const char* Work::bound() const {
  if (!min_ns) return nullptr;
  return 2 * memory_ns >= *min_ns ? "memory" : "compute";
}

std::optional<double> Work::percent_of_roof() const {
  if (!min_ns || duration_ns == 0) return std::nullopt;
  return 100 * *min_ns / static_cast<double>(duration_ns);
}

std::uint64_t Roofline::duration_ns() const {
  std::uint64_t total = 0;
  for (const Work& kernel : kernels) total += kernel.duration_ns;
  return total;
}

double Roofline::share(const Work& work) const {
  const std::uint64_t total = duration_ns();
  return total == 0 ? 0 : 100 * static_cast<double>(work.duration_ns) / static_cast<double>(total);
}

DType peak_dtype_of(DType operands, DType model) {
  for (const DType dtype : {operands, model}) {
    if (dtype == DType::u8) return DType::i8;
    if (dtype == DType::i8 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64) return dtype;
  }
  return DType::f32;
}

std::string name_of(const Trace::Kernel& kernel) {
  return kernel.nodes == 0 ? kernel.algorithm + " (inserted)" : kernel.algorithm;
}

std::set<DType> add_kernels(std::span<const Trace::Kernel> kernels, const std::function<std::string(const Trace::Kernel&)>& group_of,
                            Roofline& out_roofline) {
  std::vector<Work>& groups = out_roofline.groups;
  std::set<DType> dtypes{out_roofline.dtype};
  std::map<std::pair<std::string, std::string>, std::size_t> position;  // by group and device
  const Peaks* const known = out_roofline.expected;
  for (const Trace::Kernel& kernel : kernels) {
    const bool has_peak = known != nullptr && known->gflops.contains(kernel.dtype);
    const DType peak = has_peak ? kernel.dtype : peak_dtype_of(kernel.dtype, out_roofline.dtype);
    if (kernel.flops > 0) dtypes.insert(peak);
    const Work* const before = out_roofline.kernels.empty() ? nullptr : &out_roofline.kernels.back();
    const bool joined =
        is_joined(kernel.algorithm, static_cast<double>(kernel.best_ns)) && before != nullptr && before->device == kernel.device;
    if (!joined) {
      const std::string name = group_of(kernel);
      const auto [found, inserted] = position.try_emplace({name, kernel.device}, groups.size());
      if (inserted) groups.push_back({.name = name, .op = {}, .algorithm = {}, .device = kernel.device});
      out_roofline.kernels.push_back(
          {.name = kernel.node, .op = kernel.op, .algorithm = name_of(kernel), .device = kernel.device, .group = found->second});
    }
    Work& own = out_roofline.kernels.back();
    for (Work* const work : {&own, &groups[own.group]}) {
      ++(joined ? work->joined : work->kernels);
      add(*work, kernel, peak);
    }
  }
  return dtypes;
}

void complete(Roofline& out_roofline) {
  for (Work& group : out_roofline.groups) {
    group.min_ns = 0;
    if (out_roofline.expected != nullptr) group.duration_ns = 0;
  }
  for (Work& kernel : out_roofline.kernels) {
    Work& group = out_roofline.groups[kernel.group];
    if (const Roof* const roof = roof_of(out_roofline, kernel); roof != nullptr) {
      kernel.min_ns = roof->min_ns(kernel);
      kernel.memory_ns = roof->is_memory_bound(kernel) ? *kernel.min_ns : 0;
    }
    if (out_roofline.expected != nullptr) {
      const double launches_ns = 1e3 * out_roofline.expected->launch_us * static_cast<double>(kernel.kernels);
      kernel.duration_ns = static_cast<std::uint64_t>(kernel.min_ns.value_or(0) + launches_ns);
      group.duration_ns += kernel.duration_ns;
    }
    group.memory_ns += kernel.memory_ns;
    group.min_ns = group.min_ns && kernel.min_ns ? std::optional(*group.min_ns + *kernel.min_ns) : std::nullopt;
  }
  std::ranges::stable_sort(out_roofline.groups, std::greater(), &Work::duration_ns);
  std::ranges::stable_sort(out_roofline.kernels, std::greater(), &Work::duration_ns);
}

std::string as_text(const Roofline& roofline, std::size_t columns_of_terminal) {
  std::string text;
  for (const Roof& roof : roofline.roofs) {
    const std::string name =
        roofline.expected == nullptr ? roof.device : fmt::format("{} in place of {}", roofline.expected->name, roof.device);
    if (roof.gflops.empty()) {
      text += fmt::format("{}: peak not measured", roof.device);
      text += roof.gb_per_s > 0 ? fmt::format(", {:.1f} GB/s of memory\n", roof.gb_per_s) : "\n";
    }
    for (const auto& [dtype, gflops] : roof.gflops) {
      text += fmt::format("{}: peak {:.1f} GFLOP/s of {} and {:.1f} GB/s of memory; work below {:.3g} FLOP/byte is memory-bound\n", name,
                          gflops, name_of(dtype), roof.gb_per_s, gflops / roof.gb_per_s);
    }
  }
  text += roofline.expected == nullptr ? measurement_of(roofline) : expectation_of(roofline);
  const std::vector<std::string> columns = {"device", "FLOP",      "bytes",   "FLOP/byte", "bound",
                                            "us",     "% of time", "GFLOP/s", "GB/s",      "% of roof"};
  // In a terminal lines are short: the only device has its line above.
  const bool omits_device = columns_of_terminal > 0 && roofline.roofs.size() == 1;
  const auto table_of = [&](const char* first, const char* second, const std::vector<Work>& rows) {
    const auto cells = [&](std::vector<std::string> row) {
      if (omits_device) row.erase(row.begin() + 2);
      return row;
    };
    std::vector<std::string> header{first, second};
    header.insert(header.end(), columns.begin(), columns.end());
    Table table(cells(header));
    for (const Work& work : rows) table.add(cells(row_of(roofline, work)));
    static constexpr std::size_t names[] = {0, 1};
    return table.str(columns_of_terminal, names);
  };
  return wrapped(text, columns_of_terminal) + table_of(roofline.group.c_str(), "kernels", roofline.groups) + "\n" +
         table_of("node", "kernel", roofline.kernels);
}

nlohmann::ordered_json to_json(const Roofline& roofline) {
  using Json = nlohmann::ordered_json;
  const auto row = [&](const Work& work) {
    Json json{{"name", work.name}};
    if (!work.op.empty()) json.update({{"op", work.op}, {"algorithm", work.algorithm}});
    json.update({{"device", work.device},
                 {"kernels", work.kernels},
                 {"joined", work.joined},
                 {"flops", work.flops},
                 {"size_bytes", work.size_bytes},
                 {"intensity", work.intensity()},
                 {"duration_ns", work.duration_ns},
                 {"percent_of_time", roofline.share(work)},
                 {"bound", nullptr},
                 {"percent_of_roof", nullptr}});
    if (work.bound() != nullptr) json["bound"] = work.bound();
    if (const auto percent = work.percent_of_roof()) json["percent_of_roof"] = *percent;
    return json;
  };
  Json roofs = Json::array(), groups = Json::array(), kernels = Json::array();
  for (const Roof& roof : roofline.roofs) {
    roofs.push_back({{"device", roof.device}, {"gflop_per_s", nullptr}, {"gb_per_s", nullptr}});
    if (roof.gb_per_s > 0) roofs.back()["gb_per_s"] = roof.gb_per_s;
    if (const auto found = roof.gflops.find(peak_dtype_of(roofline.dtype, roofline.dtype)); found != roof.gflops.end())
      roofs.back()["gflop_per_s"] = found->second;
    for (const auto& [dtype, gflops] : roof.gflops) roofs.back()["gflop_per_s_of"][name_of(dtype)] = gflops;
  }
  for (const Work& work : roofline.groups) groups.push_back(row(work));
  for (const Work& work : roofline.kernels) kernels.push_back(row(work));
  const Json expected = roofline.expected == nullptr ? Json() : Json(roofline.expected->name);
  return {{"steps", roofline.steps}, {"expected_on", expected}, {"roofs", roofs}, {roofline.group + "s", groups}, {"kernels", kernels}};
}

}  // namespace tenon::cli
