// SPDX-License-Identifier: Apache-2.0
// conformance.h - runs the conformance kit; the entry point of the command line and the tests.
//
//   Options options;
//   options.backend = "openblas";
//   return run_conformance(options);   // 0: no case failed and no mandatory case is unsupported
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

#include "facts.h"

namespace tenon::conformance {

/// The outcome of a case. "Not run" and "unsupported" never count as a pass.
enum class Class { pass, fail, unsupported, excluded, not_run };
const char* name_of(Class value);

struct Result {
  std::string name;  ///< "softmax/f32(8,10)/axis=1/forward"
  Class outcome = Class::not_run;
  std::string op;     ///< the op's stem, the BLAS routine, or "core"
  std::string dtype;  ///< "f32"; empty where there is none
  std::string text;   ///< why it is not a pass: what was expected, what was got. For a pass: what it measured
  bool mandatory = true;
  Facts facts = {};
  std::string again = {};  ///< for a failure: the command that reruns only this case
  double seconds = 0;      ///< duration
};

struct Report {
  std::string backend;  ///< name of the backend
  std::string path;     ///< file of the backend; empty if it is registered in the process
  std::string version;
  std::string device;
  std::string profile;
  std::uint64_t seed = 0;
  std::vector<Result> results;
  std::string filter = "*";
  std::string checksum;     ///< SHA-256 of the file; empty if the backend is registered in the process
  std::string kit_version;  ///< the version of the kit
  std::string waivers;      ///< the conformance.yaml that was read; empty if there was none
  std::vector<std::pair<std::string, std::string>> options;
  double seconds = 0;    ///< from the first case to the last
  bool complete = true;  ///< false: the time budget was used up before all cases had run

  std::int64_t count(Class outcome) const;
  /// 0 only if there are results, all cases had their turn, none failed and no mandatory one is unsupported.
  int exit_code() const;
};

struct Options {
  std::string backend = "openblas";         ///< a name in backend_directory
  std::filesystem::path plugin;             ///< a file, used instead of `backend`
  std::filesystem::path backend_directory;  ///< also where the oracle is; empty: the folder of `plugin`
  std::string oracle = "reference";         ///< name of the backend whose results are taken as correct
  std::string profile = "full";             ///< one of profiles(); full: all, onnx where its data is given; deep: full with more sizes
  std::filesystem::path models;             ///< profile training: the folder of model definitions
  bool models_named = false;                ///< the user named `models`, so commands that rerun a case name it too
  std::filesystem::path data;               ///< profile onnx: the folder of ONNX's tests
  std::string filter = "*";                 ///< glob (* and ?) over case names
  std::string family;                       ///< only cases of this op family of ops.def or signature of blas.def; empty: all
  std::uint64_t seed = 1;
  std::string format = "text";    ///< text, json, junit or html
  std::filesystem::path out;      ///< where the report goes; empty: standard output
  std::filesystem::path waivers;  ///< empty: <stem>.conformance.yaml next to the backend's file, else conformance.yaml there
  /// Values of backend options; the others have their defaults.
  std::vector<std::pair<std::string, std::string>> options;
  bool small = false;       ///< reduced sizes
  bool in_process = false;  ///< no child processes: a crash ends the run, and a debugger can see it
  int jobs = 1;             ///< number of concurrent child processes; does not affect the report
  double timeout_s = 120;   ///< of one case in a child process
  double budget_s = 0;      ///< of the run in child processes: cases that it does not reach are not run; 0: no limit
  /// Backends that are part of the process, by name; they take precedence over files.
  std::vector<std::pair<std::string, tenon_backend_query_fn>> registered;
};

/// The names of the profiles.
const std::vector<std::string>& profiles();

/// Runs the cases and returns their results.
/// A backend that cannot be loaded yields one failed result, core/lifecycle/load.
/// Errors  tenon::Error for a backend that does not exist or has no device, an oracle that cannot be loaded, an unknown profile or option,
/// a filter that matches no case.
Report judge(const Options& options);

/// Calls judge() and writes the report in options.format. Returns Report::exit_code().
int run_conformance(const Options& options);

/// The names of the cases that judge() would run, in its order. Errors: an unknown profile, a filter that matches no case.
std::vector<std::string> case_names(const Options& options);

/// One line: the backend, and the number of cases per outcome.
std::string summary(const Report& report);
/// The report as text, as an HTML page, as JSON and as JUnit XML.
std::string to_text(const Report& report);
std::string to_html(const Report& report);
std::string to_json(const Report& report);
std::string to_junit(const Report& report);

/// What the kit lacks, each with its reason: ops of ops.def and routines of blas.def without a case, and ops whose oracle kernels are
/// checked by nothing independent (neither golden vectors nor finite differences). Empty: the kit is complete.
std::vector<std::string> gaps();

}  // namespace tenon::conformance
