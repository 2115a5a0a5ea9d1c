// SPDX-License-Identifier: Apache-2.0
#include "quantize/ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::quantize {
namespace {

/// Replaces empty entries of a distribution by a small share that the others give, so that divergences are finite. Returns false if no
/// entry can give as much.
bool smooth(std::vector<double>& entries) {
  constexpr double epsilon = 1e-4;
  const auto empty = static_cast<double>(std::ranges::count(entries, 0.0));
  const double filled = static_cast<double>(entries.size()) - empty;
  if (filled == 0) return false;
  const double taken = epsilon * empty / filled;
  for (double& entry : entries) {
    if (entry != 0 && entry <= taken) return false;
    entry += entry == 0 ? epsilon : -taken;
  }
  return true;
}

/// The sum of p log(p / q), of distributions that are scaled to a sum of 1 first.
double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  const double sum_p = std::accumulate(p.begin(), p.end(), 0.0), sum_q = std::accumulate(q.begin(), q.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] / sum_p * std::log((p[i] / sum_p) / (q[i] / sum_q));
  return sum;
}

/// The counts as `levels` values represent them: the bins of each level share its elements equally, but for empty ones.
void quantize_counts(std::span<const std::uint64_t> counts, std::size_t levels, std::vector<double>& out_q) {
  const std::size_t n = counts.size();
  out_q.assign(n, 0);
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t begin = level * n / levels, end = (level + 1) * n / levels;
    double sum = 0, filled = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += static_cast<double>(counts[i]);
      filled += counts[i] != 0 ? 1 : 0;
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (counts[i] != 0) out_q[i] = sum / filled;
    }
  }
}

}  // namespace

std::optional<std::string> first_not_finite(std::span<const float> elements) {
  const auto found = std::ranges::find_if(elements, [](float x) { return !std::isfinite(x); });
  if (found == elements.end()) return std::nullopt;
  return fmt::format("element {} is {}", found - elements.begin(), *found);
}

bool Range::observe(std::span<const float> elements) {
  Range all = *this;
  for (const float x : elements) {
    if (!std::isfinite(x)) return false;
    all.low = std::min(all.low, x);
    all.high = std::max(all.high, x);
  }
  *this = all;
  return true;
}

Histogram::Histogram(const Range& range, bool absolute)
    : low_(absolute ? 0.0 : static_cast<double>(range.low)), absolute_(absolute), counts_(bins) {
  const double high = absolute ? std::max(std::fabs(range.low), std::fabs(range.high)) : range.high;
  width_ = (high - low_) / static_cast<double>(bins);
}

void Histogram::observe(std::span<const float> elements) {
  const double per_width = width_ > 0 ? 1 / width_ : 0;
  for (const float element : elements) {
    if (element == 0) continue;
    const double x = absolute_ ? std::fabs(element) : element;
    const auto bin = static_cast<std::int64_t>((x - low_) * per_width);
    ++counts_[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, bins - 1))];
  }
  total_ += elements.size();
}

Range percentile_range(const Histogram& histogram, const Range& observed, double percentile) {
  const double allowed = static_cast<double>(histogram.total()) * (100 - percentile) / 200;
  const std::vector<std::uint64_t>& counts = histogram.counts();
  // The bins that may be left out on each side: while no more elements than allowed are in them.
  std::size_t first = 0, last = counts.size();
  for (double left = allowed - static_cast<double>(counts[0]); first + 1 < counts.size() && left >= 0;
       left -= static_cast<double>(counts[first])) {
    ++first;
  }
  for (double left = allowed - static_cast<double>(counts[last - 1]); last > first + 1 && left >= 0;
       left -= static_cast<double>(counts[last - 1])) {
    --last;
  }
  Range range;
  range.low = std::max(observed.low, static_cast<float>(histogram.low() + static_cast<double>(first) * histogram.bin_width()));
  range.high = std::min(observed.high, static_cast<float>(histogram.low() + static_cast<double>(last) * histogram.bin_width()));
  // Zeros are in no bin, but in each range.
  range.low = std::min(range.low, std::max(observed.low, 0.0F));
  range.high = std::max(range.high, std::min(observed.high, 0.0F));
  return range;
}

std::size_t entropy_threshold(std::span<const std::uint64_t> counts, std::size_t levels) {
  std::size_t best = counts.size();
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> p, q;
  // The elements beyond the threshold, which clipping moves to the last bin.
  std::uint64_t outside = 0;
  for (std::size_t n = counts.size(); n >= std::max<std::size_t>(levels, 1); --n) {
    p.assign(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(n));
    p.back() += static_cast<double>(outside);
    outside += counts[n - 1];
    quantize_counts(counts.first(n), levels, q);
    if (!smooth(p) || !smooth(q)) continue;
    const double distance = divergence(p, q);
    if (distance < least) {
      least = distance;
      best = n;
    }
  }
  return best;
}

Range entropy_range(const Histogram& histogram, const Range& observed, std::size_t levels) {
  const bool one_sided = observed.low >= 0 || observed.high <= 0;
  if (!one_sided) levels /= 2;
  std::vector<std::uint64_t> counts = histogram.counts();
  const auto counted = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  // Bins of few elements say more about the samples than about the distribution: they would be fitted best by a low threshold.
  constexpr std::uint64_t elements_per_bin = 32;
  double width = histogram.bin_width();
  while (counts.size() > levels && counted < elements_per_bin * counts.size()) {
    for (std::size_t i = 0; i < counts.size() / 2; ++i) counts[i] = counts[2 * i] + counts[2 * i + 1];
    counts.resize(counts.size() / 2);
    width *= 2;
  }
  const auto threshold = static_cast<float>(static_cast<double>(entropy_threshold(counts, levels)) * width);
  Range range;
  range.low = std::max(observed.low, -threshold);
  range.high = std::min(observed.high, threshold);
  return range;
}

}  // namespace tenon::quantize
