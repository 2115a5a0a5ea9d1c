// SPDX-License-Identifier: Apache-2.0
// tenon bench serve - clients that send the next request when they have the result of the last one, with and without dynamic batching. The
// ways of serving take turns, in rounds.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/batcher.h>
#include <tenon/error.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/served_model.h"
#include "bench/statistics.h"

namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Less than that is not called a gain: medians of rounds differ as much on a machine with other work.
constexpr double min_gain = 1.05;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// A way to serve requests.
struct Way {
  std::string name;
  std::optional<BatcherOptions> batcher;  ///< nothing: the clients take turns with a mutex
};

/// What a way of serving did in all rounds.
struct Served {
  Samples samples;               ///< latency of each request; processor time per request of each round
  std::vector<double> rates;     ///< requests per second of each round
  std::uint64_t batches = 0;     ///< of the batcher
  std::uint64_t requests = 0;    ///< in these batches
  std::vector<double> waits_us;  ///< 99th percentile of the time in the queue, of each round

  double requests_per_s() const { return median(rates); }
  double latency_ms(double fraction) const { return quantile(samples.ns, fraction) / 1e6; }
  /// Requests per call of the model.
  double mean_batch() const { return batches == 0 ? 1 : static_cast<double>(requests) / static_cast<double>(batches); }
};

/// Lets each client send requests until the time is over; each sends at least one.
void run_clients(std::span<const NamedTensors> requests, double seconds, const std::function<void(const NamedTensors&)>& serve,
                 Served& out_served) {
  std::mutex mutex;  // of the results and the error
  std::exception_ptr error;
  std::vector<double> latencies;
  std::promise<void> start;
  const std::shared_future<void> started = start.get_future().share();
  const auto client = [&](const NamedTensors& request) {
    std::vector<double> ns;
    started.wait();
    try {
      const Clock::time_point begin = Clock::now();
      do {
        const Clock::time_point sent = Clock::now();
        serve(request);
        ns.push_back(ns_since(sent));
      } while (ns_since(begin) < seconds * 1e9);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    latencies.insert(latencies.end(), ns.begin(), ns.end());
  };
  std::vector<std::jthread> clients;
  clients.reserve(requests.size());
  for (const NamedTensors& request : requests) clients.emplace_back(client, std::cref(request));
  const double cpu_begin = cpu_time_ns();
  const Clock::time_point begin = Clock::now();
  start.set_value();
  clients.clear();  // joins them
  const double elapsed_ns = ns_since(begin);
  if (error) std::rethrow_exception(error);
  const auto count = static_cast<double>(latencies.size());
  out_served.rates.push_back(count / elapsed_ns * 1e9);
  out_served.samples.cpu_ns.push_back((cpu_time_ns() - cpu_begin) / count);
  out_served.samples.ns.insert(out_served.samples.ns.end(), latencies.begin(), latencies.end());
}

/// One round of a way of serving.
void run_round(const ServedModel& model, const Way& way, double seconds, Served& out_served) {
  if (way.batcher) {
    Batcher batcher(model.function, *way.batcher);
    run_clients(
        model.requests, seconds, [&batcher](const NamedTensors& request) { batcher.run(request); }, out_served);
    const BatcherCounts counts = batcher.counts();
    out_served.batches += counts.batches;
    out_served.requests += counts.requests;
    out_served.waits_us.push_back(counts.wait_p99_us);
    return;
  }
  std::mutex mutex;
  const auto serve = [&](const NamedTensors& request) {
    const std::lock_guard lock(mutex);
    for (const auto& [name, output] : model.function(request)) static_cast<void>(output.to_host());  // copied, as by a batcher
  };
  run_clients(model.requests, seconds, serve, out_served);
}

/// A request with the first sample of another one, `size` times.
NamedTensors repeated(const NamedTensors& request, std::int64_t size) {
  NamedTensors batch;
  for (const auto& [name, tensor] : request) {
    Shape shape = tensor.shape();
    shape.set(0, size);
    batch[name] = tensor.narrow(0, 0, 1).expand(shape).contiguous();
  }
  return batch;
}

/// The median time of a call of the model with that many samples. The first call, which compiles, does not count.
double call_ns(const ServedModel& model, std::int64_t size, int runs) {
  const NamedTensors batch = repeated(model.requests.front(), size);
  model.function(batch);
  std::vector<double> ns;
  for (int i = 0; i < runs; ++i) {
    const Clock::time_point begin = Clock::now();
    model.function(batch);
    ns.push_back(ns_since(begin));
  }
  return median(ns);
}

/// Whether batching pays, and if not, what may be the reason. The last way is the one with batches.
std::string verdict(const std::vector<Served>& all, const Options& options, std::int64_t samples, double times_one) {
  const Served& batching = all.back();
  const Served* best = &all.front();
  for (const Served& served : std::span(all).first(all.size() - 1))
    best = served.requests_per_s() > best->requests_per_s() ? &served : best;
  const double gain = batching.requests_per_s() / best->requests_per_s();
  const std::string figures =
      fmt::format("{:.2f} times the requests per second of the better way without, p99 {:.3g} ms, without {:.3g} ms", gain,
                  batching.latency_ms(0.99), best->latency_ms(0.99));
  if (gain >= min_gain) return "batching pays here: " + figures;
  std::string text = fmt::format("batching does not pay here: {}; the model takes {:.2f} times as long for {} samples as for {}", figures,
                                 times_one, options.max_batch, samples);
  const double full = static_cast<double>(options.max_batch) / static_cast<double>(samples);
  if (batching.mean_batch() < 0.75 * full)
    text += fmt::format(", and {} clients fill {:.1f} of {:.0f} places of a batch", options.clients, batching.mean_batch(), full);
  return text;
}

Entry entry_of(const Way& way, Served served, double first_rate) {
  Entry entry;
  entry.name = way.name;
  entry.extra = {{"requests_per_s", served.requests_per_s()}, {"p50_ms", served.latency_ms(0.5)},
                 {"p99_ms", served.latency_ms(0.99)},         {"p999_ms", served.latency_ms(0.999)},
                 {"mean_batch", served.mean_batch()},         {"times_first", served.requests_per_s() / first_rate}};
  if (!served.waits_us.empty()) entry.extra.emplace_back("wait_p99_us", median(served.waits_us));
  entry.samples = std::move(served.samples);
  return entry;
}

}  // namespace

std::unique_ptr<Report> serve(const Options& options) {
  const Context context = options.make_context(options.threads);
  const ServedModel model = load_served_model(options, context);
  const std::vector<Way> ways{
      {"mutex", std::nullopt},
      {"batcher off", BatcherOptions{.max_batch = model.samples, .max_delay_us = 0, .batch_sizes = {model.samples}}},
      {"batcher on", BatcherOptions{.max_batch = options.max_batch, .max_delay_us = options.max_delay_us}}};
  say("compiling the model for each batch size");
  const int runs = options.tiny ? 1 : 9;
  const BatcherOptions batching = Batcher(model.function, *ways.back().batcher).options();  // with the sizes that it calls
  for (const std::int64_t size : batching.batch_sizes) call_ns(model, size, 1);
  const double one_ns = call_ns(model, model.samples, runs), full_ns = call_ns(model, options.max_batch, runs);

  const int rounds = options.runs > 0 ? options.runs : options.tiny ? 1 : 5;
  const double seconds = options.tiny ? 0.02 : options.seconds / rounds;
  std::vector<Served> all(ways.size());
  for (int round = 0; round < rounds; ++round) {
    say(fmt::format("round {} of {}", round + 1, rounds));
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % ways.size();
      run_round(model, ways[i], seconds, all[i]);
    }
  }

  nlohmann::ordered_json machine = describe_machine(context, options.threads);
  machine["model"] = options.model;
  machine["inputs"] = model.inputs;
  machine["clients"] = options.clients;
  machine["max_batch"] = options.max_batch;
  machine["max_delay_us"] = options.max_delay_us;
  machine["times_one"] = full_ns / one_ns;
  auto report = std::make_unique<Report>("tenon bench serve " + options.model, std::move(machine));
  const std::string text = verdict(all, options, model.samples, full_ns / one_ns);
  const double first_rate = all.front().requests_per_s();
  for (std::size_t i = 0; i < ways.size(); ++i) report->add(entry_of(ways[i], std::move(all[i]), first_rate));
  report->note(text);
  report->note(fmt::format("mutex: clients take turns; batcher off: batches of one request; batcher on: up to {} samples within {} us",
                           options.max_batch, options.max_delay_us));
  report->note("median, p50_ms to p999_ms: latency of a request as its client sees it; requests_per_s: median of the rounds");
  report->note("mean_batch: requests per call of the model; times_one: a call with max_batch samples over one with a request's");
  return report;
}

}  // namespace tenon::bench
