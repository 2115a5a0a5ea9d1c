// SPDX-License-Identifier: Apache-2.0
// Capability consistency: the capability table and `supports` on random instances of every op. After a yes the node is executed; a no must
// be confirmed by plan_create.
//
// A backend may rely on shapes that the runtime's rule has checked. Instances that are executed keep that rule; for those that break it any
// well-formed answer is accepted.
#include "capability_consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <tenon/sdk/kernel.h>

namespace tenon::conformance {
namespace {

/// Cases of an op, and instances of a case.
constexpr int full_count = 8, small_count = 2;
constexpr int full_rounds = 32, small_rounds = 4;

const char* name_of_reason(std::uint32_t reason) {
  static constexpr const char* names[] = {"NONE", "OP", "DTYPE", "SHAPE", "STRIDES", "ATTRIBUTES", "OPTIONS", "GRAPH", "ALIGNMENT"};
  return reason < std::size(names) ? names[reason] : "unknown";
}

// ---------------------------------------------------------------- queries

/// What `supports` answered for each node of a graph, or its failure for the whole graph.
struct Reply {
  tenon_status status = TENON_OK;
  std::vector<tenon_answer> answers;
  std::string text;  ///< of the failure

  bool says_yes(std::size_t node = 0) const { return status == TENON_OK && answers[node].supported == 1; }
  std::string str(std::size_t node = 0) const {
    if (status != TENON_OK) return fmt::format("{} ({})", status_name(status), text);
    if (says_yes(node)) return "yes";
    return fmt::format("no, {} ({})", name_of_reason(answers[node].reason), answers[node].text);
  }
};

Reply ask_once(const Device& device, const AbiGraph& abi_graph, const tenon_plan_options& options, const std::string& where) {
  Reply reply;
  reply.answers.resize(abi_graph.nodes.size());
  std::memset(static_cast<void*>(reply.answers.data()), 0x7F, reply.answers.size() * sizeof(tenon_answer));
  ErrorText error;
  reply.status = device.table().supports(device.handle(), &abi_graph.graph, &options, reply.answers.data(), sizeof(tenon_answer), error);
  reply.text = error.text();
  if (reply.status != TENON_OK) return reply;
  for (const tenon_answer& answer : reply.answers) {
    if (answer.supported == 1) continue;
    if (answer.supported != 0)
      throw Failure(fmt::format("`supports` gave no answer: expected `supported` 0 or 1, got {} ({})", answer.supported, where));
    if (answer.reason == TENON_REASON_NONE || answer.reason > TENON_REASON_GRAPH) {
      throw Failure(fmt::format("`supports` said no with the unknown reason {} ({})", answer.reason, where));
    }
    if (answer.text[0] == 0 || std::memchr(answer.text, 0, sizeof answer.text) == nullptr) {
      throw Failure(fmt::format("`supports` said no without a NUL-terminated text ({})", where));
    }
  }
  return reply;
}

/// Asks twice: the answers must be the same.
Reply ask(const Device& device, const Net& net, const tenon_plan_options& options, const std::string& where) {
  const AbiGraph abi_graph(net);
  const Reply first = ask_once(device, abi_graph, options, where), second = ask_once(device, abi_graph, options, where);
  for (std::size_t n = 0; n < abi_graph.nodes.size(); ++n) {
    if (first.str(n) != second.str(n)) {
      throw Failure(fmt::format("`supports` said {}, and the second time {} ({})", first.str(n), second.str(n), where));
    }
    if (first.status != TENON_OK) break;
  }
  return first;
}

/// Makes and destroys a plan. After a yes of `supports`, plan_create may fail only for lack of memory.
void plan_only(const Device& device, const Net& net, const tenon_plan_options& options, const Reply& reply, bool yes_binds,
               const std::string& where) {
  const AbiGraph abi_graph(net);
  const bool all_yes = reply.status == TENON_OK && std::all_of(reply.answers.begin(), reply.answers.end(),
                                                               [](const tenon_answer& answer) { return answer.supported == 1; });
  ErrorText error;
  tenon_plan* plan = nullptr;
  const tenon_status status = device.table().plan_create(device.handle(), &abi_graph.graph, &options, &plan, error);
  if (status == TENON_OK) {
    if (plan == nullptr) throw Failure(fmt::format("plan_create returned OK and no plan ({})", where));
    device.table().plan_destroy(plan);
    if (!all_yes) throw Failure(fmt::format("`supports` said {}, yet plan_create made a plan ({})", reply.str(), where));
    return;
  }
  if (plan != nullptr) throw Failure(fmt::format("plan_create failed but wrote its out-parameter ({})", where));
  if (error.text().empty()) throw Failure(fmt::format("plan_create failed with {} and no message ({})", status_name(status), where));
  if (all_yes && yes_binds && status != TENON_OUT_OF_MEMORY) {
    throw Failure(fmt::format("`supports` said yes, yet plan_create failed with {}: {} ({})", status_name(status), error.text(), where));
  }
}

// ---------------------------------------------------------------- checks

bool is_known(const OpCase& op_case, tenon_dtype dtype) {
  const std::vector<tenon_dtype> known = dtypes_of(op_case);
  return std::find(known.begin(), known.end(), dtype) != known.end();
}

/// Zeros for dtypes that the op's case does not list: its values need not be representable in them.
std::vector<Array> operands_of(const RandomNode& drawn, const Instance& at, std::uint64_t seed) {
  std::vector<Array> inputs;
  if (is_known(*at.op_case, at.dtype)) {
    inputs = fill(*at.variant, at.dtype, seed_for(seed, at.name));
  } else {
    for (const OperandSpec& spec : at.variant->inputs) {
      inputs.push_back(spec.present ? Array(resolved(spec.dtype, at.dtype), spec.shape) : Array());
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Layout& layout = drawn.setting.layouts[i];
    if (!layout.strides.empty()) inputs[i] = seen_through(inputs[i], layout.strides);
  }
  return inputs;
}

Net bound_net(const RandomNode& drawn, const Instance& at, const std::vector<Array>& inputs) {
  Net net = at.net(inputs, drawn.setting);
  std::size_t v = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (at.variant->inputs[i].present) net.values[v++].kind = drawn.kinds[i];
  }
  return net;
}

std::string describe(const RandomNode& drawn, const std::vector<Array>& inputs) {
  static constexpr const char* kinds[] = {"internal", "input", "output", "parameter", "constant"};
  static constexpr const char* maths[] = {"strict", "tf32", "bf16"};
  std::string text = drawn.variant.label.empty() ? "" : drawn.variant.label + ", ";
  text += conformance::describe(inputs, drawn.setting.layouts) + ", bound as";
  for (const std::uint32_t kind : drawn.kinds) text += fmt::format(" {}", kinds[kind]);
  for (const tenon_donation& d : drawn.setting.donations) text += fmt::format(", input {} donated to output {}", d.input, d.output);
  return text + fmt::format(", math {}, fusion {}{}", maths[drawn.math], drawn.options.fusion,
                            drawn.options.deterministic ? ", deterministic" : "");
}

/// The table must say yes exactly where `supports` does, unless `supports` refuses the shape or the attributes.
void check_table(const Device& device, const Instance& at, const Reply& plain, const std::string& where) {
  const bool stated = (device.capability(at.line->op, at.line->version) & TENON_DTYPE_BIT(at.dtype)) != 0;
  const bool about_this_shape = !plain.says_yes() && plain.status == TENON_OK &&
                                (plain.answers[0].reason == TENON_REASON_SHAPE || plain.answers[0].reason == TENON_REASON_ATTRIBUTES);
  if (stated == plain.says_yes() || about_this_shape) return;
  throw Failure(fmt::format("{}: the capability table says {}, `supports` says {} ({})", sdk::name_of(at.dtype), stated ? "yes" : "no",
                            plain.str(), where));
}

/// A node that is supported with dense inputs and default options may be refused only for its strides or its options, with that reason.
void check_reason(const RandomNode& drawn, const Reply& plain, const Reply& reply, const std::string& where) {
  if (reply.says_yes() || !plain.says_yes()) return;
  const std::uint32_t reason = reply.status == TENON_OK ? reply.answers[0].reason : std::uint32_t{TENON_REASON_NONE};
  if (is_about_strides(reason) && drawn.is_strided()) return;
  if (reason == TENON_REASON_OPTIONS && (drawn.math != TENON_MATH_STRICT || drawn.options.deterministic)) return;
  throw Failure(
      fmt::format("`supports` says yes to dense inputs and default options, but here {}: expected yes, or the reason STRIDES or "
                  "OPTIONS where they differ ({})",
                  reply.str(), where));
}

/// An independent second node must not change the answer, unless plans have only one node.
void check_with_second_node(const Device& device, const RandomNode& drawn, const Net& net, const Reply& reply, const std::string& where) {
  if (reply.status != TENON_OK || (device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) != 0) return;
  Net both = net;
  const tenon_plan_options options = abi_plan_options(drawn.options, drawn.math);
  const OpLine& relu = line_of(TENON_OP_Relu);
  const tenon_attributes_none none{sizeof none, 0};
  const std::uint32_t x = both.input(Array(TENON_DTYPE_F32, {3, 4})), y = both.output(TENON_DTYPE_F32, {3, 4});
  both.node(relu.op, relu.version, &none, {x}, {y});
  const Reply together = ask(device, both, options, where + ", with an independent Relu");
  if (together.status != TENON_OK) {
    throw Failure(fmt::format("`supports` said {}, and with an independent Relu in the graph {} ({})", reply.str(), together.str(), where));
  }
  if (together.says_yes(0) != reply.says_yes(0) || (!reply.says_yes() && together.answers[0].reason != reply.answers[0].reason)) {
    throw Failure(fmt::format("`supports` said {}, and with an independent Relu in the graph {} ({})", reply.str(), together.str(), where));
  }
  plan_only(device, both, options, together, true, where + ", with an independent Relu");
}

/// After a yes, executes the node and compares with the oracle; on the oracle, with its own result for dense inputs.
void check_yes(const CaseContext& context, const RandomNode& drawn, const Instance& at, const Net& net, const std::vector<Array>& inputs,
               const std::string& where) {
  std::vector<Array> got;
  try {
    got = context.run(net, drawn.options);
  } catch (const Failure& failure) {
    throw Failure(fmt::format("{} ({})", failure.what(), where));
  }
  if (!is_known(*at.op_case, at.dtype) || at.all_results_empty()) return;
  // Equal terms, which a stride of 0 makes of a line, round in one direction, by more than the bounds of sums of different terms. The
  // oracle sums in more bits than the device except in f64; there the device's result for dense inputs is expected.
  const bool repeats = std::any_of(drawn.setting.layouts.begin(), drawn.setting.layouts.end(), [](const Layout& layout) {
    return std::find(layout.strides.begin(), layout.strides.end(), 0) != layout.strides.end();
  });
  const bool judged = context.oracle != nullptr && !(repeats && at.dtype == TENON_DTYPE_F64);
  const auto expected = judged ? oracle_answer(context, at, inputs) : context.run(at.net(inputs));
  // In f64 the oracle is no wider than the device under test, so both may be off by the bound, as may two runs of one device.
  const bool wider = judged && at.dtype != TENON_DTYPE_F64;
  expect_close(expected, got, wider ? at.bound() : at.bound().times(2), where + (judged ? "" : ", expected the result of dense inputs"));
}

/// The node with operands of other dtypes: the answer is binding, whatever it is.
void check_other_dtypes(const CaseContext& context, const Instance& at, const Net& other, const std::string& where) {
  const Device& device = context.device;
  if (!device.computes_with(other)) return;
  const tenon_plan_options none = abi_plan_options({});
  std::string types;
  for (const Net::Value& value : other.values) types += fmt::format(" {}{}", sdk::name_of(value.dtype), str(value.shape));
  const std::string here = fmt::format("{}, with other dtypes:{}", where, types);
  const Reply answer = ask(device, other, none, here);
  plan_only(device, other, none, answer, keeps_the_rule(*at.line, other), here);
  if (answer.says_yes() && keeps_the_rule(*at.line, other)) {
    try {
      context.run(other);
    } catch (const Failure& failure) {
      throw Failure(fmt::format("{} ({})", failure.what(), here));
    }
  }
}

/// Throws Failure, or Unsupported if a mandatory dtype is not supported.
void check(const CaseContext& context, const OpCase& op_case, const std::string& name, Random& random) {
  const RandomNode drawn = random_node(op_case, random);
  const Instance at{&op_case, &line_of(op_case.op), &drawn.variant, drawn.dtype, name};
  const std::vector<Array> inputs = operands_of(drawn, at, random.bits());
  const std::string where = describe(drawn, inputs);
  const Device& device = context.device;

  const Net dense = at.net(inputs), net = bound_net(drawn, at, inputs);
  if (!device.computes_with(dense)) return;
  const tenon_plan_options none = abi_plan_options({}), options = abi_plan_options(drawn.options, drawn.math);
  const Reply plain = ask(device, dense, none, where + ", dense inputs and default options");
  check_table(device, at, plain, where);
  plan_only(device, dense, none, plain, true, where + ", dense inputs and default options");

  const Reply reply = ask(device, net, options, where);
  check_reason(drawn, plain, reply, where);
  plan_only(device, net, options, reply, true, where);
  check_with_second_node(device, drawn, net, reply, where);

  const auto only_ask = [&](const std::optional<Net>& other, bool is_valid, const char* what) {
    if (!other) return;
    std::string shapes;
    for (const Net::Value& value : other->values) shapes += " " + str(value.shape);
    const std::string here = fmt::format("{}, {}:{}", where, what, shapes);
    const Reply answer = ask(device, *other, options, here);
    plan_only(device, *other, options, answer, is_valid, here);
  };
  only_ask(grown(*at.line, net, random), true, "enlarged to");
  only_ask(broken(*at.line, net, random), false, "with shapes that do not fit");

  check_other_dtypes(context, at, retyped(*at.line, dense, random), where);

  // The bounds of ops hold for strict math only.
  if (reply.says_yes() && drawn.math == TENON_MATH_STRICT) check_yes(context, drawn, at, net, inputs, where);
  const bool mandatory = (at.line->dtypes & TENON_DTYPE_BIT(at.dtype)) != 0;
  if (mandatory && !plain.says_yes()) throw Unsupported(fmt::format("{} ({})", plain.str(), where));
}

void check_all(const CaseContext& context, const OpCase& op_case, const std::string& name) {
  Random random(seed_for(context.seed, name));
  std::string unsupported;
  for (int round = 0; round < (small_sizes() ? small_rounds : full_rounds); ++round) {
    try {
      check(context, op_case, name, random);
    } catch (const Unsupported& no) {
      if (unsupported.empty()) unsupported = no.what();
    }
  }
  if (!unsupported.empty()) throw Unsupported(unsupported);
}

}  // namespace

std::vector<Case> capability_consistency_case_list() {
  // Cases point into it. The sizes are set before the first call.
  static const std::vector<OpCase> ops = all_op_cases();
  std::vector<Case> cases;
  for (const OpCase& op_case : ops) {
    const OpLine& line = line_of(op_case.op);
    for (int n = 0; n < (small_sizes() ? small_count : full_count); ++n) {
      std::string name = fmt::format("capability_consistency/{}/{}", line.stem, n);
      const auto run = [&op_case, name](CaseContext& context) { check_all(context, op_case, name); };
      cases.push_back({name, line.stem, "capability_consistency", TENON_DTYPE_NONE, true, run});
    }
  }
  return cases;
}

}  // namespace tenon::conformance
