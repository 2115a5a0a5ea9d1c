// bench/benchmarks.h - the benchmarks behind `tenon bench`, one file each.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tenon/context.h>

#include "bench/harness.h"

namespace tenon::bench {

struct Options {
  int threads = 2;                          ///< of the device under test and of its peers
  int runs = 0;                             ///< samples; 0: what the benchmark thinks best, at least 10
  bool tiny = false;                        ///< sizes that take no time: to see that a benchmark runs, not how fast
  std::string python = "/usr/bin/python3";  ///< that may have the peers that are Python packages
  /// A context for the device under test with this thread budget.
  std::function<Context(int threads)> make_context;

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
/// Training epochs of 784-300-100-10 (batch 100) and of 784-128-10 (batch 32) against PyTorch.
std::unique_ptr<Report> mnist_mlp(const Options& options);
std::unique_ptr<Report> fashion_mnist(const Options& options);

/// Prints the benchmarks that two JSON files share, side by side.
/// Errors  a file that is missing or not a report.
void compare(const std::string& old_file, const std::string& new_file);

}  // namespace tenon::bench
