// SPDX-License-Identifier: Apache-2.0
// onnx/export/export.cpp - writes graphs to ONNX files.
#include <fmt/core.h>

#include <optional>

#include <tenon/error.h>
#include <tenon/onnx.h>

#include "onnx/export/exporter.h"
#include "onnx/export/file.h"

namespace tenon::onnx {
namespace {

constexpr std::int64_t lowest_opset = 17, highest_opset = 23;
// Two primes that hardly occur as other sizes: what differs between the graphs depends on the batch.
constexpr std::int64_t batches[] = {11, 13};

void write(const std::filesystem::path& path, const exporting::GraphAtBatch& graph, const std::optional<exporting::GraphAtBatch>& other,
           const ParameterValues& values, const ExportOptions& options) {
  if (options.opset < lowest_opset || options.opset > highest_opset)
    throw Error(fmt::format("ONNX export: expected an opset from {} to {}, got {}", lowest_opset, highest_opset, options.opset));
  exporting::Exporter exporter(graph, other, values, options);
  exporting::write_model(path, exporter.run(), options.external_above);
}

}  // namespace

void export_graph(const std::filesystem::path& path, const Graph& graph, const ParameterValues& values, const ExportOptions& options) {
  write(path, {graph}, {}, values, options);
}

void export_graph(const std::filesystem::path& path, const GraphOfBatch& graph_of, const ParameterValues& values,
                  const ExportOptions& options) {
  if (options.batch < 0)
    throw Error(fmt::format("ONNX export: expected a batch size of at least 1, or 0 to leave it open, got {}", options.batch));
  if (options.batch > 0) return export_graph(path, graph_of(options.batch), values, options);
  const Graph graph = graph_of(batches[0]), other = graph_of(batches[1]);
  write(path, {graph, batches[0]}, exporting::GraphAtBatch{other, batches[1]}, values, options);
}

}  // namespace tenon::onnx
