// SPDX-License-Identifier: Apache-2.0
#include "elementwise/elementwise_program.h"

#include <algorithm>
#include <cstring>

namespace tenon::cuda::program {
namespace {

constexpr std::uint64_t narrow = TENON_DTYPE_BIT(TENON_DTYPE_F16) | TENON_DTYPE_BIT(TENON_DTYPE_BF16) | TENON_DTYPE_BIT(TENON_DTYPE_F32) |
                                 TENON_DTYPE_BIT(TENON_DTYPE_BOOL);
constexpr std::uint64_t wide = TENON_DTYPE_BIT(TENON_DTYPE_F64) | TENON_DTYPE_BIT(TENON_DTYPE_BOOL);

template <class Attributes>
Attributes attributes_of(const sdk::ElementwiseMember& member) {
  Attributes attributes;
  std::memcpy(&attributes, member.attributes.data(), sizeof attributes);
  return attributes;
}

std::uint32_t code_of_cast(tenon_dtype to) {
  switch (to) {
    case TENON_DTYPE_F16:
      return code_to_f16;
    case TENON_DTYPE_BF16:
      return code_to_bf16;
    case TENON_DTYPE_BOOL:
      return code_to_bool;
    default:
      return code_copy;
  }
}

/// The code and constants of a member.
Instruction instruction_of(const sdk::ElementwiseMember& member) {
  Instruction instruction;
  instruction.code = member.op;
  switch (member.op) {
    case TENON_OP_Cast:
      instruction.code = code_of_cast(attributes_of<tenon_attributes_cast>(member).to);
      break;
    case TENON_OP_Clip: {
      const auto bounds = attributes_of<tenon_attributes_clip>(member);
      instruction.p = bounds.low;
      instruction.q = bounds.high;
      break;
    }
    case TENON_OP_LeakyRelu:
    case TENON_OP_Elu:
      instruction.p = attributes_of<tenon_attributes_alpha>(member).alpha;
      break;
    case TENON_OP_Gelu:
      if (attributes_of<tenon_attributes_gelu>(member).approximate_tanh != 0) instruction.code = code_gelu_tanh;
      break;
    default:
      break;
  }
  return instruction;
}

}  // namespace

std::uint32_t classes(tenon_op op, tenon_dtype in, tenon_dtype out) {
  static_cast<void>(op);  // every elementwise op has a code; only the types matter
  const std::uint64_t both = TENON_DTYPE_BIT(in) | TENON_DTYPE_BIT(out);
  return ((both & ~narrow) == 0 ? class_f32 : 0) | ((both & ~wide) == 0 ? class_f64 : 0);
}

bool is_heavy(std::uint32_t code) {
  switch (code) {
    case TENON_OP_Pow:
    case TENON_OP_Sigmoid:
    case TENON_OP_Tanh:
    case TENON_OP_Exp:
    case TENON_OP_Expm1:
    case TENON_OP_Log:
    case TENON_OP_Log2:
    case TENON_OP_Log1p:
    case TENON_OP_Erf:
    case TENON_OP_Sin:
    case TENON_OP_Cos:
    case TENON_OP_Atan:
    case TENON_OP_Elu:
    case TENON_OP_Softplus:
    case TENON_OP_Mish:
    case TENON_OP_Gelu:
    case TENON_OP_Silu:
    case code_gelu_tanh:
      return true;
    default:
      return false;
  }
}

std::vector<Instruction> translate(const sdk::ElementwiseProgram& group) {
  constexpr std::size_t never = static_cast<std::size_t>(-1);
  const std::size_t count = group.members.size();
  // The producer of each value that a member reads: places are reused, so it is the latest writer before the reader.
  std::vector<std::vector<std::size_t>> makers(count);
  std::vector<std::size_t> last_reader(count, never), latest(group.places.size(), never);
  for (std::size_t m = 0; m < count; ++m) {
    for (const std::uint32_t place : group.members[m].inputs) {
      makers[m].push_back(latest[place]);
      if (latest[place] != never) last_reader[latest[place]] = m;
    }
    latest[group.members[m].output] = m;
  }

  std::vector<Instruction> result;
  std::vector<std::size_t> occupant;  // per slot: the member whose result it holds, or never
  std::vector<std::int8_t> slot_of(count, -1);
  for (std::size_t m = 0; m < count; ++m) {
    const sdk::ElementwiseMember& member = group.members[m];
    Instruction instruction = instruction_of(member);
    for (std::size_t i = 0; i < member.inputs.size(); ++i) {
      const std::size_t maker = makers[m][i];
      if (maker == never) {
        instruction.sources[i] = {Source::Kind::input, static_cast<std::uint8_t>(member.inputs[i])};
      } else if (maker + 1 == m) {
        instruction.sources[i] = {Source::Kind::last, 0};
      } else {
        instruction.sources[i] = {Source::Kind::slot, static_cast<std::uint8_t>(slot_of[maker])};
      }
    }
    for (std::size_t& held : occupant) {
      if (held != never && last_reader[held] <= m) held = never;
    }
    if (last_reader[m] != never && last_reader[m] > m + 1) {
      std::size_t slot = static_cast<std::size_t>(std::find(occupant.begin(), occupant.end(), never) - occupant.begin());
      if (slot == occupant.size()) occupant.push_back(never);
      occupant[slot] = m;
      slot_of[m] = instruction.slot = static_cast<std::int8_t>(slot);
    }
    if (member.output >= group.input_count && member.output < group.input_count + group.output_count) {
      instruction.output = static_cast<std::int8_t>(member.output - group.input_count);
    }
    result.push_back(instruction);
  }
  return result;
}

}  // namespace tenon::cuda::program
