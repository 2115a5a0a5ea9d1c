// SPDX-License-Identifier: Apache-2.0
#include "onnx/export/file.h"

#include <fmt/core.h>

#include <deque>
#include <limits>
#include <string>
#include <utility>

#include <tenon/error.h>

#include "io/atomic_file.h"
#include "platform/path.h"

namespace tenon::onnx::exporting {
namespace {

constexpr std::uint64_t smallest_external_bytes = 1024;
constexpr std::uint64_t alignment_bytes = 4096;  // a page: readers map the elements

/// Moves the elements of large initializers to a file. `texts` keeps what the records view.
void write_external(const std::filesystem::path& path, GraphRecord& graph, std::deque<std::string>& texts) {
  io::AtomicFile file(platform::text_of(path));
  const std::string zeros(alignment_bytes, '\0');
  const std::string_view name = texts.emplace_back(platform::text_of(path.filename()));
  std::uint64_t at = 0;
  for (TensorRecord& tensor : graph.initializers) {
    if (tensor.raw.size() < smallest_external_bytes) continue;
    const std::uint64_t padding = (alignment_bytes - at % alignment_bytes) % alignment_bytes;
    file.write(zeros.data(), padding);
    file.write(tensor.raw.data(), tensor.raw.size());
    at += padding;
    tensor.location = {{.key = "location", .value = name},
                       {.key = "offset", .value = texts.emplace_back(std::to_string(at))},
                       {.key = "length", .value = texts.emplace_back(std::to_string(tensor.raw.size()))}};
    at += tensor.raw.size();
    tensor.external = true;
    tensor.raw = {};
  }
  file.commit();
}

}  // namespace

void write_model(const std::filesystem::path& path, ModelRecord model, std::uint64_t external_above) {
  std::uint64_t total = 0;
  for (const TensorRecord& tensor : model.graph.initializers) total += tensor.raw.size();
  std::deque<std::string> texts;
  if (total > external_above) write_external(platform::path_of(platform::text_of(path) + ".data"), model.graph, texts);
  const std::string bytes = serialize(model);
  if (bytes.size() > std::numeric_limits<std::int32_t>::max())
    throw Error(
        fmt::format("{}: expected less than 2 GiB, the limit of ONNX files, got {} bytes; lower ExportOptions::external_above, "
                    "which is {}, to write the weights to a file of their own",
                    platform::text_of(path), bytes.size(), external_above));
  io::write_atomically(platform::text_of(path), bytes);
}

}  // namespace tenon::onnx::exporting
