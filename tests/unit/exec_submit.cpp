// SPDX-License-Identifier: Apache-2.0
// Program::submit: runs that are not waited for.
#include <tenon/stream.h>

#include "reel_device.h"

namespace tenon::test {
namespace {

/// loss = the mean cross entropy of scores (2, 3) and labels.
Graph labelled() {
  Graph graph;
  const Value scores = graph.input("scores", DType::f32, {2, 3}), labels = graph.input("labels", DType::i64, {2});
  const NameScope name(graph, "head");
  graph.output("loss", ops::softmax_cross_entropy(ops::tanh(scores), labels));
  return graph;
}

/// Lets the work of the stream begin only after open().
struct Gate {
  Gate() {
    Reel::before_execution = [this] {
      std::unique_lock lock(mutex);
      opened.wait(lock, [this] { return is_open; });
    };
  }
  ~Gate() { open(); }
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    opened.notify_all();
  }
  std::mutex mutex;
  std::condition_variable opened;
  bool is_open = false;
};

struct Submitting : OnReel {
  Device device = context.default_device();
  Stream stream = Stream::of_programs(device);
  Event end{device, {.timed = false}};
  Tensor scores = Tensor::zeros(DType::f32, {2, 3}).to(device);
  Tensor labels(std::int64_t second) const { return Tensor::of<std::int64_t>({0, second}, {2}).to(device); }
};
constexpr double expected = 1.0986122886681098;  // log 3

}  // namespace

TEST_CASE_FIXTURE(Submitting, "submit: it returns before the run has begun, and the event after it tells when the results are there") {
  Program program(context, labelled());
  Tensor loss = program.make_output(0);
  const Tensor last = labels(2);
  Gate gate;
  CHECK(program.submit(std::vector{scores, last}, {&loss, 1}));
  end.record(stream);
  CHECK_FALSE(end.done());
  gate.open();
  program.wait_for(end);
  CHECK(end.done());
  CHECK(loss.item() == doctest::Approx(expected));
}

TEST_CASE("submit: runs follow each other, replayed ones too, each with the results of its own") {
  for (const Capture capture : {Capture::off, Capture::automatic}) {
    Config config = test_config();
    config.capture = capture;
    const Context own = with_reel(config);
    const Device on = own.default_device();
    Graph graph;
    graph.output("y", ops::exp(ops::tanh(graph.input("x", DType::f32, {64}))));
    ProgramOptions options;
    Program program(own, graph, options);
    std::vector<Tensor> xs, ys;
    for (int i = 0; i < 4; ++i) {
      xs.push_back(Tensor::full(DType::f32, {64}, i).to(on));
      ys.push_back(program.make_output(0));
    }
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 4; ++i) CHECK(program.submit({&xs[static_cast<std::size_t>(i)], 1}, {&ys[static_cast<std::size_t>(i)], 1}));
    }
    Event last(on);
    last.record(Stream::of_programs(on));
    program.wait_for(last);
    for (int i = 0; i < 4; ++i)
      CHECK(floats(ys[static_cast<std::size_t>(i)].to_host())[63] == doctest::Approx(std::exp(std::tanh(static_cast<double>(i)))));
  }
}

TEST_CASE_FIXTURE(Submitting, "submit: a failure on the device names the node when it is waited for, and the program stays usable") {
  Program program(context, labelled());
  Tensor loss = program.make_output(0);
  const Tensor wrong = labels(7), right = labels(2);
  CHECK(program.submit(std::vector{scores, wrong}, {&loss, 1}));
  end.record(stream);
  const std::string text = message_of([&] { program.wait_for(end); });
  CHECK_MESSAGE(contains(text, "device 'reel:0', node 'head/softmax_cross_entropy' (SoftmaxCrossEntropyLoss): "), text);
  CHECK_MESSAGE(contains(text, "label 7 at index 1"), text);
  CHECK(program.submit(std::vector{scores, right}, {&loss, 1}));
  end.record(stream);
  program.wait_for(end);
  CHECK(loss.item() == doctest::Approx(expected));
}

TEST_CASE_FIXTURE(Submitting, "submit: runs with inputs from the host, on CPUs, and under a trace have ended") {
  Program program(context, labelled());
  Tensor loss = program.make_output(0);
  const auto ended = [&] { return Reel::executed.load(); };
  int before = ended();
  CHECK_FALSE(program.submit(std::vector{Tensor::zeros(DType::f32, {2, 3}), labels(2)}, {&loss, 1}));
  CHECK(ended() == before + 1);
  {
    const Trace trace(context);
    const Tensor last = labels(2);
    before = ended();
    CHECK_FALSE(program.submit(std::vector{scores, last}, {&loss, 1}));
    CHECK(ended() == before + 1);
  }
  program.enable_profile(true);
  CHECK_FALSE(program.submit(std::vector{scores, labels(2)}, {&loss, 1}));
  program.enable_profile(false);
  CHECK(program.submit(std::vector{scores, labels(2)}, {&loss, 1}));
  end.record(stream);
  program.wait_for(end);

  const Context host(test_config("reference:0"));
  Program on_host(host, labelled());
  Tensor here = on_host.make_output(0);
  CHECK_FALSE(on_host.submit(std::vector{Tensor::zeros(DType::f32, {2, 3}), Tensor::of<std::int64_t>({0, 2}, {2})}, {&here, 1}));
  CHECK(here.item() == doctest::Approx(expected));
}

TEST_CASE_FIXTURE(Submitting, "submit: a program that is destroyed waits for its run") {
  Tensor loss;
  const Tensor last = labels(2);
  int before = 0;
  {
    Program program(context, labelled());
    loss = program.make_output(0);
    before = Reel::executed;
    Reel::before_execution = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    CHECK(program.submit(std::vector{scores, last}, {&loss, 1}));
  }
  CHECK(Reel::executed == before + 1);
  Reel::before_execution = nullptr;
  CHECK(loss.item() == doctest::Approx(expected));
}

TEST_CASE_FIXTURE(Submitting, "submit: a run that is cancelled has not begun, and outputs are checked as those of a run are") {
  Program program(context, labelled());
  Tensor loss = program.make_output(0), other = device.empty(DType::f32, {2});
  std::stop_source stop;
  stop.request_stop();
  const Tensor last = labels(2);
  CHECK_ERROR_CONTAINS("the run was cancelled", program.submit(std::vector{scores, last}, {&loss, 1}, {.stop = stop.get_token()}));
  CHECK_ERROR_CONTAINS("output 'loss': expected a dense f32", program.submit(std::vector{scores, last}, {&other, 1}));
  CHECK_ERROR_CONTAINS("expected 1 output, got 0", program.submit(std::vector{scores, last}, {}));
}

}  // namespace tenon::test
