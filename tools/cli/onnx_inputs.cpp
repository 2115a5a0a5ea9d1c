// SPDX-License-Identifier: Apache-2.0
#include "cli/onnx_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

#include <tenon/error.h>
#include <tenon/npy.h>

#include "text/counted.h"
#include "yaml/suggest.h"

namespace tenon::cli {
namespace {

/// Splits "name=value".
std::pair<std::string, std::string> split(const char* option, const std::string& text, const char* form) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(fmt::format("{}: expected {}, got '{}'", option, form, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Shape parse_shape(const std::string& text) {
  std::vector<std::int64_t> dims;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0 || (next != end && *next != 'x'))
      throw Error(fmt::format("--shape: expected sizes such as 1x3x224x224, got '{}'", text));
    dims.push_back(size);
    if (next == end) return Shape(std::span(dims));
    at = next + 1;
  }
}

const onnx::ValueType& input_of(const onnx::Model& model, const char* option, const std::string& name) {
  const auto found = std::ranges::find(model.inputs(), name, &onnx::ValueType::name);
  if (found != model.inputs().end()) return *found;
  std::vector<std::string> names, types;
  for (const onnx::ValueType& input : model.inputs()) {
    names.push_back(input.name);
    types.push_back(input.str());
  }
  throw Error(fmt::format("{}: the model has no input '{}'{}; its inputs are: {}", option, name, yaml::did_you_mean(name, names),
                          fmt::join(types, ", ")));
}

/// The declared shape with 1 for what it leaves open.
Shape usual_shape(const onnx::ValueType& type) {
  std::vector<std::int64_t> dims;
  for (const onnx::Dimension& dimension : type.shape) dims.push_back(dimension.is_fixed() ? dimension.size : 1);
  return Shape(std::span(dims));
}

}  // namespace

Tensor random_input(DType dtype, const Shape& shape, std::mt19937_64& random) {
  Tensor numbers = Tensor::empty(DType::f32, shape);
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto* elements = numbers.data<float>();
  for (std::int64_t i = 0; i < numbers.count(); ++i) {
    const float value = uniform(random);
    elements[i] = is_floating(dtype) ? value : static_cast<float>(value > 0);
  }
  return numbers.to(dtype);
}

void OnnxInputs::add_to(CLI::App& command, std::size_t shape_sets) {
  max_sets_ = shape_sets;
  command.add_option("--input", inputs_, "NAME=FILE: elements of an input from a .npy file; repeatable (default: random)")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command
      .add_option("--shape", shapes_,
                  fmt::format("NAME=1x3x224x224: shape of a random input; repeatable{} (default: the model's, with 1 for sizes that it "
                              "leaves open)",
                              shape_sets > 1 ? ", also for an input that changes its shape" : ""))
      ->type_name("NAME=SHAPE")
      ->allow_extra_args(false);
}

std::map<std::string, std::string> OnnxInputs::files() const {
  std::map<std::string, std::string> files;
  for (const std::string& text : inputs_) {
    const auto [name, file] = split("--input", text, "NAME=FILE or NAME=random");
    if (file != "random") files[name] = file;
  }
  return files;
}

std::map<std::string, std::vector<Shape>> OnnxInputs::shapes() const {
  std::map<std::string, std::vector<Shape>> shapes;
  for (const std::string& text : shapes_) {
    const auto [name, shape] = split("--shape", text, "NAME=1x3x224x224");
    std::vector<Shape>& of_input = shapes[name];
    of_input.push_back(parse_shape(shape));
    if (of_input.size() > max_sets_)
      throw Error(
          fmt::format("--shape: expected at most {} of the input '{}', got {}", counted(max_sets_, "shape"), name, of_input.size()));
  }
  return shapes;
}

std::size_t OnnxInputs::shape_sets() const {
  std::size_t sets = 1;
  for (const auto& entry : shapes()) sets = std::max(sets, entry.second.size());
  return sets;
}

onnx::NamedTensors OnnxInputs::tensors(const onnx::Model& model, std::size_t set, std::uint64_t seed) const {
  const std::map<std::string, std::string> files = this->files();
  const std::map<std::string, std::vector<Shape>> shapes = this->shapes();
  for (const auto& entry : files) input_of(model, "--input", entry.first);
  for (const auto& entry : shapes) input_of(model, "--shape", entry.first);
  std::mt19937_64 random(seed);
  onnx::NamedTensors tensors;
  for (const onnx::ValueType& input : model.inputs()) {
    if (const auto file = files.find(input.name); file != files.end()) {
      tensors[input.name] = load_npy(file->second);
      continue;
    }
    const auto shape = shapes.find(input.name);
    if (shape == shapes.end() && !input.ranked)
      throw Error(fmt::format("the model does not state the shape of its input '{0}': name it with --shape {0}=...", input.name));
    tensors[input.name] = random_input(
        input.dtype, shape == shapes.end() ? usual_shape(input) : shape->second[std::min(set, shape->second.size() - 1)], random);
  }
  return tensors;
}

std::string OnnxInputs::source(const std::string& name) const {
  const std::map<std::string, std::string> files = this->files();
  const auto file = files.find(name);
  return file == files.end() ? "random" : file->second;
}

std::string OnnxInputs::str(const onnx::Model& model, const onnx::NamedTensors& tensors) const {
  std::vector<std::string> list;
  for (const onnx::ValueType& input : model.inputs())
    list.push_back(fmt::format("{} {} {}", input.name, tensors.at(input.name).str(), source(input.name)));
  return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace tenon::cli
