// SPDX-License-Identifier: Apache-2.0
// Quantised models: the form of the file, its outputs, and what is refused.
#include <tenon/functions.h>
#include <tenon/quantize.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

Tensor random_tensor(const Shape& shape, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 random(seed);
  std::vector<float> elements(static_cast<std::size_t>(shape.count()));
  for (float& x : elements) x = std::uniform_real_distribution<float>(low, high)(random);
  return Tensor::of(elements, shape);
}

const ops::ConvOptions same_size = [] {
  ops::ConvOptions options;
  options.same = true;
  return options;
}();

/// A graph of any batch size, and its parameters.
struct Net {
  std::map<std::string, Tensor> weights;
  std::function<Graph(std::int64_t batch)> graph_of;
  Shape sample;

  onnx::ParameterValues values() const {
    return [this](const std::string& name) { return weights.at(name); };
  }
};

/// conv 3x3, batch norm, relu, max pool; conv 3x3 and a sum with its input, relu; mean over the image, dense.
Net residual_net() {
  Net net;
  net.sample = {3, 8, 8};
  net.weights = {{"conv1.w", random_tensor({8, 3, 3, 3}, 1)},
                 {"conv1.b", random_tensor({8}, 2)},
                 {"norm.scale", random_tensor({8}, 3, 0.5, 1.5)},
                 {"norm.bias", random_tensor({8}, 4)},
                 {"norm.mean", random_tensor({8}, 5)},
                 {"norm.var", random_tensor({8}, 6, 0.5, 2)},
                 {"conv2.w", random_tensor({8, 8, 3, 3}, 7, -0.3F, 0.3F)},
                 {"conv2.b", random_tensor({8}, 8)},
                 {"dense.w", random_tensor({8, 5}, 9)},
                 {"dense.b", random_tensor({5}, 10)}};
  net.graph_of = [weights = net.weights](std::int64_t batch) {
    Graph graph;
    const auto parameter = [&](const std::string& name) { return graph.parameter(name, DType::f32, weights.at(name).shape()); };
    const auto scope = [&](const char* name) { return NameScope(graph, name); };
    Value x = graph.input("x", DType::f32, {batch, 3, 8, 8});
    {
      const NameScope in = scope("block1");
      x = ops::conv(x, parameter("conv1.w"), parameter("conv1.b"), same_size);
      x = ops::batch_norm(x, parameter("norm.scale"), parameter("norm.bias"), parameter("norm.mean"), parameter("norm.var"));
      x = ops::max_pool(ops::relu(x), {2, 2});
    }
    {
      const NameScope in = scope("block2");
      const Value y = ops::conv(x, parameter("conv2.w"), parameter("conv2.b"), same_size);
      x = ops::relu(ops::add(x, y));
    }
    const NameScope in = scope("head");
    x = ops::reshape(ops::global_average_pool(x), Shape{batch, 8});
    graph.output("y", ops::add(ops::matmul(x, parameter("dense.w")), parameter("dense.b")));
    return graph;
  };
  return net;
}

quantize::Samples samples_of(const Tensor& x) {
  return {.count = x.shape()[0], .read = [x](std::int64_t begin, std::int64_t end) {
            return NamedTensors{{"x", x.slice(0, begin, end).contiguous()}};
          }};
}

/// A net as a file, and its quantised form.
struct Files {
  explicit Files(Net of, std::int64_t batch = 0) : net(std::move(of)) {
    onnx::export_graph(files.folder.file("f32.onnx"), net.graph_of, net.values(), {.batch = batch});
  }
  onnx::Model original() const { return onnx::Model::load(files.folder.file("f32.onnx"), files.context); }
  onnx::Model quantized() const { return onnx::Model::load(files.folder.file("int8.onnx"), files.context); }
  Tensor x(std::int64_t count) const { return random_tensor(net.sample.with_batch(count), 77); }
  quantize::Report quantize(const quantize::Options& options = {}) const { return quantize(samples_of(x(64)), options); }
  quantize::Report quantize(const quantize::Samples& samples, const quantize::Options& options = {}) const {
    onnx::Model model = original();
    return quantize::quantize(model, files.context, samples, files.folder.file("int8.onnx"), options);
  }
  quantize::Comparison compare() const {
    onnx::Model before = original(), after = quantized();
    return quantize::compare(before, after, samples_of(random_tensor(net.sample.with_batch(50), 78)));
  }
  /// The operators of the quantised file in order, with one space before each.
  std::string operators() const {
    const std::string bytes = files.folder.read("int8.onnx");
    std::string text;
    for (const onnx::NodeRecord& node : onnx::parse_model("int8.onnx", bytes).graph.nodes) text += " " + std::string(node.op);
    return text;
  }
  std::size_t count(const std::string& op) const {
    std::size_t found = 0;
    const std::string all = operators() + " ";
    for (std::size_t at = all.find(" " + op + " "); at != std::string::npos; at = all.find(" " + op + " ", at + 1)) ++found;
    return found;
  }

  OnnxFiles files;
  Net net;
};

}  // namespace

TEST_CASE("quantize: a residual net keeps to integers from its input to the sum of its last layer") {
  const Files files(residual_net());
  const quantize::Report report = files.quantize();
  CHECK(report.samples == 64);
  REQUIRE(report.nodes.size() == 3);
  for (const quantize::NodeReport& node : report.nodes) CHECK(node.quantized);
  // The batch norm is folded, each Relu is a saturation, and the bias of the dense layer belongs to its product.
  CHECK(files.count("BatchNormalization") == 0);
  CHECK(files.count("Relu") == 0);
  CHECK(files.count("MatMul") == 0);
  CHECK(files.count("Gemm") == 1);
  CHECK(files.count("GlobalAveragePool") == 1);
  // Quantised: x, the first convolution, its maximum, the second convolution, the sum, the mean and its reshape. Not the output.
  CHECK(files.count("QuantizeLinear") == 7);
  CHECK(files.count("DequantizeLinear") == 7 + 6);
  CHECK(files.operators().ends_with(" Gemm"));
}

TEST_CASE("quantize: the outputs of a quantised net are close to those of f32, for every calibration") {
  const Files files(residual_net());
  for (const quantize::Calibration calibration :
       {quantize::Calibration::minmax, quantize::Calibration::percentile, quantize::Calibration::entropy}) {
    for (const DType dtype : {DType::u8, DType::i8}) {
      CAPTURE(quantize::name_of(calibration));
      CAPTURE(name_of(dtype));
      files.quantize({.calibration = calibration, .activations = dtype});
      const quantize::Comparison comparison = files.compare();
      CHECK(comparison.samples == 50);
      CHECK(comparison.rms_difference > 0);
      // Four roundings to 8 bits, each of at most half of 1/255 of a range (1/127 for i8), and clipped tails.
      CHECK(comparison.rms_difference < 0.04);
    }
  }
}

TEST_CASE("quantize: ranges are those of the samples, and values that move have one scale") {
  const Files files(residual_net());
  const Tensor x = files.x(64);
  const quantize::Report report = files.quantize();
  REQUIRE(report.activations.size() == 7);
  const std::vector<float> elements = x.to_vector<float>();
  CHECK(report.activations[0].name == "x");
  CHECK(report.activations[0].low == std::ranges::min(elements));
  CHECK(report.activations[0].high == std::ranges::max(elements));
  // The result of the first Relu, and its maxima.
  CHECK(report.activations[1].zero_point == 0);
  CHECK(report.activations[1].scale == report.activations[2].scale);
  CHECK(report.activations[1].scale == doctest::Approx(report.activations[1].high / 255));
}

TEST_CASE("quantize: symmetric integers keep each Relu between two equal quantisations") {
  const Files files(residual_net());
  files.quantize({.activations = DType::i8});
  CHECK(files.count("Relu") == 2);
  CHECK(files.operators().find("Conv QuantizeLinear DequantizeLinear Relu QuantizeLinear DequantizeLinear MaxPool") != std::string::npos);
}

TEST_CASE("quantize: excluded nodes stay in f32, and so does what only they need") {
  const Files files(residual_net());
  const quantize::Report report = files.quantize({.exclude = {"*block2*"}});
  CHECK(std::ranges::count_if(report.nodes, &quantize::NodeReport::quantized) == 2);
  const auto excluded = std::ranges::find_if(report.nodes, [](const quantize::NodeReport& node) { return !node.quantized; });
  REQUIRE(excluded != report.nodes.end());
  CHECK(excluded->reason == "excluded");
  CHECK(files.count("Relu") == 1);
  CHECK(files.count("Conv") == 2);
  const std::string bytes = files.files.folder.read("int8.onnx");
  const onnx::ModelRecord record = onnx::parse_model("int8.onnx", bytes);
  CHECK(std::ranges::any_of(record.graph.initializers, [](const onnx::TensorRecord& tensor) { return tensor.name == "conv2.w"; }));
  CHECK(files.compare().rms_difference < 0.04);
}

TEST_CASE("quantize: operators that are not selected stay in f32") {
  const Files files(residual_net());
  const quantize::Report report = files.quantize({.op_types = {"Conv", "Relu"}});
  CHECK(std::ranges::count_if(report.nodes, &quantize::NodeReport::quantized) == 2);
  CHECK(report.nodes[2].reason == "its operator is not selected");
}

TEST_CASE("quantize: weights and biases of the file are the integers of the folded ones") {
  const Files files(residual_net());
  const quantize::Report report = files.quantize();
  const std::string bytes = files.files.folder.read("int8.onnx");
  const onnx::ModelRecord record = onnx::parse_model("int8.onnx", bytes);
  onnx::Model model = files.quantized();
  std::map<std::string, Tensor> tensors;
  for (const NamedTensor& tensor : model.initializers()) tensors[tensor.name] = tensor.tensor;
  const std::vector<std::int8_t> q = tensors.at("conv2.w_quantized").to_vector<std::int8_t>();
  const std::vector<float> w = files.net.weights.at("conv2.w").to_vector<float>();
  for (std::size_t channel = 0; channel < 8; ++channel) {
    float largest = 0;
    for (std::size_t i = channel * 72; i < channel * 72 + 72; ++i) largest = std::max(largest, std::fabs(w[i]));
    for (std::size_t i = channel * 72; i < channel * 72 + 72; ++i) CHECK(q[i] == static_cast<int>(std::nearbyint(w[i] / (largest / 127))));
  }
  const std::vector<std::int32_t> bias = tensors.at("conv2.b_quantized").to_vector<std::int32_t>();
  const std::vector<float> scales = tensors.at("conv2.b_scale").to_vector<float>(), b = files.net.weights.at("conv2.b").to_vector<float>();
  for (std::size_t channel = 0; channel < 8; ++channel)
    CHECK(static_cast<float>(bias[channel]) * scales[channel] == doctest::Approx(b[channel]).epsilon(1e-3));
  CHECK(report.nodes[1].name.find("block2") != std::string::npos);
}

TEST_CASE("quantize: a file with an open batch stays open, a fixed one fixed, and exporting again keeps the results") {
  const Files open(residual_net()), fixed(residual_net(), 4);
  open.quantize();
  fixed.quantize();
  CHECK(open.quantized().inputs()[0].str() == "x f32(batch,3,8,8)");
  CHECK(fixed.quantized().inputs()[0].str() == "x f32(4,3,8,8)");
  onnx::Model model = open.quantized();
  const Graph graph = model.to_graph({{"x", {DType::f32, {2, 3, 8, 8}}}});
  const std::string again = open.files.folder.file("again.onnx");
  onnx::export_graph(again, graph, [&](const std::string& name) { return model.parameters()->get(name); });
  onnx::Model second = onnx::Model::load(again, open.files.context);
  const Tensor x = open.x(2);
  const Tensor expected = model.run({{"x", x}})[0].to_host();
  CHECK(equal(second.run({{"x", x}})[0].to_host(), expected));
}

TEST_CASE("quantize: weights only stores i8 and computes in f32") {
  const Files files(residual_net());
  const quantize::Report report = files.quantize({.weights_only_bits = 8});
  CHECK(report.activations.empty());
  CHECK(files.count("QuantizeLinear") == 0);
  CHECK(files.count("DequantizeLinear") == 3);
  const quantize::Comparison comparison = files.compare();
  CHECK(comparison.rms_difference > 0);
  CHECK(comparison.rms_difference < 0.01);
}

TEST_CASE("quantize: weights of 4 bits are operands of MatMulNBits, with the bias of their product") {
  const Files files(residual_net());
  const quantize::Report report = files.quantize({.weights_only_bits = 4, .block_size = 16});
  REQUIRE(report.nodes.size() == 3);
  CHECK(report.nodes[0].reason == "weights of 4 bits are matrices");
  CHECK(report.nodes[2].quantized);
  CHECK(files.count("MatMulNBits") == 1);
  CHECK(files.count("Gemm") == 0);
  CHECK(files.count("Add") == 1);  // that of the residual
  const quantize::Comparison comparison = files.compare();
  CHECK(comparison.rms_difference > 0);
  CHECK(comparison.rms_difference < 0.1);  // half of 1/8 of the largest weight, averaged over 8 products
  CHECK(files.quantized().inputs()[0].str() == "x f32(batch,3,8,8)");
  CHECK_ERROR_CONTAINS("block_size: expected a power of two of 16 or more, got 24",
                       files.quantize({.weights_only_bits = 4, .block_size = 24}));
  CHECK_ERROR_CONTAINS("weights_only_bits: expected 4 or 8, or 0 for activations as well, got 3", files.quantize({.weights_only_bits = 3}));
}

TEST_CASE("quantize: products of sequences add their bias before anything is rounded, and products of two activations stay in f32") {
  Net net;
  net.sample = {4, 8};
  net.weights = {{"w", random_tensor({8, 8}, 1)}, {"b", random_tensor({8}, 2)}};
  net.graph_of = [weights = net.weights](std::int64_t batch) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {batch, 4, 8});
    const Value y = ops::add(ops::matmul(x, graph.parameter("w", DType::f32, {8, 8})), graph.parameter("b", DType::f32, {8}));
    graph.output("y", ops::matmul(y, ops::transpose(y, {0, 2, 1})));
    return graph;
  };
  const Files files(net);
  const quantize::Report report = files.quantize();
  REQUIRE(report.nodes.size() == 2);
  CHECK(report.nodes[0].quantized);
  CHECK(report.nodes[1].reason == "both operands are activations");
  CHECK(files.operators() == " QuantizeLinear DequantizeLinear DequantizeLinear MatMul Add Transpose MatMul");
  CHECK(files.compare().rms_difference < 0.02);
}

TEST_CASE("quantize: both products of attention are quantised if that is selected") {
  Net net;
  net.sample = {4, 8};
  net.weights = {
      {"q", random_tensor({8, 8}, 1)}, {"k", random_tensor({8, 8}, 2)}, {"v", random_tensor({8, 8}, 3)}, {"o", random_tensor({8, 8}, 4)}};
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    net.graph_of = [causal](std::int64_t batch) {
      Graph graph;
      const Value x = graph.input("x", DType::f32, {batch, 4, 8});
      const auto heads = [&](const char* name) {
        const Value rows = ops::matmul(x, graph.parameter(name, DType::f32, {8, 8}));
        return ops::transpose(ops::reshape(rows, Shape{batch, 4, 2, 4}), {0, 2, 1, 3});
      };
      ops::AttentionOptions options;
      options.causal = causal;
      const Value y = ops::attention(heads("q"), heads("k"), heads("v"), options);
      const Value merged = ops::reshape(ops::transpose(y, {0, 2, 1, 3}), Shape{batch, 4, 8});
      graph.output("y", ops::matmul(merged, graph.parameter("o", DType::f32, {8, 8})));
      return graph;
    };
    const Files files(net);
    const auto quantized = [](const quantize::Report& report) {
      return std::ranges::count_if(report.nodes, &quantize::NodeReport::quantized);
    };
    CHECK(quantized(files.quantize()) == 4);
    CHECK(files.operators().find("Softmax QuantizeLinear") == std::string::npos);
    CHECK(quantized(files.quantize({.op_types = {"+Attention"}})) == 6);
    CHECK(files.operators().find("Softmax QuantizeLinear DequantizeLinear") != std::string::npos);
    CHECK(files.compare().rms_difference < 0.02);
    CHECK(quantized(files.quantize({.weights_only_bits = 8, .op_types = {"+Attention"}})) == 4);
    CHECK(files.operators().find("Softmax QuantizeLinear") == std::string::npos);
  }
}

TEST_CASE("quantize: a Clip is left to saturation if its bounds are those of the integers") {
  for (const double low : {0.0, 0.5}) {
    CAPTURE(low);
    Net net;
    net.sample = {1, 4, 4};
    net.weights = {{"w", random_tensor({2, 1, 3, 3}, 1, 0, 1)}, {"v", random_tensor({2, 2, 3, 3}, 2)}};
    net.graph_of = [low](std::int64_t batch) {
      Graph graph;
      const Value x = graph.input("x", DType::f32, {batch, 1, 4, 4});
      const Value y = ops::clip(ops::conv(x, graph.parameter("w", DType::f32, {2, 1, 3, 3}), {}, same_size), low, 0.75);
      graph.output("y", ops::conv(y, graph.parameter("v", DType::f32, {2, 2, 3, 3})));
      return graph;
    };
    const Files files(net);
    files.quantize();
    // Integers begin at 0, which is below 0.5.
    CHECK(files.count("Clip") == (low == 0.0 ? 0 : 1));
    CHECK(files.count("QuantizeLinear") == (low == 0.0 ? 2 : 3));
    CHECK(files.compare().rms_difference < 0.03);
  }
}

TEST_CASE("quantize: what cannot be quantised is an error that says why") {
  const Files files(residual_net());
  CHECK_ERROR_CONTAINS("expected samples of the model's inputs, got none", files.quantize(quantize::Samples{}));
  CHECK_ERROR_CONTAINS("'conv9' matches no node of the model", files.quantize({.exclude = {"conv9"}}));
  CHECK_ERROR_CONTAINS("operator 'Convv' cannot be quantised; did you mean 'Conv'?", files.quantize({.op_types = {"Convv"}}));
  CHECK_ERROR_CONTAINS("percentile: expected more than 50 and at most 100, got 3", files.quantize({.percentile = 3}));
  CHECK_ERROR_CONTAINS("activations: expected u8 or i8, got i32", files.quantize({.activations = DType::i32}));
  CHECK_ERROR_CONTAINS("got none: '", files.quantize({.exclude = {"*"}}));
  CHECK_ERROR_CONTAINS("expected at least as many samples, got 3", Files(residual_net(), 4).quantize(samples_of(files.x(3))));

  Tensor x = files.x(8);
  x.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_ERROR_CONTAINS("expected finite activations, but of 'x' element 3 is nan", files.quantize(samples_of(x)));

  Net net;
  net.sample = {3};
  net.graph_of = [](std::int64_t batch) {
    Graph graph;
    graph.output("y", ops::exp(graph.input("x", DType::f32, {batch, 3})));
    return graph;
  };
  CHECK_ERROR_CONTAINS("it has no Conv, MatMul or Gemm", Files(net).quantize());
}

TEST_CASE("quantize: weights and biases that are not finite are errors that name them, also where no activation is observed") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto net_with = [](const char* name, std::int64_t i, float value) {
    Net net = residual_net();
    net.weights.at(name).data<float>()[i] = value;
    return net;
  };
  const auto text = [](const char* name, const char* element) {
    return std::string("expected finite weights, but of '") + name + "' element " + element + "; check the model, or leave out";
  };
  CHECK_ERROR_CONTAINS(text("conv2.w", "7 is nan").c_str(),
                       Files(net_with("conv2.w", 7, std::numeric_limits<float>::quiet_NaN())).quantize({.weights_only_bits = 8}));
  CHECK_ERROR_CONTAINS(text("dense.w", "3 is inf").c_str(), Files(net_with("dense.w", 3, infinity)).quantize({.weights_only_bits = 4}));
  CHECK_ERROR_CONTAINS(text("dense.b", "2 is inf").c_str(), Files(net_with("dense.b", 2, infinity)).quantize());
  // What stays in f32 may be anything.
  CHECK(Files(net_with("dense.b", 2, infinity)).quantize({.weights_only_bits = 8}).nodes[2].quantized);
  CHECK_FALSE(Files(net_with("conv2.w", 7, infinity)).quantize({.weights_only_bits = 8, .exclude = {"*block2*"}}).nodes[1].quantized);
}

TEST_CASE("quantize: the bias of a product with one column may be a scalar") {
  Net net;
  net.sample = {8};
  net.weights = {{"w", random_tensor({8, 1}, 1)}, {"v", random_tensor({1, 3}, 2)}};
  net.graph_of = [](std::int64_t batch) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {batch, 8});
    const Value y = ops::gemm(x, graph.parameter("w", DType::f32, {8, 1}), graph.constant(Tensor::scalar(0.75F), "b"));
    graph.output("y", ops::matmul(y, graph.parameter("v", DType::f32, {1, 3})));
    return graph;
  };
  const Files files(net);
  for (const std::int64_t bits : {0, 8, 4}) {
    CAPTURE(bits);
    const quantize::Report report = files.quantize({.weights_only_bits = bits});
    REQUIRE(report.nodes.size() == 2);
    CHECK(report.nodes[0].reason == "");
    CHECK(report.nodes[0].quantized);
    // Sums of 8 terms are small next to the ranges of what is rounded.
    CHECK(files.compare().rms_difference < (bits == 4 ? 0.15 : 0.06));
  }
}

TEST_CASE("quantize: a comparison counts right classes and relates differences to the expected outputs") {
  Net net;
  net.sample = {2};
  net.weights = {{"w", Tensor::of<float>({1, 0, 0, 1}, {2, 2})}};
  const auto scaled = [](double factor) {
    return [factor](std::int64_t batch) {
      Graph graph;
      const Value y = ops::matmul(graph.input("x", DType::f32, {batch, 2}), graph.parameter("w", DType::f32, {2, 2}));
      graph.output("y", ops::mul(y, graph.constant(Tensor::of<float>({1, static_cast<float>(factor)}, {2}))));
      return graph;
    };
  };
  const OnnxFiles files;
  onnx::export_graph(files.folder.file("a.onnx"), scaled(1), net.values());
  onnx::export_graph(files.folder.file("b.onnx"), scaled(3), net.values());
  onnx::Model a = onnx::Model::load(files.folder.file("a.onnx"), files.context),
              b = onnx::Model::load(files.folder.file("b.onnx"), files.context);
  const Tensor x = Tensor::of<float>({4, 1, 4, 2, 0, 1}, {3, 2});  // times 3: (4, 3), (4, 6), (0, 3)
  const quantize::Comparison comparison = quantize::compare(a, b, samples_of(x), Tensor::of<std::int64_t>({0, 0, 1}, {3}), 2);
  CHECK(comparison.samples == 3);
  CHECK(comparison.same_class == doctest::Approx(2.0 / 3));
  CHECK(comparison.expected_accuracy == 1);
  CHECK(comparison.accuracy == doctest::Approx(2.0 / 3));
  CHECK(comparison.largest_difference == doctest::Approx(1));                 // 6 - 2, of 4
  CHECK(comparison.rms_difference == doctest::Approx(std::sqrt(24.0 / 38)));  // 4 + 16 + 4 of 16 + 1 + 16 + 4 + 1
}

TEST_CASE("quantize: a comparison says so if elements are not finite, and relates differences to those that are") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const OnnxFiles files;
  const auto model = [&](const char* name, const std::vector<float>& added) {
    const std::string file = files.folder.file(name);
    onnx::export_graph(
        file,
        [&](std::int64_t batch) {
          Graph graph;
          const Value x = graph.input("x", DType::f32, {batch, 2});
          graph.output("y", ops::add(x, graph.constant(Tensor::of(added, {2}))));
          graph.output("z", ops::neg(x));  // the same in both models
          return graph;
        },
        Net{}.values());
    return onnx::Model::load(file, files.context);
  };
  const quantize::Samples samples = samples_of(Tensor::of<float>({4, 1, 4, 2}, {2, 2}));
  const auto compare = [&](const std::vector<float>& expected, const std::vector<float>& got, std::int64_t batch_size = 32) {
    onnx::Model a = model("a.onnx", expected), b = model("b.onnx", got);
    return quantize::compare(a, b, samples, {}, batch_size);
  };
  for (const quantize::Comparison& comparison :
       {compare({0, 0}, {0, nan}), compare({0, 0}, {nan, 0}), compare({nan, 0}, {0, 0}), compare({-infinity, 0}, {-infinity, nan})}) {
    CHECK(std::isnan(comparison.largest_difference));
    CHECK(std::isnan(comparison.rms_difference));
  }
  for (const quantize::Comparison& comparison :
       {compare({0, 0}, {0, infinity}), compare({0, -infinity}, {0, 0}), compare({infinity, 0}, {-infinity, 0})}) {
    CHECK(comparison.largest_difference == infinity);
    CHECK(comparison.rms_difference == infinity);
  }
  const quantize::Comparison masked = compare({0, -infinity}, {1, -infinity});
  CHECK(masked.largest_difference == 0.25);                              // 1 of 4
  CHECK(masked.rms_difference == doctest::Approx(std::sqrt(2.0 / 32)));  // 1 + 1 of 16 + 16
  CHECK(compare({0, infinity}, {0, infinity}).largest_difference == 0);

  for (const std::int64_t batch_size : {0, -1})
    CHECK_ERROR_CONTAINS("comparison: batch_size: expected at least 1, got " + std::to_string(batch_size),
                         compare({0, 0}, {0, 0}, batch_size));
}
