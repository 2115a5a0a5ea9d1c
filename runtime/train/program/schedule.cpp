// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include <tenon/definition.h>
#include <tenon/error.h>

namespace tenon {
namespace {

/// From a at 0 to b at 1, along half a cosine.
double half_cosine(double a, double b, double part) {
  return b + (a - b) * (1 + std::cos(3.14159265358979323846 * part)) / 2;
}

/// The number of steps or epochs that a schedule with an end takes after its warm-up.
std::int64_t length_of(const Schedule& schedule, std::int64_t total) {
  const std::int64_t length = schedule.length > 0 ? schedule.length : total - schedule.warmup;
  if (length > 0) return length;
  throw Error(std::string("schedule ") + name_of(schedule.kind) +
              ": its length is unknown outside fit, or not longer than its warm-up; set `length`, in " +
              (schedule.per == Schedule::Per::step ? "steps" : "epochs"));
}

/// As PyTorch's OneCycleLR with two phases: the highest rate is that of the last step of the first phase.
double one_cycle(const Schedule& schedule, double highest, std::int64_t t, std::int64_t length) {
  const double now = static_cast<double>(std::min(t, length - 1)), last = static_cast<double>(length - 1);
  const double turn = std::max(schedule.rise * static_cast<double>(length) - 1, 0.0);
  const double first = highest / schedule.initial_factor;
  if (now < turn) return half_cosine(first, highest, now / turn);
  return half_cosine(highest, first / schedule.final_factor, last > turn ? (now - turn) / (last - turn) : 0);
}

}  // namespace

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
      const std::int64_t end = length_of(*this, total);
      return half_cosine(initial, minimum, t < end ? static_cast<double>(t) / static_cast<double>(end) : 1);
    }
    case Kind::inv:
      return initial * std::pow(1 + gamma * static_cast<double>(t), -power);
    case Kind::one_cycle:
      return one_cycle(*this, initial, t, length_of(*this, total));
    case Kind::cyclic: {
      const std::int64_t within = t % (2 * every);  // a rise of `every`, then a fall
      const double part = static_cast<double>(std::min(within, 2 * every - within)) / static_cast<double>(every);
      return initial + (maximum - initial) * part;
    }
  }
  return initial;
}

}  // namespace tenon
