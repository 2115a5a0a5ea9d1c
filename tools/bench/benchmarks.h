// bench/benchmarks.h - the benchmarks behind `tenon bench`, one file each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/context.h>

#include "bench/harness.h"

namespace tenon::bench {

struct Options {
  int threads = 2;                             ///< of the device under test and of its peers
  int runs = 0;                                ///< samples; 0: what the benchmark thinks best, at least 10
  bool tiny = false;                           ///< sizes that take no time: to see that a benchmark runs, not how fast
  std::string python = "/usr/bin/python3";     ///< that may have the peers that are Python packages
  std::string onnxruntime_python = "python3";  ///< that may have ONNX Runtime: as found on PATH
  // Of nets, mnist and conv.
  std::vector<std::string> devices;     ///< empty: the one of make_context
  std::vector<std::string> kernels;     ///< of the knob of that name, where a backend has it; empty: the backend's own
  std::vector<std::string> precisions;  ///< of the key of that name; empty: the configuration's
  std::vector<std::int64_t> batches;    ///< empty: the benchmark's own
  // Of nets and mnist.
  std::string set, net;                               ///< "": all
  std::vector<std::string> phases{"infer", "train"};  ///< in this order
  bool layers = false;                                ///< print each net's layers, also of many nets
  std::string models;                                 ///< folder of their definitions
  // Of blas alone.
  std::string compare = "openblas";  ///< or none
  std::string html;                  ///< where a chart goes; empty: nowhere
  /// A context for the device under test with this thread budget.
  std::function<Context(int threads)> make_context;
  /// The same with one more `--set key=value`.
  std::function<Context(int threads, const std::string& set)> make_context_with;
  /// For this device ("": the same) with these.
  std::function<Context(int threads, const std::string& device, const std::vector<std::string>& sets)> make_context_on;

  Protocol protocol() const {
    Protocol p;
    if (tiny) p.least_sample_ns = 0;
    if (runs > 0) p.runs = runs;
    return p;
  }
};

/// An empty plan, and plans of many tiny nodes: what a crossing and a node cost above the kernels.
std::unique_ptr<Report> crossing(const Options& options);
/// Products through a program against OpenBLAS called directly.
std::unique_ptr<Report> gemm(const Options& options);
/// BLAS calls of each level, through the API and the drop-in library, against OpenBLAS called directly (row D06).
std::unique_ptr<Report> blas(const Options& options);
/// Training epochs of 784-300-100-10 (batch 100) and of 784-128-10 (batch 32) against PyTorch.
std::unique_ptr<Report> mnist_mlp(const Options& options);
std::unique_ptr<Report> fashion_mnist(const Options& options);

/// Elementwise ops and reductions on 1e3 to 1e8 elements, on one thread and on all, beside PyTorch at 1e6 (rows E07, L09).
std::unique_ptr<Report> elementwise(const Options& options);
/// Access patterns: sequential, strided, random, transposed (row C03).
std::unique_ptr<Report> memory(const Options& options);
/// A chain of ten ops, and the MLP's training step, with fusion off, elementwise and full (row H05).
std::unique_ptr<Report> fusion(const Options& options);
/// Training steps with data that takes time to make: serial, cached, prefetched, copied ahead (row J05).
std::unique_ptr<Report> pipeline(const Options& options);
/// Copy, scale, add, triad and read against what the memory is built for (row L05).
std::unique_ptr<Report> bandwidth(const Options& options);

/// The nets of published benchmarks, beside PyTorch, ONNX Runtime and what was published (rows L02-L04, L06).
std::unique_ptr<Report> nets(const Options& options);
/// Training and prediction on digits, on several devices: epochs, latency and throughput (row L01).
std::unique_ptr<Report> mnist(const Options& options);
/// The convolutions of ResNet-50 with both gradients, beside PyTorch.
std::unique_ptr<Report> conv(const Options& options);

/// Prints the benchmarks that two JSON files share, side by side.
/// Errors  a file that is missing or not a report.
void compare(const std::string& old_file, const std::string& new_file);

}  // namespace tenon::bench
