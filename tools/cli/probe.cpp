// SPDX-License-Identifier: Apache-2.0
#include "cli/probe.h"

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

#include "cli/backend_report.h"
#include "loader/error_text.h"

namespace tenon::cli {
namespace {

/// The current phase of the child. The child sends the parent lines: a letter when it enters a phase, and the record as JSON once known.
enum class Phase : char { querying = 'a', creating = 'c', opening = 'o', closing = 's', done = 'd' };

const char* describe(Phase phase) {
  switch (phase) {
    case Phase::querying:
      return "while loading the library and calling its tenon_backend_query";
    case Phase::creating:
      return "in its `create` or while listing its devices";
    case Phase::opening:
      return "while opening and closing its devices";
    case Phase::closing:
      return "during shutdown";
    case Phase::done:
      return "after shutdown";
  }
  return "";
}

void tell(int pipe, const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = write(pipe, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the parent no longer reads
    written += static_cast<std::size_t>(n);
  }
}
void tell(int pipe, Phase phase) {
  tell(pipe, std::string(1, static_cast<char>(phase)) + "\n");
}
void tell(int pipe, const loader::Record& record) {
  tell(pipe, to_json(record).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/// "NVIDIA H200, CUDA 12.4, cuBLAS 12.4.5, compute capability 9.0". Reports need the versions of the libraries in use.
std::string describe_device(const tenon_device_info& device) {
  std::string text;
  for (const char* part : {device.name, device.description}) {
    if (part != nullptr && *part != '\0') text += (text.empty() ? "" : ", ") + std::string(part);
  }
  if (device.compute_major != 0) text += fmt::format(", compute capability {}.{}", device.compute_major, device.compute_minor);
  return text;
}

/// Opens and closes every device. A device that fails to open is a warning; the backend stays healthy.
void try_devices(const loader::Backend& backend, loader::Record& record) {
  for (std::uint32_t i = 0; i < backend.devices().size(); ++i) {
    if (i < record.devices.size()) record.devices[i].description = describe_device(backend.devices()[i]);
    loader::ErrorText error;
    tenon_device* device = nullptr;
    const tenon_status status = backend.table().device_open(backend.handle(), i, &device, error);
    if (status == TENON_OK) {
      backend.table().device_close(device);
    } else {
      record.warnings.push_back(fmt::format("cannot open device {}:{}: {} ({})", backend.name(), i,
                                            error.text().empty() ? "no reason was given" : error.text(),
                                            name_of(static_cast<Status>(status))));
    }
  }
}

[[noreturn]] void run_child(int pipe, int output, const loader::Record& candidate, const Config& config) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  loader::Record record = candidate;
  try {
    tell(pipe, Phase::querying);
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

/// What the pipes of a child delivered.
struct Received {
  std::string messages;  ///< the lines of tell()
  std::string output;    ///< the end of what the plugin printed
};

/// Appends the available bytes. Returns false if the other end is closed.
bool receive(int pipe, std::string& text) {
  char buffer[4096];
  const ssize_t n = read(pipe, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  text.append(buffer, static_cast<std::size_t>(n));
  return true;
}

/// Reads until the child closes its end of `messages`. Returns false on timeout.
bool receive_all(int messages, int output, double timeout_seconds, Received& out_received) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  constexpr std::size_t max_output = 16384;
  pollfd waiting[] = {{messages, POLLIN, 0}, {output, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const int ready = poll(waiting, 2, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (waiting[1].revents != 0 && !receive(output, out_received.output)) waiting[1].fd = -1;
    if (out_received.output.size() > 2 * max_output) out_received.output.erase(0, out_received.output.size() - max_output);
    if (waiting[0].revents != 0 && !receive(messages, out_received.messages)) break;
  }
  // Output printed before the end is still in the pipe. Do not wait for a grandchild that holds it open.
  while (poll(&waiting[1], 1, 0) > 0 && receive(output, out_received.output)) continue;
  return true;
}

/// The last `count` lines of the text.
std::string last_lines(const std::string& text, int count) {
  std::size_t begin = text.find_last_not_of('\n');
  if (begin == std::string::npos) return {};
  const std::size_t end = begin + 1;
  for (; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && --count == 0) break;
  }
  return text.substr(begin, end - begin);
}

/// The state that the messages of a child describe.
struct ChildState {
  Phase phase = Phase::querying;
  loader::Record record;
};

ChildState parse_messages(const std::string& text, const loader::Record& candidate) {
  ChildState state;
  state.record = candidate;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // an incomplete last line
    const std::string line = text.substr(begin, end - begin);
    if (line.size() == 1) {
      state.phase = static_cast<Phase>(line[0]);
    } else {
      const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
      if (json.is_object() && json.contains("stage")) state.record = record_from_json(json);  // otherwise the plugin wrote to the pipe
    }
    begin = end + 1;
  }
  return state;
}

loader::Record failed(const ChildState& state, const std::string& what, const std::string& remedy) {
  loader::Record record = state.record;
  if (state.phase == Phase::querying) record.reached = loader::Stage::found;
  if (state.phase == Phase::creating) record.reached = loader::Stage::self_check;
  record.healthy = false;
  record.status = TENON_INTERNAL;
  record.text = fmt::format("the plugin {} {}", what, describe(state.phase));
  record.remedy = remedy;
  return record;
}

}  // namespace

loader::Record probe(const loader::Record& candidate, const Config& config, double timeout_seconds) {
  int ends[2], output[2];
  if (pipe(ends) != 0) throw Error(Status::internal, fmt::format("doctor: cannot create a pipe: {}", std::strerror(errno)));
  if (pipe(output) != 0) {
    close(ends[0]);
    close(ends[1]);
    throw Error(Status::internal, fmt::format("doctor: cannot create a pipe: {}", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child < 0) {
    for (const int end : {ends[0], ends[1], output[0], output[1]}) close(end);
    throw Error(Status::internal, fmt::format("doctor: cannot create a child process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    close(ends[0]);
    close(output[0]);
    run_child(ends[1], output[1], candidate, config);
  }
  close(ends[1]);
  close(output[1]);
  Received received;
  const bool ended = receive_all(ends[0], output[0], timeout_seconds, received);
  close(ends[0]);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  close(output[0]);

  ChildState state = parse_messages(received.messages, candidate);
  state.record.output = last_lines(received.output, 20);
  const std::string avoid = fmt::format("exclude it with `backends: {{deny: [{}]}}`, and report this to its vendor", state.record.name);
  if (!ended) {
    return failed(state, fmt::format("did not return within {:g} s", timeout_seconds),
                  "if its device is slow to start, raise `tenon doctor --timeout`; otherwise " + avoid);
  }
  if (WIFSIGNALED(status))
    return failed(state, fmt::format("crashed (signal {}, {})", WTERMSIG(status), strsignal(WTERMSIG(status))), avoid);
  if (state.phase != Phase::done) return failed(state, fmt::format("exited the process (exit code {})", WEXITSTATUS(status)), avoid);
  return state.record;
}

}  // namespace tenon::cli
