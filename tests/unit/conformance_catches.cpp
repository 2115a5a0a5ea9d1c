// SPDX-License-Identifier: Apache-2.0
// Tests of the conformance kit: reports, attribution and robustness. What it catches is tested by tests/mutants.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include <tenon/error.h>

#include "conformance/conformance.h"
#include "conformance/waivers.h"
#include "crash.h"
#include "disguised_backend.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;
using conformance::Class;

namespace {

enum class Wrong {
  nothing,
  element,  // one element of each result is wrong
  crashes,
  hangs,
  gradient_doubled,  // ReluGrad gives twice the gradient
};
ChildSetting<Wrong> wrong("TENON_TEST_WRONG", Wrong::nothing);
ChildSetting<bool> is_oracle("TENON_TEST_IS_ORACLE", false);

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "wrong";
  static void alter(tenon_backend_table& table);
  static void describe(tenon_backend_info& info) {
    if (is_oracle) info.flags |= TENON_BACKEND_ORACLE;
  }
};

/// What the modified plan_execute needs of a plan.
struct Output {
  std::uint32_t binding;
  tenon_dtype dtype;
  std::uint64_t count;
};
struct PlanNotes {
  tenon_op op = TENON_OP_NONE;
  std::vector<Output> outputs;
};
std::mutex notes_mutex;
std::map<tenon_plan*, PlanNotes> notes;

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  const tenon_status status = Backend::real->plan_create(device, graph, options, out_plan, error);
  if (status != TENON_OK) return status;
  PlanNotes note;
  if (graph->node_count > 0) note.op = graph->nodes[0].op;
  for (std::uint32_t n = 0; n < graph->node_count; ++n) {
    if (graph->nodes[n].op == TENON_OP_ReluGrad) note.op = TENON_OP_ReluGrad;
  }
  for (std::uint32_t v = 0; v < graph->value_count; ++v) {
    const tenon_value& value = graph->values[v];
    if (value.kind != TENON_VALUE_OUTPUT) continue;
    std::uint64_t count = 1;
    for (std::uint32_t d = 0; d < value.desc.rank; ++d) count *= static_cast<std::uint64_t>(value.desc.shape[d]);
    note.outputs.push_back({value.binding, value.desc.dtype, count});
  }
  const std::lock_guard lock(notes_mutex);
  notes[*out_plan] = note;
  return TENON_OK;
}

template <class T>
void spoil(const PlanNotes& note, std::uint64_t address, std::uint64_t count) {
  T* const elements = reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
  if (wrong == Wrong::element && count > 0) elements[0] += 1;
  if (wrong != Wrong::gradient_doubled || note.op != TENON_OP_ReluGrad) return;
  for (std::uint64_t i = 0; i < count; ++i) elements[i] *= 2;
}

tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  PlanNotes note;
  {
    const std::lock_guard lock(notes_mutex);
    note = notes[plan];
  }
  if (wrong == Wrong::crashes && note.op == TENON_OP_Relu) crash();
  if (wrong == Wrong::hangs && note.op == TENON_OP_Relu) std::this_thread::sleep_for(std::chrono::seconds(60));
  const tenon_status status = Backend::real->plan_execute(plan, bindings, workspace, stream, error);
  if (status != TENON_OK) return status;
  for (const Output& output : note.outputs) {
    if (output.dtype == TENON_DTYPE_F32) spoil<float>(note, bindings->addresses[output.binding], output.count);
    if (output.dtype == TENON_DTYPE_F64) spoil<double>(note, bindings->addresses[output.binding], output.count);
  }
  return TENON_OK;
}

void Backend::alter(tenon_backend_table& table) {
  table.plan_create = plan_create;
  table.plan_execute = plan_execute;
}

conformance::Options options_for(const std::string& filter, const std::string& profile = "ops") {
  return Backend::options_of_children(profile, filter);
}

/// The kit's report on the backend with this defect.
conformance::Report judged(Wrong how, const std::string& filter, const std::string& profile = "ops") {
  wrong = how;
  conformance::Report report = conformance::judge(options_for(filter, profile));
  wrong = Wrong::nothing;
  return report;
}

}  // namespace

TEST_CASE("conformance: every listed op has a case, and an independent source validates the oracle") {
  for (const std::string& gap : conformance::gaps()) FAIL_CHECK(gap);
}

TEST_CASE("conformance: the unmodified wrapped backend passes") {
  const auto report = judged(Wrong::nothing, "relu*");
  CHECK(report.count(Class::fail) == 0);
  CHECK(report.count(Class::pass) > 100);
  CHECK(report.exit_code() == 0);
}

TEST_CASE("conformance: a wrong element fails the forward case with a complete message") {
  const auto report = judged(Wrong::element, "softmax/f32(8,10)/axis=1/*");
  const auto& forward = result_named(report, "softmax/f32(8,10)/axis=1/forward");
  CHECK(forward.outcome == Class::fail);
  CHECK(forward.op == "softmax");
  CHECK(forward.dtype == "f32");
  for (const char* part : {"element (0,0)", "expected", "got 1.", "error", "allowed", "f32(8,10)",
                           "tenon conformance --backend wrong --profile ops --filter 'softmax/f32(8,10)/axis=1/forward' --seed 1"}) {
    const std::string all = forward.text + "; again: " + forward.again;
    CHECK_MESSAGE(all.find(part) != std::string::npos, part, " is not in: ", all);
  }
  CHECK(fails(report, "softmax/f32(8,10)/axis=1/each row sums to one"));
  CHECK(report.exit_code() == 1);
}

TEST_CASE("conformance: a crash is one result, and later cases still run") {
  const auto report = judged(Wrong::crashes, "relu/f32(8,10)/*");
  CHECK(contains(result_named(report, "relu/f32(8,10)/forward").text, crash_report));
  CHECK(fails(report, "relu/f32(8,10)/guards"));
  const auto both = judged(Wrong::crashes, "*/f32(7)/forward");
  CHECK(fails(both, "relu/f32(7)/forward"));
  CHECK(passes(both, "sigmoid/f32(7)/forward"));
}

TEST_CASE("conformance: a hang is one result") {
  wrong = Wrong::hangs;
  auto options = options_for("relu/f32(8,10)/forward");
  options.timeout_s = 0.5;
  const auto report = conformance::judge(options);
  wrong = Wrong::nothing;
  CHECK(report.results.size() == 1);
  CHECK(contains(report.results[0].text, "no message for 0.5 s"));
}

TEST_CASE("conformance: errors of the oracle are found by golden vectors and finite differences") {
  is_oracle = true;
  const auto grad = judged(Wrong::gradient_doubled, "relu_grad/*");
  const auto relu = judged(Wrong::gradient_doubled, "relu/f64*");
  is_oracle = false;
  CHECK(result_named(grad, "relu_grad/f64(8,10),(8,10)/forward").outcome == Class::not_run);
  CHECK(fails(grad, "relu_grad/f32/golden/at_and_around_zero"));
  CHECK(fails(relu, "relu/f64(8,10)/gradient"));
  CHECK(contains(result_named(relu, "relu/f64(8,10)/gradient").text, "finite differences"));
}

TEST_CASE("conformance: the JSON report has the summary and every case") {
  const auto report = judged(Wrong::element, "neg/f32(7)/*");
  const auto json = nlohmann::json::parse(conformance::to_json(report));
  CHECK(json.at("summary").at("fail").get<std::int64_t>() == report.count(Class::fail));
  CHECK(json.at("summary").at("not_run").get<std::int64_t>() == 0);
  CHECK(json.at("cases").size() == report.results.size());
  CHECK(json.at("cases")[0].at("name") == "neg/f32(7)/forward");
  CHECK(json.at("cases")[0].at("class") == "fail");
  CHECK(json.at("seed") == 1);
}

TEST_CASE("conformance: an unsupported mandatory op changes the exit code, an optional one does not") {
  conformance::Report report;
  report.results.push_back({"relu/f32(7)/forward", Class::unsupported, "relu", "f32", "no", true});
  CHECK(report.exit_code() == 1);
  report.results[0].mandatory = false;
  CHECK(report.exit_code() == 0);
  report.results.clear();
  CHECK(report.exit_code() == 1);
}

TEST_CASE("conformance: waivers exclude cases with a reason, and an unexpected pass fails") {
  const auto file = std::filesystem::temp_directory_path() / "tenon_waivers_test.conformance.yaml";
  std::ofstream(file) << "unsupported:\n  - {match: 'relu/*', reason: no rectifier in this device}\n"
                         "expected_failures:\n  - {match: 'tanh/*/special', reason: NaN is lost}\n";
  const auto waivers = conformance::Waivers::read(file);
  conformance::Result result{"relu/f32(7)/forward", Class::unsupported, "relu", "f32", "no kernel", true};
  waivers.apply(result);
  CHECK(result.outcome == Class::excluded);
  CHECK(result.text == "no rectifier in this device");
  result = {"tanh/f32(7)/special", Class::fail, "tanh", "f32", "element 0", true};
  waivers.apply(result);
  CHECK(result.outcome == Class::excluded);
  result = {"tanh/f32(7)/special", Class::pass, "tanh", "f32", "", true};
  waivers.apply(result);
  CHECK(result.outcome == Class::fail);
  CHECK(contains(result.text, "remove the entry"));

  std::ofstream(file) << "supported: [relu/f32*, core/*]\nunsupported:\n  - {match: 'core/capture/*', reason: cannot record}\n";
  const auto subset = conformance::Waivers::read(file);
  const auto refused = [&](const char* name) {
    conformance::Result refusal{name, Class::unsupported, "", "", "no kernel", true};
    subset.apply(refusal);
    return refusal.outcome;
  };
  CHECK(refused("relu/f32(7)/forward") == Class::unsupported);  // what is promised must be there
  CHECK(refused("relu/f64(7)/forward") == Class::excluded);
  CHECK(refused("core/capture/parameters") == Class::excluded);
  CHECK(refused("core/memory/fill") == Class::unsupported);
  result = {"relu/f64(7)/forward", Class::fail, "relu", "f64", "element 0", true};
  subset.apply(result);
  CHECK(result.outcome == Class::fail);  // outside of the subset a refusal is excused, a wrong result is not
  for (const char* text : {"supported: relu/*\n", "supported: [{match: relu/*}]\n", "supported: []\n"}) {
    std::ofstream(file) << text;
    CHECK_ERROR_CONTAINS(":1: supported: expected a list of globs over case names", conformance::Waivers::read(file));
  }

  std::ofstream(file) << "unsupported:\n  - {match: 'relu/*'}\n";
  CHECK_ERROR_CONTAINS(":2: unsupported: expected {match: GLOB, reason: TEXT}", conformance::Waivers::read(file));
  std::ofstream(file) << "unsuported: []\n";
  CHECK_ERROR_CONTAINS(":1: unknown key 'unsuported'", conformance::Waivers::read(file));
  std::filesystem::remove(file);
}

TEST_CASE("conformance: cases that cannot run are reported") {
  CHECK_ERROR("conformance: no case of profile ops matches 'no_such_op/*'", conformance::judge(options_for("no_such_op/*")));
  auto options = options_for("*");
  options.backend = "absent";
  CHECK_ERROR_CONTAINS("no backend 'absent'", conformance::judge(options));
  options = options_for("*", "everything");
  CHECK_ERROR_CONTAINS("unknown profile 'everything'", conformance::judge(options));
}
