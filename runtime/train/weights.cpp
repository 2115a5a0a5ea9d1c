// SPDX-License-Identifier: Apache-2.0
// Weights in files: import, export and comparison.
#include <tenon/weights.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include <tenon/npy.h>

#include "core/element.h"
#include "platform/path.h"
#include "text/counted.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/name_map.h"
#include "train/model_state.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view npz = ".npz", safetensors = ".safetensors";

/// The shape without axes of size 1.
std::vector<std::int64_t> squeezed(const Shape& shape) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  std::erase(sizes, 1);
  return sizes;
}

bool is_dense_kernel(const std::string& name, const Shape& shape) {
  return name.ends_with("/kernel") && shape.rank() == 2;
}

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  const Tensor from = tensor.contiguous();
  if (from.dtype() == dtype) return from;
  Tensor to = Tensor::empty(dtype, from.shape());
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.raw());
  for (std::int64_t i = 0; i < from.count(); ++i)
    write_element(target + i * size_of(dtype), dtype, element_as_double(source + i * size_of(from.dtype()), from.dtype(), "weights"),
                  "weights");
  return to;
}

/// Transposes a matrix; `what` names it in the error for other tensors.
Tensor transposed(const Tensor& tensor, const std::string& what) {
  if (tensor.shape().rank() == 2) return tensor.transpose(0, 1);
  throw Error(fmt::format("{}: expected a matrix to transpose, got {}", what, tensor.str()));
}

/// The names of weights and running statistics. Errors  not built.
std::vector<std::string> names_of_weights(Model& model) {
  static_cast<void>(model.layers());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.parameters().all()) {
    if (!is_training_state(name)) names.push_back(name);
  }
  return names;
}

std::vector<NameRule> rules_of(const WeightsFile& file) {
  return file.map.empty() ? std::vector<NameRule>() : load_name_map(file.map);
}

std::vector<NamedTensor> weights_of(const train::CheckpointFile& checkpoint) {
  const auto is_weight = [](const std::string& name) { return !is_training_state(name) && !name.starts_with("callback/"); };
  return train::CheckpointWeights(checkpoint).read(is_weight);
}

}  // namespace

std::string WeightsReport::str() const {
  std::string text = fmt::format("{}: {} of {}", file, matched.size(), counted(matched.size() + missing.size(), "parameter"));
  if (!missing.empty()) text += fmt::format("; missing: {}", fmt::join(missing, ", "));
  if (!left_over.empty()) text += fmt::format("; left over: {}", fmt::join(left_over, ", "));
  return text;
}

std::vector<NamedTensor> load_weights_file(const std::string& path) {
  if (path.ends_with(npz)) return load_npz(path);
  if (path.ends_with(safetensors)) return load_safetensors(path).tensors;
  std::error_code ignored;
  if (!fs::is_directory(platform::path_of(path), ignored)) return weights_of(train::read_checkpoint_file(path));
  std::vector<NamedTensor> tensors;
  if (train::take_newest(path, [&](const train::CheckpointFile& checkpoint) { tensors = weights_of(checkpoint); }).empty())
    throw Error(fmt::format("no checkpoint in {}", path));
  return tensors;
}

WeightsReport import_weights(Model& model, const WeightsFile& from) {
  const std::vector<NameRule> rules = rules_of(from);
  std::map<std::string, Tensor> theirs;
  for (NamedTensor& tensor : load_weights_file(from.file)) theirs[tensor.name] = std::move(tensor.tensor);
  WeightsReport report{.file = from.file, .matched = {}, .missing = {}, .left_over = {}};
  std::vector<NamedTensor> values;
  std::set<std::string> used;
  for (const std::string& name : names_of_weights(model)) {
    const Tensor& own = model.parameters().get(name);
    bool swap = false;
    const std::string their = train::their_name(rules, name, swap);
    const auto found = theirs.find(their);
    if (found == theirs.end()) {
      report.missing.push_back(name);
      continue;
    }
    const std::string what = fmt::format("{}: tensor '{}' for parameter '{}'", from.file, their, name);
    const bool flip = swap || (from.transpose && is_dense_kernel(name, own.shape()));
    const Tensor value = flip ? transposed(found->second, what) : found->second;
    if (squeezed(value.shape()) != squeezed(own.shape())) {
      const bool would_fit = value.shape().rank() == 2 && squeezed(value.transpose(0, 1).shape()) == squeezed(own.shape());
      throw Error(fmt::format("{}: expected {}, got {}{}", what, own.shape().str(), value.shape().str(),
                              would_fit ? fmt::format("; it fits {}", flip ? "as it is: do not transpose it"
                                                                           : "if transposed: set transpose, "
                                                                             "or write `transposed` into the name map")
                                        : ""));
    }
    if (value.dtype() != own.dtype() && !(is_float(value.dtype()) && is_float(own.dtype())))
      throw Error(fmt::format("{}: expected {}, got {}", what, name_of(own.dtype()), name_of(value.dtype())));
    values.push_back({name, converted(value, own.dtype()).reshape(own.shape())});
    report.matched.emplace_back(name, their);
    used.insert(their);
  }
  for (const auto& [name, tensor] : theirs) {
    if (!used.contains(name) && !train::is_left_out(rules, name)) report.left_over.push_back(name);
  }
  if (report.matched.empty() || (from.strict && !(report.missing.empty() && report.left_over.empty()))) {
    throw Error(fmt::format("{}; {}", report.str(),
                            report.matched.empty() ? "pair the names by a name map (map: FILE)"
                                                   : "pair them by a name map (map: FILE), or allow it (strict: false, --no-strict)"));
  }
  for (const NamedTensor& value : values) model.parameters().set(value.name, value.tensor);
  return report;
}

void export_weights(Model& model, const WeightsFile& to) {
  const bool as_npz = to.file.ends_with(npz);
  if (!as_npz && !to.file.ends_with(safetensors))
    throw Error(fmt::format("{}: expected a file name that ends in {} or {}", to.file, safetensors, npz));
  const std::vector<NameRule> rules = rules_of(to);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names_of_weights(model)) {
    bool swap = false;
    const std::string their = train::their_name(rules, name, swap);
    const Tensor value = model.parameters().get(name).to_host();
    const bool flip = swap || (to.transpose && is_dense_kernel(name, value.shape()));
    tensors.push_back({their, flip ? transposed(value, fmt::format("{}: parameter '{}'", to.file, name)) : value});
  }
  if (as_npz) return save_npz(to.file, tensors);
  save_safetensors(to.file, tensors);
}

std::vector<WeightDifference> compare_weights(const std::string& a, const std::string& b, double tolerance) {
  std::map<std::string, Tensor> of_b;
  for (NamedTensor& tensor : load_weights_file(b)) of_b[tensor.name] = std::move(tensor.tensor);
  std::vector<WeightDifference> differences;
  for (const auto& [name, x] : load_weights_file(a)) {
    const auto found = of_b.find(name);
    if (found == of_b.end()) {
      differences.push_back({name, "only in " + a});
      continue;
    }
    const Tensor y = std::move(found->second);
    of_b.erase(found);
    if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) {
      differences.push_back({name, fmt::format("{}{} and {}{}", name_of(x.dtype()), x.shape().str(), name_of(y.dtype()), y.shape().str())});
      continue;
    }
    const Tensor dense_x = x.contiguous(), dense_y = y.contiguous();
    const auto element = [](const Tensor& t, std::int64_t i) {
      return element_as_double(static_cast<const std::byte*>(t.raw()) + i * size_of(t.dtype()), t.dtype(), "weights");
    };
    double highest = 0;
    std::int64_t at = -1;
    for (std::int64_t i = 0; i < dense_x.count(); ++i) {
      const double p = element(dense_x, i), q = element(dense_y, i);
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      const double difference = std::isnan(p - q) ? INFINITY : std::abs(p - q);
      if (difference > tolerance && difference > highest) highest = difference, at = i;
    }
    if (at >= 0) differences.push_back({name, fmt::format("by at most {:.3g}, at element {}", highest, at)});
  }
  for (const auto& [name, tensor] : of_b) differences.push_back({name, "only in " + b});
  return differences;
}

}  // namespace tenon
