// SPDX-License-Identifier: Apache-2.0
// bench/harness.h - timing and reports.
//
// Protocol  Compared bodies run in one process, in turns: one sample of each, then the next of each. A sample repeats its body until it
//           lasts about a millisecond, far above the clock's resolution. Samples begin after a warm-up and end when the device is done.
//           Reports have the median of at least ten samples and the distance between their quartiles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::bench {

/// The code to time: runs `repetitions` times and returns when the last run is done.
using Body = std::function<void(std::int64_t repetitions)>;
/// A body that calls `one` each time.
template <class One>
Body repeat(One one) {
  return [one = std::move(one)](std::int64_t repetitions) mutable {
    for (std::int64_t i = 0; i < repetitions; ++i) one();
  };
}

struct Protocol {
  int runs = 21;               ///< samples of each body
  double min_sample_ns = 1e6;  ///< a sample is repeated until it lasts that long
  /// Pause before each sample. Worker threads of a peer may keep spinning after its sample and would disturb ours.
  int settle_ms = 0;
};

/// One body's samples, in nanoseconds per repetition.
struct Samples {
  std::vector<double> ns;
  std::vector<double> cpu_ns;    ///< processor time of all threads of the process; on a shared machine more reliable than the clock
  std::int64_t repetitions = 1;  ///< in each sample
};

/// Times the bodies in turns.
std::vector<Samples> measure(const std::vector<Body>& bodies, const Protocol& protocol);

/// One line of a report.
struct Entry {
  std::string name{};
  Samples samples{};
  std::string peer{};                                     ///< the peer; empty if there is none
  std::string peer_absent{};                              ///< why there is no peer
  Samples peer_samples{};                                 ///< empty without a peer
  std::optional<double> percent_of_roof{};                ///< percentage of the measured peak of the machine
  std::vector<std::pair<std::string, double>> extra{};    ///< further table columns and JSON fields, with units in their names
  std::vector<std::pair<std::string, double>> details{};  ///< the same, in a second table

  double median_ns() const;
  /// Speed-up over the peer: its median over ours. Empty without a peer.
  std::optional<double> ratio() const;
};

/// Collects entries, prints them as a table and writes them as JSON:
/// {"machine": {...}, "benchmarks": [{"name", "median_ns", "iqr_ns", "peer", "ratio", "percent_of_roof", ...}]}
class Report {
 public:
  /// `machine`: the result of describe_machine(), possibly extended by the benchmark.
  Report(std::string title, nlohmann::ordered_json machine);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void add(Entry entry);
  /// Adds a table to the JSON, printed after the entries if `shown`. Each row has as many cells as `columns`.
  void table(const std::string& name, std::vector<std::string> columns, std::vector<std::vector<std::string>> rows, bool shown);
  /// Adds a remark about a method or a missing result. Duplicates are printed once.
  void note(const std::string& text);
  /// Prints the machine, the tables and the notes to stdout.
  void print() const;
  std::string json() const;
  /// Errors  the file cannot be written.
  void write_json(const std::string& file) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Processor time used by all threads of this process.
double cpu_time_ns();
/// "1.23 us": three digits and a unit that fits.
std::string format_duration(double ns);
/// Prints a line about the progress to stderr; results go to stdout.
void say(const std::string& text);

}  // namespace tenon::bench
