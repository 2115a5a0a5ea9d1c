// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and its gradient.
#include "op_family.h"

namespace tenon::conformance {
namespace {

AttributeBytes from_axis(std::int64_t axis, double epsilon = 1e-5) {
  return tenon_attributes_layer_norm{.axis = axis, .epsilon = epsilon};
}
Dims line_of_shape(const Dims& shape, std::int64_t axis) {
  return {shape.begin() + axis, shape.end()};
}
Dims statistics_of(Dims shape, std::int64_t axis) {
  std::fill(shape.begin() + axis, shape.end(), 1);
  return shape;
}

/// Which optional operands and results are present.
struct Company {
  bool scale = true, bias = true, statistics = true;
};
std::string label(std::int64_t axis, const Company& with) {
  return fmt::format("axis={}{}{}{}", axis, with.scale ? "" : ",no_scale", with.bias ? "" : ",no_bias", with.statistics ? "" : ",y_alone");
}

Variant forward(const Dims& shape, std::int64_t axis, const Company& with = {}, double epsilon = 1e-5) {
  const OperandSpec line = operand(line_of_shape(shape, axis));
  const ResultSpec statistics = with.statistics ? result(statistics_of(shape, axis)) : omitted;
  return {label(axis, with),
          {operand(shape, {.special = Special::not_large}), with.scale ? line : absent, with.bias ? line : absent},
          {result(shape), statistics, statistics},
          from_axis(axis, epsilon)};
}
Variant backward(const Dims& shape, std::int64_t axis, const Company& with = {}) {
  const OperandSpec line = operand(line_of_shape(shape, axis));
  const Dims statistics = statistics_of(shape, axis);
  return {label(axis, with),
          {operand(shape, {.low = -1, .high = 2}), operand(shape), with.scale ? line : absent, operand(statistics, {.low = -1, .high = 1}),
           operand(statistics, {.low = 0.5, .high = 2})},
          {result(shape), with.scale ? result(line.shape) : omitted, with.bias ? result(line.shape) : omitted},
          from_axis(axis)};
}

struct Place {
  Dims shape;
  std::int64_t axis;
  Company with;
};
/// Lines of one element, a few, more than a register block, more than one block of the gradient; few and many lines.
std::vector<Place> places() {
  return {{{1, 2}, 1, {}},
          {{8, 10}, 1, {}},
          {{8, 10}, 0, {.bias = false}},
          {{5, 1}, 1, {}},
          {{2, 3, 4}, 1, {.scale = false}},
          {{2, 3, 4}, 2, {.scale = false, .bias = false, .statistics = false}},
          {{2, 2, 3, 5}, 2, {.statistics = false}},
          {{sized(1003, 103), 37}, 1, {}},
          {{3, sized(5000, 1000)}, 1, {}},
          {{sized(18, 3), 8200}, 1, {}},
          {{0, 4}, 1, {}}};
}

double length_of(const Variant& variant, std::size_t x) {
  const Dims line = line_of_shape(variant.inputs[x].shape, variant.attributes.as<tenon_attributes_layer_norm>().axis);
  return static_cast<double>(count_of(line));
}
constexpr Tolerance forward_bound{
    "Off by the relative error of the variance, a sum of n squares in any sensible order; |y| is 8 or so at most.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const double root = std::sqrt(length_of(variant, 0));
      return {(8 + root) * epsilon(t), (32 + 4 * root) * epsilon(t)};
    }};
constexpr Tolerance backward_bound{
    "dx is made of terms up to 100; it depends on sums over the line, and dscale and dbias are sums over the lines.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const double n = length_of(variant, 1);
      const double lines = static_cast<double>(count_of(variant.inputs[1].shape)) / n;
      const double roots = std::sqrt(n) + std::sqrt(lines);
      return {(4 + roots) * epsilon(t), (128 + 16 * roots) * epsilon(t)};
    }};

/// In a line of one element, or of equal elements, each is the mean: y is the bias.
void lines_without_variance(CaseContext& context, tenon_dtype dtype) {
  const auto one = context.run(net_of(line_of(TENON_OP_LayerNormalization), forward({3, 1}, 1), dtype,
                                      {Array(dtype, {3, 1}, {5, -1000, 0.3}), Array(dtype, {1}, {2}), Array(dtype, {1}, {0.75})}));
  for (std::int64_t i = 0; i < 3; ++i) {
    if (one[0].at(i) != 0.75) throw Failure(fmt::format("a line of one element: expected its bias 0.75, got {}", one[0].str(i)));
  }
  const std::int64_t n = 1001;
  const std::vector<double> ones(n, 1), thirds(n, 1.0 / 3), quarters(n, 0.25);
  const auto flat = context.run(net_of(line_of(TENON_OP_LayerNormalization), forward({1, n}, 1, {}, 0.0009765625), dtype,
                                       {Array(dtype, {1, n}, thirds), Array(dtype, {n}, ones), Array(dtype, {n}, quarters)}));
  for (std::int64_t i = 0; i < n; ++i) {
    if (!(std::fabs(flat[0].at(i) - 0.25) <= 4 * epsilon(dtype)))
      throw Failure("a line of equal elements: expected 0.25, got " + flat[0].str(i));
  }
  if (!(std::fabs(flat[2].at(0) - 32) <= 64 * epsilon(dtype))) throw Failure("inverse_std: expected 32, got " + flat[2].str(0));
}

/// Far from 0 the distances from the mean are as exact as the elements.
void large_mean(CaseContext& context, tenon_dtype dtype) {
  if (dtype != f32 && dtype != f64) return;
  for (const std::int64_t n : {64, 999, 20000}) {
    for (const double middle : {1e4, -3e6}) {
      std::vector<double> x;
      double mean = 0, squares = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const double distance = 0.25 * static_cast<double>(i * 7 % 17 - 8);
        x.push_back(middle + distance);
        mean += distance;
        squares += distance * distance;
      }
      mean /= static_cast<double>(n);
      const double inverse_std = 1 / std::sqrt(squares / static_cast<double>(n) - mean * mean);
      const auto y = context.run(net_of(line_of(TENON_OP_LayerNormalization), forward({1, n}, 1, {.scale = false, .bias = false}, 0), dtype,
                                        {Array(dtype, {1, n}, x), Array(), Array()}));
      // In f64 the mean itself is rounded, by its own magnitude.
      const double small = (64 + (dtype == f64 ? std::fabs(middle) : 0)) * epsilon(dtype);
      for (std::int64_t i = 0; i < n; ++i) {
        const double expected = (x[static_cast<std::size_t>(i)] - middle - mean) * inverse_std;
        if (!(std::fabs(y[0].at(i) - expected) <= small))
          throw Failure(fmt::format("element {} of {} about {}: expected {:.12g}, got {}", i, n, middle, expected, y[0].str(i)));
      }
      if (!(std::fabs(y[2].at(0) - inverse_std) <= small * inverse_std))
        throw Failure(fmt::format("inverse_std of {} elements about {}: expected {:.12g}, got {}", n, middle, inverse_std, y[2].str(0)));
    }
  }
}

/// The gradient of x with that of a residual connection added, by one kernel or two; the lines are as long as in `places`.
void gradient_with_residual(CaseContext& context, tenon_dtype dtype) {
  const tenon_attributes_none none{sizeof none, 0};
  for (const Dims& shape : std::vector<Dims>{{8, 10}, {5, 1}, {40, 64}, {3, 37}, {2, 1000}, {2, 8200}}) {
    const Variant variant = backward(shape, 1);
    std::int64_t step = 1;
    const auto values = [&](const Dims& of) {
      Array array(dtype, of);
      step += 2;
      for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i * step % 41 - 20) / 16);
      return array;
    };
    Net net;
    std::vector<std::uint32_t> operands, results{net.internal(dtype, shape)};
    for (const OperandSpec& input : variant.inputs) operands.push_back(net.input(values(input.shape)));
    for (int i = 0; i < 2; ++i) results.push_back(net.output(dtype, {shape[1]}));
    const std::uint32_t residual = net.input(values(shape)), sum = net.output(dtype, shape);
    net.node(TENON_OP_LayerNormalizationGrad, line_of(TENON_OP_LayerNormalizationGrad).version, variant.attributes.data(), operands,
             results);
    net.node(TENON_OP_Add, line_of(TENON_OP_Add).version, &none, {results[0], residual}, {sum});
    const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
    const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string wrong = compare(apart[i], together[i], {2 * epsilon(dtype), 8 * epsilon(dtype)});  // |dx| is 4 or so at most
      if (!wrong.empty())
        throw Failure(fmt::format("lines of {}, output {}: {}, expected the result of separate kernels", shape[1], i, wrong));
    }
  }
}

/// A sum that has the gradient of x and, by way of a product's residual, another result of the same node: fused, neither may wait for the
/// other.
void gradient_with_product(CaseContext& context, tenon_dtype dtype) {
  const tenon_attributes_none none{sizeof none, 0};
  const Dims shape{8, 10};
  const Variant variant = backward(shape, 1);
  const auto values = [&](const Dims& of) {
    Array array(dtype, of);
    for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i * 7 % 41 - 20) / 16);
    return array;
  };
  Net net;
  const auto add = [&](std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
    net.node(TENON_OP_Add, line_of(TENON_OP_Add).version, &none, {a, b}, {sum});
    return sum;
  };
  const std::uint32_t product = net.internal(dtype, {1, 80}), reshaped = net.internal(dtype, shape);
  net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &none, {net.input(values({1, 4})), net.input(values({4, 80}))}, {product});
  std::vector<std::uint32_t> operands;
  for (const OperandSpec& input : variant.inputs) operands.push_back(net.input(values(input.shape)));
  const std::uint32_t dx = net.internal(dtype, shape), dscale = net.internal(dtype, {10}), dbias = net.output(dtype, {10});
  net.node(TENON_OP_LayerNormalizationGrad, line_of(TENON_OP_LayerNormalizationGrad).version, variant.attributes.data(), operands,
           {dx, dscale, dbias});
  const std::uint32_t residual = add(net.input(values(shape)), dscale, net.internal(dtype, shape));
  net.node(TENON_OP_Reshape, line_of(TENON_OP_Reshape).version, &none, {product}, {reshaped});
  add(dx, add(reshaped, residual, net.internal(dtype, shape)), net.output(dtype, shape));
  const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
  const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
  const std::string wrong =
      compare(apart[1], together[1], {4 * epsilon(dtype), 64 * epsilon(dtype)});  // sums of up to 20 in four roundings
  if (!wrong.empty()) throw Failure(fmt::format("{}, expected the result of separate kernels", wrong));
}

}  // namespace

std::vector<OpCase> cases_layer_norm() {
  std::vector<Variant> forwards, backwards;
  for (const auto& [shape, axis, with] : places()) {
    forwards.push_back(forward(shape, axis, with));
    backwards.push_back(backward(shape, axis, with));
  }
  const std::vector<double> x{1.0, 2.0, 4.0, -1.0, 0.5, 3.0, 0.0, -2.0, 1.0, 2.0, 2.5, -4.0};
  const std::vector<double> scale{1.0, -2.0, 0.5, 1.5, 0.25, -1.0}, bias{0.0, 1.0, -1.0, 0.5, 0.25, 2.0};
  const std::vector<double> mean{1.5833333333333333, -0.08333333333333333}, inverse_std{0.6084230257470928, 0.43847003565209913};
  return {
      // PyTorch 1.13 in f64
      {.op = TENON_OP_LayerNormalization,
       .variants = forwards,
       .bound = forward_bound,
       .gradient = {0, 1, 2},
       .gradient_ops = {TENON_OP_LayerNormalizationGrad},
       .golden = {{"pytorch",
                   forward({2, 2, 3}, 1),
                   {x, scale, bias},
                   {{-0.35491343168580414, 0.4929808118774228, -0.264822177222263, -1.8576392247699842, 0.08521876386016236,
                     1.1380673801916186, 0.03653916963767495, 2.680801803333047, -0.762495397355113, 1.8702188614128104, 0.5331785646919808,
                     3.717340972970722},
                    mean,
                    inverse_std}}},
       .extras = {{"lines_without_variance", lines_without_variance}, {"large_mean", large_mean}}},
      {.op = TENON_OP_LayerNormalizationGrad,
       .variants = backwards,
       .bound = backward_bound,
       .golden = {{"pytorch",
                   backward({2, 2, 3}, 1),
                   {{0.5, -1.0, 2.0, 1.0, 0.25, -0.5, 1.0, 1.0, -2.0, 0.75, -1.5, 0.5}, x, scale, mean, inverse_std},
                   {{-0.26589178836244565, 0.6571046721718359, 0.06940549025202825, 0.3218073935573621, -0.53725782308362,
                     -0.2451679445351606, 0.5591371204259334, -0.5829927715376916, -0.40444305837460137, 0.44066565988977324,
                     -0.2603594473365438, 0.24799249693312997},
                    {-0.14091754620522712, -1.093910495727812, 1.9906928805313997, -0.8866500524735843, -1.8638526242917224,
                     -1.2896367963895516},
                    {1.5, 0, 0, 1.75, -1.25, 0}}}},
       .extras = {{"gradient_with_residual", gradient_with_residual}, {"gradient_with_product", gradient_with_product}}},
  };
}

}  // namespace tenon::conformance
