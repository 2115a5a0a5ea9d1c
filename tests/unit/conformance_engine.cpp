// SPDX-License-Identifier: Apache-2.0
// The kit's engine: distribution over processes, robustness against backends, and reports. The backends are the reference backend with
// one modified behaviour.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "conformance/conformance.h"
#include "conformance/rerun.h"
#include "conformance/schedule.h"
#include "conformance/waivers.h"
#include "crash.h"
#include "disguised_backend.h"
#include "platform/process.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;
using conformance::Class;

namespace {

enum class Behaviour {
  honest,
  wrong_element,  ///< the first element of each f32 result is wrong
  ignores_strides,
  idle_axpy,  ///< returns OK and does nothing
  crashes,    ///< in every execution
  aborts_with_words,
  throws_an_integer,
  loses_device,  ///< at the first execution
  crashes_at_create,
  exits_at_create,
  refuses_to_create,
  crashes_at_shutdown,
};
ChildSetting<Behaviour> behaviour("TENON_TEST_BEHAVIOUR", Behaviour::honest);

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "mannered";
  static void alter(tenon_backend_table& table);
  static tenon_status refuse(tenon_error* error) {
    if (behaviour == Behaviour::crashes_at_create) crash();
    if (behaviour == Behaviour::exits_at_create) std::exit(0);
    if (behaviour != Behaviour::refuses_to_create) return TENON_OK;
    return say(error, TENON_INTERNAL, "the license has expired");
  }
  static void describe(tenon_backend_info& info) {
    static const tenon_option option{"pace", TENON_OPTION_CHOICE, 0, "slow", "slow|fast", 0, 0, "how it walks"};
    info.options = &option;
    info.option_count = 1;
    info.option_stride = sizeof option;
  }
};

bool device_lost = false;                          ///< in this process
std::map<tenon_plan*, std::uint32_t> f32_results;  ///< the binding of each plan's first result, if it is f32

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  std::vector<tenon_value> values(graph->values, graph->values + graph->value_count);
  tenon_graph altered = *graph;
  altered.values = values.data();
  if (behaviour == Behaviour::ignores_strides) {
    for (tenon_value& value : values) value.desc.strides = nullptr;
  }
  const tenon_status status = Backend::real->plan_create(device, &altered, options, out_plan, error);
  if (status != TENON_OK) return status;
  f32_results.erase(*out_plan);
  for (std::uint32_t v = graph->value_count; v-- > 0;) {
    const tenon_value& value = graph->values[v];
    if (value.kind == TENON_VALUE_OUTPUT && value.desc.dtype == TENON_DTYPE_F32) f32_results[*out_plan] = value.binding;
  }
  return status;
}

tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  if (behaviour == Behaviour::crashes) crash();
  if (behaviour == Behaviour::aborts_with_words) {
    std::printf("first of all\n\x01 second\n");
    std::fflush(stdout);
    std::fprintf(stderr, "now I have had enough\n");
    std::abort();
  }
  if (behaviour == Behaviour::throws_an_integer) throw 7;
  if (behaviour == Behaviour::loses_device) {
    device_lost = true;
    return say(error, TENON_DEVICE_LOST, "an illegal address was accessed");
  }
  const tenon_status status = Backend::real->plan_execute(plan, bindings, workspace, stream, error);
  if (behaviour == Behaviour::wrong_element && status == TENON_OK && f32_results.count(plan) != 0) {
    auto* y = reinterpret_cast<float*>(static_cast<std::uintptr_t>(bindings->addresses[f32_results[plan]]));
    *y += 1;
  }
  return status;
}

tenon_status stream_synchronize(tenon_stream* stream, tenon_error* error) {
  if (device_lost) return say(error, TENON_DEVICE_LOST, "the device was lost by an earlier call");
  return Backend::real->stream_synchronize(stream, error);
}

tenon_status axpy(const tenon_blas_call*, const tenon_blas_axpy_args*, tenon_error*) {
  return TENON_OK;
}

void shutdown(tenon_backend* backend) {
  if (behaviour == Behaviour::crashes_at_shutdown) crash();
  Backend::real->shutdown(backend);
}

void Backend::alter(tenon_backend_table& table) {
  static tenon_blas_table blas;
  blas = *real->blas;
  if (behaviour == Behaviour::idle_axpy) blas.axpy = axpy;
  table.blas = &blas;
  table.plan_create = plan_create;
  table.plan_execute = plan_execute;
  table.shutdown = shutdown;
  table.stream_synchronize = stream_synchronize;
}

conformance::Options options_for(const std::string& filter, const std::string& profile = "ops") {
  return Backend::options_of_children(profile, filter);
}

conformance::Report judged(Behaviour how, const conformance::Options& options) {
  behaviour = how;
  conformance::Report report = conformance::judge(options);
  behaviour = Behaviour::honest;
  return report;
}

/// Everything except durations.
std::vector<std::string> lines_of(const conformance::Report& report) {
  std::vector<std::string> lines;
  for (const auto& r : report.results) lines.push_back(r.name + " " + conformance::name_of(r.outcome) + " " + r.text + " " + r.again);
  return lines;
}

/// Cases that a test defines.
conformance::Case case_of(const std::string& name, std::function<void(conformance::CaseContext&)> run,
                          conformance::Ending ending = conformance::Ending::shut_down) {
  return {name, "core", "core", TENON_DTYPE_NONE, true, std::move(run), ending};
}

std::vector<conformance::Case> ending_cases() {
  using conformance::Ending;
  const auto good = [](conformance::CaseContext&) {};
  return {case_of("core/before", good), case_of("core/exits", good, Ending::exits),
          case_of(
              "core/exits_badly", [](conformance::CaseContext&) { std::atexit([] { platform::exit_now(5); }); }, Ending::exits),
          case_of(
              "core/fails", [](conformance::CaseContext&) -> void { throw conformance::Failure("no"); }, Ending::exits),
          case_of("core/after", good)};
}

std::vector<conformance::Case> measuring_cases() {
  return {case_of("core/measures", [](conformance::CaseContext& context) { context.remark = "3 things"; })};
}

[[maybe_unused]] const bool lists_are_known =
    (case_lists_of_children().insert({{"ending", ending_cases}, {"measuring", measuring_cases}}), true);

}  // namespace

TEST_CASE("conformance: results are in the order of the cases for any number of processes") {
  auto options = options_for("*/f32(7)*");
  const auto serial = judged(Behaviour::honest, options);
  options.jobs = 3;
  const auto parallel = judged(Behaviour::honest, options);
  CHECK(serial.results.size() > 200);
  CHECK(serial.count(Class::fail) == 0);
  CHECK(lines_of(serial) == lines_of(parallel));
  const auto names = conformance::case_names(options);
  REQUIRE(names.size() == serial.results.size());
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(names[i] == serial.results[i].name);
}

TEST_CASE("conformance: a large group is distributed over processes with the same results") {
  auto options = options_for("add/*");
  REQUIRE(conformance::case_names(options).size() > conformance::max_cases_of_a_process);
  const auto serial = judged(Behaviour::wrong_element, options);
  options.jobs = 2;
  CHECK(lines_of(serial) == lines_of(judged(Behaviour::wrong_element, options)));
}

TEST_CASE("conformance: after three crashes the rest of a group is not run and is one failure") {
  auto options = options_for("relu/f32(7)/*");
  const auto report = judged(Behaviour::crashes, options);
  const auto names = conformance::case_names(options);
  REQUIRE(names.size() > 5);
  REQUIRE(report.results.size() == names.size() + 1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(report.results[i].name == names[i]);
    CHECK(report.results[i].outcome == (i < 3 ? Class::fail : Class::not_run));
    CHECK(contains(report.results[i].text, i < 3 ? crash_report : "had died"));
  }
  const auto& rest = report.results.back();
  CHECK(contains(rest.name, "/not_run"));
  CHECK(rest.outcome == Class::fail);
  CHECK(contains(rest.text, "3 processes had died, and the last " + std::to_string(names.size() - 3) + " cases of the group were not run"));
  CHECK(contains(rest.again, "--filter '" + names[3] + "'"));
  CHECK(report.exit_code() == 1);
}

TEST_CASE("conformance: a case after one that lost the device runs in a new process") {
  auto options = options_for("relu/*");
  const auto report = judged(Behaviour::loses_device, options);
  constexpr std::size_t most = conformance::max_losses_of_a_group;
  REQUIRE(report.results.size() > most + 1);
  std::size_t losses = 0;
  for (const auto& result : report.results) {
    CHECK_FALSE(contains(result.text, "was lost by an earlier call"));
    if (contains(result.text, "illegal address")) ++losses;
  }
  CHECK(losses == most);
  CHECK(contains(report.results.back().text, std::to_string(most) + " cases had lost the device, and the last "));
  options.jobs = 3;
  CHECK(lines_of(report) == lines_of(judged(Behaviour::loses_device, options)));
}

TEST_CASE("conformance: cases that the time budget does not reach are not run, and the run is no success") {
  auto options = options_for("relu/*");
  options.budget_s = 1e-9;
  const auto none = judged(Behaviour::honest, options);
  CHECK(none.count(Class::not_run) == static_cast<std::int64_t>(none.results.size()));
  CHECK(contains(conformance::to_text(none), "the time budget of 1e-09 s was used up"));
  CHECK(none.exit_code() == 1);
  options.budget_s = 1000;
  const auto all = judged(Behaviour::honest, options);
  CHECK(all.count(Class::not_run) == 0);
  CHECK(all.exit_code() == 0);
  options.budget_s = 0;
  CHECK(lines_of(all) == lines_of(judged(Behaviour::honest, options)));
}

TEST_CASE("conformance: a backend that always crashes has the same report with one process and with three") {
  auto options = options_for("*u*/f32(7)/*");
  const auto serial = judged(Behaviour::crashes, options);
  options.jobs = 3;
  CHECK(lines_of(serial) == lines_of(judged(Behaviour::crashes, options)));
  const auto ends = std::count_if(serial.results.begin(), serial.results.end(), [](const auto& r) { return contains(r.name, "/not_run"); });
  CHECK(ends >= 2);  // each group ends separately
}

TEST_CASE("conformance: a crash while the backend is loaded is a failed result") {
  for (const char* profile : {"ops", "core"}) {
    const auto report = judged(Behaviour::crashes_at_create, options_for("*", profile));
    REQUIRE(report.results.size() == 1);
    const auto& result = report.results[0];
    CHECK(result.name == "core/lifecycle/load");
    CHECK(result.outcome == Class::fail);
    CHECK(contains(result.text, std::string("while the backend was loaded, ") + crash_report));
    CHECK(contains(result.again, "--profile core --filter 'core/lifecycle/load'"));
    CHECK(report.backend == "mannered");
    CHECK(contains(conformance::to_text(report), "mannered, not loaded, profile "));
    CHECK(report.exit_code() == 1);
  }
  CHECK(contains(judged(Behaviour::exits_at_create, options_for("relu/*")).results.at(0).text, "the process ended with exit code 0"));
}

TEST_CASE("conformance: a backend whose create fails is reported with the loader's message, in children and in process") {
  auto options = options_for("relu/*");
  for (const bool in_process : {false, true}) {
    options.in_process = in_process;
    const auto report = judged(Behaviour::refuses_to_create, options);
    REQUIRE(report.results.size() == 1);
    CHECK(report.results[0].name == "core/lifecycle/load");
    CHECK(contains(report.results[0].text, "the license has expired"));
  }
}

TEST_CASE("conformance: a backend that can be loaded passes core/lifecycle/load") {
  const auto report = judged(Behaviour::honest, options_for("core/lifecycle/load", "core"));
  REQUIRE(report.results.size() == 1);
  CHECK(report.results[0].outcome == Class::pass);
}

TEST_CASE("conformance: a crash at shutdown is one failure of the run, and the cases have their own results") {
  const auto report = judged(Behaviour::crashes_at_shutdown, options_for("*/f32(7)/forward"));
  CHECK(report.count(Class::fail) == 1);
  CHECK(report.count(Class::pass) > 20);
  for (const auto& result : report.results) {
    if (result.outcome == Class::fail) CHECK(result.name == "core/lifecycle/shutdown");
  }
}

TEST_CASE("conformance: the output of a crashed backend is quoted, other output is harmless") {
  const auto report = judged(Behaviour::aborts_with_words, options_for("relu/f32(7)/forward"));
  REQUIRE(report.results.size() == 1);
  CHECK(report.results[0].outcome == Class::fail);
  CHECK(contains(report.results[0].text, "it printed last:\n| first of all\n| ? second\n| now I have had enough"));
  CHECK(contains(conformance::to_text(report), "             | now I have had enough"));
}

TEST_CASE("conformance: an integer thrown across the boundary fails only its case") {
  const auto report = judged(Behaviour::throws_an_integer, options_for("relu/f32(7)/*"));
  CHECK(contains(report.results.at(0).text, "thrown through the plugin ABI"));
}

TEST_CASE("conformance: a case that ends its process passes only if the exit is clean") {
  const std::vector<conformance::Case> cases = ending_cases();
  auto options = options_for("*", "ending");
  const auto course = conformance::run_in_children(options, cases);
  REQUIRE(course.verdicts.size() == cases.size());
  CHECK(course.verdicts[0].outcome == Class::pass);
  CHECK(course.verdicts[1].outcome == Class::pass);
  CHECK(course.verdicts[2].outcome == Class::fail);
  CHECK(contains(course.verdicts[2].text, "exit code 5"));
  CHECK(course.verdicts[3].text == "no");
  CHECK(course.verdicts[4].outcome == Class::pass);
  CHECK(course.extras.empty());
  const auto here = conformance::run_in_process(options, cases);
  CHECK(here.verdicts[1].outcome == Class::not_run);
  CHECK(contains(here.verdicts[1].text, "needs a process of its own"));
  CHECK(here.verdicts[4].outcome == Class::pass);
}

TEST_CASE("conformance: measurements of passing cases are in every report") {
  conformance::Report report;
  report.results.push_back({"core/crossing/cost", Class::pass, "core", "", "0.21 us an empty plan", true});
  CHECK(contains(conformance::to_text(report), "MEASURED     core/crossing/cost: 0.21 us an empty plan\n"));
  CHECK(contains(conformance::to_json(report), "0.21 us an empty plan"));
  CHECK(contains(conformance::to_junit(report), "<system-out>0.21 us an empty plan</system-out>"));
  CHECK(contains(conformance::to_html(report), "0.21 us an empty plan"));
  const auto course = conformance::run_in_children(options_for("*", "measuring"), measuring_cases());
  CHECK(course.verdicts.at(0).text == "3 things");
}

TEST_CASE("conformance: a failure has its facts as fields in JSON and JUnit") {
  const auto report = judged(Behaviour::wrong_element, options_for("softmax/f32(8,10)/axis=1/*"));
  const auto json = nlohmann::json::parse(conformance::to_json(report));
  const auto& forward = json.at("cases").at(0);
  CHECK(forward.at("op") == "softmax");
  CHECK(forward.at("dtype") == "f32");
  CHECK(forward.at("shapes") == "f32(8,10); axis=1");
  CHECK(forward.at("element") == "(0,0)");
  CHECK(forward.at("seed") == 1);
  for (const char* key : {"expected", "got", "error", "bound"}) {
    CHECK(contains(forward.at("text"), forward.at(key)));
    CHECK(contains(conformance::to_junit(report), std::string(key) + ": " + forward.at(key).get<std::string>()));
  }
  CHECK(contains(forward.at("again"), "--filter 'softmax/f32(8,10)/axis=1/forward' --seed 1"));
  CHECK_FALSE(forward.contains("strides"));

  const auto strided = judged(Behaviour::ignores_strides, options_for("neg/f32(8,10)/strided")).results.at(0);
  CHECK(strided.facts.strides == "(23,2)");
  CHECK(strided.facts.shapes == "f32(8,10)");

  conformance::Report passes;
  passes.results.push_back({"relu/f32(7)/forward", Class::pass, "relu", "f32", "", true});
  const auto pass = nlohmann::json::parse(conformance::to_json(passes)).at("cases").at(0);
  for (const char* key : {"shapes", "element", "expected", "seed", "again"}) CHECK_FALSE(pass.contains(key));
}

TEST_CASE("conformance: failures of BLAS routines have fields as well") {
  const auto facts = judged(Behaviour::idle_axpy, options_for("axpy/f32/values", "blas")).results.at(0).facts;
  CHECK(contains(facts.shapes, "axpy n="));
  CHECK(contains(facts.strides, "incx="));
  CHECK(contains(facts.element, " of y"));
  for (const std::string* field : {&facts.expected, &facts.got, &facts.error, &facts.bound}) CHECK_FALSE(field->empty());
}

TEST_CASE("conformance: a command is quoted for the shell") {
  CHECK(conformance::shell_word("plain-word_1.so") == "plain-word_1.so");
  CHECK(conformance::shell_word("two words") == "'two words'");
  CHECK(conformance::shell_word("it's") == "'it'\\''s'");
  CHECK(conformance::shell_word("") == "''");
  conformance::Options options;
  options.backend = "openblas";
  options.options = {{"library", "/a b/lib.so"}};
  conformance::Report report;
  report.seed = 7;
  CHECK(
      conformance::command_for(options, report, "ops", "add/it's \"so\"") ==
      "tenon conformance --backend openblas --backend-option 'library=/a b/lib.so' --profile ops --filter 'add/it'\\''s \"so\"' --seed 7");
  options.options.clear();
  options.models = "elsewhere";
  options.models_named = true;
  CHECK(contains(conformance::command_for(options, report, "training", "training/mnist_mlp/one_step"),
                 "--profile training --models elsewhere"));
}

TEST_CASE("conformance: JUnit XML escapes any text of a backend") {
  conformance::Report report;
  report.results.push_back(
      {"add/f32/<&>\"", Class::fail, "add", "f32", std::string("a\x01\xff\xc3 <b>\nline\t]]> \xEF\xBF\xBF\xC3\xA4"), true});
  report.results.push_back({"add/f32/optional", Class::unsupported, "add", "f32", "no", false});
  report.results.push_back({"add/f32/mandatory", Class::unsupported, "add", "f32", "no", true});
  const std::string xml = conformance::to_junit(report);
  CHECK(contains(xml, "tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"1\""));
  CHECK(contains(xml, "name=\"add/f32/&lt;&amp;&gt;&quot;\""));
  for (const char c : xml) CHECK((static_cast<unsigned char>(c) >= ' ' || c == '\n'));
  CHECK_FALSE(contains(xml, "]]>"));
}

TEST_CASE("conformance: the HTML page has every case, needs no network and escapes script text") {
  conformance::Report report;
  report.backend = "<script>";
  report.results.push_back({"add/f32/</script><!--", Class::fail, "add", "f32", "said </script><b>", true});
  report.results.push_back({"add/f32/second", Class::pass, "add", "f32", "", true});
  const std::string page = conformance::to_html(report);
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("</script", at)) != std::string::npos; ++at) ++scripts;
  CHECK(scripts == 2);
  CHECK_FALSE(contains(page, "<!--"));
  CHECK_FALSE(contains(page, "http:"));
  CHECK_FALSE(contains(page, "https:"));
  CHECK(contains(page, "<h1>Conformance of &lt;script&gt;</h1>"));
  CHECK(contains(page, "<b>1</b> fail"));
}

TEST_CASE("conformance: options reach a backend that has them and are in the report") {
  auto options = options_for("relu/f32(7)/forward");
  options.options = {{"pace", "fast"}};
  const auto report = judged(Behaviour::honest, options);
  CHECK(report.exit_code() == 0);
  CHECK(nlohmann::json::parse(conformance::to_json(report)).at("options").at("pace") == "fast");
  options.options = {{"pase", "fast"}};
  CHECK_ERROR_CONTAINS("unknown option 'pase'; did you mean 'pace'?; it has pace", conformance::judge(options));
  options.options = {{"pace", "quick"}};
  options.in_process = true;
  CHECK_ERROR_CONTAINS("pace: expected one of slow|fast, got 'quick'", conformance::judge(options));
}

TEST_CASE("conformance: a waiver that matches nothing is reported") {
  conformance::Waivers waivers;
  waivers.supported = {"relu/f32*", "sinus/*"};
  waivers.unsupported = {{"relu/*", "no rectifier"}, {"no_such_op/*", "forgotten"}};
  waivers.expected_failures = {{"tanh/*", "later"}};
  std::vector<conformance::Result> results(1);
  results[0].name = "relu/f32(7)/forward";
  CHECK(waivers.matching_none(results) == std::vector<std::string>{"sinus/*", "no_such_op/*", "tanh/*"});
}

TEST_CASE("conformance: waivers come from the named file, next to the backend's file, or from its folder") {
  namespace fs = std::filesystem;
  const TemporaryFolder temporary;
  const fs::path folder = platform::path_of(temporary.path());
  const std::string file = loader::backend_file_name("openblas");
  fs::copy_file(platform::path_of(TENON_BACKEND_DIRECTORY) / file, folder / file);
  const auto write = [&](const char* name, const char* reason) {
    std::ofstream(folder / name) << "expected_failures:\n  - {match: 'relu/*', reason: " << reason << "}\n";
  };
  conformance::Options options = options_for("relu/f32(7)/forward");
  options.registered.clear();
  options.plugin = folder / file;
  write("conformance.yaml", "of the folder");
  CHECK(contains(conformance::judge(options).results.at(0).text, "of the folder"));
  write(fs::path(file).replace_extension(".conformance.yaml").string().c_str(), "next to the file");
  CHECK(contains(conformance::judge(options).results.at(0).text, "next to the file"));
  write("named.yaml", "named");
  options.waivers = folder / "named.yaml";
  const auto report = conformance::judge(options);
  CHECK(contains(report.results.at(0).text, "named"));
  CHECK(report.waivers == (folder / "named.yaml").string());
  options.waivers = folder / "absent.yaml";
  CHECK_ERROR_CONTAINS("absent.yaml: no such file", conformance::judge(options));
}

TEST_CASE("conformance: a report that cannot be written is an error before any case runs") {
  auto options = options_for("relu/f32(7)/forward");
  options.out = "/no/such/folder/report.html";
  CHECK_ERROR_CONTAINS("its folder does not exist", conformance::run_conformance(options));
  options.format = "yaml";
  CHECK_ERROR_CONTAINS("unknown format 'yaml'", conformance::run_conformance(options));
}
