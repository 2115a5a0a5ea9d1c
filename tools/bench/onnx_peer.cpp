// SPDX-License-Identifier: Apache-2.0
#include "bench/onnx_peer.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <tenon/npy.h>

namespace tenon::bench {
namespace {

using Json = nlohmann::json;
constexpr const char* script = "onnx_peers.py";

/// The next answer of a peer: an object with the field, or one that says why it is absent.
Json answer_of(Child& child, const char* field, const std::string& runtime, const std::string& python) {
  const std::optional<std::string> line = child.read_line();
  Json answer = Json::parse(line.value_or(""), nullptr, false);
  if (answer.is_object() && (answer.contains(field) || answer.contains("absent"))) return answer;
  const int code = child.wait().exit_code;
  return {{"absent", code == 127 ? fmt::format("{}: there is no program '{}'", runtime, python)
                                 : fmt::format("{}: '{} {}' gave no result (exit code {})", runtime, python, script, code)}};
}

}  // namespace

const std::vector<std::string>& onnx_peers() {
  static const std::vector<std::string> names{"onnxruntime", "openvino"};
  return names;
}

void OnnxPeerInputs::add(const std::string& name, const Tensor& tensor) {
  save_npy(files.path(fmt::format("input_{}.npy", names_.size())), tensor.to_host());
  names_.push_back(name);
}

OnnxPeer::OnnxPeer(const std::string& python, const std::string& runtime, const std::string& model, int threads, Precision precision)
    : runtime_(runtime),
      child_({python, peer_script(script), runtime, model, "--threads", std::to_string(threads), "--precision",
              precision == Precision::mixed_bfloat16 ? "bf16" : "f32"}) {
  const Json answer = answer_of(child_, "name", runtime, python);
  absent_ = answer.value("absent", "");
  name_ = answer.value("name", "");
  load_ms_ = answer.value("load_seconds", 0.0) * 1e3;
  base_rss_mb_ = answer.value("base_rss_bytes", 0.0) / 1e6;
}

Samples OnnxPeer::run(const OnnxPeerInputs& inputs, int runs) {
  return request(inputs, runs, nullptr);
}

Samples OnnxPeer::run(const OnnxPeerInputs& inputs, std::vector<Tensor>& out_results) {
  std::size_t count = 0;
  Samples samples = request(inputs, 1, &count);
  out_results.clear();
  for (std::size_t i = 0; i < count; ++i) out_results.push_back(load_npy(inputs.files.path(fmt::format("{}_output_{}.npy", runtime_, i))));
  return samples;
}

Samples OnnxPeer::request(const OnnxPeerInputs& inputs, int runs, std::size_t* out_count) {
  Samples samples;
  if (!absent_.empty()) return samples;
  child_.write_line(
      Json{{"folder", inputs.files.path("")}, {"inputs", inputs.names()}, {"runs", runs}, {"save", out_count != nullptr}}.dump());
  const Json answer = answer_of(child_, "seconds", runtime_, name_);
  absent_ = answer.value("absent", "");
  if (!absent_.empty()) return samples;
  for (const double seconds : answer["seconds"]) samples.ns.push_back(seconds * 1e9);
  for (const double seconds : answer["cpu_seconds"]) samples.cpu_ns.push_back(seconds * 1e9);
  peak_rss_mb_ = answer.value("peak_rss_bytes", 0.0) / 1e6;
  if (out_count != nullptr) *out_count = answer.value("outputs", std::size_t{0});
  return samples;
}

}  // namespace tenon::bench
