// SPDX-License-Identifier: Apache-2.0
// onnx/rules/einsum.cpp - Einsum as a chain of Tenon's einsum, which takes two operands without repeated labels.
#include "onnx/rules/einsum.h"

#include <fmt/core.h>
#include <tenon/functions.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

namespace tenon::onnx {
namespace {

/// Labels of dimensions: letters, and for those of an ellipsis numbers from 256 on, the last dimension first.
using Labels = std::vector<int>;
constexpr int ellipsis = 256;

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// An operand and the labels of its dimensions.
struct Term {
  Value value;
  Labels labels;
};

/// "ab,bc->ac" of the terms' labels, which become letters from 'a' on in the order in which they occur.
std::string equation_of(const std::vector<Term>& terms, const Labels& result) {
  Labels known;
  std::string text;
  const auto append = [&](const Labels& labels) {
    for (const int label : labels) {
      if (!has(known, label)) known.push_back(label);
      const auto i = std::find(known.begin(), known.end(), label) - known.begin();
      text += static_cast<char>(i < 26 ? 'a' + i : 'A' + (i - 26));
    }
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i > 0) text += ',';
    append(terms[i].labels);
  }
  text += "->";
  append(result);
  return text;
}

Term contracted(const std::vector<Term>& terms, const Labels& result) {
  std::vector<Value> values;
  for (const Term& term : terms) values.push_back(term.value);
  return {ops::einsum(equation_of(terms, result), values), result};
}

/// The diagonal over dimensions i < j of one label: the last dimension of the result.
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
  // in row-major order, elements of the diagonal are a row and one element apart
  result.value = ops::slice(ops::reshape(ops::transpose(term.value, permutation), square), -1, 0, n * n, n + 1);
  return result;
}

class Equation {
 public:
  Equation(Node& node, std::string_view text, const std::vector<Value>& operands) : node_(node) {
    for (const char c : text) {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) text_ += c;
    }
    const std::size_t arrow = text_.find("->");
    std::string_view rest = std::string_view(text_).substr(0, arrow);
    for (std::size_t comma = 0; comma != rest.npos;) {
      comma = rest.find(',');
      add_term(rest.substr(0, comma), operands);
      rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    }
    if (terms_.size() != operands.size()) fail(fmt::format("expected {} operands, got {}", terms_.size(), operands.size()));
    if (arrow == text_.npos) {
      imply_result();
    } else {
      read_result(std::string_view(text_).substr(arrow + 2));
    }
    broadcast();
  }

  /// The terms are multiplied from left to right; a label is summed as soon as nothing after it has it.
  Value value() const {
    Term product = terms_[0];
    for (std::size_t i = 1; i < terms_.size(); ++i) {
      Labels kept;
      for (const Labels& labels : {product.labels, terms_[i].labels}) {
        for (const int label : labels) {
          if (!has(kept, label) && is_read_after(i, label)) kept.push_back(label);
        }
      }
      product = contracted({product, terms_[i]}, i + 1 == terms_.size() ? result_ : kept);
    }
    return terms_.size() == 1 ? contracted({product}, result_).value : product.value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { node_.fail(fmt::format("equation \"{}\": {}", text_, why)); }

  /// Labels of a part; "..." becomes `dots` of them.
  Labels read(std::string_view part, std::size_t dots) const {
    Labels labels;
    bool dotted = false;
    while (!part.empty()) {
      if (part.substr(0, 3) == "...") {
        if (dotted) fail("expected at most one \"...\" in each part, got two");
        dotted = true;
        for (std::size_t i = dots; i-- > 0;) labels.push_back(ellipsis + static_cast<int>(i));
        part.remove_prefix(3);
        continue;
      }
      const char c = part.front();
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) fail(fmt::format("expected letters and \"...\", got \"{}\"", part));
      labels.push_back(c);
      part.remove_prefix(1);
    }
    return labels;
  }

  void add_term(std::string_view part, const std::vector<Value>& operands) {
    if (terms_.size() == operands.size()) fail(fmt::format("expected more operands, got {}", operands.size()));
    const Value operand = operands[terms_.size()];
    const std::size_t rank = operand.shape().rank(), letters = read(part, 0).size();
    const bool dotted = part.find("...") != part.npos;
    if (dotted ? rank < letters : rank != letters) {
      fail(fmt::format("expected operand {} of {} dimensions{}, got {}", terms_.size(), letters, dotted ? " or more" : "",
                       operand.shape().str()));
    }
    if (dotted) dots_ = std::max(dots_, rank - letters);
    Term term{operand, read(part, rank - letters)};
    for (std::size_t j = 1; j < term.labels.size(); ++j) {
      const auto first = std::find(term.labels.begin(), term.labels.end(), term.labels[j]);
      const auto i = static_cast<std::size_t>(first - term.labels.begin());
      if (i == j) continue;
      const Shape shape = term.value.shape();
      if (shape[i] != shape[j])
        fail(fmt::format("expected equal sizes of a repeated label in operand {}, got {}", terms_.size(), shape.str()));
      term = diagonal(term, i, j);
      j = 0;
    }
    terms_.push_back(term);
  }

  void read_result(std::string_view part) {
    result_ = read(part, dots_);
    for (std::size_t i = 0; i < result_.size(); ++i) {
      const bool known = std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) { return has(term.labels, result_[i]); });
      if (!known) fail(fmt::format("expected labels of operands in the result, got '{}'", static_cast<char>(result_[i])));
      if (std::count(result_.begin(), result_.end(), result_[i]) > 1) fail("expected each label once in the result, got one twice");
    }
  }

  /// The dimensions of "...", then the letters that occur once in all operands, in alphabetical order.
  void imply_result() {
    const std::string_view operands = text_;
    for (std::size_t i = dots_; i-- > 0;) result_.push_back(ellipsis + static_cast<int>(i));
    Labels letters;
    for (const char c : operands) {
      if (c != '.' && c != ',' && std::count(operands.begin(), operands.end(), c) == 1) letters.push_back(c);
    }
    std::sort(letters.begin(), letters.end());
    result_.insert(result_.end(), letters.begin(), letters.end());
  }

  /// Removes dimensions of size 1 from terms where another term has a larger one of the same label.
  void broadcast() {
    std::map<int, std::int64_t> sizes;
    for (const Term& term : terms_) {
      for (std::size_t i = 0; i < term.labels.size(); ++i) {
        const std::int64_t size = term.value.shape()[i];
        std::int64_t& known = sizes.try_emplace(term.labels[i], 1).first->second;
        if (size != 1 && known != 1 && size != known) fail(fmt::format("expected equal sizes of a label, got {} and {}", known, size));
        if (size != 1) known = size;
      }
    }
    for (Term& term : terms_) {
      const Shape shape = term.value.shape();
      Term rest;
      Shape sizes_left;
      for (std::size_t i = 0; i < term.labels.size(); ++i) {
        if (shape[i] != sizes[term.labels[i]]) continue;
        rest.labels.push_back(term.labels[i]);
        sizes_left.push_back(shape[i]);
      }
      if (sizes_left.rank() == shape.rank()) continue;
      rest.value = ops::reshape(term.value, sizes_left);
      term = rest;
    }
  }

  bool is_read_after(std::size_t i, int label) const {
    if (has(result_, label)) return true;
    return std::any_of(terms_.begin() + static_cast<std::ptrdiff_t>(i) + 1, terms_.end(),
                       [&](const Term& term) { return has(term.labels, label); });
  }

  Node& node_;
  std::string text_;  ///< without spaces
  std::vector<Term> terms_;
  Labels result_;
  std::size_t dots_ = 0;  ///< number of dimensions of the longest "..."
};

}  // namespace

Value einsum(Node& node, std::string_view equation, const std::vector<Value>& operands) {
  return Equation(node, equation, operands).value();
}

}  // namespace tenon::onnx
