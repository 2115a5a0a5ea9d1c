// SPDX-License-Identifier: Apache-2.0
// Sums over ranks: the communicators of one process, and programs that sum between their plans.
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "exec/local_group.h"
#include "testing.h"

namespace tenon::test {
namespace {

using Ranks = std::vector<std::shared_ptr<Communicator>>;

/// Runs body(rank) on a thread for each rank; the messages of their errors.
std::vector<std::string> on_ranks(int size, const std::function<void(int rank)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { errors[static_cast<std::size_t>(rank)] = message_of([&] { body(rank); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) CHECK(error == "no error");
}

/// Element i of a rank: different on each, and such that the order of sums matters.
float element(int rank, std::int64_t i) {
  return static_cast<float>(rank + 1) * 1e6f / static_cast<float>(i % 977 + 1) - static_cast<float>(i % 13);
}

TEST_CASE("collectives: sums are those of the ranks in their order, the same bits on every rank") {
  for (const int size : {1, 2, 3, 4}) {
    for (const std::int64_t count : {0, 1, 7, 64, 1000, 100003}) {
      CAPTURE(size);
      CAPTURE(count);
      const Ranks ranks = local_communicators(size);
      std::vector<std::vector<float>> data(static_cast<std::size_t>(size));
      expect_no_errors(on_ranks(size, [&](int r) {
        std::vector<float>& own = data[static_cast<std::size_t>(r)];
        for (std::int64_t i = 0; i < count; ++i) own.push_back(element(r, i));
        Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
        communicator.wait(communicator.begin_all_reduce(own.data(), count, DType::f32));
      }));
      for (std::int64_t i = 0; i < count; ++i) {
        float sum = element(0, i);
        for (int r = 1; r < size; ++r) sum += element(r, i);
        for (const std::vector<float>& own : data) REQUIRE(own[static_cast<std::size_t>(i)] == sum);
      }
    }
  }
}

TEST_CASE("collectives: every dtype with sums, and none without") {
  const auto sum_of = [](DType dtype, double a, double b) {
    const Ranks ranks = local_communicators(2);
    std::vector<double> results(2);
    expect_no_errors(on_ranks(2, [&](int r) {
      Tensor t = Tensor::full(dtype, {5}, r == 0 ? a : b);
      Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
      communicator.wait(communicator.begin_all_reduce(t.raw(), 5, dtype));
      results[static_cast<std::size_t>(r)] = t.narrow(0, 4, 1).to_host().reshape({}).item();
    }));
    CHECK(results[0] == results[1]);
    return results[0];
  };
  CHECK(sum_of(DType::f32, 1.5, 2.25) == 3.75);
  CHECK(sum_of(DType::f64, 1e16, 1) == 1e16 + 1);
  CHECK(sum_of(DType::f16, 1024, 0.5) == 1024);  // rounded to even
  CHECK(sum_of(DType::bf16, 256, 3) == 260);
  CHECK(sum_of(DType::i32, 2000000000, 1) == 2000000001);
  CHECK(sum_of(DType::i64, 4e15, 1) == 4000000000000001);
  const Ranks one = local_communicators(1);
  std::uint8_t byte = 0;
  CHECK_ERROR_CONTAINS("expected f16, bf16, f32, f64, i32 or i64, got u8", one[0]->begin_all_reduce(&byte, 1, DType::u8));
  CHECK_ERROR_CONTAINS("expected at least 1, got 0", local_communicators(0));
  CHECK_ERROR_CONTAINS("collective 0 has not begun", one[0]->wait(0));
}

TEST_CASE("collectives: several are under way at a time, for 2000 rounds") {
  const Ranks ranks = local_communicators(3);
  expect_no_errors(on_ranks(3, [&](int r) {
    Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
    std::vector<std::int64_t> a(10), b(100);
    for (int round = 0; round < 2000; ++round) {
      std::ranges::fill(a, round + r);
      std::ranges::fill(b, round * r);
      const std::uint64_t first = communicator.begin_all_reduce(a.data(), 10, DType::i64);
      const std::uint64_t second = communicator.begin_all_reduce(b.data(), 100, DType::i64);
      communicator.wait(first);
      if (a[9] != 3 * round + 3) throw Error(fmt::format("round {}: got {}", round, a[9]));
      communicator.wait(second);
      if (b[99] != 3 * round) throw Error(fmt::format("round {}: got {}", round, b[99]));
    }
    CHECK(communicator.counts().collectives == 4000);
    CHECK(communicator.counts().size_bytes == 2000 * 8 * 110);
  }));
}

TEST_CASE("collectives: a rank that ends the group ends it for those that wait, with its reason") {
  const Ranks ranks = local_communicators(3);
  const std::vector<std::string> errors = on_ranks(3, [&](int r) {
    Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
    if (r == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return communicator.abort("out of paper");
    }
    float x = 1;
    communicator.wait(communicator.begin_all_reduce(&x, 1, DType::f32));
  });
  CHECK(errors[0] == "collective: rank 1 ended the group: out of paper");
  CHECK(errors[1] == "no error");
  CHECK(errors[2] == errors[0]);
  float x = 1;
  CHECK_ERROR_CONTAINS("out of paper", ranks[1]->begin_all_reduce(&x, 1, DType::f32));
}

TEST_CASE("collectives: ranks that disagree are told both sides") {
  const Ranks ranks = local_communicators(2);
  const std::vector<std::string> errors = on_ranks(2, [&](int r) {
    Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
    std::vector<float> x(4, 1.0f);
    communicator.wait(communicator.begin_all_reduce(x.data(), r == 0 ? 4 : 3, DType::f32));
  });
  for (const std::string& error : errors) {
    CHECK_MESSAGE(contains(error, "rank 0 has 4"), error);
    CHECK_MESSAGE(contains(error, "rank 1 has 3"), error);
    CHECK_MESSAGE(contains(error, "expected the same of all ranks"), error);
  }
}

TEST_CASE("collectives: over a link a sum takes as long as the ring, and work meanwhile hides it") {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t count = 1 << 16;
  const LinkOptions link{.bandwidth_bytes_per_s = count * 4 / 0.040, .latency_s = 0.001};  // 2 steps of 20 ms and 1 ms
  for (const int busy_ms : {60, 0}) {
    const Ranks ranks = local_communicators(2, link);
    std::atomic<int> begun{0};
    expect_no_errors(on_ranks(2, [&](int r) {
      Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
      std::vector<float> x(count, 1.0f);
      const Clock::time_point begin = Clock::now();
      const std::uint64_t sum = communicator.begin_all_reduce(x.data(), count, DType::f32);
      for (++begun; begun < 2;) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(busy_ms));
      communicator.wait(sum);
      CHECK(Clock::now() - begin >= std::chrono::milliseconds(42));
      CHECK(x[count - 1] == 2.0f);
      const CommunicationCounts counts = communicator.counts();
      CHECK(counts.duration_ns == doctest::Approx(42e6).epsilon(0.001));
      CHECK(counts.waited_ns <= (busy_ms > 42 ? 0 : counts.duration_ns));
    }));
  }
}

TEST_CASE("collectives: sums that wait for the link are counted from when they get it") {
  constexpr std::int64_t count = 1000;
  const Ranks ranks = local_communicators(2, {.bandwidth_bytes_per_s = count * 4 / 0.010});
  std::atomic<int> begun{0};
  expect_no_errors(on_ranks(2, [&](int r) {
    Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
    std::vector<float> x(count, 1.0f), y(count, 2.0f), z(count, 3.0f);
    for (std::vector<float>* sum : {&x, &y, &z}) communicator.begin_all_reduce(sum->data(), count, DType::f32);
    for (++begun; begun < 2;) std::this_thread::yield();
    communicator.wait(2);
    CHECK(z[count - 1] == 6.0f);
    CHECK(communicator.counts().duration_ns == doctest::Approx(30e6).epsilon(0.001));
    CHECK(communicator.counts().waited_ns <= 30e6);
  }));
}

TEST_CASE("collectives: a link can stand for more ranks than there are, as a ring or a tree") {
  const auto duration_ms = [](std::int64_t ranks, bool tree) {
    const LinkOptions link{.bandwidth_bytes_per_s = 1e9, .latency_s = 0.0001, .ranks = ranks, .tree = tree};
    const Ranks one = local_communicators(1, link);
    std::vector<float> x(250000, 1.5f);  // 1 ms
    one[0]->wait(one[0]->begin_all_reduce(x.data(), 250000, DType::f32));
    CHECK(x[249999] == 1.5f);
    return static_cast<double>(one[0]->counts().duration_ns) / 1e6;
  };
  CHECK(duration_ms(1, false) == 0);
  CHECK(duration_ms(8, false) == doctest::Approx(14 * (0.1 + 1.0 / 8)));
  CHECK(duration_ms(8, true) == doctest::Approx(6 * 0.1 + 2));
  CHECK(duration_ms(9, true) == doctest::Approx(8 * 0.1 + 2));
}

// ---------------------------------------------------------------- programs

/// Runs one graph on a rank for each device of the list, each with its own x.
std::vector<std::vector<Tensor>> run_on(const Context& context, const std::vector<std::string>& devices,
                                        const std::function<void(Graph& graph)>& build, const std::vector<Tensor>& x,
                                        PlacementReport* out_report = nullptr) {
  const Ranks ranks = local_communicators(static_cast<int>(devices.size()));
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t r = 0; r < devices.size(); ++r) {
    Graph graph;
    build(graph);
    programs.push_back(std::make_unique<Program>(context, graph, ProgramOptions{.device = devices[r], .communicator = ranks[r]}));
  }
  if (out_report != nullptr) *out_report = programs[0]->placement();
  std::vector<std::vector<Tensor>> results(devices.size());
  for (int round = 0; round < 3; ++round) {
    expect_no_errors(on_ranks(static_cast<int>(devices.size()), [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      results[r].clear();
      for (const Tensor& result : programs[r]->run({x[r]})) results[r].push_back(result.to_host());
    }));
  }
  return results;
}

Config two_devices() {
  Config config = test_config();
  config.virtual_devices = {{"reference:0", 2, 0}, {"openblas:0", 2, 0}};
  return config;
}

TEST_CASE("collectives: a program sums what each rank computes, and goes on with the sum") {
  const Context context(two_devices());
  const std::vector<Tensor> given{Tensor::of<float>({1, 2, 3, 4}, {4}), Tensor::of<float>({10, 20, 30, 40}, {4})};
  for (const std::string backend : {"reference", "openblas"}) {
    PlacementReport report;
    const auto results = run_on(
        context, {backend + ":0", backend + ":1"},
        [](Graph& graph) {
          const Value x = graph.input("x", DType::f32, {4});
          const Value square = ops::mul(x, x);
          const std::vector<Value> sums = ops::all_reduce({square, x, ops::relu(x)});
          graph.output("squares", ops::neg(sums[0]));
          graph.output("sum", sums[1]);
          graph.output("own", ops::add(square, 1));  // read by others than the sum, which must leave it alone
          graph.output("again", ops::all_reduce({ops::mul(sums[2], 2)})[0]);
        },
        given, &report);
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK(floats(results[r][0]) == std::vector<float>{-101, -404, -909, -1616});
      CHECK(floats(results[r][1]) == std::vector<float>{11, 22, 33, 44});
      CHECK(floats(results[r][2])[3] == (r == 0 ? 17.0f : 1601.0f));
      CHECK(floats(results[r][3]) == std::vector<float>{44, 88, 132, 176});
    }
    CHECK(report.collectives == 2);
    CHECK(report.bytes_reduced_per_run == 4 * 16);
  }
}

TEST_CASE("collectives: the gradient of a sum over ranks is the sum of its gradients") {
  const Context context(two_devices());
  // Each rank's loss is c (sum x)^2 with its own c: d/dx of both losses together is 2 (c0 + c1) sum x on every rank.
  const std::vector<Tensor> given{Tensor::of<float>({1, 3}, {2}), Tensor::of<float>({2, 5}, {2})};
  const auto results = run_on(
      context, {"reference:0", "openblas:0"},
      [](Graph& graph) {
        const Value x = graph.input("x", DType::f32, {2});
        const Value w = ops::slice(x, 0, 0, 1);
        const Value total = ops::all_reduce({w})[0];
        const Value c = ops::slice(x, 0, 1, 2);
        graph.output("gradient", gradients(ops::reduce_sum(ops::mul(c, ops::mul(total, total))), {w})[0]);
      },
      given);
  for (const auto& result : results) CHECK(floats(result[0]) == std::vector<float>{2 * (3 + 5) * 3});
}

TEST_CASE("collectives: sums begin in the order in which values are ready, between the plans of the rest") {
  const Context context(two_devices());
  Graph graph;
  Value x = graph.input("x", DType::f32, {4});
  std::vector<Value> layers;
  for (int i = 0; i < 3; ++i) layers.push_back(x = ops::mul(x, ops::add(x, 1)));
  for (int i = 0; i < 3; ++i) graph.output(fmt::format("sum {}", i), ops::neg(ops::all_reduce({layers[static_cast<std::size_t>(i)]})[0]));
  const Program program(context, graph, {.device = "openblas:0", .communicator = local_communicators(1)[0]});
  // Three pieces of the chain, three sums, and what follows from each sum.
  CHECK(program.placement().partitions == 9);
  CHECK(program.placement().collectives == 3);
}

TEST_CASE("collectives: a graph with sums needs a communicator, and one value") {
  const Context context(test_config());
  Graph graph;
  const Value x = graph.input("x", DType::f32, {4});
  graph.output("y", ops::all_reduce({x})[0]);
  CHECK_ERROR_CONTAINS("expected ProgramOptions::communicator, got none", Program(context, graph));
  CHECK_ERROR_CONTAINS("expected at least one value, got none", ops::all_reduce({}));
  CHECK_ERROR_CONTAINS("expected equal dtypes", ops::all_reduce({x, ops::cast(x, DType::f64)}));
}

TEST_CASE("collectives: a broadcast gives the elements of one rank to all, of every dtype") {
  for (const int size : {1, 2, 4}) {
    for (int root = 0; root < size; ++root) {
      const Ranks ranks = local_communicators(size);
      expect_no_errors(on_ranks(size, [&](int r) {
        Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
        std::vector<std::uint8_t> bytes(1001, static_cast<std::uint8_t>(r + 1));
        std::vector<double> none;
        communicator.begin_broadcast(none.data(), 0, DType::f64, root);
        communicator.wait(communicator.begin_broadcast(bytes.data(), 1001, DType::u8, root));
        if (std::ranges::count(bytes, static_cast<std::uint8_t>(root + 1)) != 1001) throw Error("expected the bytes of the root");
      }));
    }
  }
  const Ranks ranks = local_communicators(2);
  float x = 1;
  CHECK_ERROR_CONTAINS("expected a root from 0 to 1, got 2", ranks[0]->begin_broadcast(&x, 1, DType::f32, 2));
  const std::vector<std::string> errors = on_ranks(2, [&](int r) {
    std::vector<float> own(4, 1.0f);
    Communicator& communicator = *ranks[static_cast<std::size_t>(r)];
    communicator.wait(r == 0 ? communicator.begin_broadcast(own.data(), 4, DType::f32, 1)
                             : communicator.begin_all_reduce(own.data(), 4, DType::f32));
  });
  for (const std::string& error : errors) {
    CHECK_MESSAGE(contains(error, "rank 0 has 4 elements of f32 from rank 1"), error);
    CHECK_MESSAGE(contains(error, "rank 1 has 4 elements of f32 to sum"), error);
  }
}

TEST_CASE("collectives: programs broadcast values and updates of parameters, whoever reads the results") {
  const Context context(two_devices());
  const std::vector<Tensor> given{Tensor::of<float>({1, 2}, {2}), Tensor::of<float>({10, 20}, {2})};
  for (const std::string backend : {"reference", "openblas"}) {
    PlacementReport report;
    const auto results = run_on(
        context, {backend + ":0", backend + ":1"},
        [](Graph& graph) {
          const Value x = graph.input("x", DType::f32, {2});
          const Value square = ops::mul(x, x);
          const Value constant = graph.constant(Tensor::of<float>({7, 8}, {2}));
          const std::vector<Value> of_one = ops::broadcast({square, x, constant}, 1), of_zero = ops::broadcast({ops::neg(of_one[0])}, 0);
          graph.output("square", of_one[0]);
          graph.output("x", ops::add(of_one[1], of_one[2]));
          graph.output("again", of_zero[0]);
          graph.output("own", ops::add(square, ops::all_reduce({x})[0]));  // after the operand has been sent
          ops::broadcast({square}, 0);                                     // nobody reads it
        },
        given, &report);
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK(floats(results[r][0]) == std::vector<float>{100, 400});
      CHECK(floats(results[r][1]) == std::vector<float>{17, 28});
      CHECK(floats(results[r][2]) == std::vector<float>{-100, -400});
      CHECK(floats(results[r][3]) == (r == 0 ? std::vector<float>{12, 26} : std::vector<float>{111, 422}));
    }
    CHECK(report.broadcasts == 3);
    CHECK(report.bytes_broadcast_per_run == 5 * 8);
    CHECK(report.collectives == 1);
  }
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2});
  graph.output("y", ops::broadcast({x}, 2)[0]);
  CHECK(contains(graph.str(), "root=2"));
  CHECK_ERROR_CONTAINS("expected a root below the number of ranks, 2, got 2",
                       Program(context, graph, {.communicator = local_communicators(2)[0]}));
  CHECK_ERROR_CONTAINS("expected the root to be a rank from 0 on, got -1", ops::broadcast({x}, -1));
}

TEST_CASE("collectives: broadcasts with equal operands on one rank have the results of the root") {
  const Context context(two_devices());
  int ranks_built = 0;
  const auto results = run_on(context, {"reference:0", "reference:1"},
                              [&](Graph& graph) {
                                const bool is_root = ranks_built++ == 0;
                                const Value x = graph.input("x", DType::f32, {2});
                                // The other rank receives only, and gives one placeholder twice.
                                const Value first = ops::broadcast({is_root ? ops::neg(x) : x}, 0)[0],
                                            second = ops::broadcast({is_root ? ops::add(x, x) : x}, 0)[0];
                                graph.output("difference", ops::sub(second, first));
                              },
                              {Tensor::of<float>({1, 2}, {2}), Tensor::of<float>({0, 0}, {2})});
  for (const std::vector<Tensor>& result : results) CHECK(floats(result[0]) == std::vector<float>{3, 6});
}

TEST_CASE("collectives: an error on one rank reaches the others that wait for it") {
  const Context context(two_devices());
  const Ranks ranks = local_communicators(2);
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t r = 0; r < 2; ++r) {
    Graph graph;
    const Value labels = graph.input("labels", DType::i64, {2});
    graph.output("sum", ops::all_reduce({ops::one_hot(labels, 3, DType::f32),
                                         ops::nll(ops::log_softmax(graph.constant(Tensor::zeros(DType::f32, {2, 3}))), labels)})[0]);
    programs.push_back(
        std::make_unique<Program>(context, graph, ProgramOptions{.device = fmt::format("openblas:{}", r), .communicator = ranks[r]}));
  }
  const std::vector<std::string> errors = on_ranks(2, [&](int r) {
    programs[static_cast<std::size_t>(r)]->run({Tensor::of<std::int64_t>({1, r == 0 ? 2 : 77}, {2})});
  });
  CHECK_MESSAGE(contains(errors[1], "77"), errors[1]);
  CHECK_MESSAGE(contains(errors[0], "rank 1 ended the group"), errors[0]);
  CHECK_MESSAGE(contains(errors[0], "77"), errors[0]);
}

}  // namespace
}  // namespace tenon::test
