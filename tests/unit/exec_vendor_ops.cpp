// SPDX-License-Identifier: Apache-2.0
// Ops of vendors, and extensions, with the example plugin of plugins/examples/soft_clip.
#include <tenon/vendor_ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/model_yaml.h"
#include "examples/soft_clip/extension.h"
#include "exec/registered.h"
#include "extra_device.h"
#include "graph/vendor_ops.h"
#include "layers/forward.h"
#include "platform/library.h"
#include "platform/path.h"
#include "testing.h"

namespace tenon::test {
namespace {

constexpr const char* soft_clip = "com.example.SoftClip";

Config example_config(Fallback fallback = Fallback::error) {
  Config config = test_config("example:0");
  config.backends.probe = BackendProbe::never;
  config.fallback = fallback;
  return config;
}

struct OnExample {
  const Context context{example_config(), {TENON_EXAMPLE_PLUGIN}};
};

/// The values of x f32(2,3) and of y = limit tanh(x / limit).
const std::vector<float> operands{-9, -1, -0.5f, 0, 2, 40};
std::vector<float> expected(float limit) {
  std::vector<float> y;
  for (const float x : operands) y.push_back(limit * std::tanh(x / limit));
  return y;
}

/// y = SoftClip(x) of the operands on the device.
std::vector<float> result_of(const Context& context, const AttributeValues& attributes) {
  Graph graph;
  graph.output("y", ops::call(soft_clip, {graph.input("x", DType::f32, {2, 3})}, attributes)[0]);
  return floats(Program(context, graph, {.device = "example:0"}).run({Tensor::of(operands, {2, 3})})[0]);
}

/// An error of a call on x f32(2,3).
std::string error_of(const std::string& name, const AttributeValues& attributes, std::size_t operand_count = 1, DType dtype = DType::f32) {
  Graph graph;
  const std::vector<Value> inputs(operand_count, graph.input("x", dtype, {2, 3}));
  const std::string text = message_of([&] { ops::call(name, inputs, attributes); });
  CHECK(graph.nodes().empty());  // an error leaves the graph as it was
  return text;
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: an op is called by its name, with attributes and with the schema's defaults") {
  CHECK(result_of(context, {{"limit", 3.0}}) == expected(3));
  CHECK(result_of(context, {{"limit", std::int64_t{2}}}) == expected(2));  // an integer for a number
  CHECK(result_of(context, {}) == expected(1));
  CHECK(result_of(context, {{"limit", 3.0}}) == expected(3));
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: graphs show them by name, version and attributes") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 3});
  const Value y = ops::call(soft_clip, {x}, {{"limit", 2.5}}, 1)[0];
  CHECK(y.dtype() == DType::f32);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(contains(graph.str(), "= com.example.SoftClip(x) limit=2.5"));
  CHECK(contains(to_dot(graph), "com.example.SoftClip limit=2.5"));
  const auto node = nlohmann::json::parse(to_json(graph)).at("nodes").at(0);
  CHECK(node.at("op") == soft_clip);
  CHECK(node.at("version") == 1);
  CHECK(node.at("attributes") == "limit=2.5");
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: equal attributes are the same bytes, however they were made") {
  const tenon_op op = vendor_op(soft_clip);
  CHECK(graph::is_vendor_op(op));
  CHECK(op == vendor_op(soft_clip, 1));
  const Attributes three = vendor_attributes(op, {{"limit", 3.0}});
  CHECK(three == vendor_attributes(op, {{"limit", std::int64_t{3}}}));
  CHECK_FALSE(three == vendor_attributes(op, {}));
  const double limit = 3;
  const tenon_attribute own{"limit", &limit, TENON_ATTRIBUTE_FLOAT, 1};
  CHECK(three == Attributes::of(tenon_attributes_vendor{sizeof(tenon_attributes_vendor), 1, &own}));
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: immediate mode runs them") {
  const Device device = context.device("example:0");
  const tenon_op op = vendor_op(soft_clip);
  for (const float limit : {3.0f, 2.0f, 3.0f}) {
    const Attributes attributes = vendor_attributes(op, {{"limit", static_cast<double>(limit)}});
    CHECK(floats(context.apply(device, op, {Tensor::of(operands, {2, 3})}, attributes)[0]) == expected(limit));
  }
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: wrong calls say what was expected") {
  CHECK(error_of(soft_clip, {{"limt", 3.0}}) == "com.example.SoftClip: unknown attribute 'limt'; did you mean 'limit'?; it has limit");
  CHECK(error_of(soft_clip, {{"limit", "far"}}) ==
        "com.example.SoftClip: attribute 'limit': expected a value of type float, got far of type string");
  CHECK(contains(error_of(soft_clip, {{"limit", -1.0}}), "expected a limit above 0, got -1"));        // of the plugin
  CHECK(contains(error_of(soft_clip, {}, 1, DType::i32), "expected x of f32 or f64, got i32(2,3)"));  // likewise
  CHECK(contains(error_of(soft_clip, {}, 2), "expected at most 1 operand, got 2"));
  CHECK(contains(error_of("SoftClip", {}), "expected '<domain>.<name>'"));
  const std::string misspelt = error_of("com.example.SoftClap", {});
  CHECK(contains(misspelt, "no loaded backend has it; did you mean 'com.example.SoftClip'?"));
  CHECK(contains(misspelt, "ops of com.example: SoftClip-1 (example)"));
  CHECK(contains(error_of("com.nobody.Op", {}), "ops of com.nobody: none; load the plugin that has it"));
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 3});
  CHECK_ERROR_CONTAINS("op com.example.SoftClip-2: no loaded backend has it", ops::call(soft_clip, {x}, {}, 2));
  CHECK_ERROR_CONTAINS("at least one operand", ops::call(soft_clip, {}));
  CHECK_ERROR_CONTAINS("expected attributes tenon_attributes_vendor", graph.apply(vendor_op(soft_clip), {x}));
}

TEST_CASE("vendor ops: without its backend an op is an error that says so") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 3});
  {
    const OnExample loaded;
    CHECK_NOTHROW(ops::call(soft_clip, {x}));
  }
  CHECK_ERROR_CONTAINS("the backend that has it was unloaded; load the plugin", ops::call(soft_clip, {x}));
  const Context without(test_config());
  CHECK_ERROR_CONTAINS("does not declare com.example.SoftClip; backends that do: none", {
    graph.output("y", Value(&graph, graph.nodes()[0].outputs[0]));
    const Program program(without, graph);
  });
  const OnExample again;
  CHECK(result_of(again.context, {}) == expected(1));
}

TEST_CASE("vendor ops: they stay when their backend is replaced, and graphs from before run") {
  Context context(example_config(), {TENON_EXAMPLE_PLUGIN});
  Graph graph;
  graph.output("y", ops::call(soft_clip, {graph.input("x", DType::f32, {2, 3})}, {{"limit", 2.0}})[0]);
  context.reload_backend("example");
  CHECK(graph::backends_with(vendor_op(soft_clip)) == std::vector<std::string>{"example"});
  CHECK(floats(Program(context, graph, {.device = "example:0"}).run({Tensor::of(operands, {2, 3})})[0]) == expected(2));
  CHECK(result_of(context, {{"limit", 3.0}}) == expected(3));
}

TEST_CASE("vendor ops: neighbours that their backend lacks run elsewhere, and they do not run where they are not declared") {
  const auto network = [] {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {2, 3});
    graph.output("y", ops::neg(ops::call(soft_clip, {ops::neg(x)}, {{"limit", 2.0}})[0]));
    return graph;
  };
  {
    const Context context(example_config(Fallback::allow), {TENON_EXAMPLE_PLUGIN});
    for (const char* const device : {"example:0", "reference:0"}) {
      Program program(context, network(), {.device = device});
      CHECK(floats(program.run({Tensor::of(operands, {2, 3})})[0]) == expected(2));  // an odd function
      for (const Placement& node : program.placement().nodes) CHECK((node.device == "example:0") == (node.op == soft_clip));
    }
  }
  const Context context(example_config(), {TENON_EXAMPLE_PLUGIN});
  CHECK_ERROR_CONTAINS("backend 'reference' does not declare com.example.SoftClip; backends that do: example; devices that can: example:0",
                       Program(context, network(), {.device = "reference:0"}));
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: nodes of constants are not folded, since the oracle does not have the op") {
  Graph graph;
  const Value constant = graph.constant(Tensor::of(operands, {2, 3}));
  graph.output("y", ops::call(soft_clip, {constant}, {{"limit", 2.0}})[0]);
  CHECK(floats(Program(context, graph, {.device = "example:0"}).run(std::span<const Tensor>())[0]) == expected(2));
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: they have no gradient, and the error names the op") {
  Graph graph;
  const Value w = graph.parameter("w", DType::f32, {2, 3});
  const Value loss = ops::reduce_sum(ops::call(soft_clip, {w})[0]);
  CHECK_ERROR_CONTAINS("goes through com.example.SoftClip", gradients(loss, {w}));
  CHECK_ERROR_CONTAINS("an op without a gradient", gradients(loss, {w}));
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: a layer of model.yaml calls one, and its errors name file and line") {
  const auto forward = [](const std::string& layer) {
    Graph graph;
    const ModelDefinition definition = config::model_from_text("layers:\n  - flatten\n  - " + layer + "\n", "model.yaml");
    const Value x = graph.input("x", DType::f32, {2, 3});
    graph.output("y", layers::build(graph, definition, x, {}).outputs[0].output);
    return graph;
  };
  const Graph graph = forward("vendor_op: {op: com.example.SoftClip, attributes: {limit: 2}, device: \"example:0\"}");
  CHECK(contains(graph.str(), "= com.example.SoftClip("));
  CHECK(contains(graph.str(), ") limit=2  @example:0"));
  Program program(Context(example_config(Fallback::allow), {TENON_EXAMPLE_PLUGIN}), graph, {.device = "reference:0"});
  CHECK(floats(program.run({Tensor::of(operands, {2, 3})})[0]) == expected(2));
  CHECK_ERROR_CONTAINS("model.yaml:3:5: layers[1] vendor_op: com.example.SoftClip: unknown attribute 'limits'",
                       forward("vendor_op: {op: com.example.SoftClip, attributes: {limits: 2}}"));
  CHECK_ERROR_CONTAINS("attribute 'limit': expected a value of type float, got 2 of type string",
                       forward("vendor_op: {op: com.example.SoftClip, attributes: {limit: \"2\"}}"));
  CHECK_ERROR_CONTAINS("model.yaml:3:5: layers[1] vendor_op: op com.nobody.Op: no loaded backend has it",
                       forward("vendor_op: {op: com.nobody.Op}"));
}

TEST_CASE("vendor ops: keys of the layer are read with their types") {
  const auto layer = std::get<layers::VendorOp>(
      config::model_from_text(
          "layers: [vendor_op: {op: a.B, version: 2, attributes: {i: 3, f: 1e-3, s: soft, q: \"3\", l: [1, 2], m: [1, 2.5], e: []}}]")
          .layers.at(0)
          .kind);
  CHECK(layer.op == "a.B");
  CHECK(layer.version == 2);
  CHECK(layer.attributes.at("i") == AttributeValue(std::int64_t{3}));
  CHECK(layer.attributes.at("f") == AttributeValue(1e-3));
  CHECK(layer.attributes.at("s") == AttributeValue(std::string("soft")));
  CHECK(layer.attributes.at("q") == AttributeValue(std::string("3")));
  CHECK(layer.attributes.at("l") == AttributeValue(std::vector<std::int64_t>{1, 2}));
  CHECK(layer.attributes.at("m") == AttributeValue(std::vector<double>{1, 2.5}));
  CHECK(layer.attributes.at("e") == AttributeValue(std::vector<std::int64_t>{}));
  CHECK_ERROR_CONTAINS("key 'attributes.l': expected a number, a text or a list of numbers",
                       config::model_from_text("layers: [vendor_op: {op: a.B, attributes: {l: [far]}}]"));
}

// ---------------------------------------------------------------- several backends

tenon_status infer_like_x(const tenon_tensor_desc* inputs, std::uint32_t, const tenon_attributes_vendor*, tenon_vendor_result* out_results,
                          std::uint32_t, tenon_error*) {
  tenon_vendor_result result{};
  result.dtype = inputs[0].dtype;
  result.rank = inputs[0].rank;
  std::copy_n(inputs[0].shape, inputs[0].rank, result.shape);
  *out_results = result;
  return TENON_OK;
}

/// The reference backend with the example's op under an id of its own; it refuses its nodes.
struct Twin : WrappedBackend<Twin> {
  static constexpr const char* name = "twin";
  static constexpr tenon_op own_id = TENON_OP_VENDOR + 77;
  static inline tenon_op asked_about = TENON_OP_NONE;

  static void describe(tenon_backend_info& info) {
    static const tenon_vendor_op op{own_id, 1, "com.example", "SoftClip", "x:f32|f64 -> y:f32|f64; limit:float=1", infer_like_x};
    info.vendor_ops = &op;
    info.vendor_op_count = 1;
    info.vendor_op_stride = sizeof op;
  }
  static tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                               std::uint32_t answer_stride, tenon_error* error) {
    for (std::uint32_t i = 0; i < graph->node_count; ++i) asked_about = std::max(asked_about, graph->nodes[i].op);
    return real->table().supports(device, graph, options, out_answers, answer_stride, error);
  }
  static void alter(tenon_backend_table& table) { table.supports = supports; }
};

TEST_CASE("vendor ops: two backends have the same op, each under an id of its own") {
  const Context context(example_config(Fallback::allow), {TENON_EXAMPLE_PLUGIN});
  Twin::add_to(context);
  Graph graph;
  graph.output("y", ops::call(soft_clip, {graph.input("x", DType::f32, {2, 3})}, {{"limit", 2.0}})[0]);
  CHECK(graph::backends_with(vendor_op(soft_clip)).size() == 2);
  Program program(context, graph, {.device = "twin:0"});  // where it is asked about, refused, and moved to the other one
  CHECK(Twin::asked_about == Twin::own_id);
  CHECK(program.placement().nodes[0].device == "example:0");
  CHECK(floats(program.run({Tensor::of(operands, {2, 3})})[0]) == expected(2));
}

TEST_CASE_FIXTURE(OnExample, "vendor ops: a backend that declares the same version with another schema does not get the op") {
  const tenon_vendor_op other{TENON_OP_VENDOR + 5, 1, "com.example", "SoftClip", "x:T y:T -> z:T", infer_like_x};
  const graph::VendorOpDeclarations declarations("other", {&other, 1});
  REQUIRE(declarations.conflicts().size() == 1);
  CHECK(contains(declarations.conflicts()[0], "its op com.example.SoftClip-1 is not used"));
  CHECK(contains(declarations.conflicts()[0], "a changed schema needs another version"));
  CHECK_FALSE(declarations.own_id(vendor_op(soft_clip)));
  CHECK(graph::backends_with(vendor_op(soft_clip)) == std::vector<std::string>{"example"});
}

/// The example under another name, which declares its op with another schema.
tenon_status query_rival(const tenon_host_info* host, tenon_backend_info* out_info) {
  static std::string reason;
  static void* const library = platform::open_library(platform::path_of(TENON_EXAMPLE_PLUGIN), reason);
  REQUIRE_MESSAGE(library != nullptr, reason);
  static const tenon_vendor_op op{TENON_OP_VENDOR, 1, "com.example", "SoftClip", "x:T -> y:T; limit:float=2", infer_like_x};
  const tenon_status status =
      reinterpret_cast<tenon_backend_query_fn>(platform::find_symbol(library, TENON_BACKEND_QUERY_SYMBOL))(host, out_info);
  out_info->name = "rival";
  out_info->vendor_ops = &op;
  return status;
}

TEST_CASE("vendor ops: a conflict of schemas is a warning in the load report, and the backend is used without the op") {
  const exec::BackendScope scope("rival", query_rival);
  const Context context(example_config(), {TENON_EXAMPLE_PLUGIN});
  const auto& records = context.load_report().records;
  const auto rival = std::ranges::find(records, std::string("rival"), &LoadRecord::name);
  REQUIRE(rival != records.end());
  CHECK(rival->healthy);
  REQUIRE(rival->warnings.size() == 1);
  CHECK(contains(rival->warnings[0], "its op com.example.SoftClip-1 is not used"));
  CHECK(contains(rival->warnings[0], "and this one with 'x:T -> y:T; limit:float=2'"));
  CHECK(result_of(context, {}) == expected(1));
  Graph graph;
  graph.output("y", ops::call(soft_clip, {graph.input("x", DType::f32, {2, 3})})[0]);
  CHECK_ERROR_CONTAINS("backend 'rival' does not declare com.example.SoftClip; backends that do: example",
                       Program(context, graph, {.device = "rival:0"}));
}

TEST_CASE("vendor ops: the newest version that a loaded backend has is called unless another one is asked for") {
  const tenon_vendor_op both[] = {{TENON_OP_VENDOR, 1, "com.test", "Same", "x:T -> y:T", infer_like_x},
                                  {TENON_OP_VENDOR + 1, 3, "com.test", "Same", "x:T -> y:T; way:string=up", infer_like_x}};
  const graph::VendorOpDeclarations first("first", {both, 1});
  const tenon_op one = vendor_op("com.test.Same");
  {
    const graph::VendorOpDeclarations second("second", {both + 1, 1});
    CHECK(vendor_op("com.test.Same") != one);
    CHECK(graph::version_of(vendor_op("com.test.Same")) == 3);
    CHECK(vendor_op("com.test.Same", 1) == one);
    CHECK(second.own_id(vendor_op("com.test.Same")) == static_cast<tenon_op>(TENON_OP_VENDOR + 1));
    CHECK_FALSE(second.own_id(one));
  }
  CHECK(vendor_op("com.test.Same") == one);
  CHECK_ERROR_CONTAINS("was unloaded", vendor_op("com.test.Same", 3));
}

// ---------------------------------------------------------------- extensions

TEST_CASE("extensions: an application gets a backend's by name and version, and a backend those of the application") {
  std::int64_t seen = 0;
  const example_observer observer{
      .struct_size = sizeof(example_observer), .reserved = 0, .context = &seen, .kernel_run = [](void* context, std::int64_t elements) {
        *static_cast<std::int64_t*>(context) += elements;
      }};
  const Context context(example_config(), {TENON_EXAMPLE_PLUGIN}, {}, {{EXAMPLE_OBSERVER_NAME, EXAMPLE_OBSERVER_VERSION, &observer}});
  const auto* const counters =
      static_cast<const example_counters*>(context.backend_extension("example", EXAMPLE_COUNTERS_NAME, EXAMPLE_COUNTERS_VERSION));
  REQUIRE(counters != nullptr);
  CHECK(counters->struct_size >= sizeof(example_counters));
  const std::uint64_t before = counters->kernels_run();
  result_of(context, {});
  CHECK(counters->kernels_run() == before + 1);
  CHECK(seen == 6);
  CHECK(context.backend_extension("example", EXAMPLE_COUNTERS_NAME, EXAMPLE_COUNTERS_VERSION) == counters);
  CHECK(context.backend_extension("example", EXAMPLE_COUNTERS_NAME, 4711) == nullptr);
  CHECK(context.backend_extension("example", "com.example.nothing", 1) == nullptr);
  CHECK(context.backend_extension("reference", EXAMPLE_COUNTERS_NAME, EXAMPLE_COUNTERS_VERSION) == nullptr);
  CHECK_ERROR_CONTAINS("no backend 'exmaple' is in use; in use: ", context.backend_extension("exmaple", EXAMPLE_COUNTERS_NAME, 1));
}

}  // namespace
}  // namespace tenon::test
