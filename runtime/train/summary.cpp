// SPDX-License-Identifier: Apache-2.0
#include "train/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace tenon::train {
namespace {

/// 101770 as "101,770".
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3) text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

std::string bytes(std::int64_t size) {
  if (size < 1024) return fmt::format("{} B", size);
  const double kib = static_cast<double>(size) / 1024;
  return kib < 1024 ? fmt::format("{:.2f} KB", kib) : fmt::format("{:.2f} MB", kib / 1024);
}

}  // namespace

std::string summary_table(const std::string& name, const std::vector<LayerSummary>& layers, DType dtype, std::int64_t optimizer_parameters,
                          const std::string& device) {
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows{{"Layer (type)", "Output Shape", "Param #", "FLOPs/sample", "Device"}};
  std::int64_t total = 0, fixed = 0, flops = 0;
  for (const LayerSummary& layer : layers) {
    std::string shape = "(None";
    for (const std::int64_t d : layer.output) shape += fmt::format(", {}", d);
    rows.push_back({fmt::format("{} ({})", layer.name, layer.type), shape + ")", grouped(layer.parameters), grouped(layer.flops),
                    layer.device.empty() ? device : layer.device});
    total += layer.parameters;
    fixed += layer.non_trainable;
    flops += layer.flops;
  }
  std::array<std::size_t, 5> width{};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string rule;
  for (const std::size_t w : width) rule += std::string(w + 2, '-');
  std::string text = fmt::format("Model: {}\n{}\n", name.empty() ? "sequential" : name, rule);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < width.size(); ++c) {
      const bool number = c == 2 || c == 3;
      text += number ? fmt::format("{:>{}}  ", rows[r][c], width[c]) : fmt::format("{:<{}}  ", rows[r][c], width[c]);
    }
    while (text.back() == ' ') text.pop_back();
    text += "\n";
    if (r == 0) text += rule + "\n";
  }
  const std::int64_t size = size_of(dtype);
  text += rule + "\n";
  text += fmt::format(" Total params: {} ({})\n", grouped(total + optimizer_parameters), bytes((total + optimizer_parameters) * size));
  text += fmt::format(" Trainable params: {} ({})\n", grouped(total - fixed), bytes((total - fixed) * size));
  text += fmt::format(" Non-trainable params: {} ({})\n", grouped(fixed), bytes(fixed * size));
  text += fmt::format(" Optimizer params: {} ({})\n", grouped(optimizer_parameters), bytes(optimizer_parameters * size));
  text += fmt::format(" FLOPs of a forward pass: {} per sample\n", grouped(flops));
  return text;
}

}  // namespace tenon::train
