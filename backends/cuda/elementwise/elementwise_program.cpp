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

/// Whether a later member reads the result of a member.
bool is_read_after(const sdk::ElementwiseProgram& group, std::size_t member) {
  const std::uint32_t place = group.members[member].output;
  for (std::size_t m = member + 1; m < group.members.size(); ++m) {
    const std::vector<std::uint32_t>& inputs = group.members[m].inputs;
    if (std::find(inputs.begin(), inputs.end(), place) != inputs.end()) return true;
    if (group.members[m].output == place) return false;
  }
  return false;
}

}  // namespace

std::uint32_t classes(tenon_op op, tenon_dtype in, tenon_dtype out) {
  static_cast<void>(op);  // every elementwise op has a code; only the types matter
  const std::uint64_t both = TENON_DTYPE_BIT(in) | TENON_DTYPE_BIT(out);
  return ((both & ~narrow) == 0 ? class_f32 : 0) | ((both & ~wide) == 0 ? class_f64 : 0);
}

bool is_heavy(std::uint32_t code) {
  switch (code) {
#define TENON_HEAVY(Name) case TENON_OP_##Name:
    TENON_PROGRAM_HEAVY(TENON_HEAVY)
#undef TENON_HEAVY
    case TENON_OP_Pow:
    case TENON_OP_Elu:
    case code_gelu_tanh:
      return true;
    default:
      return false;
  }
}

std::vector<Instruction> translate(const sdk::ElementwiseProgram& group, std::uint32_t max_held_inputs) {
  constexpr std::size_t never = static_cast<std::size_t>(-1);
  /// A value that instructions read: the result of an instruction, or an input.
  struct Value {
    std::size_t maker = never;  ///< never: it is an input
    std::uint8_t input = 0;
  };
  struct Step {
    Instruction instruction;
    std::vector<Value> sources;
    std::size_t last_reader = never;
  };
  std::vector<Step> steps;
  // The value of each place: places are reused, so it is that of the latest writer.
  std::vector<Value> values(group.places.size());
  for (std::uint32_t i = 0; i < group.input_count; ++i) values[i].input = static_cast<std::uint8_t>(i);
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const sdk::ElementwiseMember& member = group.members[m];
    Step step{instruction_of(member), {}};
    if (member.output >= group.input_count && member.output < group.input_count + group.output_count) {
      step.instruction.output = static_cast<std::int8_t>(member.output - group.input_count);
    }
    for (const std::uint32_t place : member.inputs) step.sources.push_back(values[place]);
    // An input that is not held must be read now: an output may overwrite it after its last reader among the members.
    const bool is_held = step.sources[0].maker != never || group.input_count <= max_held_inputs;
    if (step.instruction.code == code_copy && step.instruction.output < 0 && is_held) {
      values[member.output] = step.sources[0];
      continue;
    }
    // A cast of the last result to the type of the output that it is: storing rounds.
    const bool is_narrowing = member.op == TENON_OP_Cast && step.instruction.code != code_copy && step.instruction.output >= 0;
    if (is_narrowing && !steps.empty() && step.sources[0].maker == steps.size() - 1 && steps.back().instruction.output < 0 &&
        !is_read_after(group, m)) {
      steps.back().instruction.output = step.instruction.output;
      continue;
    }
    for (const Value& source : step.sources) {
      if (source.maker != never) steps[source.maker].last_reader = steps.size();
    }
    values[member.output] = {steps.size(), 0};
    steps.push_back(std::move(step));
  }

  std::vector<Instruction> result;
  std::vector<std::size_t> occupant;  // per slot: the step whose result it holds, or never
  for (std::size_t at = 0; at < steps.size(); ++at) {
    Instruction& instruction = steps[at].instruction;
    for (std::size_t i = 0; i < steps[at].sources.size(); ++i) {
      const Value& source = steps[at].sources[i];
      if (source.maker == never) {
        instruction.sources[i] = {Source::Kind::input, source.input};
      } else if (source.maker + 1 == at) {
        instruction.sources[i] = {Source::Kind::last, 0};
      } else {
        instruction.sources[i] = {Source::Kind::slot, static_cast<std::uint8_t>(steps[source.maker].instruction.slot)};
      }
    }
    for (std::size_t& held : occupant) {
      if (held != never && steps[held].last_reader <= at) held = never;
    }
    if (steps[at].last_reader != never && steps[at].last_reader > at + 1) {
      const std::size_t slot = static_cast<std::size_t>(std::find(occupant.begin(), occupant.end(), never) - occupant.begin());
      if (slot == occupant.size()) occupant.push_back(never);
      occupant[slot] = at;
      instruction.slot = static_cast<std::int8_t>(slot);
    }
    result.push_back(instruction);
  }
  return result;
}

}  // namespace tenon::cuda::program
