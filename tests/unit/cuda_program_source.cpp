// SPDX-License-Identifier: Apache-2.0
// The source of fused programs: NVRTC, which needs no GPU, compiles it for the oldest and the newest architectures.
#include "backends/cuda/elementwise/program_source.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tenon::cuda::program {
namespace {

using Columns = OperandForm::Columns;

/// The NVRTC of the toolkit that this was built with.
const Nvrtc& compiler() {
  static const Nvrtc opened(search_here(TENON_CUDA_LIBRARIES));
  return opened;
}

Instruction instruction_of(std::uint32_t code, std::vector<Source> sources, std::int8_t output = -1) {
  Instruction instruction;
  instruction.code = code;
  for (std::size_t i = 0; i < sources.size(); ++i) instruction.sources[i] = sources[i];
  instruction.output = output;
  instruction.p = -0.5;
  instruction.q = 1e30;
  return instruction;
}
constexpr Source input(std::uint8_t index) {
  return {Source::Kind::input, index};
}
constexpr Source last{Source::Kind::last, 0};

/// Every opcode once, as one program of three inputs.
std::vector<Instruction> all_codes() {
  std::vector<Instruction> code;
#define TENON_ONE(Name) code.push_back(instruction_of(TENON_OP_##Name, {last}));
#define TENON_TWO(Name) code.push_back(instruction_of(TENON_OP_##Name, {last, input(1)}));
  code.push_back(instruction_of(TENON_OP_Where, {input(0), input(1), input(2)}));
  TENON_PROGRAM_PAIRS(TENON_TWO)
  TENON_TWO(Pow)
  TENON_PROGRAM_LIGHT(TENON_ONE)
  TENON_PROGRAM_HEAVY(TENON_ONE)
  TENON_ONE(Clip)
  TENON_ONE(LeakyRelu)
  TENON_ONE(Elu)
#undef TENON_ONE
#undef TENON_TWO
  for (const std::uint32_t other : {code_gelu_tanh, code_to_f16, code_to_bf16, code_to_bool, code_copy})
    code.push_back(instruction_of(other, {last}));
  code.back().output = 0;
  return code;
}

TEST_CASE("cuda source: every instruction compiles, between operands of all types and forms") {
  for (const char* architecture : {"sm_80", "sm_90"}) {
    for (const bool one_row : {true, false}) {
      const KernelSource source = source_of(
          all_codes(), {{TENON_DTYPE_BOOL, Columns::dense}, {TENON_DTYPE_BF16, Columns::same}, {TENON_DTYPE_F16, Columns::strided}},
          {{TENON_DTYPE_F32, Columns::dense}}, one_row);
      CHECK(source.pack == 8);
      const std::string code = compiler().compile(source.text, source_headers(), architecture);
      CHECK(code.substr(1, 3) == "ELF");
      CHECK(code.find(kernel_name) != std::string::npos);
    }
  }
}

TEST_CASE("cuda source: packs have 16 bytes of the narrowest type, and few inputs are read several packs ahead") {
  const std::vector<Instruction> sum{instruction_of(TENON_OP_Add, {input(0), input(1)}, 0)};
  const OperandForm wide{TENON_DTYPE_F32, Columns::dense}, narrow{TENON_DTYPE_BF16, Columns::dense}, one{TENON_DTYPE_F32, Columns::same};
  CHECK(source_of(sum, {wide, wide}, {wide}, true).pack == 4);
  CHECK(source_of(sum, {wide, narrow}, {wide}, true).pack == 8);
  CHECK(source_of(sum, {wide, one}, {wide}, true).unroll == 4);
  CHECK(source_of(sum, {wide, wide}, {wide}, true).unroll == 2);
}

TEST_CASE("cuda source: a source that does not compile is an error with the compiler's words") {
  std::string text;
  try {
    compiler().compile("not CUDA", {}, "sm_90");
  } catch (const sdk::Error& error) {
    text = error.what();
  }
  CHECK_MESSAGE(text.find("program.cu(1): error") != std::string::npos, text);
}

}  // namespace
}  // namespace tenon::cuda::program
