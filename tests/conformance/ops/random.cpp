// SPDX-License-Identifier: Apache-2.0
// RandomUniform, RandomNormal, RandomBernoulli: the bits are specified, so every backend has the oracle's, but for normals without f64.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr double seed = 0xfedcba9876543;  // more than 32 bits, exact as a double
constexpr double step = 7;

Variant drawn(const Dims& shape, double a, double b, std::uint32_t stream = 42) {
  return {fmt::format("a={},b={},stream={}", a, b, stream),
          {key()},
          {result(shape)},
          tenon_attributes_random{.stream = stream, .a = a, .b = b}};
}

/// Odd sizes end inside a block of the generator, and some make a thread start inside one.
std::vector<Variant> variants(double a, double b) {
  std::vector<Variant> list;
  for (const Dims& shape : {Dims{}, Dims{1}, Dims{7}, Dims{3, 5}, Dims{0}, Dims{2, 0, 3}, Dims{sized(100003, 2003)}})
    list.push_back(drawn(shape, a, b));
  list.push_back(drawn({6}, a, b, 0xFFFFFFFFu));
  return list;
}

constexpr std::int64_t many = 20000;

Array draw(const CaseContext& context, tenon_op op, tenon_dtype dtype, double a, double b, double draw_seed, double draw_step,
           std::uint32_t stream) {
  return context.run(net_of(line_of(op), drawn({many}, a, b, stream), dtype, {Array(u64, {2}, {draw_seed, draw_step})}))[0];
}

/// Results depend only on seed, step and stream: the same for the same key, different for different ones.
template <tenon_op op>
void seeds_reproduce(CaseContext& context, tenon_dtype dtype) {
  const double a = op == TENON_OP_RandomBernoulli ? 0.5 : 0, b = 1;
  const Array first = draw(context, op, dtype, a, b, 1, 1, 1);
  if (!first.same_bits(draw(context, op, dtype, a, b, 1, 1, 1)))
    throw Failure("the same seed, step and stream give different numbers the second time");
  const Array others[] = {draw(context, op, dtype, a, b, 2, 1, 1), draw(context, op, dtype, a, b, 1, 2, 1),
                          draw(context, op, dtype, a, b, 1, 1, 2)};
  const char* const names[] = {"seed", "step", "stream"};
  for (int i = 0; i < 3; ++i) {
    if (first.same_bits(others[i])) throw Failure(fmt::format("a different {} gives the same numbers", names[i]));
  }
}

/// The uniform op draws uniforms, not normals: the distribution function is a straight line.
void glorot_uniform_is_uniform(CaseContext& context, tenon_dtype dtype) {
  const double limit = std::sqrt(6.0 / (300 + 100));
  const Array x = draw(context, TENON_OP_RandomUniform, dtype, -limit, limit, 3, 0, 9);
  std::vector<double> sorted;
  for (std::int64_t i = 0; i < many; ++i) sorted.push_back(x.at(i));
  std::sort(sorted.begin(), sorted.end());
  const double edge = limit * (1 + epsilon(dtype));  // the bound and values close to it are rounded to the dtype
  if (sorted.front() < -edge || sorted.back() > edge) {
    throw Failure(fmt::format("expected values in [{2}, {3}], got {0} to {1}", sorted.front(), sorted.back(), -limit, limit));
  }
  double distance = 0;
  for (std::int64_t i = 0; i < many; ++i) {
    const double expected = (sorted[static_cast<std::size_t>(i)] + limit) / (2 * limit);
    distance = std::max(distance, std::fabs(expected - (static_cast<double>(i) + 0.5) / many));
  }
  // Kolmogorov and Smirnov: beyond 2 / sqrt(n) in 7 of 10,000 draws; a normal of that variance is off by 0.05.
  if (distance > 2 / std::sqrt(double{many}))
    throw Failure(fmt::format("the distribution function differs from a straight line by {}", distance));
}

void normal_moments(CaseContext& context, tenon_dtype dtype) {
  const Array x = draw(context, TENON_OP_RandomNormal, dtype, 3, 2, 4, 0, 9);
  double mean = 0, square = 0, fourth = 0;
  for (std::int64_t i = 0; i < many; ++i) mean += x.at(i) / many;
  for (std::int64_t i = 0; i < many; ++i) {
    const double d = (x.at(i) - mean) / 2;
    square += d * d / many;
    fourth += d * d * d * d / many;
  }
  // Five standard errors each: sigma / sqrt(n), sqrt(2 / n), sqrt(96 / n).
  const double n = many;
  if (std::fabs(mean - 3) > 5 * 2 / std::sqrt(n)) throw Failure(fmt::format("the mean is {}, expected 3", mean));
  if (std::fabs(square - 1) > 5 * std::sqrt(2 / n)) throw Failure(fmt::format("the variance is {} times the requested one", square));
  if (std::fabs(fourth - 3) > 5 * std::sqrt(96 / n)) throw Failure(fmt::format("the fourth moment is {}, expected 3", fourth));
}

void bernoulli_frequency(CaseContext& context, tenon_dtype dtype) {
  const Array x = draw(context, TENON_OP_RandomBernoulli, dtype, 0.3, 0, 5, 0, 9);
  double ones = 0;
  for (std::int64_t i = 0; i < many; ++i) {
    if (x.at(i) != 0 && x.at(i) != 1) throw Failure(fmt::format("element {} is {}, expected 0 or 1", i, x.str(i)));
    ones += x.at(i);
  }
  if (std::fabs(ones / many - 0.3) > 5 * std::sqrt(0.21 / many)) throw Failure(fmt::format("{} of {} are one, expected 30 %", ones, many));
}

/// What a device without f64 may differ by.
double without_f64(const Variant& variant) {
  const auto& a = variant.attributes.as<tenon_attributes_random>();
  return has_f64() ? 0 : 0x1p-16 * (std::fabs(a.a) + std::fabs(a.b));
}
constexpr Tolerance normal{
    "Every bit is specified; a device without f64 may differ by 2^-16 (|mean| + |deviation|): plugins/abi/README.md has the formula.",
    [](const Variant& variant, tenon_dtype) { return Bound{.absolute = without_f64(variant)}; }};

/// Logarithms differ, and the sine of a rounded angle of up to 2 pi is off by an epsilon of the angle.
Bound of_another_library(tenon_dtype t) {
  return {4 * epsilon(t), has_f64() ? 16 * epsilon(t) : 0x1p-15};
}

}  // namespace

std::vector<OpCase> cases_random() {
  // Random123 publishes the result of Philox4x32-10 for an all-zero counter and key; the rest is from an independent implementation.
  return {
      {.op = TENON_OP_RandomUniform,
       .variants = variants(-0.5, 1.5),
       .bound = specified,
       .oracle = Oracle::same_dtype,
       .golden = {{"random123",
                   drawn({4}, 0, 1, 0),
                   {{0, 0}},
                   {{0.3990464210510254, 0.8805201649665833, 0.7357127666473389, 0.6054818034172058}},
                   {f32}},
                  {"random123", drawn({2}, 0, 1, 0), {{0, 0}}, {{0.8805201978886142, 0.6054818538799213}}, {f64}},
                  {"two_blocks",
                   drawn({6}, 0, 1),
                   {{seed, step}},
                   {{0.5290288329124451, 0.881834089756012, 0.012265443801879883, 0.4861403703689575, 0.9474509954452515,
                     0.8063540458679199}},
                   {f32}},
                  {"two_blocks", drawn({3}, 0, 1), {{seed, step}}, {{0.8818340936044763, 0.48614041903341776, 0.8063540691387492}}, {f64}},
                  {"range", drawn({3}, -4, 4), {{seed, step}}, {{0.23223066329956055, 3.0546727180480957, -3.901876449584961}}, {f32}}},
       .extras = {{"seeds_reproduce", seeds_reproduce<TENON_OP_RandomUniform>}, {"glorot_uniform_is_uniform", glorot_uniform_is_uniform}}},
      {.op = TENON_OP_RandomNormal,
       .variants = variants(1, 0.5),
       .bound = normal,
       .oracle = Oracle::same_dtype,
       .golden = {{"two_blocks",
                   drawn({6}, 0, 1),
                   {{seed, step}},
                   {{0.8314600363222755, -0.7629539854202, -2.95556289387387, 0.2580298300018298, 0.11392620333424439,
                     -0.30818974646679426}},
                   {},
                   of_another_library},
                  {"mean_and_deviation",
                   drawn({5}, 1, 0.5),
                   {{seed, step}},
                   {{1.4157300181611379, 0.6185230072899, -0.47778144693693503, 1.1290149150009148, 1.0569631016671222}},
                   {},
                   of_another_library}},
       .extras = {{"seeds_reproduce", seeds_reproduce<TENON_OP_RandomNormal>}, {"moments", normal_moments}}},
      {.op = TENON_OP_RandomBernoulli,
       .variants = variants(0.3, 0),
       .bound = specified,
       .oracle = Oracle::same_dtype,
       .golden = {{"three_blocks", drawn({12}, 0.3, 0), {{seed, step}}, {{0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0}}},
                  {"never", drawn({5}, 0, 0), {{seed, step}}, {{0, 0, 0, 0, 0}}},
                  {"always", drawn({5}, 1, 0), {{seed, step}}, {{1, 1, 1, 1, 1}}}},
       .extras = {{"seeds_reproduce", seeds_reproduce<TENON_OP_RandomBernoulli>}, {"frequency", bernoulli_frequency}}},
  };
}

}  // namespace tenon::conformance
