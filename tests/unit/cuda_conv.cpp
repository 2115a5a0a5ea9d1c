// SPDX-License-Identifier: Apache-2.0
// Convolutions of the cuda backend: shapes, the cuDNN engines that are allowed, and the cache key of a choice.
#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/cuda/conv/conv_device.h"
#include "backends/cuda/device/options.h"

namespace tenon::cuda {
namespace {

sdk::Operand operand(const std::int64_t* shape, std::uint32_t rank) {
  sdk::Operand x;
  x.shape = shape;
  x.rank = rank;
  x.dtype = TENON_DTYPE_F32;
  return x;
}

ConvProblem problem_3x3(tenon_dtype dtype = TENON_DTYPE_F32) {
  ConvProblem problem;
  problem.dtype = dtype;
  problem.workspace_limit = std::size_t{1} << 30;
  problem.shape = {2, 8, 8, 1, {14, 14}, {3, 3}, {14, 14}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  return problem;
}

/// Why an engine with these notes is rejected; NULL if it is allowed.
const char* refused(const ConvProblem& problem, std::initializer_list<cudnnBackendNumericalNote_t> notes) {
  std::uint32_t bits = 0;
  for (const auto note : notes) bits |= 1u << note;
  return rejection_reason(problem, bits, 0);
}

TEST_CASE("cuda conv: a one-dimensional image is an image of one row") {
  const std::int64_t x[] = {2, 4, 13}, w[] = {6, 2, 3}, y[] = {2, 6, 7};
  tenon_attributes_conv attributes{};
  attributes.groups = 2;
  attributes.strides[0] = 2;
  attributes.dilations[0] = 2;
  attributes.pads_before[0] = 1;
  attributes.pads_after[0] = 3;
  const ConvShape expected{2, 4, 6, 2, {1, 13}, {1, 3}, {1, 7}, {1, 2}, {1, 2}, {0, 1}, {0, 3}};
  CHECK(conv_shape(operand(x, 3), operand(w, 3), operand(y, 3), attributes, false) == expected);
  const std::int64_t x_last[] = {2, 13, 4}, y_last[] = {2, 7, 6};
  CHECK(conv_shape(operand(x_last, 3), operand(w, 3), operand(y_last, 3), attributes, true) == expected);
}

TEST_CASE("cuda conv: strict f32 takes no tensor cores, tf32 and narrower types do") {
  ConvProblem problem = problem_3x3();
  CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}) != nullptr);
  problem.math = TENON_MATH_TF32;
  CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}) == nullptr);
  CHECK(refused(problem_3x3(TENON_DTYPE_BF16), {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}) == nullptr);
}

TEST_CASE("cuda conv: nothing is rounded or accumulated in a narrower type than the op's, and FFT engines are excluded") {
  for (const tenon_dtype dtype : {TENON_DTYPE_F16, TENON_DTYPE_BF16, TENON_DTYPE_F32, TENON_DTYPE_F64}) {
    ConvProblem problem = problem_3x3(dtype);
    problem.math = TENON_MATH_TF32;
    CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}) != nullptr);
    CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}) != nullptr);
    CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_FFT}) != nullptr);
    CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}) == nullptr);
  }
}

TEST_CASE("cuda conv: Winograd transforms are for 3x3 filters of stride 1, with tiles of known error") {
  const auto winograd = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6};
  const ConvProblem good = problem_3x3();
  CHECK(refused(good, winograd) == nullptr);
  CHECK(refused(good, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) != nullptr);
  CHECK(refused(problem_3x3(TENON_DTYPE_F64), winograd) != nullptr);
  ConvProblem other = good;
  other.shape.strides[1] = 2;
  CHECK(refused(other, winograd) != nullptr);
  other = good;
  other.shape.dilations[0] = 2;
  CHECK(refused(other, winograd) != nullptr);
  other = good;
  other.shape.kernel[0] = 5;
  CHECK(refused(other, winograd) != nullptr);
  other = good;
  other.shape.groups = 2;
  CHECK(refused(other, winograd) != nullptr);
}

TEST_CASE("cuda conv: nondeterministic sums are rejected only in deterministic plans") {
  ConvProblem problem = problem_3x3();
  CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}) == nullptr);
  problem.deterministic = true;
  CHECK(refused(problem, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}) != nullptr);
}

TEST_CASE("cuda conv: everything that affects a choice is in its cache key") {
  const auto key = [](const ConvProblem& problem, bool measured = false, const char* device = "NVIDIA H200", int capability = 90,
                      std::size_t version = 91900) { return cache_key(problem, measured, device, capability, version); };
  const ConvProblem problem = problem_3x3();
  CHECK(key(problem) ==
        "conv of f32 x (2,8,14,14), w (8,8,3,3), strides 1,1, pads 1,1-1,1, dilations 1,1, groups 1; workspace 1073741824; heuristic on "
        "NVIDIA H200 9.0 by cuDNN 91900");
  std::vector<std::string> keys{key(problem), key(problem, true), key(problem, false, "NVIDIA A100"),
                                key(problem, false, "NVIDIA H200", 80), key(problem, false, "NVIDIA H200", 90, 91901)};
  const auto with = [&](auto&& change) {
    ConvProblem other = problem;
    change(other);
    keys.push_back(key(other));
  };
  with([](ConvProblem& p) { p.direction = ConvDirection::data_gradient; });
  with([](ConvProblem& p) { p.direction = ConvDirection::filter_gradient; });
  with([](ConvProblem& p) { p.dtype = TENON_DTYPE_F16; });
  with([](ConvProblem& p) { p.math = TENON_MATH_TF32; });
  with([](ConvProblem& p) { p.math = TENON_MATH_BF16; });
  with([](ConvProblem& p) { p.deterministic = true; });
  with([](ConvProblem& p) { p.channels_last = true; });
  with([](ConvProblem& p) { p.bias = true; });
  with([](ConvProblem& p) { p.residual = true; });
  with([](ConvProblem& p) { p.alignment_bytes = 4; });
  with([](ConvProblem& p) { p.workspace_limit = 7; });
  with([](ConvProblem& p) { p.shape.batch = 3; });
  with([](ConvProblem& p) { p.shape.filters = 16; });
  with([](ConvProblem& p) { p.shape.image[1] = 15; });
  with([](ConvProblem& p) { p.shape.strides[0] = 2; });
  with([](ConvProblem& p) { p.shape.pads_before[0] = 2; });
  with([](ConvProblem& p) { p.shape.pads_after[0] = 2; });
  with([](ConvProblem& p) { p.shape.dilations[0] = 2; });
  with([](ConvProblem& p) { p.shape.groups = 2; });
  std::sort(keys.begin(), keys.end());
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

TEST_CASE("cuda conv: few channels of 16 bits are padded to 8 where cuDNN would pad them itself") {
  ConvProblem first = problem_3x3(TENON_DTYPE_BF16);
  first.channels_last = true;
  first.shape = {256, 3, 64, 1, {224, 224}, {7, 7}, {112, 112}, {2, 2}, {1, 1}, {3, 3}, {3, 3}};
  const auto channels = [&](auto&& change) {
    ConvProblem other = first;
    change(other);
    return padded_channels(other);
  };
  CHECK(padded_channels(first) == 8);
  CHECK(channels([](ConvProblem& p) { p.direction = ConvDirection::filter_gradient; }) == 8);
  CHECK(channels([](ConvProblem& p) { p.dtype = TENON_DTYPE_F16; }) == 8);
  CHECK(channels([](ConvProblem& p) { p.shape.channels = 1; }) == 8);
  CHECK(channels([](ConvProblem& p) { p.shape.channels = 7; }) == 8);
  CHECK(channels([](ConvProblem& p) { p.workspace_limit = std::size_t{196} << 20; }) == 8);  // the bytes of (256, 224, 224, 8)

  CHECK(channels([](ConvProblem& p) { p.direction = ConvDirection::data_gradient; }) == 3);
  CHECK(channels([](ConvProblem& p) { p.channels_last = false; }) == 3);
  CHECK(channels([](ConvProblem& p) { p.dtype = TENON_DTYPE_F32; }) == 3);
  CHECK(channels([](ConvProblem& p) { p.dtype = TENON_DTYPE_F64; }) == 3);
  CHECK(channels([](ConvProblem& p) { p.shape.channels = 8; }) == 8);
  CHECK(channels([](ConvProblem& p) { p.shape.channels = 12; }) == 12);
  CHECK(channels([](ConvProblem& p) { p.shape.channels = 0; }) == 0);
  CHECK(channels([](ConvProblem& p) { p.shape.groups = 3; }) == 3);
  CHECK(channels([](ConvProblem& p) { p.shape.filters = 60; }) == 3);
  CHECK(channels([](ConvProblem& p) { p.workspace_limit = (std::size_t{196} << 20) - 1; }) == 3);
}

TEST_CASE("cuda conv: an engine's text round-trips") {
  const Engine engine{38, {{2, 1}, {14, 4}}};
  CHECK(engine.text() == "engine 38 2=1 14=4");
  CHECK(Engine::of(engine.text()) == engine);
  CHECK(Engine::of("engine 0") == Engine{0, {}});
  for (const char* wrong : {"", "engine", "engine x", "engine 1 2", "engine 1 2=", "engine 1,2=3", "38"}) {
    CHECK_THROWS_AS(Engine::of(wrong), sdk::Error);
  }
}

TEST_CASE("cuda conv: an engine is named only by its id") {
  CHECK(engine_index("engine 37") == 37);
  for (const char* wrong : {"", "heuristic", "engine", "engine ", "engine -1", "engine 37 2=1", "Engine 37", "37"}) {
    CHECK_FALSE(engine_index(wrong).has_value());
  }
}

TEST_CASE("cuda conv: rejections with the same reason are grouped") {
  Rejections rejections;
  CHECK(rejections.text() == "none");
  rejections.add({67, {}}, "it rounds");
  rejections.add({38, {{2, 1}}}, "it rounds");
  rejections.add({38, {{2, 5}}}, "it rounds");
  rejections.add({1, {}}, "it needs much");
  rejections.add("no such graph");
  CHECK(rejections.text() == "engine 1: it needs much; engines 38, 67: it rounds; no such graph");
}

TEST_CASE("cuda conv: cuDNN versions encode the major version in two ways") {
  CHECK(cudnn_major(8907) == 8);
  CHECK(cudnn_major(90000) == 9);
  CHECK(cudnn_major(91900) == 9);
  CHECK(cudnn_major(100100) == 10);
}

}  // namespace
}  // namespace tenon::cuda
