// SPDX-License-Identifier: Apache-2.0
// tenon bench FILE.onnx - latency, time to the first result and memory of an ONNX model, compared with other runtimes in processes of their
// own. All runtimes have the model loaded at the same time and take turns, in blocks of runs.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include <tenon/error.h>
#include <tenon/onnx.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/onnx_peer.h"
#include "bench/statistics.h"
#include "cli/difference.h"
#include "yaml/suggest.h"

namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Calls f and returns its time.
template <class F>
double time_ns(const F& f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// A runtime that has the model loaded.
struct Runtime {
  Entry entry;
  double load_ms = 0, first_run_ms = 0, base_rss_mb = 0, peak_rss_mb = 0;
  std::function<Samples(int runs)> run;
};

Samples time_runs(onnx::Model& model, const onnx::NamedTensors& inputs, int runs) {
  Samples samples;
  for (int i = 0; i < runs; ++i) {
    const double cpu_begin = cpu_time_ns();
    samples.ns.push_back(time_ns([&] { model.run(inputs); }));
    samples.cpu_ns.push_back(cpu_time_ns() - cpu_begin);
  }
  return samples;
}

void append(const Samples& from, Samples& out_to) {
  out_to.ns.insert(out_to.ns.end(), from.ns.begin(), from.ns.end());
  out_to.cpu_ns.insert(out_to.cpu_ns.end(), from.cpu_ns.begin(), from.cpu_ns.end());
}

/// Adds `runs` samples to each runtime, in ten blocks each, in turns. A block begins with a run that does not count, after a pause: threads
/// of a runtime may spin after its last run, and would disturb the next one.
void take_turns(std::vector<Runtime>& runtimes, int runs, std::chrono::milliseconds pause) {
  constexpr int blocks = 10;
  for (int block = 0; block < blocks; ++block) {
    const int count = runs * (block + 1) / blocks - runs * block / blocks;
    for (std::size_t turn = 0; turn < runtimes.size() && count > 0; ++turn) {
      Runtime& runtime = runtimes[(turn + static_cast<std::size_t>(block)) % runtimes.size()];
      std::this_thread::sleep_for(pause);
      runtime.run(1);
      append(runtime.run(count), runtime.entry.samples);
    }
  }
}

/// Reads a file, so that no runtime waits for the disk.
void read_ahead(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
  }
}

/// The largest difference of an output from Tenon's, as a fraction of its largest element.
double difference(const std::vector<Tensor>& expected, const std::vector<Tensor>& got, const std::string& peer) {
  if (got.size() != expected.size()) throw Error(fmt::format("{} computes {} outputs, expected {}", peer, got.size(), expected.size()));
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest, cli::largest_difference(expected[i].to_host(), got[i], std::numeric_limits<float>::min(), peer));
  return largest;
}

/// The model in all runtimes that can run it, Tenon first.
class Comparison {
 public:
  Comparison(const Options& options, const Context& context) : options_(options), precision_(context.config().precision) {
    Runtime tenon;
    tenon.entry.name = "Tenon";
    tenon.base_rss_mb = resident_memory().now;
    tenon.load_ms = time_ns([&] { model_ = std::make_unique<onnx::Model>(onnx::Model::load(options.model, context)); }) / 1e6;
    inputs_ = options.inputs.tensors(*model_);
    tenon.first_run_ms = time_ns([&] { results_ = model_->run(inputs_); }) / 1e6;
    tenon.run = [this](int runs) { return time_runs(*model_, inputs_, runs); };
    run_ns_ = median(tenon.run(3).ns);
    tenon.peak_rss_mb = resident_memory().peak;
    runtimes_.push_back(std::move(tenon));
  }

  std::string inputs() const { return options_.inputs.str(*model_, inputs_); }

  /// Adds the peers that are there and give the same kind of results; the others are notes.
  void add_peers(Report& out_report) {
    for (const std::string& name : options_.runtimes) {
      say("loading the model in " + name);
      try {
        if (files_.names().empty()) write(inputs_, files_);
        auto peer = std::make_unique<OnnxPeer>(options_.python, name, options_.model, options_.threads, precision_);
        Runtime runtime;
        std::vector<Tensor> got;
        const Samples first = peer->run(files_, got);
        if (!peer->absent().empty()) throw Error(peer->absent());
        runtime.entry.name = peer->name();
        runtime.entry.extra.emplace_back("difference", difference(results_, got, peer->name()));
        runtime.load_ms = peer->load_ms();
        runtime.first_run_ms = first.ns[0] / 1e6;
        runtime.base_rss_mb = peer->base_rss_mb();
        runtime.run = [this, at = peer.get()](int runs) { return at->run(files_, runs); };
        runtimes_.push_back(std::move(runtime));
        peers_.push_back(std::move(peer));
      } catch (const Error& error) {
        out_report.note(std::string("no peer: ") + error.what());
      }
    }
  }

  void measure() {
    const int chosen = options_.tiny ? 2 : static_cast<int>(std::clamp(2e9 / run_ns_, 20.0, 1000.0));
    const int runs = options_.runs > 0 ? options_.runs : chosen;
    say(fmt::format("{} runs of each", runs));
    take_turns(runtimes_, runs, std::chrono::milliseconds(peers_.empty() || options_.tiny ? 0 : 20));
    for (std::size_t i = 0; i < peers_.size(); ++i) runtimes_[i + 1].peak_rss_mb = peers_[i]->peak_rss_mb();
  }

  void add_to(Report& report) {
    const double tenon_ns = runtimes_[0].entry.median_ns();
    for (std::size_t i = 0; i < runtimes_.size(); ++i) {
      if (i > 0 && !peers_[i - 1]->absent().empty()) {
        report.note("no peer: " + peers_[i - 1]->absent());
        continue;
      }
      const Runtime& runtime = runtimes_[i];
      Entry entry = runtime.entry;
      entry.extra.insert(entry.extra.begin(),
                         {{"p90_ms", quantile(entry.samples.ns, 0.9) / 1e6}, {"p99_ms", quantile(entry.samples.ns, 0.99) / 1e6}});
      if (i > 0) entry.extra.emplace_back("times_tenon", entry.median_ns() / tenon_ns);
      entry.details = {{"load_ms", runtime.load_ms},
                       {"first_run_ms", runtime.first_run_ms},
                       {"first_result_ms", runtime.load_ms + runtime.first_run_ms}};
      if (const std::optional<double> ms = new_shape_ms(i)) entry.details.emplace_back("new_shape_ms", *ms);
      entry.details.insert(entry.details.end(), {{"base_rss_mb", runtime.base_rss_mb}, {"peak_rss_mb", runtime.peak_rss_mb}});
      if (i == 0) {
        try {
          add_program_memory(entry);
        } catch (const Error& error) {
          if (error.status() != Status::unsupported) throw;
          report.note("no memory of the program: the model runs in several");
        }
      }
      report.add(std::move(entry));
    }
  }

 private:
  void write(const onnx::NamedTensors& tensors, OnnxPeerInputs& out_inputs) const {
    for (const onnx::ValueType& input : model_->inputs()) out_inputs.add(input.name, tensors.at(input.name));
  }

  /// The time of the first run at the second set of shapes, if there is one.
  std::optional<double> new_shape_ms(std::size_t runtime) {
    if (options_.inputs.shape_sets() < 2) return std::nullopt;
    const onnx::NamedTensors inputs = options_.inputs.tensors(*model_, 1);
    if (runtime == 0) return time_runs(*model_, inputs, 1).ns[0] / 1e6;
    OnnxPeerInputs files;
    write(inputs, files);
    const Samples samples = peers_[runtime - 1]->run(files, 1);
    return samples.ns.empty() ? std::nullopt : std::optional(samples.ns[0] / 1e6);
  }

  /// Adds the parts of the program's memory, on all devices.
  void add_program_memory(Entry& entry) const {
    onnx::InputTypes types;
    for (const auto& [name, tensor] : inputs_) types[name] = {tensor.dtype(), tensor.shape(), tensor};
    std::uint64_t parameters = 0, packed = 0, own = 0;
    for (const MemoryPlan& plan : model_->bind(types).memory()) {
      parameters += plan.parameters_size_bytes();
      packed += plan.packed_parameters_size_bytes() + plan.packed_size_bytes;
      own += plan.own_size_bytes() - plan.packed_size_bytes;
    }
    entry.details.emplace_back("parameters_mb", static_cast<double>(parameters) / 1e6);
    entry.details.emplace_back("packed_mb", static_cast<double>(packed) / 1e6);
    entry.details.emplace_back("program_mb", static_cast<double>(own) / 1e6);
  }

  const Options& options_;
  Precision precision_;
  std::unique_ptr<onnx::Model> model_;
  onnx::NamedTensors inputs_;
  std::vector<Tensor> results_;  ///< of Tenon's first run
  double run_ns_ = 0;            ///< about the time of a run of Tenon
  OnnxPeerInputs files_;
  std::vector<std::unique_ptr<OnnxPeer>> peers_;
  std::vector<Runtime> runtimes_;  ///< Tenon, then the peers
};

}  // namespace

std::unique_ptr<Report> onnx_model(const Options& options) {
  for (const std::string& name : options.runtimes) {
    if (std::ranges::find(onnx_peers(), name) == onnx_peers().end())
      throw Error(fmt::format("--compare: expected one of {}, got '{}'{}", fmt::join(onnx_peers(), ", "), name,
                              yaml::did_you_mean(name, onnx_peers())));
  }
  read_ahead(options.model);
  const Context context = options.make_context(options.threads);
  Comparison comparison(options, context);
  nlohmann::ordered_json machine = describe_machine(context, options.threads);
  machine["precision"] = name_of(context.config().precision);
  machine["model"] = options.model;
  machine["inputs"] = comparison.inputs();
  auto report = std::make_unique<Report>("tenon bench " + options.model, std::move(machine));
  comparison.add_peers(*report);
  comparison.measure();
  comparison.add_to(*report);
  report->note("first_result_ms: load_ms and first_run_ms, without the start of the process");
  report->note("base_rss_mb: the process before it loads the model, a peer's with Python and its package; peak_rss_mb: until the last run");
  report->note("parameters_mb: weights; packed_mb: their packed copies and constants; program_mb: inputs, results and workspace");
  if (!options.runtimes.empty()) {
    report->note(
        "times_tenon: median over that of Tenon; difference: the largest from Tenon's outputs, over the largest element of the output");
    report->note("peers are called through their Python packages");
  }
  return report;
}

}  // namespace tenon::bench
