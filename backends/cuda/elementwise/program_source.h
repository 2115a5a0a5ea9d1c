// SPDX-License-Identifier: Apache-2.0
// program_source.h - CUDA source of the kernel of one elementwise program, for NVRTC. Host-side logic.
//
// The kernel has no interpretation left: its instructions are expressions over registers. Its time is that of its bytes: a program of 3
// inputs and one output in bf16 moves 8 bytes an element, at 4.1 TB/s (H200) 0.2 ms for 1e8 elements.
#pragma once

#include <string>
#include <vector>

#include "elementwise/elementwise_program.h"
#include "libraries/nvrtc.h"

namespace tenon::cuda::program {

/// How an operand lies in memory, as far as the source depends on it.
struct OperandForm {
  tenon_dtype dtype;
  /// Of neighbouring elements of a row. dense: their addresses are aligned to a pack. same: all have one address.
  enum class Columns { dense, same, strided } columns;
};

/// The kernel of a program that computes in f32.
struct KernelSource {
  std::string text;
  /// Elements of a pack, which a thread loads at once.
  std::uint32_t pack = 1;
  /// Packs that a thread processes between two jumps.
  std::uint32_t unroll = 1;
};

/// The name of the kernel, whose parameters are (int64 rows, int64 columns, KernelOperand inputs..., KernelOperand outputs...).
inline constexpr const char* kernel_name = "elementwise_program";
struct KernelOperand {
  void* address;
  std::int64_t row_stride, column_stride;  ///< in elements
};

/// All inputs are held: `instructions` are those of translate(group, max_inputs). With several rows, `columns` must be a multiple of the
/// pack.
KernelSource source_of(const std::vector<Instruction>& instructions, const std::vector<OperandForm>& inputs,
                       const std::vector<OperandForm>& outputs, bool one_row);

/// The files that the source includes.
const std::vector<Nvrtc::Header>& source_headers();

}  // namespace tenon::cuda::program
