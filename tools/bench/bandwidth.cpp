// SPDX-License-Identifier: Apache-2.0
// tenon bandwidth - memory bandwidth of plain loops, and bandwidth of reading files.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/sources.h"
#include "cli/roofs.h"

namespace tenon::bench {

std::unique_ptr<Report> bandwidth(const Options& options) {
  const Context context = options.make_context(options.threads);
  const Device device = context.default_device();
  auto report = std::make_unique<Report>("tenon bandwidth", describe_machine(context, options.threads));
  const std::int64_t bytes = options.tiny ? 1 << 16 : std::int64_t{128} << 20;

  const int runs = options.runs > 0 ? options.runs : options.tiny ? 2 : 10;
  for (int threads = 1; threads <= options.threads; threads = threads == options.threads ? threads + 1 : options.threads) {
    std::vector<cli::MemoryRoofs> tries;
    for (int run = 0; run < runs; ++run) {
      say(fmt::format("bandwidth: {} thread{}, run {} of {}", threads, threads == 1 ? "" : "s", run + 1, runs));
      tries.push_back(cli::memory_roofs(threads, bytes));
    }
    const struct {
      const char* name;
      double cli::MemoryRoofs::*rate;
      int arrays;
    } kinds[] = {{"copy", &cli::MemoryRoofs::copy, 2},
                 {"scale", &cli::MemoryRoofs::scale, 2},
                 {"add", &cli::MemoryRoofs::add, 3},
                 {"triad", &cli::MemoryRoofs::triad, 3},
                 {"read", &cli::MemoryRoofs::read, 1}};
    for (const auto& kind : kinds) {
      Entry entry{.name = fmt::format("{}, {} thread{}", kind.name, threads, threads == 1 ? "" : "s")};
      for (const cli::MemoryRoofs& one : tries) entry.samples.ns.push_back(static_cast<double>(bytes) * kind.arrays / (one.*kind.rate));
      entry.samples.cpu_ns = entry.samples.ns;
      entry.extra.emplace_back("gb_per_s", static_cast<double>(bytes) * kind.arrays / entry.median_ns());
      report->add(std::move(entry));
    }
  }

  // To the device and back: within the same memory for a CPU, over the bus for others.
  const Tensor host = Tensor::zeros(DType::u8, {bytes});
  Tensor on_device = host.to(device);
  Protocol protocol = options.protocol();
  if (options.runs == 0) protocol.runs = runs;
  const auto add_copy = [&](const char* name, const Body& body) {
    Entry entry{.name = name, .samples = measure({body}, protocol)[0]};
    entry.extra.emplace_back("gb_per_s", static_cast<double>(bytes) / entry.median_ns());
    report->add(std::move(entry));
  };
  add_copy("host to device, pageable", repeat([&] { on_device = host.to(device); }));
  add_copy("device to host, pageable", repeat([&] { static_cast<void>(on_device.to_host()); }));

  add_sources(*report, options, protocol);

  report->note(
      "copy, scale, add, triad: bytes read and written (STREAM); read: bytes read; device copies: bytes moved, including the allocation");
  report->note(
      "theoretical peak: clock x width x channels. DDR4-2933, 8 bytes, 4 channels: 2.933e9 x 8 x 4 = 93.87 GB/s; "
      "a GPU: 2 x memory clock x bus width / 8. The clock and channels of this machine's memory are unknown");
  return report;
}

}  // namespace tenon::bench
