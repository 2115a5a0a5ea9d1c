// SPDX-License-Identifier: Apache-2.0
// tenon bandwidth - memory bandwidth of plain loops on the host and on a GPU, of copies between them, and of reading files.
#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <tenon/graph.h>
#include <tenon/program.h>
#include <tenon/stream.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/memory_bus.h"
#include "bench/sources.h"
#include "cli/memory_roofs.h"
#include "text/counted.h"

namespace tenon::bench {
namespace {

std::optional<MemoryBus> bus_of_host() {
  std::ifstream table("/sys/firmware/dmi/tables/DMI", std::ios::binary);  // readable by root
  return bus_of_smbios(std::string(std::istreambuf_iterator<char>(table), {}));
}

/// What the user says of the device's memory, else what the system tells.
std::optional<MemoryBus> bus_of(const Options& options, const DeviceInfo& device) {
  MemoryBus bus = (device.kind == DeviceKind::cpu ? bus_of_host() : bus_of_description(device.description)).value_or(MemoryBus{});
  if (options.memory_clock_mhz > 0) bus.clock_mhz = options.memory_clock_mhz;
  if (options.bus_bits > 0) bus.bits = options.bus_bits;
  if (options.channels > 0) bus.channels = options.channels;
  if (bus.clock_mhz > 0) return bus;
  if (options.bus_bits > 0 || options.channels > 0) {
    throw Error(Status::invalid_argument,
                fmt::format("--bus-bits, --channels: expected the memory's clock, too, which the system does not tell for {}: add "
                            "--memory-clock-mhz",
                            device.name));
  }
  return std::nullopt;
}

/// A line of `bytes` per sample.
void add_rate(Report& report, Entry entry, double bytes, const std::optional<MemoryBus>& bus) {
  const double rate = bytes / entry.median_ns();
  entry.extra.emplace_back("gb_per_s", rate);
  if (bus) entry.percent_of_roof = 100 * rate / bus->peak_gb_per_s();
  report.add(std::move(entry));
}

/// The loops of memory_roofs(), on the host's threads.
void add_host(Report& report, const Options& options, std::int64_t bytes, int runs, const std::optional<MemoryBus>& bus) {
  for (int threads = 1; threads <= options.threads; threads = threads == options.threads ? threads + 1 : options.threads) {
    std::vector<cli::MemoryRoofs> tries;
    for (int run = 0; run < runs; ++run) {
      say(fmt::format("bandwidth: {}, run {} of {}", counted(threads, "thread"), run + 1, runs));
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
      Entry entry{.name = fmt::format("{}, {}", kind.name, counted(threads, "thread"))};
      const double moved = static_cast<double>(bytes) * kind.arrays;
      for (const cli::MemoryRoofs& one : tries) entry.samples.ns.push_back(moved / (one.*kind.rate));
      entry.samples.cpu_ns = entry.samples.ns;
      add_rate(report, std::move(entry), moved, bus);
    }
  }
}

/// The same as ops of a device with memory of its own.
void add_device(Report& report, const Context& context, std::int64_t bytes, const Protocol& protocol, const std::optional<MemoryBus>& bus) {
  const Device device = context.default_device();
  const std::int64_t n = bytes / static_cast<std::int64_t>(sizeof(float));
  const std::vector<Tensor> operands(2, Tensor::full(DType::f32, {n}, 1).to(device));
  const struct {
    const char* name;
    int arrays;
    Value (*make)(Value b, Value c);
  } kinds[] = {{"copy", 2,
                [](Value b, Value) {
                  return ops::reshape(b, {1, b.shape().count()});
                }},
               {"scale", 2, [](Value b, Value) { return ops::mul(b, 3.0); }},
               {"add", 3, [](Value b, Value c) { return ops::add(b, c); }},
               {"triad", 3, [](Value b, Value c) { return ops::add(b, ops::mul(c, 3.0)); }},
               {"read", 1, [](Value b, Value) { return ops::reduce_sum(b); }}};
  for (const auto& kind : kinds) {
    say(fmt::format("bandwidth: {} on {}", kind.name, device.name()));
    Graph graph;
    const Value b = graph.input("b", DType::f32, {n}), c = graph.input("c", DType::f32, {n});
    graph.output("a", kind.make(b, c));
    Program program(context, graph);
    const Body body = repeat([&] { static_cast<void>(program.run(operands)); });
    add_rate(report, {.name = fmt::format("{} on {}", kind.name, device.name()), .samples = measure({body}, protocol)[0]},
             static_cast<double>(bytes) * kind.arrays, bus);
  }
}

/// To the device and back: within the same memory for a CPU, over the bus for others.
void add_transfers(Report& report, const Device& device, std::int64_t bytes, const Protocol& protocol) {
  const auto add = [&](const char* name, const Body& body) {
    say(fmt::format("bandwidth: {}", name));
    add_rate(report, {.name = name, .samples = measure({body}, protocol)[0]}, static_cast<double>(bytes), std::nullopt);
  };
  const Tensor host = Tensor::zeros(DType::u8, {bytes});
  Tensor on_device = host.to(device);
  add("host to device, pageable", repeat([&] { on_device = host.to(device); }));
  add("device to host, pageable", repeat([&] { static_cast<void>(on_device.to_host()); }));
  const Stream stream(device);
  Tensor pinned = device.empty_pinned(DType::u8, {bytes});
  const auto copy = [&](const Tensor& from, Tensor& to) {
    return [&] {
      copy_async(from, to, stream);
      stream.synchronize();
    };
  };
  std::memset(pinned.data<std::uint8_t>(), 0, static_cast<std::size_t>(bytes));  // its pages exist before they are timed
  add("host to device, pinned", repeat(copy(pinned, on_device)));
  add("device to host, pinned", repeat(copy(on_device, pinned)));
}

}  // namespace

std::unique_ptr<Report> bandwidth(const Options& options) {
  const Context context = options.make_context(options.threads);
  const Device device = context.default_device();
  const bool cpu = device.info().kind == DeviceKind::cpu;
  const std::optional<MemoryBus> bus = bus_of(options, device.info()), host_bus = cpu ? bus : bus_of_host();
  auto report = std::make_unique<Report>("tenon bandwidth", describe_machine(context, options.threads));
  const std::int64_t bytes = options.tiny ? 1 << 16 : std::int64_t{128} << 20;
  const int runs = options.runs > 0 ? options.runs : options.tiny ? 2 : 10;
  Protocol protocol = options.protocol();
  if (options.runs == 0) protocol.runs = runs;

  add_host(*report, options, bytes, runs, host_bus);
  if (!cpu) add_device(*report, context, bytes, protocol, bus);
  add_transfers(*report, device, bytes, protocol);
  add_sources(*report, options, protocol);

  report->note(
      "copy, scale, add, triad: bytes read and written (STREAM); read: bytes read; device copies: bytes moved, pageable ones including the "
      "allocation");
  report->note(fmt::format("theoretical peak: 2 x clock x width / 8 x channels. DDR4-2933 on 4 channels: {}",
                           MemoryBus{.clock_mhz = 1466.67, .bits = 64, .channels = 4}.str()));
  report->note(bus ? fmt::format("{}: {}; % of roof is of that", device.name(), bus->str())
                   : fmt::format("{}: the system does not tell its memory's clock: see --memory-clock-mhz, --bus-bits and --channels",
                                 device.name()));
  if (!cpu && host_bus) report->note(fmt::format("host: {}; one channel for each module is assumed", host_bus->str()));
  return report;
}

}  // namespace tenon::bench
