// SPDX-License-Identifier: Apache-2.0
// Im2Col copies elements, Col2Im adds them up.
#include "convolution.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .whole = true, .special = Special::all};

AttributeBytes attributes_of(const Convolution& shape) {
  const AttributeBytes bytes = shape.attributes();
  const auto& from = bytes.as<tenon_attributes_conv>();
  tenon_attributes_window a{};
  for (std::size_t i = 0; i < TENON_MAX_SPATIAL; ++i) {
    a.kernel[i] = i < shape.kernel.size() ? shape.kernel[i] : 1;
    a.strides[i] = from.strides[i];
    a.dilations[i] = from.dilations[i];
    a.pads_before[i] = from.pads_before[i];
    a.pads_after[i] = from.pads_after[i];
  }
  return a;
}
Dims columns_of(const Convolution& shape) {
  return {shape.batch, shape.channels * count_of(shape.kernel), count_of(shape.results())};
}
std::string label_of(const Convolution& shape) {
  return "kernel=" + str(shape.kernel) + (shape.label().empty() ? "" : "," + shape.label());
}

Variant unfolded(const Convolution& shape) {
  return {label_of(shape), {operand(shape.x(), any)}, {result(columns_of(shape))}, attributes_of(shape)};
}
Variant folded(const Convolution& shape) {
  return {label_of(shape),
          {operand(columns_of(shape), {.low = -100, .high = 100, .whole = true, .special = Special::not_large})},
          {result(shape.x())},
          attributes_of(shape)};
}

std::vector<Variant> variants(Variant (*make)(const Convolution&)) {
  std::vector<Variant> list;
  for (const Convolution& shape : std::vector<Convolution>{{1, 1, 1, {1, 1}, {1, 1}},
                                                           {2, 3, 1, {5, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}},
                                                           {1, 4, 1, {7, 8}, {3, 2}, {2, 1}, {}, {0, 1}, {2, 0}},
                                                           {2, 5, 1, {6, 6}, {1, 1}, {2, 2}},
                                                           {1, 3, 1, {9, 10}, {2, 3}, {1, 2}, {3, 2}, {1, 2}, {0, 1}},
                                                           {1, 2, 1, {11, 5}, {2, 2}, {3, 4}},
                                                           {1, 17, 1, {13, 14}, {3, 3}, {}, {}, {1, 1}, {1, 1}},
                                                           {1, 2, 1, {2, 2}, {5, 5}, {}, {}, {4, 4}, {4, 4}},
                                                           {2, 3, 1, {12}, {4}, {2}, {}, {1}, {2}},
                                                           {1, 2, 1, {9}, {3}, {}, {4}},
                                                           {0, 3, 1, {5, 5}, {3, 3}},
                                                           {2, 0, 1, {5, 5}, {3, 3}}})
    list.push_back(make(shape));
  return list;
}

constexpr Tolerance sum_bound{"What meets in an element is added: sums of as many numbers of up to 100 as windows lie over one another.",
                              [](const Variant& variant, tenon_dtype t) -> Bound {
                                if (!is_float(t)) return {};
                                const auto& a = variant.attributes.as<tenon_attributes_window>();
                                double taps = 1;
                                for (std::size_t i = 0; i + 2 < variant.outputs[0].shape.size(); ++i)
                                  taps *= static_cast<double>(a.kernel[i]);
                                return {epsilon(t), 100 * taps * std::sqrt(taps) * epsilon(t)};
                              }};

}  // namespace

std::vector<OpCase> cases_im2col() {
  // PyTorch 1.13: unfold and fold of integers
  const Convolution plain{1, 2, 1, {3, 3}, {2, 2}, {2, 1}, {}, {1, 0}, {1, 0}}, wide{1, 1, 1, {4, 4}, {2, 2}, {}, {2, 2}};
  return {
      {.op = TENON_OP_Im2Col,
       .variants = variants(unfolded),
       .bound = moved,
       .gradient = {0},
       .gradient_ops = {TENON_OP_Col2Im},
       .golden = {{"padded",
                   unfolded(plain),
                   {{-1, -1, 0, 0, 0, 0, 1, 1, -1, 0, 1, -2, -2, -2, 1, -2, -2, 1}},
                   {{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, 1, 1, -1, 0, 1, -1, 0, 0, -2, -2, 0, 0, -2, 1, 0, 1, -2, -2, 1, -2, -2, 1}}},
                  {"dilated",
                   unfolded(wide),
                   {{-1, 2, 1, 1, 2, 2, 2, 2, 2, 2, 2, -2, 0, -2, 1, 0}},
                   {{-1, 2, 2, 2, 1, 1, 2, 2, 2, 2, 0, -2, 2, -2, 1, 0}}}}},
      {.op = TENON_OP_Col2Im,
       .variants = variants(folded),
       .bound = sum_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_Im2Col},
       .golden = {{"padded",
                   folded(plain),
                   {{-1, 0, 0, -2, -2, 2, 2, 1, 1, 0, 1, 1, -2, 0, -2, 1, 0, 2, 0, 1, 0, -2, -2, 1, 2, -1, 1, -2, -1, 0, 2, 0}},
                   {{1, -2, 0, 0, 0, 1, 1, -1, 1, 2, -2, 0, 0, -1, 1, 1, 0, 0}}}}},
  };
}

}  // namespace tenon::conformance
