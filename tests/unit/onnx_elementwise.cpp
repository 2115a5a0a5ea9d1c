// SPDX-License-Identifier: Apache-2.0
// Importing ONNX operators that are computed by several ops, element by element.
#include <cmath>
#include <limits>

#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("onnx import: inverse trigonometric functions are accurate near 0, 1 and -1 too") {
  const OnnxFiles files;
  const float tiny = std::numeric_limits<float>::min(), below = std::nextafter(1.0F, 0.0F);
  const std::vector<float> xs{0, tiny, -1e-20F, 1e-4F, 0.3F, -0.5F, 0.999F, below, -below, 1, -1};
  const auto count = static_cast<std::int64_t>(xs.size());
  const auto check = [&](const char* op, double (*function)(double)) {
    CAPTURE(op);
    onnx::Model model = files.load(test::model(onnx_graph({node(op, {"x"}, {"y"})}, {f32("x", {count})}, {f32("y", {count})})));
    const std::vector<float> ys = model.run({{"x", Tensor::of(xs, {count})}})[0].to_vector<float>();
    for (std::size_t i = 0; i < xs.size(); ++i) {
      CAPTURE(xs[i]);
      // A sum, a product, a root, a quotient and the arc tangent, each within half an epsilon of what it depends on.
      const double expected = function(static_cast<double>(xs[i]));
      CHECK(std::abs(static_cast<double>(ys[i]) - expected) <= 3 * epsilon_of(DType::f32) * std::abs(expected));
    }
  };
  check("Atan", std::atan);
  check("Asin", std::asin);
  check("Acos", std::acos);
}
