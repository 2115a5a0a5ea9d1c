// SPDX-License-Identifier: Apache-2.0
// ops/attention.cpp - scaled dot-product attention in blocks of queries and keys: the matrix of all scores is never stored.
//
// Source  Dao, Fu, Ermon, Rudra, Re: FlashAttention (2022): the running maximum and sum of each row, and scores that the gradient
//         recomputes from the logarithm of that sum.
#include <cblas.h>

#include <algorithm>
#include <limits>

#include <tenon/sdk/error.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/rounding.h>
#include <tenon/sdk/strided.h>

#include "attention/attention_rows.h"
#include "attention/attention_sizes.h"
#include "attention/packed_attention.h"
#include "gemm/product_types.h"
#include "gemm/products.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// The gradient uses two blocks at a time.
constexpr std::int64_t gradient_key_block = 128;

void gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, const float* b, float beta,
          float* c) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a, static_cast<int>(ta ? m : k), b, static_cast<int>(tb ? k : n), beta, c, static_cast<int>(n));
}
void gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, const double* b, double beta,
          double* c) {
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a, static_cast<int>(ta ? m : k), b, static_cast<int>(tb ? k : n), beta, c, static_cast<int>(n));
}
void gemv(bool trans, std::int64_t rows, std::int64_t columns, float alpha, const float* a, const float* x, float beta, float* y) {
  cblas_sgemv(CblasRowMajor, trans ? CblasTrans : CblasNoTrans, static_cast<int>(rows), static_cast<int>(columns), alpha, a,
              static_cast<int>(columns), x, 1, beta, y, 1);
}
void gemv(bool trans, std::int64_t rows, std::int64_t columns, double alpha, const double* a, const double* x, double beta, double* y) {
  cblas_dgemv(CblasRowMajor, trans ? CblasTrans : CblasNoTrans, static_cast<int>(rows), static_cast<int>(columns), alpha, a,
              static_cast<int>(columns), x, 1, beta, y, 1);
}

/// c = alpha op(a) op(b) + beta c, all dense, op(a) (m, k), op(b) (k, n); c is not read where beta is 0.
template <class T>
void multiply_into(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, const T* b, T beta, T* c) {
  // A single query, as in text generation: OpenBLAS's gemm would pack all keys for it.
  if (m == 1 && !ta) {
    if (beta == 0) std::fill_n(c, n, T(0));
    return gemv(!tb, tb ? n : k, tb ? k : n, alpha, b, a, beta, c);
  }
  gemm(ta, tb, m, n, k, alpha, a, b, beta, c);
}

/// The operands, and their blocks of scores.
template <class T>
struct Heads : AttentionSizes {
  const T *q, *k, *v, *mask = nullptr;
  sdk::Strides mask_strides{};

  Heads(const sdk::Call& call, std::uint32_t first)
      : AttentionSizes(call, first), q(call.input<T>(first)), k(call.input<T>(first + 1)), v(call.input<T>(first + 2)) {
    if (!call.has_input(first + 3)) return;
    mask = call.input<T>(first + 3);
    mask_strides = sdk::broadcast_strides(call.inputs[first + 3], 4);
  }

  /// The products q k' of queries [s, s + rows) of head `head` (b H + h) with keys [l, l + columns), with their mask.
  ScoreBlock<T> scores(std::int64_t head, std::int64_t s, std::int64_t rows, std::int64_t l, std::int64_t columns, T* out) const {
    multiply_into<T>(false, true, rows, columns, size, 1, q + (head * queries + s) * size, k + (first_key(head) + l) * size, 0, out);
    return score_block(head, s, rows, l, columns, out, mask, mask_strides);
  }
};

// ---------------------------------------------------------------- forward

template <class T>
std::size_t forward_bytes(const AttentionSizes& sizes) {
  const std::int64_t rows = std::min(sizes.queries, query_block), columns = std::min(sizes.keys, key_block);
  return sdk::aligned_size(static_cast<std::size_t>(rows * columns) * sizeof(T)) +
         sdk::aligned_size(static_cast<std::size_t>(rows) * sizeof(RowState<T>));
}
/// From how many queries on packing all keys and values is a small part of the products.
constexpr std::int64_t min_packed_queries = 16;

bool is_packed(const sdk::Call& call) {
  return call.inputs[0].dtype == TENON_DTYPE_BF16 || call.inputs[0].shape[2] >= min_packed_queries;
}
/// Heads may be views of (B, S, H, D).
bool takes_view(const sdk::Call& call, std::uint32_t input) {
  const sdk::Operand& x = call.inputs[input];
  return is_packed(call) && input < 3 && (x.strides[3] == 1 || x.shape[3] == 1);
}

std::size_t forward_scratch(const sdk::Call& call) {
  const AttentionSizes sizes(call, 0);
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, sdk::BFloat16>) {
      if (!is_packed(call))
        return forward_bytes<T>(sizes) *
               static_cast<std::size_t>(worker_count(call.host, sizes.batch * sizes.heads * sizes.query_blocks()));
    }
    return packed_attention_scratch<T>(call);
  });
}

/// y = softmax(scale q k' + mask) v; log_sum = log sum exp of each row's scores
///
/// Shapes  as AttentionSizes; y (B, H, S, E), log_sum (B, H, S) or absent; dense but for what takes_view() says. A row without keys, or
/// with scores of -inf only, is 0.
template <class T>
void attention(const sdk::Call& call) {
  const Heads<T> at(call, 0);
  check_sizes("attention", at.size, at.result, 1);
  if (is_packed(call)) return packed_attention<T>(call);
  T* const y = call.output<T>(0);
  T* const log_sum = call.has_output(1) ? call.output<T>(1) : nullptr;
  const std::int64_t blocks = at.query_blocks();
  for_each_task(call.host, at.batch * at.heads * blocks, [&](std::int64_t task, std::int64_t worker) {
    char* const own = static_cast<char*>(call.scratch) + static_cast<std::size_t>(worker) * forward_bytes<T>(at);
    const std::int64_t head = task / blocks;
    // Causal rows grow in length: the longest blocks come first, to balance the threads.
    const std::int64_t s = (blocks - 1 - task % blocks) * query_block, rows = std::min(query_block, at.queries - s);
    auto* const states = reinterpret_cast<RowState<T>*>(own);
    T* const memory =
        reinterpret_cast<T*>(own + sdk::aligned_size(static_cast<std::size_t>(std::min(at.queries, query_block)) * sizeof(RowState<T>)));
    const std::int64_t row = head * at.queries + s;
    T* const to = y + row * at.result;
    const std::int64_t end = at.seen(s, rows);
    if (end == 0) std::fill_n(states, rows, RowState<T>{-std::numeric_limits<T>::infinity(), 0});
    for (std::int64_t l = 0; l < end; l += key_block) {
      const std::int64_t columns = std::min(key_block, end - l);
      const ScoreBlock<T> block = at.scores(head, s, rows, l, columns, memory);
      softmax_block_forward(block, l == 0, states, to, at.result, at.result);
      multiply_into<T>(false, false, rows, at.result, columns, 1, memory, at.v + (at.first_key(head) + l) * at.result, l == 0 ? 0 : 1, to);
    }
    normalise_rows(rows, states, to, at.result, at.result, log_sum == nullptr ? nullptr : log_sum + row);
  });
}

template <>
void attention<sdk::BFloat16>(const sdk::Call& call) {
  packed_attention<sdk::BFloat16>(call);
}

// ---------------------------------------------------------------- backward

template <class T>
std::size_t gradient_bytes(const AttentionSizes& sizes) {
  const std::int64_t rows = std::min(sizes.queries, query_block), columns = std::min(sizes.keys, gradient_key_block);
  return 2 * sdk::aligned_size(static_cast<std::size_t>(rows * columns) * sizeof(T));
}
std::size_t gradient_scratch(const sdk::Call& call) {
  const std::size_t bytes = call.inputs[0].dtype == TENON_DTYPE_F64 ? gradient_bytes<double>(AttentionSizes(call, 1))
                                                                    : gradient_bytes<float>(AttentionSizes(call, 1));
  return bytes * std::max<std::uint32_t>(1, call.host.thread_count());
}

/// The gradient's operands and results.
template <class T>
struct Backward : Heads<T> {
  const T *dy, *y, *log_sum;
  T *dq, *dk, *dv;

  explicit Backward(const sdk::Call& call)
      : Heads<T>(call, 1),
        dy(call.input<T>(0)),
        y(call.input<T>(5)),
        log_sum(call.input<T>(6)),
        dq(call.output<T>(0)),
        dk(call.output<T>(1)),
        dv(call.output<T>(2)) {}

  /// Weights p and score gradients ds of queries [s, s + rows) with keys [l, l + columns).
  void score_gradients(std::int64_t head, std::int64_t s, std::int64_t rows, std::int64_t l, std::int64_t columns, T* p, T* ds) const {
    const std::int64_t row = head * this->queries + s;
    const ScoreBlock<T> block = this->scores(head, s, rows, l, columns, p);
    multiply_into<T>(false, true, rows, columns, this->result, 1, dy + row * this->result,
                     this->v + (this->first_key(head) + l) * this->result, 0, ds);
    softmax_block_backward(block, ds, log_sum + row, dy + row * this->result, y + row * this->result, this->result);
  }

  /// dq += scale ds k, or dq = scale ds k for the first keys.
  void add_dq(std::int64_t head, std::int64_t s, std::int64_t rows, std::int64_t l, std::int64_t columns, const T* ds) const {
    multiply_into<T>(false, false, rows, this->size, columns, static_cast<T>(this->scale), ds,
                     this->k + (this->first_key(head) + l) * this->size, l == 0 ? 0 : 1, dq + (head * this->queries + s) * this->size);
  }

  /// dk and dv of keys [l, l + columns) of group `group` (b G + g); with `with_dq` also their part of dq.
  void backward_of_keys(std::int64_t group, std::int64_t l, std::int64_t columns, bool with_dq, T* p, T* ds) const {
    const std::int64_t shared = this->heads / this->groups;
    T* const to_k = dk + (group * this->keys + l) * this->size;
    T* const to_v = dv + (group * this->keys + l) * this->result;
    T beta = 0;
    for (std::int64_t head = group * shared; head < (group + 1) * shared; ++head) {
      for (std::int64_t s = 0; s < this->queries; s += query_block) {
        const std::int64_t rows = std::min(query_block, this->queries - s);
        if (this->seen(s, rows) <= l) continue;
        const std::int64_t row = head * this->queries + s;
        score_gradients(head, s, rows, l, columns, p, ds);
        gemm(true, false, columns, this->result, rows, T(1), p, dy + row * this->result, beta, to_v);
        gemm(true, false, columns, this->size, rows, static_cast<T>(this->scale), ds, this->q + row * this->size, beta, to_k);
        if (with_dq) add_dq(head, s, rows, l, columns, ds);
        beta = 1;
      }
    }
    if (beta != 0) return;
    std::fill_n(to_k, columns * this->size, T(0));
    std::fill_n(to_v, columns * this->result, T(0));
  }

  /// dq of one block of queries, recomputing its scores.
  void backward_of_queries(std::int64_t head, std::int64_t s, T* p, T* ds) const {
    const std::int64_t rows = std::min(query_block, this->queries - s), end = this->seen(s, rows);
    for (std::int64_t l = 0; l < end; l += gradient_key_block) {
      const std::int64_t columns = std::min(gradient_key_block, end - l);
      score_gradients(head, s, rows, l, columns, p, ds);
      add_dq(head, s, rows, l, columns, ds);
    }
  }
};

/// p = exp(scores - log_sum), ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy
///
/// Shapes  as AttentionSizes; dy and y (B, H, S, E), log_sum (B, H, S), dq, dk, dv as q, k, v; dense.
template <class T>
void attention_grad(const sdk::Call& call) {
  const Backward<T> at(call);
  check_sizes("attention_grad", at.size, at.result, 1);
  const std::int64_t half = static_cast<std::int64_t>(gradient_bytes<T>(at)) / 2;
  const auto memory = [&](std::int64_t worker, int part) {
    return reinterpret_cast<T*>(static_cast<char*>(call.scratch) + (2 * worker + part) * half);
  };
  if (at.keys == 0) std::fill_n(at.dq, call.outputs[0].count, T(0));
  const std::int64_t groups = at.batch * at.groups, blocks = sdk::ceil_div(at.keys, gradient_key_block), threads = call.host.thread_count();
  // With enough groups for all threads, each group computes its scores once and accumulates its own dq. Otherwise blocks of keys are
  // shared, then blocks of queries, which recompute the scores: seven products instead of five. With `deterministic` the choice does not
  // depend on the number of threads.
  const bool enough = call.deterministic ? groups >= 8 : groups % threads == 0 || groups >= 2 * threads;
  if (enough) {
    for_each_task(call.host, groups, [&](std::int64_t group, std::int64_t worker) {
      for (std::int64_t l = 0; l < at.keys; l += gradient_key_block) {
        at.backward_of_keys(group, l, std::min(gradient_key_block, at.keys - l), true, memory(worker, 0), memory(worker, 1));
      }
    });
    return;
  }
  for_each_task(call.host, groups * blocks, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t l = task % blocks * gradient_key_block;
    at.backward_of_keys(task / blocks, l, std::min(gradient_key_block, at.keys - l), false, memory(worker, 0), memory(worker, 1));
  });
  const std::int64_t query_blocks = at.query_blocks();
  for_each_task(call.host, at.batch * at.heads * query_blocks, [&](std::int64_t task, std::int64_t worker) {
    at.backward_of_queries(task / query_blocks, (query_blocks - 1 - task % query_blocks) * query_block, memory(worker, 0),
                           memory(worker, 1));
  });
}

}  // namespace
TENON_KERNEL_WITH(attention, (sdk::Traits{.scratch = forward_scratch, .takes_view = takes_view, .merges_heads = is_packed}), sdk::BFloat16,
                  float, double)
TENON_KERNEL_WITH(attention_grad, (sdk::Traits{.scratch = gradient_scratch}), float, double)
}  // namespace tenon::openblas
