// SPDX-License-Identifier: Apache-2.0
// quantized_sum.cpp - see quantized_sum.h.
#include "simd/foreach_target.h"

#include "quantize/quantized_sum.h"

#include <cmath>
#include <type_traits>

#include "quantize/quantize_lines.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class A, class B, class Y>
HWY_INLINE Y one_sum(const QuantizedSum& by, A a, B b) {
  float sum = (static_cast<float>(a) - by.a_zero) * by.a_scale + (static_cast<float>(b) - by.b_zero) * by.b_scale;
  if (by.relu && sum <= 0) sum = 0;
  return quantized(sum, by.y_scale, static_cast<Y>(by.y_zero));
}

/// As the nodes do it, with a division; n is a multiple of the number of lanes.
template <class A, class B, class Y>
HWY_NOINLINE void add_by_division(const QuantizedSum& by, const A* a, const B* b, Y* y, std::int64_t n) {
  const Wide<float> d;
  const hn::RebindToSigned<Wide<float>> whole;
  const auto value = [&](auto x, float zero, float scale) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::ConvertTo(d, hn::PromoteTo(whole, x)), hn::Set(d, zero)), hn::Set(d, scale));
  };
  const auto y_scale = hn::Set(d, by.y_scale), y_zero = hn::Set(d, static_cast<float>(by.y_zero));
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    auto sum = hn::Add(value(hn::LoadU(hn::Rebind<A, Wide<float>>(), a + i), by.a_zero, by.a_scale),
                       value(hn::LoadU(hn::Rebind<B, Wide<float>>(), b + i), by.b_zero, by.b_scale));
    if (by.relu) sum = hn::IfThenZeroElse(hn::Le(sum, hn::Zero(d)), sum);
    hn::StoreU(quantized_by_division<Y>(sum, y_scale, y_zero), hn::Rebind<Y, Wide<float>>(), y + i);
  }
}

#if HWY_TARGET != HWY_SCALAR
/// round(v) for |v| < 2^31: NearestInt() without its instructions for larger numbers.
HWY_INLINE hn::Vec<Wide<std::int32_t>> small_nearest_int(hn::Vec<Wide<float>> v) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<Wide<std::int32_t>>{_mm512_cvtps_epi32(v.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<Wide<std::int32_t>>{_mm256_cvtps_epi32(v.raw)};
#else
  return hn::NearestInt(v);
#endif
}

/// Sums in fixed point, of 16 binary digits after the point, where their integers are certain.
///
/// p = (a - a_zero) a_scale / y_scale + (b - b_zero) b_scale / y_scale + y_zero + 1/2, of which the integer part is y if nothing is
/// rounded, is computed with two multiply-adds. The error bound adds up what is rounded here and in the nodes; where p is closer to an
/// integer than that, which about one p of 2000 is, the nodes' arithmetic decides. Bytes are read as u8, and written so: an i8 is 128 more,
/// as is its zero point.
class FixedPointSum {
  using D = Wide<float>;
  using Whole = hn::RebindToSigned<D>;
  using Word = hn::RebindToUnsigned<D>;
  static constexpr float one = 0x1p16F;

  float a_ratio_ = 0, b_ratio_ = 0, begin_ = 0;  // the factors of a and b, and p for a = b = 0, times 2^16
  std::int32_t margin_ = 0;                      // the error bound in units of 2^-16: a power of 2, or 0 if there is none
  std::int16_t low_ = 0;
  std::uint32_t a_flip_, b_flip_, y_flip_;

 public:
  FixedPointSum(const QuantizedSum& by, bool a_signed, bool b_signed, bool y_signed)
      : a_flip_(a_signed ? 0x80808080 : 0), b_flip_(b_signed ? 0x80808080 : 0), y_flip_(y_signed ? 0x80808080 : 0) {
    const double a_ratio = static_cast<double>(by.a_scale) / by.y_scale, b_ratio = static_cast<double>(by.b_scale) / by.y_scale;
    const double a_zero = by.a_zero + (a_signed ? 128 : 0), b_zero = by.b_zero + (b_signed ? 128 : 0);
    const std::int32_t y_zero = by.y_zero + (y_signed ? 128 : 0);
    const double begin = y_zero + 0.5 - a_zero * a_ratio - b_zero * b_ratio;
    const double a_size = 255 * std::abs(a_ratio), b_size = 255 * std::abs(b_ratio);
    if (!(by.y_scale > 0x1p-100F && by.y_scale < 0x1p100F && a_size + b_size + std::abs(begin) < 0x1p13)) return;
    // In units of 2^-24, rounding errors of: both ratios, and both products where there is no fused multiply-add; the beginning; the first
    // multiply-add; the second one, whose result is below 258 unless y saturates; the nodes' products, and their sum and quotient likewise.
    const double roundings = 2 * (a_size + b_size) + std::abs(begin) + (std::abs(begin) + a_size) + 258 + (a_size + b_size) + 2 * 258;
    const double bound =
        1.01 * (roundings * 0x1p-8 + 0.5 + 1);  // in units of 2^-16, and the rounding to an integer; 1 for what begin_ adds
    for (margin_ = 1; margin_ < bound;) margin_ *= 2;
    a_ratio_ = static_cast<float>(a_ratio * one);
    b_ratio_ = static_cast<float>(b_ratio * one);
    begin_ = static_cast<float>(begin * one + margin_);
    low_ = static_cast<std::int16_t>(by.relu ? y_zero : 0);
  }

  /// Whether there is an error bound. It is at most 256: then one p of 128 is within it.
  bool is_certain() const { return margin_ > 0; }

  /// Elements of a block: a vector of their bytes.
  static std::int64_t block() { return 4 * lanes(D()); }

  /// The whole blocks among n elements; returns their number of elements. `otherwise` is called with the index of blocks that need it.
  template <class Function>
  HWY_INLINE std::int64_t add(const void* a, const void* b, void* y, std::int64_t n, const Function& otherwise) const {
    const D d;
    const Whole whole;
    const Word word;
    const hn::Repartition<std::uint16_t, D> unsigned_half;
    const hn::Repartition<std::int16_t, D> half;
    const hn::Repartition<std::uint8_t, D> byte;
    // Byte j of each word is converted where it is, as a multiple of 2^(8 j), or from the low bits if it is the last one.
    const auto a0 = hn::Set(d, a_ratio_), a1 = hn::Set(d, a_ratio_ * 0x1p-8F), a2 = hn::Set(d, a_ratio_ * 0x1p-16F);
    const auto b0 = hn::Set(d, b_ratio_), b1 = hn::Set(d, b_ratio_ * 0x1p-8F), b2 = hn::Set(d, b_ratio_ * 0x1p-16F);
    const auto begin = hn::Set(d, begin_);
    const auto byte0 = hn::Set(word, 0xff), byte1 = hn::Set(word, 0xff00), byte2 = hn::Set(word, 0xff0000);
    const auto a_flip = hn::Set(word, a_flip_), b_flip = hn::Set(word, b_flip_), y_flip = hn::Set(word, y_flip_);
    const auto beyond_margin = hn::Set(word, static_cast<std::uint32_t>(0xffff & ~(2 * margin_ - 1)));
    const auto low = hn::Set(half, low_), high = hn::Set(half, 255);
    const auto number = [&](auto v) HWY_ATTR { return hn::ConvertTo(d, hn::BitCast(whole, v)); };
    const auto sum = [&](auto a_part, auto a_by, auto b_part, auto b_by)
                         HWY_ATTR { return small_nearest_int(hn::MulAdd(number(b_part), b_by, hn::MulAdd(number(a_part), a_by, begin))); };
    const auto low_halves = [&](auto v) HWY_ATTR { return hn::BitCast(unsigned_half, v); };
    // The integers of two vectors: those of the second one in the upper halves of words.
    const auto integers = [&](auto lower, auto upper) HWY_ATTR {
      return hn::Max(hn::Min(hn::OddEven(hn::BitCast(half, upper), hn::BitCast(half, hn::ShiftRight<16>(lower))), high), low);
    };
    std::int64_t i = 0;
    for (; i + block() <= n; i += block()) {
      const auto from_a = hn::Xor(hn::BitCast(word, hn::LoadU(byte, static_cast<const std::uint8_t*>(a) + i)), a_flip);
      const auto from_b = hn::Xor(hn::BitCast(word, hn::LoadU(byte, static_cast<const std::uint8_t*>(b) + i)), b_flip);
      const auto sum0 = sum(hn::And(from_a, byte0), a0, hn::And(from_b, byte0), b0);
      const auto sum1 = sum(hn::And(from_a, byte1), a1, hn::And(from_b, byte1), b1);
      const auto sum2 = sum(hn::And(from_a, byte2), a2, hn::And(from_b, byte2), b2);
      const auto sum3 = sum(hn::ShiftRight<24>(from_a), a0, hn::ShiftRight<24>(from_b), b0);
      const auto least = hn::Min(hn::Min(low_halves(sum0), low_halves(sum1)), hn::Min(low_halves(sum2), low_halves(sum3)));
      if (!hn::AllFalse(word, hn::Eq(hn::And(hn::BitCast(word, least), beyond_margin), hn::Zero(word)))) {
        otherwise(i);
        continue;
      }
      const auto even = hn::BitCast(unsigned_half, integers(sum0, sum2)), odd = hn::BitCast(unsigned_half, integers(sum1, sum3));
      const auto bytes = hn::Xor(hn::BitCast(word, hn::Or(even, hn::ShiftLeft<8>(odd))), y_flip);
      hn::StoreU(hn::BitCast(byte, bytes), byte, static_cast<std::uint8_t*>(y) + i);
    }
    return i;
  }
};
#endif

template <class A, class B, class Y>
void add_quantized(const QuantizedSum& by, const A* a, const B* b, Y* y, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const FixedPointSum fixed_point(by, std::is_signed_v<A>, std::is_signed_v<B>, std::is_signed_v<Y>);
  if (fixed_point.is_certain()) {
    i = fixed_point.add(a, b, y, n, [&](std::int64_t at) { add_by_division(by, a + at, b + at, y + at, FixedPointSum::block()); });
  }
#endif
  const std::int64_t step = lanes(Wide<float>()), rest = (n - i) / step * step;
  add_by_division(by, a + i, b + i, y + i, rest);
  for (i += rest; i < n; ++i) y[i] = one_sum<A, B, Y>(by, a[i], b[i]);
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
