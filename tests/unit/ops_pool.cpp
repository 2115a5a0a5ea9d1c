// SPDX-License-Identifier: Apache-2.0
// Results of pools and resizes: composites against plain loops, backends against each other.
#include "ops_testing.h"

#include <cmath>
#include <functional>

namespace tenon::test {
namespace {

/// Distinct values: no ties.
Tensor numbers(DType dtype, const Shape& shape) {
  Tensor t = Tensor::empty(dtype, shape);
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const double value = static_cast<double>(i * 7919 % 10007) / 1024 - 4;
    if (dtype == DType::f32) {
      t.data<float>()[i] = static_cast<float>(value);
    } else {
      t.data<double>()[i] = value;
    }
  }
  return t;
}

std::vector<double> result_of(const std::string& device, const Tensor& x, const std::function<Value(Value)>& function) {
  return test::result_of(
      {x}, [&](const auto& v) { return function(v[0]); }, device);
}

/// Largest difference; infinite where the counts differ.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

std::vector<double> adaptive_by_loops(const Tensor& x, std::int64_t height, std::int64_t width) {
  const std::int64_t h = x.shape()[2], w = x.shape()[3];
  std::vector<double> y;
  for (std::int64_t plane = 0; plane < x.shape()[0] * x.shape()[1]; ++plane) {
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t k = 0; k < width; ++k) {
        const std::int64_t top = i * h / height, bottom = ((i + 1) * h + height - 1) / height;
        const std::int64_t left = k * w / width, right = ((k + 1) * w + width - 1) / width;
        double sum = 0;
        for (std::int64_t r = top; r < bottom; ++r) {
          for (std::int64_t c = left; c < right; ++c) sum += x.data<double>()[(plane * h + r) * w + c];
        }
        y.push_back(sum / static_cast<double>((bottom - top) * (right - left)));
      }
    }
  }
  return y;
}

TEST_CASE("adaptive_average_pool: means of windows whose bounds are rounded outwards") {
  const Tensor x = numbers(DType::f64, {2, 3, 7, 8});
  for (const char* device : devices) {
    for (const auto& [height, width] : {std::pair{3, 5}, {7, 2}, {1, 1}, {7, 3}, {5, 8}, {9, 16}}) {
      const std::vector<std::int64_t> sizes{height, width};
      CAPTURE(device);
      CAPTURE(sizes[0]);
      CAPTURE(sizes[1]);
      CHECK(distance(result_of(device, x, [&](Value v) { return ops::adaptive_average_pool(v, sizes); }),
                     adaptive_by_loops(x, height, width)) < 1e-13);
    }
  }
}

TEST_CASE("adaptive pools: NaN and infinity stay in the windows that have them, and a window may be larger than its neighbours") {
  const double inf = INFINITY;
  const auto pooled = [](const char* device, const std::vector<double>& x, bool largest) {
    return result_of(device, Tensor::of(x, {1, 1, static_cast<std::int64_t>(x.size())}),
                     [&](Value v) { return largest ? ops::adaptive_max_pool(v, {3}) : ops::adaptive_average_pool(v, {3}); });
  };
  for (const char* device : devices) {
    CAPTURE(device);
    CHECK(pooled(device, {1, 2, 3, 4, inf}, false) == std::vector<double>{1.5, 3, inf});
    CHECK(pooled(device, {1, -2, 3, 4, -inf}, true) == std::vector<double>{1, 4, 4});
    const auto means = pooled(device, {1, 2, 3, 4, NAN}, false), peaks = pooled(device, {NAN, 2, 3, 4, 5}, true);
    CHECK(std::vector<double>(means.begin(), means.begin() + 2) == std::vector<double>{1.5, 3});
    CHECK(std::isnan(means[2]));
    CHECK(std::isnan(peaks[0]));
    CHECK(std::vector<double>(peaks.begin() + 1, peaks.end()) == std::vector<double>{4, 5});
  }
}

TEST_CASE("adaptive_max_pool: the maxima of an image's windows, each with its gradient") {
  const Tensor x = numbers(DType::f64, {2, 3, 7, 8});
  for (const char* device : devices) {
    const auto y = result_of(device, x, [](Value v) { return ops::adaptive_max_pool(v, {3, 5}); });
    REQUIRE(y.size() == 6 * 15);
    for (std::int64_t i = 0; i < 90; ++i) {
      const std::int64_t plane = i / 15, r = i % 15 / 5, c = i % 5;
      double largest = -INFINITY;
      for (std::int64_t row = r * 7 / 3; row < ((r + 1) * 7 + 2) / 3; ++row) {
        for (std::int64_t column = c * 8 / 5; column < ((c + 1) * 8 + 4) / 5; ++column) {
          largest = std::max(largest, x.data<double>()[(plane * 7 + row) * 8 + column]);
        }
      }
      CHECK(y[static_cast<std::size_t>(i)] == largest);
    }
    const auto dx = result_of(device, x, [](Value v) { return gradients(ops::reduce_sum(ops::adaptive_max_pool(v, {3, 5})), {v})[0]; });
    double sum = 0;
    for (const double slope : dx) sum += slope;
    CHECK(sum == doctest::Approx(90));
  }
}

TEST_CASE("pools: with ceil_mode a window larger than the image has one result, as in PyTorch and ONNX") {
  const Tensor x = Tensor::of<double>({1, 5, 3}, {1, 1, 3});
  ops::WindowOptions options;
  options.strides = {5};
  options.ceil_mode = true;
  for (const char* device : devices) {
    CAPTURE(device);
    CHECK(result_of(device, x, [&](Value v) { return ops::max_pool(v, {4}, options); }) == std::vector<double>{5});
    CHECK(result_of(device, x, [&](Value v) { return ops::average_pool(v, {4}, options); }) == std::vector<double>{3});
    CHECK(result_of(device, x, [&](Value v) { return gradients(ops::reduce_sum(ops::average_pool(v, {4}, options)), {v})[0]; }) ==
          std::vector<double>{1.0 / 3, 1.0 / 3, 1.0 / 3});
  }
}

/// (sum |x|^p)^(1/p) of the windows of 3 by 2 elements of an image of 5 by 7, in steps of 2, with a row and two columns of padding before
/// it; `partial` ones too. p = 0 gives the plain sums.
std::vector<double> power_by_loops(const Tensor& x, double p, bool partial) {
  std::vector<double> y;
  for (std::int64_t plane = 0; plane < x.shape()[0] * x.shape()[1]; ++plane) {
    for (std::int64_t top = -1; top + (partial ? 1 : 3) <= 5; top += 2) {
      for (std::int64_t left = -1; left + (partial ? 1 : 2) <= 7; left += 2) {
        double sum = 0;
        for (std::int64_t r = std::max<std::int64_t>(top, 0); r < std::min<std::int64_t>(top + 3, 5); ++r) {
          for (std::int64_t c = std::max<std::int64_t>(left, 0); c < std::min<std::int64_t>(left + 2, 7); ++c) {
            const double value = x.data<double>()[(plane * 5 + r) * 7 + c];
            sum += p == 0 ? value : std::pow(std::abs(value), p);
          }
        }
        y.push_back(p == 0 ? sum : std::pow(sum, 1 / p));
      }
    }
  }
  return y;
}

TEST_CASE("sum_pool and lp_pool: sums over windows, also partial ones and those in padding") {
  const Tensor x = numbers(DType::f64, {2, 2, 5, 7});
  ops::WindowOptions options;
  options.strides = {2, 2};
  options.padding = {{1, 0}, {1, 0}};
  for (const bool partial : {false, true}) {
    options.ceil_mode = partial;
    for (const char* device : devices) {
      CAPTURE(device);
      CAPTURE(partial);
      CHECK(distance(result_of(device, x,
                               [&](Value v) {
                                 return ops::sum_pool(v, {3, 2}, options);
                               }),
                     power_by_loops(x, 0, partial)) < 1e-13);
      for (const double p : {1.0, 2.0, 3.0, 1.5}) {
        CAPTURE(p);
        CHECK(distance(result_of(device, x,
                                 [&](Value v) {
                                   return ops::lp_pool(v, {3, 2}, p, options);
                                 }),
                       power_by_loops(x, p, partial)) < 1e-12);
      }
    }
  }
  options.channels_last = true;
  const auto last = [&](Value v) {
    return ops::transpose(ops::lp_pool(ops::transpose(v, {0, 2, 3, 1}), {3, 2}, 2, options), {0, 3, 1, 2});
  };
  CHECK(distance(result_of("reference:0", x, last), power_by_loops(x, 2, true)) < 1e-12);
}

TEST_CASE("lp_pool: its gradient is x |x|^(p - 2) y^(1 - p), and 0 for a window of zeros") {
  const Tensor x = Tensor::of<double>({3, -4, 0, 0, 1, 2}, {1, 1, 6});
  for (const char* device : devices) {
    const auto slope = [&](double p) {
      return result_of(device, x, [&](Value v) { return gradients(ops::reduce_sum(ops::lp_pool(v, {2}, p)), {v})[0]; });
    };
    CHECK(distance(slope(2), {0.6, -0.8, 0, 0, 1 / std::sqrt(5), 2 / std::sqrt(5)}) < 1e-15);
    CHECK(distance(slope(1), {1, -1, 0, 0, 1, 1}) < 1e-15);
    const double y = std::cbrt(91), z = std::cbrt(9);
    CHECK(distance(slope(3), {9 / (y * y), -16 / (y * y), 0, 0, 1 / (z * z), 4 / (z * z)}) < 1e-14);
  }
  CHECK_ERROR("lp_pool: p is 0.5, expected 1 or more", result_of("reference:0", x, [](Value v) { return ops::lp_pool(v, {2}, 0.5); }));
}

TEST_CASE("global pools: the mean and the maximum of an image") {
  const Tensor x = numbers(DType::f64, {2, 3, 4, 5});
  std::vector<double> means, peaks;
  for (std::int64_t plane = 0; plane < 6; ++plane) {
    const double* const from = x.data<double>() + plane * 20;
    double sum = 0;
    for (std::int64_t i = 0; i < 20; ++i) sum += from[i];
    means.push_back(sum / 20);
    peaks.push_back(*std::max_element(from, from + 20));
  }
  for (const char* device : devices) {
    CHECK(distance(result_of(device, x, [](Value v) { return ops::global_average_pool(v); }), means) < 1e-14);
    CHECK(distance(result_of(device, x, [](Value v) { return ops::global_max_pool(v, false); }), peaks) == 0);
  }
}

TEST_CASE("upsample: nearest repeats pixels, linear averages neighbours") {
  const Tensor x = numbers(DType::f64, {2, 3, 3, 4});
  for (const char* device : devices) {
    const std::vector<double> nearest = result_of(device, x, [](Value v) { return ops::upsample(v, {3, 2}); });
    REQUIRE(nearest.size() == 6 * 9 * 8);
    for (std::size_t i = 0; i < nearest.size(); ++i) {
      CHECK(nearest[i] == x.data<double>()[i / 72 * 12 + i % 72 / 8 / 3 * 4 + i % 8 / 2]);
    }
    const std::vector<double> linear = result_of(device, x, [](Value v) { return ops::upsample(v, {1, 2}, ops::ResizeMode::linear); });
    REQUIRE(linear.size() == 6 * 3 * 8);
    for (std::size_t i = 0; i < linear.size(); ++i) {
      const std::size_t line = i / 8 * 4, k = i % 8;
      const std::size_t near = k / 2, other = k % 2 == 0 ? (near == 0 ? 0 : near - 1) : std::min<std::size_t>(near + 1, 3);
      CHECK(std::fabs(linear[i] - 0.75 * x.data<double>()[line + near] - 0.25 * x.data<double>()[line + other]) < 1e-14);
    }
  }
}

TEST_CASE("pools: channels last gives the same results") {
  const Tensor x = numbers(DType::f32, {2, 5, 6, 19});
  ops::WindowOptions options;
  options.strides = {2, 1};
  options.same = true;
  ops::WindowOptions last = options;
  last.channels_last = true;
  for (const char* device : devices) {
    for (const bool average : {false, true}) {
      const auto pool = [&](Value v, const ops::WindowOptions& o) {
        return average ? ops::average_pool(v, {3, 2}, o, false) : ops::max_pool(v, {3, 2}, o);
      };
      const auto first = result_of(device, x, [&](Value v) {
        return ops::transpose(pool(ops::transpose(v, {0, 3, 1, 2}), options), {0, 2, 3, 1});
      });
      CHECK(distance(result_of(device, x, [&](Value v) { return pool(v, last); }), first) == 0);
    }
  }
}

TEST_CASE("pools and resize: both backends give the same results and gradients") {
  const Tensor x = numbers(DType::f32, {3, 21, 9, 10});
  ops::WindowOptions window;
  window.strides = {2, 2};
  window.padding = {{1, 1}, {0, 1}};
  window.ceil_mode = true;
  const std::function<Value(Value)> nets[] = {
      [&](Value v) {
        return ops::max_pool(ops::relu(v), {3, 2}, window);
      },
      [&](Value v) {
        return ops::average_pool(ops::tanh(v), {3, 2}, window);
      },
      [&](Value v) {
        return ops::average_pool(ops::max_pool(v, {2, 2}), {2, 2}, {}, false);
      },
      [&](Value v) {
        return ops::max_pool(ops::resize(v, {14, 7}, {.mode = ops::ResizeMode::linear}), {3, 3});
      },
      [&](Value v) {
        return ops::upsample(ops::max_pool(v, {2, 2}), {2, 2});
      },
  };
  for (const auto& net : nets) {
    CHECK(distance(result_of("openblas:0", x, net), result_of("reference:0", x, net)) < 2e-6);
    const auto gradient = [&](Value v) { return gradients(ops::reduce_sum(ops::square(net(v))), {v})[0]; };
    CHECK(distance(result_of("openblas:0", x, gradient), result_of("reference:0", x, gradient)) < 2e-5);
  }
}

TEST_CASE("max_pool: indices are computed only for a gradient") {
  const auto computes_indices = [](bool trains) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {1, 2, 4, 4});
    const Value y = ops::max_pool(x, {2, 2});
    graph.output("y", trains ? gradients(ops::reduce_sum(y), {x})[0] : y);
    const Program program(Context(test_config("openblas:0")), graph);
    for (const NodeInfo& node : program.graph().nodes()) {
      if (node.op == TENON_OP_MaxPool) return node.outputs.size() > 1 && node.outputs[1] != no_id;
    }
    return false;
  };
  CHECK(computes_indices(true));
  CHECK_FALSE(computes_indices(false));
}

TEST_CASE("max_pool_grad: an index outside its channel is rejected by name") {
  Graph graph;
  const Value dy = graph.input("dy", DType::f32, {1, 2, 2}), indices = graph.input("indices", DType::i64, {1, 2, 2});
  graph.output("dx", graph.apply(TENON_OP_MaxPoolGrad, {dy, indices}, {}, {.name = {}, .shape = Shape{1, 2, 4}})[0]);
  for (const char* device : devices) {
    Program program(Context(test_config(device)), graph);
    const Tensor values = numbers(DType::f32, {1, 2, 2});
    CHECK_NOTHROW(program.run({values, Tensor::of(std::vector<std::int64_t>{0, 3, 4, 7}, {1, 2, 2})}));
    const std::string message = message_of([&] { program.run({values, Tensor::of(std::vector<std::int64_t>{0, 3, 1, 7}, {1, 2, 2})}); });
    CHECK(contains(message, "max_pool_grad"));
    CHECK(contains(message, "index 1 at position 2 is out of range [4, 8)"));
  }
}

}  // namespace
}  // namespace tenon::test
