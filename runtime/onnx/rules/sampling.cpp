// SPDX-License-Identifier: Apache-2.0
// onnx/rules/sampling.cpp - interpolation of images by gathered rows of channels.
#include "onnx/rules/sampling.h"

#include <cstddef>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/numbers.h"
#include "onnx/rules/positions.h"

namespace tenon::onnx {
namespace {

/// a op b, or the one that is present.
template <class F>
Value joined(Value a, Value b, const F& op) {
  return !a.present() ? b : !b.present() ? a : op(a, b);
}

/// x with a last dimension of size 1.
Value as_column(Value x) {
  return ops::unsqueeze(x, {static_cast<std::int64_t>(x.shape().rank())});
}

/// Walks through all choices of one tap per axis.
class Sampler {
 public:
  Sampler(Value rows, const std::vector<std::vector<Tap>>& axes, Value (*combine)(Value, Value))
      : rows_(rows), axes_(axes), combine_(combine) {}

  /// Adds the samples of the axes from `axis` on to those chosen before.
  void choose(std::size_t axis, const Tap& chosen) {
    if (axis == axes_.size()) return add(chosen);
    for (const Tap& tap : axes_[axis]) {
      Tap both;
      both.index = joined(chosen.index, tap.index, [](Value a, Value b) { return ops::add(a, b); });
      both.weight = joined(chosen.weight, tap.weight, [](Value a, Value b) { return ops::mul(a, b); });
      both.inside = joined(chosen.inside, tap.inside, [](Value a, Value b) { return ops::logical_and(a, b); });
      choose(axis + 1, both);
    }
  }

  Value result() const { return result_; }

 private:
  void add(const Tap& tap) {
    Value value = ops::gather(rows_, tap.index);
    if (tap.weight.present()) {
      Value weight = cast_to(tap.weight, rows_.dtype());
      if (tap.inside.present()) weight = ops::where(tap.inside, weight, constant_like(weight, 0));
      value = ops::mul(value, as_column(weight));
    } else if (tap.inside.present()) {
      value = ops::where(as_column(tap.inside), value, constant_like(value, 0));
    }
    result_ = result_.present() ? combine_(result_, value) : value;
  }

  Value rows_, result_;
  const std::vector<std::vector<Tap>>& axes_;
  Value (*combine_)(Value, Value);
};

}  // namespace

Value pixel_rows(const Node& node, Value x) {
  const Shape shape = x.shape();
  const std::int64_t pixels = product_of(node, shape, 2, shape.rank());
  Value rows = ops::reshape(x, Shape{shape[0], shape[1], pixels});
  if (shape[1] != 1) rows = ops::transpose(rows, {0, 2, 1});
  return ops::reshape(rows, Shape{shape[0] * pixels, shape[1]});
}

std::vector<std::int64_t> pixel_strides(const Node& node, const Shape& x) {
  std::vector<std::int64_t> strides;
  for (std::size_t i = 2; i < x.rank(); ++i) strides.push_back(product_of(node, x, i + 1, x.rank()));
  return strides;
}

Value sample(Node& node, Value rows, Value first, const std::vector<std::vector<Tap>>& axes, const std::vector<std::int64_t>& strides,
             Value (*combine)(Value, Value)) {
  std::vector<std::vector<Tap>> scaled = axes;
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (strides[i] == 1) continue;
    const Value stride = node.constant(Tensor::scalar(strides[i]));
    for (Tap& tap : scaled[i]) tap.index = ops::mul(tap.index, stride);
  }
  Sampler sampler(rows, scaled, combine);
  Tap start;
  start.index = first;
  sampler.choose(0, start);
  return sampler.result();
}

Value pixel_index(Value place, std::int64_t n) {
  return ops::cast(ops::clip(place, 0, static_cast<double>(n - 1)), DType::i64);
}

Value is_pixel(Value place, std::int64_t n) {
  return ops::logical_and(ops::greater_equal(place, constant_like(place, 0)),
                          ops::less_equal(place, constant_like(place, static_cast<double>(n - 1))));
}

std::vector<Tap> linear_taps(Value position, std::int64_t n) {
  const Value before = ops::floor(position), after = ops::add(before, 1), beyond = ops::sub(position, before);
  return {{pixel_index(before, n), 1 - beyond, is_pixel(before, n)}, {pixel_index(after, n), beyond, is_pixel(after, n)}};
}

}  // namespace tenon::onnx
