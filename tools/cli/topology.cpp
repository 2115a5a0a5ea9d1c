// SPDX-License-Identifier: Apache-2.0
#include "cli/topology.h"

#include <fmt/core.h>

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cli/machine.h"
#include "exec/thread_pool.h"
#include "platform/processors.h"
#include "text/counted.h"

namespace tenon::cli {
namespace {

/// "0-3,8": the numbers as the system writes lists of CPUs.
std::string ranges(const std::set<int>& numbers) {
  std::string text;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto next = first;
    int last = *first;
    while (++next != numbers.end() && *next == last + 1) last = *next;
    text += fmt::format("{}{}", text.empty() ? "" : ",", *first);
    if (last != *first) text += fmt::format("-{}", last);
    first = next;
  }
  return text;
}

/// Where the threads that share a loop run now: "16 on CPUs 0-15 of node 0", a part for each memory node.
std::string thread_places(std::uint32_t threads) {
  struct Place {
    int processor, node;
  };
  struct Found {
    std::mutex mutex;
    std::map<std::thread::id, Place> places;
  } found;
  const auto body = [](void* argument, std::int64_t, std::int64_t) {
    auto& all = *static_cast<Found*>(argument);
    {
      const std::lock_guard lock(all.mutex);
      all.places[std::this_thread::get_id()] = {platform::current_processor(), platform::current_memory_node()};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // leaves work for the threads that are still waking up
  };
  exec::ThreadPool pool(threads);
  pool.parallel_for(std::int64_t{4} * threads, 1, body, &found);
  struct Node {
    int threads = 0;
    std::set<int> processors;
  };
  std::map<int, Node> nodes;
  for (const auto& [id, place] : found.places) {
    if (place.processor < 0 || place.node < 0) return "unknown";
    ++nodes[place.node].threads;
    nodes[place.node].processors.insert(place.processor);
  }
  std::string text;
  for (const auto& [number, node] : nodes) {
    text += fmt::format("{}{} on CPU{} {} of node {}", text.empty() ? "" : ", ", node.threads, node.processors.size() == 1 ? "" : "s",
                        ranges(node.processors), number);
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe_parallelism(std::uint32_t threads) {
  const std::string sets = instruction_sets();
  const int bits = vector_bits(sets);
  const std::string simd = bits > 0 ? fmt::format(", SIMD in each: vectors of {} bits", bits) : "";
  std::string nodes;
  for (const auto& [id, cpus] : numa_nodes()) nodes += fmt::format("{}node {}: CPUs {}", nodes.empty() ? "" : "; ", id, cpus);
  return {{"parallelism", fmt::format("{}: {}{}", threads == 1 ? "one instruction stream" : "MIMD", counted(threads, "thread"), simd)},
          {"instruction sets", sets},
          {"memory nodes", nodes.empty() ? "unknown" : nodes},
          {"threads", thread_places(threads)}};
}

}  // namespace tenon::cli
