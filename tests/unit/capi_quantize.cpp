// SPDX-License-Identifier: Apache-2.0
// The C API: quantisation. quantize_models.cpp tests the quantised models themselves.
#include "capi_testing.h"

#include <cmath>

#include <tenon/functions.h>
#include <tenon/onnx.h>

#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

namespace {

/// y = x w for any batch, w f32(4,3), and 16 samples.
struct Net {
  TemporaryFolder folder;
  Owned<TenonContext> context = make_context();
  Owned<TenonOnnx> onnx;
  Owned<TenonTensor> samples;
  const char* names[1] = {"x"};
  const TenonTensor* inputs[1];

  Net() {
    const std::string file = folder.file("net.onnx");
    tenon::onnx::export_graph(
        file,
        [](std::int64_t batch) {
          tenon::Graph graph;
          const tenon::Value x = graph.input("x", tenon::DType::f32, {batch, 4});
          graph.output("y", tenon::ops::matmul(x, graph.parameter("w", tenon::DType::f32, {4, 3})));
          return graph;
        },
        [](const std::string&) {
          return tenon::Tensor::of<float>({0.5F, -1, 0.25F, 1, 0.75F, -0.5F, -0.25F, 0.125F, 1, 0.3F, -0.7F, 0.9F}, {4, 3});
        });
    REQUIRE_OK(tenon_onnx_load(context, file.c_str(), nullptr, onnx.out()));
    std::vector<float> values;
    for (int i = 0; i < 64; ++i) values.push_back(std::sin(static_cast<float>(i)));
    samples = make_tensor(values, {16, 4});
    inputs[0] = samples;
  }
};

}  // namespace

TEST_CASE("C API: a quantised file computes what its model does, up to the steps of 8 bits") {
  const NoLeaks none;
  const Net net;
  const std::string file = net.folder.file("net.int8.onnx");
  char* text = nullptr;
  REQUIRE_OK(tenon_onnx_quantize(net.onnx, net.names, net.inputs, 1, file.c_str(), "{calibration: minmax, activations: u8}", &text));
  const json report = parsed(text);
  CHECK(report["samples"] == 16);
  REQUIRE(report["nodes"].size() == 1);
  CHECK(report["nodes"][0]["quantized"] == true);
  REQUIRE(report["activations"].size() > 0);
  CHECK(report["activations"][0]["high"].get<double>() == doctest::Approx(1).epsilon(0.01));  // the largest sine
  Owned<TenonOnnx> quantized;
  REQUIRE_OK(tenon_onnx_load(net.context, file.c_str(), nullptr, quantized.out()));
  REQUIRE_OK(tenon_onnx_compare(net.onnx, quantized, net.names, net.inputs, 1, nullptr, 0, &text));
  const json comparison = parsed(text);
  CHECK(comparison["samples"] == 16);
  CHECK(comparison["rms_difference"].get<double>() > 0);
  CHECK(comparison["rms_difference"].get<double>() < 0.02);  // a step of 1/127 of each of two operands
  CHECK(comparison["accuracy"].is_null());
  const Owned<TenonTensor> labels = make_labels(std::vector<std::int64_t>(16, 1));
  REQUIRE_OK(tenon_onnx_compare(net.onnx, net.onnx, net.names, net.inputs, 1, labels, 8, &text));
  const json same = parsed(text);
  CHECK(same["largest_difference"] == 0.0);
  CHECK(same["same_class"] == 1.0);
  CHECK(same["accuracy"] == same["expected_accuracy"]);
}

TEST_CASE("C API: wrong options, samples and labels of a quantisation are errors") {
  const NoLeaks none;
  const Net net;
  const std::string file = net.folder.file("none.onnx");
  char* text = nullptr;
  CHECK_FAILS_WITH("unknown key 'weights_only'; did you mean 'weights_only_bits'?",
                   tenon_onnx_quantize(net.onnx, net.names, net.inputs, 1, file.c_str(), "weights_only: 8", &text));
  CHECK_FAILS_WITH("key 'calibration': expected",
                   tenon_onnx_quantize(net.onnx, net.names, net.inputs, 1, file.c_str(), "calibration: max", &text));
  CHECK_FAILS_WITH("weights_only", tenon_onnx_quantize(net.onnx, net.names, net.inputs, 1, file.c_str(), "weights_only_bits: 3", &text));
  CHECK_FAILS_WITH("input_count: expected at least 1",
                   tenon_onnx_quantize(net.onnx, net.names, net.inputs, 0, file.c_str(), nullptr, &text));
  const Owned<TenonTensor> scalar = make_tensor({1}, {});
  const TenonTensor* wrong[] = {scalar};
  CHECK_FAILS_WITH("expected tensors (samples, ...)", tenon_onnx_quantize(net.onnx, net.names, wrong, 1, file.c_str(), nullptr, &text));
  const Owned<TenonTensor> labels = make_labels({1, 2});
  CHECK_FAILS_WITH("labels: expected i64(16)", tenon_onnx_compare(net.onnx, net.onnx, net.names, net.inputs, 1, labels, 0, &text));
  CHECK_FAILS_WITH("batch_size: expected at least 1, got -1",
                   tenon_onnx_compare(net.onnx, net.onnx, net.names, net.inputs, 1, nullptr, -1, &text));
  CHECK(text == nullptr);
}

TEST_CASE("C API: a comparison with elements that are NaN has no differences") {
  const NoLeaks none;
  const Net net;
  std::vector<float> values(64, 1);
  values[5] = std::nanf("");
  const Owned<TenonTensor> samples = make_tensor(values, {16, 4});
  const TenonTensor* inputs[] = {samples};
  char* text = nullptr;
  REQUIRE_OK(tenon_onnx_compare(net.onnx, net.onnx, net.names, inputs, 1, nullptr, 0, &text));
  const json comparison = parsed(text);
  CHECK(comparison["samples"] == 16);
  CHECK(comparison["largest_difference"].is_null());
  CHECK(comparison["rms_difference"].is_null());
}
