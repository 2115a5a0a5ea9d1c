// SPDX-License-Identifier: Apache-2.0
// bench/torch_peer.h - PyTorch as a peer: runs a script of peers/ as a child process.
#pragma once

#include <string>
#include <vector>

#include "bench/child.h"
#include "bench/harness.h"
#include "bench/variants.h"

namespace tenon::bench {

/// The results of a peer.
struct Peer {
  std::string name;    ///< empty if the peer is not available
  std::string absent;  ///< the reason if it is not available
  Samples samples = {};
};

/// Parses the output of a script: {"name", "seconds": [...], "cpu_seconds": [...]} or {"absent": why}.
Peer read_peer(const ChildResult& result, const std::string& script);
/// Arguments for a PyTorch script that select the device kind and precision of the variant. 16-bit precisions and TF32 on a GPU use
/// channels-last, its fastest layout.
std::vector<std::string> torch_options(const Variant& variant);
/// Runs the script with torch_options(). `command`: interpreter, script, its own arguments.
Peer run_torch_peer(std::vector<std::string> command, const Variant& variant);
/// The same for a script that measures a list: {"name", "layers": [[seconds per run], ...]}. Returns `count` peers, one for each.
std::vector<Peer> run_torch_list(std::vector<std::string> command, const Variant& variant, std::size_t count);
/// Fills in the peer of an entry and its samples, or why it is absent.
void set_peer(Entry& entry, Peer peer);

}  // namespace tenon::bench
