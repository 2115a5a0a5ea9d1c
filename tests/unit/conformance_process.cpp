// SPDX-License-Identifier: Apache-2.0
// The process state that the kit checks: every change of state that a backend must not touch is detected and named.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "conformance/process.h"

namespace tenon {
namespace {

using conformance::change_between;
using conformance::process_facet;

/// Nothing changes by itself; the facet reports `change` with this text, and reports its undoing as well.
void expect_seen(const char* facet, const std::string& words, const std::function<void()>& change, const std::function<void()>& undo) {
  const auto before = process_facet(facet).read();
  CHECK(change_between(before, process_facet(facet).read()) == "");
  change();
  const std::string seen = change_between(before, process_facet(facet).read());
  undo();
  CHECK_MESSAGE(seen.find(words) != std::string::npos, facet, ": ", seen);
  CHECK(change_between(before, process_facet(facet).read()) == "");
}

void ignore(int) {}

TEST_CASE("conformance: a changed floating-point environment is detected") {
  expect_seen(
      "floating_point", "the rounding mode was to nearest, is now downward", [] { std::fesetround(FE_DOWNWARD); },
      [] { std::fesetround(FE_TONEAREST); });
#if defined(__SSE2__)
  const unsigned control = __builtin_ia32_stmxcsr();
  expect_seen(
      "floating_point", "the result of the smallest normal number / 2 was a denormal, is now 0 (flush-to-zero)",
      [&] { __builtin_ia32_ldmxcsr(control | 0x8000); }, [&] { __builtin_ia32_ldmxcsr(control); });
  expect_seen(
      "floating_point", "(denormals-are-zero)", [&] { __builtin_ia32_ldmxcsr(control | 0x40); }, [&] { __builtin_ia32_ldmxcsr(control); });
#endif
}

TEST_CASE("conformance: a changed signal handler or mask is detected") {
  expect_seen(
      "signals", "the handler of SIGUSR2 was the default, is now a function at", [] { std::signal(SIGUSR2, ignore); },
      [] { std::signal(SIGUSR2, SIG_DFL); });
  expect_seen(
      "signals", "the handler of SIGUSR2 was the default, is now to ignore it", [] { std::signal(SIGUSR2, SIG_IGN); },
      [] { std::signal(SIGUSR2, SIG_DFL); });
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  expect_seen(
      "signals", "the thread's mask for SIGUSR2 was open, is now blocked", [&] { pthread_sigmask(SIG_BLOCK, &set, nullptr); },
      [&] { pthread_sigmask(SIG_UNBLOCK, &set, nullptr); });
}

TEST_CASE("conformance: a changed locale of the process or the thread is detected") {
  const std::string old = std::setlocale(LC_ALL, nullptr);
  expect_seen(
      "locale", "the locale was", [] { REQUIRE(std::setlocale(LC_ALL, "C.UTF-8") != nullptr); },
      [&] { std::setlocale(LC_ALL, old.c_str()); });
  const locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
  expect_seen(
      "locale", "the thread's own locale was none, is now set", [&] { uselocale(own); }, [] { uselocale(LC_GLOBAL_LOCALE); });
  freelocale(own);
}

TEST_CASE("conformance: a changed environment variable is detected") {
  expect_seen(
      "environment", "the environment variable TENON_TEST_OF_PROCESS is new: '1'", [] { setenv("TENON_TEST_OF_PROCESS", "1", 1); },
      [] { unsetenv("TENON_TEST_OF_PROCESS"); });
}

TEST_CASE("conformance: a changed CPU affinity is detected") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  if (CPU_COUNT(&all) < 2) return;  // no smaller set exists
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  expect_seen(
      "affinity", "the set of processors this thread may run on was", [&] { sched_setaffinity(0, sizeof one, &one); },
      [&] { sched_setaffinity(0, sizeof all, &all); });
}

TEST_CASE("conformance: a changed working directory, umask or limit is detected") {
  const auto here = std::filesystem::current_path();
  expect_seen(
      "files", "the working directory was", [] { std::filesystem::current_path("/"); }, [&] { std::filesystem::current_path(here); });
  const mode_t mask = umask(022);
  expect_seen(
      "files", "the umask was 0022, is now 0077", [] { umask(077); }, [] { umask(022); });
  umask(mask);
  struct rlimit files {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  struct rlimit fewer = files;
  --fewer.rlim_cur;
  expect_seen(
      "limits", "the limit of open files was", [&] { setrlimit(RLIMIT_NOFILE, &fewer); }, [&] { setrlimit(RLIMIT_NOFILE, &files); });
}

TEST_CASE("conformance: an open file and a running thread are detected") {
  int file = -1;
  expect_seen(
      "descriptors", "is new: '/dev/null'", [&] { file = open("/dev/null", O_RDONLY | O_CLOEXEC); }, [&] { close(file); });
  const auto before = process_facet("threads").read();
  std::promise<void> end;
  std::thread thread([wait = end.get_future().share()] { wait.wait(); });
  const std::string seen = change_between(before, process_facet("threads").read());
  end.set_value();
  thread.join();
  CHECK_MESSAGE(seen.find("is new") != std::string::npos, seen);
}

}  // namespace
}  // namespace tenon
