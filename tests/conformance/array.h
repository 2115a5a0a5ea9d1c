// SPDX-License-Identifier: Apache-2.0
// array.h - operands in host memory: dense elements of one dtype, and functions that fill and compare them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

#include "facts.h"

namespace tenon::conformance {

using Dims = std::vector<std::int64_t>;

/// The largest number if there are more elements than an int64_t counts.
std::int64_t count_of(const Dims& shape);
/// "(8,10)"; "()" for a scalar.
std::string str(const Dims& shape);
Dims dense_strides(const Dims& shape);
/// The index of element `flat` of a dense array: "(0,3)".
std::string index_of(std::int64_t flat, const Dims& shape);
/// NumPy broadcasting of compatible shapes.
Dims broadcast(const Dims& a, const Dims& b);

bool is_float(tenon_dtype dtype);
/// f16 and bf16, storage types: arithmetic on them is done in f32.
bool is_narrow(tenon_dtype dtype);
/// The distance from 1 to the next number.
double epsilon(tenon_dtype dtype);
/// The smallest positive number, a denormal.
double smallest(tenon_dtype dtype);
/// The smallest normal number.
double smallest_normal(tenon_dtype dtype);
/// The largest finite number.
double largest(tenon_dtype dtype);

/// Numbers that depend only on a seed (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  /// In [low, high).
  double uniform(double low, double high);
  /// In [low, high).
  std::int64_t integer(std::int64_t low, std::int64_t high);

 private:
  std::uint64_t state_;
};
/// A seed for `name`, so that a case gets the same numbers whichever other cases run.
std::uint64_t seed_for(std::uint64_t seed, const std::string& name);

/// Dense row-major elements.
class Array {
 public:
  Array() = default;
  Array(tenon_dtype dtype, Dims shape);
  /// Values are rounded to the dtype.
  Array(tenon_dtype dtype, Dims shape, const std::vector<double>& values);

  tenon_dtype dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  std::int64_t count() const { return count_; }
  std::int64_t element_size() const { return element_size_; }
  std::uint64_t size_bytes() const { return bytes_.size(); }
  unsigned char* bytes() { return bytes_.data(); }
  const unsigned char* bytes() const { return bytes_.data(); }

  /// Any dtype as a double; 64-bit integers beyond 2^53 round.
  double at(std::int64_t i) const;
  /// Rounded to the dtype; integers truncate and wrap as C++ does for values in range.
  void set(std::int64_t i, double value);
  template <class T>
  T get(std::int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void put(std::int64_t i, T value) {
    std::memcpy(bytes_.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  /// The element as text, with all digits that distinguish it from its neighbours.
  std::string str(std::int64_t i) const;
  /// "f32(8,10)".
  std::string str() const;
  /// The same values in another dtype.
  Array as(tenon_dtype dtype) const;
  bool same_bits(const Array& other) const { return dtype_ == other.dtype_ && shape_ == other.shape_ && bytes_ == other.bytes_; }

 private:
  tenon_dtype dtype_ = TENON_DTYPE_NONE;
  Dims shape_;
  std::int64_t count_ = 0;
  std::int64_t element_size_ = 0;
  std::vector<unsigned char> bytes_;
};

/// The largest allowed error: absolute + relative * |expected|. If both are 0, the result is the expected number rounded to its dtype.
struct Bound {
  double relative = 0;
  double absolute = 0;
  double rounding = 0;        ///< added to `relative` for results in f16 and bf16, which are rounded once more
  bool signed_zeros = false;  ///< a zero has the sign of the expected one
  Bound times(double factor) const { return {relative * factor, absolute * factor, rounding * factor, signed_zeros}; }
};

/// A message about what is wrong, and its facts. An empty message means that nothing is.
struct Wrong {
  Wrong() = default;
  Wrong(std::string sentence, Facts known = {})
      : text(std::move(sentence)), facts(std::move(known)) {}  // not explicit: most messages have no facts
  Wrong(const char* sentence) : text(sentence) {}
  std::string text;
  Facts facts;
  bool empty() const { return text.empty(); }
};

/// Empty if `got` equals `expected` within the bound; otherwise the first wrong element and the number of wrong ones. `expected` may have a
/// wider dtype. NaN needs NaN, an infinity the same infinity, and a value that overflows got's dtype an infinity.
Wrong difference(const Array& expected, const Array& got, const Bound& bound);
/// Only the message.
std::string compare(const Array& expected, const Array& got, const Bound& bound);

}  // namespace tenon::conformance
