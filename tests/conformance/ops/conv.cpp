// SPDX-License-Identifier: Apache-2.0
// Conv and its gradients with respect to image and filters.
#include <numeric>

#include "convolution.h"

namespace tenon::conformance {
namespace {

struct Shape {
  Convolution convolution;
  bool bias = false;
  Special special = Special::none;
};

/// Shapes for every algorithm that a fast kernel may use, with channels and sizes that do and do not fill its blocks.
std::vector<Shape> shapes() {
  const std::int64_t n = sized(30, 15);
  return {
      // 1x1: a plain product
      {{2, 5, 7, {6, 5}, {1, 1}}, true, Special::not_large},
      {{1, 64, 64, {7, 7}, {1, 1}}},
      {{1, 16, 17, {7, 8}, {1, 1}, {2, 2}}, true},
      {{1, 17, 3, {5, 5}, {1, 1}, {}, {}, {1, 1}, {1, 1}}},
      // 3x3, stride 1: sizes on both sides of multiples of 2, 4 and 6
      {{1, 1, 16, {4, 4}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, true},
      {{1, 3, 17, {6, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{2, 16, 16, {7, 7}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, true},
      {{1, 17, 64, {13, 13}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{1, 64, 16, {14, 14}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, true},
      {{1, 16, 1, {13, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{2, 3, 3, {4, 14}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{1, 64, 64, {7, 7}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{1, sized(33, 17), 40, {n, n + 1}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{2, 3, 5, {6, 9}, {3, 3}}},
      {{1, 2, 2, {3, 3}, {3, 3}}},
      {{1, 4, 4, {5, 6}, {3, 3}, {}, {}, {2, 0}, {0, 2}}},
      {{1, 3, 4, {1, 2}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      // other kernels and strides
      {{1, 16, 17, {13, 14}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}}, true, Special::not_large},
      {{1, 64, 64, {16, 16}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}}, true},
      {{1, 80, 96, {19, 22}, {3, 3}, {2, 2}, {}, {1, 0}, {0, 1}}},
      {{2, 3, 8, {9, 8}, {3, 3}, {2, 2}, {}, {0, 0}, {1, 1}}},
      {{1, 3, 16, {9, 11}, {5, 5}, {}, {}, {2, 2}, {2, 2}}, true},
      {{1, 16, 17, {8, 8}, {5, 5}, {}, {}, {2, 2}, {2, 2}}},
      {{1, 3, 16, {21, 20}, {7, 7}, {2, 2}, {}, {3, 3}, {3, 3}}, true, Special::not_large},
      {{1, 3, 8, {27, 26}, {11, 11}, {4, 4}, {}, {2, 2}, {2, 2}}},
      {{2, 4, 6, {5, 6}, {3, 2}, {2, 1}, {}, {0, 1}, {1, 0}}, true},
      {{1, 2, 3, {4, 9}, {1, 5}, {3, 2}, {}, {0, 1}, {0, 3}}},
      {{1, 3, 2, {2, 2}, {5, 5}, {}, {}, {4, 4}, {4, 4}}},
      // 5x5 of many channels
      {{1, 64, 40, {13, 14}, {5, 5}, {}, {}, {2, 2}, {2, 2}}, true},
      {{2, 40, 64, {11, 9}, {5, 5}, {}, {}, {1, 3}, {3, 0}}},
      {{1, 48, 48, {6, 17}, {5, 5}, {}, {}, {5, 4}, {4, 6}}},
      {{1, 5, 6, {9, 9}, {3, 3}, {}, {2, 2}, {2, 2}, {2, 2}}, true},
      {{1, 3, 4, {8, 11}, {2, 3}, {1, 2}, {3, 2}, {1, 0}, {0, 1}}},
      // groups, also of one channel each
      {{2, 6, 9, {6, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 3}, true},
      {{1, 32, 16, {5, 5}, {1, 1}, {}, {}, {}, {}, 2}},
      {{1, 16, 32, {7, 6}, {5, 5}, {2, 2}, {}, {2, 2}, {2, 2}, 2}},
      {{2, 16, 16, {9, 10}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 16}, true, Special::not_large},
      {{1, 17, 17, {9, 8}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}, 17}},
      {{1, 17, 17, {7, 9}, {5, 5}, {}, {}, {2, 2}, {2, 2}, 17}, true},
      {{1, 3, 3, {8, 8}, {5, 5}, {2, 2}, {}, {1, 1}, {2, 2}, 3}},
      {{1, 16, 32, {6, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 16}, true},
      {{1, 4, 8, {9, 9}, {3, 3}, {2, 1}, {1, 2}, {1, 2}, {1, 2}, 4}},
      // several images, each of which is a product of its own or a part of a large one
      {{3, 16, 32, {31, 33}, {3, 3}, {2, 2}, {}, {1, 0}, {0, 1}, 2}, true},
      {{2, 16, 16, {14, 15}, {3, 3}, {}, {2, 2}, {2, 1}, {1, 2}}, true},
      {{2, 48, 32, {15, 16}, {1, 1}}},
      {{4, 32, 32, {16, 17}, {1, 1}, {}, {}, {}, {}, 2}, true},
      // one dimension
      {{2, 3, 5, {11}, {3}, {}, {}, {1}, {1}}, true, Special::none},
      {{1, 16, 17, {20}, {5}, {2}, {}, {2}, {2}}, false, Special::not_large},
      {{2, 4, 3, {9}, {1}}},
      {{1, 2, 4, {13}, {3}, {}, {3}, {2}, {4}}},
      {{1, 6, 6, {12}, {4}, {}, {}, {1}, {2}, 6}, true},
      // empty
      {{0, 3, 4, {5, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, true},
  };
}

std::vector<Variant> variants(tenon_op op) {
  std::vector<Variant> list;
  for (const Shape& shape : shapes()) list.push_back(variant_of(shape.convolution, op, shape.bias, shape.special));
  return list;
}

Array numbers(tenon_dtype dtype, const Dims& shape, Random& random) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform(-2, 2));
  return array;
}
Array whole_numbers(tenon_dtype dtype, const Dims& shape, Random& random) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(random.integer(-1, 2)));
  return array;
}
double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

Net one_node(const Convolution& shape, tenon_op op, tenon_dtype dtype, const std::vector<Array>& inputs) {
  return net_of(line_of(op), variant_of(shape, op), dtype, inputs);
}

// ---------------------------------------------------------------- random shapes

Convolution any_shape(Random& random) {
  const auto dims = static_cast<std::size_t>(random.integer(1, 3));
  Convolution shape{random.integer(1, 3), 0, 0, {}, {}};
  shape.groups = random.integer(0, 3) == 0 ? random.integer(2, 4) : 1;
  shape.channels = shape.groups * random.integer(1, 5);
  shape.filters = shape.groups * random.integer(1, 5);
  add_random_dimensions(shape, dims, 6, 7, random);
  return shape;
}

/// Compares forward and both gradients with the oracle and with each other: each is the others' transpose, so that
/// <dy, conv(x, w)> = <conv_input_grad(dy, w), x> = <conv_weight_grad(dy, x), w>.
void random_shapes(CaseContext& context, tenon_dtype dtype) {
  const int count = dtype == f32 || dtype == f64 ? 200 : 20;
  for (int index = 0; index < count; ++index) {
    Random random(seed_for(context.seed, fmt::format("conv {} {}", index, dtype)));
    const Convolution shape = any_shape(random);
    const Array x = numbers(dtype, shape.x(), random), w = numbers(dtype, shape.w(), random), dy = numbers(dtype, shape.y(), random);
    const auto magnitude = [](const Array& operand, const Bound& bound, const Array& result) {
      double sum = 0;
      for (std::int64_t i = 0; i < operand.count(); ++i)
        sum += std::fabs(operand.at(i)) * (bound.absolute + bound.relative * std::fabs(result.at(i)));
      return sum;
    };
    double products[3], errors[3];
    const struct {
      tenon_op op;
      const Array &a, &b, &with;
    } products_of[] = {{TENON_OP_Conv, x, w, dy}, {TENON_OP_ConvInputGrad, dy, w, x}, {TENON_OP_ConvWeightGrad, dy, x, w}};
    for (std::size_t r = 0; r < 3; ++r) {
      const auto& product = products_of[r];
      std::vector<Array> inputs{product.a, product.b};
      const Bound bound = convolution_bound(shape, product.op, dtype);
      if (product.op == TENON_OP_Conv) inputs.emplace_back();
      const auto where = [&] {
        return fmt::format("{} of x {}, w {}, {}", line_of(product.op).stem, str(shape.x()), str(shape.w()), shape.label());
      };
      const Array got = context.run(one_node(shape, product.op, dtype, inputs))[0];
      if (context.oracle != nullptr) {
        std::vector<Array> wide;
        for (const Array& input : inputs) wide.push_back(input.dtype() == TENON_DTYPE_NONE ? input : input.as(f64));
        const std::string wrong = compare(context.judge(one_node(shape, product.op, f64, wide))[0], got, bound);
        if (!wrong.empty()) throw Failure(fmt::format("{}: {}", where(), wrong));
      }
      products[r] = dot(got, product.with);
      errors[r] = magnitude(product.with, bound, got);
      if (r > 0 && !(std::fabs(products[r] - products[0]) <= errors[r] + errors[0])) {
        throw Failure(
            fmt::format("{}: its product with the third operand is {:.17g}, that of conv {:.17g}", where(), products[r], products[0]));
      }
    }
  }
}

// ---------------------------------------------------------------- two convolutions in sequence

/// The gradient with respect to the first filters passes through the second ones, which it must read instead of an image. The loss is
/// linear in each operand, so that a step of any length gives its gradient.
void conv_input_gradient_uses_filter(CaseContext& context, tenon_dtype dtype) {
  const Convolution first{2, 2, 3, {6, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, second{2, 3, 2, {6, 5}, {3, 3}, {2, 1}, {}, {1, 0}, {0, 1}};
  Random random(seed_for(context.seed, "stacked"));
  const Array x = whole_numbers(dtype, first.x(), random), w1 = whole_numbers(dtype, first.w(), random),
              w2 = whole_numbers(dtype, second.w(), random), dy = whole_numbers(dtype, second.y(), random);
  const auto add = [&](Net& net, tenon_op op, const Convolution& shape, std::vector<std::uint32_t> operands, std::uint32_t out) {
    if (op == TENON_OP_Conv) operands.push_back(TENON_NO_INDEX);
    net.node(op, line_of(op).version, shape.attributes().data(), operands, {out});
  };
  const auto loss = [&](const Array& image, const Array& filters) {
    Net net;
    const std::uint32_t in = net.input(image), a = net.input(filters), b = net.input(w2);
    const std::uint32_t middle = net.internal(dtype, first.y()), out = net.output(dtype, second.y());
    add(net, TENON_OP_Conv, first, {in, a}, middle);
    add(net, TENON_OP_Conv, second, {middle, b}, out);
    return dot(context.run(net)[0], dy);
  };
  Net net;
  const std::uint32_t in = net.input(x), a = net.input(w1), b = net.input(w2), d = net.input(dy);
  const std::uint32_t dmiddle = net.internal(dtype, first.y()), dx = net.output(dtype, first.x()), dw1 = net.output(dtype, first.w());
  add(net, TENON_OP_ConvInputGrad, second, {d, b}, dmiddle);
  add(net, TENON_OP_ConvInputGrad, first, {dmiddle, a}, dx);
  add(net, TENON_OP_ConvWeightGrad, first, {dmiddle, in}, dw1);
  const auto gradients = context.run(net);
  const double before = loss(x, w1);
  const auto expect = [&](const char* what, const Array& gradient, const Array& operand, auto&& loss_of) {
    Array moved = operand, step = operand;
    for (std::int64_t i = 0; i < operand.count(); ++i) {
      step.set(i, static_cast<double>(random.integer(-1, 2)));
      moved.set(i, operand.at(i) + step.at(i));
    }
    // all numbers are small integers: unequal values differ by 1 or more
    const double expected = loss_of(moved) - before, got = dot(gradient, step);
    if (!(std::fabs(expected - got) <= 0.25 + 4 * epsilon(dtype) * std::fabs(expected))) {
      throw Failure(fmt::format("a step of {} changes the loss by {}, its gradient says {}", what, expected, got));
    }
  };
  expect("x", gradients[0], x, [&](const Array& moved) { return loss(moved, w1); });
  expect("the first filters", gradients[1], w1, [&](const Array& moved) { return loss(x, moved); });
}

// ---------------------------------------------------------------- 1-d, NaN and fusion

/// A 1-d convolution equals a 2-d convolution of height 1.
void conv1d_is_conv2d_of_height_1(CaseContext& context, tenon_dtype dtype) {
  Random random(seed_for(context.seed, "conv1d"));
  const Convolution line{2, 4, 6, {13}, {3}, {2}, {2}, {1}, {3}, 2}, flat{2, 4, 6, {1, 13}, {1, 3}, {1, 2}, {1, 2}, {0, 1}, {0, 3}, 2};
  const Array x = numbers(dtype, line.x(), random), w = numbers(dtype, line.w(), random), dy = numbers(dtype, line.y(), random);
  const auto as = [](const Array& from, const Dims& shape) {
    Array to(from.dtype(), shape);
    for (std::int64_t i = 0; i < from.count(); ++i) to.set(i, from.at(i));
    return to;
  };
  const Array x2 = as(x, flat.x()), w2 = as(w, flat.w()), dy2 = as(dy, flat.y());
  const auto expect = [&](tenon_op op, const std::vector<Array>& of_line, const std::vector<Array>& of_flat, const Dims& shape) {
    const Array got = context.run(one_node(line, op, dtype, of_line))[0];
    const std::string wrong =
        compare(as(context.run(one_node(flat, op, dtype, of_flat))[0], shape), got, convolution_bound(line, op, dtype).times(2));
    if (!wrong.empty()) throw Failure(fmt::format("{}: {}, expected the result of height 1", line_of(op).stem, wrong));
  };
  expect(TENON_OP_Conv, {x, w, {}}, {x2, w2, {}}, line.y());
  expect(TENON_OP_ConvInputGrad, {dy, w}, {dy2, w2}, line.x());
  expect(TENON_OP_ConvWeightGrad, {dy, x}, {dy2, x2}, line.w());
}

/// A NaN in the image reaches every result whose window contains it, whatever the algorithm.
void nan_reaches_what_sees_it(CaseContext& context, tenon_dtype dtype) {
  const Convolution shape{1, 3, 5, {9, 10}, {3, 3}, {}, {}, {1, 1}, {1, 1}};
  Random random(seed_for(context.seed, "nan"));
  Array x = numbers(dtype, shape.x(), random);
  const Array w = numbers(dtype, shape.w(), random);
  const std::int64_t row = 4, column = 7;
  x.set((1 * 9 + row) * 10 + column, nan);
  const Array y = context.run(one_node(shape, TENON_OP_Conv, dtype, {x, w, {}}))[0];
  for (std::int64_t o = 0; o < 5; ++o) {
    for (std::int64_t i = row - 1; i <= row + 1; ++i) {
      for (std::int64_t j = column - 1; j <= column + 1; ++j) {
        const std::int64_t e = (o * 9 + i) * 10 + j;
        if (!std::isnan(y.at(e)))
          throw Failure(fmt::format("y[0,{},{},{}] is {}, expected NaN since its window contains one", o, i, j, y.str(e)));
      }
    }
  }
}

/// Conv with an addition and an activation gives the same results fused and separately.
void fused_epilogue(CaseContext& context, tenon_dtype dtype) {
  const Convolution all[] = {{2, 5, 17, {6, 7}, {1, 1}},
                             {1, 16, 17, {7, 9}, {3, 3}, {}, {}, {1, 1}, {1, 1}},
                             {1, 3, 16, {9, 8}, {5, 5}, {2, 2}, {}, {2, 2}, {2, 2}},
                             {1, 17, 17, {7, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 17},
                             {2, 4, 6, {11}, {3}, {}, {}, {1}, {1}}};
  const tenon_attributes_none none{sizeof none, 0};
  for (const Convolution& shape : all) {
    Random random(seed_for(context.seed, "epilogue" + str(shape.x())));
    const Array x = numbers(dtype, shape.x(), random), w = numbers(dtype, shape.w(), random), b = numbers(dtype, {shape.filters}, random),
                residual = numbers(dtype, shape.y(), random);
    for (const bool with_residual : {false, true}) {
      for (const tenon_op activation : {TENON_OP_NONE, TENON_OP_Relu, TENON_OP_Sigmoid, TENON_OP_Tanh}) {
        Net net;
        std::vector<std::uint32_t> operands{net.input(x), net.input(w, {}, TENON_VALUE_PARAMETER), net.input(b, {}, TENON_VALUE_PARAMETER)};
        std::uint32_t value = 0;
        const auto next = [&](bool last) { return value = last ? net.output(dtype, shape.y()) : net.internal(dtype, shape.y()); };
        const std::uint32_t first = next(!with_residual && activation == TENON_OP_NONE);
        net.node(TENON_OP_Conv, line_of(TENON_OP_Conv).version, shape.attributes().data(), operands, {first});
        if (with_residual) {
          const std::uint32_t other = net.input(residual), sum = next(activation == TENON_OP_NONE);
          net.node(TENON_OP_Add, line_of(TENON_OP_Add).version, &none, {first, other}, {sum});
        }
        if (activation != TENON_OP_NONE) {
          const std::uint32_t before = value, after = next(true);
          net.node(activation, line_of(activation).version, &none, {before}, {after});
        }
        const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
        const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
        // the sum may round in between, with addends up to 2; activations have slopes up to 1 and errors up to 8 epsilon
        Bound bound = convolution_bound(shape, TENON_OP_Conv, dtype).times(2);
        bound.relative += 2 * epsilon(dtype);
        bound.absolute += (8 + 4 * static_cast<double>(shape.terms(TENON_OP_Conv))) * epsilon(dtype);
        const std::string wrong = compare(apart[0], together[0], bound);
        if (!wrong.empty()) {
          throw Failure(fmt::format("conv of x {}, w {}{}{}: {}, expected the result of separate kernels", str(shape.x()), str(shape.w()),
                                    with_residual ? " + residual" : "",
                                    activation == TENON_OP_NONE ? "" : std::string(" + ") + line_of(activation).stem, wrong));
        }
      }
    }
  }
}

}  // namespace

std::vector<OpCase> cases_conv() {
  // PyTorch 1.13: conv2d and conv1d of integers, and their gradients
  const Convolution pad1{1, 2, 2, {3, 3}, {3, 3}, {}, {}, {1, 1}, {1, 1}};
  const Convolution mixed{1, 2, 4, {4, 5}, {2, 2}, {2, 1}, {1, 2}, {1, 0}, {0, 2}, 2};
  const Convolution line{2, 2, 1, {5}, {3}, {2}, {}, {1}, {1}};
  const std::vector<double> mixed_x{1, -1, -1, 0,  2, -1, 1, 2, -2, -2, 1, 0, 1, 0, 0,  -2, -2, -2, 1,  -1,
                                    2, -1, -1, -2, 0, 2,  2, 1, 2,  1,  2, 1, 2, 1, -2, 1,  0,  1,  -2, -1};
  const std::vector<double> mixed_w{-1, -2, 0, 0, -2, -1, -1, -2, 2, -2, 1, -1, 0, 1, -2, 2};
  const std::vector<double> mixed_dy{2, 1, 2, 2,  2,  -2, 0,  2, -2, 1, 1,  0,  1,  -2, 2, 2, 1,  -1, 1, -1,
                                     0, 1, 2, -1, -2, 2,  -2, 2, 2,  0, -2, -2, -1, 2,  2, 2, -2, 2,  0, 0};
  const std::vector<double> line_x{0, -1, 2, 2, -1, -1, -2, 1, -2, -1, 0, -1, 2, -1, -1, 2, -1, -2, -2, 0}, line_w{-2, 1, -1, 1, -1, 0},
      line_dy{-2, 1, 1, 2, 0, 0};
  return {
      {.op = TENON_OP_Conv,
       .variants = variants(TENON_OP_Conv),
       .bound = bound_of_convolution<TENON_OP_Conv>,
       .gradient = {0, 1, 2},
       .gradient_ops = {TENON_OP_ConvInputGrad, TENON_OP_ConvWeightGrad},
       .golden = {{"padded",
                   variant_of(pad1, TENON_OP_Conv, true),
                   {{2, 2, 1, -2, 1, 2, 0, 1, 0, 1, -1, -1, -1, 2, 1, -1, -1, 1},
                    {2, 1, -1, 2, -1, 2, 2,  -1, 2,  2, 2, -2, -1, 0,  1,  -2, -2, -2,
                     0, 2, -1, 1, 1,  1, -1, 2,  -1, 0, 1, -2, 0,  -1, -2, 2,  1,  -1},
                    {-1, -2}},
                   {{2, -4, -3, 15, 8, 0, -9, -5, 12, -5, 7, 10, -2, -3, -1, -8, -2, 3}}},
                  {"strided_dilated_grouped",
                   variant_of(mixed, TENON_OP_Conv),
                   {mixed_x, mixed_w, {}},
                   {{0, 0, 0,  0,  0, -3, 3, 2, 2, 2, 1,  1,  -3, 0, -2, -3, 0, -3, 4,  4,
                     3, 1, -1, -2, 0, 2,  0, 4, 5, 0, -6, -2, 2,  4, 0,  1,  2, -7, -2, 4}}},
                  {"line", variant_of(line, TENON_OP_Conv, true), {line_x, line_w, {1}}, {{3, 0, -5, 0, 7, 0}}}},
       .extras = {{"random_shapes", random_shapes},
                  {"conv_input_gradient_uses_filter", conv_input_gradient_uses_filter},
                  {"conv1d_is_conv2d_of_height_1", conv1d_is_conv2d_of_height_1},
                  {"nan_reaches_what_sees_it", nan_reaches_what_sees_it},
                  {"fused_epilogue", fused_epilogue}}},
      {.op = TENON_OP_ConvInputGrad,
       .variants = variants(TENON_OP_ConvInputGrad),
       .bound = bound_of_convolution<TENON_OP_ConvInputGrad>,
       .gradient = {0, 1},
       .gradient_ops = {TENON_OP_Conv, TENON_OP_ConvWeightGrad},
       .golden = {{"strided_dilated_grouped",
                   variant_of(mixed, TENON_OP_ConvInputGrad),
                   {mixed_dy, mixed_w},
                   {{-1, 0, -3, 2,   -4,  -2, -2, 2, -1, -2, -2, -1, -3, -3, 3, 0, 0, 0, 0, 0,
                     4,  5, 0,  -10, -10, 4,  -4, 2, 6,  -2, -2, 2,  0,  0,  2, 0, 0, 0, 0, 0}}},
                  {"line", variant_of(line, TENON_OP_ConvInputGrad), {line_dy, line_w}, {{-2, 0,  1, -3, 1, 2,  1, -1, 1, -1,
                                                                                          2,  -2, 0, 0,  0, -2, 0, 0,  0, 0}}}}},
      {.op = TENON_OP_ConvWeightGrad,
       .variants = variants(TENON_OP_ConvWeightGrad),
       .bound = bound_of_convolution<TENON_OP_ConvWeightGrad>,
       .gradient = {0, 1},
       .gradient_ops = {TENON_OP_Conv, TENON_OP_ConvInputGrad},
       .golden = {{"strided_dilated_grouped",
                   variant_of(mixed, TENON_OP_ConvWeightGrad),
                   {mixed_dy, mixed_x},
                   {{8, -8, 3, 0, -3, 4, 5, 3, 6, 0, 7, -4, 2, 0, 1, 4}}},
                  {"line", variant_of(line, TENON_OP_ConvWeightGrad), {line_dy, line_x}, {{1, 1, 2, -4, 6, 0}}}}},
  };
}

}  // namespace tenon::conformance
