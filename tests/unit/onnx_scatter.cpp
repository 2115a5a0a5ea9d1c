// SPDX-License-Identifier: Apache-2.0
// Importing ONNX operators that write to positions which are inputs.
#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A cache (samples, 2, 3, 1) of zeros in which two steps are written from the positions `begins` on.
onnx::ModelRecord cache_writes(std::int64_t samples, std::string_view mode) {
  return model(onnx_graph({node("TensorScatter", {"cache", "update", "begins"}, {"y"}, {text("mode", mode)})},
                          {f32("cache", {samples, 2, 3, 1}), f32("update", {samples, 2, 2, 1}), i64("begins", {samples})},
                          {f32("y", {samples, 2, 3, 1})}),
               24);
}

std::vector<float> written(std::string_view mode, const std::vector<std::int64_t>& begins) {
  const OnnxFiles files;
  const auto samples = static_cast<std::int64_t>(begins.size());
  std::vector<float> update(static_cast<std::size_t>(samples) * 4);
  for (std::size_t i = 0; i < update.size(); ++i) update[i] = static_cast<float>(i + 1);
  onnx::Model model = files.load(cache_writes(samples, mode));
  return model
      .run({{"cache", Tensor::zeros(DType::f32, {samples, 2, 3, 1})},
            {"update", Tensor::of(update, {samples, 2, 2, 1})},
            {"begins", Tensor::of(begins, {samples})}})[0]
      .to_vector<float>();
}

}  // namespace

TEST_CASE("onnx import: each sample of a cache is written from its own position on") {
  CHECK(written("linear", {1}) == std::vector<float>{0, 1, 2, 0, 3, 4});
  CHECK(written("linear", {1, 0}) == std::vector<float>{0, 1, 2, 0, 3, 4, 5, 6, 0, 7, 8, 0});
  CHECK(written("circular", {2, 1}) == std::vector<float>{2, 0, 1, 4, 0, 3, 0, 5, 6, 0, 7, 8});
}

TEST_CASE("onnx import: a position outside of a sample's cache is an error, not one of the next sample") {
  CHECK(message_of([] { written("linear", {2}); }).find("out of range") != std::string::npos);
  CHECK(message_of([] { written("linear", {2, 0}); }).find("out of range") != std::string::npos);
}

TEST_CASE("onnx import: several updates of a slice are reduced in order") {
  const OnnxFiles files;
  const auto run = [&](std::string_view reduction, const char* op, const std::vector<std::int64_t>& indices, const Shape& shape) {
    onnx::Model model =
        files.load(test::model(onnx_graph({node(op, {"x", "i", "u"}, {"y"}, {text("reduction", reduction)})},
                                          {f32("x", {2, 2}), i64("i", {shape[0], shape[1]}), f32("u", {3, 2})}, {f32("y", {2, 2})}),
                               18));
    return model
        .run({{"x", Tensor::of<float>({1, 2, 3, 4}, {2, 2})},
              {"i", Tensor::of(indices, shape)},
              {"u", Tensor::of<float>({5, -6, 7, 8, -9, 10}, {3, 2})}})[0]
        .to_vector<float>();
  };
  const std::vector<std::int64_t> rows{1, -1, 0}, elements{1, 0, -1, 0, 0, 1};
  using Expected = std::vector<float>;
  CHECK(run("none", "ScatterND", rows, {3, 1}) == Expected{-9, 10, 7, 8});
  CHECK(run("add", "ScatterND", rows, {3, 1}) == Expected{-8, 12, 15, 6});
  CHECK(run("mul", "ScatterND", rows, {3, 1}) == Expected{-9, 20, 105, -192});
  CHECK(run("max", "ScatterND", rows, {3, 1}) == Expected{1, 10, 7, 8});
  CHECK(run("min", "ScatterND", rows, {3, 1}) == Expected{-9, 2, 3, -6});
  CHECK(run("max", "ScatterElements", elements, {3, 2}) == Expected{1, 8, 7, 10});
  CHECK(run("min", "ScatterElements", elements, {3, 2}) == Expected{-9, -6, 3, 4});
}
