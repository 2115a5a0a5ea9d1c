// SPDX-License-Identifier: Apache-2.0
// persistent.cuh - the kernels that run all time steps of a layer, or of its gradient, by one launch (ADR 88). What a cell computes is in
// ops/, as for the kernels of single steps.
#pragma once

#include "kernel/dynamic_shared.cuh"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/wide.cuh"
#include "recurrent/persistent.h"
#include "recurrent/recurrent.h"
#include "recurrent/unit.cuh"

namespace tenon::cuda {

/// Passed to kernels by value.
template <class T>
struct PersistentLayer {
  const T* weights;  ///< (D, G H, H)
  std::int64_t batch;
  std::int64_t groups;  ///< blocks of a direction
  int steps, units, directions, iterations;
  int line;                ///< elements of a row of a vector
  std::size_t vectors_at;  ///< bytes of shared memory before the vectors
  bool reverse;            ///< the first direction reads x backwards, as the second always does
};

/// A block of such a kernel: `rows` rows of the batch in one direction. Thread unit * rows + part
///
///   sums     for all rows of the block every rows-th chunk of the sums of its unit, with weights that only it reads: a chunk at a time,
///            next to those of the other threads of its warp, so that there are no bank conflicts
///   adds up  these sums with the other threads of the unit, by shuffles after which it has those of row `part`, in a fixed order
///   computes the cell of this unit and row
///
/// Sums and states are in f32, in f64 for f64. Vectors, of states or of gradients of gates, have a line for each row, and a chunk is 16
/// bytes of that: 4 elements, 2 in f64. What belongs to no unit is 0, in weights and in vectors. Lines are padded so that the writes of a
/// warp have no bank conflicts (persistent.cpp), and are whole chunks.
///
/// The weights of the first `kept` iterations are in registers, the others in shared memory.
template <class T, int gates, int rows, int kept, bool gradient>
class PersistentBlock {
 public:
  using W = Wide<T>;

  /// Reads the weights; with `vectors` vectors of 0.
  __device__ PersistentBlock(const PersistentLayer<T>& layer, int vectors) : layer_(layer) {
    const int thread = static_cast<int>(threadIdx.x);
    unit_ = thread / rows;
    part_ = thread % rows;
    direction_ = blockIdx.x < layer.groups ? 0 : 1;
    row_ = (blockIdx.x - direction_ * layer.groups) * rows + part_;
    weights_ = reinterpret_cast<Weights*>(dynamic_shared()) + thread;
    states_ = reinterpret_cast<W*>(dynamic_shared() + layer.vectors_at);
    read_weights();
    for (int i = thread; i < vectors * rows * layer.line; i += static_cast<int>(blockDim.x)) states_[i] = 0;
    __syncthreads();
  }

  /// True if this thread has a unit of a row; others take part in sums only.
  __device__ bool works() const { return unit_ < layer_.units && row_ < layer_.batch; }
  /// The unit of this thread at a step. Only if it works.
  __device__ Unit at(int step) const {
    const bool reverse = layer_.reverse || direction_ == 1;
    const std::int64_t time = reverse ? layer_.steps - 1 - step : step, before = reverse ? time + 1 : time - 1;
    const std::int64_t row = direction_ * layer_.batch + row_, state = row * layer_.units + unit_;
    const std::int64_t elements = layer_.directions * layer_.batch * layer_.units;
    return {unit_,
            direction_,
            row,
            (time * layer_.batch + row_) * layer_.directions + direction_,
            state,
            time * elements + state,
            step > 0 ? before * elements + state : -1};
  }

  /// Vector i. Another thread reads what is written after a barrier.
  __device__ W* vector(int i) const { return vector_after(states_, i); }
  __device__ W* vector_after(W* vector, int i) const { return vector + i * rows * layer_.line; }
  __device__ void write(W* vector, W value) const { vector[part_ * layer_.line + unit_] = value; }

  /// The products of the state in `vector` with the weights of the n gates from `first` on, for this thread's unit and row. All threads.
  template <int first, int n>
  __device__ void multiply(const W* vector, W (&out)[n]) const {
    static_assert(!gradient);
    W sums[rows][n] = {};
    each_iteration([&](int i, const auto& weights_of) {
      Weights w[n];
#pragma unroll
      for (int g = 0; g < n; ++g) w[g] = weights_of(first + g);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const States h = chunk_of(vector, r, i);
#pragma unroll
        for (int g = 0; g < n; ++g) {
#pragma unroll
          for (int e = 0; e < width; ++e) sums[r][g] += h.at[e] * widen(w[g].at[e]);
        }
      }
    });
    add_up(sums, out);
  }

  /// The sum over the n gates from `first` on, and over their units, of the weights that this thread's unit has in them times their
  /// elements in the vectors from `vector` on. All threads.
  template <int first, int n>
  __device__ W sum(W* vector) const {
    static_assert(gradient && std::is_same_v<T, W>);
    W sums[rows][1] = {}, out[1];
    each_iteration([&](int i, const auto& weights_of) {
#pragma unroll
      for (int g = 0; g < n; ++g) {
        const Weights w = weights_of(first + g);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          const States d = chunk_of(vector_after(vector, g), r, i);
#pragma unroll
          for (int e = 0; e < width; ++e) sums[r][0] += d.at[e] * w.at[e];
        }
      }
    });
    add_up(sums, out);
    return out[0];
  }

 private:
  static constexpr int width = pack_width<W>;  ///< of a chunk
  using Weights = Pack<T, width>;
  using States = Pack<W, width>;

  /// In shared memory: not those of the first iterations.
  __device__ Weights& weights(int iteration, int gate) const {
    return weights_[static_cast<std::size_t>((iteration - kept) * gates + gate) * blockDim.x];
  }
  /// body(iteration, weights of a gate in it)
  template <class Body>
  __device__ void each_iteration(const Body& body) const {
#pragma unroll
    for (int i = 0; i < kept; ++i) body(i, [&](int gate) { return registers_[i][gate]; });
#pragma unroll 1
    for (int i = kept; i < layer_.iterations; ++i) body(i, [&](int gate) { return weights(i, gate); });
  }
  /// The elements of row r that the weights of an iteration are multiplied by.
  __device__ States chunk_of(const W* vector, int r, int iteration) const {
    return pack_at<width>(vector + (r * (layer_.line / width) + iteration * rows + part_) * width);
  }
  /// Each thread reads what only it uses, all gates of a chunk at once. Once per launch, from the L2 cache for all blocks but the first.
  __device__ void read_weights() {
#pragma unroll
    for (int i = 0; i < kept; ++i) read_iteration(i, registers_[i]);
#pragma unroll 1
    for (int i = kept; i < layer_.iterations; ++i) {
      Weights w[gates];
      read_iteration(i, w);
#pragma unroll
      for (int g = 0; g < gates; ++g) weights(i, g) = w[g];
    }
  }
  __device__ void read_iteration(int i, Weights (&out)[gates]) const {
    const int units = layer_.units;
    const T* const of_direction = layer_.weights + std::int64_t{direction_} * gates * units * units;
#pragma unroll
    for (int g = 0; g < gates; ++g) {
#pragma unroll
      for (int e = 0; e < width; ++e) {
        const int k = (i * rows + part_) * width + e;
        const std::int64_t place = gradient ? std::int64_t{g * units + k} * units + unit_ : std::int64_t{g * units + unit_} * units + k;
        out[g].at[e] = unit_ < units && k < units ? of_direction[place] : T{};
      }
    }
  }
  /// Adds up the sums of the threads of a unit: at each level a thread keeps the rows of its half and gives the others away.
  template <int n>
  __device__ void add_up(W (&sums)[rows][n], W (&out)[n]) const {
#pragma unroll
    for (int half = rows / 2; half > 0; half /= 2) {
      const bool upper = (part_ & half) != 0;
#pragma unroll
      for (int r = 0; r < half; ++r) {
#pragma unroll
        for (int g = 0; g < n; ++g) {
          const W low = sums[r][g], high = sums[r + half][g];
          sums[r][g] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, half);
        }
      }
    }
#pragma unroll
    for (int g = 0; g < n; ++g) out[g] = sums[0][g];
  }

  const PersistentLayer<T>& layer_;
  int unit_, part_, direction_;
  std::int64_t row_;  ///< of the batch, of this thread after add_up
  Weights registers_[kept == 0 ? 1 : kept][gates];
  Weights* weights_;  ///< of this thread; one of each gate of an iteration, then the next iteration's
  W* states_;
};

/// All steps of a layer. Cell has `count`, of its gates, `extra_vectors`, which it needs besides the states before and after a step,
/// Carried with start() and finish(), and all_steps(), which returns the state after a step.
template <class T, class Cell, int rows, int kept>
__global__ void __launch_bounds__(max_persistent_threads(kept), 1) all_steps(Cell cell, PersistentLayer<T> layer, const T* h0, T* y_h) {
  const PersistentBlock<T, Cell::count, rows, kept, false> block(layer, 2 + Cell::extra_vectors);
  const bool works = block.works();
  Wide<T> h = works ? read_or_zero(h0, block.at(0).state) : Wide<T>(0);
  typename Cell::Carried carried = works ? cell.start(block.at(0)) : typename Cell::Carried{};
  if (works) block.write(block.vector(0), h);
  __syncthreads();
  for (int step = 0; step < layer.steps; ++step) {
    const int before = step % 2;
    h = cell.all_steps(block, block.at(step), block.vector(before), h, carried);
    if (works) block.write(block.vector(1 - before), h);
    // What is written above was read a step ago, before this barrier of that step.
    __syncthreads();
  }
  if (!works) return;
  write_if(y_h, block.at(0).state, h);
  cell.finish(block.at(0), carried);
}

/// All steps of the gradient of a layer, from the last one to the first. Cell has `count`, of its gates, Carried with start() and
/// finish(), Values, what it reads at a step, with read(); gates_of(), which writes the gradients of gates to the block's vectors from
/// `vector` on; and before(), which returns the gradient of the state before a step.
template <class T, class Cell, int rows, int kept>
__global__ void __launch_bounds__(max_persistent_threads(kept), 1)
    all_steps_back(Cell cell, PersistentLayer<T> layer, const T* dy_h, T* dh0) {
  const PersistentBlock<T, Cell::count, rows, kept, true> block(layer, 2 * Cell::count);
  const bool works = block.works();
  Wide<T> dh = works ? read_or_zero(dy_h, block.at(0).state) : Wide<T>(0);
  typename Cell::Carried carried = works ? cell.start(block.at(0)) : typename Cell::Carried{};
  typename Cell::Values next{};
  if (works) next = cell.read(block.at(layer.steps - 1));
  for (int step = layer.steps; step-- > 0;) {
    typename Cell::Values values = next;
    Wide<T>* const vector = block.vector(step % 2 * Cell::count);
    if (works) cell.gates_of(block, block.at(step), vector, values, dh, carried);
    __syncthreads();
    if (works && step > 0) next = cell.read(block.at(step - 1));  // arrives during the sums
    dh = cell.before(block, block.at(step), vector, values);
  }
  if (!works) return;
  write_if(dh0, block.at(0).state, dh);
  cell.finish(block.at(0), carried);
}

/// Launches kernel<rows, kept>(cell, layer, first, last) of the plan.
template <class T, class Cell, bool gradient>
void launch_persistent(Stream& stream, const Recurrent& recurrent, const PersistentPlan& plan, const Cell& cell, const T* first, T* last) {
  PersistentLayer<T> layer{};
  layer.weights = recurrent.call.input<T>(recurrent.first + 2);
  layer.steps = static_cast<int>(recurrent.steps);
  layer.batch = recurrent.batch;
  layer.groups = plan.groups;
  layer.units = static_cast<int>(recurrent.units);
  layer.directions = static_cast<int>(recurrent.directions);
  layer.iterations = plan.iterations;
  layer.line = plan.line;
  layer.vectors_at = plan.vectors_at;
  layer.reverse = recurrent.reverse(0);
  const Geometry geometry{recurrent.directions * plan.groups, plan.threads, plan.shared_bytes};
  const auto run = [&]<int rows, int kept>() {
    if constexpr (gradient) {
      launch(stream, geometry, all_steps_back<T, Cell, rows, kept>, cell, layer, first, last);
    } else {
      launch(stream, geometry, all_steps<T, Cell, rows, kept>, cell, layer, first, last);
    }
  };
  if (plan.kept != 0) {
    run.template operator()<2, kept_iterations>();
  } else if (plan.rows == 2) {
    run.template operator()<2, 0>();
  } else if (plan.rows == 4) {
    run.template operator()<4, 0>();
  } else {
    run.template operator()<8, 0>();
  }
}

}  // namespace tenon::cuda
