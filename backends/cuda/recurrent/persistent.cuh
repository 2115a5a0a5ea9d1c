// SPDX-License-Identifier: Apache-2.0
// persistent.cuh - the kernels that run all time steps of a layer, or of its gradient, by one launch (ADR 88). What a cell computes is in
// ops/, as for the kernels of single steps.
#pragma once

#include "device/block_counters.h"
#include "kernel/dynamic_shared.cuh"
#include "kernel/group_barrier.cuh"
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
  using W = Wide<T>;
  const T* weights;  ///< (D, G H, H)
  std::int64_t batch;
  std::int64_t groups;  ///< of blocks, in a direction
  int members, block_units;
  W* exchanged;            ///< the vectors of each group, as in shared memory, by which its members exchange them
  int exchanged_of_group;  ///< elements of that
  unsigned* counters;      ///< one for each group of several members
  int steps, units, directions, iterations;
  int line;                ///< elements of a row of a vector
  std::size_t vectors_at;  ///< bytes of shared memory before the vectors
  bool reverse;            ///< the first direction reads x backwards, as the second always does
};

/// A block of such a kernel: `rows` rows of the batch in one direction, and all units or, as a member of a group, some of them. Thread
/// unit * rows + row
///
///   sums     for all rows of the block and the units of its tile every (rows x tile)-th chunk of the sums, with weights that only it
///            reads: a chunk at a time, next to those of the other threads of its warp, so that there are no bank conflicts
///   adds up  these sums with the other threads of the tile, by shuffles after which it has those of its unit and row, in a fixed order
///   computes the cell of this unit and row
///
/// Sums and states are in f32, in f64 for f64. Vectors, of states or of gradients of gates, have a line for each row, and a chunk is 16
/// bytes of that: 4 elements, 2 in f64. What belongs to no unit is 0, in weights and in vectors. Lines are padded so that the writes of a
/// warp have no bank conflicts (persistent.cpp), and are whole chunks.
///
/// The weights of the first `kept` iterations are in registers, the others in shared memory. Members of a group write their units of a
/// vector to global memory, and exchange() copies those of all units from there.
template <class T, int gates, int rows, int tile, int kept, bool grouped, bool gradient>
class PersistentBlock {
 public:
  using W = Wide<T>;

  /// Reads the weights; with `vectors` vectors of 0.
  __device__ PersistentBlock(const PersistentLayer<T>& layer, int vectors) : layer_(layer) {
    const int thread = static_cast<int>(threadIdx.x);
    const int member = grouped ? static_cast<int>(blockIdx.x) % layer.members : 0, first = member * layer.block_units;
    group_ = grouped ? static_cast<int>(blockIdx.x) / layer.members : static_cast<int>(blockIdx.x);
    unit_ = first + thread / rows;
    units_end_ = grouped ? min(first + layer.block_units, layer.units) : layer.units;
    part_ = thread % parts;
    direction_ = group_ < layer.groups ? 0 : 1;
    row_ = (group_ - direction_ * layer.groups) * rows + row_of_block();
    weights_ = reinterpret_cast<Weights*>(dynamic_shared()) + thread;
    states_ = reinterpret_cast<W*>(dynamic_shared() + layer.vectors_at);
    read_weights();
    for (int i = thread; i < vectors * rows * layer.line; i += static_cast<int>(blockDim.x)) states_[i] = 0;
    if (grouped && member == 0) write_padding();
    __syncthreads();
  }

  /// True if this thread has a unit of a row; others take part in sums only.
  __device__ bool works() const { return unit_ < units_end_ && row_ < layer_.batch; }
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

  /// Vector i. Another thread reads what is written after exchange().
  __device__ W* vector(int i) const { return vector_after(states_, i); }
  __device__ W* vector_after(W* vector, int i) const { return vector + i * rows * layer_.line; }
  __device__ void write(W* vector, W value) const {
    const int place = row_of_block() * layer_.line + unit_;
    if constexpr (grouped) {
      exchanged(vector)[place] = value;
    } else {
      vector[place] = value;
    }
  }
  /// After it, all threads read what all of them, those of other members too, have written to the n vectors from `vector` on. All threads.
  /// They write these again only after the next exchange, because until then another member may still copy them.
  __device__ void exchange(W* vector, int n) {
    if constexpr (grouped) {
      wait_for_group(layer_.counters + group_, static_cast<unsigned>(layer_.members), arrivals_);
      copy_exchanged(vector, n * rows * (layer_.line / width));
    }
    __syncthreads();
  }
  /// All threads, after the last exchange.
  __device__ void leave() {
    if constexpr (grouped) leave_group(layer_.counters + group_, static_cast<unsigned>(layer_.members), arrivals_);
  }

  /// The products of the state in `vector` with the weights of the n gates from `first` on, for this thread's unit and row. All threads.
  template <int first, int n>
  __device__ void multiply(const W* vector, W (&out)[n]) const {
    static_assert(!gradient);
    static_assert(tile == 1);
    W sums[rows][n] = {};
    each_iteration([&](int i, const auto& weights_of) {
      Weights w[n];
#pragma unroll
      for (int g = 0; g < n; ++g) w[g] = weights_of(first + g, 0);
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
    W sums[parts][1] = {}, out[1];
    each_iteration([&](int i, const auto& weights_of) {
#pragma unroll
      for (int g = 0; g < n; ++g) {
        Weights w[tile];
#pragma unroll
        for (int t = 0; t < tile; ++t) w[t] = weights_of(first + g, t);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          const States d = chunk_of(vector_after(vector, g), r, i);
#pragma unroll
          for (int t = 0; t < tile; ++t) {
#pragma unroll
            for (int e = 0; e < width; ++e) sums[t * rows + r][0] += d.at[e] * w[t].at[e];
          }
        }
      }
    });
    add_up(sums, out);
    return out[0];
  }

 private:
  static constexpr int width = pack_width<W>;  ///< of a chunk
  static constexpr int parts = rows * tile;    ///< threads that share the sums of a tile
  using Weights = Pack<T, width>;
  using States = Pack<W, width>;

  /// Where the members of the group write their part of a vector.
  __device__ W* exchanged(const W* vector) const {
    return layer_.exchanged + std::int64_t{group_} * layer_.exchanged_of_group + (vector - states_);
  }
  /// Writes 0 for what belongs to no unit or row, for all members: before their first exchange, which they wait for.
  __device__ void write_padding() const {
    const std::int64_t first_row = row_ - row_of_block();
    W* const out = exchanged(states_);
    for (int i = static_cast<int>(threadIdx.x); i < layer_.exchanged_of_group; i += static_cast<int>(blockDim.x)) {
      const int line = i / layer_.line;
      if (i - line * layer_.line >= layer_.units || first_row + line % rows >= layer_.batch) out[i] = 0;
    }
  }
  /// Copies so many chunks of what the members have written from `vector` on. The loads of several chunks are in flight at once.
  __device__ void copy_exchanged(W* vector, int chunks) const {
    constexpr int at_once = 4;
    const W* const from = exchanged(vector);
    const int threads = static_cast<int>(blockDim.x);
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < chunks; first += at_once * threads) {
      States read[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (first + i * threads < chunks) read[i] = pack_at<width>(from + (first + i * threads) * width);
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (first + i * threads < chunks) pack_at<width>(vector + (first + i * threads) * width) = read[i];
      }
    }
  }
  __device__ int row_of_block() const {
    return part_ % rows;
  }
  /// Of unit t of the tile, in shared memory: not those of the first iterations.
  __device__ Weights& weights(int iteration, int gate, int t) const {
    return weights_[static_cast<std::size_t>(((iteration - kept) * gates + gate) * tile + t) * blockDim.x];
  }
  /// body(iteration, weights of a gate of a unit of the tile in it)
  template <class Body>
  __device__ void each_iteration(const Body& body) const {
#pragma unroll
    for (int i = 0; i < kept; ++i) body(i, [&](int gate, int t) { return registers_[i][gate][t]; });
#pragma unroll 1
    for (int i = kept; i < layer_.iterations; ++i) body(i, [&](int gate, int t) { return weights(i, gate, t); });
  }
  /// The elements of row r that the weights of an iteration are multiplied by.
  __device__ States chunk_of(const W* vector, int r, int iteration) const {
    return pack_at<width>(vector + (r * (layer_.line / width) + iteration * parts + part_) * width);
  }
  /// Each thread reads what only it uses, all gates of a chunk at once. Once per launch, from the L2 cache for all blocks but the first.
  __device__ void read_weights() {
#pragma unroll
    for (int i = 0; i < kept; ++i) read_iteration(i, registers_[i]);
#pragma unroll 1
    for (int i = kept; i < layer_.iterations; ++i) {
      Weights w[gates][tile];
      read_iteration(i, w);
#pragma unroll
      for (int g = 0; g < gates; ++g) {
#pragma unroll
        for (int t = 0; t < tile; ++t) weights(i, g, t) = w[g][t];
      }
    }
  }
  __device__ void read_iteration(int i, Weights (&out)[gates][tile]) const {
    const int units = layer_.units;
    const T* const of_direction = layer_.weights + std::int64_t{direction_} * gates * units * units;
#pragma unroll
    for (int g = 0; g < gates; ++g) {
#pragma unroll
      for (int t = 0; t < tile; ++t) {
        const int unit = unit_ - part_ / rows + t;
#pragma unroll
        for (int e = 0; e < width; ++e) {
          const int k = (i * parts + part_) * width + e;
          const std::int64_t place = gradient ? std::int64_t{g * units + k} * units + unit : std::int64_t{g * units + unit} * units + k;
          out[g][t].at[e] = unit < units_end_ && k < units ? of_direction[place] : T{};
        }
      }
    }
  }
  /// Adds up the sums of the threads of a tile, for each of its units those of all rows: at each level a thread keeps its half of them and
  /// gives the others away.
  template <int n>
  __device__ void add_up(W (&sums)[parts][n], W (&out)[n]) const {
    add_up_halves<parts / 2>(sums);
#pragma unroll
    for (int g = 0; g < n; ++g) out[g] = sums[0][g];
  }
  template <int half, int n>
  __device__ void add_up_halves(W (&sums)[parts][n]) const {
    const bool upper = (part_ & half) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
#pragma unroll
      for (int g = 0; g < n; ++g) {
        const W low = sums[i][g], high = sums[i + half][g];
        sums[i][g] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, half);
      }
    }
    if constexpr (half > 1) add_up_halves<half / 2>(sums);
  }

  const PersistentLayer<T>& layer_;
  int unit_, part_, direction_;
  int units_end_;          ///< after those of the block
  int group_;              ///< of both directions
  unsigned arrivals_ = 0;  ///< of the members at their barrier
  std::int64_t row_;       ///< of the batch, of this thread after add_up
  Weights registers_[kept == 0 ? 1 : kept][gates][tile];
  Weights* weights_;  ///< of this thread; one of each gate of an iteration, then the next iteration's
  W* states_;
};

/// All steps of a layer. Cell has `count`, of its gates, `extra_vectors`, which it needs besides the states before and after a step,
/// Carried with start() and finish(), and all_steps(), which returns the state after a step.
template <class T, class Cell, int rows, int tile, int kept, bool grouped>
__global__ void __launch_bounds__(max_persistent_threads(kept, grouped), 1)
    all_steps(Cell cell, PersistentLayer<T> layer, const T* h0, T* y_h) {
  PersistentBlock<T, Cell::count, rows, tile, kept, grouped, false> block(layer, 2 + Cell::extra_vectors);
  const bool works = block.works();
  Wide<T> h = works ? read_or_zero(h0, block.at(0).state) : Wide<T>(0);
  typename Cell::Carried carried = works ? cell.start(block.at(0)) : typename Cell::Carried{};
  if (works) block.write(block.vector(0), h);
  block.exchange(block.vector(0), 1);
  for (int step = 0; step < layer.steps; ++step) {
    const int before = step % 2;
    h = cell.all_steps(block, block.at(step), block.vector(before), h, carried);
    if (works) block.write(block.vector(1 - before), h);
    // What is written above was read a step ago, before this barrier of that step.
    block.exchange(block.vector(1 - before), 1);
  }
  block.leave();
  if (!works) return;
  write_if(y_h, block.at(0).state, h);
  cell.finish(block.at(0), carried);
}

/// All steps of the gradient of a layer, from the last one to the first. Cell has `count`, of its gates, Carried with start() and
/// finish(), Values, what it reads at a step, with read(); gates_of(), which writes the gradients of gates to the block's vectors from
/// `vector` on; and before(), which exchanges these and returns the gradient of the state before a step.
template <class T, class Cell, int rows, int tile, int kept, bool grouped>
__global__ void __launch_bounds__(max_persistent_threads(kept, grouped), 1)
    all_steps_back(Cell cell, PersistentLayer<T> layer, const T* dy_h, T* dh0) {
  PersistentBlock<T, Cell::count, rows, tile, kept, grouped, true> block(layer, 2 * Cell::count);
  const bool works = block.works();
  Wide<T> dh = works ? read_or_zero(dy_h, block.at(0).state) : Wide<T>(0);
  typename Cell::Carried carried = works ? cell.start(block.at(0)) : typename Cell::Carried{};
  typename Cell::Values next{};
  if (works) next = cell.read(block.at(layer.steps - 1));
  for (int step = layer.steps; step-- > 0;) {
    typename Cell::Values values = next;
    Wide<T>* const vector = block.vector(step % 2 * Cell::count);
    if (works) cell.gates_of(block, block.at(step), vector, values, dh, carried);
    if (works && step > 0) next = cell.read(block.at(step - 1));  // arrives during the exchange and the sums
    dh = cell.before(block, block.at(step), vector, values);
  }
  block.leave();
  if (!works) return;
  write_if(dh0, block.at(0).state, dh);
  cell.finish(block.at(0), carried);
}

/// Launches kernel<rows, tile, kept, grouped>(cell, layer, first, last) of the plan, with memory for its PersistentPlan::exchanged
/// elements.
template <class T, class Cell, bool gradient>
void launch_persistent(Stream& stream, const Recurrent& recurrent, const PersistentPlan& plan, Wide<T>* exchanged, const Cell& cell,
                       const T* first, T* last) {
  PersistentLayer<T> layer{};
  layer.weights = recurrent.call.input<T>(recurrent.first + 2);
  layer.steps = static_cast<int>(recurrent.steps);
  layer.batch = recurrent.batch;
  layer.groups = plan.groups;
  layer.members = plan.members;
  layer.block_units = plan.block_units;
  layer.exchanged = exchanged;
  layer.exchanged_of_group = static_cast<int>(plan.exchanged / (recurrent.directions * plan.groups));
  // There are enough: groups have at least two blocks, all of which run at once.
  layer.counters = plan.members > 1 ? block_counters(stream) : nullptr;
  layer.units = static_cast<int>(recurrent.units);
  layer.directions = static_cast<int>(recurrent.directions);
  layer.iterations = plan.iterations;
  layer.line = plan.line;
  layer.vectors_at = plan.vectors_at;
  layer.reverse = recurrent.reverse(0);
  const Geometry geometry{recurrent.directions * plan.groups * plan.members, plan.threads, plan.shared_bytes};
  const auto run = [&]<int rows, int tile, int kept, bool grouped>() {
    const auto kernel = [] {
      if constexpr (gradient) {
        return all_steps_back<T, Cell, rows, tile, kept, grouped>;
      } else {
        return all_steps<T, Cell, rows, tile, kept, grouped>;
      }
    }();
    if constexpr (grouped) {
      launch_cooperative(stream, geometry, kernel, cell, layer, first, last);
    } else {
      launch(stream, geometry, kernel, cell, layer, first, last);
    }
  };
  if (plan.members > 1) {
    run.template operator()<group_rows, gradient ? group_gradient_tile : 1, 0, true>();
  } else if (plan.kept != 0) {
    run.template operator()<2, 1, kept_iterations, false>();
  } else if (plan.rows == 2) {
    run.template operator()<2, 1, 0, false>();
  } else if (plan.rows == 4) {
    run.template operator()<4, 1, 0, false>();
  } else {
    run.template operator()<8, 1, 0, false>();
  }
}

}  // namespace tenon::cuda
