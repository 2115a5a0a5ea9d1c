// SPDX-License-Identifier: Apache-2.0
// Whole graphs on small integers, whose sums are exact in f32: constants, parameters, donations, fusion, many threads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "small_graph.h"

namespace tenon::conformance {
namespace {

struct Sample {
  const char* name;
  Net net;
};

/// Graphs with weights of the given kind; only those that the backend supports.
std::vector<Sample> samples(const CaseContext& context, std::uint32_t weights) {
  std::vector<Sample> all;
  const auto add = [&](const char* name, void (*build)(GraphBuilder&)) {
    GraphBuilder builder(weights);
    build(builder);
    all.push_back({name, std::move(builder.net)});
  };
  add("a sum", [](GraphBuilder& s) {
    const auto x = s.input({3, 5}), w = s.weight({3, 5}), y = s.output({3, 5});
    s.add(x, w, y);
  });
  add("a product", [](GraphBuilder& s) {
    const auto x = s.input({6, 40}), w = s.weight({40, 24}), y = s.output({6, 24});
    s.product(x, w, y);
  });
  add("a layer", [](GraphBuilder& s) {
    const auto x = s.input({6, 40}), w = s.weight({40, 24}), b = s.weight({24}), y = s.output({6, 24});
    const auto xw = s.internal({6, 24}), sum = s.internal({6, 24});
    s.product(x, w, xw);
    s.add(xw, b, sum);
    s.relu(sum, y);
  });
  add("two layers with a residual", [](GraphBuilder& s) {
    const auto x = s.input({6, 40}), w = s.weight({40, 40}), b = s.weight({40}), v = s.weight({40, 10}), y = s.output({6, 10});
    const auto xw = s.internal({6, 40}), sum = s.internal({6, 40}), more = s.internal({6, 40}), hidden = s.output({6, 40});
    s.product(x, w, xw);
    s.add(xw, b, sum);
    s.add(sum, x, more);
    s.relu(more, hidden);  // an output that another node reads
    s.product(hidden, v, y);
  });
  add("a diamond", [](GraphBuilder& s) {
    const auto x = s.input({7, 9}), a = s.weight({7, 9}), b = s.weight({9}), y = s.output({7, 9});
    const auto top = s.internal({7, 9}), left = s.internal({7, 9}), right = s.internal({7, 9});
    s.relu(x, top);
    s.add(top, b, right);
    s.add(top, a, left);
    s.add(left, right, y);
  });
  add("a long chain", [](GraphBuilder& s) {
    auto x = s.input({4, 33});
    const auto w = s.weight({4, 33}), y = s.output({4, 33});
    for (int i = 0; i < 12; ++i) {
      const auto next = s.internal({4, 33});
      if (i % 3 == 2) {
        s.relu(x, next);
      } else {
        s.add(x, w, next);
      }
      x = next;
    }
    s.relu(x, y);
  });
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Sample& sample) { return !is_served(context, sample.net); }), all.end());
  if (all.empty()) throw NotRun("not offered: the capability table has neither Add nor MatMul for f32");
  return all;
}

// ---------------------------------------------------------------- cases

/// The previous content of workspace and outputs does not matter.
void whole_graphs(CaseContext& context) {
  for (const Sample& sample : samples(context, TENON_VALUE_INPUT)) {
    const Plan plan(context.device, sample.net);
    expect_ready(plan);
    for (const int poison : {0xFF, 0x40, 0x00}) {
      expect_exact(reference_outputs(sample.net), plan.run(static_cast<unsigned char>(poison)),
                   fmt::format("{}, memory full of 0x{:02x}", sample.name, poison));
    }
  }
}

/// Every topological order of the nodes gives the same results.
void node_order(CaseContext& context) {
  require_graphs(context);
  for (Sample& sample : samples(context, TENON_VALUE_INPUT)) {
    const std::vector<Array> expected = reference_outputs(sample.net);
    Random random(seed_for(context.seed, sample.name));
    for (int round = 0; round < 4; ++round) {
      // Draw a random ready node until none is left.
      std::vector<Net::Node> remaining = sample.net.nodes, order;
      std::vector<bool> known;
      for (const Net::Value& value : sample.net.values)
        known.push_back(value.kind != TENON_VALUE_INTERNAL && value.kind != TENON_VALUE_OUTPUT);
      while (!remaining.empty()) {
        const auto at = remaining.begin() + random.integer(0, static_cast<std::int64_t>(remaining.size()));
        if (!std::all_of(at->inputs.begin(), at->inputs.end(), [&](std::uint32_t v) { return known[v]; })) continue;
        known[at->outputs[0]] = true;
        order.push_back(std::move(*at));
        remaining.erase(at);
      }
      sample.net.nodes = std::move(order);
      const Plan plan(context.device, sample.net);
      expect_ready(plan);
      expect_exact(expected, plan.run(), fmt::format("{}, its nodes in another order", sample.name));
    }
  }
}

void fusion(CaseContext& context) {
  for (const Sample& sample : samples(context, TENON_VALUE_CONSTANT)) {
    std::uint32_t kernels[3] = {};
    for (const std::uint32_t setting : {TENON_FUSION_FULL, TENON_FUSION_ELEMENTWISE, TENON_FUSION_OFF}) {
      const Plan plan(context.device, sample.net, {.fusion = setting});
      expect_ready(plan);
      kernels[setting] = plan.info().kernel_count;
      expect_exact(reference_outputs(sample.net), plan.run(), fmt::format("{} under fusion setting {}", sample.name, setting));
    }
    if (kernels[TENON_FUSION_OFF] < kernels[TENON_FUSION_FULL]) {
      fail(fmt::format("{}: {} kernels with full fusion, {} without fusion", sample.name, kernels[TENON_FUSION_FULL],
                       kernels[TENON_FUSION_OFF]));
    }
  }
}

/// The caller may overwrite the bytes of constants once plan_create returns.
void constants(CaseContext& context) {
  for (Sample& sample : samples(context, TENON_VALUE_CONSTANT)) {
    const std::vector<Array> expected = reference_outputs(sample.net);
    const Plan plan(context.device, sample.net);
    expect_ready(plan);
    for (Net::Value& value : sample.net.values) {
      if (value.kind == TENON_VALUE_CONSTANT) std::memset(value.array.bytes(), 0xFF, value.array.size_bytes());
    }
    for (int round = 0; round < 2; ++round)
      expect_exact(expected, plan.run(), fmt::format("{} with constant weights, their original bytes overwritten", sample.name));
  }
}

/// Parameters change whenever the epoch changes, to any value: back to an earlier one, or with the same bytes.
void parameters(CaseContext& context) {
  for (Sample& sample : samples(context, TENON_VALUE_PARAMETER)) {
    const Plan plan(context.device, sample.net);
    expect_ready(plan);
    Plan::Bindings bindings(plan, 0xFF);
    Net now = sample.net;
    const auto change = [&](double by, std::uint32_t kind) {
      for (std::uint32_t v = 0; v < now.values.size(); ++v) {
        Net::Value& value = now.values[v];
        if (value.kind != kind) continue;
        for (std::int64_t i = 0; i < value.array.count(); ++i) value.array.set(i, value.array.at(i) + (i % 3 == 0 ? by : -by));
        bindings.set(v, value.array);
      }
    };
    const auto expect = [&](std::uint64_t epoch) {
      expect_exact(reference_outputs(now), bindings.execute(epoch), fmt::format("{} with parameters in epoch {}", sample.name, epoch));
    };
    expect(1);
    change(1, TENON_VALUE_INPUT);
    expect(1);  // another input, the same parameters
    change(1, TENON_VALUE_PARAMETER);
    expect(2);
    expect(2);
    change(-1, TENON_VALUE_PARAMETER);
    expect(7);
    expect(8);
    change(2, TENON_VALUE_PARAMETER);
    expect(0);
    change(-3, TENON_VALUE_PARAMETER);
    expect(~std::uint64_t{0});
    change(1, TENON_VALUE_PARAMETER);
    expect(1);  // an earlier epoch differs from the last one
    // New memory at other addresses in the same epoch: the same parameters.
    Plan::Bindings elsewhere(plan, 0x40);
    for (std::uint32_t v = 0; v < now.values.size(); ++v) {
      if (now.values[v].kind == TENON_VALUE_PARAMETER || now.values[v].kind == TENON_VALUE_INPUT) elsewhere.set(v, now.values[v].array);
    }
    expect_exact(reference_outputs(now), elsewhere.execute(1),
                 fmt::format("{} with parameters in epoch 1, at other addresses", sample.name));
  }
}

/// The output must be written after all reads of the input, whichever nodes read it and in whatever order.
void donation(CaseContext& context) {
  int runs = 0;
  const auto check = [&](const char* name, void (*build)(GraphBuilder&)) {
    GraphBuilder builder(TENON_VALUE_PARAMETER);
    build(builder);
    if (!is_served(context, builder.net)) return;
    const Plan plan(context.device, builder.net);
    expect_ready(plan);
    Plan::Bindings bindings(plan, 0xFF);
    for (int round = 0; round < 2; ++round) {
      expect_exact(reference_outputs(builder.net), bindings.execute(static_cast<std::uint64_t>(round + 1)),
                   fmt::format("donation, {}", name));
    }
    ++runs;
  };
  check("relu over its operand", [](GraphBuilder& s) {
    const auto x = s.input({5, 77}), y = s.output({5, 77});
    s.relu(x, y);
    s.net.donate(x, y);
  });
  check("a sum over its first operand", [](GraphBuilder& s) {
    const auto a = s.input({5, 77}), b = s.weight({5, 77}), y = s.output({5, 77});
    s.add(a, b, y);
    s.net.donate(a, y);
  });
  check("a sum over its second operand", [](GraphBuilder& s) {
    const auto a = s.input({5, 77}), b = s.weight({5, 77}), y = s.output({5, 77});
    s.add(a, b, y);
    s.net.donate(b, y);
  });
  check("a product over one of its operands", [](GraphBuilder& s) {
    const auto a = s.input({24, 24}), b = s.weight({24, 24}), y = s.output({24, 24});
    s.product(a, b, y);
    s.net.donate(a, y);
  });
  check("an operand that a later node reads as well", [](GraphBuilder& s) {
    const auto x = s.input({5, 77}), b = s.weight({5, 77}), y = s.output({5, 77}), z = s.output({5, 77});
    s.relu(x, y);
    s.add(x, b, z);
    s.net.donate(x, y);
  });
  check("an operand that is read to compute its own new value", [](GraphBuilder& s) {
    const auto x = s.weight({5, 77}), g = s.input({5, 77}), y = s.output({5, 77});
    const auto t = s.internal({5, 77});
    s.add(x, g, t);
    s.relu(t, y);
    s.net.donate(x, y);
  });
  check("two parameters that depend on each other", [](GraphBuilder& s) {
    const auto p = s.weight({40}), q = s.weight({40}), new_p = s.output({40}), new_q = s.output({40});
    const auto t = s.internal({40}), u = s.internal({40});
    s.add(p, q, t);
    s.relu(q, new_p);
    s.add(t, p, u);
    s.relu(u, new_q);
    s.net.donate(p, new_p);
    s.net.donate(q, new_q);
  });
  if (runs == 0) throw NotRun("not offered: the capability table has neither Relu nor Add nor MatMul for f32");
}

/// One plan executed by four threads, each with its own stream, bindings and workspace.
void concurrent(CaseContext& context) {
  std::vector<Sample> all = samples(context, TENON_VALUE_PARAMETER);
  for (const Sample& sample : all) {
    const Plan plan(context.device, sample.net);
    expect_ready(plan);
    on_threads(4, [&](int thread) {
      Net own = sample.net;
      const Stream stream(context);
      Plan::Bindings bindings(plan, static_cast<unsigned char>(0x30 + thread));
      for (std::uint32_t v = 0; v < own.values.size(); ++v) {
        Net::Value& value = own.values[v];
        if (value.kind != TENON_VALUE_INPUT) continue;  // parameters are the same for all threads, as is their epoch
        for (std::int64_t i = 0; i < value.array.count(); ++i) value.array.set(i, value.array.at(i) + static_cast<double>(thread));
        bindings.set(v, value.array);
      }
      const std::vector<Array> expected = reference_outputs(own);
      for (int round = 0; round < (small_sizes() ? 4 : 25); ++round) {
        expect_exact(expected, bindings.execute(1, stream.handle),
                     fmt::format("{}, thread {} of 4 that execute one plan", sample.name, thread));
      }
    });
  }
}

/// Plans are made and destroyed on several threads while others execute.
void made_on_threads(CaseContext& context) {
  const std::vector<Sample> all = samples(context, TENON_VALUE_CONSTANT);
  on_threads(4, [&](int thread) {
    const Stream stream(context);
    for (int round = 0; round < (small_sizes() ? 1 : 4); ++round) {
      for (const Sample& sample : all) {
        const Plan plan(context.device, sample.net);
        expect_ready(plan);
        expect_exact(reference_outputs(sample.net), plan.run(0xFF, stream.handle),
                     fmt::format("{}, made on thread {} of 4", sample.name, thread));
      }
    }
  });
}

}  // namespace

std::vector<Case> core_graph_cases() {
  return core_cases({
      {"plan/whole_graphs", whole_graphs},
      {"plan/node_order", node_order},
      {"plan/fusion", fusion},
      {"plan/constants", constants},
      {"plan/parameters", parameters},
      {"plan/donation", donation},
      {"plan/concurrent", concurrent},
      {"plan/made_on_threads", made_on_threads},
  });
}

}  // namespace tenon::conformance
