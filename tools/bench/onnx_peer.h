// SPDX-License-Identifier: Apache-2.0
// bench/onnx_peer.h - an ONNX model in another runtime, in a process of its own (peers/onnx_peers.py).
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tenon/config.h>
#include <tenon/tensor.h>

#include "bench/child.h"
#include "bench/harness.h"
#include "bench/temporary_folder.h"

namespace tenon::bench {

/// The runtimes that peers/onnx_peers.py knows.
const std::vector<std::string>& onnx_peers();

/// Named inputs as files, which all peers read.
class OnnxPeerInputs {
 public:
  /// Errors  a dtype that .npy files lack.
  void add(const std::string& name, const Tensor& tensor);

  const TemporaryFolder files;
  const std::vector<std::string>& names() const { return names_; }  ///< of input_0.npy, input_1.npy, ... in the folder

 private:
  std::vector<std::string> names_;
};

class OnnxPeer {
 public:
  /// Loads the model; "-": none, only to see whether the runtime is there. Under mixed_bfloat16 a runtime that can rounds to bf16 too.
  OnnxPeer(const std::string& python, const std::string& runtime, const std::string& model, int threads,
           Precision precision = Precision::float32);

  const std::string& name() const { return name_; }      ///< "ONNX Runtime 1.32.0, 2 threads"; empty if absent
  const std::string& absent() const { return absent_; }  ///< why it does not run the model; empty if it does
  double load_ms() const { return load_ms_; }
  double base_rss_mb() const { return base_rss_mb_; }  ///< resident before the model was loaded
  double peak_rss_mb() const { return peak_rss_mb_; }  ///< as of its last run

  /// Times runs one by one. Without samples if it has failed: then it is absent.
  Samples run(const OnnxPeerInputs& inputs, int runs);
  /// The same for one run, whose outputs are read into `out_results`.
  Samples run(const OnnxPeerInputs& inputs, std::vector<Tensor>& out_results);

 private:
  Samples request(const OnnxPeerInputs& inputs, int runs, std::size_t* out_count);

  std::string runtime_, name_, absent_;
  double load_ms_ = 0, base_rss_mb_ = 0, peak_rss_mb_ = 0;
  Child child_;
};

}  // namespace tenon::bench
