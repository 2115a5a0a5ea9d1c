// SPDX-License-Identifier: Apache-2.0
// data/markov.cpp - a stream of symbols from a Markov chain, whose entropy rate is known.
//
// Source  Shannon: A Mathematical Theory of Communication (1948), section 7: the entropy of a Markov source.
#include <cmath>
#include <numeric>
#include <vector>

#include <tenon/data.h>

#include "data/draw.h"
#include "data/streams.h"
#include "data/token_stream.h"

namespace tenon {
namespace {

/// weights[i n + j] is proportional to the probability of j after i: powers of 2, so that a few successors are likely and none impossible.
std::vector<std::int64_t> make_weights(std::int64_t symbols, std::uint64_t seed) {
  constexpr std::int64_t powers = 10;
  std::vector<std::int64_t> weights(static_cast<std::size_t>(symbols * symbols));
  for (std::int64_t i = 0; i < symbols; ++i) {
    data::Draw draw(seed, i, data::stream_of_transitions);
    for (std::int64_t j = 0; j < symbols; ++j) weights[static_cast<std::size_t>(i * symbols + j)] = std::int64_t{1} << draw.below(powers);
  }
  return weights;
}

/// The stationary distribution, by power iteration. Each step reduces the error by a factor of at most 1 - symbols * min probability.
std::vector<double> stationary(const std::vector<double>& transitions, std::size_t symbols) {
  std::vector<double> now(symbols, 1.0 / static_cast<double>(symbols)), next(symbols);
  double moved = 1;
  for (int step = 0; step < 10000 && moved > 1e-15; ++step) {
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t i = 0; i < symbols; ++i) {
      for (std::size_t j = 0; j < symbols; ++j) next[j] += now[i] * transitions[i * symbols + j];
    }
    moved = 0;
    for (std::size_t j = 0; j < symbols; ++j) moved += std::fabs(next[j] - now[j]);
    now.swap(next);
  }
  return now;
}

}  // namespace

MarkovStream generate_markov(const MarkovOptions& options) {
  const std::string name = std::string("markov ") + name_of(options.split);
  if (options.symbols < 2 || options.symbols > 4096)
    throw Error(name + ": expected 2 to 4096 symbols, got " + std::to_string(options.symbols));
  if (options.count < 2) throw Error(name + ": expected a count of at least 2 symbols, got " + std::to_string(options.count));
  const std::int64_t n = options.symbols;
  const auto size = static_cast<std::size_t>(n);
  const std::vector<std::int64_t> weights = make_weights(n, options.seed);
  const auto row_of = [&](std::int64_t i) { return weights.begin() + static_cast<std::ptrdiff_t>(i * n); };
  std::vector<std::int64_t> totals;
  for (std::int64_t i = 0; i < n; ++i) totals.push_back(std::accumulate(row_of(i), row_of(i + 1), std::int64_t{0}));

  data::Draw draw(options.seed, 0, data::stream_of_markov + static_cast<std::uint32_t>(options.split));
  Tensor stream = Tensor::empty(DType::i64, {options.count});
  auto* to = stream.data<std::int64_t>();
  std::int64_t last = draw.below(n);
  for (std::int64_t i = 0; i < options.count; ++i) {
    to[i] = last;
    std::int64_t rest = draw.below(totals[static_cast<std::size_t>(last)]);
    std::int64_t next = 0;
    for (auto weight = row_of(last); rest >= *weight; ++weight, ++next) rest -= *weight;
    last = next;
  }

  MarkovStream result;
  result.data = data::token_samples(name, stream, options.sequence);
  std::vector<double> transitions(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j)
      transitions[i * size + j] = static_cast<double>(weights[i * size + j]) / static_cast<double>(totals[i]);
  }
  const std::vector<double> frequency = stationary(transitions, size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      const double p = transitions[i * size + j];
      result.entropy_rate -= frequency[i] * p * std::log(p);
    }
  }
  result.transitions = Tensor::of(transitions, {n, n});
  return result;
}

}  // namespace tenon
