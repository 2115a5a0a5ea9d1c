// SPDX-License-Identifier: Apache-2.0
// Errors on a GPU: detected late, reported by name, and the process continues.
#include <string>
#include <thread>
#include <vector>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::contains;
using test::floats;
using test::gpu_config;
using test::message_of;

Graph picked() {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {5});
  const Value i = graph.input("i", DType::i64, {3});
  graph.output("y", ops::neg(ops::gather(ops::exp(x), i)));
  return graph;
}

TEST_CASE("gpu: an index out of range is reported with node, index and position, is not read, and the program runs again") {
  const Context context(gpu_config());
  Program program(context, picked(), {.device = "cuda:0"});
  const Tensor x = Tensor::of<float>({0, 0, 0, 0, 0}, {5});
  const std::string text = message_of([&] { program.run(std::vector<Tensor>{x, Tensor::of<std::int64_t>({1, 7, 0}, {3})}); });
  CHECK_MESSAGE(contains(text, "gather: index 7 at position 1 is out of range [-5, 5)"), text);
  CHECK_MESSAGE(contains(text, "(Gather)"), text);
  CHECK(floats(program.run(std::vector<Tensor>{x, Tensor::of<std::int64_t>({1, -1, 0}, {3})})[0]) == std::vector<float>{-1, -1, -1});
}

TEST_CASE("gpu: of two threads that wait for a device, one gets its fault, once, from executed and replayed runs") {
  const Context context(gpu_config());
  Program failing(context, picked(), {.device = "cuda:0"}), other(context, picked(), {.device = "cuda:0"});
  const std::vector<Tensor> good{Tensor::of<float>({0, 0, 0, 0, 0}, {5}), Tensor::of<std::int64_t>({1, -1, 0}, {3})};
  const std::vector<Tensor> bad{good[0], Tensor::of<std::int64_t>({1, 7, 0}, {3})};
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    std::string of_other;
    std::thread thread([&] { of_other = message_of([&] { other.run(good); }); });
    const std::string own = message_of([&] { failing.run(bad); });
    thread.join();
    CHECK((own == "no error") != (of_other == "no error"));
    CHECK_MESSAGE(contains(own + of_other, "gather: index 7 at position 1 is out of range [-5, 5)"), own, "; ", of_other);
  }
  for (Program* program : {&failing, &other}) CHECK(floats(program->run(good)[0]) == std::vector<float>{-1, -1, -1});
}

TEST_CASE("gpu: an integer divided by zero is an error") {
  const Context context(gpu_config());
  Graph graph;
  const Value dividend = graph.input("a", DType::i32, {2});
  graph.output("y", dividend / graph.input("b", DType::i32, {2}));
  Program program(context, graph, {.device = "cuda:0"});
  const Tensor a = Tensor::of<std::int32_t>({6, 7}, {2});
  const std::string text = message_of([&] { program.run(std::vector<Tensor>{a, Tensor::of<std::int32_t>({2, 0}, {2})}); });
  CHECK_MESSAGE(contains(text, "div: an integer divided by zero"), text);
}

TEST_CASE("gpu: an allocation beyond the memory reports requested, free and peak bytes; the device stays usable") {
  const Context context(gpu_config());
  const Device device = context.device("cuda:0");
  const Tensor kept = device.empty(DType::f32, {1000});
  const std::string text = message_of([&] { static_cast<void>(device.empty(DType::f32, {std::int64_t{1} << 44})); });
  CHECK_MESSAGE(contains(text, "70368744177664 bytes"), text);
  CHECK_MESSAGE(contains(text, "free"), text);
  CHECK_MESSAGE(contains(text, "peak"), text);
  CHECK(device.empty(DType::f32, {1000}).defined());
}

}  // namespace
}  // namespace tenon
