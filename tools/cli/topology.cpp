// SPDX-License-Identifier: Apache-2.0
#include "cli/topology.h"

#include <fmt/core.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "cli/machine.h"
#include "exec/thread_pool.h"
#include "platform/processors.h"

namespace tenon::cli {
namespace {

/// "CPU 3 of node 0", where the calling thread runs now.
std::string place_of_this_thread() {
  const int processor = platform::current_processor(), node = platform::current_memory_node();
  return processor < 0 || node < 0 ? "unknown" : fmt::format("CPU {} of node {}", processor, node);
}

/// The places of the threads that share a loop.
std::string thread_places(std::uint32_t threads) {
  struct Found {
    std::mutex mutex;
    std::map<std::thread::id, std::string> places;
  } found;
  const auto body = [](void* argument, std::int64_t, std::int64_t) {
    auto& all = *static_cast<Found*>(argument);
    {
      const std::lock_guard lock(all.mutex);
      all.places[std::this_thread::get_id()] = place_of_this_thread();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // leaves work for the threads that are still waking up
  };
  exec::ThreadPool pool(threads);
  pool.parallel_for(std::int64_t{4} * threads, 1, body, &found);
  std::map<std::string, int> counts;
  for (const auto& [id, place] : found.places) ++counts[place];
  std::string text;
  for (const auto& [place, count] : counts) text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", count, place);
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe_parallelism(std::uint32_t threads) {
  const std::string sets = instruction_sets();
  const int bits = vector_bits(sets);
  const std::string simd = bits > 0 ? fmt::format(", SIMD in each: vectors of {} bits", bits) : "";
  std::string nodes;
  for (const auto& [id, cpus] : numa_nodes()) nodes += fmt::format("{}node {}: CPUs {}", nodes.empty() ? "" : "; ", id, cpus);
  return {{"parallelism",
           fmt::format("{}: {} thread{}{}", threads == 1 ? "one instruction stream" : "MIMD", threads, threads == 1 ? "" : "s", simd)},
          {"instruction sets", sets},
          {"memory nodes", nodes.empty() ? "unknown" : nodes},
          {"threads", thread_places(threads)}};
}

}  // namespace tenon::cli
