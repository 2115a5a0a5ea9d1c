// SPDX-License-Identifier: Apache-2.0
// Compiled functions: a program for each combination of input types, and what is kept of them.
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/compiled_function.h>

#include "testing.h"

namespace tenon::test {
namespace {

/// 2x + y, whatever the shapes.
Graph double_and_add(std::span<const TensorType> types) {
  Graph graph;
  const Value x = graph.input("x", types[0].dtype, types[0].shape), y = graph.input("y", types[1].dtype, types[1].shape);
  graph.output("z", x + x + y);
  return graph;
}

Tensor row(std::int64_t n, double value = 1) {
  return Tensor::full(DType::f32, {n}, value);
}

/// Calls f for a row of that many elements.
void call(CompiledFunction& f, std::int64_t n) {
  REQUIRE(f.run({row(n), row(n)})[0].shape() == Shape{n});
}

TEST_CASE_FIXTURE(OnOpenblas, "compiled function: each combination of types is compiled once, with the results of immediate ops") {
  CompiledFunction f(context, double_and_add);
  const Device device = context.default_device();
  for (int again = 0; again < 2; ++again) {
    for (const Shape& shape : {Shape{3}, Shape{2, 3}, Shape{1, 3}, Shape{0, 3}, Shape{}}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Tensor x = Tensor::full(dtype, shape, 1.5), y = Tensor::full(dtype, shape, 0.25);
        const Tensor twice = context.apply(device, TENON_OP_Add, {x, x})[0];
        const Tensor expected = context.apply(device, TENON_OP_Add, {twice, y})[0].to_host();
        const Tensor got = f.run({x, y})[0].to_host();
        CHECK(got.str() == expected.str());
        for (std::int64_t i = 0; i < got.count(); ++i) {
          if (dtype == DType::f32) CHECK(got.data<float>()[i] == expected.data<float>()[i]);
          if (dtype == DType::f64) CHECK(got.data<double>()[i] == expected.data<double>()[i]);
        }
      }
    }
  }
  CHECK(f.counts().misses == 10);
  CHECK(f.counts().hits == 10);
  CHECK(f.counts().programs == 10);
  CHECK(f.counts().evictions == 0);
}

TEST_CASE_FIXTURE(OnReference, "compiled function: the least recently used program is evicted, by number") {
  CompiledFunction f(context, double_and_add, {}, {.programs = 2});
  for (const std::int64_t n : {1, 2, 1, 3}) call(f, n);  // 3 takes the place of 2
  CHECK(f.counts().misses == 3);
  CHECK(f.counts().evictions == 1);
  call(f, 1);
  CHECK(f.counts().hits == 2);
  call(f, 2);
  CHECK(f.counts().misses == 4);
  CHECK(f.counts().programs == 2);
}

TEST_CASE_FIXTURE(OnReference, "compiled function: memory bounds what is kept, and the program that runs stays") {
  CompiledFunction all(context, double_and_add);
  call(all, 1000);
  const std::uint64_t size = all.counts().size_bytes;
  CHECK(size >= 4000);  // the result alone
  const std::uint64_t live = context.default_device().live_size_bytes();
  CompiledFunction f(context, double_and_add, {}, {.programs = 100, .size_bytes = 2 * size});
  for (const std::int64_t n : {1000, 999, 998}) call(f, n);
  CHECK(f.counts().programs == 2);
  CHECK(f.counts().size_bytes <= 2 * size);
  call(f, 100000);
  CHECK(f.counts().programs == 1);
  CHECK(f.counts().evictions == 3);
  CHECK(context.default_device().live_size_bytes() - live == f.counts().size_bytes);  // evicted programs free their memory
}

TEST_CASE_FIXTURE(OnOpenblas, "compiled function: its programs share parameters, which a call may update") {
  CompiledFunction count(context, [](std::span<const TensorType> types) {
    Graph graph;
    const Value x = graph.input("x", types[0].dtype, types[0].shape), sum = graph.parameter("sum", DType::f32, {});
    graph.update(sum, sum + ops::reduce_sum(x));
    graph.output("before", sum);
    return graph;
  });
  const TensorType type{DType::f32, {2}};
  CHECK(count.program({&type, 1}).input_count() == 1);  // compiles, and makes the parameter
  count.parameters()->set("sum", Tensor::full(DType::f32, {}, 10));
  count.run({row(2)});
  count.run({row(5)});
  CHECK(count.parameters()->get("sum").to_host().item() == 17);
  CHECK(count.counts().size_bytes > 0);
  CHECK(count.counts().hits == 1);
}

TEST_CASE_FIXTURE(OnReference, "compiled function: errors name what is wrong, and keep nothing") {
  CHECK_ERROR("compiled function: expected a function that makes a graph, got none", CompiledFunction(context, nullptr));
  CHECK_ERROR("compiled function: limits.programs is 0, expected at least 1, the program that runs",
              CompiledFunction(context, double_and_add, {}, {.programs = 0}));
  CompiledFunction f(context, double_and_add);
  CHECK_ERROR("compiled function: input 1: expected a tensor, got an undefined one", f.run({row(1), Tensor()}));
  CHECK_ERROR_CONTAINS("program: expected 2 inputs, got 3", f.run({row(1), row(1), row(1)}));
  CHECK_ERROR_CONTAINS("a f32(2), b f32(3)", f.run({row(2), row(3)}));
  CHECK(f.counts().programs == 1);  // that of three inputs, whose graph has two
  call(f, 1);

  CompiledFunction* self = nullptr;
  CompiledFunction nested(context, [&](std::span<const TensorType> types) {
    self->run({row(1)});
    return double_and_add(types);
  });
  self = &nested;
  CHECK_ERROR_CONTAINS("compiled function: it is running", nested.run({row(1), row(1)}));

  CompiledFunction moved = std::move(f);
  call(moved, 1);
  CHECK_ERROR("compiled function: it was moved from; use the object that it was moved to", f.counts());  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace tenon::test
