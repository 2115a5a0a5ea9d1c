// SPDX-License-Identifier: Apache-2.0
// reduction.h - divides a reduction over any axes into strided pieces for vector code, and combines their results.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "elementwise/strided_loop.h"

namespace tenon::openblas {

// Columns reduced at a time: their partial results stay in L1, and the part of a row is long enough for the prefetcher.
inline constexpr std::int64_t reduction_strip = 256;

/// The vector code of a reduction of T with partial results of type P.
template <class T, class P>
struct ReductionKernels {
  P (*row)(const T* x, std::int64_t n);  ///< reduces n > 0 adjacent elements
  /// out[j] = the reduction of x[i * stride + j] over i < rows, for j < columns; rows > 0, columns <= reduction_strip
  void (*columns)(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, P* out);
};

/// A compensated sum (Neumaier) of partial sums. It may be slow: vector code has already summed most elements.
class Total {
 public:
  using Part = double;
  void add(double x) {
    const double next = sum_ + x;
    compensation_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + compensation_ : sum_; }  // with an infinite sum, `compensation_` is NaN

 private:
  double sum_ = 0;
  double compensation_ = 0;
};

/// Combines partial results by a function object with a neutral element: Join{}(a, b), Join::neutral().
template <class P, class Join>
class Joined {
 public:
  using Part = P;
  void add(P x) { value_ = Join{}(value_, x); }
  P value() const { return value_; }

 private:
  P value_ = Join::neutral();
};

/// How a reduction is carried out. It depends only on shapes and strides, so the result's bits do not depend on the number of threads.
struct ReductionMethod {
  StridedLoop<1> kept;
  StridedLoop<1> reduced;
  bool by_columns;          // vectors along the last kept dimension, else along a reduced one
  std::uint32_t inner;      // the reduced dimension that the vector code iterates over
  std::uint32_t split;      // the reduced dimension that is divided into parts
  std::int64_t tasks;       // rows to reduce, or strips of columns
  std::int64_t parts;       // 1: each result is computed by one task
  std::int64_t grain;       // the smallest number of tasks worth a thread
  std::int64_t part_grain;  // the smallest number of parts worth a thread
};

/// `elements` is the smallest number of elements worth a thread.
ReductionMethod method_of(const sdk::Call& call, std::int64_t elements);

/// `dimensions` without dimension `removed`.
StridedLoop<1> without(const StridedLoop<1>& dimensions, std::uint32_t removed);

/// Executes a reduction.
template <class T, class Running>
class Reduction {
 public:
  using Part = typename Running::Part;

  Reduction(const ReductionMethod& method, const ReductionKernels<T, Part>& kernels, const T* x) : m_(method), kernels_(kernels), x_(x) {
    // The inner dimension may be the one that is split. Long parts are whole blocks of the vector code, so that all of them are as aligned
    // as x: a vector that crosses two cache lines loads both.
    constexpr std::int64_t block = 256;
    part_size_ = (m_.reduced.shape[m_.split] + m_.parts - 1) / m_.parts;
    if (part_size_ >= 16 * block) part_size_ = (part_size_ + block - 1) / block * block;
  }

  /// Computes one part for tasks [begin, end) and calls store(result index, value).
  template <class Store>
  void run(std::int64_t part, std::int64_t begin, std::int64_t end, const Store& store) const {
    StridedLoop<1> reduced = m_.reduced;
    const std::int64_t first = std::min(part * part_size_, reduced.shape[m_.split]);
    reduced.shape[m_.split] = std::min(part_size_, reduced.shape[m_.split] - first);
    if (reduced.shape[m_.split] == 0) return;
    const T* x = x_ + first * reduced.strides[0][m_.split];
    const std::int64_t n = reduced.shape[m_.inner];
    const std::int64_t step = reduced.strides[0][m_.inner];
    const StridedLoop<1> outer = without(reduced, m_.inner);
    if (m_.by_columns) {
      reduce_strips(x, outer, n, step, begin, end, store);
    } else if (outer.count == 1 && n < short_row) {
      reduce_short_rows(x, n, step, begin, end, store);
    } else {
      reduce_rows(x, outer, n, step, begin, end, store);
    }
  }

 private:
  template <class Body>
  static void for_each_outer(const StridedLoop<1>& outer, const Body& body) {
    for_each_run(outer, 0, outer.count, [&](const std::array<std::int64_t, 1>& at, std::int64_t, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) body(at[0] + i * outer.run_stride(0));
    });
  }

  void add_row(const T* row, std::int64_t n, std::int64_t step, Running& running) const {
    if (step == 1) {
      running.add(kernels_.row(row, n));
      return;
    }
    constexpr std::int64_t piece = 256;
    T gathered[piece];
    for (std::int64_t done = 0; done < n; done += piece) {
      const std::int64_t m = std::min(piece, n - done);
      for (std::int64_t j = 0; j < m; ++j) gathered[j] = row[(done + j) * step];
      running.add(kernels_.row(gathered, m));
    }
  }

  template <class Store>
  void reduce_rows(const T* x, const StridedLoop<1>& outer, std::int64_t n, std::int64_t step, std::int64_t begin, std::int64_t end,
                   const Store& store) const {
    for_each_run(m_.kept, begin, end, [&](const std::array<std::int64_t, 1>& from, std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T* row = x + from[0] + i * m_.kept.run_stride(0);
        Running running;
        for_each_outer(outer, [&](std::int64_t offset) { add_row(row + offset, n, step, running); });
        store(at + i, running.value());
      }
    });
  }

  /// Reduces many rows of fewer than short_row elements at a time: as columns of a transposed copy.
  template <class Store>
  void reduce_short_rows(const T* x, std::int64_t n, std::int64_t step, std::int64_t begin, std::int64_t end, const Store& store) const {
    T transposed[short_row * reduction_strip];
    Part values[reduction_strip];
    const std::int64_t stride = m_.kept.run_stride(0);
    for_each_run(m_.kept, begin, end, [&](const std::array<std::int64_t, 1>& from, std::int64_t at, std::int64_t count) {
      for (std::int64_t done = 0; done < count; done += reduction_strip) {
        const std::int64_t rows = std::min(reduction_strip, count - done);
        const T* const first = x + from[0] + done * stride;
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t k = 0; k < n; ++k) transposed[k * reduction_strip + i] = first[i * stride + k * step];
        }
        kernels_.columns(transposed, n, reduction_strip, rows, values);
        for (std::int64_t i = 0; i < rows; ++i) {
          Running running;
          running.add(values[i]);
          store(at + done + i, running.value());
        }
      }
    });
  }

  template <class Store>
  void reduce_strips(const T* x, const StridedLoop<1>& outer, std::int64_t n, std::int64_t step, std::int64_t begin, std::int64_t end,
                     const Store& store) const {
    const std::int64_t width = m_.kept.shape[m_.kept.rank - 1];
    const std::int64_t strips = (width + reduction_strip - 1) / reduction_strip;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t result = task / strips * width + task % strips * reduction_strip;
      const std::int64_t columns = std::min(reduction_strip, width - task % strips * reduction_strip);
      const T* corner = x + m_.kept.offsets(result)[0];
      std::array<Running, reduction_strip> running;
      for_each_outer(outer, [&](std::int64_t offset) {
        Part values[reduction_strip];
        kernels_.columns(corner + offset, n, step, columns, values);
        for (std::int64_t j = 0; j < columns; ++j) running[j].add(values[j]);
      });
      for (std::int64_t j = 0; j < columns; ++j) store(result + j, running[j].value());
    }
  }

  static constexpr std::int64_t short_row = 16;

  const ReductionMethod& m_;
  const ReductionKernels<T, Part>& kernels_;
  const T* x_;
  std::int64_t part_size_;
};

/// y = finish(value) for each result. Needs scratch memory of reduction_scratch<Part> bytes.
template <class Running, class T, class Finish>
void reduce(const sdk::Call& call, std::int64_t elements, const ReductionKernels<T, typename Running::Part>& kernels,
            const Finish& finish) {
  using Part = typename Running::Part;
  const ReductionMethod method = method_of(call, elements);
  T* const y = call.output<T>(0);
  const std::int64_t results = call.outputs[0].count;
  if (results == 0) return;
  if (method.reduced.count == 0) {
    std::fill_n(y, results, static_cast<T>(finish(Running{}.value())));
    return;
  }
  const Reduction<T, Running> reduction(method, kernels, call.input<T>(0));
  if (method.parts == 1) {
    call.host.parallel_for(method.tasks, method.grain, [&](std::int64_t begin, std::int64_t end) {
      reduction.run(0, begin, end, [&](std::int64_t i, Part value) { y[i] = static_cast<T>(finish(value)); });
    });
    return;
  }
  Part* const values = static_cast<Part*>(call.scratch);
  call.host.parallel_for(method.parts, method.part_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      std::fill_n(values + part * results, results, Running{}.value());  // the last parts may be empty
      reduction.run(part, 0, method.tasks, [&](std::int64_t i, Part value) { values[part * results + i] = value; });
    }
  });
  for (std::int64_t i = 0; i < results; ++i) {
    Running running;
    for (std::int64_t part = 0; part < method.parts; ++part) running.add(values[part * results + i]);
    y[i] = static_cast<T>(finish(running.value()));
  }
}

template <class Part, std::int64_t elements>
std::size_t reduction_scratch(const sdk::Call& call) {
  const ReductionMethod method = method_of(call, elements);
  return method.parts == 1 ? 0 : static_cast<std::size_t>(method.parts * call.outputs[0].count) * sizeof(Part);
}

}  // namespace tenon::openblas
