// SPDX-License-Identifier: Apache-2.0
// elementwise_program.cu - the kernel that interprets a program: each thread takes a few neighbouring elements through all instructions, so
// that intermediate results never leave the thread. All threads take the same branch at each instruction.
//
// The time of an instruction that is not its arithmetic (the branches to its function and to its operands) is shared by the elements of a
// thread, so there are as many as registers allow. The operands of short programs are read before the first instruction, without waiting
// for one another.
#include "elementwise/elementwise_program.h"

#include <algorithm>
#include <cstring>

#include "elementwise/compiled_program.h"
#include "kernel/functions.cuh"
#include "kernel/half.cuh"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

using program::CompiledProgram;
using program::Instruction;
using program::Source;

/// An operand of the group: element (row, column) at row * row_stride + column * column_stride.
struct Place {
  void* address;
  std::int64_t row_stride, column_stride;
  tenon_dtype dtype;
  bool packs;  ///< V elements of a row are contiguous and aligned for one access
};

/// Passed to the kernel by value: kernel parameters are limited to 4 KB.
struct Code {
  std::int64_t rows, columns;
  std::uint32_t length, input_count;
  int slot_count;
  Place inputs[program::max_inputs];
  Place outputs[program::max_members];
  Instruction instructions[program::max_members];
};

static_assert(sizeof(Code) < 4096);

constexpr int max_pack_bytes = 16;  ///< of one access

template <class C, class T>
__device__ C widened(T x) {
  if constexpr (std::is_same_v<T, sdk::Half> || std::is_same_v<T, sdk::BFloat16>) {
    return static_cast<C>(to_float(x));
  } else {
    return static_cast<C>(x);
  }
}

template <class T, class C>
__device__ T narrowed(C x) {
  if constexpr (std::is_same_v<T, sdk::Half> || std::is_same_v<T, sdk::BFloat16>) {
    return from_float<T>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, bool>) {
    return x != 0;
  } else {
    return static_cast<T>(x);
  }
}

/// V elements of an operand as they are in memory, for programs that compute in C.
template <class C, int V>
struct Raw {
  std::uint32_t words[V * sizeof(C) / 4];
};

/// Reads V elements, of which `count` exist. Nothing here uses what it reads, so that the next read need not wait.
template <class T, class C, int V>
__device__ void read_as(const Place& place, std::int64_t row, std::int64_t column, int count, Raw<C, V>& out) {
  const T* x = static_cast<const T*>(place.address) + row * place.row_stride + column * place.column_stride;
  constexpr int bytes = V * static_cast<int>(sizeof(T));
  if constexpr (bytes >= 4) {
    if (place.packs && count == V) {
      constexpr int words = std::min(bytes, max_pack_bytes) / 4;
#pragma unroll
      for (int first = 0; first < bytes / 4; first += words) {
        const auto pack = pack_at<words>(static_cast<const std::uint32_t*>(static_cast<const void*>(x)) + first);
#pragma unroll
        for (int j = 0; j < words; ++j) out.words[first + j] = pack.at[j];
      }
      return;
    }
  }
  T elements[V];
#pragma unroll
  for (int j = 0; j < V; ++j) elements[j] = j < count ? x[j * place.column_stride] : T{};
  std::memcpy(out.words, elements, sizeof elements);
}
template <class T, class C, int V>
__device__ void widen_as(const Raw<C, V>& raw, C (&out)[V]) {
  T elements[V];
  std::memcpy(elements, raw.words, sizeof elements);
#pragma unroll
  for (int j = 0; j < V; ++j) out[j] = widened<C>(elements[j]);
}

/// function<T>() for the type of an operand of a program that computes in C.
template <class C, class Function>
__device__ void with_type_of(const Place& place, const Function& function) {
  if (place.dtype == TENON_DTYPE_BOOL) return function.template operator()<bool>();
  if constexpr (sizeof(C) == 4) {
    if (place.dtype == TENON_DTYPE_F16) return function.template operator()<sdk::Half>();
    if (place.dtype == TENON_DTYPE_BF16) return function.template operator()<sdk::BFloat16>();
  }
  function.template operator()<C>();
}

template <class C, int V>
__device__ void read(const Place& place, std::int64_t row, std::int64_t column, int count, Raw<C, V>& out) {
  with_type_of<C>(place, [&]<class T>() { read_as<T>(place, row, column, count, out); });
}
template <class C, int V>
__device__ void widen(const Place& place, const Raw<C, V>& raw, C (&out)[V]) {
  with_type_of<C>(place, [&]<class T>() { widen_as<T>(raw, out); });
}

template <class T, class C, int V>
__device__ void store_as(const Place& place, std::int64_t row, std::int64_t column, int count, const C (&r)[V]) {
  T* y = static_cast<T*>(place.address) + row * place.row_stride + column * place.column_stride;
  if (place.packs && count == V) {
    constexpr int size = std::min(V, max_pack_bytes / static_cast<int>(sizeof(T)));
#pragma unroll
    for (int first = 0; first < V; first += size) {
      Pack<T, size> pack;
#pragma unroll
      for (int j = 0; j < size; ++j) pack.at[j] = narrowed<T>(r[first + j]);
      store_pack<size>(y + first, pack);
    }
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if (j < count) y[j * place.column_stride] = narrowed<T>(r[j]);
    }
  }
}

template <class C, int V>
__device__ void store(const Place& place, std::int64_t row, std::int64_t column, int count, const C (&r)[V]) {
  with_type_of<C>(place, [&]<class T>() { store_as<T>(place, row, column, count, r); });
}

template <class C, int V, class Function>
__device__ void each(const Function& f, const C (&a)[V], C (&r)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) r[j] = static_cast<C>(f(a[j]));
}
template <class C, int V, class Function>
__device__ void each(const Function& f, const C (&a)[V], const C (&b)[V], C (&r)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) r[j] = static_cast<C>(f(a[j], b[j]));
}

/// r = the instruction's function of a, b and what fetch_third(out) gives; r may be a or b. The third operand is fetched where it is
/// needed: registers are few.
template <bool heavy, class C, int V, class FetchThird>
__device__ void compute(const Instruction& instruction, const C (&a)[V], const C (&b)[V], const FetchThird& fetch_third, C (&r)[V]) {
  namespace fn = functions;
  const C p = static_cast<C>(instruction.p), q = static_cast<C>(instruction.q);
  switch (instruction.code) {
#define TENON_ONE(Name) \
  case TENON_OP_##Name: \
    return each(fn::Name{}, a, r);
#define TENON_TWO(Name) \
  case TENON_OP_##Name: \
    return each(fn::Name{}, a, b, r);
    TENON_PROGRAM_PAIRS(TENON_TWO)
    TENON_PROGRAM_LIGHT(TENON_ONE)
    case TENON_OP_Clip:
      return each(fn::Clip<C>{p, q}, a, r);
    case TENON_OP_LeakyRelu:
      return each(fn::LeakyRelu<C>{p}, a, r);
    case TENON_OP_Where: {
      unsigned first = 0;  // bit j: element j is that of b
#pragma unroll
      for (int j = 0; j < V; ++j) first |= a[j] != 0 ? 1u << j : 0u;
      C c[V] = {};
      fetch_third(c);
#pragma unroll
      for (int j = 0; j < V; ++j) r[j] = (first >> j & 1u) != 0 ? b[j] : c[j];
      return;
    }
    case program::code_to_f16:
#pragma unroll
      for (int j = 0; j < V; ++j) r[j] = widened<C>(narrowed<sdk::Half>(a[j]));
      return;
    case program::code_to_bf16:
#pragma unroll
      for (int j = 0; j < V; ++j) r[j] = widened<C>(narrowed<sdk::BFloat16>(a[j]));
      return;
    case program::code_to_bool:
#pragma unroll
      for (int j = 0; j < V; ++j) r[j] = static_cast<C>(a[j] != 0);
      return;
    case program::code_copy:
#pragma unroll
      for (int j = 0; j < V; ++j) r[j] = a[j];
      return;
    default:
      break;
  }
  if constexpr (heavy) {
    switch (instruction.code) {
      TENON_TWO(Pow)
      TENON_PROGRAM_HEAVY(TENON_ONE)
      case TENON_OP_Elu:
        return each(fn::Elu<C>{p}, a, r);
      case program::code_gelu_tanh:
        return each(fn::GeluTanh{}, a, r);
      default:
        break;
    }
  }
#undef TENON_ONE
#undef TENON_TWO
}

template <class C, int V>
__device__ void copy(const C (&from)[V], C (&to)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) to[j] = from[j];
}

/// Threads of a block, whose slots in shared memory take 32 KB.
template <class C>
inline constexpr int threads_of = sizeof(C) == 4 ? 256 : 128;
/// The results of V elements that a thread can keep for later instructions: in shared memory, because their index is not a constant.
template <int V>
inline constexpr int slots_of = static_cast<int>(program::max_members) / V;

/// The held inputs that stay in registers; the others take the last slots.
template <class C, int V>
inline constexpr int held_in_registers = V * sizeof(C) <= 16 ? static_cast<int>(program::max_held) : 1;

/// The slots of a block. A thread accesses only its own, 16 bytes at a time, so that a warp accesses contiguous memory.
template <class C, int V>
class Slots {
 public:
  static constexpr int width = std::min(V, pack_width<C>), packs = V / width;
  using Memory = Pack<C, width>[slots_of<V> * packs * threads_of<C>];

  __device__ explicit Slots(Memory& memory) : own_(memory + threadIdx.x) {}
  __device__ void read(int slot, C (&out)[V]) const {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const Pack<C, width> pack = own_[(slot * packs + p) * threads_of<C>];
#pragma unroll
      for (int j = 0; j < width; ++j) out[p * width + j] = pack.at[j];
    }
  }
  __device__ void write(int slot, const C (&x)[V]) const {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      Pack<C, width> pack;
#pragma unroll
      for (int j = 0; j < width; ++j) pack.at[j] = x[p * width + j];
      own_[(slot * packs + p) * threads_of<C>] = pack;
    }
  }

 private:
  Pack<C, width>* own_;
};

/// Blocks on a multiprocessor. With 3 of 256 threads some registers were spilled; on an H200 that was still 7 to 14 % faster than with 2,
/// whose loads in flight do not fill the bandwidth. f64 has 4 blocks of 128 threads, as many as 2 of 256.
template <class C>
[[maybe_unused]] inline constexpr int resident_blocks = sizeof(C) == 4 ? 3 : 4;

/// V: the elements that a thread processes at a time. `holds`: the inputs are read before the first instruction.
template <class C, bool heavy, int V, bool holds>
__global__ void __launch_bounds__(threads_of<C>, resident_blocks<C>) run_program(const Code code) {
  __shared__ typename Slots<C, V>::Memory memory;
  const Slots<C, V> slots(memory);
  const std::int64_t count = code.rows * code.columns;
  const std::int64_t packs = (count + V - 1) / V;
  for (std::int64_t pack = thread_index(); pack < packs; pack += thread_count()) {
    const std::int64_t first = pack * V;
    const std::int64_t row = code.rows == 1 ? 0 : quotient(first, code.columns);
    const std::int64_t column = first - row * code.columns;
    const int here = count - first < V ? static_cast<int>(count - first) : V;
    // Not arrays of arrays: an index, even of an unrolled loop, would put them in memory.
    C in0[V], in1[V], in2[V];
    constexpr int in_registers = held_in_registers<C, V>;
    const auto slot_of_input = [](std::uint32_t i) { return slots_of<V> - 1 + in_registers - static_cast<int>(i); };
    if constexpr (holds) {
      Raw<C, V> raw0, raw1, raw2;
      const auto begin = [&](std::uint32_t i, Raw<C, V>& raw) {
        if (i < code.input_count) read(code.inputs[i], row, column, here, raw);
      };
      const auto end = [&](std::uint32_t i, const Raw<C, V>& raw, C(&in)[V]) {
        if (i >= code.input_count) return;
        widen(code.inputs[i], raw, in);
        if (static_cast<int>(i) >= in_registers) slots.write(slot_of_input(i), in);
      };
      begin(0, raw0), begin(1, raw1), begin(2, raw2);
      end(0, raw0, in0), end(1, raw1, in1), end(2, raw2, in2);
    }
    C last[V] = {};
    const auto fetch = [&](const Source& source, C(&out)[V]) {
      switch (source.kind) {
        case Source::Kind::last:
          return copy(last, out);
        case Source::Kind::slot:
          return slots.read(source.index, out);
        case Source::Kind::input:
          if constexpr (holds) {
            if (source.index == 0) return copy(in0, out);
            if constexpr (in_registers == 1) return slots.read(slot_of_input(source.index), out);
            return source.index == 1 ? copy(in1, out) : copy(in2, out);
          } else {
            Raw<C, V> raw;
            read(code.inputs[source.index], row, column, here, raw);
            widen(code.inputs[source.index], raw, out);
            return;
          }
        default:
          break;
      }
    };
    for (std::uint32_t i = 0; i < code.length; ++i) {
      const Instruction& instruction = code.instructions[i];
      C a[V] = {}, b[V] = {};
      fetch(instruction.sources[0], a);
      fetch(instruction.sources[1], b);
      compute<heavy>(
          instruction, a, b, [&](C(&c)[V]) { fetch(instruction.sources[2], c); }, last);
      if (instruction.slot >= 0) slots.write(instruction.slot, last);
      if (instruction.output >= 0) store(code.outputs[instruction.output], row, column, here, last);
    }
  }
}

/// Launches the kernel for V elements a thread if whole packs of them fit the rows, and its slots the program; else returns false.
template <class C, bool heavy, int V, bool holds>
bool start_packs(Stream& stream, Code& code) {
  if (code.rows != 1 && code.columns % V != 0) return false;  // a pack would cross rows
  const int of_inputs = holds ? std::max(static_cast<int>(code.input_count) - held_in_registers<C, V>, 0) : 0;
  if (code.slot_count + of_inputs > slots_of<V>) return false;
  const auto settle = [&](Place& place) {
    const std::size_t bytes = static_cast<std::size_t>(std::min<std::int64_t>(sdk::size_of(place.dtype) * V, max_pack_bytes));
    place.packs = V > 1 && place.column_stride == 1 && is_aligned(bytes, place.address) && (code.rows == 1 || place.row_stride % V == 0);
  };
  std::for_each(code.inputs, code.inputs + code.input_count, settle);
  for (Place& place : code.outputs) {
    if (place.address != nullptr) settle(place);
  }
  launch(stream, one_thread_each((code.rows * code.columns + V - 1) / V, threads_of<C>), run_program<C, heavy, V, holds>, code);
  return true;
}

template <class C, bool heavy, bool holds>
void start(Stream& stream, Code& code) {
  if constexpr (sizeof(C) == 4) {
    if (start_packs<C, heavy, 8, holds>(stream, code)) return;
  }
  if (start_packs<C, heavy, 4, holds>(stream, code)) return;
  start_packs<C, heavy, 1, holds>(stream, code);
}
template <class C, bool heavy>
void start(const sdk::Call& call, Code& code) {
  code.input_count <= program::max_held ? start<C, heavy, true>(stream_of(call), code) : start<C, heavy, false>(stream_of(call), code);
}

/// A program without its addresses.
struct Prepared {
  Code code{};
  bool is_f64 = false, is_heavy = false;
  CompiledProgram compiled;
};

std::shared_ptr<const void> prepare(const sdk::ElementwiseProgram& group) {
  auto prepared = std::make_shared<Prepared>();
  Code& code = prepared->code;
  code.rows = group.rows;
  code.columns = group.columns;
  code.input_count = group.input_count;
  for (const Instruction& instruction : program::translate(group)) {
    code.instructions[code.length++] = instruction;
    code.slot_count = std::max(code.slot_count, instruction.slot + 1);
    prepared->is_heavy = prepared->is_heavy || program::is_heavy(instruction.code);
  }
  for (const sdk::ElementwisePlace& place : group.places) prepared->is_f64 = prepared->is_f64 || place.dtype == TENON_DTYPE_F64;
  const auto place_of = [](const sdk::ElementwisePlace& place) {
    return Place{nullptr, place.row_stride, place.column_stride, place.dtype, false};
  };
  for (std::uint32_t i = 0; i < group.input_count; ++i) code.inputs[i] = place_of(group.places[i]);
  for (std::uint32_t i = 0; i < group.output_count; ++i) code.outputs[i] = place_of(group.places[group.input_count + i]);
  if (!prepared->is_f64) prepared->compiled.prepare(group);
  return prepared;
}

void run_group(const sdk::Call& call) {
  const auto& prepared = *static_cast<const Prepared*>(sdk::program_of(call).prepared.get());
  if (prepared.compiled.run(call)) return;
  Code code = prepared.code;
  for (std::uint32_t i = 0; i < call.input_count; ++i) code.inputs[i].address = call.inputs[i].data;
  for (std::uint32_t i = 0; i < call.output_count; ++i) code.outputs[i].address = call.outputs[i].data;
  if (prepared.is_f64) {
    prepared.is_heavy ? start<double, true>(call, code) : start<double, false>(call, code);
  } else {
    prepared.is_heavy ? start<float, true>(call, code) : start<float, false>(call, code);
  }
}

constexpr sdk::Kernel group_kernel = [] {
  sdk::Kernel kernel;
  kernel.functions[TENON_DTYPE_NONE] = run_group;
  kernel.traits.strided = true;
  kernel.traits.in_place = true;
  return kernel;
}();

constexpr sdk::ElementwiseFusion fusion{
    {TENON_OP_NONE, 0, 0, &group_kernel}, program::classes, program::max_members, program::max_inputs, prepare};

}  // namespace

const sdk::ElementwiseFusion* Device::elementwise_fusion() const {
  return &fusion;
}

}  // namespace tenon::cuda
