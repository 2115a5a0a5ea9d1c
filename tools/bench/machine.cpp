// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <fmt/core.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/machine.h"
#include "cli/roofs.h"
#include "exec/thread_pool.h"
#include "platform/machine.h"

namespace tenon::bench {
namespace {

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

nlohmann::ordered_json describe_machine(const Context& context, int threads) {
  const Device device = context.default_device();
  nlohmann::ordered_json machine;
  machine["processor"] = cli::processor_name();
  machine["processors"] = exec::available_threads();
  machine["isa"] = cli::instruction_sets();
  machine["memory"] = cli::memory_size();
  const double load = platform::load_average();
  machine["load"] = load < 0 ? load : std::round(load * 10) / 10;
  machine["os"] = cli::operating_system();
  machine["compiler"] = compiler();
  machine["tenon"] = TENON_VERSION;
  machine["git"] = TENON_GIT_HASH;
  machine["device"] = fmt::format("{} ({})", device.name(), device.info().product);
  for (const LoadRecord& record : context.load_report().records) {
    if (record.healthy && record.name == device.info().backend) {
      machine["backend"] = fmt::format("{} {}, {}, {}", record.name, record.version, record.build_id, device.info().description);
    }
  }
  machine["threads"] = threads;
  machine["time"] = now_utc();
  return machine;
}

std::map<DType, double> add_peaks(nlohmann::ordered_json& machine, int threads) {
  std::map<DType, double> peaks;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i8}) {
    const auto peak = cli::peak_gflops(dtype, threads);
    if (!peak) continue;
    machine["roofs"][fmt::format("{}_gflop_per_s", name_of(dtype))] = std::round(*peak * 10) / 10;
    peaks[dtype] = *peak;
  }
  return peaks;
}

ResidentMemory resident_memory() {
  const platform::ResidentMemory memory = platform::resident_memory();
  return {static_cast<double>(memory.now_bytes) / 1e6, static_cast<double>(memory.peak_bytes) / 1e6};
}

}  // namespace tenon::bench
