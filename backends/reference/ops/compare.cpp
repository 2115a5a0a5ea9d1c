// Comparisons with NumPy broadcasting; the result is bool.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

namespace tenon::reference {
namespace {
/// y = (a == b); NaN equals nothing, -0 equals 0.
template <class T>
void equal(const sdk::Call& call) {
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  bool* y = call.output<bool>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = a[at[0]] == b[at[1]]; });
}
}  // namespace
TENON_KERNEL_WITH(equal, (sdk::Traits{.strided = true, .in_place = true}), float, double, std::int8_t, std::int16_t, std::int32_t,
                  std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool)
}  // namespace tenon::reference
