// SPDX-License-Identifier: Apache-2.0
// BatchNormalization, BatchNormTrain and BatchNormTrainGrad: statistics per channel.
#include "op_family.h"

namespace tenon::conformance {
namespace {

const std::vector<tenon_dtype> floats{f16, bf16, f32, f64};
/// The bounds of these extras hold for formats with enough digits.
bool has_digits(tenon_dtype dtype) {
  return dtype == f32 || dtype == f64;
}

struct Place {
  Dims shape;
  std::int64_t axis;
};
/// Matrices of few and of many channels, more rows than one thread takes, images, more dimensions than an image, other axes.
std::vector<Place> places() {
  return {{{2, 3}, 1},
          {{8, 10}, 1},
          {{7, 1}, 1},
          {{sized(5003, 503), 3}, 1},
          {{sized(700, 70), 100}, 1},
          {{5, 300}, 1},
          {{4, 3, 5}, 1},
          {{2, 3, 4, 5}, 1},
          {{sized(16, 3), 20, 9, 7}, 1},
          {{2, 3, 2, 3, 4}, 1},
          {{2, 2, 3, 10, 30}, 1},
          {{6, 270}, 0},
          {{3, 2, 4, 5}, 0},
          {{3, 2, 4, 5}, 2},
          {{3, 2, 4}, 2}};
}
std::int64_t channels_of(const Dims& shape, std::int64_t axis) {
  return shape[static_cast<std::size_t>(axis)];
}
double elements_of_channel(const Variant& variant, std::size_t x) {
  const Dims& shape = variant.inputs[x].shape;
  const std::int64_t channels = channels_of(shape, variant.attributes.as<tenon_attributes_batch_norm>().axis);
  return channels == 0 ? 0 : static_cast<double>(count_of(shape) / channels);
}

AttributeBytes attributes_of(std::int64_t axis, double epsilon = 1e-5, double momentum = 0, bool biased = false) {
  return tenon_attributes_batch_norm{.biased = biased, .axis = axis, .epsilon = epsilon, .momentum = momentum};
}

/// Values per channel, in the accumulation dtype.
OperandSpec per_channel(const Dims& channels, const Values& values = {}) {
  return operand(channels, values, dtype_of_sums);
}
ResultSpec of_channels(const Dims& channels) {
  return result(channels, dtype_of_sums);
}
Array numbers(tenon_dtype dtype, const std::vector<double>& values) {
  return {resolved(dtype_of_sums, dtype), {static_cast<std::int64_t>(values.size())}, values};
}

Variant given(const Dims& shape, std::int64_t axis, double epsilon = 1e-5) {
  const Dims channels{channels_of(shape, axis)};
  return {fmt::format("axis={}", axis),
          {operand(shape, {.special = Special::not_large}), per_channel(channels), per_channel(channels), per_channel(channels),
           per_channel(channels, {.low = 0.1, .high = 2})},
          {result(shape)},
          attributes_of(axis, epsilon)};
}

/// The running values are updated in place, as in a training step.
Variant train(const Dims& shape, std::int64_t axis, double momentum = 0.1, double epsilon = 1e-5, bool biased = false) {
  const Dims channels{channels_of(shape, axis)};
  return {
      fmt::format("axis={}{}", axis, biased ? ",biased" : ""),
      {operand(shape), per_channel(channels), per_channel(channels), per_channel(channels), per_channel(channels, {.low = 0.1, .high = 2})},
      {result(shape), of_channels(channels), of_channels(channels), of_channels(channels), of_channels(channels)},
      attributes_of(axis, epsilon, momentum, biased),
      {{3, 1}, {4, 2}}};
}

Variant train_grad(const Dims& shape, std::int64_t axis) {
  const Dims channels{channels_of(shape, axis)};
  return {fmt::format("axis={}", axis),
          {operand(shape, {.low = -1, .high = 2}), operand(shape), per_channel(channels), per_channel(channels, {.low = -1, .high = 1}),
           per_channel(channels, {.low = 0.5, .high = 2})},
          {result(shape), of_channels(channels), of_channels(channels)},
          attributes_of(axis)};
}

constexpr Tolerance given_bound{"x - mean, up to 4, rounds by epsilon / 2, and so does the factor scale / sqrt(var + epsilon), up to 7.", 2,
                                48};
constexpr Tolerance train_bound{
    "Distances from the mean are exact but for a rounding, so y and inverse_std are off by the error of the variance, "
    "a sum of squares in any sensible order: relative, as long as partial sums are no worse than sqrt(n) terms in a "
    "row. |y| is 8 or so at most.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const double root = std::sqrt(elements_of_channel(variant, 0));
      return {(8 + root) * epsilon(t), (32 + 4 * root) * epsilon(t)};
    }};
constexpr Tolerance train_grad_bound{
    "dx is put together from terms up to 100, each off by some epsilon; the sums in it as those of the "
    "statistics, with terms that cancel.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const double root = std::sqrt(elements_of_channel(variant, 1));
      return {(4 + root) * epsilon(t), (128 + 16 * root) * epsilon(t)};
    }};

std::vector<Variant> all_given() {
  std::vector<Variant> variants;
  for (const auto& [shape, axis] : places()) variants.push_back(given(shape, axis));
  variants.push_back(given({0, 3, 4}, 1));
  variants.push_back(given({4, 0}, 1));
  variants.push_back(given({1, 3}, 1));
  return variants;
}
std::vector<Variant> all_train() {
  std::vector<Variant> variants;
  for (const auto& [shape, axis] : places()) variants.push_back(train(shape, axis));
  variants.push_back(train({4, 3, 5}, 1, 0.01, 1e-3, true));
  variants.push_back(train({4, 0}, 1));
  return variants;
}
std::vector<Variant> all_train_grad() {
  std::vector<Variant> variants;
  for (const auto& [shape, axis] : places()) variants.push_back(train_grad(shape, axis));
  return variants;
}

// ---------------------------------------------------------------- extras

std::vector<double> repeated(std::initializer_list<double> values, std::size_t times) {
  std::vector<double> list;
  for (std::size_t i = 0; i < times; ++i) list.insert(list.end(), values);
  return list;
}

void expect(const Array& got, std::vector<double> expected, const Bound& bound, const char* what) {
  const std::string wrong = compare(Array(f64, got.shape(), expected), got, bound);
  if (!wrong.empty()) throw Failure(fmt::format("{}: {}", what, wrong));
}

Bound few(tenon_dtype dtype) {
  return {8 * epsilon(dtype), 8 * epsilon(dtype)};
}

/// y = 0 * old + 1 * result, not the reverse: the result must not depend on the old content.
void batch_norm_alpha_beta(CaseContext& context, tenon_dtype dtype) {
  const Dims shape{2, 2, 2, 1};
  const std::vector<double> x{1, 3, -2, 2, 5, 7, 0, 4};
  for (const unsigned char old : std::initializer_list<unsigned char>{0x00, 0x3F, 0xFF}) {
    const auto evaluated = context.run(net_of(line_of(TENON_OP_BatchNormalization), given(shape, 1, 0), dtype,
                                              {Array(dtype, shape, x), numbers(dtype, {2, 1}), numbers(dtype, {1, -1}),
                                               numbers(dtype, {3, 1}), numbers(dtype, {4, 0.25})}),
                                       {}, old);
    expect(evaluated[0], {-1, 1, -7, 1, 3, 5, -3, 5}, few(dtype), "evaluation");
    const auto trained = context.run(net_of(line_of(TENON_OP_BatchNormTrain), train(shape, 1, 0.5, 0), dtype,
                                            {Array(dtype, shape, x), numbers(dtype, {std::sqrt(5.0), std::sqrt(5.0)}),
                                             numbers(dtype, {1, 0}), numbers(dtype, {0, 0}), numbers(dtype, {1, 1})}),
                                     {}, old);
    expect(trained[0], {-2, 0, -3, 1, 2, 4, -1, 3}, few(dtype), "training");
  }
}

/// One mean per channel, over the batch and all positions; a mean per activation needs the shape (N, C d...).
void batch_norm_same_mode(CaseContext& context, tenon_dtype dtype) {
  const std::vector<double> x{0, 2, 4, 6, 2, 4, 8, 6};  // (N, C, L)
  const auto mean_of = [&](const Dims& shape) {
    const Variant variant = train(shape, 1);
    const Dims channels = variant.inputs[1].shape;
    const Array one = numbers(dtype, std::vector<double>(static_cast<std::size_t>(channels[0]), 1));
    return context.run(net_of(line_of(TENON_OP_BatchNormTrain), variant, dtype, {Array(dtype, shape, x), one, one, one, one}))[3];
  };
  expect(mean_of({2, 2, 2}), {2, 6}, few(dtype), "mean per channel");
  expect(mean_of({2, 4}), {1, 3, 6, 6}, few(dtype), "mean per activation");
}

/// With scale 1 and bias 0, and statistics 0 and 1 before the first step, evaluation leaves x as it is, and training gives a batch of mean
/// 0 and variance 1, whatever its size.
void batch_norm_default_scale(CaseContext& context, tenon_dtype dtype) {
  for (const std::int64_t batch : {2, 6}) {
    const Dims shape{batch, 2};
    const std::vector<double> x = repeated({3, -1, 1, 5}, static_cast<std::size_t>(batch) / 2);
    const std::vector<Array> operands{Array(dtype, shape, x), numbers(dtype, {1, 1}), numbers(dtype, {0, 0}), numbers(dtype, {0, 0}),
                                      numbers(dtype, {1, 1})};
    const auto evaluated = context.run(net_of(line_of(TENON_OP_BatchNormalization), given(shape, 1, 0), dtype, operands));
    expect(evaluated[0], x, {}, "evaluation");
    const auto trained = context.run(net_of(line_of(TENON_OP_BatchNormTrain), train(shape, 1, 0.1, 0), dtype, operands));
    expect(trained[0], repeated({1, -1, -1, 1}, static_cast<std::size_t>(batch) / 2), few(dtype), "training");
  }
}

/// Train, evaluate, train: statistics continue from their previous values.
void batch_norm_keeps_statistics(CaseContext& context, tenon_dtype dtype) {
  const Dims shape{2, 1};
  const Array scale = numbers(dtype, {1}), bias = numbers(dtype, {0});
  std::vector<Array> running{numbers(dtype, {0}), numbers(dtype, {1})};
  double mean = 0, variance = 1;
  const auto step = [&](double low, double high) {
    const auto results = context.run(net_of(line_of(TENON_OP_BatchNormTrain), train(shape, 1, 0.25, 0), dtype,
                                            {Array(dtype, shape, {low, high}), scale, bias, running[0], running[1]}));
    running = {results[1], results[2]};
    mean = 0.75 * mean + 0.25 * (low + high) / 2;
    variance = 0.75 * variance + 0.25 * (high - low) * (high - low) / 2;  // over n - 1 = 1
    expect(running[0], {mean}, few(dtype), "running mean");
    expect(running[1], {variance}, few(dtype), "running variance");
  };
  const auto evaluate = [&] {
    const auto y = context.run(net_of(line_of(TENON_OP_BatchNormalization), given(shape, 1, 0), dtype,
                                      {Array(dtype, shape, {1, 3}), scale, bias, running[0], running[1]}));
    const double deviation = std::sqrt(variance);
    expect(y[0], {(1 - mean) / deviation, (3 - mean) / deviation}, {32 * epsilon(dtype), 32 * epsilon(dtype)}, "evaluation");
  };
  step(1, 3);
  step(-2, 4);
  evaluate();
  evaluate();
  step(0, 1);
  evaluate();
}

/// Far from 0, the variance by sum(x^2) / n - mean^2 has no correct digit; the distances themselves are exact.
void large_mean(CaseContext& context, tenon_dtype dtype) {
  if (!has_digits(dtype)) return;
  for (const Dims& shape : std::vector<Dims>{{4000, 3}, {20, 3, 9, 7}, {90, 70}, {3, 3, 2, 3, 40}}) {
    for (const double middle : {1e4, -3e6}) {
      const Variant variant = train(shape, 1, 1, 0);
      const std::int64_t channels = shape[1];
      std::vector<Array> operands = fill(variant, dtype, 7);
      Array& x = operands[0];
      // Distances from the middle that are numbers of the dtype, spread over a quarter to 2 and the like.
      for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, middle + 0.25 * static_cast<double>(static_cast<std::int64_t>(4 * x.at(i))));
      const std::int64_t inner = count_of(shape) / shape[0] / channels;
      const auto results = context.run(net_of(line_of(TENON_OP_BatchNormTrain), variant, dtype, operands));
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0, squares = 0, n = 0;
        for (std::int64_t i = 0; i < x.count(); ++i) {
          if (i / inner % channels != c) continue;
          sum += x.at(i) - middle;
          squares += (x.at(i) - middle) * (x.at(i) - middle);
          ++n;
        }
        const double mean = sum / n, variance = squares / n - mean * mean;
        const auto close = [&](double got, double expected, double allowed, const char* what) {
          if (!(std::fabs(got - expected) <= allowed))
            throw Failure(
                fmt::format("{} of channel {} of {} about {}: expected {:.12g}, got {:.12g}", what, c, str(shape), middle, expected, got));
        };
        // In f64 the mean itself is rounded, by its own magnitude.
        const double small = (64 + (dtype == f64 ? std::fabs(middle) : 0)) * epsilon(dtype);
        close(results[1].at(c), middle + mean, (dtype == f64 ? 16 : 1) * epsilon(dtype) * std::fabs(middle), "the mean");
        close(results[2].at(c), variance * n / (n - 1), small * variance, "the variance");
        close(results[4].at(c), 1 / std::sqrt(variance), small / std::sqrt(variance), "1 / deviation");
        for (std::int64_t i = c * inner; i < x.count(); i += channels * inner) {
          const double normal = (x.at(i) - middle - mean) / std::sqrt(variance);
          close(results[0].at(i), normal * operands[1].at(c) + operands[2].at(c), 4 * small, "an element");
        }
      }
    }
  }
}

/// A constant channel has variance 0: y is its bias, and 1 / deviation is 1 / sqrt(epsilon). Other channels are not affected.
void constant_channel(CaseContext& context, tenon_dtype dtype) {
  for (const std::int64_t batch : {5, 131, 1000}) {
    const Dims shape{batch, 3};
    std::vector<double> x;
    for (std::int64_t i = 0; i < batch; ++i) x.insert(x.end(), {1.0 / 3, static_cast<double>(i % 2), -700});
    const double epsilon_added = 0.0009765625;  // exact in every dtype
    const auto results = context.run(net_of(line_of(TENON_OP_BatchNormTrain), train(shape, 1, 0.5, epsilon_added), dtype,
                                            {Array(dtype, shape, x), numbers(dtype, {2, 1, 4}), numbers(dtype, {0.5, 0, -3}),
                                             numbers(dtype, {0, 0, 0}), numbers(dtype, {1, 1, 1})}));
    for (std::int64_t i = 0; i < batch; ++i) {
      const double first = results[0].at(3 * i), third = results[0].at(3 * i + 2);
      if (!(std::fabs(first - 0.5) <= 4 * epsilon(dtype) && std::fabs(third + 3) <= 12 * epsilon(dtype)))
        throw Failure(fmt::format("row {} of {}: expected the bias (0.5, -3), got ({}, {})", i, batch, first, third));
    }
    for (const std::int64_t c : {0, 2}) {
      if (!(std::fabs(results[4].at(c) - 32) <= 64 * epsilon(dtype)) || !(std::fabs(results[2].at(c) - 0.5) <= 2 * epsilon(dtype)))
        throw Failure(fmt::format("channel {} of {} rows: expected inverse_std 32 and running variance 0.5, got {} and {}", c, batch,
                                  results[4].str(c), results[2].str(c)));
    }
  }
}

/// NaN stays in its channel, forward, in the statistics and backward.
void nan_stays_in_its_channel(CaseContext& context, tenon_dtype dtype) {
  for (const Dims& shape : std::vector<Dims>{{200, 2}, {3, 2, 4, 5}, {2, 2, 2, 2, 3}}) {
    const Variant variant = train(shape, 1);
    std::vector<Array> operands = fill(variant, dtype, 11);
    const std::int64_t inner = count_of(shape) / shape[0] / 2;
    operands[0].set(count_of(shape) - 1, nan);  // in the last channel
    const auto results = context.run(net_of(line_of(TENON_OP_BatchNormTrain), variant, dtype, operands));
    const auto check = [&](const Array& array, const char* what) {
      const bool whole = array.count() > 2;
      for (std::int64_t i = 0; i < array.count(); ++i) {
        const std::int64_t channel = whole ? i / inner % 2 : i;
        if (std::isnan(array.at(i)) != (channel == 1))
          throw Failure(fmt::format("{} of {}: element {}, of channel {}, is {}", what, str(shape), i, channel, array.str(i)));
      }
    };
    check(results[0], "y");
    check(results[1], "the running mean");
    check(results[2], "the running variance");
    std::vector<Array> backward = fill(train_grad(shape, 1), dtype, 12);
    backward[1] = operands[0];
    const auto gradient = context.run(net_of(line_of(TENON_OP_BatchNormTrainGrad), train_grad(shape, 1), dtype, backward));
    check(gradient[0], "dx");
    check(gradient[1], "dscale");
  }
}

/// The gradient after that of a relu is the same whether the two are one kernel or not, and a NaN of the relu's result stays one.
void after_relu_grad(CaseContext& context, tenon_dtype dtype) {
  const tenon_attributes_none none{sizeof none, 0};
  for (const Place& at : std::vector<Place>{{{200, 24}, 1}, {{2100, 8}, 1}, {{3, 5, 7}, 1}, {{2, 16, 4, 6}, 1}, {{1, 2, 90, 100}, 1}}) {
    const Variant variant = train_grad(at.shape, at.axis);
    for (const bool has_nan : {false, true}) {
      const auto values = [&](std::int64_t count, std::int64_t step) {
        std::vector<double> list;
        for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<double>(i * step % 41 - 20) / 16);
        return list;
      };
      const std::int64_t count = count_of(at.shape), channels = channels_of(at.shape, at.axis);
      std::vector<double> of_relu = values(count, 7);
      if (has_nan) of_relu[static_cast<std::size_t>(count / 2)] = std::nan("");
      Net net;
      const std::uint32_t dy = net.input(Array(dtype, at.shape, values(count, 3))), y = net.input(Array(dtype, at.shape, of_relu)),
                          x = net.input(Array(dtype, at.shape, values(count, 11))), between = net.internal(dtype, at.shape);
      std::vector<std::uint32_t> operands{between, x}, results{net.output(dtype, at.shape)};
      for (const std::int64_t step : {5, 13}) operands.push_back(net.input(numbers(dtype, values(channels, step))));
      operands.push_back(net.input(numbers(dtype, std::vector<double>(static_cast<std::size_t>(channels), 0.5))));
      for (int i = 0; i < 2; ++i) results.push_back(net.output(resolved(dtype_of_sums, dtype), {channels}));
      net.node(TENON_OP_ReluGrad, line_of(TENON_OP_ReluGrad).version, &none, {dy, y}, {between});
      net.node(TENON_OP_BatchNormTrainGrad, line_of(TENON_OP_BatchNormTrainGrad).version, variant.attributes.data(), operands, results);
      const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
      const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
      for (std::size_t i = 0; i < 3; ++i) {
        const std::string wrong = compare(apart[i], together[i], few(dtype));
        if (!wrong.empty()) throw Failure(fmt::format("output {}: {}, expected the result of separate kernels", i, wrong));
      }
    }
  }
}

}  // namespace

std::vector<OpCase> cases_batch_norm() {
  const std::vector<double> x{1.0, 2.0, 4.0, -1.0, 0.5, 3.0, 0.0, -2.0, 1.0, 2.0, 2.5, -4.0};
  const std::vector<double> dy{0.5, -1.0, 2.0, 1.0, 0.25, -0.5, 1.0, 1.0, -2.0, 0.75, -1.5, 0.5};
  const std::vector<double> scale{1.5, -0.5}, bias{0.25, 1}, mean{0.5, -1}, variance{2, 0.25};
  const Dims shape{2, 2, 3};
  return {
      {.op = TENON_OP_BatchNormalization,
       .variants = all_given(),
       .bound = given_bound,
       .gradient = {0, 1, 2, 3, 4},
       .golden = {{"pytorch",
                   given(shape, 1),
                   {x, scale, bias, mean, variance},
                   {{0.7803287600696678, 1.8409862802090033, 3.9623013204876747, 1.0, -0.4999700008999699, -2.9999200023999197,
                     -0.2803287600696678, -2.4016438003483387, 0.7803287600696678, -1.9999400017999398, -2.49993000209993,
                     3.99994000179994}}}},
       .extras = {{"batch_norm_alpha_beta", batch_norm_alpha_beta},
                  {"batch_norm_default_scale", batch_norm_default_scale},
                  {"batch_norm_keeps_statistics", batch_norm_keeps_statistics}}},
      // The three conventions of the running values. PyTorch 1.13's own; by their formulas in f64: Keras (momentum 0.99 there), Gorgonia.
      {.op = TENON_OP_BatchNormTrain,
       .variants = all_train(),
       .bound = train_bound,
       .gradient = {0, 1, 2, 3, 4},
       .gradient_ops = {TENON_OP_BatchNormTrainGrad},
       .golden = {{"preset_pytorch",
                   train(shape, 1, 0.1, 1e-5),
                   {x, scale, bias, mean, variance},
                   {{0.25, 1.0715826038847676, 2.714747811654303, 1.3105292355362572, 0.9999999999999999, 0.4824512741062378,
                     -0.5715826038847676, -2.214747811654303, 0.25, 0.6894707644637426, 0.5859610192849902, 1.9315877066087719},
                    {0.55, -0.85},
                    {2.2, 0.925},
                    {1, 0.5},
                    {0.5477217359231784, 0.4140389807150097}}},
                  {"preset_keras",
                   train(shape, 1, 0.01, 1e-3, true),
                   {x, scale, bias, mean, variance},
                   {{0.25, 1.0714606264038347, 2.714381879211504, 1.3105028883113006, 1.0, 0.48249518614783216, -0.5714606264038347,
                     -2.214381879211504, 0.25, 0.6894971116886993, 0.5859961489182657, 1.9315086649339022},
                    {0.505, -0.985},
                    {2.013333333333333, 0.30583333333333335},
                    {1, 0.5},
                    {0.5476404176025564, 0.41400385108173426}}},
                  {"preset_gorgonia",
                   train(shape, 1, 0.9, 1e-4),
                   {x, scale, bias, mean, variance},
                   {{0.25, 1.0715715127774827, 2.7147145383324487, 1.3105268400568373, 1.0, 0.4824552665719377, -0.5715715127774829,
                     -2.2147145383324487, 0.25, 0.6894731599431626, 0.5859642132575502, 1.9315805201705123},
                    {0.95, 0.35},
                    {3.8, 6.325},
                    {1, 0.5},
                    {0.5477143418516552, 0.41403578674244984}}}},
       .extras = {{"batch_norm_alpha_beta", batch_norm_alpha_beta},
                  {"batch_norm_same_mode", batch_norm_same_mode},
                  {"batch_norm_keeps_statistics", batch_norm_keeps_statistics},
                  {"large_mean", large_mean},
                  {"constant_channel", constant_channel},
                  {"nan_stays_in_its_channel", nan_stays_in_its_channel}}},
      {.op = TENON_OP_BatchNormTrainGrad,
       .variants = all_train_grad(),
       .bound = train_grad_bound,
       .golden = {{"pytorch",
                   train_grad(shape, 1),
                   {dy, x, scale, {1, 0.5}, {0.5477217359231784, 0.4140389807150097}},
                   {{0.2053956509711919, -1.068057261813177, 1.3145325359266908, -0.12877115660364052, -0.034503248392917484,
                     0.019100186779535205, 0.6572659598707933, 0.7394239737852283, -1.8485608587407272, -0.19900970312907548,
                     0.24645191365617525, 0.09673200768992306},
                    {0.5477217359231784, -2.846517992415692},
                    {1.5, 0.5}},
                   floats}},
       .extras = {{"after_relu_grad", after_relu_grad}}},
  };
}

}  // namespace tenon::conformance
