// SPDX-License-Identifier: Apache-2.0
// The checks of an instance: its results against the oracle's, its behaviour against itself.
#include "op_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <thread>

#include "platform/access_violation.h"
#include "text/counted.h"

namespace tenon::conformance {
namespace {

/// "(20,2); dense".
std::string strides_of(const std::vector<Layout>& layouts) {
  std::string text;
  for (const Layout& layout : layouts) {
    text += (text.empty() ? "" : "; ") + (layout.strides.empty() ? "dense" : str(layout.strides));
    if (layout.offset != 0) text += fmt::format(" {} alignments behind a larger one", layout.offset);
  }
  return text;
}
void put_specials(Array& array, Special special, Random& random) {
  if (special == Special::none || !is_float(array.dtype()) || array.count() == 0) return;
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values{inf, -inf, -0.0};
  if (special != Special::infinite) values.push_back(std::numeric_limits<double>::quiet_NaN());
  if (special != Special::not_small) {
    values.push_back(smallest(array.dtype()));
    values.push_back(-3 * smallest(array.dtype()));
  }
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

/// Products of bf16 may take subnormal operands for 0, as the instructions for them do: which of both makes a difference where the other
/// operand is infinite.
bool may_drop_subnormals(tenon_op op, tenon_dtype dtype) {
  static constexpr tenon_op products[] = {TENON_OP_MatMul,         TENON_OP_Gemm,          TENON_OP_Conv,      TENON_OP_ConvInputGrad,
                                          TENON_OP_ConvWeightGrad, TENON_OP_ConvTranspose, TENON_OP_Attention, TENON_OP_AttentionGrad,
                                          TENON_OP_LSTM,           TENON_OP_GRU,           TENON_OP_RNN};
  return dtype == TENON_DTYPE_BF16 && std::find(std::begin(products), std::end(products), op) != std::end(products);
}

void drop_subnormals(Array& array) {
  for (std::int64_t i = 0; array.dtype() == TENON_DTYPE_BF16 && i < array.count(); ++i) {
    if (std::abs(array.at(i)) < smallest_normal(array.dtype())) array.set(i, 0);
  }
}

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

}  // namespace

// ---------------------------------------------------------------- results

void check_forward(CaseContext& context, const Instance& at) {
  const auto inputs = at.inputs(context);
  const auto got = context.run(at.net(inputs));
  if (at.all_results_empty()) return;
  expect_close(oracle_answer(context, at, inputs), got, at.bound(), describe(inputs));
}

void check_special(CaseContext& context, const Instance& at) {
  auto inputs = at.inputs(context);
  Random random(seed_for(context.seed, at.name + "/special"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    put_specials(inputs[i], at.variant->inputs[i].values.special, random);
    if (may_drop_subnormals(at.line->op, at.dtype)) drop_subnormals(inputs[i]);
  }
  const auto got = context.run(at.net(inputs));
  expect_close(oracle_answer(context, at, inputs), got, at.bound(), describe(inputs) + " with NaN, Inf and denormals");
}

// ---------------------------------------------------------------- behaviour: the backend against itself

void check_guards(CaseContext& context, const Instance& at) {
  const auto inputs = at.inputs(context);
  const Net net = at.net(inputs);
  // The previous content of outputs and workspace must not matter.
  const auto first = context.run(net, {.deterministic = true}, 0xFF);
  const auto second = context.run(net, {.deterministic = true}, 0x40);
  expect_same_bits(first, second, "the result depends on the previous content of output or workspace", describe(inputs));
}

void check_pages(CaseContext& context, const Instance& at) {
  if ((context.device.device_info().flags & TENON_DEVICE_HOST_ADDRESSABLE) == 0)
    throw NotRun("the device's memory is not the host's, whose pages the kit can make inaccessible");
  const auto inputs = at.inputs(context);
  const auto expected = at.dense_answer(context);
  const Net net = at.net(inputs);
  const Plan plan(context.device, net);
  expect_made(plan);
  const auto expect = [&](Edge edge, const char* what) {
    const platform::AccessViolationNote note(what);
    Plan::Bindings bindings(plan, 0xFF, edge);
    const Outcome outcome = bindings.execute();
    expect_clean(outcome);
    expect_close(expected, outcome.outputs, at.bound().times(2), describe(inputs) + ", next to pages that cannot be accessed");
  };
  expect(Edge::page_behind, "the execution reads or writes past the end of an operand, a result or the workspace\n");
  expect(Edge::page_before, "the execution reads or writes before the start of an operand, a result or the workspace\n");
}

void check_deterministic(CaseContext& context, const Instance& at) {
  const auto inputs = at.inputs(context);
  const Net net = at.net(inputs);
  const Plan plan(context.device, net, {.deterministic = true});
  expect_made(plan);
  Plan::Bindings bindings(plan, 0xFF);
  const Outcome first = bindings.execute(1);
  const Outcome second = bindings.execute(1);
  const Outcome elsewhere = plan.run(0x55);
  for (const Outcome* outcome : {&first, &second, &elsewhere}) {
    expect_clean(*outcome);
  }
  expect_same_bits(first.outputs, second.outputs, "different bits the second time", describe(inputs));
  expect_same_bits(first.outputs, elsewhere.outputs, "different bits at other addresses", describe(inputs));
}

bool may_be_arranged(const OperandSpec& spec) {
  return spec.present && spec.dtype != TENON_DTYPE_U64 && !spec.shape.empty();
}

void check_arrangement(CaseContext& context, const Instance& at, Arrangement arrangement) {
  auto inputs = at.inputs(context);
  Setting setting;
  setting.layouts.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OperandSpec& spec = at.variant->inputs[i];
    if (!may_be_arranged(spec) && arrangement != Arrangement::misaligned) continue;  // keys and scalars are always dense
    setting.layouts[i] = arrange(arrangement, spec.shape);
    if (arrangement == Arrangement::broadcast_stride) inputs[i] = seen_through(inputs[i], setting.layouts[i].strides);
  }
  const auto dense = arrangement == Arrangement::broadcast_stride ? context.run(at.net(inputs)) : at.dense_answer(context);
  const std::string where = describe(inputs, setting.layouts);
  const Net net = at.net(inputs, setting);
  const Plan plan(context.device, net);
  if (plan.refused() && is_about_strides(plan.reason()) && plan.failure().empty()) {
    throw NotRun("the backend takes only dense operands and says so: the core copies (" + plan.why() + ")");
  }
  const auto strided = [&](Failure failure) {
    failure.facts.strides = strides_of(setting.layouts);
    return failure;
  };
  std::vector<Array> got;
  try {
    got = context.run(net);
  } catch (const Failure& failure) {
    throw strided(Failure(fmt::format("{} ({})", failure.what(), where), failure.facts));
  }
  try {
    // Both may be off by the bound, in different directions: loop blocking depends on strides and alignment.
    expect_close(dense, got, at.bound().times(2), where + ", expected the result of dense operands");
  } catch (const Failure& failure) {
    throw strided(failure);
  }
}

void check_in_place(CaseContext& context, const Instance& at, const std::vector<tenon_donation>& donations) {
  const auto inputs = at.inputs(context);
  const auto apart = at.dense_answer(context);
  Setting setting;
  setting.donations = donations;
  const auto got = context.run(at.net(inputs, setting));
  expect_close(apart, got, at.bound().times(2), describe(inputs) + ", expected the result in separate memory");
}

void check_concurrent(CaseContext& context, const Instance& at) {
  constexpr int rounds = 4;
  // Different operands, so that what one execution writes where the other reads changes a result.
  const std::vector<Array> inputs[2] = {at.inputs(context), fill(*at.variant, at.dtype, seed_for(context.seed, at.name + "/thread 1"))};
  const Net net = at.net(inputs[0]);
  const Plan plan(context.device, net, {.deterministic = true});
  expect_made(plan);
  const auto bind = [&](Plan::Bindings& bindings, int w) {
    std::uint32_t value = 0;
    for (const Array& array : inputs[w]) {
      if (array.dtype() != TENON_DTYPE_NONE) bindings.set(value++, array);
    }
  };
  Outcome sequential[2];
  for (int w = 0; w < 2; ++w) {
    Plan::Bindings bindings(plan, 0xFF);
    bind(bindings, w);
    sequential[w] = bindings.execute();
    expect_clean(sequential[w]);
  }
  std::vector<Outcome> outcomes[2];
  std::string broken[2];
  std::atomic<int> waiting{2};  // both start at the same time
  const auto worker = [&](int w) {
    const tenon_backend_table& table = context.device.table();
    ErrorText error;
    tenon_stream* stream = nullptr;
    const tenon_status status = table.stream_create(context.device.handle(), nullptr, &stream, error);
    if (status != TENON_OK) broken[w] = "a second stream: " + error.text();
    --waiting;
    if (status != TENON_OK) return;
    try {
      Plan::Bindings bindings(plan, w == 0 ? 0xFF : 0x33);
      bind(bindings, w);
      while (waiting > 0) std::this_thread::yield();
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
      expect_same_bits(sequential[w].outputs, outcome.outputs,
                       fmt::format("different bits when thread {} runs concurrently with another", w), describe(inputs[w]));
    }
  }
}

void check_threads(CaseContext& context, const Instance& at) {
  if ((context.device.device_info().flags & TENON_DEVICE_HOST_ADDRESSABLE) == 0)
    throw NotRun("the device's memory is not the host's, so the host's threads do not compute on it");
  const auto inputs = at.inputs(context);
  const Net net = at.net(inputs);
  const auto expected = context.run(net, {.deterministic = true});
  for (const std::uint32_t threads : {1u, 3u, 7u}) {
    const CaseContext there(context.device.on_threads(threads), nullptr, context.seed);
    for (int round = 0; round < (threads == 7 ? 2 : 1); ++round) {
      expect_same_bits(expected, there.run(net, {.deterministic = true}),
                       fmt::format("different bits on a host of {} whose ranges end in another order", counted(threads, "thread")),
                       describe(inputs));
    }
  }
}

std::optional<std::pair<std::size_t, std::size_t>> operands_alike(const Variant& variant) {
  const auto& specs = variant.inputs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (std::size_t j = i + 1; j < specs.size(); ++j) {
      const bool computed = specs[i].dtype == TENON_DTYPE_NONE || specs[i].dtype == dtype_of_sums;  // no indices, keys or conditions
      if (computed && specs[i].present && specs[j].present && specs[i].dtype == specs[j].dtype && specs[i].shape == specs[j].shape)
        return std::pair{i, j};
    }
  }
  return std::nullopt;
}

void check_one_value(CaseContext& context, const Instance& at) {
  const auto [i, j] = *operands_alike(*at.variant);
  auto inputs = at.inputs(context);
  inputs[i] = inputs[j];
  const auto expected = context.run(at.net(inputs));
  Variant without = *at.variant;
  without.inputs[i].present = false;
  Net net = net_of(*at.line, without, at.dtype, inputs);
  net.nodes[0].inputs[i] = net.nodes[0].inputs[j];
  expect_close(expected, context.run(net), at.bound().times(2),
               fmt::format("{}, one value as operands {} and {}; expected the result of two equal values", describe(inputs), i, j));
}

void check_constants(CaseContext& context, const Instance& at) {
  const auto inputs = at.inputs(context);
  const auto expected = at.dense_answer(context);
  Setting setting;
  setting.kind = TENON_VALUE_CONSTANT;
  // plan_create copies the bytes of constants: the originals are overwritten before the plan runs.
  std::unique_ptr<Plan> plan;
  Net net = at.net(inputs, setting);
  plan = std::make_unique<Plan>(context.device, net);
  expect_made(*plan);
  for (Net::Value& value : net.values) {
    if (value.kind == TENON_VALUE_CONSTANT && value.array.size_bytes() > 0)
      std::memset(value.array.bytes(), 0xFF, value.array.size_bytes());
  }
  for (int round = 0; round < 2; ++round) {
    const Outcome outcome = plan->run();
    expect_clean(outcome);
    expect_close(expected, outcome.outputs, at.bound().times(2),
                 describe(inputs) + ", all of them constants; expected the result of inputs");
  }
}

void check_parameters(CaseContext& context, const Instance& at) {
  const auto first = at.inputs(context);
  const auto second = fill(*at.variant, at.dtype, seed_for(context.seed, at.name + "/epoch 2"));
  const auto expect_first = at.dense_answer(context);
  const auto expect_second = context.run(at.net(second));
  Setting setting;
  setting.kind = TENON_VALUE_PARAMETER;
  const Net net = at.net(first, setting);
  const Plan plan(context.device, net);
  expect_made(plan);
  Plan::Bindings bindings(plan, 0xFF);
  const auto expect = [&](std::uint64_t epoch, const std::vector<Array>& expected) {
    const Outcome outcome = bindings.execute(epoch);
    expect_clean(outcome);
    expect_close(expected, outcome.outputs, at.bound().times(2),
                 fmt::format("{}, all of them parameters, in epoch {}", describe(first), epoch));
  };
  const auto bind = [&](const std::vector<Array>& arrays) {
    std::uint32_t value = 0;
    for (const Array& array : arrays) {
      if (array.dtype() != TENON_DTYPE_NONE) bindings.set(value++, array);
    }
  };
  expect(1, expect_first);
  expect(1, expect_first);
  bind(second);
  expect(2, expect_second);
  bind(first);
  expect(7, expect_first);
}

void check_property(CaseContext& context, const Instance& at, const Property& property) {
  const auto inputs = at.inputs(context);
  const auto outputs = at.dense_answer(context);
  const std::string broken = property.broken(*at.variant, at.dtype, inputs, outputs);
  if (!broken.empty()) throw Failure(fmt::format("\"{}\" does not hold: {} ({})", property.name, broken, describe(inputs)));
}

}  // namespace tenon::conformance
