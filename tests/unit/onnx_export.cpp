// SPDX-License-Identifier: Apache-2.0
// Exporting graphs and models to ONNX: names, open batch sizes, external data, errors. onnx_export_ops.cpp has the ops.
#include <tenon/functions.h>
#include <tenon/model.h>
#include <tenon/vendor_ops.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

Tensor range(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return Tensor::of(values, shape);
}

/// Parameters of any shape.
class Parameters {
 public:
  Value add(Graph& graph, const std::string& name, const Shape& shape) {
    values_[name] = range(shape);
    return graph.parameter(name, DType::f32, shape);
  }
  onnx::ParameterValues values() const {
    return [this](const std::string& name) { return values_.at(name); };
  }

 private:
  std::map<std::string, Tensor> values_;
};

/// y = x w + b
Graph dense(Parameters& parameters, std::int64_t batch = 2) {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {batch, 3});
  graph.output("y", ops::add(ops::matmul(x, parameters.add(graph, "dense/kernel", {3, 4})), parameters.add(graph, "dense/bias", {4})));
  return graph;
}

onnx::ModelRecord records(const OnnxFiles& files) {
  static std::string bytes;
  bytes = files.folder.read("model.onnx");
  return onnx::parse_model("model.onnx", bytes);
}

Tensor no_parameters(const std::string& name) {
  throw Error("no parameter " + name);
}

/// The error of an export for any batch size.
std::string message_of_export(const onnx::GraphOfBatch& graph_of) {
  const OnnxFiles files;
  return message_of([&] { onnx::export_graph(files.folder.file("model.onnx"), graph_of, no_parameters); });
}

}  // namespace

TEST_CASE("onnx export: names, producer and metadata are in the file, and parameters keep their names") {
  const OnnxFiles files;
  const std::string path = files.folder.file("model.onnx");
  Parameters parameters;
  const Graph graph = dense(parameters);
  onnx::export_graph(path, graph, parameters.values());
  onnx::ModelRecord record = records(files);
  CHECK(record.producer == "tenon");
  CHECK(record.ir_version == 8);
  CHECK(record.opsets[0].version == 17);
  CHECK(record.graph.nodes.size() == 2);
  CHECK(record.graph.nodes[1].outputs == std::vector<std::string_view>{"y"});
  CHECK(record.graph.initializers[0].name == "dense/kernel");
  CHECK(record.graph.initializers[1].name == "dense/bias");

  onnx::export_graph(
      path, graph, parameters.values(),
      {.opset = 21, .inputs = {"image"}, .outputs = {"scores"}, .graph_name = "dense", .metadata = {{"author", "me"}, {"labels", "a b"}}});
  const onnx::FileReport report = onnx::inspect(path);
  CHECK(report.inputs[0].str() == "image f32(2,3)");
  CHECK(report.outputs[0].str() == "scores f32(2,4)");
  CHECK(report.metadata.graph == "dense");
  CHECK(report.metadata.ir_version == 10);
  CHECK(report.metadata.opsets == std::map<std::string, std::int64_t>{{"ai.onnx", 21}});
  CHECK(report.metadata.properties == std::map<std::string, std::string>{{"author", "me"}, {"labels", "a b"}});
}

TEST_CASE("onnx export: inputs, parameters and constants may be outputs, and a value may be two") {
  const OnnxFiles files;
  Parameters parameters;
  Graph graph;
  const Value x = graph.input("x", DType::f32, {3}), y = ops::neg(x);
  static_cast<void>(ops::exp(y));  // nothing reads it
  graph.output("same", x);
  graph.output("y", y);
  graph.output("again", y);
  graph.output("weights", parameters.add(graph, "w", {2, 2}));
  graph.output("number", graph.constant(Tensor::scalar(5.0F)));
  const std::string path = files.folder.file("model.onnx");
  onnx::export_graph(path, graph, parameters.values());
  CHECK(records(files).graph.nodes.size() == 5);
  onnx::Model model = onnx::Model::load(path, files.context);
  const std::vector<Tensor>& results = model.run({{"x", range({3})}});
  CHECK(floats(results[0]) == floats(range({3})));
  CHECK(floats(results[1]) == floats(results[2]));
  CHECK(floats(results[3]) == floats(range({2, 2})));
  CHECK(floats(results[4]) == std::vector<float>{5});
}

TEST_CASE_FIXTURE(OnReference, "onnx export: shapes that depend on the batch are computed from it") {
  const OnnxFiles files;
  Parameters parameters;
  const auto graph_of = [&](std::int64_t n) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {n, 4, 6});
    const Value rows = ops::reshape(x, Shape{n * 4, 6});
    const Value back = ops::reshape(ops::matmul(rows, parameters.add(graph, "w", {6, 6})), Shape{n, 2, 2, 6});
    graph.output("rows", rows);
    graph.output("pairs", ops::matmul(ops::flatten(x), ops::transpose(ops::flatten(x))));
    graph.output("broadcast", ops::expand(graph.constant(Tensor::of<float>({1, 2, 3}, {3})), {n, 2, 3}));
    graph.output("zeros", ops::concat({ops::reshape(x, Shape{n, 24}), graph.constant(Tensor::zeros(DType::f32, {n, 2}))}, 1));
    graph.output("heads", ops::transpose(back, {0, 2, 1, 3}));
    graph.output("two", ops::reshape(x, Shape{2, n, 12}));
    graph.output("padded", ops::pad(ops::slice(x, 1, 1, 3), {{0, 0}, {1, 1}, {0, 0}}));
    const Value steps = ops::transpose(x, {1, 0, 2});
    graph.output("states", ops::rnn(steps, {.w = parameters.add(graph, "rnn/w", {1, 3, 6}),
                                            .r = parameters.add(graph, "rnn/r", {1, 3, 3}),
                                            .h0 = graph.constant(Tensor::zeros(DType::f32, {1, n, 3}))})
                               .h);
    return graph;
  };
  const std::string path = files.folder.file("model.onnx");
  onnx::export_graph(path, graph_of, parameters.values());
  const onnx::FileReport report = onnx::inspect(path);
  CHECK(report.inputs[0].str() == "x f32(batch,4,6)");
  CHECK(report.outputs[0].str() == "rows f32(4*batch,6)");
  CHECK(report.outputs[1].str() == "pairs f32(batch,batch)");
  onnx::Model model = onnx::Model::load(path, context);
  const auto store = std::make_shared<ParameterStore>();
  for (const std::int64_t n : {1, 2, 5}) {
    const Tensor x = range({n, 4, 6});
    const std::vector<Tensor>& results = model.run({{"x", x}});
    Program program(context, graph_of(n), {.parameters = store});
    for (const char* name : {"w", "rnn/w", "rnn/r"}) store->set(name, parameters.values()(name));
    const std::vector<Tensor>& expected = program.run({x});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(report.outputs[i].name);
      CHECK(results[i].shape() == expected[i].shape());
      CHECK(floats(results[i]) == floats(expected[i]));
    }
  }
}

TEST_CASE("onnx export: what cannot follow the batch is refused, and exported with a fixed one") {
  const auto of = [](auto build) {
    return [build](std::int64_t n) {
      Graph graph;
      const Value x = graph.input("x", DType::f32, {n, 4});
      graph.output("y", build(graph, x, n));
      return graph;
    };
  };
  const onnx::GraphOfBatch scaled = of([](Graph&, Value x, std::int64_t n) { return ops::leaky_relu(x, 1.0 / static_cast<double>(n)); });
  const char* remedy = "export with a fixed batch size (ExportOptions::batch, --batch)";
  CHECK(message_of_export(scaled) ==
        std::string("ONNX export: node 'leaky_relu' (LeakyRelu): its attributes depend on the batch size; ") + remedy);
  CHECK(message_of_export(of([](Graph& g, Value x, std::int64_t n) {
          return ops::mul(x, g.constant(Tensor::scalar(static_cast<float>(n))));
        })).find("(Mul): the elements of the constant '") != std::string::npos);
  CHECK(message_of_export(of([](Graph&, Value x, std::int64_t n) {
          return ops::reshape(ops::matmul(x, ops::transpose(x)), Shape{n * n});
        })).find("is 121 for a batch of 11 and 169 for one of 13, which is no multiple") != std::string::npos);
  CHECK(message_of_export(of([](Graph&, Value x, std::int64_t n) {
          return ops::slice(x, 0, 1, n);
        })).find("(Slice): dimension 0 of 'slice' is 10 for a batch of 11") != std::string::npos);
  CHECK(message_of_export(of([](Graph&, Value x, std::int64_t n) {
          return n == 11 ? ops::neg(x) : ops::exp(x);
        })).find("the graphs for batches of 11 and 13 differ from node 'neg' (Neg) on") != std::string::npos);
  CHECK(message_of_export([](std::int64_t n) {
          Graph graph;
          graph.output("y", ops::expand(graph.input("x", DType::f32, {1, 4}), {n, 4}));
          return graph;
        }).find("a shape depends on the batch size, but no input's does") != std::string::npos);

  const OnnxFiles files;
  const std::string path = files.folder.file("model.onnx");
  onnx::export_graph(path, scaled, no_parameters, {.batch = 3});
  CHECK(onnx::inspect(path).inputs[0].str() == "x f32(3,4)");
}

TEST_CASE("onnx export: all nodes that cannot be exported are named, each with its reason") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {4}), key = graph.input("key", DType::u64, {2});
  const Value dropped = ops::dropout(x, key, 0.5, 1);
  graph.output("y", ops::exp(dropped));
  graph.output("noise", ops::random_normal(key, DType::f32, {4}, 2));
  graph.output("slope", gradients(ops::reduce_sum(ops::sigmoid(x)), {x})[0]);
  const OnnxFiles files;
  const std::string text = message_of([&] { onnx::export_graph(files.folder.file("model.onnx"), graph, no_parameters); });
  CHECK(contains(text, "node 'dropout' (Dropout): its random numbers are those of Tenon's generator"));
  CHECK(contains(text, "node 'random_normal' (RandomNormal): its random numbers"));
  CHECK(contains(text, "(SigmoidGrad): gradients are of training: export the graph of a prediction"));
  CHECK(!contains(text, "(Exp)"));
  CHECK(files.folder.count_files() == 0);
}

TEST_CASE("onnx export: options that do not fit are errors") {
  const OnnxFiles files;
  const std::string path = files.folder.file("model.onnx");
  Parameters parameters;
  const Graph graph = dense(parameters);
  const auto message = [&](const onnx::ExportOptions& options) {
    return message_of([&] { onnx::export_graph(path, graph, parameters.values(), options); });
  };
  CHECK(message({.opset = 16}) == "ONNX export: expected an opset from 17 to 23, got 16");
  CHECK(message({.inputs = {"a", "b"}}) == "ONNX export: expected 1 name for the inputs (x), got 2: a, b");
  CHECK(contains(message({.outputs = {"x"}}), "ONNX export: output 'x': another input, output or parameter has this name"));
  CHECK(contains(message({.inputs = {"dense/bias"}}), "input 'dense/bias': another"));
  CHECK(contains(message({.outputs = {""}}), "expected a name for each output, got an empty one"));
  const auto wrong = [](const std::string&) { return Tensor::zeros(DType::f32, {2}); };
  CHECK_ERROR("ONNX export: parameter 'dense/kernel': expected f32(3,4), got f32(2)", onnx::export_graph(path, graph, wrong));
  CHECK_ERROR("ONNX export: expected a batch size of at least 1, or 0 to leave it open, got -1",
              onnx::export_graph(path, [&](std::int64_t) { return graph; }, parameters.values(), {.batch = -1}));
}

TEST_CASE("onnx export: large weights are in a file next to the model") {
  const OnnxFiles files;
  const std::string path = files.folder.file("model.onnx");
  Parameters parameters;
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 30});
  graph.output("y", ops::matmul(ops::matmul(x, parameters.add(graph, "a", {30, 40})), parameters.add(graph, "b", {40, 20})));
  onnx::export_graph(path, graph, parameters.values(), {.external_above = 8000});
  CHECK(files.folder.count_files() == 1);
  onnx::export_graph(path, graph, parameters.values(), {.external_above = 7999});
  CHECK(files.folder.count_files() == 2);
  CHECK(files.folder.read("model.onnx").size() < 1000);
  CHECK(files.folder.read("model.onnx.data").size() == 8192 + 3200);
  const onnx::ModelRecord record = records(files);
  REQUIRE(record.graph.initializers[1].location.size() == 3);
  CHECK(record.graph.initializers[1].location[0].value == "model.onnx.data");
  CHECK(record.graph.initializers[1].location[1].value == "8192");
  onnx::Model model = onnx::Model::load(path, files.context);
  const std::vector<float> y = floats(model.run({{"x", range({2, 30})}})[0]);
  const auto store = std::make_shared<ParameterStore>();
  Program program(files.context, graph, {.parameters = store});
  for (const char* name : {"a", "b"}) store->set(name, parameters.values()(name));
  CHECK(floats(program.run({range({2, 30})})[0]) == y);
}

TEST_CASE_FIXTURE(OnReference, "onnx export: a model is exported as it predicts, at any batch size") {
  const OnnxFiles files;
  const std::string path = files.folder.file("model.onnx");
  const std::vector<std::pair<Shape, std::vector<LayerDefinition>>> models = {
      {{8, 8},
       {layers::Reshape{{1, 8, 8}}, layers::Conv2D{.filters = 4, .kernel_size = {3, 3}}, layers::BatchNorm{}, layers::Dropout{0.5},
        layers::Flatten{}, layers::Dense{5, Activation::softmax}}},
      {{6, 3}, {layers::LSTM{.units = 4, .return_sequences = true}, layers::GRU{.units = 3}, layers::Dense{2}}},
  };
  for (const auto& [sample, definition] : models) {
    Model model(definition);
    model.compile(context, {.loss = {.loss = Loss::mse}});
    model.build(sample);
    model.export_onnx(path);
    onnx::Model imported = onnx::Model::load(path, context);
    CHECK(imported.inputs()[0].name == "x");
    CHECK(imported.outputs()[0].name == "y");
    CHECK(imported.inputs()[0].shape[0].symbol == "batch");
    for (const std::int64_t batch : {1, 4}) {
      const Tensor x = range(sample.with_batch(batch));
      const std::vector<float> expected = floats(model.predict(x)), got = floats(imported.run({{"x", x}})[0]);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
    model.export_onnx(path, {.batch = 4, .outputs = {"scores"}});
    CHECK(onnx::inspect(path).outputs[0].name == "scores");
    CHECK(onnx::inspect(path).inputs[0].shape[0].size == 4);
  }
}

TEST_CASE("onnx export: a vendor's op is a node of the vendor's domain") {
  Config config = test_config("example:0");
  config.backends.probe = BackendProbe::never;
  const Context context(config, {TENON_EXAMPLE_PLUGIN});
  Graph graph;
  graph.output("y", ops::call("com.example.SoftClip", {graph.input("x", DType::f32, {2, 3})}, {{"limit", 3.0}})[0]);
  const OnnxFiles files;
  const std::string path = files.folder.file("model.onnx");
  onnx::export_graph(path, graph, no_parameters);
  const onnx::ModelRecord record = records(files);
  CHECK(record.graph.nodes[0].domain == "com.example");
  CHECK(record.opsets[1].domain == "com.example");
  Program program(context, graph, {.device = "example:0"});
  const std::vector<float> expected = floats(program.run({range({2, 3})})[0]);
  onnx::Model model = onnx::Model::load(path, context, {.device = "example:0"});
  CHECK(floats(model.run({{"x", range({2, 3})}})[0]) == expected);
}
