// Elementwise arithmetic of two operands with NumPy broadcasting: one IEEE operation in T per element.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

namespace tenon::reference {
namespace {

/// y[i] = f(a[i], b[i]), a and b broadcast to the shape of y. y may be an operand of its own shape: an element is read before it is
/// written.
template <class T, class Function>
void elementwise(const sdk::Call& call, Function f) {
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  T* y = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = f(a[at[0]], b[at[1]]); });
}

/// y = a + b
template <class T>
void add(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return a + b; });
}

/// y = a - b
template <class T>
void sub(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return a - b; });
}

/// y = a b
template <class T>
void mul(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return a * b; });
}

/// y = a / b; x / 0 is an infinity, 0 / 0 is NaN.
template <class T>
void div(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return a / b; });
}

constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true};
}  // namespace
TENON_KERNEL_WITH(add, elementwise_traits, float, double)
TENON_KERNEL_WITH(sub, elementwise_traits, float, double)
TENON_KERNEL_WITH(mul, elementwise_traits, float, double)
TENON_KERNEL_WITH(div, elementwise_traits, float, double)
}  // namespace tenon::reference
