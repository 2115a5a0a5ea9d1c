// SPDX-License-Identifier: Apache-2.0
#include "elementwise/program_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "functions_text.h"

namespace tenon::cuda::program {
namespace {

constexpr const char* cmath = R"(#pragma once
namespace std {
__device__ inline float abs(float x) { return fabsf(x); }
__device__ inline float atan(float x) { return atanf(x); }
__device__ inline float ceil(float x) { return ceilf(x); }
__device__ inline float cos(float x) { return cosf(x); }
__device__ inline float erf(float x) { return erff(x); }
__device__ inline float erfc(float x) { return erfcf(x); }
__device__ inline float exp(float x) { return expf(x); }
__device__ inline float expm1(float x) { return expm1f(x); }
__device__ inline float floor(float x) { return floorf(x); }
__device__ inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
__device__ inline bool isinf(float x) { return fabsf(x) == __int_as_float(0x7f800000); }
__device__ inline float log(float x) { return logf(x); }
__device__ inline float log1p(float x) { return log1pf(x); }
__device__ inline float log2(float x) { return log2f(x); }
__device__ inline float nearbyint(float x) { return nearbyintf(x); }
__device__ inline float pow(float x, float y) { return powf(x, y); }
__device__ inline float sin(float x) { return sinf(x); }
__device__ inline float sqrt(float x) { return sqrtf(x); }
__device__ inline float tanh(float x) { return tanhf(x); }
}
)";

constexpr const char* type_traits = R"(#pragma once
namespace std {
template <class T>
inline constexpr bool is_integral_v = false;
template <class T>
using make_unsigned_t = T;
}
)";

/// What every kernel begins with: the types of stored elements, and a loop over packs.
constexpr const char* declarations = R"(#include "kernel/functions.cuh"
namespace fn = tenon::cuda::functions;
typedef long long Index;

struct Operand {
  char* address;
  Index row_stride, column_stride;
};

struct F32 {
  float bits;
};
struct F16 {
  unsigned short bits;
};
struct BF16 {
  unsigned short bits;
};
struct Bool {
  unsigned char bits;
};
__device__ inline float widen(F32 x) { return x.bits; }
__device__ inline float widen(F16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
__device__ inline float widen(BF16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ inline float widen(Bool x) { return x.bits != 0 ? 1.0f : 0.0f; }
__device__ inline void narrow(float x, F32& out) { out.bits = x; }
__device__ inline void narrow(float x, F16& out) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x)); }
__device__ inline void narrow(float x, BF16& out) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x)); }
__device__ inline void narrow(float x, Bool& out) { out.bits = x != 0.0f; }
template <class T>
__device__ inline float rounded(float x) {
  T narrow_x;
  narrow(x, narrow_x);
  return widen(narrow_x);
}

template <class T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack {
  T at[V];
};
/// Neighbouring elements of an operand from (row, column) on.
template <class T, int V>
__device__ inline Pack<T, V> dense(const Operand& x, Index row, Index column) {
  return *reinterpret_cast<const Pack<T, V>*>(x.address + (row * x.row_stride + column) * static_cast<Index>(sizeof(T)));
}
template <class T, int V>
__device__ inline Pack<T, V> same(const Operand& x, Index row, Index) {
  const T one = reinterpret_cast<const T*>(x.address)[row * x.row_stride];
  Pack<T, V> all;
#pragma unroll
  for (int j = 0; j < V; ++j) all.at[j] = one;
  return all;
}
template <class T, int V>
__device__ inline Pack<T, V> strided(const Operand& x, Index row, Index column) {
  Pack<T, V> all;
#pragma unroll
  for (int j = 0; j < V; ++j) all.at[j] = reinterpret_cast<const T*>(x.address)[row * x.row_stride + (column + j) * x.column_stride];
  return all;
}
template <class T, int V>
__device__ inline void store_dense(const Operand& y, Index row, Index column, const Pack<T, V>& all) {
  *reinterpret_cast<Pack<T, V>*>(y.address + (row * y.row_stride + column) * static_cast<Index>(sizeof(T))) = all;
}
template <class T, int V>
__device__ inline void store_strided(const Operand& y, Index row, Index column, const Pack<T, V>& all) {
#pragma unroll
  for (int j = 0; j < V; ++j) reinterpret_cast<T*>(y.address)[row * y.row_stride + (column + j) * y.column_stride] = all.at[j];
}
__device__ inline Index quotient(Index a, Index b) {
  return (a | b) >> 32 == 0 ? static_cast<Index>(static_cast<unsigned>(a) / static_cast<unsigned>(b)) : a / b;
}
)";

const char* type_of(tenon_dtype dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return "F16";
    case TENON_DTYPE_BF16:
      return "BF16";
    case TENON_DTYPE_BOOL:
      return "Bool";
    default:
      return "F32";
  }
}

/// A constant with the bits of x as f32.
std::string constant(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "__uint_as_float(0x%08xu)", std::bit_cast<std::uint32_t>(static_cast<float>(x)));
  return text;
}

/// The expression of an instruction over its operands.
std::string expression_of(const Instruction& i, const std::array<std::string, 3>& x) {
  const auto one = [&](const std::string& function) { return function + "(" + x[0] + ")"; };
  const auto two = [&](const std::string& function) { return function + "(" + x[0] + ", " + x[1] + ")"; };
  switch (i.code) {
#define TENON_ONE(Name) \
  case TENON_OP_##Name: \
    return one("fn::" #Name "{}");
#define TENON_TWO(Name) \
  case TENON_OP_##Name: \
    return two("fn::" #Name "{}");
    TENON_PROGRAM_PAIRS(TENON_TWO)
    TENON_TWO(Pow)
    TENON_PROGRAM_LIGHT(TENON_ONE)
    TENON_PROGRAM_HEAVY(TENON_ONE)
#undef TENON_ONE
#undef TENON_TWO
    case TENON_OP_Clip:
      return one("fn::Clip<float>{" + constant(i.p) + ", " + constant(i.q) + "}");
    case TENON_OP_LeakyRelu:
      return one("fn::LeakyRelu<float>{" + constant(i.p) + "}");
    case TENON_OP_Elu:
      return one("fn::Elu<float>{" + constant(i.p) + "}");
    case code_gelu_tanh:
      return one("fn::GeluTanh{}");
    case TENON_OP_Where:
      return x[0] + " != 0.0f ? " + x[1] + " : " + x[2];
    case code_to_f16:
      return one("rounded<F16>");
    case code_to_bf16:
      return one("rounded<BF16>");
    case code_to_bool:
      return one("rounded<Bool>");
    default:
      return x[0];  // code_copy
  }
}

/// "void compute(float x0, ..., T& y0, ...)": the program for one element.
std::string compute_function(const std::vector<Instruction>& instructions, const std::vector<OperandForm>& inputs,
                             const std::vector<OperandForm>& outputs) {
  std::string parameters;
  const auto add = [&](const std::string& parameter) { parameters += (parameters.empty() ? "" : ", ") + parameter; };
  for (std::size_t i = 0; i < inputs.size(); ++i) add("float x" + std::to_string(i));
  for (std::size_t i = 0; i < outputs.size(); ++i) add(std::string(type_of(outputs[i].dtype)) + "& y" + std::to_string(i));
  std::string text = "__device__ inline void compute(" + parameters + ") {\n", last;
  std::array<std::string, max_members> slots;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    std::array<std::string, 3> operands;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Source& source = instruction.sources[k];
      if (source.kind == Source::Kind::last) operands[k] = last;
      if (source.kind == Source::Kind::slot) operands[k] = slots[source.index];
      if (source.kind == Source::Kind::input) operands[k] = "x" + std::to_string(source.index);
    }
    last = "r" + std::to_string(i);
    text += "  const float " + last + " = " + expression_of(instruction, operands) + ";\n";
    if (instruction.slot >= 0) slots[static_cast<std::size_t>(instruction.slot)] = last;
    if (instruction.output >= 0) text += "  narrow(" + last + ", y" + std::to_string(instruction.output) + ");\n";
  }
  return text + "}\n";
}

/// The statements that load, compute and store packs of V elements at (row, column). `u`: a suffix of their variables.
struct PackCode {
  const std::vector<OperandForm>&inputs, &outputs;

  static const char* load_of(OperandForm::Columns columns) {
    return columns == OperandForm::Columns::dense ? "dense" : columns == OperandForm::Columns::same ? "same" : "strided";
  }
  std::string load(const std::string& pack, const std::string& u) const {
    std::string text;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string n = std::to_string(i);
      text +=
          "a" + n + u + " = " + load_of(inputs[i].columns) + "<" + type_of(inputs[i].dtype) + ", " + pack + ">(x" + n + ", row, column);\n";
    }
    return text;
  }
  std::string declare(const std::string& pack, const std::string& u) const {
    std::string text;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      text += "Pack<" + std::string(type_of(inputs[i].dtype)) + ", " + pack + "> a" + std::to_string(i) + u + ";\n";
    return text;
  }
  std::string compute_and_store(const std::string& pack, const std::string& u) const {
    std::string text, arguments;
    const auto add = [&](const std::string& argument) { arguments += (arguments.empty() ? "" : ", ") + argument; };
    for (std::size_t i = 0; i < inputs.size(); ++i) add("widen(a" + std::to_string(i) + u + ".at[j])");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      text += "Pack<" + std::string(type_of(outputs[i].dtype)) + ", " + pack + "> b" + std::to_string(i) + ";\n";
      add("b" + std::to_string(i) + ".at[j]");
    }
    text += "#pragma unroll\nfor (int j = 0; j < " + pack + "; ++j) compute(" + arguments + ");\n";
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string n = std::to_string(i);
      text += std::string(outputs[i].columns == OperandForm::Columns::dense ? "store_dense" : "store_strided") + "<" +
              type_of(outputs[i].dtype) + ", " + pack + ">(y" + n + ", row, column, b" + n + ");\n";
    }
    return text;
  }
};

/// Elements of a pack: 16 bytes of the narrowest dense operand that is not bool.
std::uint32_t pack_of(const std::vector<OperandForm>& inputs, const std::vector<OperandForm>& outputs) {
  std::uint32_t pack = 4;
  for (const std::vector<OperandForm>* operands : {&inputs, &outputs}) {
    for (const OperandForm& operand : *operands) {
      if (operand.dtype == TENON_DTYPE_F16 || operand.dtype == TENON_DTYPE_BF16) pack = 8;
    }
  }
  return pack;
}

}  // namespace

KernelSource source_of(const std::vector<Instruction>& instructions, const std::vector<OperandForm>& inputs,
                       const std::vector<OperandForm>& outputs, bool one_row) {
  KernelSource source;
  source.pack = pack_of(inputs, outputs);
  // About 32 bytes in flight for each thread.
  const auto dense =
      std::count_if(inputs.begin(), inputs.end(), [](const OperandForm& x) { return x.columns != OperandForm::Columns::same; });
  source.unroll = dense <= 1 ? 4 : dense == 2 ? 2 : 1;
  const std::string pack = std::to_string(source.pack);
  const PackCode code{inputs, outputs};
  std::string parameters = "Index rows, Index columns";
  for (std::size_t i = 0; i < inputs.size(); ++i) parameters += ", Operand x" + std::to_string(i);
  for (std::size_t i = 0; i < outputs.size(); ++i) parameters += ", Operand y" + std::to_string(i);

  std::string& text = source.text;
  text = declarations + compute_function(instructions, inputs, outputs);
  text += std::string("extern \"C\" __global__ void __launch_bounds__(256) ") + kernel_name + "(" + parameters + ") {\n";
  text +=
      "const Index first = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x, step = static_cast<Index>(gridDim.x) * blockDim.x;\n";
  text += "const Index count = rows * columns, packs = count / " + pack + ";\n";
  const std::string position =
      one_row ? "const Index row = 0, column = at * " + pack + ";\n"
              : "const Index row = quotient(at * " + pack + ", columns), column = at * " + pack + " - row * columns;\n";
  text += "for (Index p = first; p < packs; p += " + std::to_string(source.unroll) + " * step) {\n";
  for (std::uint32_t u = 0; u < source.unroll; ++u) text += code.declare(pack, "_" + std::to_string(u));
  for (std::uint32_t u = 0; u < source.unroll; ++u) {  // all loads, so that none waits for another
    text += "if (const Index at = p + " + std::to_string(u) + " * step; at < packs) {\n" + position +
            code.load(pack, "_" + std::to_string(u)) + "}\n";
  }
  for (std::uint32_t u = 0; u < source.unroll; ++u) {
    text += "if (const Index at = p + " + std::to_string(u) + " * step; at < packs) {\n" + position +
            code.compute_and_store(pack, "_" + std::to_string(u)) + "}\n";
  }
  text += "}\n";
  if (one_row) {  // elements behind the last pack
    text += "if (const Index at = packs * " + pack + " + first; at < count) {\nconst Index row = 0, column = at;\n" +
            code.declare("1", "") + code.load("1", "") + code.compute_and_store("1", "") + "}\n";
  }
  text += "}\n";
  return source;
}

const std::vector<Nvrtc::Header>& source_headers() {
  static const std::vector<Nvrtc::Header> all{{"cmath", cmath},
                                              {"cstdint", "#pragma once\n"},
                                              {"type_traits", type_traits},
                                              {"kernel/functions.cuh", functions_text},
                                              {"kernel/trigonometric.cuh", trigonometric_text}};
  return all;
}

}  // namespace tenon::cuda::program
