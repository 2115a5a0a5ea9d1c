// SPDX-License-Identifier: Apache-2.0
// Programs: placement, copies between devices, updates, errors, immediate mode.
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "testing.h"

namespace tenon::test {
namespace {

Config two_virtual_devices() {
  Config config = test_config();
  config.backends.use = {"reference"};
  config.virtual_devices = {{"reference:0", 2, 0}};
  return config;
}

TEST_CASE_FIXTURE(OnReference, "program: results match the graph") {
  Graph graph;
  const Value a = graph.input("a", DType::f32, {3});
  const Value b = graph.input("b", DType::f32, {3});
  graph.output("y", a * b);
  Program program(context, graph);
  CHECK(floats(program.run({Tensor::of<float>({1, 2, 3}, {3}), Tensor::of<float>({4, 5, 6}, {3})})[0]) == std::vector<float>{4, 10, 18});
}

TEST_CASE("program: a split of which nothing reads some parts runs, as their sizes are part of it") {
  for (const char* device : {"reference:0", "openblas:0"}) {
    const Context context(test_config(device));
    Graph graph;
    graph.output("y", ops::split(graph.input("x", DType::f32, {6}), {1, 2, 0, 2, 1}, 0)[3]);
    Program program(context, graph);
    CHECK(floats(program.run({Tensor::of<float>({1, 2, 3, 4, 5, 6}, {6})})[0]) == std::vector<float>{4, 5});
  }
}

TEST_CASE_FIXTURE(OnReference, "program: an input of another shape is rejected by name") {
  Graph graph;
  graph.output("y", ops::relu(graph.input("x", DType::f32, {2, 3})));
  Program program(context, graph);
  CHECK_ERROR("input 'x': expected f32(2,3), got f32(3,2)", program.run({Tensor::zeros(DType::f32, {3, 2})}));
  CHECK_ERROR("program: expected 1 input, got 0", program.run(std::span<const Tensor>{}));
}

TEST_CASE_FIXTURE(OnReference, "program: an input, a parameter and a constant may be outputs") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  const Value p = graph.parameter("p", DType::f32, {2});
  graph.output("x again", x);
  graph.output("p again", p);
  graph.output("c", graph.constant(Tensor::of<float>({7, 8}, {2})));
  graph.output("x a third time", x);
  Program program(context, graph);
  program.parameters()->set("p", Tensor::of<float>({3, 4}, {2}));
  const auto& y = program.run({Tensor::of<float>({1, 2}, {2})});
  CHECK(floats(y[0]) == std::vector<float>{1, 2});
  CHECK(floats(y[1]) == std::vector<float>{3, 4});
  CHECK(floats(y[2]) == std::vector<float>{7, 8});
  CHECK(floats(y[3]) == std::vector<float>{1, 2});
}

TEST_CASE_FIXTURE(OnReference, "program: parameters without a value are named, not read") {
  const auto store = std::make_shared<ParameterStore>();
  Graph graph;
  const Value w = graph.parameter("w", DType::f32, {2}), b = graph.parameter("b", DType::f32, {2}),
              v = graph.parameter("v", DType::f32, {2});
  graph.output("y", w * graph.input("x", DType::f32, {2}) + b);
  graph.update(v, ops::mul(w, 2));
  Program program(context, graph, {.parameters = store});
  const Tensor x = Tensor::of<float>({1, 2}, {2});
  CHECK_ERROR_CONTAINS("expected a value of every parameter that it reads, got none of 'w' f32(2), 'b' f32(2); give it by",
                       program.run({x}));
  store->set("w", x);
  CHECK_ERROR_CONTAINS("got none of 'b' f32(2)", program.run({x}));
  store->set("b", x);
  CHECK(floats(program.run({x})[0]) == std::vector<float>{2, 6});
  CHECK(store->unset().empty());  // the run has written v
}

TEST_CASE_FIXTURE(OnReference, "program: a cast to a complex dtype is refused before it runs") {
  Graph graph;
  graph.output("y", ops::cast(graph.input("x", DType::f32, {2}), DType::c64));
  CHECK_ERROR_CONTAINS("output y is c64, expected a real dtype", Program(context, graph));
}

TEST_CASE_FIXTURE(OnReference, "program: a strided input gives the same result as its dense copy") {
  Graph graph;
  graph.output("y", ops::relu(graph.input("x", DType::f32, {2, 3})));
  Program program(context, graph);
  const Tensor x = Tensor::of<float>({1, -2, 3, 4, 5, -6}, {3, 2}).transpose({1, 0});
  CHECK(floats(program.run({x})[0]) == std::vector<float>{1, 3, 5, 0, 4, 0});
}

TEST_CASE_FIXTURE(OnReference, "program: an update is visible to the next run, and the current run reads the old value") {
  Graph graph;
  const Value p = graph.parameter("p", DType::f32, {2});
  graph.output("before", p);
  graph.update(p, ops::add(p, 1.0));
  Program program(context, graph);
  program.parameters()->set("p", Tensor::of<float>({10, 20}, {2}));
  CHECK(floats(program.run(std::span<const Tensor>{})[0]) == std::vector<float>{10, 20});
  CHECK(floats(program.run(std::span<const Tensor>{})[0]) == std::vector<float>{11, 21});
  CHECK(floats(program.parameters()->get("p")) == std::vector<float>{12, 22});
}

TEST_CASE_FIXTURE(OnReference, "program: parameters may be swapped in one run") {
  Graph graph;
  const Value a = graph.parameter("a", DType::f32, {1});
  const Value b = graph.parameter("b", DType::f32, {1});
  graph.update(a, b);
  graph.update(b, a);
  Program program(context, graph);
  program.parameters()->set("a", Tensor::of<float>({1}, {1}));
  program.parameters()->set("b", Tensor::of<float>({2}, {1}));
  program.run(std::span<const Tensor>{});
  CHECK(floats(program.parameters()->get("a")) == std::vector<float>{2});
  CHECK(floats(program.parameters()->get("b")) == std::vector<float>{1});
}

TEST_CASE_FIXTURE(OnReference, "program: a parameter that is read after its new value is computed has its old value") {
  // y = p + relu(p + x) is read together with p's update to relu(p + x).
  Graph graph;
  const Value x = graph.input("x", DType::f32, {1});
  const Value p = graph.parameter("p", DType::f32, {1});
  const Value fresh = ops::relu(p + x);
  graph.update(p, fresh);
  graph.output("y", p + fresh);
  Program program(context, graph);
  program.parameters()->set("p", Tensor::of<float>({5}, {1}));
  CHECK(floats(program.run({Tensor::of<float>({2}, {1})})[0]) == std::vector<float>{12});
  CHECK(floats(program.parameters()->get("p")) == std::vector<float>{7});
}

TEST_CASE("placement: an op placed on another device runs there, and copies are counted") {
  const Context context(two_virtual_devices());
  Graph graph;
  const Value x = graph.input("x", DType::f32, {4});
  const Value w = graph.parameter("w", DType::f32, {4});
  Value h = x * w;
  {
    const DeviceScope scope(graph, "reference:1");
    h = ops::relu(h + w);
  }
  graph.update(w, h);
  graph.output("y", ops::neg(h));
  Program program(context, graph, {.device = "reference:0", .parameters = nullptr});
  program.parameters()->set("w", Tensor::of<float>({1, 2, 3, 4}, {4}));
  const PlacementReport& report = program.placement();
  CHECK(report.partitions == 3);
  CHECK(report.copies_inserted == 4);  // x * w and w to the device; relu back for neg, and for w at the end
  CHECK(report.bytes_copied_per_run == 4 * 16);
  CHECK(report.moved() == 0);
  CHECK(floats(program.run({Tensor::of<float>({1, 1, -4, 1}, {4})})[0]) == std::vector<float>{-2, -4, -0.0f, -8});
  CHECK(floats(program.parameters()->get("w")) == std::vector<float>{2, 4, 0, 8});
}

TEST_CASE("placement: every split over devices gives the results of one device") {
  const Context context(two_virtual_devices());
  const auto run = [&](unsigned mask) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {3, 4});
    const Value w = graph.parameter("w", DType::f32, {4, 4});
    Value h = x;
    for (unsigned i = 0; i < 5; ++i) {
      const DeviceScope scope(graph, (mask >> i & 1) != 0 ? "reference:1" : "reference:0");
      h = i % 2 == 0 ? ops::matmul(h, w) : ops::tanh(h);
    }
    const Value loss = ops::reduce_mean(h * h);
    graph.output("loss", loss);
    graph.update(w, w - ops::mul(gradients(loss, {w})[0], 0.1));
    Program program(context, graph, {.device = "reference:0", .parameters = nullptr});
    std::vector<float> values;
    for (int i = 0; i < 16; ++i) values.push_back(0.05f * static_cast<float>(i - 7));
    program.parameters()->set("w", Tensor::of(values, {4, 4}));
    values.resize(12);
    const Tensor input = Tensor::of(values, {3, 4});
    std::vector<float> all;
    for (int step = 0; step < 3; ++step) all.push_back(floats(program.run({input})[0])[0]);
    const auto weights = floats(program.parameters()->get("w"));
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  };
  const auto expected = run(0);
  for (unsigned mask = 1; mask < 32; ++mask) CHECK(run(mask) == expected);
}

TEST_CASE("placement: a rule matches node names") {
  Config config = two_virtual_devices();
  config.placement = {{"embed*", "cpu:1"}};
  const Context context(config);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  const Value h = graph.apply(TENON_OP_Relu, {x}, {}, {.name = "embed/relu", .shape = {}})[0];
  graph.output("y", ops::neg(h));
  const Program program(context, graph);
  CHECK(program.placement().nodes[0].device == "reference:1");
  CHECK(program.placement().nodes[0].requested == "reference:1 (cpu:1)");
  CHECK(program.placement().nodes[1].device == "reference:0");
}

TEST_CASE("placement: a missing device is an error, or replaced with soft_placement") {
  Config config = test_config();
  config.backends.use = {"reference"};
  Graph graph;
  {
    const DeviceScope scope(graph, "gpu:0");
    graph.output("y", ops::relu(graph.input("x", DType::f32, {1})));
  }
  const Context strict(config);
  CHECK_ERROR_CONTAINS("node 'relu': device 'gpu:0' not found; available: reference:0 (cpu:0); backends that cannot be used: ",
                       Program(strict, graph));
  CHECK_ERROR("device 'cuda:3' not found; available: reference:0 (cpu:0)", strict.device("cuda:3"));
  config.soft_placement = true;
  const Context soft(config);
  CHECK(Program(soft, graph).placement().nodes[0].device == "reference:0");
}

TEST_CASE("check_numerics: all reports the first value that is not finite") {
  Config config = test_config();
  config.check_numerics = CheckNumerics::all;
  const Context context(config);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  const Value q = graph.apply(TENON_OP_Div, {x, x}, {}, {.name = "quotient", .shape = {}})[0];
  graph.output("y", ops::relu(q));
  Program program(context, graph);
  CHECK(floats(program.run({Tensor::of<float>({2, 4}, {2})})[0]) == std::vector<float>{1, 1});
  CHECK_ERROR_CONTAINS("check_numerics: 'quotient' has", program.run({Tensor::of<float>({2, 0}, {2})}));
}

TEST_CASE_FIXTURE(OnReference, "immediate mode: equal calls share a plan but not results") {
  const Device device = context.default_device();
  const Tensor x = Tensor::of<float>({-1, 2}, {2});
  const Tensor first = context.apply(device, TENON_OP_Relu, {x})[0];
  const Tensor second = context.apply(device, TENON_OP_Relu, {Tensor::of<float>({5, -6}, {2})})[0];
  CHECK(floats(first) == std::vector<float>{0, 2});
  CHECK(floats(second) == std::vector<float>{5, 0});
}

TEST_CASE_FIXTURE(OnReference, "a kernel's error names device, node and op, and the program stays usable") {
  Graph graph;
  const Value scores = graph.input("scores", DType::f32, {2, 3});
  const Value labels = graph.input("labels", DType::i64, {2});
  graph.output("loss", ops::softmax_cross_entropy(scores, labels));
  Program program(context, graph);
  const Tensor s = Tensor::zeros(DType::f32, {2, 3});
  const std::string text = message_of([&] { program.run({s, Tensor::of<std::int64_t>({0, 7}, {2})}); });
  CHECK(contains(text, "device 'reference:0'"));
  CHECK(contains(text, "(SoftmaxCrossEntropyLoss)"));
  CHECK(contains(text, "label 7 at index 1 is out of range [0, 3)"));
  CHECK(floats(program.run({s, Tensor::of<std::int64_t>({0, 2}, {2})})[0])[0] == doctest::Approx(std::log(3.0)));
}

TEST_CASE_FIXTURE(OnReference, "program: several threads get an error or the right result, never another's") {
  Graph graph;
  graph.output("y", ops::exp(graph.input("x", DType::f32, {4096})));
  Program program(context, graph);
  std::atomic<int> right = 0, refused = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<float> values(4096, static_cast<float>(t));
      const Tensor x = Tensor::of(values, {4096});
      std::array<Tensor, 1> y{program.make_output(0)};
      for (int i = 0; i < 100; ++i) {
        try {
          program.run(std::array{x}, y);
          ++(y[0].data<float>()[4095] == y[0].data<float>()[0] && std::abs(y[0].data<float>()[0] - std::exp(values[0])) < 1e-4 ? right
                                                                                                                               : wrong);
        } catch (const Error& error) {
          CHECK(std::string(error.what()) ==
                "program: it is running on another thread, and runs once at a time; use one Program per thread, or a lock");
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(right > 0);
  CHECK(right + refused == 400);
}

TEST_CASE_FIXTURE(OnReference, "program: an output that does not exist and a moved-from program are errors") {
  Graph graph;
  graph.output("y", ops::relu(graph.input("x", DType::f32, {2})));
  Program program(context, graph);
  CHECK_ERROR("program: output 99: expected an index below 1, the number of outputs", (void)program.make_output(99));
  Program other = std::move(program);
  const std::string moved = "program: it was moved from; use the object that it was moved to";
  CHECK_ERROR(moved, program.run({Tensor::zeros(DType::f32, {2})}));
  CHECK_ERROR(moved, (void)program.output_count());
  CHECK_ERROR(moved, (void)program.profile());
  CHECK(other.output_count() == 1);
}

TEST_CASE("two contexts, two threads: no shared state, the same results") {
  const auto work = [](float* out) {
    const Context context(test_config());
    Graph graph;
    const Value x = graph.input("x", DType::f32, {64, 64});
    graph.output("y", ops::reduce_sum(ops::softmax(ops::matmul(x, x))));
    Program program(context, graph);
    Tensor t = Tensor::empty(DType::f32, {64, 64});
    for (std::int64_t i = 0; i < t.count(); ++i) t.data<float>()[i] = static_cast<float>(i % 13) * 0.1f;
    for (int i = 0; i < 20; ++i) *out = floats(program.run({t})[0])[0];
  };
  float a = 0, b = 0;
  std::thread other(work, &a);
  work(&b);
  other.join();
  CHECK(a == b);
  CHECK(a == doctest::Approx(64.0));
}

TEST_CASE("context: a negative number of threads is refused") {
  Config config = test_config();
  config.threads = -1;
  CHECK_ERROR("threads is -1, expected 0 (as many as this process has cores) or more", Context{config});
  config.threads = 0;
  config.thread_spin_us = -1;
  CHECK_ERROR("thread_spin_us is -1, expected 0 or more microseconds", Context{config});
}

TEST_CASE("context: an unknown backend option is an error with a suggestion") {
  Config config = test_config("openblas:0");
  config.backends.options["openblas"]["thread"] = "1";
  CHECK_ERROR_CONTAINS("backends.options.openblas: unknown option 'thread'; did you mean 'threads'?", Context c(config));
  config.backends.options["openblas"] = {{"threads", "many"}};
  CHECK_ERROR_CONTAINS("backends.options.openblas.threads: expected an integer in [0, 1024], got 'many'", Context c(config));
}

}  // namespace
}  // namespace tenon::test
