// SPDX-License-Identifier: Apache-2.0
// schedule.h - distributes cases to child processes, and handles groups whose processes die.
#pragma once

#include <string>
#include <vector>

#include "backend_under_test.h"

namespace tenon::conformance {

/// The maximum number of cases of a group per process: large enough that starting one and loading the backend cost little in comparison,
/// small enough to split large groups.
inline constexpr std::size_t max_cases_of_a_process = 600;
/// The number of processes of a group that may die before the rest of the group is skipped: a backend that always hangs takes this many
inline constexpr std::size_t max_deaths_of_a_group = 3;
/// The number of times that a group may lose its device, each of which takes a new process, before the rest of the group is skipped.
inline constexpr std::size_t max_losses_of_a_group = 20;

/// The results of all cases.
struct RunResults {
  /// A result that belongs to no case: the end of a process, the rest of a group.
  struct Extra {
    std::string name;
    std::size_t after;   ///< index of the case that it follows in the report
    std::string filter;  ///< the case that reproduces it
    Verdict verdict;
  };
  std::string backend, version, device;  ///< empty if it could not be loaded
  std::vector<Verdict> verdicts;         ///< per case; none if it could not be loaded
  std::vector<Extra> extras;             ///< sorted by `after`
  Verdict load;                          ///< why it could not be loaded
  bool complete = true;                  ///< false: options.budget_s was used up before all cases had run
};

/// Runs the cases in child processes, options.jobs at a time. The results do not depend on that number.
/// Errors  tenon::Error for a backend or oracle that cannot be used.
RunResults run_in_children(const Options& options, const std::vector<Case>& cases);

/// Runs the cases in this process.
RunResults run_in_process(const Options& options, const std::vector<Case>& cases);

}  // namespace tenon::conformance
