// loader/fence.h - calls into a plugin that has not earned trust yet: what it throws becomes a Refusal, what it does to the process is
// noted.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>

#include "loader/loader.h"
#include "loader/refusal.h"
#include "loader/self_check.h"

namespace tenon::loader {

enum class Threads { forbidden, allowed };

/// Notes in a record what the plugin changes between construction and destruction, and undoes it where that is possible.
class Watch {
 public:
  Watch(Record& record, const char* phase, Threads threads) : record_(record), phase_(phase), floating_point_(FloatingPoint::current()) {
    if (threads == Threads::forbidden) threads_ = count_threads();
  }
  ~Watch() {
    if (const auto change = FloatingPoint::current().change_since(floating_point_)) {
      floating_point_.restore();
      record_.warnings.push_back(fmt::format("{} {}; it has been restored", phase_, *change));
    }
    // Another thread of the process may have started one meanwhile: hence no refusal.
    if (const auto now = threads_ ? count_threads() : std::nullopt; now && *now > *threads_) {
      record_.warnings.push_back(fmt::format("{} seems to start threads: there were {}, there are {}", phase_, *threads_, *now));
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Record& record_;
  const char* phase_;
  FloatingPoint floating_point_;
  std::optional<int> threads_;
};

/// call(), watched. `phase` is the subject of sentences: "its query", "`create`".
template <class Call>
auto fenced(Record& record, const char* phase, Threads threads, Call&& call) {
  const Watch watch(record, phase, threads);
  const char* const report = "no exception may leave a plugin; report this to its vendor";
  try {
    return call();
  } catch (const Refusal&) {
    throw;
  } catch (const std::exception& thrown) {
    throw Refusal(TENON_INTERNAL, fmt::format("{} threw an exception: {}", phase, thrown.what()), report);
  } catch (...) {
    throw Refusal(TENON_INTERNAL, fmt::format("{} threw something that is no std::exception", phase), report);
  }
}

}  // namespace tenon::loader
