// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/decoder.h>
#include <tenon/error.h>

#include "data/draw.h"
#include "data/streams.h"

namespace tenon {

Sampler::Sampler(const Sampling& sampling) : sampling_(sampling) {
  if (!(sampling.temperature >= 0)) throw Error(fmt::format("temperature: expected a number of at least 0, got {}", sampling.temperature));
  if (sampling.top_k < 0) throw Error(fmt::format("top_k: expected at least 1, or 0 for all labels, got {}", sampling.top_k));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) throw Error(fmt::format("top_p: expected a number in (0, 1], got {}", sampling.top_p));
}

std::int64_t Sampler::choose(const Tensor& scores, std::int64_t labels) {
  const std::int64_t count = labels == 0 ? scores.count() : std::min(labels, scores.count());
  std::vector<double> score(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    score[static_cast<std::size_t>(i)] =
        scores.dtype() == DType::f64 ? scores.data<double>()[i] : static_cast<double>(scores.data<float>()[i]);
    if (std::isnan(score[static_cast<std::size_t>(i)])) throw Error(fmt::format("sampler: the score of label {} is NaN", i));
  }
  std::vector<std::int64_t> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)]; });
  if (sampling_.temperature == 0) return order[0];
  if (sampling_.top_k > 0 && sampling_.top_k < count) order.resize(static_cast<std::size_t>(sampling_.top_k));

  const double best = score[static_cast<std::size_t>(order[0])];
  std::vector<double> sums;  // of the probabilities, times a common factor
  for (const std::int64_t label : order) {
    const double weight = std::exp((score[static_cast<std::size_t>(label)] - best) / sampling_.temperature);
    sums.push_back((sums.empty() ? 0 : sums.back()) + weight);
  }
  const auto enough = std::lower_bound(sums.begin(), sums.end(), sampling_.top_p * sums.back());
  const double total = enough == sums.end() ? sums.back() : *enough;
  data::Draw draw(sampling_.seed, drawn_++, data::stream_of_sampler);
  const auto chosen = std::upper_bound(sums.begin(), sums.end(), static_cast<double>(draw.uniform(0, 1)) * total);
  return order[std::min(static_cast<std::size_t>(chosen - sums.begin()), order.size() - 1)];
}

}  // namespace tenon
