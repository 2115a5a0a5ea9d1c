// SPDX-License-Identifier: Apache-2.0
// The cuda backend's fused programs: groups of nodes become instructions.
#include "backends/cuda/elementwise/elementwise_program.h"

#include <doctest/doctest.h>

#include <cstring>

namespace tenon::cuda::program {
namespace {

sdk::ElementwisePlace operand(tenon_dtype dtype = TENON_DTYPE_F32) {
  return {0, 1, dtype, -1};
}
sdk::ElementwisePlace buffer(std::int32_t number, tenon_dtype dtype = TENON_DTYPE_F32) {
  return {0, 1, dtype, number};
}
sdk::ElementwiseMember member(tenon_op op, std::vector<std::uint32_t> inputs, std::uint32_t output) {
  return {op, nullptr, std::vector<std::uint64_t>(4), std::move(inputs), output};
}
template <class Attributes>
sdk::ElementwiseMember member(tenon_op op, const Attributes& attributes, std::vector<std::uint32_t> inputs, std::uint32_t output) {
  sdk::ElementwiseMember result = member(op, std::move(inputs), output);
  result.attributes.resize((sizeof attributes + 7) / 8);
  std::memcpy(result.attributes.data(), &attributes, sizeof attributes);
  return result;
}

TEST_CASE("cuda program: in a chain each instruction reads the one before, and no slot is used") {
  sdk::ElementwiseProgram group;
  group.input_count = 2;
  group.output_count = 1;
  group.places = {operand(), operand(), operand(), buffer(0)};
  group.members = {member(TENON_OP_Add, {0, 1}, 3), member(TENON_OP_Relu, {3}, 3), member(TENON_OP_Mul, {3, 1}, 2)};
  const std::vector<Instruction> code = translate(group);
  REQUIRE(code.size() == 3);
  CHECK(code[0].code == TENON_OP_Add);
  CHECK(code[0].sources[0].kind == Source::Kind::input);
  CHECK(code[0].sources[1].index == 1);
  CHECK(code[1].sources[0].kind == Source::Kind::last);
  CHECK(code[2].sources[0].kind == Source::Kind::last);
  CHECK(code[2].sources[1].kind == Source::Kind::input);
  for (const Instruction& instruction : code) CHECK(instruction.slot == -1);
  CHECK(code[0].output == -1);
  CHECK(code[1].output == -1);
  CHECK(code[2].output == 0);
}

TEST_CASE("cuda program: a value is kept in a slot until its last reader, then the slot is reused") {
  // a = x + y; b = exp(a); c = a * b; d = relu(c); e = c + d
  sdk::ElementwiseProgram group;
  group.input_count = 2;
  group.output_count = 1;
  group.places = {operand(), operand(), operand(), buffer(0), buffer(1)};
  group.members = {member(TENON_OP_Add, {0, 1}, 3), member(TENON_OP_Exp, {3}, 4), member(TENON_OP_Mul, {3, 4}, 3),
                   member(TENON_OP_Relu, {3}, 4), member(TENON_OP_Add, {3, 4}, 2)};
  const std::vector<Instruction> code = translate(group);
  REQUIRE(code.size() == 5);
  CHECK(code[0].slot == 0);
  CHECK(code[2].sources[0].kind == Source::Kind::slot);
  CHECK(code[2].sources[0].index == 0);
  CHECK(code[2].sources[1].kind == Source::Kind::last);
  CHECK(code[2].slot == 0);
  CHECK(code[4].sources[0].kind == Source::Kind::slot);
  CHECK(code[4].sources[0].index == 0);
  CHECK(code[4].sources[1].kind == Source::Kind::last);
}

TEST_CASE("cuda program: a result that leaves the group and is read inside it is read from the previous instruction") {
  sdk::ElementwiseProgram group;
  group.input_count = 1;
  group.output_count = 2;
  group.places = {operand(), operand(), operand()};
  group.members = {member(TENON_OP_Relu, {0}, 1), member(TENON_OP_Neg, {1}, 2)};
  const std::vector<Instruction> code = translate(group);
  REQUIRE(code.size() == 2);
  CHECK(code[0].output == 0);
  CHECK(code[1].output == 1);
  CHECK(code[1].sources[0].kind == Source::Kind::last);
}

TEST_CASE("cuda program: attributes choose opcode and constants") {
  sdk::ElementwiseProgram group;
  group.input_count = 1;
  group.output_count = 1;
  group.places = {operand(), operand(TENON_DTYPE_F16), buffer(0)};
  tenon_attributes_clip clip{};
  clip.low = -1;
  clip.high = 6;
  tenon_attributes_alpha elu{};
  elu.alpha = 0.5;
  tenon_attributes_gelu gelu{};
  gelu.approximate_tanh = 1;
  tenon_attributes_cast cast{};
  cast.to = TENON_DTYPE_F16;
  group.members = {member(TENON_OP_Clip, clip, {0}, 2), member(TENON_OP_Elu, elu, {2}, 2), member(TENON_OP_Gelu, gelu, {2}, 2),
                   member(TENON_OP_Cast, cast, {2}, 1)};
  const std::vector<Instruction> code = translate(group);
  REQUIRE(code.size() == 3);
  CHECK(code[0].p == -1);
  CHECK(code[0].q == 6);
  CHECK(code[1].p == 0.5);
  CHECK(code[2].code == code_gelu_tanh);
  CHECK(code[2].output == 0);
}

sdk::ElementwiseMember cast(tenon_dtype to, std::uint32_t input, std::uint32_t output) {
  tenon_attributes_cast attributes{};
  attributes.to = to;
  return member(TENON_OP_Cast, attributes, {input}, output);
}

/// y = bf16(relu(bf16(f32(x0) + f32(x1)))), and x2, ... which nothing reads.
sdk::ElementwiseProgram two_ops_in_bf16(std::uint32_t inputs) {
  sdk::ElementwiseProgram group;
  group.input_count = inputs;
  group.output_count = 1;
  for (std::uint32_t i = 0; i <= inputs; ++i) group.places.push_back(operand(TENON_DTYPE_BF16));
  const std::uint32_t y = inputs, a = y + 1, b = y + 2, c = y + 3;
  for (std::int32_t i = 0; i < 3; ++i) group.places.push_back(buffer(i));
  group.members = {cast(TENON_DTYPE_F32, 0, a),  cast(TENON_DTYPE_F32, 1, b), member(TENON_OP_Add, {a, b}, c),
                   cast(TENON_DTYPE_BF16, c, a), cast(TENON_DTYPE_F32, a, b), member(TENON_OP_Relu, {b}, c),
                   cast(TENON_DTYPE_BF16, c, y)};
  return group;
}

TEST_CASE("cuda program: casts of inputs and of the output are part of loads and stores, roundings between ops are not") {
  const std::vector<Instruction> code = translate(two_ops_in_bf16(max_held));
  REQUIRE(code.size() == 3);
  CHECK(code[0].code == TENON_OP_Add);
  CHECK(code[0].sources[0].kind == Source::Kind::input);
  CHECK(code[0].sources[1].kind == Source::Kind::input);
  CHECK(code[0].sources[1].index == 1);
  CHECK(code[1].code == code_to_bf16);
  CHECK(code[1].sources[0].kind == Source::Kind::last);
  CHECK(code[2].code == TENON_OP_Relu);
  CHECK(code[2].sources[0].kind == Source::Kind::last);
  CHECK(code[2].output == 0);
}

TEST_CASE("cuda program: inputs that are not held are read by the first of their members") {
  const std::vector<Instruction> code = translate(two_ops_in_bf16(max_held + 1));
  REQUIRE(code.size() == 5);
  CHECK(code[0].code == code_copy);
  CHECK(code[0].slot == 0);
  CHECK(code[1].code == code_copy);
  CHECK(code[2].code == TENON_OP_Add);
}

TEST_CASE("cuda program: a rounded output that is read again is rounded before") {
  sdk::ElementwiseProgram group;
  group.input_count = 1;
  group.output_count = 2;
  group.places = {operand(), operand(TENON_DTYPE_F16), operand(), buffer(0)};
  group.members = {member(TENON_OP_Exp, {0}, 3), cast(TENON_DTYPE_F16, 3, 1), cast(TENON_DTYPE_F32, 1, 3), member(TENON_OP_Neg, {3}, 2)};
  const std::vector<Instruction> code = translate(group);
  REQUIRE(code.size() == 3);
  CHECK(code[1].code == code_to_f16);
  CHECK(code[1].output == 0);
  CHECK(code[2].code == TENON_OP_Neg);
  CHECK(code[2].sources[0].kind == Source::Kind::last);
}

TEST_CASE("cuda program: f16, bf16, f32 and bool compute in f32, f64 and bool in f64, nothing else is fused") {
  CHECK(classes(TENON_OP_Add, TENON_DTYPE_F32, TENON_DTYPE_F32) == class_f32);
  CHECK(classes(TENON_OP_Cast, TENON_DTYPE_BF16, TENON_DTYPE_F32) == class_f32);
  CHECK(classes(TENON_OP_Add, TENON_DTYPE_F64, TENON_DTYPE_F64) == class_f64);
  CHECK(classes(TENON_OP_And, TENON_DTYPE_BOOL, TENON_DTYPE_BOOL) == (class_f32 | class_f64));
  CHECK(classes(TENON_OP_Cast, TENON_DTYPE_F32, TENON_DTYPE_F64) == 0);
  CHECK(classes(TENON_OP_Add, TENON_DTYPE_I32, TENON_DTYPE_I32) == 0);
  CHECK(classes(TENON_OP_Cast, TENON_DTYPE_I64, TENON_DTYPE_F32) == 0);
}

}  // namespace
}  // namespace tenon::cuda::program
