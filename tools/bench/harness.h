// bench/harness.h - how everything here is timed, and how it is told.
//
// Protocol  what is compared runs in one process, in turns: one sample of each, then the next of each. A sample repeats its body until
//           it lasts about a millisecond, far above the clock's step. Samples begin after a warm-up and end when the device is done. What
//           is reported is the median of at least ten of them, and the distance between their quartiles.
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

/// What is timed: does the thing so many times, and returns when the last of them is done.
using Body = std::function<void(std::int64_t repetitions)>;

struct Protocol {
  int runs = 21;                 ///< samples of each body
  double least_sample_ns = 1e6;  ///< a sample is repeated until it lasts that long
  /// Pause before each sample. A peer's own worker threads may go on spinning for a while after its sample; they must not run into ours.
  int settle_ms = 0;
};

/// One body's samples, in nanoseconds per repetition.
struct Samples {
  std::vector<double> ns;
  std::vector<double> cpu_ns;    ///< processor time of all threads of the process: on a shared machine it says more than the clock
  std::int64_t repetitions = 1;  ///< in each sample
};

/// Times the bodies in turns.
std::vector<Samples> measure(const std::vector<Body>& bodies, const Protocol& protocol);

/// One line of a report.
struct Entry {
  std::string name{};
  Samples samples{};
  std::string peer{};                                   ///< who was measured beside us; empty: nobody
  std::string peer_absent{};                            ///< why nobody was
  Samples peer_samples{};                               ///< empty without a peer
  std::optional<double> percent_of_roof{};              ///< of what the measured peak of the machine allows
  std::vector<std::pair<std::string, double>> extra{};  ///< further columns of the table and fields of the JSON, with units in their names

  double median_ns() const;
  /// How many times as fast as the peer: its median over ours. Nothing without a peer.
  std::optional<double> ratio() const;
};

/// Collects entries, prints them as a table and writes them as JSON:
/// {"machine": {...}, "benchmarks": [{"name", "median_ns", "iqr_ns", "peer", "ratio", "percent_of_roof", ...}]}
class Report {
 public:
  /// `machine`: describe_machine() and what the benchmark adds to it.
  Report(std::string title, nlohmann::ordered_json machine);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void add(Entry entry);
  /// A table of its own: in the JSON always, printed under the entries if `shown`. Rows are as wide as `columns`.
  void table(const std::string& name, std::vector<std::string> columns, std::vector<std::vector<std::string>> rows, bool shown);
  /// A remark under the table: a method, or why something is missing. Said once however often it is added.
  void note(const std::string& text);
  /// Machine, table and notes to stdout.
  void print() const;
  /// Errors  the file cannot be written.
  void write_json(const std::string& file) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Processor time this process has used so far, all threads together.
double cpu_time_ns();
/// "1.23 us": three digits and a unit that fits.
std::string format_duration(double ns);
/// A line on stderr about what is going on; results go to stdout.
void say(const std::string& text);

}  // namespace tenon::bench
