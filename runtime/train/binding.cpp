// SPDX-License-Identifier: Apache-2.0
#include "train/binding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tenon/error.h>

#include "yaml/suggest.h"

namespace tenon::train {
namespace {

std::vector<std::string> names_of(const std::vector<SampleType>& types) {
  std::vector<std::string> names;
  for (const SampleType& type : types) names.push_back(type.name);
  return names;
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

std::vector<Tensor> in_order(const NamedTensors& tensors, const std::vector<std::size_t>& indices) {
  std::vector<Tensor> ordered;
  for (const std::size_t index : indices) ordered.push_back(std::next(tensors.begin(), static_cast<std::ptrdiff_t>(index))->second);
  return ordered;
}

/// The index of a name in `given`, or the number of these.
std::size_t find(const std::vector<std::string>& given, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(given, name) - given.begin());
}

}  // namespace

std::vector<std::size_t> indices_of_inputs(const ModelSetup& setup, const std::vector<std::string>& given, const std::string& what) {
  const std::vector<std::string> names = setup.input_names();
  if (names.size() == 1 && given.size() == 1) return {0};
  const auto fail = [&](const std::string& missing) {
    throw Error(fmt::format("{}: expected the input{} {}, got {}{}", what, names.size() == 1 ? "" : "s", fmt::join(names, ", "),
                            given.empty() ? "none" : fmt::format("{}", fmt::join(given, ", ")), missing));
  };
  std::vector<std::size_t> indices;
  for (const std::string& name : names) {
    indices.push_back(find(given, name));
    if (indices.back() == given.size()) fail(fmt::format("; '{}' is missing", name));
  }
  for (const std::string& name : given) {
    if (find(names, name) == names.size()) fail(fmt::format("; the model has no '{}'{}", name, yaml::did_you_mean(name, names)));
  }
  return indices;
}

std::vector<std::size_t> indices_of_targets(const ModelSetup& setup, const std::vector<std::string>& given, const std::string& what) {
  std::vector<std::size_t> indices;
  for (const OutputLoss& loss : setup.need_losses()) {
    const std::string& output = loss.output.empty() ? setup.interface.outputs[0].name : loss.output;
    const std::string& name = loss.target.empty() ? output : loss.target;
    std::size_t index = find(given, name);
    if (index == given.size() && loss.target.empty() && given.size() == 1) index = 0;
    if (index == given.size()) {
      throw Error(fmt::format("{}: expected a target '{}', with which the loss of the output '{}' compares, got {}{}", what, name, output,
                              given.empty() ? "none" : fmt::format("{}", fmt::join(given, ", ")), yaml::did_you_mean(name, given)));
    }
    indices.push_back(index);
  }
  return indices;
}

std::vector<Tensor> inputs_in_order(const ModelSetup& setup, const NamedTensors& inputs, const std::string& what) {
  return in_order(inputs, indices_of_inputs(setup, names_of(inputs), what));
}

std::vector<Tensor> targets_in_order(const ModelSetup& setup, const NamedTensors& targets, const std::string& what) {
  return in_order(targets, indices_of_targets(setup, names_of(targets), what));
}

std::vector<Shape> samples_of(const ModelSetup& setup, const Dataset& data) {
  std::vector<Shape> samples;
  for (const std::size_t index : indices_of_inputs(setup, names_of(data.inputs()), data.name()))
    samples.push_back(data.inputs()[index].shape);
  return samples;
}

BoundBatches::BoundBatches(const ModelSetup& setup, const Dataset& data)
    : setup_(setup),
      data_(data),
      input_indices_(indices_of_inputs(setup, names_of(data.inputs()), data.name())),
      target_indices_(indices_of_targets(setup, names_of(data.targets()), data.name())) {}

BatchTensors BoundBatches::operator()(const Batch& batch) {
  inputs_.clear();
  targets_.clear();
  for (const std::size_t index : input_indices_) inputs_.push_back(batch.inputs[index]);
  for (const std::size_t index : target_indices_) targets_.push_back(batch.targets[index]);
  return {inputs_, targets_, batch.sample_weights, batch.whole == 0 ? layers::BatchShare() : setup_.part_of_process(batch.whole).share};
}

}  // namespace tenon::train
