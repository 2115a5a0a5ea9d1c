// SPDX-License-Identifier: Apache-2.0
// bench/benchmarks.h - the benchmarks of `tenon bench`, one file each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/context.h>

#include "bench/harness.h"
#include "cli/onnx_inputs.h"

namespace tenon::bench {

struct Options {
  int threads = 2;                             ///< threads of the device under test and of its peers
  int runs = 0;                                ///< samples; 0: chosen by the benchmark, at least 10
  bool tiny = false;                           ///< tiny sizes, to test that a benchmark runs, not how fast
  std::string python = "/usr/bin/python3";     ///< interpreter that may have PyTorch
  std::string onnxruntime_python = "python3";  ///< interpreter that may have ONNX Runtime, found on PATH
  // Options of nets, mnist and conv.
  std::vector<std::string> devices;     ///< empty: the device of make_context
  std::vector<std::string> kernels;     ///< values of the backend option `kernels`; empty: the backend's default
  std::vector<std::string> precisions;  ///< values of the key `precision`; empty: that of the configuration
  std::vector<std::int64_t> batches;    ///< empty: the benchmark's default
  // Options of nets and mnist.
  std::string set, net;                               ///< "": all
  std::vector<std::string> phases{"infer", "train"};  ///< in this order
  bool torch_compile = false;                         ///< nets: also compare with torch.compile
  bool layers = false;                                ///< print the layers of each net, even if several nets run
  std::string models;                                 ///< folder of the model definitions
  // Options of bandwidth: the memory of the device; 0: as the system tells.
  double memory_clock_mhz = 0;
  std::int64_t bus_bits = 0, channels = 0;
  // Options of onnx_model and serve.
  std::string model;                  ///< file
  cli::OnnxInputs inputs;             ///< with a second set of shapes, if any
  std::vector<std::string> runtimes;  ///< peers, of onnx_peers()
  // Options of serve.
  int clients = 8;                   ///< threads that send requests
  double seconds = 5;                ///< of each way of serving
  std::int64_t max_batch = 8;        ///< BatcherOptions::max_batch
  std::int64_t max_delay_us = 1000;  ///< BatcherOptions::max_delay_us
  // Options of scaling.
  std::vector<std::int64_t> device_counts;  ///< numbers of virtual devices; empty: 1 and 2, unless there are rank_counts
  std::vector<std::int64_t> rank_counts;    ///< numbers of processes, each with one device
  bool as_rank = false;                     ///< this is one of those processes
  std::string mpirun = "mpirun";            ///< what starts them
  std::vector<std::string> common;          ///< the options of every verb, for them
  std::vector<std::int64_t> simulated;      ///< numbers of machines, whose links are simulated
  double link_gb_per_s = 0;                 ///< between them; 0: their memory
  double link_latency_us = 0;
  std::optional<double> bucket_mb;  ///< ParallelOptions::bucket_mb
  // Options of elementwise.
  std::vector<std::string> ops;  ///< names of its list; empty: all
  // Options of blas.
  std::string compare = "openblas";  ///< openblas or none
  std::string html;                  ///< file of the chart; empty: none
  /// A context for the device under test with this thread budget.
  std::function<Context(int threads)> make_context;
  /// The same with an additional `--set key=value`.
  std::function<Context(int threads, const std::string& set)> make_context_with;
  /// A context for this device ("": the same) with these `--set key=value`.
  std::function<Context(int threads, const std::string& device, const std::vector<std::string>& sets)> make_context_on;

  Protocol protocol() const {
    Protocol p;
    if (tiny) p.min_sample_ns = 0;
    if (runs > 0) p.runs = runs;
    return p;
  }
};

/// An empty plan, and plans of many tiny nodes: the overhead of a call and of a node beyond the kernels.
std::unique_ptr<Report> crossing(const Options& options);
/// Matrix products through a program, compared with direct OpenBLAS calls.
std::unique_ptr<Report> gemm(const Options& options);
/// BLAS calls of each level through the API and the drop-in library, compared with direct OpenBLAS calls.
std::unique_ptr<Report> blas(const Options& options);
/// Training epochs of 784-300-100-10 (batch 100) and of 784-128-10 (batch 32), compared with PyTorch.
std::unique_ptr<Report> mnist_mlp(const Options& options);
std::unique_ptr<Report> fashion_mnist(const Options& options);

/// Elementwise ops and reductions on 1e3 to 1e8 elements, on one thread and on all, compared with PyTorch at 1e6.
std::unique_ptr<Report> elementwise(const Options& options);
/// Access patterns: sequential, strided, random, transposed.
std::unique_ptr<Report> memory(const Options& options);
/// A chain of ten ops, and the MLP's training step, with fusion off, elementwise and full.
std::unique_ptr<Report> fusion(const Options& options);
/// Training steps with slow data loading: serial, cached, prefetched, copied asynchronously.
std::unique_ptr<Report> pipeline(const Options& options);
/// Memory bandwidth of copy, scale, add, triad and read on the host and on a GPU, and of copies between them.
std::unique_ptr<Report> bandwidth(const Options& options);

/// The nets of published benchmarks, compared with PyTorch, ONNX Runtime and the published figures.
std::unique_ptr<Report> nets(const Options& options);
/// Training and prediction on digits, on several devices: epochs, latency and throughput.
std::unique_ptr<Report> mnist(const Options& options);
/// The convolutions of ResNet-50 with both gradients, compared with PyTorch.
std::unique_ptr<Report> conv(const Options& options);
/// Attention and its gradient by length, heads and size, compared with PyTorch.
std::unique_ptr<Report> attention(const Options& options);

/// An ONNX model: latency, time to its first result and memory, compared with other runtimes.
std::unique_ptr<Report> onnx_model(const Options& options);

/// Requests of several clients at the same time, with and without dynamic batching: throughput and latency.
std::unique_ptr<Report> serve(const Options& options);

/// Training steps with data parallelism on 1, 2, ... virtual devices.
std::unique_ptr<Report> scaling(const Options& options);

/// Language models, token by token with the keys and values of past steps kept, compared with PyTorch.
std::unique_ptr<Report> generate(const Options& options);

/// Prints the benchmarks of two JSON reports side by side.
/// Errors  a file is missing or is not a report.
void compare(const std::string& old_file, const std::string& new_file);

}  // namespace tenon::bench
