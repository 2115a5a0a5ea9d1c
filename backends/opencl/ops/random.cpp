// SPDX-License-Identifier: Apache-2.0
// Random tensors: every bit is specified by <tenon/sdk/random.h>, which kernel/random.cl follows.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>
#include <tenon/sdk/rounding.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

template <class T, class Parameter>
void fill(const sdk::Call& call, const char* function, Parameter a, Parameter b) {
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::random, function, types<T>());
  launch.value(count)
      .out(call, 0)
      .in(call, 0)
      .value(call.attr<tenon_attributes_random>().stream)
      .value(a)
      .value(b)
      .over(sdk::ceil_div(count, 4));
}

template <class T>
void random_uniform(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_random>();
  fill<T>(call, "random_uniform", static_cast<T>(a.a), static_cast<T>(a.b));
}

/// Without f64 within the bound that the specification allows.
template <class T>
void random_normal(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_random>();
  if (computes_f64(call)) {
    fill<T>(call, "random_normal", a.a, a.b);
  } else {
    fill<T>(call, "random_normal", static_cast<float>(a.a), static_cast<float>(a.b));
  }
}

template <class T>
void random_bernoulli(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_random>();
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::random, "random_bernoulli", types<T>());
  launch.value(count).out(call, 0).in(call, 0).value(a.stream).value(sdk::random::bernoulli_threshold(a.a)).over(sdk::ceil_div(count, 4));
}

}  // namespace
TENON_KERNEL(random_uniform, float, double)
TENON_KERNEL(random_normal, float, double)
TENON_KERNEL(random_bernoulli, float, double)
}  // namespace tenon::opencl
