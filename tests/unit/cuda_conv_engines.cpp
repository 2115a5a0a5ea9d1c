// SPDX-License-Identifier: Apache-2.0
// Which cuDNN engine a convolution gets, and what happens if none fits, on an emulated library and device. cuda_conv_described.cpp asks the
// real library.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/conv/channel_padding.h"
#include "backends/cuda/conv/conv_device.h"
#include "backends/cuda/conv/random_fill.h"
#include "backends/cuda/device/options.h"
#include "backends/cuda/kernel/wide.cuh"
#include "cuda_host.h"
#include "cuda_testing.h"
#include "sanitizers.h"

namespace tenon::cuda {
namespace {

const ConvPlan& choose(Bench& bench, ConvProblem problem) {
  problem.workspace_limit = std::min(problem.workspace_limit, options_of(bench.device).workspace_limit);
  return bench.device.attached.get<ConvDevice>(bench.device).choose(problem);
}

ConvProblem problem(tenon_dtype dtype, std::int64_t kernel = 3) {
  ConvProblem made;
  made.dtype = dtype;
  made.workspace_limit = std::size_t{1} << 30;
  made.channels_last = dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16;
  const std::int64_t pad = kernel / 2;
  made.shape = {32, 64, 64, 1, {56, 56}, {kernel, kernel}, {56, 56}, {1, 1}, {1, 1}, {pad, pad}, {pad, pad}};
  return made;
}

TEST_CASE("cuda conv: a missing cuDNN is reported with the folders, the remedy, and what runs without it") {
  const sdk::Error error = error_of([] { Cudnn(Search{"/nowhere", {}}); });
  CHECK(error.status() == TENON_INCOMPATIBLE);
  CHECK_MESSAGE(contains(error.what(), "cuDNN 9 (libcudnn.so.9) cannot be opened; looked in /nowhere"), error.what());
  CHECK_MESSAGE(contains(error.what(), "backends.options.cuda.libraries"), error.what());
  CHECK_MESSAGE(contains(error.what(), "backends.options.cuda.kernels: naive"), error.what());
}

TEST_CASE("cuda conv: a cuDNN of another major version is a mismatch that states both, and what runs without it") {
  const sdk::Error error = error_of([] { Cudnn(Search{TENON_EMULATED_LIBRARIES "/another_version", {}}); });
  CHECK(error.status() == TENON_INCOMPATIBLE);
  CHECK_MESSAGE(contains(error.what(), "is version 8"), error.what());
  CHECK_MESSAGE(contains(error.what(), "built for 9"), error.what());
  CHECK_MESSAGE(contains(error.what(), "backends.options.cuda.kernels: naive"), error.what());
}

TEST_CASE("cuda conv: each kind of arithmetic gets the first engine that may compute it") {
  Bench bench;
  CHECK(choose(bench, problem(TENON_DTYPE_F32)).engine.index == 61);  // a Winograd engine
  CHECK(choose(bench, problem(TENON_DTYPE_F32, 5)).engine.index == 28);
  CHECK(choose(bench, problem(TENON_DTYPE_F16)).engine.index == 38);
  CHECK(choose(bench, problem(TENON_DTYPE_F64)).engine.index == 28);
  ConvProblem tf32 = problem(TENON_DTYPE_F32, 5);
  tf32.math = TENON_MATH_TF32;
  CHECK(choose(bench, tf32).engine.index == 38);
  CHECK(bench.host.warnings.empty());
  CHECK(bench.host.lines.size() == 5);
}

TEST_CASE("cuda conv: gradients may be summed in any order unless deterministic results are requested") {
  Bench bench;
  ConvProblem gradient = problem(TENON_DTYPE_F32, 5);
  gradient.direction = ConvDirection::filter_gradient;
  CHECK(choose(bench, gradient).engine.index == 20);
  gradient.deterministic = true;
  CHECK(choose(bench, gradient).engine.index == 28);
}

TEST_CASE("cuda conv: an engine that fuses bias and residual is used, but a fallback engine is not preferred for it") {
  Bench bench;
  ConvProblem narrow = problem(TENON_DTYPE_BF16);
  narrow.bias = narrow.residual = true;
  CHECK(choose(bench, narrow).text() == "adding engine 7 2=2 14=4");
  ConvProblem transposed = narrow;
  transposed.direction = ConvDirection::data_gradient;
  CHECK(choose(bench, transposed).text() == "adding engine 7 2=2 14=4");
  ConvProblem strict = problem(TENON_DTYPE_F32, 5);
  strict.bias = true;
  CHECK(choose(bench, strict).text() == "adding engine 44 2=4 14=4");
  strict.residual = true;
  CHECK(choose(bench, strict).text() == "plain engine 28 2=3 14=4");
  ConvProblem wide = problem(TENON_DTYPE_F64);
  wide.bias = true;
  CHECK(choose(bench, wide).text() == "plain engine 28 2=3 14=4");
}

TEST_CASE("cuda conv: engines above the workspace limit are not used") {
  Bench bench("workspace_limit_mib", "1");
  CHECK(choose(bench, problem(TENON_DTYPE_F32)).engine.index == 1);  // those before it need 3 and 2 MiB
  CHECK(choose(bench, problem(TENON_DTYPE_F16)).engine.index == 38);
}

TEST_CASE("cuda conv: operands that are not aligned to 16 bytes get an engine that does not need it") {
  Bench bench;
  ConvProblem odd = problem(TENON_DTYPE_F16);
  odd.alignment_bytes = 2;
  CHECK(choose(bench, odd).engine.index == 1);
}

TEST_CASE("cuda conv: without a usable engine there is no plan, and one log line with the remedy") {
  const Engines engines("99,38");
  Bench bench;
  const ConvProblem strict = problem(TENON_DTYPE_F32);
  CHECK_FALSE(choose(bench, strict).plan.has_value());
  CHECK_FALSE(choose(bench, strict).plan.has_value());
  REQUIRE(bench.host.warnings.size() == 1);
  const std::string& line = bench.host.warnings[0];
  CHECK_MESSAGE(contains(line, "conv of f32 x (32,64,56,56), w (64,64,3,3)"), line);
  CHECK_MESSAGE(contains(line, "backends.options.cuda.workspace_limit_mib"), line);
  CHECK_MESSAGE(contains(line, "engine 38: its tensor cores"), line);
  CHECK_MESSAGE(contains(line, "engine 99: "), line);
  CHECK_MESSAGE(line.find('\n') == std::string::npos, line);
  CHECK(bench.host.kept.empty());
}

TEST_CASE("cuda conv: a named engine is used wherever it is usable") {
  Bench bench("algorithm", "engine 1");
  CHECK(choose(bench, problem(TENON_DTYPE_F32)).engine.index == 1);
  ConvProblem with_bias = problem(TENON_DTYPE_F16);
  with_bias.bias = true;
  CHECK(choose(bench, with_bias).text() == "plain engine 1");
  CHECK(bench.host.kept.empty());
}

TEST_CASE("cuda conv: a named engine that is not usable is an error with op, shape and engine") {
  Bench bench("algorithm", "engine 38");
  const sdk::Error strict = error_of([&] { choose(bench, problem(TENON_DTYPE_F32)); });
  CHECK(strict.status() == TENON_UNSUPPORTED);
  CHECK_MESSAGE(contains(strict.what(), "conv of f32 x (32,64,56,56), w (64,64,3,3)"), strict.what());
  CHECK_MESSAGE(contains(strict.what(), "names engine 38, which cannot run it"), strict.what());
  CHECK_MESSAGE(contains(strict.what(), "its tensor cores"), strict.what());
  CHECK(contains(error_of([&] { choose(bench, problem(TENON_DTYPE_F64)); }).what(), "does not serve this graph"));
}

TEST_CASE("cuda conv: an invalid selection mode is rejected when the device is opened") {
  Bench bench("algorithm", "fastest");
  const sdk::Error error = error_of([&] { options_of(bench.device); });
  CHECK(error.status() == TENON_INVALID_ARGUMENT);
  CHECK_MESSAGE(contains(error.what(), "expected heuristic, measure or an engine's name"), error.what());
}

TEST_CASE("cuda conv: a choice is cached by the host and reused by the next device") {
  std::map<std::string, std::string> kept;
  {
    Bench bench;
    choose(bench, problem(TENON_DTYPE_F32, 5));
    kept = bench.host.kept;
  }
  REQUIRE(kept.size() == 1);
  CHECK(kept.begin()->second == "plain engine 28 2=3 14=4");
  CHECK(contains(kept.begin()->first, " by cuDNN " + std::to_string(CUDNN_VERSION)));
  kept.begin()->second = "plain engine 1 2=0";
  Bench next;
  next.host.kept = kept;
  CHECK(choose(next, problem(TENON_DTYPE_F32, 5)).text() == "plain engine 1 2=0");
  CHECK(contains(next.host.lines.back(), "as chosen before"));
}

TEST_CASE("cuda conv: an invalid cached choice is made again") {
  for (const char* stale : {"plain engine 38 2=3", "plain engine 4711", "engine 28", "nonsense", "adding engine 28"}) {
    std::string key;
    {
      Bench bench;
      choose(bench, problem(TENON_DTYPE_F32, 5));
      key = bench.host.kept.begin()->first;
    }
    Bench bench;
    bench.host.kept[key] = stale;
    CHECK_MESSAGE(choose(bench, problem(TENON_DTYPE_F32, 5)).engine.index == 28, stale);
    CHECK(bench.host.kept[key] == "plain engine 28 2=3 14=4");
  }
}

TEST_CASE("cuda conv: a plan with a cached choice is recorded and replayed without another choice") {
  Bench bench;
  ConvProblem point = problem(TENON_DTYPE_F64, 1);
  point.shape = {1, 2, 1, 1, {1, 2}, {1, 1}, {1, 2}, {1, 1}, {1, 1}, {}, {}};
  const ConvPlan& plan = choose(bench, point);
  Stream stream(bench.device);
  DeviceBuffer memory(bench.device, stream, 1024), workspace(bench.device, stream, plan.plan->workspace_bytes());
  memory.write(std::vector<double>{1, 2, 10, 20});
  memory.write(std::vector<double>{3, 4}, 256);
  stream.begin_capture();
  bench.device.attached.get<ConvDevice>(bench.device)
      .run(stream, plan, {.x = memory.at(), .w = memory.at(256), .y = memory.at(512)}, workspace.at());
  const auto recording = stream.end_capture();
  recording->replay(stream);
  CHECK(memory.read<double>(2, 512) == std::vector<double>{43, 86});
}

TEST_CASE("cuda conv: few channels are padded with zeros, at any alignment, and back") {
  Bench bench;
  Stream stream(bench.device);
  for (const FewChannels shape : {FewChannels{35, 3, 1}, FewChannels{4, 3, 9}, FewChannels{300, 1, 1}, FewChannels{2, 7, 4}}) {
    const auto count = static_cast<std::size_t>(shape.outer * shape.channels * shape.area);
    const auto pixels = static_cast<std::size_t>(shape.outer * shape.area);
    std::vector<std::uint16_t> narrow(count), padded(pixels * 8);
    for (std::size_t i = 0; i < count; ++i) narrow[i] = static_cast<std::uint16_t>(i + 1);
    for (std::int64_t o = 0; o < shape.outer; ++o) {
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        for (std::int64_t a = 0; a < shape.area; ++a) {
          padded[static_cast<std::size_t>((o * shape.area + a) * 8 + c)] =
              narrow[static_cast<std::size_t>((o * shape.channels + c) * shape.area + a)];
        }
      }
    }
    DeviceBuffer from(bench.device, stream, 2 * count + 2), between(bench.device, stream, 16 * pixels),
        back(bench.device, stream, 2 * count + 2);
    from.write(narrow, 2);
    pad_channels(stream, shape, from.at(2), between.at());
    CHECK(between.read<std::uint16_t>(pixels * 8) == padded);
    unpad_channels(stream, shape, between.at(), back.at(2));
    CHECK(back.read<std::uint16_t>(count, 2) == narrow);
  }
}

TEST_CASE("cuda conv: operands that are measured are different numbers from -1 to 1") {
  Bench bench;
  Stream stream(bench.device);
  constexpr int count = 1000;
  const auto check = [&]<class T>(tenon_dtype dtype, double share) {
    DeviceBuffer memory(bench.device, stream, std::vector<T>(count));
    fill_random(stream, dtype, count, 1, memory.at());
    std::set<double> distinct;
    double sum = 0;
    for (const T element : memory.template read<T>(count)) {
      const auto x = static_cast<double>(widen(element));
      CHECK((x >= -1 && x <= 1));
      distinct.insert(x);
      sum += x;
    }
    CHECK(distinct.size() > share * count);
    CHECK(std::abs(sum / count) < 0.1);
  };
  check.operator()<float>(TENON_DTYPE_F32, 0.99);
  check.operator()<double>(TENON_DTYPE_F64, 0.99);
  check.operator()<sdk::Half>(TENON_DTYPE_F16, 0.8);
  check.operator()<sdk::BFloat16>(TENON_DTYPE_BF16, 0.4);
}

TEST_CASE("cuda conv: measuring runs the candidates once and frees its memory") {
  Bench bench("algorithm", "measure");
  ConvProblem small = problem(TENON_DTYPE_F32);
  small.shape = {1, 2, 2, 1, {4, 4}, {3, 3}, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const ConvPlan& plan = choose(bench, small);
  CHECK((plan.engine.index == 61 || plan.engine.index == 28));
  CHECK(contains(bench.host.lines.back(), "the fastest"));
  CHECK(contains(bench.host.kept.begin()->first, "; timed on "));
  CHECK(&choose(bench, small) == &plan);
}

TEST_CASE("cuda conv: without memory to measure in, the first candidate is used, and one warning says so") {
  Bench bench("algorithm", "measure");
  ConvProblem small = problem(TENON_DTYPE_F32);
  small.shape = {1, 2, 2, 1, {4, 4}, {3, 3}, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  for (int i = 0; i < 2; ++i)
    emulation::fail_next("cudaMallocFromPoolAsync", cudaErrorMemoryAllocation);  // it is tried again without fragments
  CHECK(choose(bench, small).plan.has_value());
  REQUIRE(bench.host.warnings.size() == 1);
  CHECK_MESSAGE(contains(bench.host.warnings[0], ": not measured, "), bench.host.warnings[0]);
  CHECK_MESSAGE(contains(bench.host.lines.back(), ", not measured"), bench.host.lines.back());
  CHECK(bench.host.kept.empty());  // as a measured choice, it would stay when there is memory again
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("cuda conv: an engine that fails to run is skipped; it is an error if all fail") {
  ConvProblem small = problem(TENON_DTYPE_F32);
  small.shape = {1, 2, 2, 1, {4, 4}, {3, 3}, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  for (const bool all : {false, true}) {
    ::setenv("TENON_CUDNN_EMULATION_FAILING", all ? "0,1,20,28,38,44,61" : "61", 1);
    Bench bench("algorithm", "measure");
    if (all) {
      const sdk::Error error = error_of([&] { choose(bench, small); });
      CHECK(error.status() == TENON_VENDOR_ERROR);
      CHECK_MESSAGE(contains(error.what(), "measured engines runs (the log says why)"), error.what());
    } else {
      CHECK(choose(bench, small).engine.index == 28);
    }
    ::unsetenv("TENON_CUDNN_EMULATION_FAILING");
    CHECK(std::any_of(bench.host.warnings.begin(), bench.host.warnings.end(),
                      [](const std::string& line) { return contains(line, "engine 61 is rejected"); }));
  }
}

}  // namespace
}  // namespace tenon::cuda
