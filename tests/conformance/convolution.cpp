// SPDX-License-Identifier: Apache-2.0
#include "convolution.h"

#include <array>
#include <numeric>

#include "product.h"

namespace tenon::conformance {
namespace {

/// Entry i of a list that may be empty.
std::int64_t entry(const Dims& list, std::size_t i, std::int64_t usual) {
  return list.empty() ? usual : list[i];
}

Dims joined(std::int64_t a, std::int64_t b, const Dims& rest) {
  Dims all{a, b};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::int64_t product_of(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// The transforms of Winograd's convolution of n data with 3 filter elements to n - 2 results,
//   y = A' ((G w) * (B' x)),
// and the same along both dimensions in two.
// Source  Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2016), section 4; F(6, 3) by the same construction with the
// points
//         0, 1, -1, 2, -2, 1/2, -1/2 and infinity.
template <std::size_t n>
struct Winograd {
  std::array<std::array<double, n>, n - 2> a;  // A'
  std::array<std::array<double, 3>, n> g;      // G
  std::array<std::array<double, n>, n> b;      // B'
};
constexpr Winograd<6> f43{
    {{{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}},
    {{{1. / 4, 0, 0},
      {-1. / 6, -1. / 6, -1. / 6},
      {-1. / 6, 1. / 6, -1. / 6},
      {1. / 24, 1. / 12, 1. / 6},
      {1. / 24, -1. / 12, 1. / 6},
      {0, 0, 1}}},
    {{{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}}}};
constexpr Winograd<8> f63{{{{1, 1, 1, 1, 1, 1, 1, 0},
                            {0, 1, -1, 2, -2, 1. / 2, -1. / 2, 0},
                            {0, 1, 1, 4, 4, 1. / 4, 1. / 4, 0},
                            {0, 1, -1, 8, -8, 1. / 8, -1. / 8, 0},
                            {0, 1, 1, 16, 16, 1. / 16, 1. / 16, 0},
                            {0, 1, -1, 32, -32, 1. / 32, -1. / 32, 1}}},
                          {{{1, 0, 0},
                            {-2. / 9, -2. / 9, -2. / 9},
                            {-2. / 9, 2. / 9, -2. / 9},
                            {1. / 90, 1. / 45, 2. / 45},
                            {1. / 90, -1. / 45, 2. / 45},
                            {32. / 45, 16. / 45, 8. / 45},
                            {32. / 45, -16. / 45, 8. / 45},
                            {0, 0, 1}}},
                          {{{1, 0, -21. / 4, 0, 21. / 4, 0, -1, 0},
                            {0, 1, 1, -17. / 4, -17. / 4, 1, 1, 0},
                            {0, -1, 1, 17. / 4, -17. / 4, -1, 1, 0},
                            {0, 1. / 2, 1. / 4, -5. / 2, -5. / 4, 2, 1, 0},
                            {0, -1. / 2, 1. / 4, 5. / 2, -5. / 4, -2, 1, 0},
                            {0, 2, 4, -5. / 2, -5, 1. / 2, 1, 0},
                            {0, -2, 4, 5. / 2, -5, -1. / 2, 1, 0},
                            {0, -1, 0, 21. / 4, 0, -21. / 4, 0, 1}}}};

template <std::size_t n>
double square(const std::array<double, n>& row) {
  return std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
}

/// The root mean square of the terms of the worst result, relative to one product x w: an element of B' x is larger than x by the norm of
/// its row of B', one of G w by the norm of its row of G, and A' scales their products. In two dimensions this happens twice. About 94 for
/// F(4, 3), 139 for F(6, 3); 3 for the nine products of a direct sum.
///
/// The filter gradient uses the transposed algorithm, y to A y and back by G', so that the columns of A and of G change places.
template <std::size_t n>
double gain(const Winograd<n>& f, bool by_filters) {
  const auto column = [](const auto& rows, std::size_t j) {
    double sum = 0;
    for (const auto& row : rows) sum += row[j] * row[j];
    return sum;
  };
  double worst = 0;
  for (std::size_t i = 0; i < (by_filters ? 3 : n - 2); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      sum += square(f.b[j]) * (by_filters ? f.g[j][i] * f.g[j][i] * column(f.a, j) : f.a[i][j] * f.a[i][j] * square(f.g[j]));
    }
    worst = std::max(worst, sum);
  }
  return worst;  // the square of one dimension's root
}

/// Whether F(4x4, 3x3) or F(6x6, 3x3) may compute the sum.
bool may_be_winograd(const Convolution& shape, tenon_dtype dtype) {
  const auto is = [](const Dims& list, std::int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](std::int64_t size) { return size == value; });
  };
  return dtype != f64 && shape.sizes.size() == 2 && shape.groups == 1 && is(shape.kernel, 3) && is(shape.strides, 1) &&
         is(shape.dilations, 1);
}

}  // namespace

Dims Convolution::results() const {
  Dims counts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t extent = entry(dilations, i, 1) * (kernel[i] - 1) + 1;
    counts.push_back((entry(before, i, 0) + sizes[i] + entry(after, i, 0) - extent) / entry(strides, i, 1) + 1);
  }
  return counts;
}
Dims Convolution::x() const {
  return joined(batch, channels, sizes);
}
Dims Convolution::w() const {
  return joined(filters, channels / groups, kernel);
}
Dims Convolution::y() const {
  return joined(batch, filters, results());
}

AttributeBytes Convolution::attributes() const {
  tenon_attributes_conv a{.groups = static_cast<std::uint32_t>(groups)};
  for (std::size_t i = 0; i < TENON_MAX_SPATIAL; ++i) {
    const bool used = i < sizes.size();
    a.strides[i] = used ? entry(strides, i, 1) : 1;
    a.dilations[i] = used ? entry(dilations, i, 1) : 1;
    a.pads_before[i] = used ? entry(before, i, 0) : 0;
    a.pads_after[i] = used ? entry(after, i, 0) : 0;
  }
  return a;
}

std::string Convolution::label() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ",") + part; };
  if (groups != 1) add(fmt::format("groups={}", groups));
  if (!strides.empty()) add("strides=" + str(strides));
  if (!dilations.empty()) add("dilations=" + str(dilations));
  if (!before.empty() || !after.empty()) {
    add("pads=" + str(before.empty() ? Dims(sizes.size(), 0) : before) + "-" + str(after.empty() ? Dims(sizes.size(), 0) : after));
  }
  return text;
}

std::int64_t Convolution::terms(tenon_op op) const {
  if (op == TENON_OP_ConvWeightGrad) return batch * product_of(results());
  return (op == TENON_OP_Conv ? channels : filters) / groups * product_of(kernel);
}

Convolution Convolution::of(tenon_op op, const Variant& variant) {
  const Dims& first = variant.inputs[0].shape;
  const Dims& second = variant.inputs[1].shape;
  const Dims& result = variant.outputs[0].shape;
  const Dims& x = op == TENON_OP_Conv ? first : op == TENON_OP_ConvWeightGrad ? second : result;
  const Dims& w = op == TENON_OP_ConvWeightGrad ? result : second;
  const auto& a = variant.attributes.as<tenon_attributes_conv>();
  const auto list = [&](const std::int64_t(&entries)[TENON_MAX_SPATIAL]) { return Dims(entries, entries + (x.size() - 2)); };
  return {x[0],
          x[1],
          w[0],
          Dims(x.begin() + 2, x.end()),
          Dims(w.begin() + 2, w.end()),
          list(a.strides),
          list(a.dilations),
          list(a.pads_before),
          list(a.pads_after),
          a.groups};
}

/// A sum of products of numbers up to 2, as a matrix product is; a bias up to 2 rounds once more.
///
/// The errors of Winograd's algorithm are allowed in f32, and where narrower numbers are computed in f32, for 3x3 kernels of stride 1. They
/// are relative to its intermediate values, which are `gain` times as large as single products (see there). With x and w up to 2, evenly
/// distributed, a product's root mean square is 4 / 3. Each of the T channels (in the filter gradient: tiles) has about 16 roundings in its
/// transforms, whose errors add up to 4 times one; adding T of them rounds numbers that grow as their root, T / root(2) times one in all;
/// each rounding is epsilon / 2 at most. Six times the likely error does not occur by chance.
Bound convolution_bound(const Convolution& shape, tenon_op op, tenon_dtype dtype) {
  Bound bound = product_bound(shape.terms(op), dtype);
  bound.absolute += 2 * epsilon(dtype);
  if (may_be_winograd(shape, dtype)) {
    const bool by_filters = op == TENON_OP_ConvWeightGrad;
    const double largest_gain = std::max(gain(f43, by_filters), gain(f63, by_filters));
    const auto terms = static_cast<double>(by_filters ? shape.terms(op) : shape.terms(op) / 9);
    bound.absolute += 6 * (epsilon(f32) / 2) * largest_gain * (4.0 / 3) * (4 * std::sqrt(terms) + terms / std::sqrt(2.0));
  }
  return bound;
}

void add_random_dimensions(Convolution& shape, std::size_t dims, std::int64_t largest_kernel, std::int64_t more_pixels, Random& random) {
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t kernel = random.integer(1, largest_kernel), dilation = random.integer(0, 3) == 0 ? 2 : 1;
    const std::int64_t before = random.integer(0, kernel), after = random.integer(0, kernel);
    shape.kernel.push_back(kernel);
    shape.dilations.push_back(dilation);
    shape.strides.push_back(random.integer(1, 4));
    shape.before.push_back(before);
    shape.after.push_back(after);
    shape.sizes.push_back(std::max<std::int64_t>(1, dilation * (kernel - 1) + 1 - before - after) + random.integer(0, more_pixels));
  }
}

Variant variant_of(const Convolution& shape, tenon_op op, bool bias, Special special) {
  // No special values in the filters: for padding some kernels add their product with 0 and some add nothing.
  const Values image{.special = special};
  switch (op) {
    case TENON_OP_Conv:
      return {shape.label(),
              {operand(shape.x(), image), operand(shape.w()), bias ? operand({shape.filters}) : absent},
              {result(shape.y())},
              shape.attributes()};
    case TENON_OP_ConvInputGrad:
      return {shape.label(), {operand(shape.y(), image), operand(shape.w())}, {result(shape.x())}, shape.attributes()};
    case TENON_OP_ConvWeightGrad:
      return {shape.label(), {operand(shape.y()), operand(shape.x())}, {result(shape.w())}, shape.attributes()};
    default:  // ConvTranspose: b is as long as x has channels
      return {shape.label(),
              {operand(shape.y(), image), operand(shape.w()), bias ? operand({shape.channels}) : absent},
              {result(shape.x())},
              shape.attributes()};
  }
}

}  // namespace tenon::conformance
