// SPDX-License-Identifier: Apache-2.0
// The child's side: loads the backend, runs its cases and tells the parent the verdicts, one line of JSON each.
#include "child_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include <tenon/error.h>

#include "backend_under_test.h"
#include "child_request.h"
#include "platform/process.h"
#include "selection.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

bool is_a_child = false;  ///< this process is one of the kit's children

/// The line to the parent.
class Messages {
 public:
  explicit Messages(platform::MessageChannel channel) : channel_(channel) {}
  void send(const json& message) const {
    // Otherwise the parent is gone, or the backend has closed a descriptor that it does not own.
    if (!channel_.send(message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n")) platform::exit_now(3);
  }
  void send(std::size_t index, const Verdict& verdict) const {
    json message{{"done", index}, {"class", static_cast<int>(verdict.outcome)}, {"text", verdict.text}, {"seconds", verdict.seconds}};
    for (const auto& [name, field] : fact_fields) {
      if (!(verdict.facts.*field).empty()) message["facts"][name] = verdict.facts.*field;
    }
    send(message);
  }

 private:
  platform::MessageChannel channel_;
};

/// The cases of the request, which the parent found in a list of all.
std::vector<Case> cases_for(const ChildRequest& request, const ChildProgram& program) {
  const std::size_t count = request.chunk.end - request.chunk.begin;
  if (count == 0) return {};
  std::vector<Case> cases;
  if (program.cases) cases = program.cases(request.options);
  if (cases.empty()) cases = cases_of(request.options, request.ops);
  const auto first = std::ranges::find(cases, request.first, &Case::name);
  if (static_cast<std::size_t>(cases.end() - first) < count || (first + static_cast<std::ptrdiff_t>(count) - 1)->name != request.last) {
    throw Error(fmt::format("conformance: the child process has no {} cases from '{}' to '{}'", count, request.first, request.last));
  }
  return {std::make_move_iterator(first), std::make_move_iterator(first + static_cast<std::ptrdiff_t>(count))};
}

/// Ends the process.
[[noreturn]] void work(const ChildRequest& request, const ChildProgram& program, const Messages& messages) {
  try {
    auto backend_under_test = std::make_unique<BackendUnderTest>(request.options);
    messages.send(
        {{"backend", backend_under_test->backend()}, {"version", backend_under_test->version()}, {"device", backend_under_test->device()}});
    const std::vector<Case> cases = cases_for(request, program);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Verdict verdict = backend_under_test->run(cases[i], request.options.seed);
      messages.send(request.chunk.begin + i, verdict);
      if (verdict.outcome == Class::fail && backend_under_test->device_lost()) {
        messages.send({{"device_lost", true}});
        platform::exit_now(0);  // all other cases would fail in this process
      }
      if (cases[i].ending == Ending::exits && verdict.outcome == Class::pass) {
        static_cast<void>(backend_under_test.release());  // everything stays open
        std::exit(0);
      }
    }
    if (request.shuts_down) {
      backend_under_test.reset();
    } else {
      static_cast<void>(backend_under_test.release());
    }
    messages.send({{"end", true}});
  } catch (const WrongUse& e) {
    messages.send({{"wrong_use", e.what()}});
  } catch (const std::exception& e) {
    messages.send({{"refusal", e.what()}});
  }
  platform::exit_now(0);
}

}  // namespace

std::optional<int> run_as_child(int argc, const char* const* argv, const ChildProgram& program) {
  if (argc != 3 || std::string_view(argv[1]) != child_verb) return std::nullopt;
  const auto channel = platform::MessageChannel::to_parent();
  if (!channel) {
    std::fprintf(stderr, "conformance: %s is for the conformance kit, which starts its child processes with it\n", child_verb);
    return 2;
  }
  is_a_child = true;
  for (const int signal : {SIGSEGV, SIGILL, SIGFPE, SIGABRT})
    std::signal(signal, SIG_DFL);  // a sanitizer's handler does not end the process
  ChildRequest request = child_request_from(argv[2]);
  request.options.registered = program.registered;
  work(request, program, Messages(*channel));
}

}  // namespace tenon::conformance

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// LeakSanitizer calls this at exit. Children end with everything open; the unit tests, which close everything, check for leaks.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return tenon::conformance::is_a_child ? 1 : 0;
}
#endif
#endif
