// SPDX-License-Identifier: Apache-2.0
#include "bench/torch_peer.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace tenon::bench {

Peer read_peer(const ChildResult& result, const std::string& script) {
  Peer peer;
  const auto answer = nlohmann::json::parse(result.output, nullptr, false);
  if (answer.is_object() && answer.contains("absent")) {
    peer.absent = answer["absent"].get<std::string>();
  } else if (answer.is_object() && answer.contains("seconds")) {
    peer.name = answer["name"].get<std::string>();
    for (const double seconds : answer["seconds"]) peer.samples.ns.push_back(seconds * 1e9);
    for (const double seconds : answer["cpu_seconds"]) peer.samples.cpu_ns.push_back(seconds * 1e9);
  } else {
    peer.absent = fmt::format("{} returned no result (exit code {})", script, result.exit_code);
  }
  return peer;
}

std::vector<std::string> torch_options(const Variant& variant) {
  std::vector<std::string> options{"--precision", name_of(variant.precision)};
  if (!variant.on_cpu()) {
    options.insert(options.end(), {"--device", "cuda"});
    if (variant.precision != Precision::float32) options.emplace_back("--channels-last");
  }
  return options;
}

Peer run_torch_peer(std::vector<std::string> command, const Variant& variant) {
  const std::string script = command[1];
  const std::vector<std::string> more = torch_options(variant);
  command.insert(command.end(), more.begin(), more.end());
  return read_peer(run_child(command), script);
}

std::vector<Peer> run_torch_list(std::vector<std::string> command, const Variant& variant, std::size_t count) {
  const std::string script = command[1];
  const std::vector<std::string> more = torch_options(variant);
  command.insert(command.end(), more.begin(), more.end());
  const ChildResult result = run_child(command);
  const auto answer = nlohmann::json::parse(result.output, nullptr, false);
  std::vector<Peer> peers(count);
  if (answer.is_object() && answer.contains("layers") && answer["layers"].size() == count) {
    for (std::size_t i = 0; i < count; ++i) {
      peers[i].name = answer["name"].get<std::string>();
      for (const double seconds : answer["layers"][i]) peers[i].samples.ns.push_back(seconds * 1e9);
      peers[i].samples.cpu_ns = peers[i].samples.ns;
    }
    return peers;
  }
  for (Peer& peer : peers) {
    peer = read_peer(result, script);
    if (peer.absent.empty()) peer = {"", script + " returned no times of layers"};
  }
  return peers;
}

void set_peer(Entry& entry, Peer peer) {
  entry.peer = std::move(peer.name);
  entry.peer_absent = std::move(peer.absent);
  entry.peer_samples = std::move(peer.samples);
}

}  // namespace tenon::bench
