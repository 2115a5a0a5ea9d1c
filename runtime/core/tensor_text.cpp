// SPDX-License-Identifier: Apache-2.0
// core/tensor_text.cpp - printing and comparing tensors.
#include <cmath>
#include <cstring>
#include <ostream>

#include <tenon/tensor.h>

#include "core/element.h"

namespace tenon {
namespace {

/// Prints the axes from `axis` on; their brackets start in column `axis`.
void append(std::string& text, const Tensor& part, std::size_t depth, std::int64_t edge) {
  if (part.shape().rank() == 0) {
    text += element_text(part.raw(), part.dtype());
    return;
  }
  const std::int64_t size = part.shape()[0];
  const bool abridged = size > 2 * edge + 1;
  // One row a line, with an empty line between them for each further dimension.
  const std::size_t inner = part.shape().rank() - 1;
  const std::string separator = inner == 0 ? ", " : "," + std::string(inner, '\n') + std::string(depth + 1, ' ');
  text += '[';
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) text += separator;
    if (abridged && i == edge) {
      text += "..." + separator;
      i = size - edge;
    }
    append(text, part.select(0, i), depth + 1, edge);
  }
  text += ']';
}

Tensor host_of(const Tensor& t) {
  return t.on_host() ? t : t.to_host();
}

void need_defined(const Tensor& a, const Tensor& b, const char* what) {
  if (!a.defined() || !b.defined()) throw Error(std::string(what) + ": got an undefined tensor");
}

}  // namespace

std::string Tensor::text(std::int64_t edge) const {
  if (!defined()) return "undefined";
  std::string text;
  append(text, host_of(*this), 0, std::max<std::int64_t>(edge, 1));
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << tensor.text();
}

bool equal(const Tensor& a, const Tensor& b) {
  need_defined(a, b, "equal");
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.count() == 0) return true;
  const Tensor x = host_of(a).contiguous(), y = host_of(b).contiguous();
  return std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.size_bytes())) == 0;
}

bool all_close(const Tensor& a, const Tensor& b, double relative, double absolute) {
  need_defined(a, b, "all_close");
  if (!(a.shape() == b.shape())) return false;
  const Tensor x = host_of(a).contiguous(), y = host_of(b).contiguous();
  const auto* at_x = static_cast<const char*>(x.raw());
  const auto* at_y = static_cast<const char*>(y.raw());
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const double left = element_as_double(at_x + i * size_of(x.dtype()), x.dtype(), "all_close");
    const double right = element_as_double(at_y + i * size_of(y.dtype()), y.dtype(), "all_close");
    if (left == right) continue;  // also equal infinities
    if (!std::isfinite(left) || !std::isfinite(right) || std::abs(left - right) > absolute + relative * std::abs(right)) return false;
  }
  return true;
}

}  // namespace tenon
