// SPDX-License-Identifier: Apache-2.0
// ops/scatter.cpp - a tensor with updates at given indices. Every element is updated by one thread and in order, so results do not depend
// on the number of threads.
#include <tenon/sdk/element.h>
#include <tenon/sdk/indices.h>
#include <tenon/sdk/rounding.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "elementwise/half.h"
#include "elementwise/strided_copy.h"
#include "elementwise/strided_loop.h"

namespace tenon::openblas {
namespace {

// Updates worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 16 * 1024;

/// Integers wrap; for bools, Add is "or" and Multiply is "and".
struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
/// NaN wins.
struct Largest {
  template <class T>
  static T of(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct Smallest {
  template <class T>
  static T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};
struct Replace {
  template <class T>
  static T of(T, T b) {
    return b;
  }
};

/// f(operation) with the one of a TENON_SCATTER_* value.
template <class F>
void with_operation(std::uint32_t reduction, const F& f) {
  switch (reduction) {
    case TENON_SCATTER_ADD:
      return f(Add{});
    case TENON_SCATTER_MUL:
      return f(Multiply{});
    case TENON_SCATTER_MAX:
      return f(Largest{});
    case TENON_SCATTER_MIN:
      return f(Smallest{});
    default:
      return f(Replace{});
  }
}

/// Whether the result may be written in place of x, which is read at the same time: they have the same dtype and shape.
bool may_be_result(const sdk::Call& call, const sdk::Operand& x) {
  const sdk::Operand& y = call.outputs[0];
  return x.dtype == y.dtype && x.rank == y.rank && std::equal(x.shape, x.shape + x.rank, y.shape);
}

/// Bytes of the scratch copy of operand i, which the kernel needs dense and distinct from the result; 0 if the operand already is.
std::size_t copy_size(const sdk::Call& call, std::uint32_t i) {
  const sdk::Operand& x = call.inputs[i];
  return x.dense && !may_be_result(call, x) ? 0 : sdk::aligned_size(static_cast<std::size_t>(x.count * sdk::size_of(x.dtype)));
}
std::size_t scratch(const sdk::Call& call) {
  return copy_size(call, 1) + copy_size(call, 2);
}
sdk::Operand dense(const sdk::Call& call, std::uint32_t i) {
  sdk::Operand x = call.inputs[i];
  if (x.dense && x.data != call.outputs[0].data) return x;
  sdk::Operand copy = x;
  copy.data = static_cast<unsigned char*>(call.scratch) + (i == 2 ? copy_size(call, 1) : 0);
  copy_strided(call.host, x, copy, static_cast<std::size_t>(sdk::size_of(x.dtype)));
  copy.dense = true;  // its strides are not read
  return copy;
}

/// y = x. In place there is nothing to do.
void start_from(const sdk::Call& call, std::size_t element_size) {
  if (call.inputs[0].data != call.outputs[0].data) copy_strided(call.host, call.inputs[0], call.outputs[0], element_size);
}

/// Applies the updates along lines of the axis. Tasks are columns (dimensions inside the axis) of a slab (dimensions outside of it).
template <class T, class Operation>
void change(const sdk::Call& call, std::size_t axis, const sdk::Indices& indices, const T* updates) {
  const sdk::Operand &shape = call.inputs[2], &y = call.outputs[0];
  // The updates' dimensions outside and inside of the axis, with the strides of y and of the updates.
  std::int64_t own[TENON_MAX_RANK];
  std::int64_t stride = 1;
  for (std::uint32_t d = shape.rank; d-- > 0; stride *= shape.shape[d]) own[d] = stride;
  const auto side = [&](std::uint32_t begin, std::uint32_t end) {
    sdk::Operand in_y, in_updates;
    in_y.rank = in_updates.rank = end - begin;
    in_y.shape = in_updates.shape = shape.shape + begin;
    in_y.strides = y.strides + begin;
    in_updates.strides = own + begin;
    in_y.count = 1;
    for (std::uint32_t d = begin; d < end; ++d) in_y.count *= shape.shape[d];
    return strided_loop_over<2>(in_y, {&in_y, &in_updates});
  };
  const StridedLoop<2> outside = side(0, static_cast<std::uint32_t>(axis));
  const StridedLoop<2> inside = side(static_cast<std::uint32_t>(axis) + 1, shape.rank);
  const std::int64_t n = shape.shape[axis], y_step = y.strides[axis], own_step = own[axis];
  constexpr std::int64_t piece = 64;  // columns at a time
  const std::int64_t pieces = (inside.count + piece - 1) / piece;
  T* const to = y.as<T>();
  const std::int64_t work = std::max<std::int64_t>(1, n * std::min(piece, inside.count));
  call.host.parallel_for(outside.count * pieces, std::max<std::int64_t>(1, grain / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::array<std::int64_t, 2> slab = outside.offsets(task / pieces);
      const std::int64_t first = task % pieces * piece;
      for (std::int64_t j = 0; j < n; ++j) {
        for_each_run(inside, first, std::min(first + piece, inside.count),
                     [&](const std::array<std::int64_t, 2>& at, std::int64_t, std::int64_t count) {
                       const std::int64_t update = slab[1] + j * own_step + at[1];
                       T* const line = to + slab[0] + at[0];
                       for (std::int64_t i = 0; i < count; ++i) {
                         const std::int64_t from = update + i * inside.run_stride(1);
                         T& element = line[i * inside.run_stride(0) + indices[from] * y_step];
                         element = Operation::of(element, updates[from]);
                       }
                     });
      }
    }
  });
}

/// y = x, then y[..., indices[..., j, ...], ...] = updates[..., j, ...] along `axis`, or reduced with it. An index outside [-n, n) is an
/// error; then nothing is written.
template <class T>
void scatter_elements(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  const auto axis = static_cast<std::size_t>(attributes.axis);
  const sdk::Indices indices("scatter_elements", dense(call, 1), call.inputs[0].shape[axis]);
  const T* const updates = dense(call, 2).as<const T>();
  start_from(call, sizeof(T));
  if (indices.count() == 0) return;
  with_operation(attributes.reduction, [&](auto operation) { change<T, decltype(operation)>(call, axis, indices, updates); });
}

/// Applies updates[o, k, i] to y[o, indices[k], i], in the order of k.
template <class Operation, class T>
void change_slices(const sdk::Call& call, const sdk::AxisView& view, const sdk::Indices& indices, const T* updates) {
  T* const y = call.output<T>(0);
  const std::int64_t count = indices.count(), inner = view.inner;
  // Slabs are independent. If there are few, each is divided into ranges of rows; every range scans all indices and applies its own.
  const std::int64_t parts = std::clamp<std::int64_t>(count * inner / grain, 1, std::min<std::int64_t>(call.host.thread_count(), view.n));
  const std::int64_t rows = (view.n + parts - 1) / parts;
  call.host.parallel_for(view.outer * parts, std::max<std::int64_t>(1, grain / (count * inner)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = task % parts * rows;
      const T* update = updates + task / parts * count * inner;
      T* const slab = y + task / parts * view.n * inner;
      for (std::int64_t k = 0; k < count; ++k, update += inner) {
        const std::int64_t row = indices[k];
        if (row < first || row >= first + rows) continue;
        T* const to = slab + row * inner;
        for (std::int64_t i = 0; i < inner; ++i) to[i] = Operation::of(to[i], update[i]);
      }
    }
  });
}

/// The same for f16 and bf16: the updates of a slice are reduced in f32, and the result is rounded once. `order` has space for the
/// positions of the indices.
template <class Operation, class T>
void reduce_narrow_slices(const sdk::Call& call, const sdk::AxisView& view, const sdk::Indices& indices, const T* updates,
                          std::int64_t* order) {
  T* const y = call.output<T>(0);
  const std::int64_t count = indices.count(), inner = view.inner;
  std::iota(order, order + count, std::int64_t{0});
  std::sort(order, order + count, [&](std::int64_t a, std::int64_t b) { return std::pair(indices[a], a) < std::pair(indices[b], b); });
  // A task is a slab from one sorted update to the next; it makes all updates of the slice if it has the first of them.
  call.host.parallel_for(view.outer * count, std::max<std::int64_t>(1, grain / inner), [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t piece = 256;
    float reduced[piece];
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t from = task % count, row = indices[order[from]];
      if (from > 0 && indices[order[from - 1]] == row) continue;
      std::int64_t to = from + 1;
      while (to < count && indices[order[to]] == row) ++to;
      const T* const slab = updates + task / count * count * inner;
      T* const slice = y + (task / count * view.n + row) * inner;
      for (std::int64_t i = 0; i < inner; i += piece) {
        const std::int64_t here = std::min(piece, inner - i);
        for (std::int64_t j = 0; j < here; ++j) reduced[j] = to_float(slice[i + j]);
        for (std::int64_t p = from; p < to; ++p) {
          const T* const update = slab + order[p] * inner + i;
          for (std::int64_t j = 0; j < here; ++j) reduced[j] = Operation::of(reduced[j], to_float(update[j]));
        }
        for (std::int64_t j = 0; j < here; ++j) slice[i + j] = from_float<T>(reduced[j]);
      }
    }
  });
}

/// y = x, then y[o, indices[k], i] = updates[o, k, i] around the axis, or reduced with it, in the order of k. An index outside [-n, n) is
/// an error; then nothing is written.
template <class T>
void scatter_to_slices(const sdk::Call& call, const char* op, std::int64_t axis, std::uint32_t reduction) {
  const sdk::AxisView view = sdk::around_axis(call.outputs[0], axis);
  const sdk::Indices indices(op, dense(call, 1), view.n);
  const T* const updates = dense(call, 2).as<const T>();
  start_from(call, sizeof(T));
  if (call.inputs[2].count == 0) return;
  with_operation(reduction, [&](auto operation) {
    using Operation = decltype(operation);
    if constexpr (!is_narrow<T> || std::is_same_v<Operation, Replace>) {
      change_slices<Operation>(call, view, indices, updates);
    } else {
      auto* const order = static_cast<unsigned char*>(call.scratch) + copy_size(call, 1) + copy_size(call, 2);
      reduce_narrow_slices<Operation>(call, view, indices, updates, reinterpret_cast<std::int64_t*>(order));
    }
  });
}

template <class T>
void scatter_add(const sdk::Call& call) {
  scatter_to_slices<T>(call, "scatter_add", call.attr<tenon_attributes_axis>().axis, TENON_SCATTER_ADD);
}

template <class T>
void scatter_slices(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  scatter_to_slices<T>(call, "scatter_slices", attributes.axis, attributes.reduction);
}

std::size_t slices_scratch(const sdk::Call& call) {
  const bool narrow = sdk::size_of(call.inputs[0].dtype) == 2;
  return scratch(call) + (narrow ? static_cast<std::size_t>(call.inputs[1].count) * sizeof(std::int64_t) : 0);
}

constexpr sdk::Traits traits{.strided = true, .in_place = true, .scratch = scratch};
constexpr sdk::Traits slices_traits{.strided = true, .in_place = true, .scratch = slices_scratch};

}  // namespace

TENON_KERNEL_WITH(scatter_elements, traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(scatter_add, slices_traits, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(scatter_slices, slices_traits, TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
