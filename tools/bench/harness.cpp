// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include <tenon/error.h>

#include "bench/statistics.h"
#include "core/table.h"
#include "io/atomic_file.h"

namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double time_ns(const Body& body, std::int64_t repetitions) {
  const auto begin = Clock::now();
  body(repetitions);
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// Warms up, and finds the number of repetitions for a sample that lasts long enough.
std::int64_t calibrate(const Body& body, double min_ns) {
  body(1);  // the first run differs: caches, page faults, thread starts
  std::int64_t repetitions = 1;
  for (;;) {
    const double ns = time_ns(body, repetitions);
    if (ns >= min_ns) return repetitions;
    const double target = static_cast<double>(repetitions) * 1.2 * min_ns / std::max(ns, 1.0);
    // At most tenfold at once: a short first measurement may be far off.
    repetitions = std::min(repetitions * 10, std::max(repetitions + 1, static_cast<std::int64_t>(std::ceil(target))));
  }
}

Json number(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

/// The shortest sample, the one least disturbed by other processes.
double best(const Samples& samples) {
  return *std::min_element(samples.ns.begin(), samples.ns.end());
}

Json to_json(const Entry& entry) {
  Json object;
  object["name"] = entry.name;
  object["median_ns"] = entry.median_ns();
  object["iqr_ns"] = interquartile_range(entry.samples.ns);
  object["best_ns"] = best(entry.samples);
  object["cpu_median_ns"] = median(entry.samples.cpu_ns);
  object["peer"] = entry.peer.empty() ? Json(nullptr) : Json(entry.peer);
  object["ratio"] = number(entry.ratio());
  object["percent_of_roof"] = number(entry.percent_of_roof);
  object["runs"] = entry.samples.ns.size();
  object["repetitions"] = entry.samples.repetitions;
  if (!entry.peer.empty()) {
    object["peer_median_ns"] = median(entry.peer_samples.ns);
    object["peer_iqr_ns"] = interquartile_range(entry.peer_samples.ns);
    object["peer_best_ns"] = best(entry.peer_samples);
    object["peer_cpu_median_ns"] = median(entry.peer_samples.cpu_ns);
  } else if (!entry.peer_absent.empty()) {
    object["peer_absent"] = entry.peer_absent;
  }
  for (const auto& [name, value] : entry.extra) object[name] = value;
  for (const auto& [name, value] : entry.details) object[name] = value;
  return object;
}

/// Prints rows, the first of which is the header: all columns but the first have numbers.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> numbers(rows[0].size() - 1);
  std::iota(numbers.begin(), numbers.end(), std::size_t{1});
  tenon::Table table(rows[0]);
  table.align_right(std::move(numbers));
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) table.add(*row);
  std::fputs(table.str().c_str(), stdout);
}

/// At least three digits, two of numbers below 0.01; integers without decimals.
std::string format_number(double value) {
  const double size = std::fabs(value);
  if (size < 1e6 && std::trunc(value) == value) return fmt::format("{:.0f}", value);
  if (size < 0.01) return fmt::format("{:.2g}", value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

using Fields = std::vector<std::pair<std::string, double>>;

/// The names of the fields that at least one entry has.
std::vector<std::string> names_of(const std::vector<Entry>& entries, Fields Entry::*fields) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    for (const auto& field : entry.*fields) {
      if (std::find(names.begin(), names.end(), field.first) == names.end()) names.push_back(field.first);
    }
  }
  return names;
}

/// Adds a cell for each name.
void add_cells(const Fields& fields, const std::vector<std::string>& names, std::vector<std::string>& out_row) {
  for (const std::string& name : names) {
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
    out_row.push_back(found == fields.end() ? "-" : format_number(found->second));
  }
}

}  // namespace

std::vector<Samples> measure(const std::vector<Body>& bodies, const Protocol& protocol) {
  std::vector<Samples> all(bodies.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) all[i].repetitions = calibrate(bodies[i], protocol.min_sample_ns);
  for (int run = 0; run < protocol.runs; ++run) {
    for (std::size_t turn = 0; turn < bodies.size(); ++turn) {
      // Rotate the order, so that no body always runs after the same one.
      const std::size_t i = (turn + static_cast<std::size_t>(run)) % bodies.size();
      if (protocol.settle_ms > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(protocol.settle_ms));
        bodies[i](1);  // wakes the threads
      }
      const auto repetitions = static_cast<double>(all[i].repetitions);
      const double cpu_begin = cpu_time_ns();
      all[i].ns.push_back(time_ns(bodies[i], all[i].repetitions) / repetitions);
      all[i].cpu_ns.push_back((cpu_time_ns() - cpu_begin) / repetitions);
    }
  }
  return all;
}

double Entry::median_ns() const {
  return median(samples.ns);
}

std::optional<double> Entry::ratio() const {
  if (peer_samples.ns.empty()) return std::nullopt;
  return median(peer_samples.ns) / median(samples.ns);
}

struct Table {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  bool shown = true;
};

struct Report::State {
  std::string title;
  Json machine;
  std::vector<Entry> entries;
  std::vector<Table> tables;
  std::vector<std::string> notes;
};

Report::Report(std::string title, nlohmann::ordered_json machine) : state_(std::make_unique<State>()) {
  state_->title = std::move(title);
  state_->machine = std::move(machine);
  const double load = state_->machine.value("load", 0.0), processors = state_->machine.value("processors", 1.0);
  if (load > processors / 2) {
    note(fmt::format("load average {} on {} processors: medians are high and ratios uncertain; repeat on an idle machine", load,
                     processors));
  }
}
Report::~Report() = default;

void Report::add(Entry entry) {
  if (!entry.peer_absent.empty()) note("no peer: " + entry.peer_absent);
  state_->entries.push_back(std::move(entry));
}

void Report::table(const std::string& name, std::vector<std::string> columns, std::vector<std::vector<std::string>> rows, bool shown) {
  state_->tables.push_back({name, std::move(columns), std::move(rows), shown});
}

void Report::note(const std::string& text) {
  if (std::find(state_->notes.begin(), state_->notes.end(), text) == state_->notes.end()) state_->notes.push_back(text);
}

void Report::print() const {
  const State& s = *state_;
  std::printf("%s\n", s.title.c_str());
  std::size_t key_width = 0;
  for (const auto& [key, value] : s.machine.items()) key_width = std::max(key_width, key.size());
  for (const auto& [key, value] : s.machine.items()) {
    const std::string text = value.is_string()         ? value.get<std::string>()
                             : value.is_number_float() ? fmt::format("{:.2f}", value.get<double>())
                                                       : value.dump();
    std::printf("  %-*s  %s\n", static_cast<int>(key_width), key.c_str(), text.c_str());
  }
  std::puts("");
  const std::vector<std::string> names = names_of(s.entries, &Entry::extra), details = names_of(s.entries, &Entry::details);
  bool peers = false, roofs = false;
  for (const Entry& entry : s.entries) {
    peers = peers || !entry.peer.empty();
    roofs = roofs || entry.percent_of_roof.has_value();
  }
  std::vector<std::vector<std::string>> rows(1, {"benchmark", "median", "iqr", "best", "cpu", "runs"});
  if (peers) rows[0].insert(rows[0].end(), {"peer median", "peer best", "peer cpu", "ratio"});
  if (roofs) rows[0].emplace_back("% of roof");
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  for (const Entry& entry : s.entries) {
    std::vector<std::string> row{entry.name,
                                 format_duration(entry.median_ns()),
                                 format_duration(interquartile_range(entry.samples.ns)),
                                 format_duration(best(entry.samples)),
                                 format_duration(median(entry.samples.cpu_ns)),
                                 std::to_string(entry.samples.ns.size())};
    if (peers) {
      row.push_back(entry.peer.empty() ? "-" : format_duration(median(entry.peer_samples.ns)));
      row.push_back(entry.peer.empty() ? "-" : format_duration(best(entry.peer_samples)));
      row.push_back(entry.peer.empty() ? "-" : format_duration(median(entry.peer_samples.cpu_ns)));
      row.push_back(entry.peer.empty() ? "-" : fmt::format("{:.3f}", *entry.ratio()));
    }
    if (roofs) row.push_back(entry.percent_of_roof ? fmt::format("{:.1f}", *entry.percent_of_roof) : "-");
    add_cells(entry.extra, names, row);
    rows.push_back(std::move(row));
  }
  print_table(rows);
  if (!details.empty()) {
    rows.assign(1, {"benchmark"});
    rows[0].insert(rows[0].end(), details.begin(), details.end());
    for (const Entry& entry : s.entries) {
      rows.push_back({entry.name});
      add_cells(entry.details, details, rows.back());
    }
    std::puts("");
    print_table(rows);
  }
  for (const Table& table : s.tables) {
    if (!table.shown || table.rows.empty()) continue;
    std::printf("\n%s\n", table.name.c_str());
    std::vector<std::vector<std::string>> all{table.columns};
    all.insert(all.end(), table.rows.begin(), table.rows.end());
    print_table(all);
  }
  if (!s.tables.empty() || !details.empty()) std::puts("");
  for (const std::string& text : s.notes) std::printf("note: %s\n", text.c_str());
  std::fflush(stdout);
}

std::string Report::json() const {
  Json document;
  document["title"] = state_->title;
  document["machine"] = state_->machine;
  document["benchmarks"] = Json::array();
  for (const Entry& entry : state_->entries) document["benchmarks"].push_back(to_json(entry));
  for (const Table& table : state_->tables) {
    Json list = Json::array();
    for (const std::vector<std::string>& row : table.rows) {
      Json line;
      for (std::size_t i = 0; i < table.columns.size(); ++i) line[table.columns[i]] = row[i];
      list.push_back(std::move(line));
    }
    document["tables"][table.name] = std::move(list);
  }
  document["notes"] = state_->notes;
  return document.dump(2) + "\n";
}

void Report::write_json(const std::string& file) const {
  io::write_atomically(file, json());
}

double cpu_time_ns() {
#if defined(CLOCK_PROCESS_CPUTIME_ID)
  timespec now{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0) return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
#endif
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC * 1e9;
}

std::string format_duration(double ns) {
  constexpr std::pair<double, const char*> units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  for (const auto& [size, unit] : units) {
    if (std::fabs(ns) >= size) return fmt::format("{} {}", format_number(ns / size), unit);
  }
  return fmt::format("{} ns", format_number(ns));
}

void say(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace tenon::bench
