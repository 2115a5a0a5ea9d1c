// SPDX-License-Identifier: Apache-2.0
// onnx: a file that is read says what it holds, and imports as a graph, or as its first segment, or fails with an error that names the
// file.
#include <tenon/onnx.h>

#include "fuzz.h"
#include "onnx/importer.h"

namespace {

/// Imports what can be computed before elements have to be known.
void first_segment(const std::string& path, const tenon::Context& context, const tenon::onnx::InputTypes& types) {
  using namespace tenon;
  const auto file = onnx::ModelFile::open(path);
  onnx::Weights weights(file);
  const onnx::Evaluate evaluate = onnx::evaluate_on_host(context, context.default_device());
  Graph graph;
  try {
    onnx::Importer(*file, weights, evaluate, types, {.max_unrolled_iterations = 16, .segments = true}, graph).run();
  } catch (const onnx::ElementsNeeded& needed) {
    fuzz::demand(!needed.inputs.empty(), "an import that needs inputs names them");
  } catch (const onnx::ValuesNeeded& needed) {
    fuzz::demand(!needed.values.empty() || needed.control != nullptr, "an import that needs values names them");
    fuzz::demand(!needed.problem.empty(), "an import that needs values says what for");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string path = file_of("a.onnx", {data, size});
  onnx::FileReport report;
  if (!accepts([&] { report = onnx::inspect(path); })) return 0;
  std::size_t nodes = 0;
  for (const onnx::OperatorCount& op : report.operators) nodes += op.count;
  demand(nodes <= size, "a node takes at least a byte");

  static const Context context = [] {
    Config config;
    config.backends.probe = BackendProbe::never;
    config.logging.level = LogLevel::off;
    return Context(config);
  }();
  accepts([&] {
    onnx::Model model = onnx::Model::load(path, context, {.max_unrolled_iterations = 16});
    onnx::InputTypes types;
    for (const onnx::ValueType& input : model.inputs()) {
      std::vector<std::int64_t> dims;
      for (const onnx::Dimension& dimension : input.shape) dims.push_back(dimension.is_fixed() ? dimension.size : 2);
      const Shape shape{std::span<const std::int64_t>(dims)};
      const bool small = shape.count() <= 64;
      types[input.name] = {input.dtype, shape, small ? Tensor::full(input.dtype, shape, 1) : Tensor()};
    }
    if (!accepts([&] {
          const Graph graph = model.to_graph(types);
          demand(graph.outputs().size() == model.outputs().size(), "a graph has the outputs of its file");
        })) {
      first_segment(path, context, types);
    }
  });
  return 0;
}
