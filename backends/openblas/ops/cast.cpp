// ops/cast.cpp - conversions between element types. Plain loops: the compiler turns those between neighbouring sizes into vectors.
#include <cmath>
#include <limits>

#include "half.h"
#include "walk.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us.
constexpr std::int64_t grain = 64 * 1024;

/// One element.
///
/// To bool        anything but 0 is 1, NaN too.
/// Float to int   the fraction is cut off, what lies outside becomes the nearest end of the range, NaN becomes 0.
/// Int to int     the low bits, as two's complement has it.
/// To a float     the nearest, ties to even, rounded once.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_narrow<From>) {
    return convert<To>(to_float(x));
  } else if constexpr (is_narrow<To>) {
    return narrowed<To>(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // 2^digits is the first value above the range and exact in either float type; the lowest value is exact too.
    const From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
    const From lowest = static_cast<From>(std::numeric_limits<To>::lowest());
    if (x >= above) return std::numeric_limits<To>::max();
    if (x > lowest) return static_cast<To>(x);
    return x <= lowest ? std::numeric_limits<To>::lowest() : To(0);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void cast_to(const sdk::Call& call) {
  elementwise<From, To, 1>(call, grain, 0, [](const Stretch<From, 1>& s, To* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = convert<To>(s.x[0][i]);
  });
}

template <class From>
using CastFunction = void (*)(const sdk::Call&);

/// The conversion into `to`; NULL for types without arithmetic here.
template <class From>
CastFunction<From> cast_from(tenon_dtype to) {
  switch (to) {
    case TENON_DTYPE_F16:
      return cast_to<From, sdk::Half>;
    case TENON_DTYPE_BF16:
      return cast_to<From, sdk::BFloat16>;
    case TENON_DTYPE_F32:
      return cast_to<From, float>;
    case TENON_DTYPE_F64:
      return cast_to<From, double>;
    case TENON_DTYPE_I8:
      return cast_to<From, std::int8_t>;
    case TENON_DTYPE_I16:
      return cast_to<From, std::int16_t>;
    case TENON_DTYPE_I32:
      return cast_to<From, std::int32_t>;
    case TENON_DTYPE_I64:
      return cast_to<From, std::int64_t>;
    case TENON_DTYPE_U8:
      return cast_to<From, std::uint8_t>;
    case TENON_DTYPE_U16:
      return cast_to<From, std::uint16_t>;
    case TENON_DTYPE_U32:
      return cast_to<From, std::uint32_t>;
    case TENON_DTYPE_U64:
      return cast_to<From, std::uint64_t>;
    case TENON_DTYPE_BOOL:
      return cast_to<From, bool>;
    default:
      return nullptr;
  }
}

/// y = x in another type.
template <class T>
void cast(const sdk::Call& call) {
  cast_from<T>(call.attr<tenon_attributes_cast>().to)(call);
}

const char* refuse(const sdk::Call& call) {
  if (cast_from<float>(call.attr<tenon_attributes_cast>().to) != nullptr) return nullptr;
  return "cast: `to` must be a real dtype: f16 to f64, bool or an integer type";
}

}  // namespace

TENON_KERNEL_WITH(cast, (sdk::Traits{.strided = true, .in_place = true, .elementwise = true, .refuse = refuse}), sdk::Half, sdk::BFloat16,
                  float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                  std::uint64_t, bool)

}  // namespace tenon::openblas
