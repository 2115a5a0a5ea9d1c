// SPDX-License-Identifier: Apache-2.0
// ops/slice.cpp - slicing and padding.
#include <tenon/sdk/element.h>

#include <algorithm>
#include <bit>

#include "elementwise/strided_copy.h"

namespace tenon::openblas {
namespace {

/// y[i, ...] = x[starts + i steps, ...]: a copy of x viewed with other strides
template <class T>
void slice(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_slice>();
  const sdk::Operand& y = call.outputs[0];
  if (y.count == 0) return;
  sdk::Operand view = call.inputs[0];
  std::int64_t strides[TENON_MAX_RANK];
  T* first = static_cast<T*>(view.data);
  for (std::uint32_t d = 0; d < view.rank; ++d) {
    first += attributes.starts[d] * view.strides[d];
    strides[d] = attributes.steps[d] * view.strides[d];
  }
  view.data = first;
  view.shape = y.shape;
  view.strides = strides;
  view.count = y.count;
  view.dense = false;  // y may begin where x does, and is never x
  copy_strided(call.host, view, y, sizeof(T));
}

// Bytes worth a thread of their own: about 20 us.
constexpr std::int64_t grain_bytes = 256 * 1024;

/// A padding of rows of n elements, each a run of `inner` words. The row is the last padded dimension; the dimensions before it select the
/// row of x.
template <class Word>
class Padding {
 public:
  Padding(const sdk::Call& call, Word value)
      : attributes_(call.attr<tenon_attributes_pad>()), x_(call.inputs[0]), y_(call.outputs[0]), value_(value) {
    while (rank_ > 0 && attributes_.before[rank_ - 1] == 0 && y_.shape[rank_ - 1] == x_.shape[rank_ - 1]) inner_ *= x_.shape[--rank_];
    if (rank_ == 0) return;
    --rank_;
    n_ = x_.shape[rank_];
    before_ = attributes_.before[rank_];
    size_ = y_.shape[rank_];
  }

  void run(const sdk::Host& host) const {
    const std::int64_t row = size_ * inner_;
    if (y_.count == 0) return;
    host.parallel_for(y_.count / row, std::max<std::int64_t>(1, grain_bytes / (row * static_cast<std::int64_t>(sizeof(Word)))),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t r = begin; r < end; ++r) fill_row(y_.as<Word>() + r * row, source_row(r));
                      });
  }

 private:
  /// The index in x, of size n, of element j of a padded dimension; -1 if it is the padding value.
  std::int64_t source(std::int64_t j, std::int64_t n) const {
    switch (attributes_.mode) {
      case TENON_PAD_REFLECT:
        return j < 0 ? -j : j < n ? j : 2 * n - 2 - j;
      case TENON_PAD_EDGE:
        return std::clamp<std::int64_t>(j, 0, n - 1);
      default:
        return j >= 0 && j < n ? j : -1;
    }
  }

  const Word* source_row(std::int64_t r) const {
    std::int64_t offset = 0, stride = n_ * inner_;
    for (std::uint32_t d = rank_; d-- > 0; r /= y_.shape[d]) {
      const std::int64_t j = source(r % y_.shape[d] - attributes_.before[d], x_.shape[d]);
      if (j < 0) return nullptr;
      offset += j * stride;
      stride *= x_.shape[d];
    }
    return x_.as<const Word>() + offset;
  }

  void fill_row(Word* y, const Word* x) const {
    if (x == nullptr) {
      std::fill_n(y, size_ * inner_, value_);
      return;
    }
    fill_side(y, x, 0, before_);
    std::copy_n(x, n_ * inner_, y + before_ * inner_);
    fill_side(y, x, before_ + n_, size_);
  }

  /// Fills elements [begin, end) of a row, which are all before or all after the row of x.
  void fill_side(Word* y, const Word* x, std::int64_t begin, std::int64_t end) const {
    if (attributes_.mode == TENON_PAD_CONSTANT) {
      std::fill_n(y + begin * inner_, (end - begin) * inner_, value_);
      return;
    }
    for (std::int64_t j = begin; j < end; ++j) std::copy_n(x + source(j - before_, n_) * inner_, inner_, y + j * inner_);
  }

  const tenon_attributes_pad& attributes_;
  const sdk::Operand &x_, &y_;
  const Word value_;
  std::uint32_t rank_ = x_.rank;  ///< the number of dimensions before the row
  std::int64_t inner_ = 1, n_ = 1, before_ = 0, size_ = 1;
};

/// y[before + i, ...] = x[i, ...]; elsewhere the value (constant), x mirrored at its ends (reflect), or the nearest x (edge)
template <class T>
void pad(const sdk::Call& call) {
  const T value = sdk::element_of<T>(call.attr<tenon_attributes_pad>().value);
  Padding<WordOf<T>>(call, std::bit_cast<WordOf<T>>(value)).run(call.host);
}

}  // namespace

TENON_KERNEL_WITH(slice, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL(pad, TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
