// SPDX-License-Identifier: Apache-2.0
// selection.h - the cases that a run of the kit consists of.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "case.h"
#include "conformance.h"

namespace tenon::conformance {

/// The descriptions of all ops, in the sizes of the effort. Threads  one.
const std::vector<OpCase>& op_cases();

/// The cases of a run, and the effort for them (set_effort). `ops`: only cases of these, in the same order; empty: of all.
/// Errors  tenon::Error for an unknown profile, a filter that matches no case.
std::vector<Case> cases_of(const Options& options, const std::set<std::string>& ops = {});

}  // namespace tenon::conformance
