// SPDX-License-Identifier: Apache-2.0
// MatMulNBits: products with weights in blocks.
#include "product.h"
#include "quantized.h"

namespace tenon::conformance {
namespace {

constexpr Tolerance bound{
    "A sum of k products of numbers up to 2: the weights are integers times scales, which rounds each of them once more than a product of "
    "matrices does.",
    [](const Variant& variant, tenon_dtype t) -> Bound { return product_bound(variant.inputs[0].shape.back(), t).times(2); }};

struct Form {
  std::int64_t bits = 4, block_size = 32;
  bool zero_points = true, bias = false;
};

Variant product(const Dims& a, std::int64_t n, const Form& form = {}) {
  const std::int64_t blocks = (a.back() + form.block_size - 1) / form.block_size;
  const double magnitude = form.bits == 4 ? 15 : 255;
  const Values packed{.low = 0, .high = 256, .whole = true};
  tenon_attributes_nbits attributes{};
  attributes.bits = static_cast<std::uint32_t>(form.bits);
  attributes.block_size = form.block_size;
  Dims y = a;
  y.back() = n;
  return {fmt::format("bits={}/block={}{}{}", form.bits, form.block_size, form.zero_points ? "" : "/symmetric", form.bias ? "/bias" : ""),
          {operand(a), operand({n, blocks, form.block_size * form.bits / 8}, packed, u8),
           operand({n, blocks}, {.low = -2 / magnitude, .high = 2 / magnitude}),
           form.zero_points ? operand({n, (blocks * form.bits + 7) / 8}, packed, u8) : absent, form.bias ? operand({n}) : absent},
          {result(y)},
          attributes};
}

void check_random_shapes(CaseContext& context, tenon_dtype dtype) {
  const int count = small_sizes() ? 20 : 60;
  for (int index = 0; index < count; ++index) {
    const std::uint64_t seed = seed_for(context.seed, fmt::format("matmul_nbits {} {}", index, dtype));
    Random random(seed);
    const std::int64_t k = random.integer(1, 400), n = random.integer(1, 100);
    const std::int64_t m = random.integer(0, 2) == 0 ? random.integer(1, 9) : random.integer(1, 80);
    const Form form{random.integer(0, 2) == 0 ? 4 : 8, std::int64_t{16} << random.integer(0, 4), random.integer(0, 2) == 0,
                    random.integer(0, 2) == 0};
    const Variant variant = product({m, k}, n, form);
    check_packed_weights(context, TENON_OP_MatMulNBits, 1, variant, dtype, seed, bound(variant, dtype));
  }
}

}  // namespace

std::vector<OpCase> cases_matmul_nbits() {
  const std::vector<double> nibbles{0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f};  // 1, 2, ..., 15, 0
  std::vector<double> ones(16, 1);
  return {{
      .op = TENON_OP_MatMulNBits,
      .variants = {product({1, 16}, 1, {4, 16}), product({3, 5}, 4), product({1, 33}, 7, {8, 16}), product({7, 64}, 33, {4, 16, false}),
                   product({40}, 5, {4, 16, true, true}), product({2, 3, 48}, 9, {8, 16, false, true}), product({8, 256}, 40, {4, 128}),
                   product({9, 130}, 65, {4, 32, true, true}), product({22, 40}, 33, {8, 16}), product({33, 100}, 70, {8, 64, true, true}),
                   product({1, sized(2048, 256)}, sized(300, 50), {4, 32, true}),
                   product({sized(70, 20), 288}, sized(130, 35), {4, 32, false, true}), product({0, 20}, 3), product({2, 20}, 0)},
      .bound = bound,
      .golden = {{"nibbles", product({1, 16}, 1, {4, 16, false}), {ones, nibbles, {0.5}, {}, {}}, {{-4}}},
                 {"zero_points", product({1, 16}, 1, {4, 16, true}), {ones, nibbles, {0.5}, {0xf3}, {}}, {{36}}},
                 {"bytes",
                  product({1, 17}, 1, {8, 16, true, true}),
                  {std::vector<double>(17, 1), std::vector<double>(32, 255), {1, 2}, {254, 0}, {0.5}},
                  {{526.5}}}},
      .extras = {{"random_shapes", check_random_shapes}},
  }};
}

}  // namespace tenon::conformance
