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

namespace tenon::conformance {

/// What became of a case. "Not run" and "unsupported" are never a pass.
enum class Class { pass, fail, unsupported, excluded, not_run };
const char* name_of(Class value);

struct Result {
  std::string name;  ///< "softmax/f32(8,10)/axis=1/forward"
  Class outcome = Class::not_run;
  std::string op;     ///< the op's stem, the BLAS routine, or "core"
  std::string dtype;  ///< "f32"; empty where there is none
  std::string text;   ///< why it is not a pass: what was wanted, what was got, how to run it alone
  bool mandatory = true;
};

struct Report {
  std::string backend;  ///< its name
  std::string path;     ///< its file; empty for one registered in the process
  std::string version;
  std::string device;
  std::string profile;
  std::uint64_t seed = 0;
  std::vector<Result> results;

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
  std::filesystem::path vectors;            ///< profile onnx: the file that onnx/convert.py wrote
  std::string filter = "*";                 ///< glob (* and ?) over case names
  std::string room;                         ///< only cases of this room of ops.def or signature of blas.def; empty: all
  std::uint64_t seed = 1;
  std::string format = "text";  ///< text or json
  std::filesystem::path out;    ///< where the report goes; empty: standard output
  bool small = false;           ///< reduced sizes
  bool in_process = false;      ///< no child processes: a crash ends everything, a debugger sees it
  double timeout_s = 120;       ///< of one case in a child process
  /// Backends that are part of the process, by name; they come before files.
  std::vector<std::pair<std::string, tenon_backend_query_fn>> registered;
};

/// Runs the cases and returns what became of them.
/// Errors  tenon::Error for a backend or oracle that cannot be loaded, an unknown profile, a filter without cases.
Report judge(const Options& options);

/// judge(), then writes the report as options.format says. Returns Report::exit_code().
int run_conformance(const Options& options);

/// The report as text for people, or as JSON.
std::string to_text(const Report& report);
std::string to_json(const Report& report);

/// Every op of ops.def that has no case, and every op whose kernels on the oracle nothing foreign judges (neither golden vectors nor
/// finite differences), every routine of blas.def that has no case; each with its reason. Empty: the kit is complete.
std::vector<std::string> gaps();

}  // namespace tenon::conformance
