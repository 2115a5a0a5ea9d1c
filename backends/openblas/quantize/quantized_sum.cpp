// SPDX-License-Identifier: Apache-2.0
// quantized_sum.cpp - see quantized_sum.h.
#include "simd/foreach_target.h"

#include "quantize/quantized_sum.h"

#include <cmath>
#include <limits>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class A, class B, class Y>
HWY_INLINE Y one_sum(const QuantizedSum& by, A a, B b) {
  float sum = (static_cast<float>(a) - by.a_zero) * by.a_scale + (static_cast<float>(b) - by.b_zero) * by.b_scale;
  if (by.relu && sum <= 0) sum = 0;
  const float q = std::nearbyint(sum / by.y_scale) + static_cast<float>(by.y_zero);
  const float low = std::numeric_limits<Y>::lowest(), high = std::numeric_limits<Y>::max();
  return q != q ? Y{0} : static_cast<Y>(q < low ? low : q > high ? high : q);
}

/// The whole vectors among n elements; returns their number of elements. `relu`: whether the sum goes through it.
template <bool relu, class A, class B, class Y>
HWY_INLINE std::int64_t add_vectors(const QuantizedSum& by, const A* a, const B* b, Y* y, std::int64_t n) {
  // A division takes as long as all else. The quotient lies between the products with numbers just below and above the reciprocal, and
  // rounding is monotonic: where both round to one integer, so does the quotient. Added to 1.5 * 2^23, a product is rounded to an integer,
  // which is then in the low bits of the sum. False for NaN, and for scales that differ by more than 2^13, whose quotients are too large.
  const float largest = 256 * (std::abs(by.a_scale) + std::abs(by.b_scale)) / by.y_scale;
  if (!(by.y_scale > 0x1p-100F && largest < 0x1p21F)) return 0;
  const Wide<float> d;
  const hn::RebindToSigned<Wide<float>> whole;
  const auto value = [&](auto x, auto zero, auto scale)
                         HWY_ATTR { return hn::Mul(hn::Sub(hn::ConvertTo(d, hn::PromoteTo(whole, x)), zero), scale); };
  const float reciprocal = 1 / by.y_scale;
  const auto below = hn::Set(d, reciprocal * (1 - 0x1p-22F)), above = hn::Set(d, reciprocal * (1 + 0x1p-22F)),
             rounder = hn::Set(d, 0x1.8p23F);
  const auto a_zero = hn::Set(d, by.a_zero), b_zero = hn::Set(d, by.b_zero), a_scale = hn::Set(d, by.a_scale),
             b_scale = hn::Set(d, by.b_scale);
  const auto y_zero = hn::Sub(hn::Set(whole, by.y_zero), hn::BitCast(whole, rounder));
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    auto sum = hn::Add(value(hn::LoadU(hn::Rebind<A, Wide<float>>(), a + i), a_zero, a_scale),
                       value(hn::LoadU(hn::Rebind<B, Wide<float>>(), b + i), b_zero, b_scale));
    if constexpr (relu) sum = hn::Max(sum, hn::Zero(d));
    const auto low = hn::MulAdd(sum, below, rounder), high = hn::MulAdd(sum, above, rounder);
    if (!hn::AllTrue(d, hn::Eq(low, high))) {
      for (std::int64_t j = i; j < i + step; ++j) y[j] = one_sum<A, B, Y>(by, a[j], b[j]);
      continue;
    }
    const auto integers = hn::Add(hn::BitCast(whole, low), y_zero);
    hn::StoreU(hn::DemoteTo(hn::Rebind<Y, Wide<float>>(), integers), hn::Rebind<Y, Wide<float>>(), y + i);
  }
  return i;
}

template <class A, class B, class Y>
void add_quantized(const QuantizedSum& by, const A* a, const B* b, Y* y, std::int64_t n) {
  std::int64_t i = by.relu ? add_vectors<true>(by, a, b, y, n) : add_vectors<false>(by, a, b, y, n);
  for (; i < n; ++i) y[i] = one_sum<A, B, Y>(by, a[i], b[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <optional>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 10 us.
constexpr std::int64_t grain = 48 * 1024;

bool is_byte(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_I8 || dtype == TENON_DTYPE_U8;
}

/// The places of the operands of a program that quantized_sum() runs; zero points may be absent (none).
struct Form {
  static constexpr std::uint32_t none = TENON_NO_INDEX;
  struct Quantized {
    std::uint32_t x = none, scale = none, zero = none;
  };
  Quantized a, b;
  std::uint32_t y_scale = none, y_zero = none;
  bool relu = false;
};

std::optional<Form> form_of(const sdk::ElementwiseProgram& program) {
  if (program.rows != 1 || program.output_count != 1 || !is_byte(program.places[program.input_count].dtype)) return std::nullopt;
  const auto is_input = [&](std::uint32_t place, std::int64_t stride) {
    return place < program.input_count && program.places[place].column_stride == stride;
  };
  Form form;
  std::vector<std::pair<std::uint32_t, Form::Quantized>> values;  // the place of each dequantised operand
  std::uint32_t sum = Form::none;                                 // the place of the sum, and of its relu
  bool done = false;
  for (const sdk::ElementwiseMember& member : program.members) {
    const std::vector<std::uint32_t>& in = member.inputs;
    const auto parameters = [&](std::uint32_t& scale, std::uint32_t& zero) {
      if (in.size() < 2 || !is_input(in[1], 0) || program.places[in[1]].dtype != TENON_DTYPE_F32) return false;
      scale = in[1];
      if (in.size() > 2) zero = in[2];
      return in.size() == 2 || is_input(in[2], 0);
    };
    if (done) return std::nullopt;
    switch (member.op) {
      case TENON_OP_DequantizeLinear: {
        Form::Quantized value;
        value.x = in[0];
        if (sum != Form::none || values.size() == 2 || !is_input(in[0], 1) || !is_byte(program.places[in[0]].dtype)) return std::nullopt;
        if (!parameters(value.scale, value.zero)) return std::nullopt;
        values.emplace_back(member.output, value);
        break;
      }
      case TENON_OP_Add:
        if (sum != Form::none || values.size() != 2 || in[0] == in[1]) return std::nullopt;
        for (const auto& [place, value] : values) {
          if (place != in[0] && place != in[1]) return std::nullopt;
          (place == in[0] ? form.a : form.b) = value;
        }
        sum = member.output;
        break;
      case TENON_OP_Relu:
        if (sum == Form::none || in[0] != sum || form.relu) return std::nullopt;
        form.relu = true;
        sum = member.output;
        break;
      case TENON_OP_QuantizeLinear:
        if (sum == Form::none || in[0] != sum || !parameters(form.y_scale, form.y_zero)) return std::nullopt;
        if (member.output != program.input_count) return std::nullopt;
        done = true;
        break;
      default:
        return std::nullopt;
    }
  }
  return done ? std::optional(form) : std::nullopt;
}

/// A zero point of i8 or u8; 0 if it is absent.
std::int32_t zero_of(const sdk::Call& call, std::uint32_t place) {
  if (place == Form::none) return 0;
  const sdk::Operand& zero = call.inputs[place];
  return zero.dtype == TENON_DTYPE_I8 ? *zero.as<const std::int8_t>() : *zero.as<const std::uint8_t>();
}

template <class Function>
void with_byte_type(tenon_dtype dtype, const Function& function) {
  dtype == TENON_DTYPE_I8 ? function(std::int8_t{}) : function(std::uint8_t{});
}

void quantized_sum(const sdk::Call& call) {
  const Form form = *form_of(sdk::program_of(call));
  const QuantizedSum by{.a_scale = *call.input<float>(form.a.scale),
                        .b_scale = *call.input<float>(form.b.scale),
                        .y_scale = *call.input<float>(form.y_scale),
                        .a_zero = static_cast<float>(zero_of(call, form.a.zero)),
                        .b_zero = static_cast<float>(zero_of(call, form.b.zero)),
                        .y_zero = zero_of(call, form.y_zero),
                        .relu = form.relu};
  const sdk::Operand &a = call.inputs[form.a.x], &b = call.inputs[form.b.x], &y = call.outputs[0];
  call.host.parallel_for(sdk::program_of(call).columns, grain, [&](std::int64_t begin, std::int64_t end) {
    with_byte_type(a.dtype, [&]<class A>(A) {
      with_byte_type(b.dtype, [&]<class B>(B) {
        with_byte_type(y.dtype, [&]<class Y>(Y) {
          TENON_DISPATCH(add_quantized<A, B, Y>)(by, a.as<const A>() + begin, b.as<const B>() + begin, y.as<Y>() + begin, end - begin);
        });
      });
    });
  });
}

}  // namespace

sdk::KernelFunction quantized_sum_of(const sdk::ElementwiseProgram& program) {
  return form_of(program) ? quantized_sum : nullptr;
}

}  // namespace tenon::openblas
#endif
