// SPDX-License-Identifier: Apache-2.0
// wide_call.cuh - runs a call on f16 or bf16 as one on f32, for ops whose intermediate results need the range of f32 as well as its
// precision. The SDK does the same for types without a kernel.
#pragma once

#include <array>

#include "elementwise/map.cuh"
#include "gemm/scratch_arena.h"
#include "kernel/wide.cuh"

namespace tenon::cuda {

template <class T>
struct Widen {
  __device__ float operator()(T x) const { return widen(x); }
};
template <class T>
struct Narrow {
  __device__ T operator()(float x) const { return narrow<T>(x); }
};

/// f32 copies of the operands of a call on T (f16 or bf16), in scratch memory.
class WideCall {
 public:
  WideCall(const sdk::Call& narrow, ScratchArena& arena) : call(narrow), narrow_(narrow) {
    for (std::uint32_t i = 0; i < narrow.input_count; ++i) inputs_[i] = wide_operand(narrow.inputs[i], arena);
    for (std::uint32_t i = 0; i < narrow.output_count; ++i) outputs_[i] = wide_operand(narrow.outputs[i], arena);
    call.inputs = inputs_.data();
    call.outputs = outputs_.data();
  }
  WideCall(const WideCall&) = delete;
  WideCall& operator=(const WideCall&) = delete;

  sdk::Call call;  ///< on the copies; the caller sets its scratch memory

  template <class T>
  void read_inputs() const {
    for (std::uint32_t i = 0; i < call.input_count; ++i) convert<float, T>(narrow_.inputs[i], call.inputs[i], Widen<T>{});
  }
  template <class T>
  void write_outputs() const {
    for (std::uint32_t i = 0; i < call.output_count; ++i) convert<T, float>(call.outputs[i], narrow_.outputs[i], Narrow<T>{});
  }

 private:
  const sdk::Call& narrow_;
  std::array<sdk::Operand, 16> inputs_, outputs_;

  static sdk::Operand wide_operand(const sdk::Operand& x, ScratchArena& arena) {
    if (!x.present()) return x;
    sdk::Operand wide = x;
    wide.dtype = TENON_DTYPE_F32;
    wide.data = arena.allocate<float>(x.count);
    return wide;
  }
  /// to = function(from), if they are present.
  template <class U, class T, class Function>
  void convert(const sdk::Operand& from, const sdk::Operand& to, const Function& function) const {
    if (!from.present() || from.count == 0) return;
    sdk::Call one = narrow_;
    one.inputs = &from;
    one.outputs = &to;
    map<U, T>(one, function);
  }
};

}  // namespace tenon::cuda
