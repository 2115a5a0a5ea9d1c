// SPDX-License-Identifier: Apache-2.0
// ConvTranspose: the image gradient of a convolution, plus a bias.
#include "convolution.h"

namespace tenon::conformance {
namespace {

struct Shape {
  Convolution convolution;  ///< the convolution from y to x
  bool bias = false;
  Special special = Special::none;
};

std::vector<Variant> variants() {
  const Shape shapes[] = {
      {{2, 5, 7, {6, 5}, {1, 1}}, true, Special::none},
      {{1, 17, 16, {9, 8}, {1, 1}, {2, 2}}},
      {{1, 3, 16, {6, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, true},
      {{2, 16, 17, {7, 13}, {3, 3}, {}, {}, {1, 1}, {1, 1}}},
      {{1, 8, 16, {14, 14}, {2, 2}, {2, 2}}, true, Special::not_large},
      {{1, 16, 8, {13, 14}, {4, 4}, {2, 2}, {}, {1, 1}, {1, 1}}, true, Special::not_large},
      {{2, 3, 4, {9, 8}, {3, 3}, {2, 2}, {}, {0, 1}, {1, 1}}},
      {{1, 4, 3, {10, 11}, {3, 3}, {3, 3}, {}, {1, 0}, {0, 1}}, true},
      {{1, 2, 3, {7, 7}, {2, 2}, {3, 3}}, true},  // rows that no filter reaches
      {{1, 5, 6, {9, 9}, {3, 3}, {}, {2, 2}, {2, 2}, {2, 2}}},
      {{1, 3, 2, {8, 12}, {2, 3}, {2, 1}, {3, 2}, {1, 0}, {0, 1}}, true},
      {{2, 6, 9, {6, 5}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}, 3}, true},
      {{1, 16, 16, {9, 9}, {4, 4}, {2, 2}, {}, {1, 1}, {2, 2}, 16}, true},
      {{3, 16, 32, {31, 33}, {3, 3}, {2, 2}, {}, {1, 0}, {0, 1}, 2}, true},
      {{2, 32, 48, {15, 16}, {1, 1}}, true},
      {{2, 3, 5, {11}, {3}, {2}, {}, {1}, {1}}, true},
      {{1, 4, 16, {20}, {5}, {3}, {}, {0}, {2}}},
      {{0, 3, 4, {5, 5}, {3, 3}}, true},
  };
  std::vector<Variant> list;
  for (const Shape& shape : shapes) list.push_back(variant_of(shape.convolution, TENON_OP_ConvTranspose, shape.bias, shape.special));
  return list;
}

/// Without a bias it is ConvInputGrad.
void equals_conv_input_grad(CaseContext& context, tenon_dtype dtype) {
  for (const Variant& variant : variants()) {
    Variant plain = variant;
    plain.inputs.resize(2);
    const auto inputs = fill(plain, dtype, seed_for(context.seed, "transpose" + variant.label));
    const Array expected = context.run(net_of(line_of(TENON_OP_ConvInputGrad), plain, dtype, inputs))[0];
    plain.inputs.push_back(absent);
    const Array got = context.run(net_of(line_of(TENON_OP_ConvTranspose), plain, dtype, {inputs[0], inputs[1], {}}))[0];
    const std::string wrong = compare(expected, got, bound_of_convolution<TENON_OP_ConvTranspose>(plain, dtype).times(2));
    if (!wrong.empty()) throw Failure(fmt::format("{}: {}, expected the result of conv_input_grad", variant.label, wrong));
  }
}

}  // namespace

std::vector<OpCase> cases_conv_transpose() {
  // PyTorch 1.13: conv_transpose2d with stride (2, 1), padding (1, 0), output padding (1, 0), two groups; conv_transpose1d
  const Convolution image{1, 4, 2, {3, 4}, {2, 2}, {2, 1}, {}, {1, 0}, {1, 0}, 2};
  const Convolution line{1, 1, 2, {6}, {3}, {2}, {}, {1}, {1}};
  return {{
      .op = TENON_OP_ConvTranspose,
      .variants = variants(),
      .bound = bound_of_convolution<TENON_OP_ConvTranspose>,
      .gradient = {0, 1, 2},
      .gradient_ops = {TENON_OP_Conv, TENON_OP_ConvWeightGrad},
      .golden =
          {{"strided_grouped",
            variant_of(image, TENON_OP_ConvTranspose, true),
            {{-2, 1, 1, -1, 1, -2, 1, -1, -2, 0, 2, 0}, {0, 0, 2, 2, 1, -2, -1, 2, 1, 1, 2, -2, 0, -2, -1, 0}, {1, 0, 2, 1}},
            {{-3, -1, 5, 3, 1, 1, 1, 1, -1, 1, -1, -3, 2, -5, 1, 2, -1, 3, -4, 4, 1, -3, 4, -4,
              4,  -2, 0, 6, 2, 4, 4, 2, 2,  6, -2, 2,  0, 2,  3, 1, 1,  1, -3, 1, 1, -1, 1, 1}}},
           {"line", variant_of(line, TENON_OP_ConvTranspose), {{1, -1, -2, 1, 1, -2}, {-2, -1, 1, -2, 1, -1}, {}}, {{0, 0, 2, 6, 0, 0}}}},
      .extras = {{"equals_conv_input_grad", equals_conv_input_grad}},
  }};
}

}  // namespace tenon::conformance
