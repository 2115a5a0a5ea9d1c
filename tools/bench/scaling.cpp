// SPDX-License-Identifier: Apache-2.0
// tenon bench scaling - training steps with data parallelism: one batch on 1, 2, ... virtual devices of the device under test, each with
// the same number of threads, and beside several of them the one device with all their threads. With --link, the devices are as if
// connected by links of that bandwidth. With --simulate, on this machine alone, whose sums take as long as among many. With --ranks, on
// processes that mpirun starts: each of them runs this program with --as-rank.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <tenon/config.h>
#include <tenon/model.h>
#include <tenon/train_definition.h>

#include "bench/bar_chart.h"
#include "bench/benchmarks.h"
#include "bench/child.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "cli/common.h"
#include "exec/process_group.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::bench {
namespace {

/// A net of models/ by its name, one of models/bench/, which have no training run, or a file.
TrainDefinition definition_of(const std::string& net, const std::string& models) {
  const std::string run = models + "/../" + net + "/train.yaml";
  TrainDefinition definition = load_definition(net.ends_with(".yaml")                            ? net
                                               : std::filesystem::exists(platform::path_of(run)) ? run
                                                                                                 : models + "/" + net + ".yaml");
  if (!definition.data) {
    definition.loss.loss = Loss::sparse_categorical_crossentropy;
    definition.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = 0.001};
  }
  return definition;
}

LinkOptions link_of(const Options& options) {
  return {.bandwidth_bytes_per_s = options.link_gb_per_s * 1e9, .latency_s = options.link_latency_us * 1e-6};
}

/// Devices that train a net together.
struct Group {
  /// `link`: of CompileOptions::parallel.
  Group(const TrainDefinition& definition, const Options& options, const std::string& device, std::int64_t count, int all_threads,
        const LinkOptions& link)
      : devices(count),
        threads(all_threads),
        name(fmt::format("{} of {}", counted(count, "device"), counted(all_threads / count, "thread"))),
        context(options.make_context_on(all_threads, device, {fmt::format("virtual=[{{of: '{}', count: {}}}]", device, count)})),
        model(definition.model) {
    CompileOptions compile{.optimizer = definition.optimizer, .loss = definition.loss, .metrics = definition.metrics};
    for (std::size_t i = 0; count > 1 && i < static_cast<std::size_t>(count); ++i)
      compile.parallel.devices.push_back(context.devices()[i].name);
    if (options.as_rank) compile.parallel.transport = "mpi";
    compile.parallel.link = link;
    compile.parallel.bucket_mb = options.bucket_mb;
    model.compile(context, compile);
    if (!model.built()) throw Error(fmt::format("{}: expected a model with `input: {{shape: ...}}`", definition.model.file));
  }

  /// A step on a batch whose values do not matter.
  Body step(std::int64_t batch) {
    const SampleType& input = model.inputs().front();
    const Tensor x = Tensor::full(input.dtype, input.shape.with_batch(batch), 0.5);
    Tensor y = Tensor::zeros(DType::i64, {batch});
    const std::int64_t classes = model.outputs().front().shape[0];
    for (std::int64_t i = 0; i < batch; ++i) y.data<std::int64_t>()[i] = i % classes;
    return repeat([this, x, y] { model.train_batch(x, y); });
  }

  std::int64_t devices;
  int threads;  ///< of all devices
  std::string name;
  Context context;
  Model model;
};

/// What a group did in some steps.
struct Work {
  Samples samples;
  CommunicationCounts counts;
  std::uint32_t collectives = 0;  ///< in a step
  std::uint64_t size_bytes = 0;   ///< in a step
  bool knows_duration = true;     ///< of the sums themselves, not only of waiting for them
};

Entry entry_of(const std::string& name, const Work& work, std::int64_t batch, double first_ns, double threads) {
  Entry entry{.name = name, .samples = work.samples};
  const double speed_up = first_ns / entry.median_ns();
  entry.extra.emplace_back("samples_per_s", static_cast<double>(batch) / entry.median_ns() * 1e9);
  entry.extra.emplace_back("speed_up", speed_up);
  entry.extra.emplace_back("efficiency_percent", 100 * speed_up / threads);
  if (work.counts.collectives == 0) return entry;
  const double steps = static_cast<double>(work.counts.collectives) / work.collectives;
  entry.extra.emplace_back("sums", work.collectives);
  entry.extra.emplace_back("summed_mb", static_cast<double>(work.size_bytes) / 1e6);
  entry.extra.emplace_back("waited_ms", static_cast<double>(work.counts.waited_ns) / 1e6 / steps);
  if (work.knows_duration) {
    entry.extra.emplace_back("sums_ms", static_cast<double>(work.counts.duration_ns) / 1e6 / steps);
    entry.extra.emplace_back("hidden_percent",
                             100 - 100 * static_cast<double>(work.counts.waited_ns) / static_cast<double>(work.counts.duration_ns));
  }
  return entry;
}

/// Times steps that all processes take together: process 0 says how many make a sample.
Samples measure_together(const Body& step, const Protocol& protocol, exec::ProcessGroup& processes) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [&](std::int64_t count) {
    const auto begin = Clock::now();
    step(count);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  seconds(3);
  std::int64_t repetitions = std::max<std::int64_t>(1, static_cast<std::int64_t>(protocol.min_sample_ns / 1e9 / seconds(1)));
  processes.broadcast(&repetitions, sizeof repetitions);
  Samples samples{.ns = {}, .cpu_ns = {}, .repetitions = repetitions};
  for (int run = 0; run < protocol.runs; ++run) {
    const double cpu = cpu_time_ns();
    samples.ns.push_back(seconds(repetitions) * 1e9 / static_cast<double>(repetitions));
    samples.cpu_ns.push_back((cpu_time_ns() - cpu) / static_cast<double>(repetitions));
  }
  return samples;
}

/// The part of one process: process 0 writes what it measured as a line of JSON.
std::unique_ptr<Report> run_as_rank(const TrainDefinition& definition, const Options& options, std::int64_t batch) {
  const Context plain = options.make_context(options.threads);
  Group group(definition, options, plain.default_device().name(), 1, options.threads, {});
  const Samples samples = measure_together(group.step(batch), options.protocol(), *exec::ProcessGroup::current());
  if (group.model.rank() > 0) return nullptr;
  const PlacementReport placement = group.model.explain(batch);
  const CommunicationCounts counts = group.model.communication();
  fmt::print("{}\n", nlohmann::json{{"ns", samples.ns},
                                    {"cpu_ns", samples.cpu_ns},
                                    {"repetitions", samples.repetitions},
                                    {"collectives", placement.collectives},
                                    {"size_bytes", placement.bytes_reduced_per_run},
                                    {"all_collectives", counts.collectives},
                                    {"waited_ns", counts.waited_ns}}
                         .dump());
  return nullptr;
}

/// The same net on so many processes.
Work run_ranks(const Options& options, std::int64_t ranks, std::int64_t batch) {
  std::vector<std::string> command = CLI::detail::split(options.mpirun, ' ');
  const std::string net = options.net.empty() ? "mnist_mlp" : options.net;
  const std::vector<std::string> arguments{"-n",
                                           std::to_string(ranks),
                                           platform::text_of(cli::installation_prefix() / "bin" / "tenon"),
                                           "bench",
                                           "scaling",
                                           "--as-rank",
                                           "--threads",
                                           std::to_string(options.threads),
                                           "--batch",
                                           std::to_string(batch),
                                           "--net",
                                           net,
                                           "--runs",
                                           std::to_string(options.protocol().runs)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), options.common.begin(), options.common.end());
  if (options.tiny) command.push_back("--tiny");
  if (options.bucket_mb) command.insert(command.end(), {"--bucket-mb", fmt::format("{}", *options.bucket_mb)});
  const ChildResult result = run_child(command);
  const std::size_t line = result.output.find('{');
  if (result.exit_code != 0 || line == std::string::npos)
    throw Error(fmt::format("--ranks {}: `{}` ended with exit code {}", ranks, fmt::join(command, " "), result.exit_code));
  const nlohmann::json measured = nlohmann::json::parse(result.output.substr(line, result.output.find('\n', line) - line));
  Work work;
  work.samples = {.ns = measured["ns"], .cpu_ns = measured["cpu_ns"], .repetitions = measured["repetitions"]};
  work.collectives = measured["collectives"];
  work.size_bytes = measured["size_bytes"];
  work.counts.collectives = measured["all_collectives"];
  work.counts.waited_ns = measured["waited_ns"];
  work.knows_duration = false;
  return work;
}

/// Steps of this machine, whose sums take as long as among so many machines like it: where a net stops to scale. Each machine has a batch
/// of its own.
std::unique_ptr<Report> simulate(const TrainDefinition& definition, const Options& options, std::int64_t batch) {
  if (options.link_gb_per_s == 0) throw Error("--simulate: expected the bandwidth of the links by --link GB/S, got none");
  const Context plain = options.make_context(options.threads);
  const std::string device = plain.default_device().name();
  auto report =
      std::make_unique<Report>(fmt::format("tenon bench scaling: {}, training, batch {} on each machine", definition.model.name, batch),
                               describe_machine(plain, options.threads));
  BarGroup bars{fmt::format("{}, batch {} on each machine, links of {:g} GB/s and {:g} us: efficiency in percent", definition.model.name,
                            batch, options.link_gb_per_s, options.link_latency_us),
                {}};
  double alone_ns = 0;
  const auto run = [&](std::int64_t machines, bool tree) {
    LinkOptions link = link_of(options);
    link.ranks = machines;
    link.tree = tree;
    Group group(definition, options, device, 1, options.threads, machines > 1 ? link : LinkOptions());
    const Samples samples = measure({group.step(batch)}, options.protocol())[0];
    if (alone_ns == 0) alone_ns = median(samples.ns);
    if (machines == 1 && !bars.bars.empty()) return;
    const PlacementReport placement = group.model.explain(batch);
    const Work work{samples, group.model.communication(), placement.collectives, placement.bytes_reduced_per_run};
    const std::string name = machines == 1 ? "1 machine" : fmt::format("{} machines, {}", machines, tree ? "tree" : "ring");
    Entry entry = entry_of(name, work, batch * machines, alone_ns, 1);
    entry.extra[1].second *= static_cast<double>(machines);
    bars.bars.push_back({name, entry.extra[2].second, fmt::format("{:.4g} samples/s", entry.extra[0].second)});
    report->add(std::move(entry));
  };
  run(1, false);
  for (const std::int64_t machines : options.simulated) {
    if (machines == 1) continue;
    run(machines, false);
    run(machines, true);
  }
  report->note(
      "a ring has 2 (n - 1) steps with 1/n of the bytes each, a tree 2 log2(n) latencies and twice the bytes; what is simulated is the "
      "time of the links, which the steps that are measured overlap with");
  write_chart(options.html, "tenon bench scaling", {bars});
  return report;
}

}  // namespace

std::unique_ptr<Report> scaling(const Options& options) {
  const TrainDefinition definition = definition_of(options.net.empty() ? "mnist_mlp" : options.net, options.models);
  const std::int64_t batch = !options.batches.empty() ? options.batches[0] : options.tiny ? 8 : 512;
  if (options.as_rank) return run_as_rank(definition, options, batch);
  if (!options.simulated.empty()) return simulate(definition, options, batch);
  std::vector<std::int64_t> counts = options.device_counts;
  if (counts.empty()) counts = options.rank_counts.empty() ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{1};
  const Context plain = options.make_context(options.threads);
  const std::string device = plain.default_device().name();
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<Body> bodies;
  const auto add = [&](std::int64_t devices, int threads) {
    groups.push_back(std::make_unique<Group>(definition, options, device, devices, threads, link_of(options)));
    bodies.push_back(groups.back()->step(batch));
  };
  for (const std::int64_t count : counts) {
    const int threads = static_cast<int>(count) * options.threads;
    add(count, threads);
    if (count > 1) add(1, threads);
  }
  Protocol protocol = options.protocol();
  protocol.settle_ms = options.tiny ? 0 : 5;  // threads of the other groups spin for a while
  const std::vector<Samples> samples = measure(bodies, protocol);
  auto report = std::make_unique<Report>(fmt::format("tenon bench scaling: {}, training, batch {}", definition.model.name, batch),
                                         describe_machine(plain, options.threads));
  BarGroup bars{fmt::format("{}, training, batch {}: samples/s", definition.model.name, batch), {}};
  const double first_ns = median(samples[0].ns);
  const auto show = [&](const std::string& name, const Work& work, double times) {
    Entry entry = entry_of(name, work, batch, first_ns, times);
    bars.bars.push_back({name, entry.extra[0].second, fmt::format("{:.2f} times the first", entry.extra[1].second)});
    report->add(std::move(entry));
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const PlacementReport placement = groups[g]->model.explain(batch);
    show(groups[g]->name, {samples[g], groups[g]->model.communication(), placement.collectives, placement.bytes_reduced_per_run},
         static_cast<double>(groups[g]->threads) / groups[0]->threads);
  }
  groups.clear();  // their threads spin for a while after each step
  for (const std::int64_t ranks : options.rank_counts)
    show(fmt::format("{} of {}", counted(ranks, "process", "processes"), counted(options.threads, "thread")),
         run_ranks(options, ranks, batch), static_cast<double>(ranks) / static_cast<double>(counts[0]));
  report->note(
      fmt::format("speed_up: over the first line; sums: of gradients, over the devices or processes, per step; waited_ms: for them, per "
                  "step; hidden_percent: of the time of the sums, what devices computed through"));
  if (options.link_gb_per_s > 0)
    report->note(
        fmt::format("simulated links of {:g} GB/s and {:g} us between the devices", options.link_gb_per_s, options.link_latency_us));
  write_chart(options.html, "tenon bench scaling", {bars});
  return report;
}

}  // namespace tenon::bench
