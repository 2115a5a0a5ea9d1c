// SPDX-License-Identifier: Apache-2.0
// Quantisation of ONNX models in the C API.
#include <tenon/quantize.h>

#include <cmath>

#include "c/json.h"
#include "c/onnx.h"
#include "platform/path.h"
#include "yaml/reader.h"

using namespace tenon;
using namespace tenon::c;

namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 40;

std::vector<std::string> names_in(yaml::Section& top, const char* key) {
  const auto names = top.find(key, "a name or a list of names");
  return names && !names->is_null() ? names->as_names() : std::vector<std::string>();
}

quantize::Options quantize_options(const char* options) {
  quantize::Options chosen;
  if (options == nullptr) return chosen;
  using quantize::Calibration;
  const std::vector<yaml::Choice<Calibration>> calibrations = {
      {"minmax", Calibration::minmax}, {"percentile", Calibration::percentile}, {"entropy", Calibration::entropy}};
  const std::vector<yaml::Choice<DType>> activations = {{"u8", DType::u8}, {"i8", DType::i8}};
  const yaml::Node tree = yaml::parse(options, std::make_shared<yaml::Source>(yaml::Source{"<options>", "", Origin::Kind::api}));
  yaml::Section top(tree);
  chosen.calibration = top.choice("calibration", chosen.calibration, calibrations);
  chosen.percentile = top.get<double>("percentile", chosen.percentile);
  chosen.activations = top.choice("activations", chosen.activations, activations);
  chosen.weights_only_bits = top.get<std::int64_t>("weights_only_bits", chosen.weights_only_bits, {0, 8});
  chosen.block_size = top.get<std::int64_t>("block_size", chosen.block_size, {1, max_count});
  chosen.exclude = names_in(top, "exclude");
  chosen.op_types = names_in(top, "op_types");
  chosen.batch_size = top.get<std::int64_t>("batch_size", chosen.batch_size, {1, max_count});
  chosen.fixed_batch = top.get<std::int64_t>("fixed_batch", chosen.fixed_batch, {0, max_count});
  chosen.opset = top.get<std::int64_t>("opset", chosen.opset, {1, 1000});
  top.finish();
  return chosen;
}

/// The samples along the first axis of these tensors.
quantize::Samples samples_of(const NamedTensors& inputs) {
  if (inputs.empty()) throw BadArgument("input_count: expected at least 1 input with samples, got 0");
  quantize::Samples samples;
  NamedTensors on_host;
  for (const auto& [name, tensor] : inputs) {
    const std::int64_t count = tensor.shape().rank() == 0 ? -1 : tensor.shape()[0];
    if (count < 0 || (!on_host.empty() && count != samples.count))
      throw BadArgument("inputs: expected tensors (samples, ...) with as many samples each, got " + tensor.str() + " for '" + name + "'");
    samples.count = count;
    on_host[name] = tensor.to_host();
  }
  samples.read = [on_host](std::int64_t begin, std::int64_t end) {
    NamedTensors part;
    for (const auto& [name, tensor] : on_host) part[name] = tensor.slice(0, begin, end).contiguous();
    return part;
  };
  return samples;
}

Json json_of(const quantize::Report& report) {
  Json nodes = Json::array(), activations = Json::array();
  for (const quantize::NodeReport& node : report.nodes)
    nodes.push_back({{"name", node.name}, {"op", node.op}, {"quantized", node.quantized}, {"reason", node.reason}});
  for (const quantize::ActivationReport& a : report.activations)
    activations.push_back({{"name", a.name}, {"low", a.low}, {"high", a.high}, {"scale", a.scale}, {"zero_point", a.zero_point}});
  return {{"samples", report.samples}, {"nodes", nodes}, {"activations", activations}};
}

}  // namespace

TenonError* tenon_onnx_quantize(TenonOnnx* onnx, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                                const char* path, const char* options, char** out_json) {
  return guard(__func__, [&] {
    TenonOnnx& own = get(onnx, "onnx");
    const quantize::Samples samples = samples_of(named(names, inputs, input_count));
    const quantize::Report report =
        quantize::quantize(own.value, own.context, samples, platform::path_of(text(path, "path")), quantize_options(options));
    if (out_json != nullptr) *out_json = new_json(json_of(report));
  });
}

TenonError* tenon_onnx_compare(TenonOnnx* expected, TenonOnnx* onnx, const char* const* names, const TenonTensor* const* inputs,
                               uint64_t input_count, const TenonTensor* labels, int64_t batch_size, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const quantize::Samples samples = samples_of(named(names, inputs, input_count));
    const Tensor classes = labels == nullptr ? Tensor() : get(labels, "labels").value.to_host();
    if (classes.defined() && (classes.dtype() != DType::i64 || classes.shape() != Shape{samples.count}))
      throw BadArgument("labels: expected i64(" + std::to_string(samples.count) + "), a class for each sample, got " + classes.str());
    const quantize::Comparison c =
        quantize::compare(get(expected, "expected").value, get(onnx, "onnx").value, samples, classes, batch_size == 0 ? 32 : batch_size);
    const auto known = [](double value) { return value < 0 || !std::isfinite(value) ? Json() : Json(value); };
    *out_json = new_json({{"samples", c.samples},
                          {"largest_difference", known(c.largest_difference)},
                          {"rms_difference", known(c.rms_difference)},
                          {"same_class", known(c.same_class)},
                          {"expected_accuracy", known(c.expected_accuracy)},
                          {"accuracy", known(c.accuracy)}});
  });
}
