// SPDX-License-Identifier: Apache-2.0
// Child processes: this program is its own child, which a variable of the environment tells what to do.
#include "platform/process.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "platform/library.h"
#include "platform/path.h"
#include "platform/system.h"
#include "sanitized.h"

using namespace tenon::platform;
using Output = ProcessOptions::Output;
using Kind = ProcessEnd::Kind;

namespace {

constexpr const char* task_variable = "TENON_TEST_CHILD_TASK";

int run_task(const std::string& task, const std::vector<std::string>& line) {
  const auto messages = MessageChannel::to_parent();
  if (task == "arguments") {
    for (std::size_t i = 1; i < line.size(); ++i) std::printf("[%s]", line[i].c_str());
    return 5;
  }
  if (task == "answer") {
    for (char text[64]; std::fgets(text, sizeof text, stdin) != nullptr;) {
      std::printf("<%s>", std::string(text, std::strcspn(text, "\r\n")).c_str());
      std::fflush(stdout);
    }
    return 0;
  }
  if (task == "no_channel") return messages ? 1 : 0;
  if (!messages) return 99;
  messages->send("started\n");
  if (task == "crash") {
    std::fputs("before the crash\n", stderr);
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  if (task == "hang") std::this_thread::sleep_for(std::chrono::seconds(60));
  if (task == "exit_now") exit_now(9);
  if (task == "parent") {
    ProcessOptions options;
    options.program = path_of(executable_path());
    options.environment = {{task_variable, "sleep"}};
    const Process child(options);
    messages->send("it sleeps\n");
    exit_now(0);
  }
  return 0;
}

/// Runs the task instead of the tests in a child. Before main, which belongs to the tests' library.
[[gnu::constructor]] void be_a_child(int argc, char** argv) {
  const auto task = environment_variable(task_variable);
  if (!task) return;
  if (*task == "sleep") {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    exit_now(0);
  }
  const int code = run_task(*task, command_line(argc, argv));
  std::fflush(stdout);
  exit_now(code);
}

ProcessOptions child(const std::string& task) {
  ProcessOptions options;
  options.program = path_of(executable_path());
  options.environment = {{task_variable, task}};
  options.output = Output::all;
  options.messages = true;
  options.own_group = true;
  return options;
}

struct Finished {
  ProcessEnd end;
  std::string messages, output;
  bool timed_out = false;
};

Finished finish(Process& process, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  Process* const processes[] = {&process};
  Finished finished;
  for (bool ended = false; !ended;) {
    ended = process.ended();
    finished.messages += process.read_messages();
    finished.output += process.read_output();
    if (!ended && !finished.timed_out && std::chrono::steady_clock::now() > deadline) {
      finished.timed_out = true;
      process.kill();
    }
    if (!ended) wait_for_any(processes, std::chrono::milliseconds(50));
  }
  finished.end = process.end();
  return finished;
}

Finished finish(const ProcessOptions& options, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  Process process(options);
  return finish(process, limit);
}

}  // namespace

TEST_CASE("process: a crash is told from an exit, with what was said and printed before") {
  const Finished finished = finish(child("crash"));
  CHECK(finished.messages == "started\n");
  CHECK(finished.output.find("before the crash") != std::string::npos);
  if (TENON_IS_SANITIZED) return;  // the sanitizer catches it and exits
  CHECK(finished.end.kind == Kind::crashed);
  CHECK((finished.end.cause == "signal 11" || finished.end.cause == "exception 0xc0000005"));
  CHECK_FALSE(finished.end.name.empty());
}

TEST_CASE("process: one that hangs is killed") {
  const Finished finished = finish(child("hang"), std::chrono::milliseconds(200));
  CHECK(finished.timed_out);
  CHECK(finished.messages == "started\n");
}

TEST_CASE("process: exit_now ends it with its code") {
  const Finished finished = finish(child("exit_now"));
  CHECK(finished.end.kind == Kind::exited);
  CHECK(finished.end.exit_code == 9);
}

TEST_CASE("process: arguments arrive as they are") {
  ProcessOptions options = child("arguments");
  options.messages = false;
  options.arguments = {"a b", "q\"uo\\\"te", "end\\", "end \\", "", "\u6f22 \u0431 \u00fc", "*"};
  const Finished finished = finish(options);
  CHECK(finished.output == "[a b][q\"uo\\\"te][end\\][end \\][][\u6f22 \u0431 \u00fc][*]");
  CHECK(finished.end.exit_code == 5);
}

TEST_CASE("process: a program without a channel has none") {
  ProcessOptions options = child("no_channel");
  options.messages = false;
  CHECK(finish(options).end.exit_code == 0);
}

TEST_CASE("process: a program answers what is written to it, until its input ends") {
  ProcessOptions options = child("answer");
  options.messages = false;
  options.input = true;
  options.output = Output::standard;
  Process process(options);
  Process* const processes[] = {&process};
  process.write("one\ntwo \u6f22\n");
  std::string answer;
  while (answer.find("<two \u6f22>") == std::string::npos && !process.ended()) {
    wait_for_any(processes, std::chrono::seconds(1));
    answer += process.read_output();
  }
  CHECK(answer == "<one><two \u6f22>");
  process.close_input();
  const Finished finished = finish(process);
  CHECK(finished.end.kind == Kind::exited);
  CHECK(finished.end.exit_code == 0);
  process.write("nobody reads this\n");
}

TEST_CASE("process: the descendants of a group end with it") {
  const Finished finished = finish(child("parent"));
  CHECK(finished.messages == "started\nit sleeps\n");
  CHECK(finished.end.exit_code == 0);
}

TEST_CASE("process: a program that does not exist is an error with the system's reason") {
  ProcessOptions options;
  options.program = "tenon-no-such-program";
  std::string reason;
  try {
    const Process process(options);
  } catch (const StartError& error) {
    reason = error.what();
    CHECK_FALSE(error.lacks_pipe);
  }
  CHECK_FALSE(reason.empty());
}

TEST_CASE("process: threads are counted where the system tells") {
  if (const auto count = thread_count()) CHECK(*count >= 1);
}

TEST_CASE("library: this program is the module of its own addresses") {
  static const int here = 0;
  CHECK(module_of(&here) == path_of(executable_path()));
  CHECK_FALSE(loaded_modules().empty());
}

TEST_CASE("library: one that cannot be opened has a reason") {
  std::string reason;
  CHECK(open_library(path_of(executable_path()).parent_path() / "no_such_library", reason) == nullptr);
  CHECK_FALSE(reason.empty());
}
