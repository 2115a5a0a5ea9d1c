// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <set>

#include <tenon/error.h>

#include "child.h"
#include "platform/streams.h"

namespace tenon::conformance {
namespace {

/// The longest wait without a message.
constexpr std::chrono::milliseconds tick{50};

/// Waits until one of the children sends something, at most a tick.
void wait_for(std::list<Child>& children) {
  std::vector<platform::Process*> processes;
  for (Child& child : children) processes.push_back(&child.process());
  platform::wait_for_any(processes, tick);
}

/// One run of cases in children.
class Schedule {
 public:
  Schedule(const Options& options, const std::vector<Case>& cases) : options_(options), cases_(cases) {}

  RunResults run() {
    if (!probe()) return std::move(results_);
    results_.verdicts.resize(cases_.size());
    cut();
    while (!waiting_.empty() || !running_.empty()) {
      if (out_of_time()) waiting_.clear();
      while (!waiting_.empty() && running_.size() < static_cast<std::size_t>(std::max(1, options_.jobs))) {
        const Chunk chunk = waiting_.front();
        waiting_.pop_front();
        if (chunk.begin <= last_of(chunk)) running_.emplace_back(options_, cases_, chunk, shuts_down_);
      }
      wait_for(running_);
      for (auto child = running_.begin(); child != running_.end();) {
        child->advance();
        // The rest of the group is skipped after the last death that it may have.
        const bool given_up = !child->over() && (child->next() > last_of(child->chunk()) || out_of_time());
        if (child->over() || given_up) conclude(*child, given_up);
        child = child->over() || given_up ? running_.erase(child) : std::next(child);
      }
      tell_progress();
    }
    finish();
    return std::move(results_);
  }

 private:
  struct Group {
    std::set<std::size_t> deaths;                  ///< cases that a process died in
    std::set<std::size_t> losses;                  ///< cases that left the device lost
    std::map<std::size_t, std::string> shutdowns;  ///< cases after which a process died while it shut down, with the cause
    /// The last case that is not skipped.
    std::size_t last() const { return std::min(nth(deaths, max_deaths_of_a_group), nth(losses, max_losses_of_a_group)); }
    bool gave_up_after_losses() const { return nth(losses, max_losses_of_a_group) < nth(deaths, max_deaths_of_a_group); }

   private:
    static std::size_t nth(const std::set<std::size_t>& cases, std::size_t n) {
      return cases.size() < n ? ~std::size_t{0} : *std::next(cases.begin(), static_cast<std::ptrdiff_t>(n) - 1);
    }
  };
  bool out_of_time() const {
    return options_.budget_s > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > options_.budget_s;
  }
  std::size_t last_of(Chunk chunk) { return groups_[cases_[chunk.begin].group].last(); }

  /// Loads the backend and shuts it down without a case: false if it cannot be loaded.
  bool probe() {
    std::list<Child> one;
    Child& child = one.emplace_back(options_, cases_, Chunk{}, true);
    while (!child.over()) {
      wait_for(one);
      child.advance();
    }
    if (!child.wrong_use().empty()) throw Error(Status::device_not_found, child.wrong_use());
    results_.backend = child.backend();
    results_.version = child.version();
    results_.device = child.device();
    if (!child.loaded()) {
      results_.load = {Class::fail, child.refusal().empty() ? "while the backend was loaded, " + child.fate() : child.refusal()};
      return false;
    }
    if (!child.ended()) {
      add_extra("core/lifecycle/shutdown", 0, "core/lifecycle/load", "loaded and shut down without a case: " + child.fate());
      shuts_down_ = false;  // once is enough
    }
    return true;
  }

  /// Makes chunks of consecutive cases of a group. A case that ends its process has its own chunk.
  void cut() {
    for (std::size_t begin = 0; begin < cases_.size();) {
      std::size_t end = begin + 1;
      const auto joins = [&](const Case& c) { return c.group == cases_[begin].group && c.ending == Ending::shut_down; };
      if (cases_[begin].ending == Ending::shut_down) {
        while (end < cases_.size() && end - begin < max_cases_of_a_process && joins(cases_[end])) ++end;
      }
      waiting_.push_back({begin, end});
      begin = end;
    }
    if (options_.budget_s == 0) return;
    // A run that may end early visits all groups before it returns to the first.
    std::map<std::string, std::size_t> chunks;
    std::map<std::size_t, std::size_t> round;  // of the chunk with this first case
    for (const Chunk& chunk : waiting_) round[chunk.begin] = chunks[cases_[chunk.begin].group]++;
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](const Chunk& a, const Chunk& b) { return round[a.begin] < round[b.begin]; });
  }

  void conclude(const Child& child, bool given_up) {
    if (!child.wrong_use().empty()) throw Error(Status::device_not_found, child.wrong_use());
    const Chunk chunk = child.chunk();
    Group& group = groups_[cases_[chunk.begin].group];
    std::move(child.verdicts().begin(), child.verdicts().end(), results_.verdicts.begin() + static_cast<std::ptrdiff_t>(chunk.begin));
    done_ += child.verdicts().size();
    if (given_up || child.ended()) return;
    const std::size_t next = child.next();
    if (child.device_lost()) {
      group.losses.insert(next - 1);
      if (next < chunk.end) waiting_.push_front({next, chunk.end});
    } else if (next < chunk.end) {
      const std::string fate = child.refusal().empty() ? child.fate() : child.refusal();
      results_.verdicts[next] = {Class::fail, child.loaded() ? fate : "while the backend was loaded again, " + fate};
      ++done_;
      group.deaths.insert(next);
      if (next + 1 < chunk.end) waiting_.push_front({next + 1, chunk.end});
    } else if (cases_[chunk.begin].ending == Ending::exits) {
      Verdict& verdict = results_.verdicts[chunk.begin];
      if (verdict.outcome == Class::pass && !child.exited_well())
        verdict = {Class::fail, "after exit(0) was called with everything open, " + child.fate()};
    } else {
      group.shutdowns.emplace(chunk.end - 1, child.fate());
    }
  }

  /// Adds the results of groups, and marks the cases that were skipped.
  void finish() {
    std::map<std::string, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < cases_.size(); ++i) members[cases_[i].group].push_back(i);
    for (const auto& [name, cases] : members) {
      const Group& group = groups_[name];
      const auto lost = std::upper_bound(cases.begin(), cases.end(), group.last());
      const std::string reason = group.gave_up_after_losses() ? fmt::format("{} cases had lost the device", max_losses_of_a_group)
                                                              : fmt::format("{} processes had died", max_deaths_of_a_group);
      for (auto i = lost; i != cases.end(); ++i) results_.verdicts[*i] = {Class::not_run, fmt::format("in group {} {}", name, reason)};
      if (lost != cases.end()) {
        add_extra(name + "/not_run", cases.back(), cases_[*lost].name,
                  fmt::format("{}, and the last {} cases of the group were not run", reason, cases.end() - lost));
      }
      // Only the first one is reported.
      if (!group.shutdowns.empty() && group.shutdowns.begin()->first <= group.last()) {
        const auto& [last, fate] = *group.shutdowns.begin();
        add_extra(name + "/shutdown", cases.back(), cases_[last].name, "after its last case, while it shut down, " + fate);
      }
    }
    for (Verdict& verdict : results_.verdicts) {
      if (verdict.outcome != Class::not_run || !verdict.text.empty()) continue;
      verdict.text = fmt::format("the time budget of {} s was used up", options_.budget_s);
      results_.complete = false;
    }
    std::stable_sort(results_.extras.begin(), results_.extras.end(), [](const auto& a, const auto& b) { return a.after < b.after; });
  }
  void add_extra(const std::string& name, std::size_t after, const std::string& filter, const std::string& text) {
    results_.extras.push_back({name, after, filter, {Class::fail, text}});
  }

  void tell_progress() {
    if (cases_.size() < 2 * max_cases_of_a_process || !platform::obeys_escape_sequences(stderr)) return;
    std::size_t done = done_;
    for (const Child& child : running_) done += child.verdicts().size();
    const std::size_t percent = waiting_.empty() && running_.empty() ? 100 : std::min<std::size_t>(99, 100 * done / cases_.size());
    if (percent == told_) return;
    told_ = percent;
    std::fputs(
        percent == 100 ? "\r                                \r" : fmt::format("\r{:3} % of {} cases", percent, cases_.size()).c_str(),
        stderr);
  }

  const Options& options_;
  const std::vector<Case>& cases_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  RunResults results_;
  std::deque<Chunk> waiting_;
  std::list<Child> running_;
  std::map<std::string, Group> groups_;
  bool shuts_down_ = true;
  std::size_t done_ = 0, told_ = 0;
};

}  // namespace

RunResults run_in_children(const Options& options, const std::vector<Case>& cases) {
  return Schedule(options, cases).run();
}

RunResults run_in_process(const Options& options, const std::vector<Case>& cases) {
  RunResults results;
  std::unique_ptr<BackendUnderTest> backend_under_test;
  try {
    backend_under_test = std::make_unique<BackendUnderTest>(options);
  } catch (const WrongUse& e) {
    throw Error(Status::device_not_found, e.what());
  } catch (const std::exception& e) {
    results.load = {Class::fail, e.what()};
    return results;
  }
  results.backend = backend_under_test->backend();
  results.version = backend_under_test->version();
  results.device = backend_under_test->device();
  for (const Case& test : cases) {
    results.verdicts.push_back(test.ending == Ending::exits ? Verdict{Class::not_run, "needs a process of its own: not with --in-process"}
                                                            : backend_under_test->run(test, options.seed));
  }
  return results;
}

}  // namespace tenon::conformance
