// SPDX-License-Identifier: Apache-2.0
// The C API: ops, graphs, programs, parameters, cancellation.
#include "capi_testing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

namespace {

/// y = x w, loss = sum of y; w is a parameter (3, 2).
struct Product {
  Owned<TenonGraph> graph;
  TenonValue x = 0, w = 0, y = 0, loss = 0;
  Product() {
    REQUIRE_OK(tenon_graph_create(graph.out()));
    const std::int64_t of_x[] = {2, 3}, of_w[] = {3, 2};
    REQUIRE_OK(tenon_graph_input(graph, "x", TENON_DTYPE_F32, 2, of_x, &x));
    REQUIRE_OK(tenon_graph_parameter(graph, "w", TENON_DTYPE_F32, 2, of_w, &w));
    const TenonValue operands[] = {x, w};
    std::uint64_t count = 0;
    REQUIRE_OK(tenon_graph_apply(graph, TENON_OP_MatMul, nullptr, nullptr, operands, 2, &y, 1, &count));
    CHECK(count == 1);
    REQUIRE_OK(
        tenon_graph_apply_named(graph, "ReduceSum", R"({"axes": [0, 1], "keepdims": false, "name": "total"})", &y, 1, &loss, 1, nullptr));
  }
};

}  // namespace

TEST_CASE("C API: an op at once, by number with a struct and by name with JSON, gives the same") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 1, 1, 1}, {2, 3});
  const TenonTensor* inputs[] = {x};
  TenonTensor* results[2] = {};
  std::uint64_t count = 0;
  tenon_attributes_axis axis{};
  axis.struct_size = sizeof axis;
  axis.axis = 1;
  REQUIRE_OK(tenon_apply(context, nullptr, TENON_OP_Softmax, &axis, nullptr, inputs, 1, results, 2, &count));
  CHECK(count == 1);
  CHECK(results[1] == nullptr);
  const Owned<TenonTensor> by_number(results[0]);
  REQUIRE_OK(tenon_apply_named(context, nullptr, "Softmax", R"({"axis": -1})", inputs, 1, results, 2, &count));
  const Owned<TenonTensor> by_name(results[0]);
  CHECK(values_of(by_number) == values_of(by_name));
  const float e1 = std::exp(-2.F), e2 = std::exp(-1.F);
  CHECK(values_of(by_number)[0] == doctest::Approx(e1 / (e1 + e2 + 1)));
  CHECK(values_of(by_number)[3] == doctest::Approx(1.0 / 3));

  Owned<TenonDevice> openblas, where;
  REQUIRE_OK(tenon_device_open(context, "openblas:0", openblas.out()));
  REQUIRE_OK(tenon_apply(context, openblas, TENON_OP_Neg, nullptr, nullptr, inputs, 1, results, 1, nullptr));
  const Owned<TenonTensor> there(results[0]);
  REQUIRE_OK(tenon_tensor_device(there, where.out()));
  CHECK(std::string(tenon_device_name(where)) == "openblas:0");
  CHECK(values_of(there)[1] == -2);
}

TEST_CASE("C API: ops whose operands do not tell the result's shape get it by struct or JSON") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  const TenonTensor* inputs[] = {x};
  TenonTensor* results[3] = {};
  std::uint64_t count = 0;
  const std::int64_t shape[] = {6}, sizes[] = {1, 2};
  TenonNodeOptions options{};
  options.struct_size = sizeof options;
  options.has_shape = 1;
  options.rank = 1;
  options.shape = shape;
  REQUIRE_OK(tenon_apply(context, nullptr, TENON_OP_Reshape, nullptr, &options, inputs, 1, results, 1, &count));
  CHECK(shape_of(results[0]) == std::vector<std::int64_t>{6});
  tenon_release(results[0]);
  options = {};
  options.struct_size = sizeof options;
  options.sizes = sizes;
  options.size_count = 2;
  tenon_attributes_axis axis{};
  axis.struct_size = sizeof axis;
  axis.axis = 1;
  REQUIRE_OK(tenon_apply(context, nullptr, TENON_OP_Split, &axis, &options, inputs, 1, results, 3, &count));
  REQUIRE(count == 2);
  CHECK(values_of(results[1]) == std::vector<float>{2, 3, 5, 6});
  tenon_release(results[0]);
  tenon_release(results[1]);
  REQUIRE_OK(tenon_apply_named(context, nullptr, "Reshape", R"({"shape": [3, 2]})", inputs, 1, results, 1, &count));
  CHECK(shape_of(results[0]) == std::vector<std::int64_t>{3, 2});
  tenon_release(results[0]);
  REQUIRE_OK(tenon_apply_named(context, nullptr, "Split", R"({"axis": 0, "sizes": [1, 1]})", inputs, 1, results, 3, &count));
  CHECK(values_of(results[1]) == std::vector<float>{4, 5, 6});
  tenon_release(results[0]);
  tenon_release(results[1]);
}

TEST_CASE("C API: wrong ops, attributes and operands are errors") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4}, {2, 2});
  const TenonTensor* inputs[] = {x, nullptr};
  TenonTensor* result = nullptr;
  const auto named = [&](const char* op, const char* attributes) {
    return tenon_apply_named(context, nullptr, op, attributes, inputs, 1, &result, 1, nullptr);
  };
  CHECK_FAILS_WITH("got 'SoftMaxx'; did you mean 'Softmax'?", named("SoftMaxx", nullptr));
  CHECK_FAILS_WITH("com.example", named("com.example.None", nullptr));
  CHECK_FAILS("INVALID_ARGUMENT: Softmax: attribute 'axis' is missing", named("Softmax", nullptr));
  CHECK_FAILS("INVALID_ARGUMENT: Softmax: attribute 'axis': expected an integer, got 1.5", named("Softmax", R"({"axis": 1.5})"));
  CHECK_FAILS("INVALID_ARGUMENT: Softmax: it has no attribute 'axes'; did you mean 'axis'?; it has axis",
              named("Softmax", R"({"axis": 0, "axes": 1})"));
  CHECK_FAILS("INVALID_ARGUMENT: Cast: attribute 'to': expected the name of a dtype, such as f32, got f33",
              named("Cast", R"({"to": "f33"})"));
  CHECK_FAILS("INVALID_ARGUMENT: tenon_apply_named: attributes: expected a JSON object, got [", named("Softmax", "["));
  CHECK_FAILS(
      "INVALID_ARGUMENT: tenon_apply_named: attributes: 'axis': expected a number, a text, true, false or a list of numbers, got {}",
      named("Softmax", R"({"axis": {}})"));
  CHECK_FAILS_WITH("attribute 'keepdims': expected 0 or 1, got 2", named("ReduceSum", R"({"axes": [0], "keepdims": 2})"));
  CHECK_FAILS_WITH("attribute 'mode': expected one of constant, reflect, edge, got wrap",
                   named("Pad", R"({"mode": "wrap", "value": 0, "before": [1, 1], "shape": [4, 4]})"));
  CHECK_FAILS_WITH("expected at most 8 numbers, got [1, 2, 3, 4, 5, 6, 7, 8, 9]",
                   named("ReduceSum", R"({"axes": [1, 2, 3, 4, 5, 6, 7, 8, 9]})"));
  tenon_attributes_axis axis{};
  axis.struct_size = 4;
  CHECK_FAILS_WITH("attributes: expected the struct of Softmax with struct_size 16, got 4",
                   tenon_apply(context, nullptr, TENON_OP_Softmax, &axis, nullptr, inputs, 1, &result, 1, nullptr));
  CHECK_FAILS_WITH("op: expected an op of tenon/ops.def, got 9999",
                   tenon_apply(context, nullptr, 9999, &axis, nullptr, inputs, 1, &result, 1, nullptr));
  CHECK_FAILS_WITH("out_results: expected space for 1 tensor, got it for 0",
                   tenon_apply(context, nullptr, TENON_OP_Neg, nullptr, nullptr, inputs, 1, &result, 0, nullptr));
  CHECK_FAILS_WITH("inputs: expected an address, got NULL",
                   tenon_apply(context, nullptr, TENON_OP_Neg, nullptr, nullptr, nullptr, 1, &result, 1, nullptr));
  CHECK_FAILS_WITH("operand b is absent", tenon_apply(context, nullptr, TENON_OP_Add, nullptr, nullptr, inputs, 2, &result, 1, nullptr));
  const void* const wrong = static_cast<TenonContext*>(context);
  inputs[0] = static_cast<const TenonTensor*>(wrong);
  CHECK_FAILS_WITH("inputs[0]: expected a tensor, got a context",
                   tenon_apply(context, nullptr, TENON_OP_Neg, nullptr, nullptr, inputs, 1, &result, 1, nullptr));
  CHECK(result == nullptr);
}

TEST_CASE("C API: the list of ops has what a binding generates its functions from") {
  char* text = nullptr;
  REQUIRE_OK(tenon_ops(&text));
  const json ops = parsed(text);
  CHECK(ops.size() > 100);
  for (const json& op : ops) {
    tenon_op id = 0;
    REQUIRE_OK(tenon_op_by_name(op["name"].get<std::string>().c_str(), &id));
    CHECK(id == op["id"]);
    CHECK(!op["doc"].get<std::string>().empty());
    // Each word after the schema's semicolon is one attribute.
    const std::string schema = op["schema"];
    const std::size_t at = schema.find(';');
    const std::string words = at == std::string::npos ? "" : schema.substr(at + 1);
    CHECK(static_cast<std::size_t>(std::ranges::count(words, ' ')) == op["attributes"].size());
    for (const json& attribute : op["attributes"]) CHECK(words.find(" " + attribute["name"].get<std::string>()) != std::string::npos);
  }
}

TEST_CASE("C API: a graph is built node by node and says what its values are") {
  const NoLeaks none;
  const Product p;
  TenonValueInfo info{};
  info.struct_size = sizeof info;
  REQUIRE_OK(tenon_graph_value_info(p.graph, p.y, &info));
  CHECK(info.dtype == TENON_DTYPE_F32);
  CHECK(info.rank == 2);
  CHECK(info.shape[1] == 2);
  CHECK(info.kind == TENON_VALUE_INTERNAL);
  struct {
    TenonValueInfo known;
    std::uint64_t later;
  } newer{{}, 77};
  newer.known.struct_size = sizeof newer;
  REQUIRE_OK(tenon_graph_value_info(p.graph, p.y, &newer.known));
  CHECK(newer.later == 0);  // a newer caller's field
  REQUIRE_OK(tenon_graph_value_info(p.graph, p.w, &info));
  CHECK(info.kind == TENON_VALUE_PARAMETER);
  REQUIRE_OK(tenon_graph_value_info(p.graph, p.loss, &info));
  CHECK(info.rank == 0);
  char* text = nullptr;
  REQUIRE_OK(tenon_graph_describe(p.graph, &text));
  const json described = parsed(text);
  CHECK(described["nodes"][1]["name"] == "total");
  REQUIRE_OK(tenon_graph_text(p.graph, &text));
  CHECK(taken(text).find("= MatMul(x, w)") != std::string::npos);
}

TEST_CASE("C API: wrong nodes are errors and leave the graph as it was") {
  const NoLeaks none;
  const Product p;
  char* text = nullptr;
  REQUIRE_OK(tenon_graph_text(p.graph, &text));
  const std::string before = taken(text);
  TenonValue value = 77;
  const std::int64_t shape[] = {2};
  const TenonValue bad[] = {p.x, 1000}, same[] = {p.x, p.x};
  CHECK_FAILS_WITH("inputs: expected a value of the graph, which has 4, got 1000",
                   tenon_graph_apply(p.graph, TENON_OP_Add, nullptr, nullptr, bad, 2, &value, 1, nullptr));
  CHECK_FAILS_WITH("matmul", tenon_graph_apply(p.graph, TENON_OP_MatMul, nullptr, nullptr, same, 2, &value, 1, nullptr));
  CHECK_FAILS_WITH("out_values: expected space for the 1 result of Neg, got it for 0",
                   tenon_graph_apply(p.graph, TENON_OP_Neg, nullptr, nullptr, same, 1, &value, 0, nullptr));
  CHECK_FAILS_WITH("'x'", tenon_graph_input(p.graph, "x", TENON_DTYPE_F32, 1, shape, &value));
  CHECK_FAILS_WITH("name: expected an address, got NULL", tenon_graph_input(p.graph, nullptr, TENON_DTYPE_F32, 1, shape, &value));
  CHECK_FAILS_WITH("value: expected a value of the graph", tenon_graph_output(p.graph, "y", 1000));
  CHECK_FAILS_WITH("scalar", tenon_graph_gradients(p.graph, p.y, &p.w, 1, &value));
  CHECK(value == 77);
  REQUIRE_OK(tenon_graph_text(p.graph, &text));
  CHECK(taken(text) == before);
}

TEST_CASE("C API: a random permutation by name has the dtype that it has by number") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const std::uint64_t words[] = {7, 1};
  const std::int64_t two[] = {2};
  Owned<TenonTensor> key, result;
  REQUIRE_OK(tenon_tensor_copy_of(words, TENON_DTYPE_U64, 1, two, nullptr, key.out()));
  const TenonTensor* inputs[] = {key};
  REQUIRE_OK(
      tenon_apply_named(context, nullptr, "RandomPermutation", R"({"stream": 0, "shape": [5]})", inputs, 1, result.out(), 1, nullptr));
  CHECK(info_of(result).dtype == TENON_DTYPE_I64);
  std::int64_t places[5];
  REQUIRE_OK(tenon_tensor_read(result, places, sizeof places));
  std::ranges::sort(places);
  CHECK(std::ranges::equal(places, std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST_CASE("C API: no gradient passes through constants") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Owned<TenonGraph> graph;
  REQUIRE_OK(tenon_graph_create(graph.out()));
  TenonValue x = 0, held = 0, product = 0, whole = 0, partial = 0;
  REQUIRE_OK(tenon_graph_input(graph, "x", TENON_DTYPE_F32, 0, nullptr, &x));
  REQUIRE_OK(tenon_graph_apply(graph, TENON_OP_Exp, nullptr, nullptr, &x, 1, &held, 1, nullptr));
  const TenonValue factors[] = {x, held};
  REQUIRE_OK(tenon_graph_apply(graph, TENON_OP_Mul, nullptr, nullptr, factors, 2, &product, 1, nullptr));
  REQUIRE_OK(tenon_graph_gradients(graph, product, &x, 1, &whole));
  REQUIRE_OK(tenon_graph_partial_gradients(graph, product, &x, 1, &held, 1, &partial));
  REQUIRE_OK(tenon_graph_output(graph, "whole", whole));
  REQUIRE_OK(tenon_graph_output(graph, "partial", partial));
  TenonValue same = 77;
  const TenonValue none_such = 1000;
  CHECK_FAILS_WITH("constants: expected a value of the graph", tenon_graph_partial_gradients(graph, product, &x, 1, &none_such, 1, &same));
  CHECK(same == 77);

  Owned<TenonProgram> program;
  REQUIRE_OK(tenon_program_create(context, graph, nullptr, program.out()));
  const Owned<TenonTensor> two = make_tensor({2}, {});
  const TenonTensor* inputs[] = {two};
  TenonTensor* outputs[2] = {};
  REQUIRE_OK(tenon_program_run(program, inputs, 1, outputs, 2, nullptr));
  const Owned<TenonTensor> first(outputs[0]), second(outputs[1]);
  CHECK(values_of(first)[0] == doctest::Approx(3 * std::exp(2.0)));  // (x e^x)' = (1 + x) e^x
  CHECK(values_of(second)[0] == doctest::Approx(std::exp(2.0)));
}

TEST_CASE("C API: tensors are saved to files and come back as parameters") {
  const NoLeaks none;
  const TemporaryFolder folder;
  const Owned<TenonTensor> w = make_tensor({1, 2, 3, 4}, {2, 2}), b = make_tensor({5}, {});
  const char* names[] = {"layer.w", "b"};
  const TenonTensor* tensors[] = {w, b};
  for (const std::string extension : {".safetensors", ".npz"}) {
    CAPTURE(extension);
    const std::string path = folder.path() + "/weights" + extension;
    REQUIRE_OK(tenon_tensors_save(path.c_str(), names, tensors, 2));
    Owned<TenonParameters> parameters;
    REQUIRE_OK(tenon_parameters_load(path.c_str(), parameters.out()));
    char* text = nullptr;
    REQUIRE_OK(tenon_parameters_describe(parameters, &text));
    const json about = parsed(text);
    CHECK(about.size() == 2);
    CHECK(about[1]["name"] == "layer.w");
    CHECK(about[1]["is_set"] == true);
    Owned<TenonTensor> back;
    REQUIRE_OK(tenon_parameters_get(parameters, "layer.w", back.out()));
    CHECK(values_of(back) == std::vector<float>{1, 2, 3, 4});
    REQUIRE_OK(tenon_parameters_get(parameters, "b", back.out()));
    CHECK(values_of(back) == std::vector<float>{5});
  }
  Owned<TenonParameters> parameters;
  CHECK_FAILS_WITH("path: expected a .safetensors or .npz file", tenon_tensors_save("weights.bin", names, tensors, 2));
  CHECK_FAILS_WITH("none.npz", tenon_parameters_load((folder.path() + "/none.npz").c_str(), parameters.out()));
  const char* twice[] = {"b", "b"};
  CHECK_FAILS_WITH("tensor \"b\" is given twice", tenon_tensors_save((folder.path() + "/twice.safetensors").c_str(), twice, tensors, 2));
}

TEST_CASE("C API: a program runs with new results, with the caller's, by name and bound, and takes a gradient step") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Product p;
  REQUIRE_OK(tenon_graph_output(p.graph, "y", p.y));
  TenonValue gradient = 0, scaled = 0, updated = 0, rate = 0;
  REQUIRE_OK(tenon_graph_gradients(p.graph, p.loss, &p.w, 1, &gradient));
  const Owned<TenonTensor> half = make_tensor({0.5}, {});
  REQUIRE_OK(tenon_graph_constant(p.graph, half, nullptr, &rate));
  const TenonValue factors[] = {gradient, rate};
  REQUIRE_OK(tenon_graph_apply(p.graph, TENON_OP_Mul, nullptr, nullptr, factors, 2, &scaled, 1, nullptr));
  const TenonValue terms[] = {p.w, scaled};
  REQUIRE_OK(tenon_graph_apply(p.graph, TENON_OP_Sub, nullptr, nullptr, terms, 2, &updated, 1, nullptr));
  REQUIRE_OK(tenon_graph_update(p.graph, p.w, updated));

  Owned<TenonParameters> parameters;
  REQUIRE_OK(tenon_parameters_create(parameters.out()));
  TenonProgramOptions options{};
  options.struct_size = sizeof options;
  options.parameters = parameters;
  options.flags = TENON_PROGRAM_UPDATES_LAST;
  Owned<TenonProgram> program;
  REQUIRE_OK(tenon_program_create(context, p.graph, &options, program.out()));
  p.graph = Owned<TenonGraph>();

  char* text = nullptr;
  REQUIRE_OK(tenon_parameters_describe(parameters, &text));
  const json about = parsed(text);
  CHECK(about[0]["is_set"] == false);
  CHECK(about[0]["device"] == "reference:0");
  const Owned<TenonTensor> x = make_tensor({1, 0, 2, 0, 1, 0}, {2, 3}), w = make_tensor({1, 2, 3, 4, 5, 6}, {3, 2});
  const TenonTensor* inputs[] = {x};
  TenonTensor* outputs[1] = {};
  CHECK_FAILS_WITH("'w'", tenon_program_run(program, inputs, 1, outputs, 1, nullptr));
  REQUIRE_OK(tenon_parameters_set(parameters, "w", w));
  REQUIRE_OK(tenon_program_run(program, inputs, 1, outputs, 1, nullptr));
  const Owned<TenonTensor> first(outputs[0]);
  CHECK(values_of(first) == std::vector<float>{11, 14, 3, 4});
  Owned<TenonTensor> now;
  REQUIRE_OK(tenon_parameters_get(parameters, "w", now.out()));
  CHECK(values_of(now) == std::vector<float>{0.5, 1.5, 2.5, 3.5, 4, 5});  // d sum(x w) / dw is the sum of x's columns
  CHECK_FAILS_WITH("read-only", tenon_tensor_fill(now, 0));

  REQUIRE_OK(tenon_parameters_set(parameters, "w", w));
  const std::int64_t shape[] = {2, 2};
  Owned<TenonTensor> own;
  REQUIRE_OK(tenon_tensor_full(nullptr, TENON_DTYPE_F32, 2, shape, -1, own.out()));
  outputs[0] = own;
  const char* names[] = {"x"};
  REQUIRE_OK(tenon_program_run_named(program, names, inputs, 1, outputs, 1, nullptr));
  CHECK(outputs[0] == own);
  CHECK(values_of(own) == std::vector<float>{11, 14, 3, 4});
  CHECK(values_of(first) == std::vector<float>{11, 14, 3, 4});

  REQUIRE_OK(tenon_parameters_set(parameters, "w", w));
  CHECK_FAILS_WITH("input 'x' is not bound", tenon_program_run_bound(program, nullptr));
  REQUIRE_OK(tenon_program_bind_input(program, 0, x));
  CHECK_FAILS_WITH("output 'y' is not bound", tenon_program_run_bound(program, nullptr));
  Owned<TenonTensor> bound;
  CHECK_FAILS_WITH("output 'y' is not bound", tenon_program_bound_output(program, 0, bound.out()));
  REQUIRE_OK(tenon_program_bind_output(program, 0, nullptr));
  REQUIRE_OK(tenon_program_bound_output(program, 0, bound.out()));
  REQUIRE_OK(tenon_program_run_bound(program, nullptr));
  CHECK(values_of(bound) == std::vector<float>{11, 14, 3, 4});
  CHECK_FAILS_WITH("index: expected one below 1, got 3", tenon_program_bind_input(program, 3, x));

  REQUIRE_OK(tenon_program_describe(program, &text));
  const json described = parsed(text);
  CHECK(described["inputs"][0]["name"] == "x");
  CHECK(described["outputs"][0]["shape"] == json({2, 2}));
  REQUIRE_OK(tenon_program_explain(program, &text));
  CHECK(parsed(text)["nodes"].size() >= 1);
  REQUIRE_OK(tenon_program_enable_profile(program, 1));
  REQUIRE_OK(tenon_program_run_bound(program, nullptr));
  REQUIRE_OK(tenon_program_profile(program, &text));
  CHECK(parsed(text).is_array());
}

TEST_CASE("C API: wrong bindings of a program are errors") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Product p;
  REQUIRE_OK(tenon_graph_output(p.graph, "y", p.y));
  Owned<TenonProgram> program;
  TenonProgramOptions options{};
  options.struct_size = sizeof options;
  options.flags = 1U << 20;
  CHECK_FAILS_WITH("options.flags: expected TENON_PROGRAM_* flags", tenon_program_create(context, p.graph, &options, program.out()));
  options.flags = 0;
  options.precision = "f64";
  CHECK_FAILS_WITH("options.precision: expected float32, tf32", tenon_program_create(context, p.graph, &options, program.out()));
  options.precision = nullptr;
  options.device = "gpu:9";
  CHECK_FAILS_WITH("DEVICE_NOT_FOUND", tenon_program_create(context, p.graph, &options, program.out()));
  REQUIRE_OK(tenon_program_create(context, p.graph, nullptr, program.out()));
  Owned<TenonParameters> parameters;
  REQUIRE_OK(tenon_program_parameters(program, parameters.out()));
  const Owned<TenonTensor> w = make_tensor({1, 2, 3, 4, 5, 6}, {3, 2});
  REQUIRE_OK(tenon_parameters_set(parameters, "w", w));
  CHECK_FAILS_WITH("'v'", tenon_parameters_set(parameters, "v", w));
  TenonTensor* none_there = nullptr;
  CHECK_FAILS_WITH("'v'", tenon_parameters_get(parameters, "v", &none_there));
  const TenonTensor* inputs[] = {w, w};
  TenonTensor* outputs[1] = {};
  CHECK_FAILS_WITH("input_count: expected 1, got 2", tenon_program_run(program, inputs, 2, outputs, 1, nullptr));
  CHECK_FAILS_WITH("output_count: expected 1, got 0", tenon_program_run(program, inputs, 1, outputs, 0, nullptr));
  CHECK_FAILS_WITH("(2,3)", tenon_program_run(program, inputs, 1, outputs, 1, nullptr));
  const char* names[] = {"z", "x"};
  CHECK_FAILS_WITH("names: expected the input 'x' too", tenon_program_run_named(program, names, inputs, 1, outputs, 1, nullptr));
  CHECK_FAILS_WITH("names: the program has no input 'z'", tenon_program_run_named(program, names, inputs, 2, outputs, 1, nullptr));
  float memory[4] = {};
  const std::int64_t shape[] = {2, 2};
  Owned<TenonTensor> fixed;
  REQUIRE_OK(tenon_tensor_borrow(memory, TENON_DTYPE_F32, 2, shape, nullptr, TENON_TENSOR_READ_ONLY, nullptr, nullptr, fixed.out()));
  outputs[0] = fixed;
  const Owned<TenonTensor> x = make_tensor({1, 0, 2, 0, 1, 0}, {2, 3});
  inputs[0] = x;
  CHECK_FAILS_WITH("outputs[0]: expected a tensor that may be written to", tenon_program_run(program, inputs, 1, outputs, 1, nullptr));
}

TEST_CASE("C API: a run is cancelled from another thread, and the program can be used further") {
  const Owned<TenonContext> context = make_context();
  Owned<TenonGraph> graph;
  REQUIRE_OK(tenon_graph_create(graph.out()));
  const std::int64_t shape[] = {200, 200};
  TenonValue value = 0;
  REQUIRE_OK(tenon_graph_input(graph, "x", TENON_DTYPE_F32, 2, shape, &value));
  for (int i = 0; i < 300; ++i) {
    const TenonValue operands[] = {value, value};
    REQUIRE_OK(tenon_graph_apply(graph, TENON_OP_MatMul, nullptr, nullptr, operands, 2, &value, 1, nullptr));
  }
  REQUIRE_OK(tenon_graph_output(graph, "y", value));
  Owned<TenonProgram> program;
  REQUIRE_OK(tenon_program_create(context, graph, nullptr, program.out()));
  Owned<TenonTensor> x;
  REQUIRE_OK(tenon_tensor_full(nullptr, TENON_DTYPE_F32, 2, shape, 0, x.out()));
  Owned<TenonCancellation> cancellation;
  REQUIRE_OK(tenon_cancellation_create(cancellation.out()));
  TenonRunOptions options{};
  options.struct_size = sizeof options;
  options.cancellation = cancellation;
  const TenonTensor* inputs[] = {x};
  TenonTensor* outputs[1] = {};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    tenon_release(tenon_cancel(cancellation));
  });
  CHECK_FAILS_WITH("CANCELLED: ", tenon_program_run(program, inputs, 1, outputs, 1, &options));
  other.join();
  CHECK(outputs[0] == nullptr);
  std::uint32_t requested = 0;
  CHECK_OK(tenon_cancellation_requested(cancellation, &requested));
  CHECK(requested == 1);
  CHECK_FAILS_WITH("cancellation: expected a cancellation, got NULL", tenon_cancel(nullptr));
}
