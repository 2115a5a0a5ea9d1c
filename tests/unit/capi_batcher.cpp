// SPDX-License-Identifier: Apache-2.0
// The C API: dynamic batching of ONNX models and of models of layers. serve_batcher.cpp tests the batcher itself.
#include "capi_testing.h"

#include <thread>
#include <vector>

#include <tenon/functions.h>
#include <tenon/onnx.h>

#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

namespace {

/// y = exp(x) and twice = x + x for any batch, or for the one given.
std::string exported(const TemporaryFolder& folder, std::int64_t batch = 0) {
  const std::string file = folder.file("net.onnx");
  const auto graph_of = [](std::int64_t size) {
    tenon::Graph graph;
    const tenon::Value x = graph.input("x", tenon::DType::f32, {size, 2});
    graph.output("y", tenon::ops::exp(x));
    graph.output("twice", x + x);
    return graph;
  };
  tenon::onnx::export_graph(file, graph_of, [](const std::string& name) -> tenon::Tensor { throw tenon::Error("no parameter " + name); },
                            {.batch = batch});
  return file;
}

struct Net {
  TemporaryFolder folder;
  Owned<TenonContext> context = make_context();
  Owned<TenonOnnx> onnx;
  explicit Net(std::int64_t batch = 0) { REQUIRE_OK(tenon_onnx_load(context, exported(folder, batch).c_str(), nullptr, onnx.out())); }
  Owned<TenonBatcher> batcher(const char* options) const {
    Owned<TenonBatcher> made;
    REQUIRE_OK(tenon_batcher_of_onnx(onnx, options, nullptr, made.out()));
    return made;
  }
};

json described(const TenonBatcher* batcher) {
  char* text = nullptr;
  REQUIRE_OK(tenon_batcher_describe(batcher, &text));
  return parsed(text);
}

TenonRequestOptions request_options() {
  TenonRequestOptions options{};
  options.struct_size = sizeof options;
  return options;
}

}  // namespace

TEST_CASE("C API: requests of several threads run as batches, and each gets its rows in the order of the model's outputs") {
  const NoLeaks none;
  const Net net;
  const Owned<TenonBatcher> batcher = net.batcher("{max_batch: 4, max_delay_us: 100000, batch_sizes: [4], padding: zeros}");
  std::vector<std::vector<float>> twice(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < twice.size(); ++i) {
    threads.emplace_back([&, i] {
      const float x[] = {static_cast<float>(i), 1};
      const std::int64_t shape[] = {1, 2};
      Owned<TenonTensor> input;
      if (tenon_tensor_copy_of(x, TENON_DTYPE_F32, 2, shape, nullptr, input.out()) != nullptr) return;
      const TenonTensor* inputs[] = {input};
      TenonTensor* outputs[2] = {};
      if (tenon_batcher_run(batcher, nullptr, inputs, 1, nullptr, outputs, 2) != nullptr) return;
      const Owned<TenonTensor> y(outputs[0]), doubled(outputs[1]);
      twice[i] = values_of(doubled);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < twice.size(); ++i) CHECK(twice[i] == std::vector<float>{2 * static_cast<float>(i), 2});
  REQUIRE_OK(tenon_batcher_close(batcher));
  const json about = described(batcher);
  CHECK(about["completed"] == 4);
  CHECK(about["samples"] == 4);
  CHECK(about["batch_sizes"] == json({4}));
  CHECK(about["outputs"] == json({"y", "twice"}));
}

TEST_CASE("C API: a request is waited for, has its results more than once, and keeps them after its batcher has ended") {
  const NoLeaks none;
  const Net net;
  Owned<TenonRequest> request;
  {
    const Owned<TenonBatcher> batcher = net.batcher("{max_delay_us: 0}");
    const Owned<TenonTensor> x = make_tensor({0, 1, 2, 3}, {2, 2});
    const TenonTensor* inputs[] = {x};
    const char* names[] = {"x"};
    REQUIRE_OK(tenon_batcher_submit(batcher, names, inputs, 1, nullptr, request.out()));
    std::uint32_t ready = 0;
    REQUIRE_OK(tenon_request_wait(request, -1, &ready));
    CHECK(ready == 1);
    REQUIRE_OK(tenon_request_wait(request, 0, &ready));
    CHECK(ready == 1);
  }
  for (int i = 0; i < 2; ++i) {
    TenonTensor* outputs[2] = {};
    REQUIRE_OK(tenon_request_results(request, outputs, 2));
    const Owned<TenonTensor> y(outputs[0]), twice(outputs[1]);
    CHECK(values_of(twice) == std::vector<float>{0, 2, 4, 6});
    CHECK(values_of(y)[0] == 1);
  }
  TenonTensor* outputs[2] = {};
  CHECK_FAILS_WITH("output_count: expected 2, got 1", tenon_request_results(request, outputs, 1));
}

TEST_CASE("C API: requests end by their timeout, by a cancellation, by the end of their batcher, and not at all in a full queue") {
  const NoLeaks none;
  const Net net;
  const Owned<TenonTensor> x = make_tensor({0, 1}, {1, 2});
  const TenonTensor* inputs[] = {x};
  TenonTensor* outputs[2] = {};
  {
    Owned<TenonBatcher> batcher = net.batcher("{max_delay_us: 600000000, max_queue: 2}");
    Owned<TenonCancellation> cancellation;
    REQUIRE_OK(tenon_cancellation_create(cancellation.out()));
    TenonRequestOptions options = request_options();
    options.cancellation = cancellation;
    REQUIRE_OK(tenon_cancel(cancellation));
    CHECK_FAILS_WITH("CANCELLED: ", tenon_batcher_run(batcher, nullptr, inputs, 1, &options, outputs, 2));
    Owned<TenonRequest> waits;
    REQUIRE_OK(tenon_batcher_submit(batcher, nullptr, inputs, 1, nullptr, waits.out()));
    std::uint32_t ready = 1;
    REQUIRE_OK(tenon_request_wait(waits, 1000, &ready));
    CHECK(ready == 0);
    batcher = {};
    CHECK_FAILS_WITH("CANCELLED: ", tenon_request_results(waits, outputs, 2));
  }
  const Owned<TenonBatcher> batcher = net.batcher("{max_delay_us: 600000000}");
  TenonRequestOptions options = request_options();
  options.flags = 8;
  CHECK_FAILS_WITH("options.flags: expected TENON_REQUEST_DO_NOT_WAIT or 0, got 8",
                   tenon_batcher_run(batcher, nullptr, inputs, 1, &options, outputs, 2));
  REQUIRE_OK(tenon_batcher_close(batcher));
  CHECK_FAILS_WITH("CANCELLED: ", tenon_batcher_run(batcher, nullptr, inputs, 1, nullptr, outputs, 2));
}

TEST_CASE("C API: a batcher of layers predicts what the model does, and has to be built") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_create("layers: [{dense: {units: 3}}]", model.out()));
  REQUIRE_OK(tenon_model_compile(model, context, nullptr));
  TenonBatcher* refused = nullptr;
  CHECK_FAILS_WITH("model: expected one whose parameters exist", tenon_batcher_of_model(model, nullptr, nullptr, &refused));
  const std::int64_t sample = 2;
  REQUIRE_OK(tenon_model_build(model, 1, &sample));
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4}, {2, 2});
  const TenonTensor* inputs[] = {x};
  TenonTensor *expected = nullptr, *got = nullptr;
  REQUIRE_OK(tenon_model_predict(model, nullptr, inputs, 1, 0, 0, nullptr, &expected, 1));
  Owned<TenonBatcher> batcher;
  REQUIRE_OK(tenon_batcher_of_model(model, "{max_delay_us: 0}", nullptr, batcher.out()));
  REQUIRE_OK(tenon_batcher_run(batcher, nullptr, inputs, 1, nullptr, &got, 1));
  const Owned<TenonTensor> of_model(expected), of_batcher(got);
  CHECK(values_of(of_batcher) == values_of(of_model));
}

TEST_CASE("C API: wrong options and inputs of batchers are errors") {
  const NoLeaks none;
  const Net net, fixed(2);
  TenonBatcher* refused = nullptr;
  CHECK_FAILS_WITH("unknown key 'max_delay'; did you mean 'max_delay_us'?",
                   tenon_batcher_of_onnx(net.onnx, "max_delay: 3", nullptr, &refused));
  CHECK_FAILS_WITH("key 'padding': expected", tenon_batcher_of_onnx(net.onnx, "padding: ones", nullptr, &refused));
  CHECK_FAILS_WITH("has a fixed first dimension", tenon_batcher_of_onnx(fixed.onnx, nullptr, nullptr, &refused));
  CHECK_FAILS_WITH("batch_sizes", tenon_batcher_of_onnx(net.onnx, "{max_batch: 4, batch_sizes: [2]}", nullptr, &refused));
  CHECK(refused == nullptr);
  const Owned<TenonBatcher> batcher = net.batcher("{max_batch: 2, max_delay_us: 0}");
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4, 5, 6}, {3, 2}), y = make_tensor({1, 2, 3}, {1, 3});
  const TenonTensor *large[] = {x}, *wrong[] = {y}, *both[] = {x, x};
  const char* twice[] = {"x", "x"};
  TenonTensor* outputs[2] = {};
  CHECK_FAILS_WITH("max_batch", tenon_batcher_run(batcher, nullptr, large, 1, nullptr, outputs, 2));
  CHECK_FAILS_WITH("expected f32(batch,2), got f32(1,3)", tenon_batcher_run(batcher, nullptr, wrong, 1, nullptr, outputs, 2));
  CHECK_FAILS_WITH("names: 'x' is given twice", tenon_batcher_run(batcher, twice, both, 2, nullptr, outputs, 2));
  CHECK(described(batcher)["failed"] == 1);
}
