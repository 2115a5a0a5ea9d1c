// SPDX-License-Identifier: Apache-2.0
// html_report.h - the parts of the page that are the same for every report.
#pragma once

namespace tenon::conformance::html_report {

extern const char* const style;
extern const char* const filters;  ///< elements that the script fills: choices, the list of cases
extern const char* const script;

}  // namespace tenon::conformance::html_report
