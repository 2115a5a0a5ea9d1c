// SPDX-License-Identifier: Apache-2.0
// Cast: from every type to every type. Rounding to nearest is the only error, and the oracle makes the same one.
#include "elementwise.h"

#include <tenon/sdk/kernel.h>

namespace tenon::conformance {
namespace {

constexpr Tolerance nearest =
    Tolerance{"There is one right answer: the nearest number of the target, ties to even; towards 0 and saturating for integers."}
        .with_signed_zeros();

AttributeBytes to_type(tenon_dtype type) {
  return tenon_attributes_cast{.to = type};
}

Variant to(tenon_dtype type, Dims shape, const Values& values = {.low = -300, .high = 300, .special = Special::all}) {
  return {fmt::format("to={}", sdk::name_of(type)), {operand(shape, values)}, {result(shape, type)}, to_type(type)};
}

std::vector<Variant> variants() {
  std::vector<Variant> list;
  for (tenon_dtype type = TENON_DTYPE_F16; type <= TENON_DTYPE_BOOL; ++type) {
    if (type == TENON_DTYPE_C64 || type == TENON_DTYPE_C128) continue;
    for (const Dims& shape : {Dims{}, Dims{3, 5}, Dims{0, 2}, Dims{sized(5003, 203)}}) list.push_back(to(type, shape));
  }
  return list;
}

/// Every dtype to `type`, x -> y elementwise.
Golden conversion(const std::string& name, tenon_dtype type, std::vector<double> x, std::vector<double> y, std::vector<tenon_dtype> from) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {name, to(type, {n}), {std::move(x)}, {std::move(y)}, std::move(from)};
}

/// Numbers of all magnitudes from one floating dtype to each other, with all bits varied.
void check_between_floats(CaseContext& context, tenon_dtype dtype) {
  if (!is_float(dtype)) return;
  const Array x = all_magnitudes(dtype, context.seed);
  for (const tenon_dtype type : {f16, bf16, f32, f64}) {
    const Variant variant = to(type, x.shape());
    const auto got = context.run(net_of(line_of(TENON_OP_Cast), variant, dtype, {x}));
    // Array has its own rounding, so this checks the oracle, too.
    const std::string wrong = compare(x.as(TENON_DTYPE_F64), got[0], {});
    if (!wrong.empty()) throw Failure(fmt::format("to {}: {}", sdk::name_of(type), wrong));
  }
}

/// A round trip from a narrow dtype gives the same number.
void check_round_trip(CaseContext& context, tenon_dtype dtype) {
  if (dtype != f16 && dtype != bf16) return;
  const Array x = all_magnitudes(dtype, context.seed);
  for (const tenon_dtype type : {f32, f64}) {
    const auto wide = context.run(net_of(line_of(TENON_OP_Cast), to(type, x.shape()), dtype, {x}));
    const auto back = context.run(net_of(line_of(TENON_OP_Cast), to(dtype, x.shape()), type, {wide[0]}));
    const std::string wrong = compare(x, back[0], {});
    if (!wrong.empty()) throw Failure(fmt::format("through {}: {}", sdk::name_of(type), wrong));
  }
}

/// The largest 64-bit integers are not representable as doubles, and so not in golden vectors.
void check_largest_integers(CaseContext& context, tenon_dtype dtype) {
  if (!is_float(dtype) || dtype == f16) return;
  const Array x(dtype, {3}, {1e20, inf, 3e30});
  for (const tenon_dtype type : {i64, u64}) {
    const auto y = context.run(net_of(line_of(TENON_OP_Cast), to(type, {3}), dtype, {x}));
    const std::uint64_t expected = type == i64 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::uint64_t>::max();
    for (std::int64_t i = 0; i < 3; ++i) {
      if (y[0].get<std::uint64_t>(i) != expected) throw Failure(fmt::format("{} became {}, expected {}", x.str(i), y[0].str(i), expected));
    }
  }
}

}  // namespace

std::vector<OpCase> cases_cast() {
  const std::vector<tenon_dtype> floats{f16, bf16, f32, f64};
  return {{
      .op = TENON_OP_Cast,
      .variants = variants(),
      .bound = nearest,
      .oracle = Oracle::same_dtype,
      .golden = {conversion("saturates_i32", i32, {1.75, -1.75, 3e9, -3e9, inf, -inf, nan, 0.25},
                            {1, -1, 2147483647, -2147483648.0, 2147483647, -2147483648.0, 0, 0}, {bf16, f32, f64}),
                 conversion("saturates_i64", i64, {1.75, -1.75, -1e19, -inf, nan}, {1, -1, -0x1p63, -0x1p63, 0}, {bf16, f32, f64}),
                 conversion("saturates_u8", u8, {255.5, 256, -1, 17.75, nan, inf, -0.5}, {255, 255, 0, 17, 0, 255, 0}, {f16, f32, f64}),
                 conversion("saturates_i8", TENON_DTYPE_I8, {127.5, 128, -129, -128, nan, inf, -inf}, {127, 127, -128, -128, 0, 127, -128},
                            floats),
                 conversion("saturates_u64", u64, {0x1p63, -1, -inf, nan}, {0x1p63, 0, 0, 0}, {bf16, f32, f64}),
                 conversion("to_bool", boolean, {0, -0.0, 0.5, -3, nan, inf}, {0, 0, 1, 1, 1, 1}, floats),
                 conversion("keeps_low_bits", u8, {256, 255, -1, 257}, {0, 255, 255, 1}, {TENON_DTYPE_I16, i32, i64}),
                 conversion("rounds_to_nearest", f32, {16777217, 16777219, -16777217}, {16777216, 16777220, -16777216}, {f64, i32, i64}),
                 conversion("rounds_to_f16", f16, {2049, 2051, -2049, 65519, 65520, -70000}, {2048, 2052, -2048, 65504, inf, -inf},
                            {f32, f64, i32, i64}),
                 // slightly above a tie, which an intermediate rounding to f32 would lose
                 conversion("rounds_once_to_f16", f16, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 0x1p-25 + 0x1p-60, 0x1p-25},
                            {1 + 0x1p-10, 1, 0x1p-24, 0}, {f64}),
                 conversion("subnormal_f16", f16, {0x1p-24, 3 * 0x1p-25, -0x1p-15, 0x1p-14 - 0x1p-26},
                            {0x1p-24, 0x1p-23, -0x1p-15, 0x1p-14}, {f32, f64}),
                 conversion("rounds_to_bf16", bf16, {257, 259, -257, 1e38, 3.3961775292304957e38},
                            {256, 260, -256, 9.969209968386869e37, inf}, {f64}),
                 conversion("rounds_once_to_bf16", bf16, {0x1p40 + 0x1p32 + 1, 0x1p40 + 0x1p32, 0x1p62 + 0x1p54 + 0x1p10},
                            {0x1p40 + 0x1p33, 0x1p40, 0x1p62 + 0x1p55}, {f64, i64, u64}),
                 conversion("from_bool", f64, {0, 1}, {0, 1}, {boolean}), conversion("from_u8", i64, {0, 128, 255}, {0, 128, 255}, {u8}),
                 conversion("from_i8", f16, {0, -128, 127}, {0, -128, 127}, {TENON_DTYPE_I8})},
      .extras = {{"between_floats", check_between_floats}, {"round_trip", check_round_trip}, {"largest_integers", check_largest_integers}},
  }};
}

}  // namespace tenon::conformance
