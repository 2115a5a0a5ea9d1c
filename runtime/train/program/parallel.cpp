// SPDX-License-Identifier: Apache-2.0
#include "train/program/parallel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include <tenon/communicator.h>

namespace tenon::train {
namespace {

Value number(Graph& graph, DType dtype, double value) {
  return graph.constant(Tensor::full(dtype, {}, value));
}

Value with_dtype(Value value, DType dtype) {
  return value.dtype() == dtype ? value : ops::cast(value, dtype);
}

/// The weight of a rank in means over the batch: a number for each rank, whose sum over the ranks divides.
struct Weight {
  Value own;    ///< absent: the number of samples that count
  Value total;  ///< absent likewise
  layers::BatchShare share;

  /// own / total
  Value fraction(Graph& graph, DType dtype) const {
    if (!own.present()) return number(graph, dtype, static_cast<double>(share.counted) / static_cast<double>(share.whole));
    return with_dtype(quotient(own, total), dtype);
  }
};

std::size_t size_of_value(Value value) {
  return static_cast<std::size_t>(value.shape().count() * size_of(value.dtype()));
}

}  // namespace

BatchPart part_of(std::int64_t batch, int rank, int ranks, const std::vector<double>& shares) {
  const auto bound = [&](int r) -> std::int64_t {
    if (shares.empty()) return batch * r / ranks;
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    return std::llround(static_cast<double>(batch) * std::accumulate(shares.begin(), shares.begin() + r, 0.0) / all);
  };
  BatchPart part{.begin = bound(rank), .end = bound(rank + 1), .share = {.counted = 0, .whole = batch}};
  part.share.counted = part.size();
  if (part.size() > 0) return part;
  part.begin = std::min<std::int64_t>(part.begin, batch - 1);
  part.end = part.begin + 1;
  return part;
}

std::vector<int> balanced_owners(const std::vector<ParameterSpec>& parameters, int ranks) {
  const auto size_bytes = [&](std::size_t i) { return parameters[i].shape.count() * size_of(parameters[i].dtype); };
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), size_bytes);
  std::vector<int> owners(parameters.size());
  std::vector<std::int64_t> loads(static_cast<std::size_t>(ranks), 0);
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(loads);
    owners[i] = static_cast<int>(least - loads.begin());
    *least += size_bytes(i);
  }
  return owners;
}

void broadcast_updates(Graph& graph, const Forward& forward, const Shards& shards) {
  std::map<ValueId, ValueId> next;
  for (const GraphUpdate& update : graph.updates()) next[update.parameter] = update.value;
  std::map<std::pair<int, DType>, std::vector<Value>> groups;
  for (std::size_t i = 0; i < shards.owners.size(); ++i)
    groups[{shards.owners[i], forward.specs[i].dtype}].push_back(forward.parameters[i]);
  for (const auto& [group, parameters] : groups) {
    const int owner = group.first;
    std::vector<Value> operands = parameters;
    if (owner == shards.rank) {
      for (Value& operand : operands) operand = Value(&graph, next.at(operand.id()));
    }
    const std::vector<Value> results = ops::broadcast(operands, owner);
    if (owner == shards.rank) continue;
    for (std::size_t i = 0; i < parameters.size(); ++i) graph.update(parameters[i], results[i]);
  }
}

std::vector<Value> sum_over_ranks(const std::vector<Value>& values, std::uint64_t bucket_size_bytes) {
  if (values.empty()) return {};
  const Graph& graph = values[0].graph();
  const auto computed_at = [&](std::size_t i) {  // parameters and constants are there at the beginning
    const NodeId producer = graph.info(values[i].id()).producer;
    return producer == no_id ? 0 : std::uint64_t{producer} + 1;
  };
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, computed_at);
  std::vector<std::vector<std::size_t>> buckets;
  struct Open {
    std::size_t bucket;
    std::uint64_t size_bytes;
  };
  std::map<DType, Open> open;
  for (const std::size_t i : order) {
    const auto [found, inserted] = open.try_emplace(values[i].dtype(), Open{buckets.size(), 0});
    if (inserted) buckets.emplace_back();
    buckets[found->second.bucket].push_back(i);
    found->second.size_bytes += size_of_value(values[i]);
    if (bucket_size_bytes > 0 && found->second.size_bytes >= bucket_size_bytes) open.erase(found);
  }
  std::vector<Value> sums(values.size());
  for (const std::vector<std::size_t>& bucket : buckets) {
    std::vector<Value> operands;
    for (const std::size_t i : bucket) operands.push_back(values[i]);
    const std::vector<Value> results = ops::all_reduce(operands);
    for (std::size_t k = 0; k < bucket.size(); ++k) sums[bucket[k]] = results[k];
  }
  return sums;
}

Gradients build_rank_gradients(Graph& graph, const layers::BatchShare& share, Forward& forward, Objective& objective,
                               const LossScale& scale, bool summed, std::uint64_t bucket_size_bytes) {
  // A sample that only fills a rank without any counts for nothing.
  const auto weight_of = [&](Value own) {
    return Weight{.own = own.present() && share.counted == 0 ? number(graph, own.dtype(), 0) : own, .total = {}, .share = share};
  };
  Weight divisors = weight_of(objective.divisor), weights = weight_of(objective.weight);
  if (divisors.own.present()) divisors.total = sum_over_ranks({divisors.own}, 0)[0];  // the gradients depend on it
  const Value loss = ops::mul(objective.loss, divisors.fraction(graph, objective.loss.dtype()));

  Gradients gradients{.of = {}, .weight = divisors.own};
  if (!gradients.weight.present()) gradients.weight = number(graph, objective.loss.dtype(), static_cast<double>(share.counted));
  gradients.of = scaled_gradients(summed ? loss : objective.loss, forward.parameters, scale);

  std::vector<Value> parts{loss};
  for (const auto& [name, metric] : objective.metrics) {
    const Value own = weights.own.present() ? with_dtype(weights.own, metric.dtype()) : weights.fraction(graph, metric.dtype());
    parts.push_back(ops::mul(metric, own));
  }
  if (weights.own.present()) parts.push_back(weights.own);
  const double fraction = static_cast<double>(share.counted) / static_cast<double>(share.whole);
  for (const LayerState& state : forward.states) {
    if (state.next.present()) parts.push_back(ops::mul(state.next, number(graph, state.next.dtype(), fraction)));
  }
  if (summed) parts.insert(parts.end(), gradients.of.begin(), gradients.of.end());

  const std::vector<Value> sums = sum_over_ranks(parts, bucket_size_bytes);
  auto next = sums.begin();
  objective.loss = *next++;
  const auto total = weights.own.present() ? sums[1 + objective.metrics.size()] : Value();
  for (auto& [name, metric] : objective.metrics) {
    metric = total.present() ? quotient(*next, with_dtype(total, metric.dtype())) : *next;
    ++next;
  }
  if (total.present()) objective.weight = *next++;
  if (divisors.own.present()) objective.divisor = divisors.total;
  for (LayerState& state : forward.states) {
    if (state.next.present()) state.next = *next++;
  }
  if (summed) gradients.of.assign(next, sums.end());
  return gradients;
}

}  // namespace tenon::train
