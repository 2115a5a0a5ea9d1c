// SPDX-License-Identifier: Apache-2.0
// einsum.cpp - sums of products over named axes: outer, tensordot, einsum. Two operands become one matrix product of views.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string_view>

#include "graph/op.h"
#include "text/counted.h"

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

/// The diagonal of dimensions i < j, which have equal sizes and one label: the last dimension of the result.
Term diagonal(const Term& term, std::size_t i, std::size_t j) {
  const Shape shape = term.value.shape();
  std::vector<std::int64_t> permutation;
  Shape square;
  Term result;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (d == i || d == j) continue;
    permutation.push_back(static_cast<std::int64_t>(d));
    square.push_back(shape[d]);
    result.labels.push_back(term.labels[d]);
  }
  permutation.push_back(static_cast<std::int64_t>(i));
  permutation.push_back(static_cast<std::int64_t>(j));
  result.labels.push_back(term.labels[i]);
  const std::int64_t n = shape[i];
  square.push_back(n * n);
  const bool in_order = std::is_sorted(permutation.begin(), permutation.end());
  // In row-major order, elements of the diagonal are a row and one element apart.
  result.value = slice(reshape(in_order ? term.value : transpose(term.value, permutation), square), -1, 0, n * n, n + 1);
  return result;
}

/// Evaluates an einsum equation of any number of operands.
class Equation {
 public:
  Equation(const std::string& text, const std::vector<Value>& operands) : text_(text), operands_(operands) {
    std::string bare;
    std::copy_if(text.begin(), text.end(), std::back_inserter(bare),
                 [](char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; });
    const std::size_t arrow = bare.find("->");
    std::string_view rest = std::string_view(bare).substr(0, arrow);
    const auto described = static_cast<std::size_t>(std::count(rest.begin(), rest.end(), ',')) + 1;
    if (described != operands.size()) fail(fmt::format("expected {}, got {}", counted(described, "operand"), operands.size()));
    for (std::size_t comma = 0; comma != rest.npos;) {
      comma = rest.find(',');
      add_operand(rest.substr(0, comma));
      rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    }
    if (arrow == bare.npos)
      imply_result();
    else
      read_result(std::string_view(bare).substr(arrow + 2));
    broadcast();
    expect_rank(result_.size(), fmt::format("einsum \"{}\"", text_));
  }

  /// The operands are multiplied from left to right; a label is summed as soon as nothing after it has it.
  Value value() const {
    if (terms_.size() == 1) return arranged(reduced_to(terms_[0], result_), result_).value;
    Term product = terms_[0];
    for (std::size_t i = 1; i + 1 < terms_.size(); ++i) {
      const Labels new_labels = select(terms_[i].labels, [&](int label) { return !has(product.labels, label); });
      const Labels kept = select(product.labels + new_labels, [&](int label) { return is_read_after(i, label); });
      expect_rank(kept.size(), fmt::format("einsum \"{}\": the product of operands 0 to {}", text_, i));
      product = {contract(product, terms_[i], kept), kept};
    }
    return contract(product, terms_.back(), result_);
  }

 private:
  static constexpr int ellipsis = 256;  ///< label of the last dimension of "..."; earlier ones count up from it

  [[noreturn]] void fail(const std::string& why) const { throw Error(fmt::format("einsum \"{}\": {}", text_, why)); }

  static std::string name(int label) { return label < ellipsis ? fmt::format("'{}'", static_cast<char>(label)) : "\"...\""; }

  /// Parses the letters of one part of the equation; "..." becomes `dots` labels.
  Labels read(std::string_view part, std::size_t dots) const {
    const std::string_view whole = part;
    Labels labels;
    while (!part.empty()) {
      const char c = part.front();
      if (part.substr(0, 3) == "...") {
        for (std::size_t i = dots; i-- > 0;) labels.push_back(ellipsis + static_cast<int>(i));
        part.remove_prefix(3);
        if (part.find("...") != part.npos) fail(fmt::format("\"...\" occurs twice in \"{}\"", whole));
        continue;
      }
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) fail(fmt::format("expected letters, '...', ',' and '->', got '{}'", c));
      labels.push_back(c);
      part.remove_prefix(1);
    }
    return labels;
  }

  void add_operand(std::string_view part) {
    const std::size_t i = terms_.size();
    if (!operands_[i].present()) fail(fmt::format("operand {} is absent", i));
    const std::size_t rank = operands_[i].shape().rank(), letters = read(part, 0).size();
    const bool dotted = part.find("...") != part.npos;
    if (dotted ? rank < letters : rank != letters) {
      fail(fmt::format("operand {}: expected {}{}, got {}", i, counted(letters, "dimension"), dotted ? " or more" : "", str(operands_[i])));
    }
    Term term{operands_[i], read(part, rank - letters)};
    written_ = written_ + term.labels;
    if (dotted) dots_ = std::max(dots_, rank - letters);
    for (std::size_t second = 1; second < term.labels.size();) {
      const std::size_t first = place(term.labels, term.labels[second]);
      if (first == second) {
        ++second;
        continue;
      }
      if (term.value.shape()[first] != term.value.shape()[second]) {
        fail(fmt::format("operand {}: expected equal sizes of both {}, got {} and {} of {}", i, name(term.labels[first]),
                         term.value.shape()[first], term.value.shape()[second], str(operands_[i])));
      }
      term = diagonal(term, first, second);
      second = 1;
    }
    terms_.push_back(term);
  }

  void read_result(std::string_view part) {
    result_ = read(part, dots_);
    for (std::size_t i = 0; i < result_.size(); ++i) {
      if (!has(written_, result_[i])) fail(fmt::format("{} of the result does not occur in any operand", name(result_[i])));
      if (place(result_, result_[i]) != i) fail(fmt::format("{} occurs twice in the result", name(result_[i])));
    }
  }

  /// As in NumPy: the dimensions of "...", then the letters that occur once, in alphabetical order.
  void imply_result() {
    for (std::size_t i = dots_; i-- > 0;) result_.push_back(ellipsis + static_cast<int>(i));
    Labels letters = select(written_, [&](int l) { return l < ellipsis && std::count(written_.begin(), written_.end(), l) == 1; });
    std::sort(letters.begin(), letters.end());
    result_ = result_ + letters;
  }

  /// Each label has one size; a dimension of size 1 is dropped if that of another operand is larger.
  void broadcast() {
    std::map<int, std::size_t> largest;  // the term with the size of the label
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      for (const int label : terms_[i].labels) {
        std::size_t& known = largest.try_emplace(label, i).first->second;
        const std::int64_t sizes[] = {terms_[known].size(label), terms_[i].size(label)};
        if (sizes[0] != sizes[1] && sizes[0] != 1 && sizes[1] != 1) {
          fail(fmt::format("expected equal sizes of {}, got {} and {}: {}, {}", name(label), sizes[0], sizes[1], str(operands_[known]),
                           str(operands_[i])));
        }
        if (sizes[0] == 1) known = i;
      }
    }
    for (Term& term : terms_) {
      std::vector<std::int64_t> axes;
      Labels rest;
      for (std::size_t i = 0; i < term.labels.size(); ++i) {
        const int label = term.labels[i];
        if (term.value.shape()[i] == terms_[largest[label]].size(label))
          rest.push_back(label);
        else
          axes.push_back(static_cast<std::int64_t>(i));
      }
      if (!axes.empty()) term = {squeeze(term.value, axes), rest};
    }
  }

  bool is_read_after(std::size_t i, int label) const {
    if (has(result_, label)) return true;
    return std::any_of(terms_.begin() + static_cast<std::ptrdiff_t>(i) + 1, terms_.end(),
                       [&](const Term& term) { return has(term.labels, label); });
  }

  const std::string text_;
  const std::vector<Value>& operands_;
  std::vector<Term> terms_;  ///< the operands without repeated labels
  Labels written_;           ///< those of all operands, as often as they occur
  Labels result_;
  std::size_t dots_ = 0;  ///< number of dimensions of the longest "..."
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
  return Equation(equation, operands).value();
}

}  // namespace tenon::ops
