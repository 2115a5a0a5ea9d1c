// SPDX-License-Identifier: Apache-2.0
#include "attention/attention_graph.h"

#include <utility>

namespace tenon::cuda {
namespace {

/// Adds the tensors and operations of a problem to a graph.
class Builder {
 public:
  Builder(const Cudnn& functions, const AttentionProblem& problem) : graph_(functions), p_(problem), type_(cudnn_type(problem.dtype)) {}

  OperationGraph forward() {
    const Descriptor& q = operand(attention_q, p_.heads, p_.queries, p_.size, p_.q_strides);
    const Descriptor& k = transposed(attention_k, p_.keys, p_.size, p_.k_strides);
    const Descriptor& scores = masked(scaled(product(q, k)));
    const Descriptor& row_max = of_rows();
    graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, row_max);
    const Descriptor& weights = exponential(binary(CUDNN_POINTWISE_SUB, scores, row_max, of_scores()));
    const Descriptor& total = of_rows();
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, total);
    // The engines expect the logarithm of the sum even if nobody reads it.
    const Descriptor& logarithm = of_rows();
    graph_.pointwise(CUDNN_POINTWISE_LOG, f32, total, nullptr, logarithm);
    binary(CUDNN_POINTWISE_ADD, row_max, logarithm, p_.log_sum ? stored(attention_log_sum, f32, p_.heads, p_.queries, 1) : of_rows());
    const Descriptor& normalized = binary(CUDNN_POINTWISE_DIV, weights, total, of_scores(type_));
    const Descriptor& v = operand(attention_v, p_.groups, p_.keys, p_.result, p_.v_strides);
    graph_.multiply(normalized, v, result(attention_y, p_.heads, p_.queries, p_.result));
    return std::move(graph_);
  }

  OperationGraph backward() {
    const Descriptor& dy = operand(attention_dy, p_.heads, p_.queries, p_.result, p_.dy_strides);
    const Descriptor& y = operand(attention_y, p_.heads, p_.queries, p_.result, p_.y_strides);
    const Descriptor& products = binary(CUDNN_POINTWISE_MUL, dy, y, virtual_tensor(f32, p_.queries, p_.result));
    const Descriptor& sums = of_rows();
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
    // The engines expect a factor here, that of dropout.
    const Descriptor& row_dots =
        binary(CUDNN_POINTWISE_MUL, sums, value(attention_one), stored(attention_row_dots, f32, p_.heads, p_.queries, 1));

    const Descriptor& q = operand(attention_q, p_.heads, p_.queries, p_.size, p_.q_strides);
    const Descriptor& k = transposed(attention_k, p_.keys, p_.size, p_.k_strides);
    const Descriptor& log_sum = stored(attention_log_sum, f32, p_.heads, p_.queries, 1);
    const Descriptor& weights = exponential(masked(binary(CUDNN_POINTWISE_SUB, scaled(product(q, k)), log_sum, of_scores())));
    combine_heads(transposed_scores(weights), dy, attention_dv, p_.result);

    const Descriptor& v = transposed(attention_v, p_.keys, p_.result, p_.v_strides);
    const Descriptor& centred = binary(CUDNN_POINTWISE_SUB, product(dy, v), row_dots, of_scores());
    const Descriptor& score_gradients = scaled(binary(CUDNN_POINTWISE_MUL, centred, weights, of_scores()));
    combine_heads(transposed_scores(score_gradients), q, attention_dk, p_.size);

    const Descriptor& keys = operand(0, p_.groups, p_.keys, p_.size, p_.k_strides);
    graph_.reshape(k, keys);
    const Descriptor& dq = result(attention_dq, p_.heads, p_.queries, p_.size);
    if (p_.deterministic) {
      graph_.multiply(score_gradients, keys, dq);
    } else {
      const Descriptor& dq_sums = stored(attention_dq_sums, f32, p_.heads, p_.queries, p_.size);
      graph_.multiply(score_gradients, keys, dq_sums);
      graph_.pointwise(CUDNN_POINTWISE_IDENTITY, f32, dq_sums, nullptr, dq);
    }
    return std::move(graph_);
  }

 private:
  static constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;

  GraphTensor dense(std::int64_t id, cudnnDataType_t type, std::int64_t heads, std::int64_t rows, std::int64_t columns) const {
    return {id, type, {p_.batch, heads, rows, columns}, {heads * rows * columns, rows * columns, columns, 1}};
  }
  const Descriptor& stored(std::int64_t id, cudnnDataType_t type, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    return graph_.tensor(dense(id, type, heads, rows, columns));
  }
  GraphTensor with_strides(std::int64_t id, std::int64_t heads, std::int64_t rows, std::int64_t columns, const HeadStrides& strides) const {
    if (strides == HeadStrides{}) return dense(id, type_, heads, rows, columns);
    return {id, type_, {p_.batch, heads, rows, columns}, {strides.batch, strides.head, strides.row, 1}};
  }
  const Descriptor& operand(std::int64_t id, std::int64_t heads, std::int64_t rows, std::int64_t columns, const HeadStrides& strides) {
    return graph_.tensor(with_strides(id, heads, rows, columns, strides));
  }
  const Descriptor& result(std::int64_t id, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    const HeadStrides merged{heads * rows * columns, columns, heads * columns};
    return graph_.tensor(with_strides(id, heads, rows, columns, p_.merged_heads ? merged : HeadStrides{}));
  }
  /// k or v, whose matrices are stored as (rows, columns), as (columns, rows).
  const Descriptor& transposed(std::int64_t id, std::int64_t rows, std::int64_t columns, const HeadStrides& strides) {
    GraphTensor tensor = with_strides(id, p_.groups, rows, columns, strides);
    std::swap(tensor.dimensions[2], tensor.dimensions[3]);
    std::swap(tensor.strides[2], tensor.strides[3]);
    return graph_.tensor(tensor);
  }
  /// A scalar that is passed by value.
  const Descriptor& value(std::int64_t id) { return graph_.tensor({.id = id, .by_value = true}); }

  const Descriptor& virtual_tensor(cudnnDataType_t type, std::int64_t rows, std::int64_t columns) {
    return graph_.tensor(dense(0, type, p_.heads, rows, columns));
  }
  const Descriptor& of_scores(cudnnDataType_t type = f32) { return virtual_tensor(type, p_.queries, p_.keys); }
  const Descriptor& of_rows() { return virtual_tensor(f32, p_.queries, 1); }

  const Descriptor& binary(cudnnPointwiseMode_t mode, const Descriptor& a, const Descriptor& b, const Descriptor& y) {
    graph_.pointwise(mode, f32, a, &b, y);
    return y;
  }
  const Descriptor& exponential(const Descriptor& x) {
    const Descriptor& y = of_scores();
    graph_.pointwise(CUDNN_POINTWISE_EXP, f32, x, nullptr, y);
    return y;
  }
  const Descriptor& product(const Descriptor& a, const Descriptor& b) {
    const Descriptor& c = of_scores();
    graph_.multiply(a, b, c);
    return c;
  }
  const Descriptor& scaled(const Descriptor& scores) {
    if (scale_ == nullptr) scale_ = &value(attention_scale);
    return binary(CUDNN_POINTWISE_MUL, scores, *scale_, of_scores());
  }
  /// Minus infinity at keys after the query, if the problem is causal.
  const Descriptor& masked(const Descriptor& scores) {
    if (!p_.causal) return scores;
    const Descriptor& query = of_scores(CUDNN_DATA_INT32);
    graph_.index(2, scores, query);
    const Descriptor& key = of_scores(CUDNN_DATA_INT32);
    graph_.index(3, scores, key);
    const Descriptor& attends = of_scores(CUDNN_DATA_BOOLEAN);
    graph_.pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, query, &key, attends);
    const Descriptor& result = of_scores();
    graph_.select(attends, scores, value(attention_minus_infinity), result);
    return result;
  }
  const Descriptor& transposed_scores(const Descriptor& scores) {
    const std::int64_t matrix = p_.queries * p_.keys;
    const Descriptor& y = graph_.tensor({0, type_, {p_.batch, p_.heads, p_.keys, p_.queries}, {p_.heads * matrix, matrix, 1, p_.keys}});
    graph_.reshape(scores, y);
    return y;
  }
  /// The product of a and b, summed over the heads of q that share one of k and v.
  void combine_heads(const Descriptor& a, const Descriptor& b, std::int64_t id, std::int64_t columns) {
    if (p_.heads == p_.groups) {
      graph_.multiply(a, b, result(id, p_.groups, p_.keys, columns));
      return;
    }
    const Descriptor& of_heads = graph_.tensor(dense(0, type_, p_.heads, p_.keys, columns));
    graph_.multiply(a, b, of_heads);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, result(id, p_.groups, p_.keys, columns));
  }

  OperationGraph graph_;
  const AttentionProblem& p_;
  cudnnDataType_t type_;
  const Descriptor* scale_ = nullptr;
};

}  // namespace

std::string text_of(const AttentionProblem& p) {
  const auto shape = [&](std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    return "(" + std::to_string(p.batch) + "," + std::to_string(heads) + "," + std::to_string(rows) + "," + std::to_string(columns) + ")";
  };
  std::string strides;
  const std::pair<const char*, HeadStrides> operands[] = {
      {"q", p.q_strides}, {"k", p.k_strides}, {"v", p.v_strides}, {"dy", p.dy_strides}, {"y", p.y_strides}};
  for (const auto& [name, of] : operands) {
    if (of == HeadStrides{}) continue;
    strides += std::string(", strides of ") + name + " (" + std::to_string(of.batch) + "," + std::to_string(of.head) + "," +
               std::to_string(of.row) + ",1)";
  }
  return std::string(p.gradient ? "attention_grad of " : "attention of ") + sdk::name_of(p.dtype) + " q " +
         shape(p.heads, p.queries, p.size) + ", k " + shape(p.groups, p.keys, p.size) + ", v " + shape(p.groups, p.keys, p.result) +
         (p.causal ? ", causal" : "") + (p.log_sum ? ", log_sum" : "") + (p.deterministic ? ", deterministic" : "") + strides +
         (p.merged_heads ? ", results as (B, S, H, E)" : "");
}

OperationGraph attention_graph(const Cudnn& functions, const AttentionProblem& problem) {
  Builder builder(functions, problem);
  return problem.gradient ? builder.backward() : builder.forward();
}

}  // namespace tenon::cuda
