// SPDX-License-Identifier: Apache-2.0
// ops/batch_norm.cpp - batch normalisation, with batch or given statistics, and its gradient: one pass for sums, one for elements.
// Statistics are combined from a fixed number of parts, so that their bits do not depend on the number of threads.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "norm/channel_norm.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 32 * 1024;

/// The layout of the elements around their channels: dense (outer, channels, inner). With inner = 1 channels come last, and `copies` rows
/// of few channels are processed as one row of `columns`, so that vectors are full.
struct Channels {
  std::int64_t outer, count, inner;
  std::int64_t n;                  ///< elements of a channel
  std::int64_t copies, columns;    ///< columns = copies * count
  std::int64_t rows, single_rows;  ///< outer = rows * copies + single_rows
  std::int64_t parts;              ///< parts of the rows, each with its own sums

  Channels(const sdk::Operand& x, std::int64_t axis) {
    // Images are channels last: dimension 1 is stored last.
    if (x.rank == 3 || x.rank == 4) axis = axis == 0 ? 0 : axis == 1 ? std::int64_t{x.rank} - 1 : axis - 1;
    const sdk::AxisView view = sdk::around_axis(x, axis);
    outer = view.outer;
    count = view.n;
    inner = view.inner;
    n = outer * inner;
    constexpr std::int64_t wide = 64;  // four of the longest vectors
    copies = count == 0 || count >= wide ? 1 : (wide + count - 1) / count;
    columns = copies * count;
    rows = outer / copies;
    single_rows = outer % copies;
    parts = std::clamp<std::int64_t>(rows / 256, 1, 32);
  }
  bool last() const { return inner == 1; }
  /// The number of coefficients of one kind that a pass over the elements reads.
  std::int64_t coefficients() const { return last() ? columns : count; }
};

/// The scratch memory of a call: two sums per channel, the sums of the parts, and up to four coefficients per column.
template <class T>
struct Workspace {
  double* first;
  double* second;
  double* partial;
  std::array<T*, 4> coefficients;

  Workspace(const Channels& at, void* memory) {
    first = static_cast<double*>(memory);
    second = first + at.count;
    partial = second + at.count;
    T* next = reinterpret_cast<T*>(partial + partial_size(at));
    for (T*& list : coefficients) {
      list = next;
      next += at.coefficients();
    }
  }
  static std::int64_t partial_size(const Channels& at) { return at.last() ? 2 * at.parts * at.columns : 0; }
  static std::size_t size(const Channels& at) {
    return static_cast<std::size_t>(2 * at.count + partial_size(at)) * sizeof(double) +
           static_cast<std::size_t>(4 * at.coefficients()) * sizeof(T);
  }
};

/// Repeats the coefficients of the channels for every copy.
template <class T>
void repeat(const Channels& at, T* coefficients) {
  if (!at.last()) return;
  for (std::int64_t copy = 1; copy < at.copies; ++copy) std::copy_n(coefficients, at.count, coefficients + copy * at.count);
}

/// The coefficients of one channel, repeated for up to channel_strip elements.
template <class T, std::size_t K>
class Broadcast {
 public:
  Broadcast(const std::array<const T*, K>& coefficients, std::int64_t channel, std::int64_t elements) {
    for (std::size_t k = 0; k < K; ++k) {
      std::fill_n(copies_[k].data(), std::min(elements, channel_strip), coefficients[k][channel]);
      pointers_[k] = copies_[k].data();
    }
  }
  const std::array<const T*, K>& pointers() const { return pointers_; }

 private:
  std::array<std::array<T, channel_strip>, K> copies_;
  std::array<const T*, K> pointers_;
};

/// Calls pass(offset, extent, coefficients) for extents that cover all elements, on several threads; `coefficients` belong to the columns.
template <class T, std::size_t K, class Pass>
void for_each_element(const sdk::Host& host, const Channels& at, const std::array<const T*, K>& coefficients, const Pass& pass) {
  if (at.last()) {
    host.parallel_for(at.rows, std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, at.columns)),
                      [&](std::int64_t begin, std::int64_t end) {
                        pass(begin * at.columns, StridedRows{end - begin, at.columns, at.columns}, coefficients);
                      });
    if (at.single_rows > 0) pass(at.rows * at.columns, StridedRows{at.single_rows, at.count, at.count}, coefficients);
    return;
  }
  if (at.inner == 0) return;
  host.parallel_for(at.outer * at.count, std::max<std::int64_t>(1, grain / at.inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const Broadcast<T, K> broadcast(coefficients, line % at.count, at.inner);
      for (std::int64_t done = 0; done < at.inner; done += channel_strip) {
        const std::int64_t m = std::min(channel_strip, at.inner - done);
        pass(line * at.inner + done, StridedRows{1, m, m}, broadcast.pointers());
      }
    }
  });
}

/// pass(offset, extent, coefficients, first, second) computes two sums per column. fold(before, count, first, second, channel, m) combines
/// the sums of `count` elements of channels [channel, channel + m) with those of the `before` elements already combined.
template <class T, std::size_t K, class Pass, class Fold>
void for_each_channel(const sdk::Host& host, const Channels& at, const std::array<const T*, K>& coefficients, double* partial,
                      const Pass& pass, const Fold& fold) {
  if (!at.last()) {
    host.parallel_for(at.count, std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, at.n)),
                      [&](std::int64_t begin, std::int64_t end) {
                        double first[channel_strip], second[channel_strip];
                        for (std::int64_t c = begin; c < end; ++c) {
                          const Broadcast<T, K> broadcast(coefficients, c, at.inner);
                          for (std::int64_t done = 0; done < at.inner && at.outer > 0; done += channel_strip) {
                            const std::int64_t m = std::min(channel_strip, at.inner - done);
                            pass(c * at.inner + done, StridedRows{at.outer, at.count * at.inner, m}, broadcast.pointers(), first, second);
                            for (std::int64_t j = 0; j < m; ++j)
                              fold(static_cast<double>((done + j) * at.outer), static_cast<double>(at.outer), first + j, second + j, c, 1);
                          }
                        }
                      });
    return;
  }
  const auto from = [&](std::int64_t column) {
    std::array<const T*, K> moved = coefficients;
    for (const T*& list : moved) list += column;
    return moved;
  };
  const std::int64_t strips = (at.columns + channel_strip - 1) / channel_strip;
  const auto first_row = [&](std::int64_t part) { return at.rows * part / at.parts; };
  double before = 0;
  if (at.rows > 0) {
    host.parallel_for(at.parts * strips, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t part = task / strips, column = task % strips * channel_strip;
        const std::int64_t row = first_row(part);
        double* const sums = partial + 2 * part * at.columns + column;
        pass(row * at.columns + column, StridedRows{first_row(part + 1) - row, at.columns, std::min(channel_strip, at.columns - column)},
             from(column), sums, sums + at.columns);
      }
    });
    for (std::int64_t part = 0; part < at.parts; ++part) {
      const auto count = static_cast<double>(first_row(part + 1) - first_row(part));
      for (std::int64_t copy = 0; copy < at.copies; ++copy, before += count) {
        const double* const sums = partial + 2 * part * at.columns + copy * at.count;
        fold(before, count, sums, sums + at.columns, 0, at.count);
      }
    }
  }
  if (at.single_rows == 0) return;
  double first[channel_strip], second[channel_strip];  // there are single rows only if a strip holds all channels
  pass(at.rows * at.columns, StridedRows{at.single_rows, at.count, at.count}, from(0), first, second);
  fold(before, static_cast<double>(at.single_rows), first, second, 0, at.count);
}

template <class T>
std::size_t scratch_of(const sdk::Call& call, std::uint32_t x) {
  return Workspace<SumOf<T>>::size(Channels(call.inputs[x], call.attr<tenon_attributes_batch_norm>().axis));
}
template <std::uint32_t x>
std::size_t scratch(const sdk::Call& call) {
  return with_product_type(call.inputs[x].dtype, [&]<class T>(T) { return scratch_of<T>(call, x); });
}

/// y = (x - c0) c1 + c2, with the coefficients of each channel, which are repeated to whole vectors.
template <class T>
void normalise(const sdk::Call& call, const Channels& at, const Workspace<SumOf<T>>& workspace) {
  using S = SumOf<T>;
  for (int k = 0; k < 3; ++k) repeat(at, workspace.coefficients[k]);
  const T* const x = call.input<T>(0);
  T* const y = call.output<T>(0);
  const auto code = channel_norm<T>();
  for_each_element<S, 3>(call.host, at, {workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2]},
                         [&](std::int64_t offset, const StridedRows& extent, const std::array<const S*, 3>& by) {
                           code.normalise(x + offset, y + offset, extent, by[0], by[1], by[2]);
                         });
}

/// y = (x - mean) / sqrt(var + epsilon) scale + bias
template <class T>
void batch_norm(const sdk::Call& call) {
  using S = SumOf<T>;
  const auto& attributes = call.attr<tenon_attributes_batch_norm>();
  const Channels at(call.inputs[0], attributes.axis);
  const Workspace<SumOf<T>> workspace(at, call.scratch);
  const S* const scale = call.input<S>(1);
  const S* const bias = call.input<S>(2);
  const S* const mean = call.input<S>(3);
  const S* const variance = call.input<S>(4);
  for (std::int64_t c = 0; c < at.count; ++c) {
    workspace.coefficients[0][c] = mean[c];
    workspace.coefficients[1][c] =
        static_cast<S>(static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variance[c]) + attributes.epsilon));
    workspace.coefficients[2][c] = bias[c];
  }
  normalise<T>(call, at, workspace);
}

/// Mean and sum of squared distances per channel, by the pairwise rule of Chan, Golub and LeVeque.
template <class T>
void add_statistics(const sdk::Call& call, const Channels& at, const Workspace<SumOf<T>>& workspace) {
  using S = SumOf<T>;
  const T* const x = call.input<T>(0);
  const auto code = channel_norm<T>();
  std::fill_n(workspace.first, 2 * at.count, 0.0);
  for_each_channel<S, 0>(
      call.host, at, {}, workspace.partial,
      [&](std::int64_t offset, const StridedRows& extent, const std::array<const S*, 0>&, double* mean, double* squares) {
        code.statistics(x + offset, extent, mean, squares);
      },
      [&](double before, double count, const double* mean, const double* squares, std::int64_t channel, std::int64_t m) {
        double* const all_mean = workspace.first + channel;
        double* const all_squares = workspace.second + channel;
        const double share = count / (before + count), between = before * share;
        for (std::int64_t j = 0; j < m; ++j) {
          const double shift = mean[j] - all_mean[j];
          all_squares[j] += squares[j] + shift * shift * between;
          all_mean[j] += shift * share;
        }
      });
}

/// batch_norm with the mean and variance of the batch; running = (1 - momentum) running + momentum (mean, or variance n / (n - 1)).
template <class T>
void batch_norm_train(const sdk::Call& call) {
  using S = SumOf<T>;
  const auto& attributes = call.attr<tenon_attributes_batch_norm>();
  const Channels at(call.inputs[0], attributes.axis);
  const Workspace<SumOf<T>> workspace(at, call.scratch);
  add_statistics<T>(call, at, workspace);

  const S* const scale = call.input<S>(1);
  const S* const bias = call.input<S>(2);
  const double momentum = attributes.momentum;
  const auto n = static_cast<double>(at.n);
  const auto update_running = [&](std::uint32_t running, std::int64_t c, double by) {
    const auto old = static_cast<double>(call.input<S>(running)[c]);
    call.output<S>(running - 2)[c] = static_cast<S>((1 - momentum) * old + momentum * by);
  };
  for (std::int64_t c = 0; c < at.count; ++c) {
    const double mean = workspace.first[c];
    const double variance = (workspace.second[c] < 0 ? 0 : workspace.second[c]) / n;  // NaN propagates
    const double inverse_std = 1 / std::sqrt(variance + attributes.epsilon);
    update_running(3, c, mean);
    update_running(4, c, attributes.biased != 0 ? variance : variance * (n / (n - 1)));
    call.output<S>(3)[c] = static_cast<S>(mean);
    call.output<S>(4)[c] = static_cast<S>(inverse_std);
    // x - centre is exact near the mean; the rounding error of the centre goes into the offset.
    const auto centre = static_cast<S>(mean);
    const double factor = inverse_std * static_cast<double>(scale[c]);
    workspace.coefficients[0][c] = centre;
    workspace.coefficients[1][c] = static_cast<S>(factor);
    workspace.coefficients[2][c] = static_cast<S>(static_cast<double>(bias[c]) - (mean - static_cast<double>(centre)) * factor);
  }
  normalise<T>(call, at, workspace);
}

/// With x' = (x - mean) inverse_std: dbias = sum(dy), dscale = sum(dy x'), dx = scale inverse_std / n (n dy - dbias - x' dscale).
template <class T>
void batch_norm_train_grad(const sdk::Call& call) {
  using S = SumOf<T>;
  const Channels at(call.inputs[1], call.attr<tenon_attributes_batch_norm>().axis);
  const Workspace<SumOf<T>> workspace(at, call.scratch);
  const T* const dy = call.input<T>(0);
  const T* const x = call.input<T>(1);
  const S* const scale = call.input<S>(2);
  const S* const inverse_std = call.input<S>(4);
  const auto code = channel_norm<T>();

  std::copy_n(call.input<S>(3), at.count, workspace.coefficients[0]);
  repeat(at, workspace.coefficients[0]);
  std::fill_n(workspace.first, 2 * at.count, 0.0);
  for_each_channel<S, 1>(
      call.host, at, {workspace.coefficients[0]}, workspace.partial,
      [&](std::int64_t offset, const StridedRows& extent, const std::array<const S*, 1>& mean, double* sum, double* product) {
        code.gradient_sums(dy + offset, x + offset, extent, mean[0], sum, product);
      },
      [&](double, double, const double* sum, const double* product, std::int64_t channel, std::int64_t m) {
        for (std::int64_t j = 0; j < m; ++j) {
          workspace.first[channel + j] += sum[j];
          workspace.second[channel + j] += product[j];
        }
      });

  const auto n = static_cast<double>(at.n);
  for (std::int64_t c = 0; c < at.count; ++c) {
    const auto to_normal = static_cast<double>(inverse_std[c]);
    const double dbias = workspace.first[c], dscale = workspace.second[c] * to_normal;
    const double factor = static_cast<double>(scale[c]) * to_normal;
    call.output<S>(1)[c] = static_cast<S>(dscale);
    call.output<S>(2)[c] = static_cast<S>(dbias);
    workspace.coefficients[1][c] = static_cast<S>(factor);
    workspace.coefficients[2][c] = static_cast<S>(-factor * to_normal * (dscale / n));
    workspace.coefficients[3][c] = static_cast<S>(-factor * (dbias / n));
  }
  for (int k = 1; k < 4; ++k) repeat(at, workspace.coefficients[k]);
  T* const dx = call.output<T>(0);
  for_each_element<S, 4>(call.host, at,
                         {workspace.coefficients[0], workspace.coefficients[1], workspace.coefficients[2], workspace.coefficients[3]},
                         [&](std::int64_t offset, const StridedRows& extent, const std::array<const S*, 4>& by) {
                           code.gradient(dy + offset, x + offset, dx + offset, extent, by[0], by[1], by[2], by[3]);
                         });
}

constexpr sdk::Traits given{.in_place = true, .channels_last = {.inputs = 0b1, .outputs = 0b1}, .scratch = scratch<0>};
constexpr sdk::Traits train{.in_place = true, .channels_last = {.inputs = 0b1, .outputs = 0b1}, .scratch = scratch<0>};
constexpr sdk::Traits train_grad{.channels_last = {.inputs = 0b11, .outputs = 0b1}, .scratch = scratch<1>};

}  // namespace

TENON_KERNEL_WITH(batch_norm, given, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(batch_norm_train, train, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(batch_norm_train_grad, train_grad, sdk::BFloat16, float, double)

}  // namespace tenon::openblas
