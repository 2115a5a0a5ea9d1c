// Conversion of every element to another dtype.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace tenon::reference {
namespace {

/// x as a U. Float to integer truncates toward zero and saturates, NaN becomes 0; integer to a narrower integer keeps the low bits;
/// anything to bool is x != 0; the rest rounds to nearest.
template <class U, class T>
U convert(T x) {
  if constexpr (std::is_same_v<U, bool>) {
    return x != T(0);
  } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U>) {
    const double above = std::ldexp(1.0, std::numeric_limits<U>::digits);  // max() + 1: exact, which max() itself need not be in f64
    const double lowest = std::is_signed_v<U> ? -above : 0.0;
    if (std::isnan(x)) return 0;
    if (x >= above) return std::numeric_limits<U>::max();
    if (x <= lowest) return std::numeric_limits<U>::min();
    return static_cast<U>(x);
  } else {
    return static_cast<U>(x);
  }
}

template <class T, class U>
void convert_all(const sdk::Call& call) {
  const T* x = call.input<T>(0);
  U* y = call.output<U>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = convert<U>(x[at[0]]); });
}

/// y = (to) x
///
/// Dtypes      from and to f32, f64, i8 to i64, u8 to u64, bool.
/// Attributes  to: the dtype of y.
template <class T>
void cast(const sdk::Call& call) {
  switch (call.attr<tenon_attributes_cast>().to) {
    case TENON_DTYPE_F32:
      return convert_all<T, float>(call);
    case TENON_DTYPE_F64:
      return convert_all<T, double>(call);
    case TENON_DTYPE_I8:
      return convert_all<T, std::int8_t>(call);
    case TENON_DTYPE_I16:
      return convert_all<T, std::int16_t>(call);
    case TENON_DTYPE_I32:
      return convert_all<T, std::int32_t>(call);
    case TENON_DTYPE_I64:
      return convert_all<T, std::int64_t>(call);
    case TENON_DTYPE_U8:
      return convert_all<T, std::uint8_t>(call);
    case TENON_DTYPE_U16:
      return convert_all<T, std::uint16_t>(call);
    case TENON_DTYPE_U32:
      return convert_all<T, std::uint32_t>(call);
    case TENON_DTYPE_U64:
      return convert_all<T, std::uint64_t>(call);
    case TENON_DTYPE_BOOL:
      return convert_all<T, bool>(call);
    default:
      throw sdk::Error(TENON_INTERNAL, "cast: a dtype came through that supports() refuses");
  }
}

const char* refuse(const sdk::Call& call) {
  constexpr std::uint64_t served = TENON_DTYPE_BIT(TENON_DTYPE_F32) | TENON_DTYPE_BIT(TENON_DTYPE_F64) | TENON_DTYPE_BIT(TENON_DTYPE_I8) |
                                   TENON_DTYPE_BIT(TENON_DTYPE_I16) | TENON_DTYPE_BIT(TENON_DTYPE_I32) | TENON_DTYPE_BIT(TENON_DTYPE_I64) |
                                   TENON_DTYPE_BIT(TENON_DTYPE_U8) | TENON_DTYPE_BIT(TENON_DTYPE_U16) | TENON_DTYPE_BIT(TENON_DTYPE_U32) |
                                   TENON_DTYPE_BIT(TENON_DTYPE_U64) | TENON_DTYPE_BIT(TENON_DTYPE_BOOL);
  const tenon_dtype to = call.attr<tenon_attributes_cast>().to;
  const bool known = to < TENON_DTYPE_COUNT && (TENON_DTYPE_BIT(to) & served) != 0;
  return known ? nullptr : "cast: the target is served for f32, f64, i8 to i64, u8 to u64 and bool only";
}

}  // namespace
TENON_KERNEL_WITH(cast, (sdk::Traits{.strided = true, .refuse = refuse}), float, double, std::int8_t, std::int16_t, std::int32_t,
                  std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool)
}  // namespace tenon::reference
