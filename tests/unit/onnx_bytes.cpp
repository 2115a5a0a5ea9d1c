// SPDX-License-Identifier: Apache-2.0
// ONNX models whose file is in memory.
#include <fstream>
#include <iterator>

#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// y = x w, exported with the weights in the file or next to it.
std::string exported(const TemporaryFolder& folder, std::uint64_t external_above) {
  const std::string path = folder.path() + "/net.onnx";
  Graph graph;
  const Value x = graph.input("x", DType::f32, {2, 256});
  graph.output("y", ops::matmul(x, graph.parameter("w", DType::f32, {256, 2})));
  onnx::export_graph(path, graph,
                     [](const std::string&) {
                       return Tensor::full(DType::f32, {256, 2}, 0.5);
                     },
                     {.external_above = external_above});
  return path;
}

const Tensor x = Tensor::full(DType::f32, {2, 256}, 2);

}  // namespace

TEST_CASE("onnx bytes: a model from memory computes as the one from the file, after the bytes are gone") {
  const TemporaryFolder folder;
  const std::string path = exported(folder, 1 << 20);
  const Context context(test_config());
  onnx::Model of_file = onnx::Model::load(path, context);
  std::string bytes = content_of(path);
  onnx::Model of_bytes = onnx::Model::from_bytes(bytes, context);
  bytes.assign(bytes.size(), 'x');
  CHECK(of_bytes.run({{"x", x}})[0].to_vector<float>() == std::vector<float>(4, 256));
  CHECK(equal(of_bytes.run({{"x", x}})[0], of_file.run({{"x", x}})[0]));
}

TEST_CASE("onnx bytes: external data is found in the folder that is named, and is an error without one") {
  const TemporaryFolder folder;
  const std::string path = exported(folder, 0);
  const Context context(test_config());
  onnx::Model model = onnx::Model::from_bytes(content_of(path), context, {}, folder.path());
  CHECK(model.run({{"x", x}})[0].to_vector<float>() == std::vector<float>(4, 256));
  CHECK_ERROR_CONTAINS("expected the folder of its external data next to the bytes of the model, got none",
                       onnx::Model::from_bytes(content_of(path), context));
}

TEST_CASE("onnx bytes: what is no model is an error") {
  const Context context(test_config());
  CHECK_ERROR_CONTAINS("<bytes>", onnx::Model::from_bytes("no model", context));
  CHECK_ERROR_CONTAINS("<bytes>", onnx::Model::from_bytes("", context));
}
