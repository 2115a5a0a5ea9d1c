// SPDX-License-Identifier: Apache-2.0
// Batchers of ONNX models and of models of layers.
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include <tenon/functions.h>

#include "serve_testing.h"
#include "temporary_folder.h"

namespace tenon::test {
namespace {

/// y = exp(x) and rows = x, for any batch size or, if it is not 0, for this one.
std::string exported(const TemporaryFolder& folder, std::int64_t batch = 0) {
  const auto graph_of = [](std::int64_t size) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {size, 2});
    graph.output("y", ops::exp(x));
    graph.output("sum", ops::reduce_sum(x));
    return graph;
  };
  const auto rows_graph_of = [](std::int64_t size) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {size, 2});
    graph.output("y", ops::exp(x));
    graph.output("twice", x + x);
    return graph;
  };
  const auto values = [](const std::string& name) -> Tensor { throw Error("no parameter " + name); };
  const std::string file = folder.file("net.onnx");
  if (batch < 0) {
    onnx::export_graph(file, graph_of, values);
  } else {
    onnx::export_graph(file, rows_graph_of, values, {.batch = batch});
  }
  return file;
}

TEST_CASE_FIXTURE(OnReference, "batcher: an ONNX model gives each request what a run of its own gives, by the names of the file") {
  const TemporaryFolder folder;
  const std::string file = exported(folder);
  onnx::Model single = onnx::Model::load(file, context);
  Batcher batcher(onnx::Model::load(file, context), {.max_batch = 4, .max_delay_us = 0});
  std::vector<std::future<NamedTensors>> results;
  std::vector<Tensor> inputs;
  for (int i = 0; i < 7; ++i) {
    inputs.push_back(Tensor::of<float>({static_cast<float>(i), -0.5F}, {1, 2}));
    results.push_back(batcher.submit({{"x", inputs.back()}}));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const NamedTensors got = results[i].get();
    const std::vector<Tensor>& expected = single.run({{"x", inputs[i]}});
    CHECK(all_close(got.at("y"), expected[0]));
    CHECK(all_close(got.at("twice"), expected[1]));
  }
}

TEST_CASE_FIXTURE(OnReference, "batcher: an ONNX model with a fixed first dimension needs that batch size") {
  const TemporaryFolder folder;
  const std::string file = exported(folder, 2);
  CHECK_ERROR("batcher: input x f32(2,2) has a fixed first dimension, expected one of any size, or batch_sizes = {2}, got {1, 2, 4, 8}",
              const Batcher batcher(onnx::Model::load(file, context)));
  Batcher batcher(onnx::Model::load(file, context), {.max_batch = 2, .max_delay_us = 0, .batch_sizes = {2}});
  CHECK(floats(batcher.run({{"x", Tensor::of<float>({1, 2}, {1, 2})}}).at("twice")) == std::vector<float>{2, 4});
}

TEST_CASE_FIXTURE(OnReference, "batcher: an output of an ONNX model without a batch axis is an error that names it") {
  const TemporaryFolder folder;
  Batcher batcher(onnx::Model::load(exported(folder, -1), context), {.max_delay_us = 0});
  CHECK_ERROR("batcher: output 'sum' is f32(), expected the batch of 2 as its first axis",
              static_cast<void>(batcher.run({{"x", Tensor::zeros(DType::f32, {2, 2})}})));
}

TEST_CASE_FIXTURE(OnReference, "batcher: a stop request in the run options of a model cancels its requests") {
  const TemporaryFolder folder;
  std::stop_source stop;
  Batcher batcher(onnx::Model::load(exported(folder), context), {.max_delay_us = 0}, {.stop = stop.get_token()});
  stop.request_stop();
  std::future<NamedTensors> result = batcher.submit({{"x", Tensor::zeros(DType::f32, {1, 2})}});
  CHECK(error_of(result).status == Status::cancelled);
}

TEST_CASE_FIXTURE(OnReference, "batcher: a model of layers gives what predict gives") {
  const auto make = [this] {
    Model model({layers::Dense{.units = 3, .activation = Activation::relu}});
    model.compile(context, {});
    model.build({2});
    return model;
  };
  Model single = make();
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor expected = single.predict(x);
  const std::string output = single.outputs()[0].name;
  Batcher batcher(make(), {.max_batch = 4, .max_delay_us = 0});
  for (std::int64_t i = 0; i < 3; ++i) CHECK(all_close(batcher.run({{"x", x.narrow(0, i, 1)}}).at(output), expected.narrow(0, i, 1)));
}

}  // namespace
}  // namespace tenon::test
