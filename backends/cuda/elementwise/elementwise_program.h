// SPDX-License-Identifier: Apache-2.0
// elementwise_program.h - a group of elementwise nodes as a program, which is interpreted or compiled (ADR 57): translation, host side.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/sdk/elementwise.h>

namespace tenon::cuda::program {

/// The functions of kernel/functions.cuh that an instruction may be, each of the op of its name: of two operands, of one, and of one at the
/// cost of more than a few operations. Clip, LeakyRelu, Elu and Pow are not listed.
#define TENON_PROGRAM_PAIRS(X) \
  X(Add)                       \
  X(Sub)                       \
  X(Mul)                       \
  X(Div)                       \
  X(Max)                       \
  X(Min)                       \
  X(Equal)                     \
  X(Less)                      \
  X(LessOrEqual)               \
  X(Greater)                   \
  X(GreaterOrEqual)            \
  X(And)                       \
  X(Or)                        \
  X(Xor)                       \
  X(ReluGrad)                  \
  X(SigmoidGrad)               \
  X(TanhGrad)
#define TENON_PROGRAM_LIGHT(X) \
  X(Not)                       \
  X(IsNaN)                     \
  X(IsInf)                     \
  X(Neg)                       \
  X(Relu)                      \
  X(Abs)                       \
  X(Sign)                      \
  X(Ceil)                      \
  X(Floor)                     \
  X(Round)                     \
  X(Sqrt)                      \
  X(Rsqrt)                     \
  X(Reciprocal)
#define TENON_PROGRAM_HEAVY(X) \
  X(Sigmoid)                   \
  X(Tanh)                      \
  X(Exp)                       \
  X(Expm1)                     \
  X(Log)                       \
  X(Log2)                      \
  X(Log1p)                     \
  X(Erf)                       \
  X(Sin)                       \
  X(Cos)                       \
  X(Atan)                      \
  X(Softplus)                  \
  X(Mish)                      \
  X(Gelu)                      \
  X(Silu)

/// An instruction's opcode: the id of its op, or one of these for ops whose attributes select a variant.
enum Code : std::uint32_t {
  code_gelu_tanh = 0x10000,
  code_to_f16,  ///< rounds to f16
  code_to_bf16,
  code_to_bool,  ///< 1 unless it is 0
  code_copy
};

/// The source of an operand.
struct Source {
  enum class Kind : std::uint8_t { none, last, slot, input };
  Kind kind = Kind::none;  ///< last: the result of the previous instruction
  std::uint8_t index = 0;
};

/// r = code(sources), with up to two constants from the op's attributes. Results are of the program's type; bool is 0 or 1.
struct Instruction {
  std::uint32_t code = 0;
  Source sources[3];
  std::int8_t slot = -1;    ///< slot that keeps the result for a later instruction; -1: none
  std::int8_t output = -1;  ///< which output of the group it is; -1: none
  double p = 0, q = 0;
};

inline constexpr std::uint32_t max_members = 32;
inline constexpr std::uint32_t max_inputs = 12;
/// The most inputs that a thread of the interpreter reads before the first instruction, the first into registers and, of several packs, the
/// others into shared memory. A program with more reads an operand where an instruction needs it.
inline constexpr std::uint32_t max_held = 3;

/// Classes of ElementwiseFusion::classes: programs that compute in f32 and in f64.
inline constexpr std::uint32_t class_f32 = 1, class_f64 = 2;
std::uint32_t classes(tenon_op op, tenon_dtype in, tenon_dtype out);

/// True for codes that cost more than a few operations and more registers: programs with one run in a separate kernel.
bool is_heavy(std::uint32_t code);

/// The group's members as instructions; a slot is reused after its last reader. Casts that only change how a value is stored have none:
/// those to the type that the program computes in, of inputs that are held, and that of a result to the type of its output. All inputs are
/// held if there are at most `max_held_inputs`.
std::vector<Instruction> translate(const sdk::ElementwiseProgram& group, std::uint32_t max_held_inputs = max_held);

}  // namespace tenon::cuda::program
