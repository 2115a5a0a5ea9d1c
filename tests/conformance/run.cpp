// Which cases run, where, and what becomes of them. Each group of cases has a child process of its own: a crash or a hang is one result.
#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include <tenon/error.h>
#include <tenon/sdk/kernel.h>

#include "blas.h"
#include "case.h"
#include "loader/find.h"
#include "waivers.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

/// The file (or query function) behind a name.
Source find_backend(const Options& options, const std::string& name) {
  for (const auto& [registered, query] : options.registered) {
    if (registered == name) return {{}, name, query};
  }
  const std::filesystem::path folder = options.backend_directory.empty() ? options.plugin.parent_path() : options.backend_directory;
  const std::filesystem::path file = std::filesystem::absolute(folder / fmt::format("libtenon_backend_{}.so", name));
  if (!std::filesystem::exists(file)) {
    throw Error(Status::device_not_found,
                fmt::format("conformance: no backend '{}': {} is not there; name a file with --plugin", name, file.string()));
  }
  return {file, name, nullptr};
}

Source under_test(const Options& options) {
  if (options.plugin.empty()) return find_backend(options, options.backend);
  if (!std::filesystem::exists(options.plugin)) {
    throw Error(Status::device_not_found, fmt::format("conformance: {} is not there", options.plugin.string()));
  }
  const std::filesystem::path file = std::filesystem::absolute(options.plugin);
  return {file, loader::backend_name_of(file).value_or(file.stem().string()), nullptr};
}

const std::vector<OpCase>& rooms() {
  // Cases point into it. Sizes are settled before the first call.
  static const std::vector<OpCase> cases = all_op_cases();
  return cases;
}

std::vector<Case> cases_of(const Options& options) {
  std::vector<Case> cases;
  const auto append = [&](std::vector<Case> more) { std::move(more.begin(), more.end(), std::back_inserter(cases)); };
  const std::string& profile = options.profile;
  if (profile != "core" && profile != "ops" && profile != "training" && profile != "blas" && profile != "onnx" && profile != "full") {
    throw Error(fmt::format("conformance: unknown profile '{}', wanted core, ops, training, blas, onnx or full", profile));
  }
  if (profile == "core" || profile == "full") append(core_case_list());
  if (profile == "ops" || profile == "full") append(op_case_list(rooms()));
  if (profile == "ops" || profile == "full") append(honesty_case_list());
  if (profile == "training" || profile == "full") append(training_case_list(options.models));
  if (profile == "blas" || profile == "full") append(blas_case_list());
  if (profile == "onnx" && options.vectors.empty()) throw Error("conformance: profile onnx wants --vectors FILE");
  if (!options.vectors.empty() && (profile == "onnx" || profile == "full")) append(onnx_case_list(options.vectors));
  const auto left_out = [&](const Case& c) {
    return !loader::matches_glob(options.filter, c.name) || (!options.room.empty() && options.room != c.group);
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), left_out), cases.end());
  if (cases.empty()) {
    throw Error(fmt::format("conformance: no case of profile {}{} matches '{}'", profile,
                            options.room.empty() ? "" : " and room " + options.room, options.filter));
  }
  return cases;
}

struct Verdict {
  Class outcome;
  std::string text;
};

/// A backend, and the oracle unless it is one itself.
struct Rig {
  explicit Rig(const Options& options) : device(std::make_unique<Device>(under_test(options))) {
    if (!device->is_oracle()) oracle = std::make_unique<Device>(find_backend(options, options.oracle));
  }
  Verdict run(const Case& test, std::uint64_t seed) const {
    Kit kit(*device, oracle.get(), seed);
    try {
      test.run(kit);
      return {Class::pass, {}};
    } catch (const Failure& e) {
      return {Class::fail, e.what()};
    } catch (const Unsupported& e) {
      return {Class::unsupported, e.what()};
    } catch (const NotRun& e) {
      return {Class::not_run, e.what()};
    } catch (const std::exception& e) {
      return {Class::fail, e.what()};
    }
  }
  json info() const {
    return {{"backend", device->backend().name()},
            {"version", device->info().version},
            {"device", fmt::format("{}:0 ({})", device->backend().name(), device->device_info().name)}};
  }
  std::unique_ptr<Device> device, oracle;
};

/// Collects verdicts on the parent's side.
class Collector {
 public:
  Collector(const Options& options, const std::vector<Case>& cases, Report& report) : options_(options), cases_(cases), report_(report) {
    const Source source = under_test(options);
    report.backend = source.name;
    report.path = source.file.string();
    if (!source.file.empty()) {
      std::filesystem::path file = source.file;
      file.replace_extension(".conformance.yaml");
      waivers_ = Waivers::read(file);
    }
  }
  void info(const json& from) {
    report_.backend = from.at("backend");
    report_.version = from.at("version");
    report_.device = from.at("device");
  }
  void add(std::size_t index, Verdict verdict) { add(cases_[index].name, cases_[index], std::move(verdict)); }
  void add(const std::string& name, const Case& test, Verdict verdict) {
    Result result{
        name,          verdict.outcome, test.op, test.dtype == TENON_DTYPE_NONE ? "" : sdk::name_of(test.dtype), std::move(verdict.text),
        test.mandatory};
    waivers_.apply(result);
    if (result.outcome == Class::fail) {
      const std::string which = options_.plugin.empty() ? "--backend " + options_.backend : "--plugin " + report_.path;
      result.text += fmt::format("; again: tenon conformance {} --profile {}{} --filter '{}' --seed {}", which, options_.profile,
                                 options_.vectors.empty() ? "" : " --vectors " + options_.vectors.string(), name, report_.seed);
    }
    report_.results.push_back(std::move(result));
  }

 private:
  const Options& options_;
  const std::vector<Case>& cases_;
  Report& report_;
  Waivers waivers_;
};

void send(int pipe, const json& message) {
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n = write(pipe, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);  // the parent is gone
    sent += static_cast<std::size_t>(n);
  }
}

/// The child's side: loads the backend itself, since devices do not survive a fork.
[[noreturn]] void run_child(const Options& options, const std::vector<Case>& cases, std::size_t begin, std::size_t end, int pipe) {
  // A crash is to be the child's end, whatever handlers the parent has.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
  try {
    {
      const Rig rig(options);
      send(pipe, {{"info", rig.info()}});
      for (std::size_t i = begin; i < end; ++i) {
        send(pipe, {{"start", i}});
        const Verdict verdict = rig.run(cases[i], options.seed);
        send(pipe, {{"done", i}, {"class", static_cast<int>(verdict.outcome)}, {"text", verdict.text}});
      }
    }
    send(pipe, {{"end", true}});
  } catch (const std::exception& e) {
    send(pipe, {{"error", e.what()}});
  }
  _exit(0);
}

std::string fate(int status, bool timed_out, double timeout_s) {
  if (timed_out) return fmt::format("no answer for {} s: the process was ended", timeout_s);
  if (WIFSIGNALED(status)) return fmt::format("the process died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("the process ended with exit code {}", WEXITSTATUS(status));
}

/// One child over cases [begin, end). Returns where to go on: `end`, or behind the case that ended the child.
std::size_t run_in_child(const Options& options, const std::vector<Case>& cases, std::size_t begin, std::size_t end, Collector& collector) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(Status::internal, fmt::format("conformance: pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(Status::internal, fmt::format("conformance: fork: {}", std::strerror(errno)));
  if (child == 0) {
    close(ends[0]);
    run_child(options, cases, begin, end, ends[1]);
  }
  close(ends[1]);

  std::string buffer, load_error;
  std::size_t next = begin;
  bool started = false, ended = false, timed_out = false;
  const auto handle = [&](const json& message) {
    if (message.contains("info")) collector.info(message["info"]);
    if (message.contains("error")) load_error = message["error"];
    if (message.contains("start")) started = true;
    if (message.contains("end")) ended = true;
    if (message.contains("done")) {
      collector.add(message["done"].get<std::size_t>(), {static_cast<Class>(message["class"].get<int>()), message["text"]});
      next = message["done"].get<std::size_t>() + 1;
      started = false;
    }
  };
  for (;;) {
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(options.timeout_s * 1000));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      timed_out = true;
      kill(child, SIGKILL);
      break;
    }
    char bytes[4096];
    const ssize_t n = read(ends[0], bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    buffer.append(bytes, static_cast<std::size_t>(n));
    for (std::size_t line; (line = buffer.find('\n')) != std::string::npos; buffer.erase(0, line + 1))
      handle(json::parse(buffer.substr(0, line)));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!load_error.empty()) throw Error(Status::device_not_found, load_error);
  if (ended) return end;
  if (next == end) {  // all cases have a verdict, and then the backend fell over
    const Case& last = cases[end - 1];
    collector.add(last.group + "/shutdown", last,
                  {Class::fail, "after its last case, while it shut down, " + fate(status, timed_out, options.timeout_s)});
    return end;
  }
  if (!started && next == begin) {
    throw Error(Status::internal, "conformance: while the backend was loaded, " + fate(status, timed_out, options.timeout_s));
  }
  collector.add(next, {Class::fail, fate(status, timed_out, options.timeout_s)});
  return next + 1;
}

}  // namespace

std::vector<std::string> gaps() {
  std::vector<std::string> result;
  std::set<tenon_op> with_case, judged;
  for (const OpCase& op_case : rooms()) {
    const OpLine& line = line_of(op_case.op);
    if (!with_case.insert(op_case.op).second) result.push_back(fmt::format("{}: two cases", line.stem));
    if (op_case.variants.empty()) result.push_back(fmt::format("{}: a case without variants", line.stem));
    for (const tenon_dtype dtype : dtypes_of(op_case)) {
      const bool any = std::any_of(op_case.golden.begin(), op_case.golden.end(), [&](const Golden& g) {
        return g.dtypes.empty() || std::find(g.dtypes.begin(), g.dtypes.end(), dtype) != g.dtypes.end();
      });
      if (any) judged.insert(op_case.op);
    }
    if (!op_case.gradient.empty()) judged.insert(op_case.op);
    judged.insert(op_case.gradient_ops.begin(), op_case.gradient_ops.end());
  }
  for (const OpLine& line : op_lines()) {
    if (with_case.count(line.op) == 0) {
      result.push_back(fmt::format("{}: no case in tests/conformance/ops/{}.cpp", line.stem, line.room));
    } else if (judged.count(line.op) == 0) {
      result.push_back(fmt::format("{}: neither golden vectors nor finite differences judge the oracle", line.stem));
    }
  }
  std::set<std::string> names;
  std::vector<Case> cases = op_case_list(rooms()), routines = blas_case_list();
  std::move(routines.begin(), routines.end(), std::back_inserter(cases));
  for (const Case& c : cases) {
    if (!names.insert(c.name).second) result.push_back(fmt::format("{}: two cases of that name", c.name));
  }
  for (std::string& gap : blas::gaps()) result.push_back(std::move(gap));
  for (std::string& gap : slot_gaps()) result.push_back(std::move(gap));
  return result;
}

Report judge(const Options& options) {
  set_small_sizes(options.small);
  const std::vector<std::string> missing = gaps();
  if (!missing.empty())
    throw Error(Status::internal, "conformance: the kit is not complete: " + fmt::format("{}", fmt::join(missing, "; ")));
  const std::vector<Case> cases = cases_of(options);
  Report report;
  report.seed = options.seed;
  report.profile = options.profile;
  Collector collector(options, cases, report);
  if (options.in_process) {
    const Rig rig(options);
    collector.info(rig.info());
    for (std::size_t i = 0; i < cases.size(); ++i) collector.add(i, rig.run(cases[i], options.seed));
    return report;
  }
  for (std::size_t begin = 0; begin < cases.size();) {
    std::size_t end = begin;
    while (end < cases.size() && cases[end].group == cases[begin].group) ++end;
    begin = run_in_child(options, cases, begin, end, collector);
  }
  return report;
}

int run_conformance(const Options& options) {
  if (options.format != "text" && options.format != "json")
    throw Error(fmt::format("conformance: unknown format '{}', wanted text or json", options.format));
  const Report report = judge(options);
  const std::string text = options.format == "json" ? to_json(report) : to_text(report);
  if (options.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    std::ofstream file(options.out);
    file << text;
    file.close();
    if (!file) throw Error(fmt::format("conformance: {} cannot be written", options.out.string()));
  }
  return report.exit_code();
}

}  // namespace tenon::conformance
