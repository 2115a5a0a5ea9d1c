// conformance.h - the proof, as the command line and the tests start it.
//
//   Options options;
//   options.backend = "openblas";
//   return run_conformance(options);   // 0: nothing failed and nothing mandatory was missing
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

#include "facts.h"

namespace tenon::conformance {

/// What became of a case. "Not run" and "unsupported" are never a pass.
enum class Class { pass, fail, unsupported, excluded, not_run };
const char* name_of(Class value);

struct Result {
  std::string name;  ///< "softmax/f32(8,10)/axis=1/forward"
  Class outcome = Class::not_run;
  std::string op;     ///< the op's stem, the BLAS routine, or "core"
  std::string dtype;  ///< "f32"; empty where there is none
  std::string text;   ///< why it is not a pass: what was wanted, what was got. Of a pass: what it measured
  bool mandatory = true;
  Facts facts = {};
  std::string again = {};  ///< of a failure: the command that runs it alone
  double seconds = 0;      ///< what it took
};

struct Report {
  std::string backend;  ///< its name
  std::string path;     ///< its file; empty for one registered in the process
  std::string version;
  std::string device;
  std::string profile;
  std::uint64_t seed = 0;
  std::vector<Result> results;
  std::string filter = "*";
  std::string checksum;  ///< SHA-256 of the file; empty for one registered in the process
  std::string kit;       ///< the version of what judged
  std::string waivers;   ///< the conformance.yaml that was read; empty: none
  std::vector<std::pair<std::string, std::string>> knobs;
  double seconds = 0;  ///< from the first case to the last

  std::int64_t count(Class outcome) const;
  /// 0 only if there were results, none failed and none that is mandatory was unsupported.
  int exit_code() const;
};

struct Options {
  std::string backend = "openblas";         ///< a name in backend_directory
  std::filesystem::path plugin;             ///< a file; takes the place of `backend`
  std::filesystem::path backend_directory;  ///< also where the oracle is; empty: beside `plugin`
  std::string oracle = "reference";         ///< name of the backend that is right
  std::string profile = "full";             ///< core, ops, training, blas, onnx or full (all, onnx where vectors are given)
  std::filesystem::path models;             ///< profile training: the folder of model definitions
  bool models_named = false;                ///< by the user: commands that run a case again name it too
  std::filesystem::path vectors;            ///< profile onnx: the file that onnx/convert.py wrote
  std::string filter = "*";                 ///< glob (* and ?) over case names
  std::string room;                         ///< only cases of this room of ops.def or signature of blas.def; empty: all
  std::uint64_t seed = 1;
  std::string format = "text";    ///< text, json, junit or html
  std::filesystem::path out;      ///< where the report goes; empty: standard output
  std::filesystem::path waivers;  ///< empty: <stem>.conformance.yaml beside the backend's file, else conformance.yaml there
  /// What the host answers to the backend's questions for its knobs; the others have their defaults.
  std::vector<std::pair<std::string, std::string>> knobs;
  bool small = false;       ///< reduced sizes
  bool in_process = false;  ///< no child processes: a crash ends everything, a debugger sees it
  int jobs = 1;             ///< child processes at a time; the report is the same
  double timeout_s = 120;   ///< of one case in a child process
  /// Backends that are part of the process, by name; they come before files.
  std::vector<std::pair<std::string, tenon_backend_query_fn>> registered;
};

/// Runs the cases and returns what became of them.
/// A backend that cannot be loaded has a failed result, core/lifecycle/load.
/// Errors  tenon::Error for a backend that is not there or has no device, an oracle that cannot be loaded, an unknown profile or knob, a
/// filter without cases.
Report judge(const Options& options);

/// judge(), then writes the report as options.format says. Returns Report::exit_code().
int run_conformance(const Options& options);

/// The names of the cases that judge() would run, in its order. Errors: an unknown profile, a filter without cases.
std::vector<std::string> case_names(const Options& options);

/// One line: who was judged, and how many cases came to what.
std::string summary(const Report& report);
/// The report for people: as text, as one page for a browser. For programs: JSON, JUnit's XML.
std::string to_text(const Report& report);
std::string to_html(const Report& report);
std::string to_json(const Report& report);
std::string to_junit(const Report& report);

/// Every op of ops.def that has no case, and every op whose kernels on the oracle nothing foreign judges (neither golden vectors nor
/// finite differences), every routine of blas.def that has no case; each with its reason. Empty: the kit is complete.
std::vector<std::string> gaps();

}  // namespace tenon::conformance
