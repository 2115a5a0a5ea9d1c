// SPDX-License-Identifier: Apache-2.0
// Runs with options: cancelled ones stop at the next kernel and leave parameters as the last complete step did; threads are limited.
#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "extra_device.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A second backend of the reference library whose host answers slowly when it is asked between kernels, so that each kernel takes longer.
struct Slow {
  static inline const tenon_backend_info* real = nullptr;
  static inline const tenon_host* host = nullptr;
  static inline int kernels = 0;                              ///< since reset()
  static inline std::function<void(int)> before_kernel = {};  ///< called with the number of the kernel

  static void reset(std::function<void(int)> hook = {}) { kernels = 0, before_kernel = std::move(hook); }
  static void add_to(const Context& context) {
    exec::ContextState& state = *context.state();
    exec::DeviceEntry entry = state.entries[state.find(parse_device_name("reference:0"))];
    real = &entry.loaded->backend->info();
    host = entry.loaded->services->table();
    reset();
    add_device(context, "slow", query, entry);
  }

 private:
  static tenon_status query(const tenon_host_info*, tenon_backend_info* out_info) {
    const std::uint32_t size = out_info->struct_size;
    *out_info = *real;
    out_info->struct_size = size;
    out_info->name = "slow";
    out_info->create = [](const tenon_host* services, tenon_backend** out_backend, const tenon_backend_table** out_table,
                          tenon_error* error) {
      static tenon_host asking;
      asking = *services;
      asking.cancel_requested = [](tenon_host_context* services_context, const tenon_run* run) {
        ++kernels;
        if (before_kernel) before_kernel(kernels);
        return host->cancel_requested(services_context, run);
      };
      return real->create(&asking, out_backend, out_table, error);
    };
    return TENON_OK;
  }
};

Context with_slow(Config config) {
  config.deterministic = true;
  config.fusion = Fusion::off;
  Context context(config);
  Slow::add_to(context);
  context.state()->config.device = "slow:0";
  return context;
}

/// Requests a stop on another thread before the kernel of that number.
std::function<void(int)> stop_at(std::stop_source& source, int number) {
  return [&source, number](int kernel) {
    if (kernel == number) std::thread([&] { source.request_stop(); }).join();
  };
}

Status status_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.status();
  }
  return Status::ok;
}

TEST_CASE("cancel: a long run stops at the next kernel, and the program runs again") {
  const Context context = with_slow(test_config());
  Graph graph;
  Value y = graph.input("x", DType::f32, {4});
  for (int i = 0; i < 40; ++i) y = ops::tanh(y);
  graph.output("y", y);
  Program program(context, graph);
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {4});
  std::stop_source source;
  Clock::time_point requested;
  Slow::reset([&](int kernel) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (kernel != 10) return;
    std::thread([&] { source.request_stop(); }).join();
    requested = Clock::now();
  });
  const std::string text = message_of([&] { program.run({x}, {.stop = source.get_token()}); });
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - requested);
  MESSAGE("the run ended ", waited.count(), " us after the request");  // not judged: the machine may be busy
  CHECK(Slow::kernels == 10);
  CHECK(contains(text, "the run was cancelled at device 'slow:0', node '"));
  CHECK(contains(text, "parameters are as before the run, its results are undefined"));
  CHECK(status_of([&] { program.run({x}, {.stop = source.get_token()}); }) == Status::cancelled);  // before its first kernel
  CHECK(Slow::kernels == 10);
  Slow::reset();
  CHECK(floats(program.run({x})[0]) == floats(Program(context, graph, {.device = "reference:0"}).run({x})[0]));
  CHECK(Slow::kernels == 0);  // nobody can stop it, so nobody asks
}

TEST_CASE("cancel: a program may be cancelled while it is compiled") {
  const Context context = with_slow(test_config());
  Graph graph;
  graph.output("y", ops::neg(ops::neg(graph.input("x", DType::f32, {4}))));
  std::stop_source source;
  Slow::reset(stop_at(source, 2));
  const auto compile = [&] { Program(context, graph, {.optimize = false, .run = {.stop = source.get_token()}}); };
  CHECK_ERROR_CONTAINS("plan_create: cancelled before Neg", compile());
  CHECK(status_of(compile) == Status::cancelled);
}

TEST_CASE("cancel: updates come last if they are requested to, also those of an op that computes more") {
  const Context context = with_slow(test_config());
  Graph graph;
  const Value x = graph.input("x", DType::f32, {4, 3});
  const Value scale = graph.parameter("scale", DType::f32, {3}), mean = graph.parameter("mean", DType::f32, {3});
  // The sum is read by the result and becomes a parameter.
  const Value sum = ops::reduce_sum(x * scale, {0}) + mean;
  graph.update(mean, sum);
  graph.output("y", ops::neg(ops::neg(ops::neg(x + sum))));
  std::stop_source source;
  const auto questions = [&](bool updates_last) {
    Program program(context, graph, {.updates_last = updates_last});
    program.parameters()->set("scale", Tensor::full(DType::f32, {3}, 1));
    program.parameters()->set("mean", Tensor::full(DType::f32, {3}, 2));
    const Tensor ones = Tensor::full(DType::f32, {4, 3}, 1);
    Slow::reset();
    CHECK(floats(program.run({ones}, {.stop = source.get_token()})[0])[0] == -7);
    CHECK(floats(program.parameters()->get("mean")) == std::vector<float>(3, 6));
    return Slow::kernels;
  };
  const int early = questions(false), late = questions(true);
  CHECK(early < late);
  CHECK(early == 3);  // before x * scale, its sum, and the update
}

std::vector<LayerDefinition> net() {
  return {layers::Flatten{}, layers::Dense{6}, layers::BatchNorm{}, layers::Activation{Activation::relu},
          layers::Dense{10, Activation::softmax}};
}

TEST_CASE("cancel: a training step leaves the model as the last complete step did, wherever it is stopped") {
  const Context context = with_slow(deterministic("reference:0"));
  Model model = compiled(context, net()), straight = compiled(context, net());
  Batches batches(digits(8), {.batch_size = 8, .shuffle = false, .workers = 0});
  batches.start(0);
  const Batch& batch = *batches.next();
  std::stop_source never;
  const auto step = [&](Model& m, const std::stop_source& source) {
    m.train_batch(batch.x(), batch.y(), {}, {.stop = source.get_token()});
  };
  Slow::reset();
  step(model, never);
  Slow::reset();
  step(model, never);
  const int kernels = Slow::kernels;  // up to the first update
  CHECK(kernels > 10);
  int steps = 2;
  for (int number = 1; number <= kernels + 1; number += kernels / 5) {
    CAPTURE(number);
    const auto before = weights(model);
    std::stop_source source;
    Slow::reset(stop_at(source, number));
    const Status status = status_of([&] { step(model, source); });
    CHECK(status == (number <= kernels ? Status::cancelled : Status::ok));
    if (status == Status::cancelled) {
      CHECK(weights(model) == before);
      CHECK(model.step() == steps);
      Slow::reset();
      step(model, never);
    }
    CHECK(model.step() == ++steps);
  }
  Slow::reset();
  for (int i = 0; i < steps; ++i) step(straight, never);
  CHECK(weights(model) == weights(straight));
  CHECK(status_of([&] {
          std::stop_source source;
          source.request_stop();
          model.predict(batch.x(), 8, {.stop = source.get_token()});
        }) == Status::cancelled);
}

TEST_CASE("cancel: a fit that is stopped within a step goes on to the same result") {
  const Context context = with_slow(deterministic("reference:0"));
  for (const std::int64_t accumulate : {1, 2}) {
    FitOptions options{.batch_size = 8, .epochs = 2, .accumulate = accumulate};
    Model straight = compiled(context, net()), stopped = compiled(context, net());
    std::stop_source never;
    options.run.stop = never.get_token();
    Slow::reset();
    const History whole = straight.fit(digits(32), options);
    const int kernels = Slow::kernels;  // those of plans that are compiled, at the beginning, count too
    std::stop_source source;
    options.run.stop = source.get_token();
    Slow::reset(stop_at(source, kernels * 3 / 4));
    const History begun = stopped.fit(digits(32), options);
    CHECK(stopped.fit_end() == FitEnd::interrupted);
    CHECK(stopped.step() > 0);
    CHECK(stopped.step() < 8 / accumulate);
    options.run = {};
    Slow::reset();
    const History rest = stopped.fit(digits(32), options);
    CHECK(weights(stopped) == weights(straight));
    REQUIRE(begun.size() + rest.size() == 2);
    CHECK(rest.back().logs == whole[1].logs);
  }
}

TEST_CASE("run: fewer threads than plans were made for give the same bits, and memory that was planned for more") {
  Config config = deterministic();
  config.threads = 4;
  const Context context(config);
  const std::vector<LayerDefinition> layers{layers::Reshape{{1, 28, 28}}, layers::Conv2D{.filters = 4, .kernel_size = {3, 3}},
                                            layers::Flatten{}, layers::Dense{10, Activation::softmax}};
  Model all = compiled(context, layers), one = compiled(context, layers);
  FitOptions options{.batch_size = 16};
  all.fit(digits(64), options);
  options.run.threads = 1;
  one.fit(digits(64), options);
  CHECK(weights(one) == weights(all));
}

}  // namespace
}  // namespace tenon::test
