// The kit under test: backends that are wrong in one way each, made of the reference backend and a slot that lies.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include <tenon/error.h>

#include "conformance/conformance.h"
#include "conformance/waivers.h"

using namespace tenon;
using conformance::Class;

namespace {

enum class Wrong {
  nothing,
  element,  // one element of each result
  last_bit_now_and_then,
  behind_the_end,  // one byte more than the result has
  input_changed,
  accumulates,  // result + what was there: beta = 1 where 0 is meant
  strides_ignored,
  parameters_kept,  // the first epoch's for ever
  crashes,
  hangs,
  yes_not_kept,  // supports says yes, plan_create no
  no_without_reason,
  error_without_status,  // INTERNAL for a caller's mistake
  misaligned_memory,
  event_never_done,
  leaks_at_destroy,
  gradient_doubled,  // ReluGrad gives twice the gradient
  not_in_place,      // writes a donated result before it has read the input
};
Wrong wrong = Wrong::nothing;
bool is_oracle = false;

tenon_backend_query_fn real_query() {
  static void* library = dlopen(TENON_BACKEND_DIRECTORY "/libtenon_backend_reference.so", RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(library != nullptr, dlerror());
  return reinterpret_cast<tenon_backend_query_fn>(dlsym(library, TENON_BACKEND_QUERY_SYMBOL));
}

const tenon_backend_table* real = nullptr;
tenon_status (*real_create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*) = nullptr;

/// What a lying plan_execute has to know about a plan.
struct Operand {
  std::uint32_t binding, kind;
  tenon_dtype dtype;
  std::uint64_t size_bytes;
};
struct PlanNotes {
  tenon_op op = TENON_OP_NONE;
  std::vector<Operand> operands;
  std::map<std::uint32_t, std::vector<unsigned char>> kept;  // parameters of the first execution, by binding
  bool donates = false;
};
std::mutex notes_mutex;
std::map<tenon_plan*, PlanNotes> notes;

std::uint64_t size_of_dtype(tenon_dtype dtype) {
  switch (dtype) {
    case TENON_DTYPE_F64:
    case TENON_DTYPE_I64:
    case TENON_DTYPE_U64:
      return 8;
    case TENON_DTYPE_F32:
    case TENON_DTYPE_I32:
      return 4;
    default:
      return 1;
  }
}

tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  if (wrong == Wrong::yes_not_kept) {
    std::snprintf(error->text, error->text_capacity, "on second thoughts, no");
    return TENON_UNSUPPORTED;
  }
  std::vector<tenon_value> values(graph->values, graph->values + graph->value_count);
  tenon_graph altered = *graph;
  altered.values = values.data();
  if (wrong == Wrong::strides_ignored) {
    for (tenon_value& value : values) value.desc.strides = nullptr;
  }
  const tenon_status status = real->plan_create(device, &altered, options, out_plan, error);
  if (status != TENON_OK) return status;
  PlanNotes note;
  note.donates = graph->donation_count > 0;
  if (graph->node_count > 0) note.op = graph->nodes[0].op;
  for (std::uint32_t n = 0; n < graph->node_count; ++n) {
    if (graph->nodes[n].op == TENON_OP_ReluGrad) note.op = TENON_OP_ReluGrad;
  }
  for (const tenon_value& value : values) {
    if (value.binding == TENON_NO_INDEX) continue;
    std::uint64_t size = size_of_dtype(value.desc.dtype);
    for (std::uint32_t d = 0; d < value.desc.rank; ++d) size *= static_cast<std::uint64_t>(value.desc.shape[d]);
    note.operands.push_back({value.binding, value.kind, value.desc.dtype, size});
  }
  const std::lock_guard lock(notes_mutex);
  notes[*out_plan] = note;
  return TENON_OK;
}

unsigned char* bytes_at(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
}

template <class T, class F>
void change(unsigned char* bytes, std::uint64_t size, F f) {
  for (std::uint64_t i = 0; i + sizeof(T) <= size; i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes + i, sizeof value);
    value = f(value, i / sizeof(T));
    std::memcpy(bytes + i, &value, sizeof value);
  }
}

tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  PlanNotes note;
  {
    const std::lock_guard lock(notes_mutex);
    PlanNotes& known = notes[plan];
    if (wrong == Wrong::parameters_kept && bindings->address_count >= known.operands.size()) {
      for (const Operand& o : known.operands) {
        if (o.kind != TENON_VALUE_PARAMETER) continue;
        unsigned char* bytes = bytes_at(bindings->addresses[o.binding]);
        auto& kept = known.kept[o.binding];
        if (kept.empty()) kept.assign(bytes, bytes + o.size_bytes);
      }
    }
    note = known;
  }
  if (wrong == Wrong::crashes && note.op == TENON_OP_Relu) std::raise(SIGSEGV);
  if (wrong == Wrong::hangs && note.op == TENON_OP_Relu) std::this_thread::sleep_for(std::chrono::seconds(60));
  tenon_bindings altered = *bindings;
  std::vector<std::uint64_t> addresses(bindings->addresses, bindings->addresses + bindings->address_count);
  altered.addresses = addresses.data();
  for (const auto& [binding, kept] : note.kept) addresses[binding] = reinterpret_cast<std::uintptr_t>(kept.data());

  std::vector<std::vector<unsigned char>> before;
  if (bindings->address_count >= note.operands.size()) {
    for (const Operand& o : note.operands) {
      unsigned char* bytes = bytes_at(addresses[o.binding]);
      if (o.kind != TENON_VALUE_OUTPUT) continue;
      before.emplace_back(bytes, bytes + o.size_bytes);
      if (wrong == Wrong::not_in_place && note.donates) std::memset(bytes, 0, o.size_bytes);
    }
  }
  tenon_status status = real->plan_execute(plan, &altered, workspace, stream, error);
  if (wrong == Wrong::error_without_status && status == TENON_INVALID_ARGUMENT) return TENON_INTERNAL;
  if (status != TENON_OK) return status;

  static int executions = 0;
  ++executions;
  std::size_t output = 0;
  for (const Operand& o : note.operands) {
    unsigned char* bytes = bytes_at(addresses[o.binding]);
    if (o.kind != TENON_VALUE_OUTPUT) {
      if (wrong == Wrong::input_changed && o.size_bytes > 0) bytes[0] ^= 1;
      continue;
    }
    const auto& old = before[output++];
    if (o.size_bytes == 0) continue;
    if (wrong == Wrong::behind_the_end) bytes[o.size_bytes] ^= 0x11;
    const auto alter = [&](auto zero) {
      using T = decltype(zero);
      change<T>(bytes, o.size_bytes, [&](T value, std::uint64_t i) {
        if (wrong == Wrong::element && i == 0) return static_cast<T>(value + T(1));
        if (wrong == Wrong::last_bit_now_and_then && i == 0 && executions % 3 == 0)
          return static_cast<T>(value * (T(1) + std::numeric_limits<T>::epsilon()));
        if (wrong == Wrong::gradient_doubled && note.op == TENON_OP_ReluGrad) return static_cast<T>(value * T(2));
        if (wrong == Wrong::accumulates) {
          T previous;
          std::memcpy(&previous, old.data() + i * sizeof(T), sizeof previous);
          return static_cast<T>(value + previous);
        }
        return value;
      });
    };
    if (o.dtype == TENON_DTYPE_F32) alter(float{});
    if (o.dtype == TENON_DTYPE_F64) alter(double{});
  }
  return TENON_OK;
}

tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                      tenon_error* error) {
  const tenon_status status = real->supports(device, graph, options, out_answers, error);
  if (wrong != Wrong::no_without_reason || status != TENON_OK) return status;
  for (std::uint32_t n = 0; n < graph->node_count; ++n) {
    if (out_answers[n].supported == 0) out_answers[n].text[0] = 0;
  }
  return status;
}

tenon_status memory_allocate(tenon_device* device, std::uint32_t kind, std::uint64_t size, tenon_memory** out_memory,
                             std::uint64_t* out_address, tenon_error* error) {
  const bool lie = wrong == Wrong::misaligned_memory;
  const tenon_status status = real->memory_allocate(device, kind, size + (lie && size < 1u << 30 ? 8 : 0), out_memory, out_address, error);
  if (status == TENON_OK && lie) *out_address += 8;
  return status;
}

tenon_status event_query(tenon_event* event, tenon_error* error) {
  return wrong == Wrong::event_never_done ? tenon_status{TENON_NOT_READY} : real->event_query(event, error);
}

void destroy(tenon_backend* backend) {
  if (wrong != Wrong::leaks_at_destroy) real->destroy(backend);
}

tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  static tenon_backend_table table;
  const tenon_status status = real_create(host, out_backend, &real, error);
  if (status != TENON_OK) return status;
  if (wrong == Wrong::leaks_at_destroy) host->allocate(host->context, 64, 64);
  table = *real;
  table.plan_create = plan_create;
  table.plan_execute = plan_execute;
  table.supports = supports;
  table.memory_allocate = memory_allocate;
  table.event_query = event_query;
  table.destroy = destroy;
  *out_table = &table;
  return TENON_OK;
}

tenon_status query(const tenon_host_info* host, tenon_backend_info* out_info) {
  const tenon_status status = real_query()(host, out_info);
  if (status != TENON_OK) return status;
  real_create = out_info->create;
  out_info->create = create;
  out_info->name = "wrong";
  if (!is_oracle) out_info->flags &= ~static_cast<std::uint32_t>(TENON_BACKEND_ORACLE);
  return status;
}

conformance::Options options_for(const std::string& filter, const std::string& profile = "ops") {
  conformance::Options options;
  options.backend = "wrong";
  options.registered = {{"wrong", query}};
  options.backend_directory = TENON_BACKEND_DIRECTORY;
  options.profile = profile;
  options.filter = filter;
  options.small = true;
  return options;
}

/// What the kit says about the backend that is wrong in this way.
conformance::Report judged(Wrong how, const std::string& filter, const std::string& profile = "ops") {
  wrong = how;
  conformance::Report report = conformance::judge(options_for(filter, profile));
  wrong = Wrong::nothing;
  return report;
}

const conformance::Result& result_named(const conformance::Report& report, const std::string& name) {
  for (const conformance::Result& result : report.results) {
    if (result.name == name) return result;
  }
  FAIL("no case is called " << name);
  return report.results.front();
}

bool fails(const conformance::Report& report, const std::string& name) {
  return result_named(report, name).outcome == Class::fail;
}
bool passes(const conformance::Report& report, const std::string& name) {
  return result_named(report, name).outcome == Class::pass;
}

}  // namespace

TEST_CASE("conformance: every listed op has a case, and something foreign judges the oracle") {
  for (const std::string& gap : conformance::gaps()) FAIL_CHECK(gap);
}

TEST_CASE("conformance: the wrapped backend without a lie passes") {
  const auto report = judged(Wrong::nothing, "relu*");
  CHECK(report.count(Class::fail) == 0);
  CHECK(report.count(Class::pass) > 100);
  CHECK(report.exit_code() == 0);
}

TEST_CASE("conformance: a wrong element fails the forward case, and the text says all of it") {
  const auto report = judged(Wrong::element, "softmax/f32(8,10)/axis=1/*");
  const auto& forward = result_named(report, "softmax/f32(8,10)/axis=1/forward");
  CHECK(forward.outcome == Class::fail);
  CHECK(forward.op == "softmax");
  CHECK(forward.dtype == "f32");
  for (const char* part : {"element (0,0)", "wanted", "got 1.", "error", "allowed", "f32(8,10)",
                           "tenon conformance --backend wrong --profile ops --filter 'softmax/f32(8,10)/axis=1/forward' --seed 1"}) {
    const std::string all = forward.text + "; again: " + forward.again;
    CHECK_MESSAGE(all.find(part) != std::string::npos, part, " is not in: ", all);
  }
  CHECK(fails(report, "softmax/f32(8,10)/axis=1/each row sums to one"));
  CHECK(report.exit_code() == 1);
}

TEST_CASE("conformance: a write behind the end of a result is seen") {
  const auto report = judged(Wrong::behind_the_end, "add/f32(7),(7)/*");
  CHECK(fails(report, "add/f32(7),(7)/guards"));
  CHECK(result_named(report, "add/f32(7),(7)/guards").text.find("behind the end of output 0") != std::string::npos);
}

TEST_CASE("conformance: a changed input is seen") {
  const auto report = judged(Wrong::input_changed, "add/f32(7),(7)/*");
  CHECK(result_named(report, "add/f32(7),(7)/guards").text.find("changed byte 0 of input 0") != std::string::npos);
}

TEST_CASE("conformance: a result that adds to what was there is seen") {
  CHECK(fails(judged(Wrong::accumulates, "gemm/f32(5,3),(3,4),-/nn/*"), "gemm/f32(5,3),(3,4),-/nn/guards"));
}

TEST_CASE("conformance: other bits the second time are seen") {
  CHECK(fails(judged(Wrong::last_bit_now_and_then, "sigmoid/f64(8,10)/*"), "sigmoid/f64(8,10)/deterministic"));
}

TEST_CASE("conformance: ignored strides are seen, and only they") {
  const auto report = judged(Wrong::strides_ignored, "neg/f32(8,10)/*");
  CHECK(passes(report, "neg/f32(8,10)/forward"));
  for (const char* check : {"strided", "negative_stride", "transposed", "broadcast_stride"})
    CHECK(fails(report, std::string("neg/f32(8,10)/") + check));
  CHECK(result_named(report, "neg/f32(8,10)/strided").text.find("strides (") != std::string::npos);
}

TEST_CASE("conformance: parameters of an earlier epoch are seen") {
  const auto report = judged(Wrong::parameters_kept, "matmul/f32(3,5),(5,4)/*");
  CHECK(passes(report, "matmul/f32(3,5),(5,4)/forward"));
  CHECK(fails(report, "matmul/f32(3,5),(5,4)/parameters"));
}

TEST_CASE("conformance: a donated input that is overwritten before it is read is seen") {
  CHECK(fails(judged(Wrong::not_in_place, "relu/f32(8,10)/*"), "relu/f32(8,10)/in_place_0"));
}

TEST_CASE("conformance: a crash is one result, and the cases after it still run") {
  const auto report = judged(Wrong::crashes, "relu/f32(8,10)/*");
  CHECK(result_named(report, "relu/f32(8,10)/forward").text.find("signal 11") != std::string::npos);
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
  CHECK(report.results[0].text.find("no answer for 0.5 s") != std::string::npos);
}

TEST_CASE("conformance: a yes that plan_create does not keep is a failure, not 'unsupported'") {
  const auto report = judged(Wrong::yes_not_kept, "relu/f32(8,10)/forward");
  CHECK(report.count(Class::unsupported) == 0);
  CHECK(report.results[0].text.find("said yes") != std::string::npos);
}

TEST_CASE("conformance: a no without a sentence is a failure") {
  CHECK(fails(judged(Wrong::no_without_reason, "relu/refusals"), "relu/refusals"));
}

TEST_CASE("conformance: a bad label has to be the caller's mistake") {
  const std::string name = "softmax_cross_entropy/f32/bad_argument/label_too_large";
  CHECK(passes(judged(Wrong::nothing, name), name));
  CHECK(fails(judged(Wrong::error_without_status, name), name));
}

TEST_CASE("conformance: the oracle's own mistakes are found by golden vectors and finite differences") {
  is_oracle = true;
  const auto grad = judged(Wrong::gradient_doubled, "relu_grad/*");
  const auto relu = judged(Wrong::gradient_doubled, "relu/f64*");
  is_oracle = false;
  CHECK(result_named(grad, "relu_grad/f64(8,10),(8,10)/forward").outcome == Class::not_run);
  CHECK(fails(grad, "relu_grad/f32/golden/at_and_around_zero"));
  CHECK(fails(relu, "relu/f64(8,10)/gradient"));
  CHECK(result_named(relu, "relu/f64(8,10)/gradient").text.find("finite differences") != std::string::npos);
}

TEST_CASE("conformance: the core profile catches memory, events and lifecycle") {
  CHECK(fails(judged(Wrong::misaligned_memory, "core/memory/*", "core"), "core/memory/alignment"));
  CHECK(fails(judged(Wrong::event_never_done, "core/event/*", "core"), "core/event/lifecycle"));
  CHECK(fails(judged(Wrong::leaks_at_destroy, "core/lifecycle/create_and_destroy", "core"), "core/lifecycle/create_and_destroy"));
}

TEST_CASE("conformance: the report in JSON has the summary and every case") {
  const auto report = judged(Wrong::element, "neg/f32(7)/*");
  const auto json = nlohmann::json::parse(conformance::to_json(report));
  CHECK(json.at("summary").at("fail").get<std::int64_t>() == report.count(Class::fail));
  CHECK(json.at("summary").at("not_run").get<std::int64_t>() == 0);
  CHECK(json.at("cases").size() == report.results.size());
  CHECK(json.at("cases")[0].at("name") == "neg/f32(7)/forward");
  CHECK(json.at("cases")[0].at("class") == "fail");
  CHECK(json.at("seed") == 1);
}

TEST_CASE("conformance: a mandatory op that is unsupported costs the exit code, an optional one does not") {
  conformance::Report report;
  report.results.push_back({"relu/f32(7)/forward", Class::unsupported, "relu", "f32", "no", true});
  CHECK(report.exit_code() == 1);
  report.results[0].mandatory = false;
  CHECK(report.exit_code() == 0);
  report.results.clear();
  CHECK(report.exit_code() == 1);
}

TEST_CASE("conformance: waivers exclude with a reason, and an unexpected pass fails") {
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
  CHECK(result.text.find("take the entry out") != std::string::npos);

  std::ofstream(file) << "unsupported:\n  - {match: 'relu/*'}\n";
  CHECK_THROWS_WITH_AS(conformance::Waivers::read(file), doctest::Contains(":2: unsupported: wanted {match: GLOB, reason: TEXT}"), Error);
  std::ofstream(file) << "unsuported: []\n";
  CHECK_THROWS_WITH_AS(conformance::Waivers::read(file), doctest::Contains(":1: unknown key 'unsuported'"), Error);
  std::filesystem::remove(file);
}

TEST_CASE("conformance: what cannot be run is said, not passed over") {
  CHECK_THROWS_WITH_AS(conformance::judge(options_for("no_such_op/*")), "conformance: no case of profile ops matches 'no_such_op/*'",
                       Error);
  auto options = options_for("*");
  options.backend = "absent";
  CHECK_THROWS_WITH_AS(conformance::judge(options), doctest::Contains("no backend 'absent'"), Error);
  options = options_for("*", "everything");
  CHECK_THROWS_WITH_AS(conformance::judge(options), doctest::Contains("unknown profile 'everything'"), Error);
}
