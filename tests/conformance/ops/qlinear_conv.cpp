// SPDX-License-Identifier: Apache-2.0
// QLinearConv: exact.
#include "convolution.h"
#include "quantized.h"

namespace tenon::conformance {
namespace {

Variant convolved(const Convolution& shape, const Requantised& form = {}, bool bias = true) {
  const std::int64_t terms = shape.terms(TENON_OP_Conv);
  Variant variant{fmt::format("{}{},{}", form.label(), bias ? "" : "/no_bias", shape.label()),
                  requantised_operands(shape.x(), shape.w(), shape.filters, terms, form),
                  {result(shape.y(), form.y)},
                  shape.attributes()};
  const double magnitude = 4000 * std::sqrt(static_cast<double>(terms));
  variant.inputs.push_back(bias ? operand({shape.filters}, {.low = -magnitude, .high = magnitude, .whole = true}, i32) : absent);
  return variant;
}

Convolution any_shape(Random& random) {
  const auto dims = static_cast<std::size_t>(random.integer(1, 3));
  Convolution shape{random.integer(1, 3), 0, 0, {}, {}};
  const std::int64_t kind = random.integer(0, 4);  // 0: grouped, 1: depthwise
  shape.groups = kind < 2 ? random.integer(2, kind == 0 ? 4 : 70) : 1;
  shape.channels = shape.groups * (kind == 1 ? 1 : random.integer(1, 70));
  shape.filters = shape.groups * (kind == 1 ? 1 : random.integer(1, 40));
  add_random_dimensions(shape, dims, 5, 12, random);
  return shape;
}

void check_random_shapes(CaseContext& context, tenon_dtype dtype) {
  const int count = small_sizes() ? 40 : 150;
  for (int index = 0; index < count; ++index) {
    const std::uint64_t seed = seed_for(context.seed, fmt::format("qlinear_conv {} {}", index, dtype));
    Random random(seed);
    const Convolution shape = any_shape(random);
    const auto either = [&] { return random.integer(0, 2) == 0 ? i8 : u8; };
    const Requantised form{either(), either(), random.integer(0, 2) == 0};
    const bool bias = random.integer(0, 2) == 0;
    check_packed_weights(context, TENON_OP_QLinearConv, 3, convolved(shape, form, bias), dtype, seed, {});
  }
}

}  // namespace

std::vector<OpCase> cases_qlinear_conv() {
  const std::int64_t n = sized(30, 15);
  const Requantised lists{i8, u8, true}, other{u8, i8, false}, both{i8, i8, true}, any_scale{i8, u8, true, true},
      any_scale_of_i8{u8, i8, true, true};
  const Convolution example{1, 1, 1, {7, 7}, {1, 1}};
  const std::vector<double> example_x{255, 174, 162, 25,  203, 168, 58,  15,  59,  237, 95,  129, 0,  64,  56, 242, 153,
                                      221, 168, 12,  166, 232, 178, 186, 195, 237, 162, 237, 188, 39, 124, 77, 80,  102,
                                      43,  127, 230, 21,  83,  41,  40,  134, 255, 154, 92,  141, 42, 148, 247};
  std::vector<double> example_y;
  for (const double x : example_x) example_y.push_back(255 - x);
  const float x_scale = 0.00369204697F, w_scale = 0.00172794575F, y_scale = 0.00162681262F;
  // Golden vectors: the example of ONNX's specification, and a bias with saturation.
  return {{
      .op = TENON_OP_QLinearConv,
      .variants = {convolved({2, 5, 7, {6, 5}, {1, 1}}), convolved({1, 64, 64, {7, 7}, {1, 1}}, lists),
                   convolved({1, 64, 33, {9, 9}, {1, 1}}, {u8, u8, true}, false), convolved({1, 96, 40, {5, 5}, {1, 1}}, both),
                   convolved({1, 16, 17, {7, 8}, {1, 1}, {2, 2}}, other),
                   convolved({1, 17, 3, {5, 5}, {1, 1}, {}, {}, {1, 1}, {1, 1}}, lists),
                   convolved({1, 3, 17, {6, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, {}, false),
                   convolved({2, 16, 16, {7, 7}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, other),
                   convolved({1, sized(33, 17), 40, {n, n + 1}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, lists),
                   convolved({1, 64, 32, {9, 11}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, both),
                   convolved({1, 16, 17, {13, 14}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}}, other),
                   convolved({1, 3, 16, {21, 20}, {7, 7}, {2, 2}, {}, {3, 3}, {3, 3}}, lists),
                   convolved({2, 4, 6, {5, 6}, {3, 2}, {2, 1}, {}, {0, 1}, {1, 0}}, both),
                   convolved({1, 5, 6, {9, 9}, {3, 3}, {}, {2, 2}, {2, 2}, {2, 2}}, lists, false),
                   convolved({2, 6, 9, {6, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 3}, {u8, u8, true}),
                   convolved({2, 16, 16, {9, 10}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 16}, lists),
                   convolved({1, 80, 80, {13, 12}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}, 80}, {u8, i8, true}),
                   convolved({1, 17, 17, {9, 8}, {5, 5}, {}, {}, {2, 2}, {2, 2}, 17}, both),
                   convolved({2, 3, 5, {11}, {3}, {}, {}, {1}, {1}}), convolved({1, 16, 17, {20}, {5}, {2}, {}, {2}, {2}}, other, false),
                   // wide lines of whole cache lines
                   convolved({2, 64, 33, {5, 25}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, lists),
                   // and of pixels with few channels
                   convolved({2, 3, 40, {9, 51}, {7, 7}, {2, 2}, {}, {3, 3}, {3, 3}}, lists),
                   convolved({1, 3, 33, {5, 27}, {7, 7}, {}, {}, {3, 2}, {3, 3}}, both),
                   convolved({2, 4, 17, {7, 30}, {3, 2}, {}, {2, 1}, {1, 0}, {1, 1}}, {u8, u8, true}),
                   convolved({1, 1, 16, {5, 26}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, {i8, u8, true}),
                   convolved({2, 3, 5, {40}, {5}, {}, {}, {2}, {2}}, other, false),
                   convolved({1, 64, 40, {9, 61}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 0}}, both),
                   convolved({2, 128, 34, {3, 29}, {2, 3}, {}, {1, 2}, {0, 2}, {1, 2}, 2}, {u8, u8, true}),
                   convolved({3, 64, 17, {30}, {5}, {}, {}, {2}, {2}}, other, false),
                   convolved({1, 64, 40, {4, 26}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, any_scale),
                   convolved({1, 9, 14, {7, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, any_scale_of_i8),
                   convolved({1, 80, 80, {9, 10}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 80}, any_scale),
                   convolved({1, 17, 17, {9, 10}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 17}, any_scale),
                   convolved({1, 80, 80, {9, 8}, {5, 5}, {2, 2}, {}, {2, 2}, {2, 2}, 80}, any_scale_of_i8),
                   convolved({0, 3, 4, {5, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}}),
                   convolved({0, 64, 4, {9, 60}, {3, 3}, {4, 2}, {}, {1, 1}, {1, 1}})},
      .bound = requantised,
      .oracle = Oracle::same_dtype,
      .golden = {{"example",
                  convolved(example, {u8, u8, false}, false),
                  {example_x, {x_scale}, {132}, {0}, {w_scale}, {255}, {y_scale}, {123}, {}},
                  {example_y},
                  {u8}},
                 {"bias",
                  convolved({1, 1, 2, {3}, {1}}, {i8, u8, true}),
                  {{1, 2, 3}, {0.5}, {1}, {2, 100}, {1, 0.25}, {0, 0}, {1}, {10}, {1, -101}},
                  {{10, 12, 12, 0, 10, 22}}}},
      .extras = {{"random_shapes", check_random_shapes}},
  }};
}

}  // namespace tenon::conformance
