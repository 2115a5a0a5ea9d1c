// SPDX-License-Identifier: Apache-2.0
// The C API: ONNX models from files and memory.
#include "capi_testing.h"

#include <algorithm>
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

TEST_CASE("C API: an ONNX model writes its results to tensors that it is given, and makes those that it is not") {
  const NoLeaks none;
  const File file;
  const Owned<TenonContext> context = make_context("openblas:0");
  Owned<TenonOnnx> onnx;
  REQUIRE_OK(tenon_onnx_load(context, file.path.c_str(), nullptr, onnx.out()));
  const char* names[] = {"x"};
  const Owned<TenonTensor> x = make_tensor({1, 0, 0, 0, -1, 0}, {2, 3});
  const TenonTensor* inputs[] = {x};
  const std::int64_t shape[] = {2, 2};
  float memory[4] = {9, 9, 9, 9};
  Owned<TenonTensor> given, read_only;
  REQUIRE_OK(tenon_tensor_borrow(memory, TENON_DTYPE_F32, 2, shape, nullptr, 0, nullptr, nullptr, given.out()));
  TenonTensor* outputs[1] = {given};
  for (int i = 0; i < 2; ++i) {
    REQUIRE_OK(tenon_onnx_run(onnx, names, inputs, 1, outputs, 1, nullptr));
    CHECK(std::vector<float>(memory, memory + 4) == std::vector<float>{1, 0, 0, 2});
    CHECK(outputs[0] == static_cast<TenonTensor*>(given));
    std::ranges::fill(memory, 9.0F);
  }
  // A strided tensor, which no program writes to, gets a copy.
  float columns[4] = {9, 9, 9, 9};
  const std::int64_t strides[] = {1, 2};
  Owned<TenonTensor> transposed;
  REQUIRE_OK(tenon_tensor_borrow(columns, TENON_DTYPE_F32, 2, shape, strides, 0, nullptr, nullptr, transposed.out()));
  outputs[0] = transposed;
  REQUIRE_OK(tenon_onnx_run(onnx, names, inputs, 1, outputs, 1, nullptr));
  CHECK(std::vector<float>(columns, columns + 4) == std::vector<float>{1, 0, 0, 2});
  REQUIRE_OK(tenon_tensor_borrow(memory, TENON_DTYPE_F32, 2, shape, nullptr, TENON_TENSOR_READ_ONLY, nullptr, nullptr, read_only.out()));
  outputs[0] = read_only;
  CHECK_FAILS_WITH("outputs[0]: expected a tensor that may be written to", tenon_onnx_run(onnx, names, inputs, 1, outputs, 1, nullptr));
  const Owned<TenonTensor> small = make_tensor({0, 0}, {1, 2});
  outputs[0] = small;
  CHECK_FAILS_WITH("output 'y': expected a tensor f32(2,2) for the result, got f32(1,2)",
                   tenon_onnx_run(onnx, names, inputs, 1, outputs, 1, nullptr));
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
