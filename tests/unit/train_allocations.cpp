// SPDX-License-Identifier: Apache-2.0
// After the second step a training run allocates nothing, counted in malloc and in the host table.
#include <cstdlib>

#include "exec/host_services.h"
#include "malloc_counter.h"
#include "onnx_testing.h"
#include "temporary_folder.h"
#include "testing.h"

#ifndef TENON_MALLOC_IS_TAKEN
namespace tenon::test {
namespace {

/// Counts allocations between the end of the second batch and the end of the last but one.
struct Watch final : Callback {
  long at_second = -1, at_end = -1;
  std::uint64_t host_at_second = 0, host_at_end = 0;
  std::int64_t batches = 0;
  void train_begin(std::int64_t, std::int64_t count) override { batches = count; }
  void batch_end(std::int64_t batch, const Logs&, const BatchResult&) override {
    if (batch == 1) {
      at_second = allocations.load();
      host_at_second = exec::HostServices::allocation_count();
    }
    if (batch == batches - 2) {  // the last one is smaller: another program
      at_end = allocations.load();
      host_at_end = exec::HostServices::allocation_count();
    }
  }
};

TEST_CASE("training: no memory is allocated after the second step") {
  for (const std::string device : {"openblas:0", "reference:0"}) {
    for (const int workers : {0, 1}) {
      const Context context(test_config(device));
      Model model({layers::Flatten{}, layers::Dense{30, Activation::relu}, layers::Dropout{0.1}, layers::Dense{10, Activation::softmax}});
      model.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}, .metrics = {Metric::accuracy}});
      GeneratedOptions digits{.count = 1000};
      Watch watch;
      model.fit(generate_digits(digits), {.workers = workers, .callbacks = {&watch}});
      CAPTURE(device);
      CAPTURE(workers);
      REQUIRE(watch.at_second >= 0);
      REQUIRE(watch.at_end >= 0);
      CHECK(watch.at_end - watch.at_second == 0);
      CHECK(watch.host_at_end - watch.host_at_second == 0);
    }
  }
}

TEST_CASE("training: no memory is allocated after the second step of several inputs and losses") {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "net.onnx", onnx::serialize(test::model(onnx_graph({node("MatMul", {"a", "w"}, {"left"}), node("MatMul", {"b", "v"}, {"right"}),
                                                          node("Add", {"left", "right"}, {"sum"}), node("Tanh", {"sum"}, {"out"})},
                                                         {f32("a", {-1, 3}), f32("b", {-1, 2})}, {f32("sum", {-1, 2}), f32("out", {-1, 2})},
                                                         {floats("w", {1, 2, 3, 4, 5, 6}, {3, 2}), floats("v", {1, 2, 3, 4}, {2, 2})}))));
  const Tensor y = Tensor::zeros(DType::f32, {1000, 2});
  const auto data = std::make_shared<ArrayDataset>(
      std::vector<NamedTensor>{{"b", Tensor::full(DType::f32, {1000, 2}, 0.1)}, {"a", Tensor::full(DType::f32, {1000, 3}, 0.1)}},
      std::vector<NamedTensor>{{"out", y}, {"sum", y}});
  for (const int workers : {0, 1}) {
    const Context context(test_config("openblas:0"));
    Model model({layers::Onnx{.file = file}});
    model.compile(context, {.losses = {{.output = "sum", .metrics = {Metric::mae}}, {.output = "out", .weight = 0.5}}});
    Watch watch;
    model.fit(data, {.workers = workers, .callbacks = {&watch}});
    CAPTURE(workers);
    REQUIRE(watch.at_second >= 0);
    CHECK(watch.at_end - watch.at_second == 0);
    CHECK(watch.host_at_end - watch.host_at_second == 0);
  }
}

TEST_CASE("the allocation counters work") {
  const long before = allocations.load();
  std::vector<int> list(1000);
  list[0] = 1;
  CHECK(allocations.load() == before + 1);
}

}  // namespace
}  // namespace tenon::test
#endif
