// bench/torch_peer.h - PyTorch as a peer: a script of peers/ in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "bench/child.h"
#include "bench/harness.h"
#include "bench/variants.h"

namespace tenon::bench {

/// What a peer said.
struct Peer {
  std::string name;    ///< empty: it was not there
  std::string absent;  ///< why
  Samples samples = {};
};

/// The answer of a script: {"name", "seconds": [...], "cpu_seconds": [...]} or {"absent": why}.
Peer read_peer(const ChildResult& result, const std::string& script);
/// What a script of PyTorch is told so that it computes as the variant does: the same kind of device and precision. 16-bit precisions, and
/// TF32, come with images in the layout that suits a GPU best, channels-last.
std::vector<std::string> torch_options(const Variant& variant);
/// Runs the script with them. `command`: interpreter, script, its own arguments.
Peer run_torch_peer(std::vector<std::string> command, const Variant& variant);

}  // namespace tenon::bench
