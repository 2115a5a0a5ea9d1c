// Cast: from every type to every type. Rounding to nearest is the only error, and the oracle makes the same one.
#include "room.h"

#include <tenon/sdk/kernel.h>

namespace tenon::conformance {
namespace {

Variant to(tenon_dtype type, Dims shape, const Values& values = {.low = -300, .high = 300, .special = Special::all}) {
  tenon_attributes_cast attributes{};
  attributes.to = type;
  return {fmt::format("to={}", sdk::name_of(type)), {operand(shape, values)}, {result(shape, type)}, attributes};
}

}  // namespace

std::vector<OpCase> cases_cast() {
  std::vector<Variant> variants;
  for (const tenon_dtype type : {f32, f64, i32, i64, u8, boolean}) {
    for (const Dims& shape : {Dims{}, Dims{3, 5}, Dims{0, 2}, Dims{sized(5003, 203)}}) variants.push_back(to(type, shape));
  }
  return {{
      .op = TENON_OP_Cast,
      .variants = variants,
      .oracle = Oracle::same_dtype,
      .golden = {{"saturates_i32",
                  to(i32, {8}),
                  {{1.75, -1.75, 3e9, -3e9, inf, -inf, nan, 0.25}},
                  {{1, -1, 2147483647, -2147483648, 2147483647, -2147483648, 0, 0}},
                  {f32, f64}},
                 {"saturates_u8", to(u8, {7}), {{255.5, 256, -1, 17.99, nan, inf, -0.5}}, {{255, 255, 0, 17, 0, 255, 0}}, {f32, f64}},
                 {"to_bool", to(boolean, {6}), {{0, -0.0, 0.5, -3, nan, inf}}, {{0, 0, 1, 1, 1, 1}}, {f32, f64}},
                 {"rounds_to_nearest", to(f32, {3}), {{16777217, 16777219, -16777217}}, {{16777216, 16777220, -16777216}}, {f64, i32, i64}},
                 {"from_bool", to(f64, {2}), {{0, 1}}, {{0, 1}}, {boolean}},
                 {"from_u8", to(i64, {3}), {{0, 128, 255}}, {{0, 128, 255}}, {u8}}},
  }};
}

}  // namespace tenon::conformance
