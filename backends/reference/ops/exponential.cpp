// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms and the error function: the C library's in f64, rounded once.
#include <cmath>

#include "map.h"

namespace tenon::reference {
namespace {

/// y = e^x
template <class T>
void exp(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::exp(x); });
}

/// y = e^x - 1
template <class T>
void expm1(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::expm1(x); });
}

/// y = log x; -inf at 0, NaN below
template <class T>
void log(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::log(x); });
}

/// y = log x / log 2
template <class T>
void log2(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::log2(x); });
}

/// y = log(1 + x)
template <class T>
void log1p(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::log1p(x); });
}

/// y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x
template <class T>
void erf(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::erf(x); });
}

}  // namespace
TENON_KERNEL_WITH(exp, elementwise_traits, float, double)
TENON_KERNEL_WITH(expm1, elementwise_traits, float, double)
TENON_KERNEL_WITH(log, elementwise_traits, float, double)
TENON_KERNEL_WITH(log2, elementwise_traits, float, double)
TENON_KERNEL_WITH(log1p, elementwise_traits, float, double)
TENON_KERNEL_WITH(erf, elementwise_traits, float, double)
}  // namespace tenon::reference
