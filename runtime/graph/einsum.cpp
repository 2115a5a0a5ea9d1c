// SPDX-License-Identifier: Apache-2.0
// einsum.cpp - sums of products over named axes: outer, tensordot, einsum. Each becomes one matrix product of views.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <algorithm>
#include <numeric>
#include <string_view>

#include "graph/op.h"

namespace tenon::ops {
namespace {

/// Axis labels: letters, or numbers above them.
using Labels = std::vector<int>;

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::size_t place(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A value and the labels of its axes.
struct Term {
  Value value;
  Labels labels;

  std::int64_t size(int label) const { return value.shape()[place(labels, label)]; }
};

/// Permutes the axes; a view.
Term arranged(const Term& term, const Labels& order) {
  if (order == term.labels) return term;
  std::vector<std::int64_t> permutation;
  for (const int label : order) permutation.push_back(static_cast<std::int64_t>(place(term.labels, label)));
  return {transpose(term.value, permutation), order};
}

/// Sums over the axes that are not in `kept`.
Term reduced_to(const Term& term, const Labels& kept) {
  std::vector<std::int64_t> axes;
  Term rest;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (has(kept, term.labels[i]))
      rest.labels.push_back(term.labels[i]);
    else
      axes.push_back(static_cast<std::int64_t>(i));
  }
  rest.value = axes.empty() ? term.value : reduce_sum(term.value, axes);
  return rest;
}

/// The labels of `from` for which `keep` is true.
template <class Keep>
Labels select(const Labels& from, Keep keep) {
  Labels result;
  std::copy_if(from.begin(), from.end(), std::back_inserter(result), keep);
  return result;
}

/// A term with each group of labels as one dimension, in the order of the groups; groups[0] may be left out if it is empty. Groups that are
/// contiguous in memory are merged first and then transposed, which moves nothing; only scattered groups cost a copy.
Value grouped(const Term& term, const std::vector<Labels>& groups, bool leave_out_first) {
  std::vector<std::size_t> in_memory;  // the groups in memory order
  for (std::size_t g = leave_out_first ? 1 : 0; g < groups.size(); ++g) in_memory.push_back(g);
  std::stable_sort(in_memory.begin(), in_memory.end(), [&](std::size_t a, std::size_t b) {
    return !groups[a].empty() && !groups[b].empty() && place(term.labels, groups[a][0]) < place(term.labels, groups[b][0]);
  });
  const auto sizes = [&](const std::vector<std::size_t>& order) {
    Shape shape;
    for (const std::size_t g : order) {
      std::int64_t size = 1;
      for (const int label : groups[g]) size *= term.size(label);
      shape.push_back(size);
    }
    return shape;
  };
  Labels joined;
  for (const std::size_t g : in_memory) joined = joined + groups[g];
  std::vector<std::size_t> requested = in_memory;
  std::sort(requested.begin(), requested.end());
  if (joined != term.labels) {
    Labels order;
    for (const std::size_t g : requested) order = order + groups[g];
    return reshape(arranged(term, order).value, sizes(requested));
  }
  const Value together = term.value.shape() == sizes(in_memory) ? term.value : reshape(term.value, sizes(in_memory));
  if (requested == in_memory) return together;
  std::vector<std::int64_t> permutation;
  for (const std::size_t g : requested) {
    permutation.push_back(std::find(in_memory.begin(), in_memory.end(), g) - in_memory.begin());
  }
  return transpose(together, permutation);
}

/// The term with its axes in the order of `labels`, with size 1 for labels it lacks.
Value spread(const Term& term, const Labels& labels) {
  const Term ordered = arranged(term, select(labels, [&](int label) { return has(term.labels, label); }));
  Shape shape;
  for (const int label : labels) shape.push_back(has(term.labels, label) ? term.size(label) : 1);
  return shape == ordered.value.shape() ? ordered.value : reshape(ordered.value, shape);
}

/// Sum over the labels that are not in `result` of a * b, its axes in the order of `result`. Shared labels have equal sizes.
Value contract(Term a, Term b, const Labels& result) {
  a = reduced_to(a, result + b.labels);
  b = reduced_to(b, result + a.labels);
  const Labels batch = select(result, [&](int l) { return has(a.labels, l) && has(b.labels, l); });
  const Labels summed = select(a.labels, [&](int l) { return !has(result, l); });
  Labels only_a = select(result, [&](int l) { return !has(b.labels, l); });
  Labels only_b = select(result, [&](int l) { return !has(a.labels, l); });
  // A broadcast elementwise product; a matrix product would not help.
  if (summed.empty() && (only_a.empty() || only_b.empty())) return mul(spread(a, result), spread(b, result));
  // (b' a')' = a b: choose the order in which the result needs no transposition
  if (batch + only_b + only_a == result) {
    std::swap(a, b);
    std::swap(only_a, only_b);
  }
  const bool plain = batch.empty();
  Shape shape;
  for (const int label : batch) shape.push_back(a.size(label));
  for (const int label : only_a) shape.push_back(a.size(label));
  for (const int label : only_b) shape.push_back(b.size(label));
  const Value product = matmul(grouped(a, {batch, only_a, summed}, plain), grouped(b, {batch, summed, only_b}, plain));
  const Term y{product.shape() == shape ? product : reshape(product, shape), batch + only_a + only_b};
  return arranged(y, result).value;
}

void expect_rank(std::size_t rank, const std::string& what) {
  if (rank > Shape::max_rank)
    throw Error(fmt::format("{0}: expected a result of at most {2} dimensions, got {1}", what, rank, Shape::max_rank));
}

std::string str(Value value) {
  return fmt::format("'{}' {}{}", value.name(), name_of(value.dtype()), value.shape().str());
}

/// Evaluates an einsum equation.
class Equation {
 public:
  Equation(const std::string& text, const std::vector<Value>& operands) : text_(text) {
    std::string bare;
    std::copy_if(text.begin(), text.end(), std::back_inserter(bare), [](char c) { return c != ' '; });
    const std::size_t arrow = bare.find("->");
    std::string_view rest = std::string_view(bare).substr(0, arrow);
    for (std::size_t comma = 0; comma != rest.npos;) {
      comma = rest.find(',');
      add_operand(rest.substr(0, comma), operands);
      rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    }
    if (terms_.size() != operands.size()) fail(fmt::format("expected {} operands, got {}", terms_.size(), operands.size()));
    if (arrow == bare.npos)
      imply_result();
    else
      read_result(std::string_view(bare).substr(arrow + 2));
    expect_rank(result_.size(), fmt::format("einsum \"{}\"", text_));
  }

  Value value() {
    if (terms_.size() == 1) return arranged(reduced_to(terms_[0], result_), result_).value;
    match_sizes();
    return contract(terms_[0], terms_[1], result_);
  }

 private:
  static constexpr int ellipsis = 256;  ///< label of the last dimension of "..."; earlier ones count up from it

  [[noreturn]] void fail(const std::string& why) const { throw Error(fmt::format("einsum \"{}\": {}", text_, why)); }

  /// Parses the letters of one operand; "..." becomes `dots` labels.
  Labels read(std::string_view part, std::size_t dots) const {
    Labels labels;
    while (!part.empty()) {
      const char c = part.front();
      if (part.substr(0, 3) == "...") {
        for (std::size_t i = dots; i-- > 0;) labels.push_back(ellipsis + static_cast<int>(i));
        part.remove_prefix(3);
        if (part.find("...") != part.npos) fail("\"...\" occurs twice in one operand");
        continue;
      }
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) fail(fmt::format("expected letters, '...', ',' and '->', got '{}'", c));
      if (has(labels, c)) {
        fail(fmt::format("'{}' occurs twice in \"{}\": diagonals are not supported; multiply by an identity matrix", c, part));
      }
      labels.push_back(c);
      part.remove_prefix(1);
    }
    return labels;
  }

  void add_operand(std::string_view part, const std::vector<Value>& operands) {
    const std::size_t i = terms_.size();
    if (i >= operands.size() || i >= 2) {
      fail(i >= 2 ? std::string("expected at most two operands, got more; contract two at a time")
                  : fmt::format("it has more operands than the {} passed", operands.size()));
    }
    if (!operands[i].present()) fail(fmt::format("operand {} is absent", i));
    const std::size_t rank = operands[i].shape().rank(), letters = read(part, 0).size();
    const bool dotted = part.find("...") != part.npos;
    if (dotted ? rank < letters : rank != letters) {
      fail(fmt::format("operand {}: expected {} dimensions{}, got {}", i, letters, dotted ? " or more" : "", str(operands[i])));
    }
    terms_.push_back({operands[i], read(part, rank - letters)});
    if (dotted) dots_ = std::max(dots_, rank - letters);
  }

  void read_result(std::string_view part) {
    if (dots_ > 0 && part.find("...") == part.npos) fail("the result omits the dimensions of \"...\"");
    result_ = read(part, dots_);
    for (const int label : result_) {
      const bool known = std::any_of(terms_.begin(), terms_.end(), [&](const Term& t) { return has(t.labels, label); });
      if (!known) fail(fmt::format("'{}' of the result does not occur in any operand", static_cast<char>(label)));
    }
  }

  /// As in NumPy: the dimensions of "...", then the letters that occur once, in alphabetical order.
  void imply_result() {
    for (std::size_t i = dots_; i-- > 0;) result_.push_back(ellipsis + static_cast<int>(i));
    Labels all;
    for (const Term& term : terms_) all = all + term.labels;
    std::sort(all.begin(), all.end());
    for (const int label : all) {
      if (label < ellipsis && std::count(all.begin(), all.end(), label) == 1) result_.push_back(label);
    }
  }

  /// Each letter has one size. Dimensions of "..." broadcast: size 1 is dropped if the other is larger.
  void match_sizes() {
    for (const int label : Labels(terms_[0].labels)) {
      if (!has(terms_[1].labels, label)) continue;
      const std::int64_t sizes[] = {terms_[0].size(label), terms_[1].size(label)};
      if (sizes[0] == sizes[1]) continue;
      if (label < ellipsis || (sizes[0] != 1 && sizes[1] != 1)) {
        fail(fmt::format("{} has sizes {} and {}: {}, {}", label < ellipsis ? fmt::format("'{}'", static_cast<char>(label)) : "\"...\"",
                         sizes[0], sizes[1], str(terms_[0].value), str(terms_[1].value)));
      }
      Term& repeated = terms_[sizes[0] == 1 ? 0 : 1];
      const std::size_t axis = place(repeated.labels, label);
      repeated.value = squeeze(repeated.value, {static_cast<std::int64_t>(axis)});
      repeated.labels.erase(repeated.labels.begin() + static_cast<std::ptrdiff_t>(axis));
    }
  }

  const std::string text_;
  std::vector<Term> terms_;
  Labels result_;
  std::size_t dots_ = 0;  ///< number of dimensions of "..."
};

}  // namespace

Value outer(Value a, Value b) {
  if (a.shape().rank() != 1 || b.shape().rank() != 1)
    throw Error(fmt::format("outer: expected two vectors, got {} and {}", str(a), str(b)));
  return contract({a, {0}}, {b, {1}}, {0, 1});
}

Value tensordot(Value a, Value b, const std::vector<std::int64_t>& axes_a, const std::vector<std::int64_t>& axes_b) {
  const std::size_t rank_a = a.shape().rank(), rank_b = b.shape().rank();
  if (axes_a.size() != axes_b.size()) {
    throw Error(fmt::format("tensordot: expected as many axes of a as of b, got {} and {}", axes_a.size(), axes_b.size()));
  }
  Labels labels_a(rank_a), labels_b(rank_b);
  std::iota(labels_a.begin(), labels_a.end(), 0);
  std::iota(labels_b.begin(), labels_b.end(), static_cast<int>(rank_a));
  Labels paired;
  for (std::size_t i = 0; i < axes_a.size(); ++i) {
    const auto in_a = static_cast<std::size_t>(resolve_axis(axes_a[i], rank_a, "tensordot: a " + str(a)));
    const auto in_b = static_cast<std::size_t>(resolve_axis(axes_b[i], rank_b, "tensordot: b " + str(b)));
    if (has(paired, labels_a[in_a]) || labels_b[in_b] < static_cast<int>(rank_a)) {
      throw Error(fmt::format("tensordot: axis {} of a or {} of b is repeated: {}, {}", axes_a[i], axes_b[i], str(a), str(b)));
    }
    if (a.shape()[in_a] != b.shape()[in_b]) {
      throw Error(fmt::format("tensordot: axis {} of a and axis {} of b differ in size: {}, {}", axes_a[i], axes_b[i], str(a), str(b)));
    }
    paired.push_back(labels_a[in_a]);
    labels_b[in_b] = labels_a[in_a];
  }
  const auto unpaired = [&](int label) { return !has(paired, label); };
  const Labels result = select(labels_a, unpaired) + select(labels_b, unpaired);
  expect_rank(result.size(), "tensordot");
  return contract({a, labels_a}, {b, labels_b}, result);
}

Value tensordot(Value a, Value b, std::int64_t axes) {
  const auto max_axes = static_cast<std::int64_t>(std::min(a.shape().rank(), b.shape().rank()));
  if (axes < 0 || axes > max_axes) {
    throw Error(fmt::format("tensordot: expected 0 to {} axes for {} and {}, got {}", max_axes, str(a), str(b), axes));
  }
  std::vector<std::int64_t> last(static_cast<std::size_t>(axes)), first(last);
  std::iota(last.begin(), last.end(), static_cast<std::int64_t>(a.shape().rank()) - axes);
  std::iota(first.begin(), first.end(), 0);
  return tensordot(a, b, last, first);
}

Value einsum(const std::string& equation, const std::vector<Value>& operands) {
  if (operands.empty()) throw Error(fmt::format("einsum \"{}\": expected one or two operands, got none", equation));
  return Equation(equation, operands).value();
}

}  // namespace tenon::ops
