// schedule.h - which process runs which cases, and what becomes of a group whose processes die.
#pragma once

#include <string>
#include <vector>

#include "rig.h"

namespace tenon::conformance {

/// Cases of one group that one process runs at most: so many that loading the backend costs little beside them, so few that large groups
/// are shared out.
inline constexpr std::size_t most_cases_of_a_process = 400;
/// Processes of a group that may die before the rest of the group is given up: a backend that always hangs takes this many timeouts.
inline constexpr std::size_t most_deaths_of_a_group = 3;

/// What came of all cases.
struct Course {
  /// A result that is no case's own: the end of a process, the rest of a group.
  struct Extra {
    std::string name;
    std::size_t behind;  ///< this case's result in the report
    std::string filter;  ///< the case that shows it again
    Verdict verdict;
  };
  std::string backend, version, device;  ///< empty if it could not be loaded
  std::vector<Verdict> verdicts;         ///< per case; none if it could not be loaded
  std::vector<Extra> extras;             ///< in the order of `behind`
  Verdict load;                          ///< why it could not be loaded
};

/// Runs them in child processes, options.jobs at a time. The same cases have the same results whatever that number is.
/// Errors  tenon::Error for what cannot be judged.
Course run_in_children(const Options& options, const std::vector<Case>& cases);

/// Runs them here and now.
Course run_in_process(const Options& options, const std::vector<Case>& cases);

}  // namespace tenon::conformance
