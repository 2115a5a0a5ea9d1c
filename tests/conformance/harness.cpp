// From what a room says about an op to named cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <thread>

#include <tenon/sdk/kernel.h>

#include "instance.h"
#include "shared_answers.h"

namespace tenon::conformance {

namespace {
bool any_empty(const Variant& variant) {
  return std::any_of(variant.inputs.begin(), variant.inputs.end(),
                     [](const OperandSpec& i) { return i.present && count_of(i.shape) == 0; }) ||
         std::any_of(variant.outputs.begin(), variant.outputs.end(),
                     [](const ResultSpec& o) { return o.present && count_of(o.shape) == 0; });
}
}  // namespace

bool Instance::any_empty() const {
  return conformance::any_empty(*variant);
}
bool Instance::all_results_empty() const {
  return std::all_of(variant->outputs.begin(), variant->outputs.end(),
                     [](const ResultSpec& o) { return !o.present || count_of(o.shape) == 0; });
}

namespace {

/// What the checks of one instance have in common: they follow one another, and are about the same operands.
struct Shared {
  std::string name;
  std::uint64_t seed = 0;
  std::vector<Array> inputs;
  std::optional<std::vector<Array>> dense = {};  ///< what the device under test makes of them, dense and apart
};
Shared shared;
Shared& shared_by(const Instance& at, std::uint64_t seed) {
  if (shared.name != at.name || shared.seed != seed) shared = {at.name, seed, fill(*at.variant, at.dtype, seed_for(seed, at.name))};
  return shared;
}
}  // namespace

std::vector<Array> Instance::inputs(std::uint64_t seed) const {
  return shared_by(*this, seed).inputs;
}

namespace {

/// The plainest run, which others are held against; made once. That it gives the same bits every time is a case of its own.
const std::vector<Array>& dense_answer(const Kit& kit, const Instance& at) {
  Shared& own = shared_by(at, kit.seed);
  if (!own.dense) own.dense = kit.run(at.net(own.inputs));
  return *own.dense;
}

/// "f32(8,10); f32(10); axis=1".
std::string operands_of(const Variant& variant, tenon_dtype dtype) {
  std::string text;
  for (const OperandSpec& spec : variant.inputs) {
    text += (text.empty() ? "" : "; ") + (spec.present ? sdk::name_of(resolved(spec.dtype, dtype)) + str(spec.shape) : "absent");
  }
  return variant.label.empty() ? text : text + "; " + variant.label;
}
/// A check whose failures say what its operands are.
std::function<void(Kit&)> about(const Variant& variant, tenon_dtype dtype, std::function<void(Kit&)> run) {
  return [&variant, dtype, run = std::move(run)](Kit& kit) {
    try {
      run(kit);
    } catch (Failure& failure) {
      if (failure.facts.shapes.empty()) failure.facts.shapes = operands_of(variant, dtype);
      throw;
    }
  };
}
/// "(20,2); dense".
std::string strides_of(const std::vector<Layout>& layouts) {
  std::string text;
  for (const Layout& layout : layouts) {
    text += (text.empty() ? "" : "; ") + (layout.strides.empty() ? "dense" : str(layout.strides));
    if (layout.offset != 0) text += fmt::format(" {} element off alignment", layout.offset);
  }
  return text;
}
}  // namespace

std::string describe(const std::vector<Array>& inputs, const std::vector<Layout>& layouts) {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!text.empty()) text += "; ";
    text += inputs[i].dtype() == TENON_DTYPE_NONE ? "absent" : inputs[i].str();
    if (i < layouts.size() && !layouts[i].strides.empty()) text += " strides " + str(layouts[i].strides);
    if (i < layouts.size() && layouts[i].offset != 0) text += fmt::format(" {} element off alignment", layouts[i].offset);
  }
  return "inputs " + text;
}

void expect_close(const std::vector<Array>& want, const std::vector<Array>& got, const Bound& bound, const std::string& where) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Wrong wrong = difference(want[i], got[i], bound);
    if (!wrong.empty()) throw Failure(fmt::format("output {}: {} ({})", i, wrong.text, where), wrong.facts);
  }
}

namespace {
void expect_same_bits(const std::vector<Array>& want, const std::vector<Array>& got, const std::string& what, const std::string& where) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (want[i].same_bits(got[i])) continue;
    std::string first = "NaN patterns differ";
    Facts facts;
    for (std::int64_t e = 0; e < got[i].count(); ++e) {
      const auto size = static_cast<std::size_t>(got[i].element_size());
      if (std::memcmp(want[i].bytes() + e * got[i].element_size(), got[i].bytes() + e * got[i].element_size(), size) == 0) continue;
      facts.element = index_of(e, got[i].shape());
      facts.wanted = want[i].str(e);
      facts.got = got[i].str(e);
      first = fmt::format("element {} was {}, then {}", facts.element, facts.wanted, facts.got);
      break;
    }
    throw Failure(fmt::format("output {}: {}: {} ({})", i, what, first, where), facts);
  }
}
}  // namespace

// ---------------------------------------------------------------- the answer

std::vector<Array> oracle_answer(const Kit& kit, const Instance& at, const std::vector<Array>& inputs) {
  const bool widen = at.op_case->oracle == Oracle::widened && is_float(at.dtype);
  if (!widen) return kit.judge(at.net(inputs));
  std::vector<Array> wide;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OperandSpec& spec = at.variant->inputs[i];
    const bool selected = spec.present && (spec.dtype == TENON_DTYPE_NONE || spec.dtype == dtype_of_sums);
    wide.push_back(selected ? inputs[i].as(TENON_DTYPE_F64) : inputs[i]);
  }
  return kit.judge(net_of(*at.line, *at.variant, TENON_DTYPE_F64, wide));
}

namespace {

void check_forward(Kit& kit, const Instance& at) {
  const auto inputs = at.inputs(kit.seed);
  const auto got = kit.run(at.net(inputs));
  if (at.all_results_empty()) return;
  expect_close(oracle_answer(kit, at, inputs), got, at.bound(), describe(inputs));
}

void put_specials(Array& array, Special special, Random& random) {
  if (special == Special::none || !is_float(array.dtype()) || array.count() == 0) return;
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values{inf, -inf, smallest(array.dtype()), -3 * smallest(array.dtype()), -0.0};
  if (special != Special::infinite) values.push_back(std::numeric_limits<double>::quiet_NaN());
  if (special == Special::all) {
    values.push_back(largest(array.dtype()));
    values.push_back(-largest(array.dtype()));
    values.push_back(smallest_normal(array.dtype()));
    values.push_back(0.0);
  }
  // One in three, so that specials also meet ordinary numbers.
  for (std::int64_t i = 0; i < array.count(); ++i) {
    if (random.integer(0, 3) == 0)
      array.set(i, values[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(values.size())))]);
  }
}

void check_special(Kit& kit, const Instance& at) {
  auto inputs = at.inputs(kit.seed);
  Random random(seed_for(kit.seed, at.name + "/special"));
  for (std::size_t i = 0; i < inputs.size(); ++i) put_specials(inputs[i], at.variant->inputs[i].values.special, random);
  const auto got = kit.run(at.net(inputs));
  expect_close(oracle_answer(kit, at, inputs), got, at.bound(), describe(inputs) + " with NaN, Inf and denormals");
}

// ---------------------------------------------------------------- behaviour: the backend against itself

void check_guards(Kit& kit, const Instance& at) {
  const auto inputs = at.inputs(kit.seed);
  const Net net = at.net(inputs);
  // What an output held before, and what the workspace held, must not matter.
  const auto first = kit.run(net, {.deterministic = true}, 0xFF);
  const auto second = kit.run(net, {.deterministic = true}, 0x40);
  expect_same_bits(first, second, "the result depends on what output or workspace held before", describe(inputs));
}

void check_deterministic(Kit& kit, const Instance& at) {
  const auto inputs = at.inputs(kit.seed);
  const Net net = at.net(inputs);
  const Plan plan(kit.device, net, {.deterministic = true});
  if (!plan.failure().empty()) throw Failure(plan.failure());
  if (plan.refused()) throw Unsupported(plan.why());
  Plan::Bindings bindings(plan, 0xFF);
  const Outcome first = bindings.execute(1);
  const Outcome second = bindings.execute(1);
  const Outcome elsewhere = plan.run(0x55);
  for (const Outcome* outcome : {&first, &second, &elsewhere}) {
    if (!outcome->ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome->status), outcome->text));
    if (!outcome->damage.empty()) throw Failure("the execution " + outcome->damage);
  }
  expect_same_bits(first.outputs, second.outputs, "other bits the second time", describe(inputs));
  expect_same_bits(first.outputs, elsewhere.outputs, "other bits at other addresses", describe(inputs));
}

enum class Arrangement { strided, negative_stride, transposed, broadcast_stride, misaligned };
constexpr struct {
  Arrangement arrangement;
  const char* name;
} arrangements[] = {{Arrangement::strided, "strided"},
                    {Arrangement::negative_stride, "negative_stride"},
                    {Arrangement::transposed, "transposed"},
                    {Arrangement::broadcast_stride, "broadcast_stride"},
                    {Arrangement::misaligned, "misaligned"}};

Layout arrange(Arrangement arrangement, const Dims& shape) {
  Layout layout;
  switch (arrangement) {
    case Arrangement::strided: {  // a gap after each element and each row
      std::int64_t stride = 2;
      layout.strides.resize(shape.size());
      for (std::size_t d = shape.size(); d-- > 0;) {
        layout.strides[d] = stride;
        stride = stride * std::max<std::int64_t>(shape[d], 1) + 3;
      }
      break;
    }
    case Arrangement::negative_stride:
      layout.strides = dense_strides(shape);
      for (std::int64_t& stride : layout.strides) stride = -stride;
      break;
    case Arrangement::transposed: {  // the first dimension is the innermost in memory
      layout.strides.resize(shape.size());
      std::int64_t stride = 1;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        layout.strides[d] = stride;
        stride *= std::max<std::int64_t>(shape[d], 1);
      }
      break;
    }
    case Arrangement::broadcast_stride: {
      layout.strides = dense_strides(shape);
      std::size_t repeated = 0;
      while (repeated < shape.size() && shape[repeated] == 1) ++repeated;
      for (std::size_t d = 0; d < repeated; ++d) layout.strides[d] = 0;
      if (repeated < shape.size()) layout.strides[repeated] = 0;
      break;
    }
    case Arrangement::misaligned:
      layout.offset = 1;
      break;
  }
  return layout;
}

/// The elements that a layout with repeated elements shows: each comes from where its strides point.
Array seen_through(const Array& array, const Dims& strides) {
  Array result = array;
  const Dims dense = dense_strides(array.shape());
  for (std::int64_t i = 0; i < array.count(); ++i) {
    std::int64_t source = 0, rest = i;
    for (std::size_t d = 0; d < dense.size(); ++d) {
      source += strides[d] == 0 ? 0 : rest / dense[d] * dense[d];
      rest %= dense[d];
    }
    std::memcpy(result.bytes() + i * array.element_size(), array.bytes() + source * array.element_size(),
                static_cast<std::size_t>(array.element_size()));
  }
  return result;
}

bool may_be_arranged(const OperandSpec& spec) {
  return spec.present && spec.dtype != TENON_DTYPE_U64 && !spec.shape.empty();
}

void check_arrangement(Kit& kit, const Instance& at, Arrangement arrangement) {
  auto inputs = at.inputs(kit.seed);
  Setting setting;
  setting.layouts.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OperandSpec& spec = at.variant->inputs[i];
    if (!may_be_arranged(spec) && arrangement != Arrangement::misaligned) continue;  // keys and scalars have one arrangement
    setting.layouts[i] = arrange(arrangement, spec.shape);
    if (arrangement == Arrangement::broadcast_stride) inputs[i] = seen_through(inputs[i], setting.layouts[i].strides);
  }
  const auto dense = arrangement == Arrangement::broadcast_stride ? kit.run(at.net(inputs)) : dense_answer(kit, at);
  const std::string where = describe(inputs, setting.layouts);
  const Net net = at.net(inputs, setting);
  const Plan plan(kit.device, net);
  if (plan.refused() && plan.reason() == TENON_REASON_STRIDES && plan.failure().empty()) {
    throw NotRun("the backend takes dense operands only and says so: the core copies (" + plan.why() + ")");
  }
  const auto strided = [&](Failure failure) {
    failure.facts.strides = strides_of(setting.layouts);
    return failure;
  };
  std::vector<Array> got;
  try {
    got = kit.run(net);
  } catch (const Failure& failure) {
    throw strided(Failure(fmt::format("{} ({})", failure.what(), where), failure.facts));
  }
  try {
    // Both may be off by the bound, in different directions: blocking of loops follows strides and alignment.
    expect_close(dense, got, at.bound().times(2), where + ", wanted what dense operands give");
  } catch (const Failure& failure) {
    throw strided(failure);
  }
}

void check_in_place(Kit& kit, const Instance& at, const std::vector<tenon_donation>& donations) {
  const auto inputs = at.inputs(kit.seed);
  const auto apart = dense_answer(kit, at);
  Setting setting;
  setting.donations = donations;
  const auto got = kit.run(at.net(inputs, setting));
  expect_close(apart, got, at.bound().times(2), describe(inputs) + ", wanted what separate memory gives");
}

void check_concurrent(Kit& kit, const Instance& at) {
  const auto inputs = at.inputs(kit.seed);
  const Net net = at.net(inputs);
  const Plan plan(kit.device, net, {.deterministic = true});
  if (!plan.failure().empty()) throw Failure(plan.failure());
  if (plan.refused()) throw Unsupported(plan.why());
  const Outcome alone = plan.run();
  if (!alone.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(alone.status), alone.text));
  constexpr int rounds = 4;
  std::vector<Outcome> outcomes[2];
  std::string broken[2];
  const auto worker = [&](int w) {
    const tenon_backend_table& table = kit.device.table();
    ErrorText error;
    tenon_stream* stream = nullptr;
    if (table.stream_create(kit.device.handle(), &stream, error) != TENON_OK) {
      broken[w] = "a second stream: " + error.text();
      return;
    }
    try {
      Plan::Bindings bindings(plan, w == 0 ? 0xFF : 0x33);
      for (int round = 0; round < rounds; ++round) outcomes[w].push_back(bindings.execute(1, stream));
    } catch (const std::exception& e) {
      broken[w] = e.what();
    }
    table.stream_destroy(stream);
  };
  std::thread other(worker, 1);
  worker(0);
  other.join();
  for (int w = 0; w < 2; ++w) {
    if (!broken[w].empty()) throw Failure(fmt::format("thread {}: {}", w, broken[w]));
    for (const Outcome& outcome : outcomes[w]) {
      if (!outcome.ok())
        throw Failure(fmt::format("thread {}: execution failed with {}: {}", w, status_name(outcome.status), outcome.text));
      if (!outcome.damage.empty()) throw Failure(fmt::format("thread {}: the execution {}", w, outcome.damage));
      expect_same_bits(alone.outputs, outcome.outputs, fmt::format("other bits when thread {} runs beside another", w), describe(inputs));
    }
  }
}

void check_constants(Kit& kit, const Instance& at) {
  const auto inputs = at.inputs(kit.seed);
  const auto want = dense_answer(kit, at);
  Setting setting;
  setting.kind = TENON_VALUE_CONSTANT;
  // The bytes are the plan's from plan_create on: those they were copied from are gone when it runs.
  std::unique_ptr<Plan> plan;
  Net net = at.net(inputs, setting);
  plan = std::make_unique<Plan>(kit.device, net);
  if (!plan->failure().empty()) throw Failure(plan->failure());
  if (plan->refused()) throw Unsupported(plan->why());
  for (Net::Value& value : net.values) {
    if (value.kind == TENON_VALUE_CONSTANT && value.array.size_bytes() > 0)
      std::memset(value.array.bytes(), 0xFF, value.array.size_bytes());
  }
  for (int round = 0; round < 2; ++round) {
    const Outcome outcome = plan->run();
    if (!outcome.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome.status), outcome.text));
    if (!outcome.damage.empty()) throw Failure("the execution " + outcome.damage);
    expect_close(want, outcome.outputs, at.bound().times(2), describe(inputs) + ", all of them constants; wanted what inputs give");
  }
}

void check_parameters(Kit& kit, const Instance& at) {
  const auto first = at.inputs(kit.seed);
  const auto second = fill(*at.variant, at.dtype, seed_for(kit.seed, at.name + "/epoch 2"));
  const auto want_first = dense_answer(kit, at);
  const auto want_second = kit.run(at.net(second));
  Setting setting;
  setting.kind = TENON_VALUE_PARAMETER;
  const Net net = at.net(first, setting);
  const Plan plan(kit.device, net);
  if (!plan.failure().empty()) throw Failure(plan.failure());
  if (plan.refused()) throw Unsupported(plan.why());
  Plan::Bindings bindings(plan, 0xFF);
  const auto expect = [&](std::uint64_t epoch, const std::vector<Array>& want) {
    const Outcome outcome = bindings.execute(epoch);
    if (!outcome.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome.status), outcome.text));
    if (!outcome.damage.empty()) throw Failure("the execution " + outcome.damage);
    expect_close(want, outcome.outputs, at.bound().times(2),
                 fmt::format("{}, all of them parameters, in epoch {}", describe(first), epoch));
  };
  const auto bind = [&](const std::vector<Array>& arrays) {
    std::uint32_t value = 0;
    for (const Array& array : arrays) {
      if (array.dtype() != TENON_DTYPE_NONE) bindings.set(value++, array);
    }
  };
  expect(1, want_first);
  expect(1, want_first);
  bind(second);
  expect(2, want_second);
  bind(first);
  expect(7, want_first);
}

void check_property(Kit& kit, const Instance& at, const Property& property) {
  const auto inputs = at.inputs(kit.seed);
  const auto outputs = dense_answer(kit, at);
  const std::string broken = property.broken(*at.variant, at.dtype, inputs, outputs);
  if (!broken.empty()) throw Failure(fmt::format("\"{}\" does not hold: {} ({})", property.name, broken, describe(inputs)));
}

// ---------------------------------------------------------------- golden vectors, refusals

void check_golden(Kit& kit, const OpCase& op_case, const Golden& golden, tenon_dtype dtype) {
  const OpLine& line = line_of(op_case.op);
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < golden.variant.inputs.size(); ++i) {
    const OperandSpec& spec = golden.variant.inputs[i];
    if (!spec.present) {
      inputs.emplace_back();
    } else {
      inputs.emplace_back(resolved(spec.dtype, dtype), spec.shape, golden.inputs[i]);
    }
  }
  std::vector<Array> want;
  for (std::size_t i = 0; i < golden.variant.outputs.size(); ++i) {
    const ResultSpec& spec = golden.variant.outputs[i];
    if (!spec.present) continue;
    const tenon_dtype type = resolved(spec.dtype, dtype);
    want.emplace_back(is_float(type) ? tenon_dtype{TENON_DTYPE_F64} : type, spec.shape, golden.outputs[i]);
  }
  const auto got = kit.run(net_of(line, golden.variant, dtype, inputs));
  Bound bound = op_case.bound != nullptr ? op_case.bound(golden.variant, dtype) : Bound{};
  if (golden.bound != nullptr) bound = golden.bound(dtype);
  expect_close(want, got, bound, describe(inputs) + ", wanted values worked out elsewhere");
}

void check_bad_argument(Kit& kit, const OpCase& op_case, const BadArgument& bad, tenon_dtype dtype) {
  const OpLine& line = line_of(op_case.op);
  auto inputs = fill(bad.variant, dtype, seed_for(kit.seed, line.stem + bad.name));
  bad.spoil(inputs);
  const Net net = net_of(line, bad.variant, dtype, inputs);
  const Plan plan(kit.device, net);
  if (!plan.failure().empty()) throw Failure(plan.failure());
  if (plan.refused()) throw Unsupported(plan.why());
  const Outcome outcome = plan.run();
  if (outcome.ok()) throw Failure(fmt::format("wanted INVALID_ARGUMENT, got OK ({})", describe(inputs)));
  if (outcome.status != TENON_INVALID_ARGUMENT) {
    throw Failure(fmt::format("wanted INVALID_ARGUMENT, got {}: {}", status_name(outcome.status), outcome.text));
  }
  if (!outcome.damage.empty()) throw Failure("the execution was refused, and " + outcome.damage);
  for (const std::string& word : bad.words) {
    if (outcome.text.find(word) == std::string::npos)
      throw Failure(fmt::format("the message does not name '{}': \"{}\"", word, outcome.text));
  }
  // The device is as good as before.
  kit.run(net_of(line, op_case.variants.front(), dtype, fill(op_case.variants.front(), dtype, kit.seed)));
}

/// The capability table and `supports` say the same, and a no has a reason.
void check_refusals(Kit& kit, const OpCase& op_case) {
  const OpLine& line = line_of(op_case.op);
  const Variant& variant = op_case.variants.front();
  const std::uint64_t promised = kit.device.capability(line.op, line.version);
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) {
    std::vector<Array> inputs;
    for (const OperandSpec& spec : variant.inputs) {
      inputs.push_back(spec.present ? Array(resolved(spec.dtype, t), spec.shape) : Array());
    }
    const Net net = net_of(line, variant, t, inputs);
    const Plan plan(kit.device, net);
    const std::string type = sdk::name_of(t);
    if (!plan.failure().empty()) throw Failure(type + ": " + plan.failure());
    const bool stated = (promised & TENON_DTYPE_BIT(t)) != 0;
    if (stated == plan.refused()) {
      throw Failure(fmt::format("{}: the capability table says {}, `supports` says {}{}", type, stated ? "yes" : "no",
                                plan.refused() ? "no" : "yes", plan.refused() ? ": " + plan.why() : ""));
    }
  }
  OpLine unknown = line;
  unknown.version = 4711;
  const tenon_dtype first = dtypes_of(op_case).front();
  const Net net = net_of(unknown, variant, first, fill(variant, first, kit.seed));
  const Plan plan(kit.device, net);
  if (!plan.failure().empty()) throw Failure("version 4711: " + plan.failure());
  if (!plan.refused()) throw Failure("version 4711 of the op does not exist, yet `supports` says yes");
  if (plan.reason() != TENON_REASON_OP)
    throw Failure(fmt::format("version 4711: wanted the reason OP, got {} ({})", plan.reason(), plan.why()));
}

// ---------------------------------------------------------------- the list

/// An empty list is all of them.
bool listed(const std::vector<tenon_dtype>& dtypes, tenon_dtype dtype) {
  return dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

std::string shapes_of(const Variant& variant) {
  std::string text;
  for (const OperandSpec& spec : variant.inputs) {
    if (!text.empty()) text += ",";
    text += spec.present ? str(spec.shape) : "-";
  }
  // Where operands do not tell the result's shape, results do.
  if (variant.inputs.size() == 1 && variant.outputs.size() == 1 && variant.inputs[0].dtype == TENON_DTYPE_U64)
    text = str(variant.outputs[0].shape);
  return text;
}

std::vector<tenon_donation> donations_of(const Instance& at, std::uint32_t input) {
  const OperandSpec& in = at.variant->inputs[input];
  const ResultSpec& out = at.variant->outputs[0];
  if (!in.present || !out.present || in.shape != out.shape) return {};
  if (resolved(in.dtype, at.dtype) != resolved(out.dtype, at.dtype)) return {};
  return {{input, 0}};
}

/// Finite differences execute the op some hundred times: large variants prove nothing that small ones do not. Nor do they for races.
constexpr std::int64_t most_for_many_runs = 5000;
std::int64_t elements(const Variant& variant) {
  std::int64_t total = 0;
  for (const OperandSpec& spec : variant.inputs) total += count_of(spec.shape);
  for (const ResultSpec& spec : variant.outputs) total += count_of(spec.shape);
  return total;
}

/// The one that is run on two threads at once: the largest of those that are not large, since a race needs time.
const Variant* for_concurrency(const OpCase& op_case) {
  const Variant* best = nullptr;
  for (const Variant& variant : op_case.variants) {
    if (any_empty(variant)) continue;
    const std::int64_t size = elements(variant), most = best != nullptr ? elements(*best) : 0;
    const bool better = most > most_for_many_runs ? size < most : size > most && size <= most_for_many_runs;
    if (best == nullptr || better) best = &variant;
  }
  return best;
}

void add_instance(const Instance& at, bool concurrent, std::vector<Case>& out) {
  const auto add = [&](const std::string& check, std::function<void(Kit&)> run) {
    out.push_back({at.name + "/" + check, at.line->stem, at.line->room, at.dtype, (at.line->dtypes & TENON_DTYPE_BIT(at.dtype)) != 0,
                   about(*at.variant, at.dtype, std::move(run))});
  };
  const bool empty = at.any_empty();
  add(empty ? "empty" : "forward", [at](Kit& kit) { check_forward(kit, at); });
  add("guards", [at](Kit& kit) { check_guards(kit, at); });
  if (empty) return;
  add("deterministic", [at](Kit& kit) { check_deterministic(kit, at); });
  const bool arrangeable = std::any_of(at.variant->inputs.begin(), at.variant->inputs.end(), may_be_arranged);
  for (const auto& entry : arrangements) {
    if (!arrangeable && entry.arrangement != Arrangement::misaligned) continue;
    add(entry.name, [at, arrangement = entry.arrangement](Kit& kit) { check_arrangement(kit, at, arrangement); });
  }
  if (is_float(at.dtype) && std::any_of(at.variant->inputs.begin(), at.variant->inputs.end(),
                                        [](const OperandSpec& spec) { return spec.values.special != Special::none; })) {
    add("special", [at](Kit& kit) { check_special(kit, at); });
  }
  if (!at.variant->donations.empty()) {
    add("in_place", [at](Kit& kit) { check_in_place(kit, at, at.variant->donations); });
  } else {
    for (std::uint32_t i = 0; i < at.variant->inputs.size(); ++i) {
      const auto donations = donations_of(at, i);
      if (!donations.empty()) add(fmt::format("in_place_{}", i), [at, donations](Kit& kit) { check_in_place(kit, at, donations); });
    }
  }
  for (const Property& property : at.op_case->also) {
    add(property.name, [at, &property](Kit& kit) { check_property(kit, at, property); });
  }
  add("constants", [at](Kit& kit) { check_constants(kit, at); });
  add("parameters", [at](Kit& kit) { check_parameters(kit, at); });
  if (concurrent) add("concurrent", [at](Kit& kit) { check_concurrent(kit, at); });
  if (at.dtype == TENON_DTYPE_F64 && !at.op_case->gradient.empty() && elements(*at.variant) <= most_for_many_runs) {
    add("gradient", [at](Kit& kit) { check_gradient(kit, *at.op_case, *at.variant, seed_for(kit.seed, at.name)); });
  }
}

}  // namespace

void forget_shared_answers() {
  shared = {};
}

std::vector<Case> op_case_list(const std::vector<OpCase>& op_cases) {
  std::vector<Case> cases;
  for (const OpCase& op_case : op_cases) {
    const OpLine& line = line_of(op_case.op);
    const auto mandatory = [&](tenon_dtype dtype) { return (line.dtypes & TENON_DTYPE_BIT(dtype)) != 0; };
    const std::vector<tenon_dtype> dtypes = dtypes_of(op_case);
    const Variant* concurrent = for_concurrency(op_case);
    for (const tenon_dtype dtype : dtypes) {
      const std::string type = sdk::name_of(dtype);
      for (const Variant& variant : op_case.variants) {
        std::string name = fmt::format("{}/{}{}", line.stem, type, shapes_of(variant));
        if (!variant.label.empty()) name += "/" + variant.label;
        const Instance instance{&op_case, &line, &variant, dtype, name};
        add_instance(instance, &variant == concurrent, cases);
      }
      for (const Golden& golden : op_case.golden) {
        if (!listed(golden.dtypes, dtype)) continue;
        cases.push_back(
            {fmt::format("{}/{}/golden/{}", line.stem, type, golden.name), line.stem, line.room, dtype, mandatory(dtype),
             about(golden.variant, dtype, [&op_case, &golden, dtype](Kit& kit) { check_golden(kit, op_case, golden, dtype); })});
      }
      for (const BadArgument& bad : op_case.bad) {
        if (!listed(bad.dtypes, dtype)) continue;
        cases.push_back({fmt::format("{}/{}/bad_argument/{}", line.stem, type, bad.name), line.stem, line.room, dtype, mandatory(dtype),
                         about(bad.variant, dtype, [&op_case, &bad, dtype](Kit& kit) { check_bad_argument(kit, op_case, bad, dtype); })});
      }
      for (const Extra& extra : op_case.extras) {
        cases.push_back({fmt::format("{}/{}/{}", line.stem, type, extra.name), line.stem, line.room, dtype, mandatory(dtype),
                         [&extra, dtype](Kit& kit) { extra.check(kit, dtype); }});
      }
    }
    cases.push_back({fmt::format("{}/refusals", line.stem), line.stem, line.room, TENON_DTYPE_NONE, true,
                     [&op_case](Kit& kit) { check_refusals(kit, op_case); }});
  }
  return cases;
}

}  // namespace tenon::conformance
