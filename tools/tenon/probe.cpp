#include "tenon/probe.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <tenon/error.h>

#include "tenon/backend_report.h"

namespace tenon::cli {
namespace {

/// What the child is doing. It tells the parent in lines: a single letter as it enters a phase, the record as JSON once it is known.
enum class Phase : char { asking = 'a', creating = 'c', opening = 'o', closing = 's', done = 'd' };

const char* deed(Phase phase) {
  switch (phase) {
    case Phase::asking:
      return "while the library was opened and its tenon_backend_query was asked";
    case Phase::creating:
      return "in its `create`, or while it named its devices";
    case Phase::opening:
      return "while its devices were opened and closed";
    case Phase::closing:
      return "while it was shut down";
    case Phase::done:
      return "after it was shut down";
  }
  return "";
}

void tell(int pipe, const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = write(pipe, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // nobody listens any more
    written += static_cast<std::size_t>(n);
  }
}
void tell(int pipe, Phase phase) {
  tell(pipe, std::string(1, static_cast<char>(phase)) + "\n");
}
void tell(int pipe, const loader::Record& record) {
  tell(pipe, to_json(record).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/// "NVIDIA H200, CUDA 12.4, cuBLAS 12.4.5, compute capability 9.0": a report wants the libraries that were found too.
std::string describe_device(const tenon_device_info& device) {
  std::string text;
  for (const char* part : {device.name, device.description}) {
    if (part != nullptr && *part != '\0') text += (text.empty() ? "" : ", ") + std::string(part);
  }
  if (device.compute_major != 0) text += fmt::format(", compute capability {}.{}", device.compute_major, device.compute_minor);
  return text;
}

/// A device that the backend names but that does not open leaves the backend healthy and the user a warning.
void try_devices(const loader::Backend& backend, loader::Record& record) {
  for (std::uint32_t i = 0; i < backend.devices().size(); ++i) {
    if (i < record.devices.size()) record.devices[i].description = describe_device(backend.devices()[i]);
    char text[1024] = "";
    tenon_error error{sizeof error, TENON_OK, TENON_NO_INDEX, sizeof text - 1, text};  // it ends, whatever is written
    tenon_device* device = nullptr;
    const tenon_status status = backend.table().device_open(backend.handle(), i, &device, &error);
    if (status == TENON_OK) {
      backend.table().device_close(device);
    } else {
      record.warnings.push_back(fmt::format("device {}:{} cannot be opened: {} ({})", backend.name(), i,
                                            *text != '\0' ? text : "no reason was given", name_of(static_cast<Status>(status))));
    }
  }
}

[[noreturn]] void run_child(int pipe, int output, const loader::Record& candidate, const Config& config) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  loader::Record record = candidate;
  try {
    tell(pipe, Phase::asking);
    loader::Options options = loader_options(config, {});
    options.places = {{candidate.path, candidate.origin}};
    LoadedBackends loaded = load_backends(config, std::move(options), [pipe] { tell(pipe, Phase::creating); });
    if (!loaded.result.records.empty()) record = loaded.result.records.front();
    tell(pipe, Phase::opening);
    for (const auto& backend : loaded.result.backends) try_devices(*backend, record);
    tell(pipe, record);
    tell(pipe, Phase::closing);
  } catch (const std::exception& e) {  // a mistake in the configuration
    record.status = TENON_INVALID_ARGUMENT;
    record.text = e.what();
    record.remedy = "correct the configuration";
    tell(pipe, record);
  }
  tell(pipe, Phase::done);
  _exit(0);
}

/// What came through the pipes of a child.
struct Heard {
  std::string told;    ///< its own lines
  std::string output;  ///< what the plugin printed: the end of it
};

/// Takes what is there. False: the other end is closed.
bool take(int pipe, std::string& text) {
  char buffer[4096];
  const ssize_t n = read(pipe, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  text.append(buffer, static_cast<std::size_t>(n));
  return true;
}

/// Reads until the child closes its end of `told`. False: time is up.
bool listen(int told, int output, double timeout_seconds, Heard& out_heard) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  constexpr std::size_t most_output = 16384;
  pollfd waiting[] = {{told, POLLIN, 0}, {output, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const int ready = poll(waiting, 2, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (waiting[1].revents != 0 && !take(output, out_heard.output)) waiting[1].fd = -1;
    if (out_heard.output.size() > 2 * most_output) out_heard.output.erase(0, out_heard.output.size() - most_output);
    if (waiting[0].revents != 0 && !take(told, out_heard.told)) break;
  }
  // What was printed before the end is in the pipe; a grandchild that holds it open is not waited for.
  while (poll(&waiting[1], 1, 0) > 0 && take(output, out_heard.output)) continue;
  return true;
}

/// The last lines of what was printed.
std::string last_lines(const std::string& text, int count) {
  std::size_t begin = text.find_last_not_of('\n');
  if (begin == std::string::npos) return {};
  const std::size_t end = begin + 1;
  for (; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && --count == 0) break;
  }
  return text.substr(begin, end - begin);
}

struct Told {
  Phase phase = Phase::asking;
  loader::Record record;
};

Told understand(const std::string& text, const loader::Record& candidate) {
  Told told;
  told.record = candidate;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // cut off in the middle of a line
    const std::string line = text.substr(begin, end - begin);
    if (line.size() == 1) {
      told.phase = static_cast<Phase>(line[0]);
    } else {
      const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
      if (json.is_object() && json.contains("stage")) told.record = record_from_json(json);  // else the plugin has written into the pipe
    }
    begin = end + 1;
  }
  return told;
}

loader::Record failed(const Told& told, const std::string& what, const std::string& remedy) {
  loader::Record record = told.record;
  if (told.phase == Phase::asking) record.reached = loader::Stage::found;
  if (told.phase == Phase::creating) record.reached = loader::Stage::self_check;
  record.healthy = false;
  record.status = TENON_INTERNAL;
  record.text = fmt::format("the plugin {} {}", what, deed(told.phase));
  record.remedy = remedy;
  return record;
}

}  // namespace

loader::Record probe(const loader::Record& candidate, const Config& config, double timeout_seconds) {
  int ends[2], output[2];
  if (pipe(ends) != 0) throw Error(Status::internal, fmt::format("doctor: no pipe for a child process: {}", std::strerror(errno)));
  if (pipe(output) != 0) {
    close(ends[0]);
    close(ends[1]);
    throw Error(Status::internal, fmt::format("doctor: no pipe for a child process: {}", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child < 0) {
    for (const int end : {ends[0], ends[1], output[0], output[1]}) close(end);
    throw Error(Status::internal, fmt::format("doctor: no child process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    close(ends[0]);
    close(output[0]);
    run_child(ends[1], output[1], candidate, config);
  }
  close(ends[1]);
  close(output[1]);
  Heard heard;
  const bool ended = listen(ends[0], output[0], timeout_seconds, heard);
  close(ends[0]);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  close(output[0]);

  Told told = understand(heard.told, candidate);
  told.record.output = last_lines(heard.output, 20);
  const std::string avoid = fmt::format("keep it out with `backends: {{deny: [{}]}}`, and report this to its vendor", told.record.name);
  if (!ended) {
    return failed(told, fmt::format("did not return within {:g} s", timeout_seconds),
                  "if its device is only slow to start, give `tenon doctor --timeout` more seconds; else " + avoid);
  }
  if (WIFSIGNALED(status))
    return failed(told, fmt::format("crashed (signal {}, {})", WTERMSIG(status), strsignal(WTERMSIG(status))), avoid);
  if (told.phase != Phase::done) return failed(told, fmt::format("ended the process (exit code {})", WEXITSTATUS(status)), avoid);
  return told.record;
}

}  // namespace tenon::cli
