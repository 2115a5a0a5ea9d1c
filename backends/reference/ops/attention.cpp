// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention of several heads, and its gradient: one row of scores at a time.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tenon::reference {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

/// q (B, H, S, D), k (B, G, L, D), v (B, G, L, E), and a mask that broadcasts to (B, H, S, L) or is absent.
template <class T>
struct Heads {
  std::int64_t batch, heads, groups, queries, keys, size, result;
  const T *q, *k, *v, *mask = nullptr;
  sdk::Strides mask_strides{};
  bool causal;
  double scale;

  /// `first` is operand q; k, v and the mask follow it; the mask may be absent.
  Heads(const sdk::Call& call, std::uint32_t first)
      : batch(call.inputs[first].shape[0]),
        heads(call.inputs[first].shape[1]),
        groups(call.inputs[first + 1].shape[1]),
        queries(call.inputs[first].shape[2]),
        keys(call.inputs[first + 1].shape[2]),
        size(call.inputs[first].shape[3]),
        result(call.inputs[first + 2].shape[3]),
        q(call.input<T>(first)),
        k(call.input<T>(first + 1)),
        v(call.input<T>(first + 2)),
        causal(call.attr<tenon_attributes_attention>().causal != 0),
        scale(call.attr<tenon_attributes_attention>().scale) {
    if (!call.has_input(first + 3)) return;
    mask = call.input<T>(first + 3);
    mask_strides = sdk::broadcast_strides(call.inputs[first + 3], 4);
  }

  /// The first row of k and v for head h of q: (b G + h G / H) L.
  std::int64_t first_key(std::int64_t b, std::int64_t h) const { return (b * groups + h / (heads / groups)) * keys; }

  /// The number of keys that query s attends to.
  std::int64_t seen(std::int64_t s) const { return causal ? std::min(keys, s + 1) : keys; }

  /// scale q k' + mask of one row.
  void scores(std::int64_t b, std::int64_t h, std::int64_t s, std::vector<double>& out) const {
    const T* row = q + ((b * heads + h) * queries + s) * size;
    const T* others = k + first_key(b, h) * size;
    out.assign(static_cast<std::size_t>(seen(s)), 0);
    for (std::int64_t l = 0; l < seen(s); ++l) {
      double& score = out[static_cast<std::size_t>(l)];
      for (std::int64_t d = 0; d < size; ++d) score += double{row[d]} * double{others[l * size + d]};
      score *= scale;
      if (mask != nullptr) {
        score += double{mask[b * mask_strides[0] + h * mask_strides[1] + s * mask_strides[2] + l * mask_strides[3]]};
      }
    }
  }

  /// body(b, h, s, row) for every row, with index (b H + h) S + s.
  template <class Body>
  void for_each_row(Body&& body) const {
    std::int64_t row = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t s = 0; s < queries; ++s) body(b, h, s, row++);
      }
    }
  }
};

/// y = softmax(scale q k' + mask) v; log_sum = log sum exp of each row's scores
///
/// Shapes  as Heads; y (B, H, S, E), log_sum (B, H, S) or absent; dense. A row that attends to no key, or only to keys with score -inf,
///         is 0.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
template <class T>
void attention(const sdk::Call& call) {
  const Heads<T> at(call, 0);
  T* y = call.output<T>(0);
  T* log_sum = call.has_output(1) ? call.output<T>(1) : nullptr;
  std::vector<double> p, sums(static_cast<std::size_t>(at.result));
  at.for_each_row([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t row) {
    at.scores(b, h, s, p);
    double row_max = nothing;
    for (const double score : p) row_max = std::max(row_max, score);
    double total = 0;
    // row_max ignores NaN, which propagates through its exponential
    for (double& score : p) total += score = std::exp(score - (row_max == nothing && !std::isnan(score) ? 0 : row_max));
    sums.assign(sums.size(), 0);
    for (std::size_t l = 0; l < p.size(); ++l) {
      const T* value = at.v + (at.first_key(b, h) + static_cast<std::int64_t>(l)) * at.result;
      for (std::size_t e = 0; e < sums.size(); ++e) sums[e] += p[l] * double{value[e]};
    }
    for (const double sum : sums) *y++ = static_cast<T>(total == 0 ? 0 : sum / total);
    if (log_sum != nullptr) log_sum[row] = static_cast<T>(total == 0 ? nothing : row_max + std::log(total));
  });
}

/// p = exp(scores - log_sum), ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy
///
/// Shapes  as Heads; dy and y (B, H, S, E), log_sum (B, H, S), dq, dk, dv as q, k, v; dense.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
template <class T>
void attention_grad(const sdk::Call& call) {
  const Heads<T> at(call, 1);
  const T* dy = call.input<T>(0);
  const T* y = call.input<T>(5);
  const T* log_sum = call.input<T>(6);
  T* dq = call.output<T>(0);
  std::vector<double> p, dk(static_cast<std::size_t>(call.outputs[1].count)), dv(static_cast<std::size_t>(call.outputs[2].count)),
      sums(static_cast<std::size_t>(at.size));
  at.for_each_row([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t row) {
    const T* weights = dy + row * at.result;
    double weighted = 0;
    for (std::int64_t e = 0; e < at.result; ++e) weighted += double{weights[e]} * double{y[row * at.result + e]};
    at.scores(b, h, s, p);
    sums.assign(sums.size(), 0);
    const bool sees = double{log_sum[row]} != nothing;
    for (std::size_t l = 0; l < p.size() && sees; ++l) {
      const std::int64_t key = at.first_key(b, h) + static_cast<std::int64_t>(l);
      const double probability = std::exp(p[l] - double{log_sum[row]});
      double slope = -weighted;
      for (std::int64_t e = 0; e < at.result; ++e) {
        slope += double{weights[e]} * double{at.v[key * at.result + e]};
        dv[static_cast<std::size_t>(key * at.result + e)] += probability * double{weights[e]};
      }
      slope *= probability * at.scale;
      for (std::int64_t d = 0; d < at.size; ++d) {
        sums[static_cast<std::size_t>(d)] += slope * double{at.k[key * at.size + d]};
        dk[static_cast<std::size_t>(key * at.size + d)] += slope * double{at.q[row * at.size + d]};
      }
    }
    for (const double sum : sums) *dq++ = static_cast<T>(sum);
  });
  for (std::size_t i = 0; i < dk.size(); ++i) call.output<T>(1)[i] = static_cast<T>(dk[i]);
  for (std::size_t i = 0; i < dv.size(); ++i) call.output<T>(2)[i] = static_cast<T>(dv[i]);
}

}  // namespace
TENON_KERNEL(attention, float, double)
TENON_KERNEL(attention_grad, float, double)
}  // namespace tenon::reference
