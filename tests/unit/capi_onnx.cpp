// SPDX-License-Identifier: Apache-2.0
// The C API: ONNX models from files and memory.
#include "capi_testing.h"

#include <fstream>
#include <iterator>

#include <tenon/functions.h>
#include <tenon/onnx.h>

#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

namespace {

/// y = relu(x w) for any batch, w f32(3,2).
struct File {
  TemporaryFolder folder;
  std::string path = folder.path() + "/net.onnx";
  File() {
    tenon::onnx::export_graph(
        path,
        [](std::int64_t batch) {
          tenon::Graph graph;
          const tenon::Value x = graph.input("x", tenon::DType::f32, {batch, 3});
          graph.output("y", tenon::ops::relu(tenon::ops::matmul(x, graph.parameter("w", tenon::DType::f32, {3, 2}))));
          return graph;
        },
        [](const std::string&) {
          return tenon::Tensor::of<float>({1, -1, 2, -2, 3, -3}, {3, 2});
        });
  }
  std::string bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

}  // namespace

TEST_CASE("C API: an ONNX model from a file and from memory runs at any batch size, and its results stay") {
  const NoLeaks none;
  const File file;
  const Owned<TenonContext> context = make_context();
  Owned<TenonOnnx> of_file, of_memory;
  REQUIRE_OK(tenon_onnx_load(context, file.path.c_str(), nullptr, of_file.out()));
  {
    const std::string bytes = file.bytes();
    REQUIRE_OK(tenon_onnx_from_memory(context, bytes.data(), bytes.size(), nullptr, "openblas:0", of_memory.out()));
  }
  const char* names[] = {"x"};
  for (TenonOnnx* onnx : {static_cast<TenonOnnx*>(of_file), static_cast<TenonOnnx*>(of_memory)}) {
    const Owned<TenonTensor> one = make_tensor({1, 1, 1}, {1, 3}), two = make_tensor({1, 0, 0, 0, -1, 0}, {2, 3});
    const TenonTensor *a[] = {one}, *b[] = {two};
    TenonTensor *first = nullptr, *second = nullptr;
    REQUIRE_OK(tenon_onnx_run(onnx, names, a, 1, &first, 1, nullptr));
    REQUIRE_OK(tenon_onnx_run(onnx, names, b, 1, &second, 1, nullptr));
    CHECK(values_of(first) == std::vector<float>{6, 0});
    CHECK(values_of(second) == std::vector<float>{1, 0, 0, 2});
    tenon_release(first);
    tenon_release(second);
  }
}

TEST_CASE("C API: an ONNX model describes itself and where it runs") {
  const File file;
  const Owned<TenonContext> context = make_context();
  Owned<TenonOnnx> onnx;
  REQUIRE_OK(tenon_onnx_load(context, file.path.c_str(), nullptr, onnx.out()));
  char* text = nullptr;
  REQUIRE_OK(tenon_onnx_describe(onnx, &text));
  const json described = parsed(text);
  CHECK(described["inputs"][0]["name"] == "x");
  CHECK(described["inputs"][0]["dtype"] == "f32");
  CHECK(described["inputs"][0]["shape"] == json::array({"batch", 3}));
  CHECK(described["operators"].size() == 2);
  CHECK(described["metadata"]["opsets"]["ai.onnx"] == 17);
  REQUIRE_OK(tenon_onnx_inspect(file.path.c_str(), &text));
  CHECK(parsed(text)["operators"][0]["reason"] == "");
  const char* names[] = {"x"};
  const Owned<TenonTensor> x = make_tensor({1, 1, 1}, {1, 3});
  const TenonTensor* inputs[] = {x};
  REQUIRE_OK(tenon_onnx_explain(onnx, names, inputs, 1, &text));
  CHECK(parsed(text)["nodes"][0]["device"] == "reference:0");

  Owned<TenonGraph> graph;
  Owned<TenonParameters> parameters;
  REQUIRE_OK(tenon_onnx_graph(onnx, names, inputs, 1, graph.out(), parameters.out()));
  TenonProgramOptions options{};
  options.struct_size = sizeof options;
  options.parameters = parameters;
  Owned<TenonProgram> program;
  REQUIRE_OK(tenon_program_create(context, graph, &options, program.out()));
  TenonTensor* y = nullptr;
  REQUIRE_OK(tenon_program_run(program, inputs, 1, &y, 1, nullptr));
  CHECK(values_of(y) == std::vector<float>{6, 0});
  tenon_release(y);
}

TEST_CASE("C API: wrong files and inputs of ONNX models are errors") {
  const NoLeaks none;
  const File file;
  const Owned<TenonContext> context = make_context();
  TenonOnnx* refused = nullptr;
  CHECK_FAILS_WITH("/nowhere.onnx", tenon_onnx_load(context, "/nowhere.onnx", nullptr, &refused));
  CHECK_FAILS_WITH("<bytes>", tenon_onnx_from_memory(context, "none", 4, nullptr, nullptr, &refused));
  CHECK_FAILS_WITH("data: expected an address, got NULL", tenon_onnx_from_memory(context, nullptr, 4, nullptr, nullptr, &refused));
  CHECK(refused == nullptr);
  Owned<TenonOnnx> onnx;
  REQUIRE_OK(tenon_onnx_load(context, file.path.c_str(), nullptr, onnx.out()));
  const Owned<TenonTensor> x = make_tensor({1, 1}, {1, 2});
  const TenonTensor* inputs[] = {x, x};
  const char *names[] = {"x", "x"}, *other[] = {"z"};
  TenonTensor* outputs[1] = {};
  CHECK_FAILS_WITH("expected f32(batch,3), got f32(1,2)", tenon_onnx_run(onnx, names, inputs, 1, outputs, 1, nullptr));
  CHECK_FAILS_WITH("input 'x' is missing", tenon_onnx_run(onnx, other, inputs, 1, outputs, 1, nullptr));
  CHECK_FAILS_WITH("names: 'x' is given twice", tenon_onnx_run(onnx, names, inputs, 2, outputs, 1, nullptr));
  CHECK_FAILS_WITH("output_count: expected 1, got 0", tenon_onnx_run(onnx, names, inputs, 1, outputs, 0, nullptr));
  char* text = nullptr;
  CHECK_FAILS_WITH("/nowhere.onnx", tenon_onnx_inspect("/nowhere.onnx", &text));
  CHECK(outputs[0] == nullptr);
}
