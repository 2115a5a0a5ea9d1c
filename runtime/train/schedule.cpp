// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <tenon/definition.h>
#include <tenon/error.h>

namespace tenon {

double Schedule::at(double initial, std::int64_t now, std::int64_t total) const {
  if (now < warmup) return initial * (warmup_from + (1 - warmup_from) * static_cast<double>(now + 1) / static_cast<double>(warmup));
  const std::int64_t t = now - warmup;
  switch (kind) {
    case Kind::constant:
      return initial;
    case Kind::step: {
      const std::int64_t falls = t / every;  // integer division
      return initial * std::pow(factor, static_cast<double>(falls));
    }
    case Kind::exponential:
      return initial * std::pow(factor, static_cast<double>(t) / static_cast<double>(every));
    case Kind::cosine: {
      const std::int64_t end = length > 0 ? length : total - warmup;
      if (end <= 0) {
        throw Error("schedule cosine: its length is unknown outside fit, or not longer than its warm-up; set `length`, in " +
                    std::string(per == Per::step ? "steps" : "epochs"));
      }
      const double part = t < end ? static_cast<double>(t) / static_cast<double>(end) : 1;
      return minimum + (initial - minimum) * (1 + std::cos(3.14159265358979323846 * part)) / 2;
    }
    case Kind::inv:
      return initial * std::pow(1 + gamma * static_cast<double>(t), -power);
  }
  return initial;
}

}  // namespace tenon
