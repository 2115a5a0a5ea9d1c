// SPDX-License-Identifier: Apache-2.0
// Misuse of the process that the backend is loaded into.
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "mutant.h"
#include "system.h"

namespace tenon::mutants {
namespace {

void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
void ignore_signal(int) {}

void set_flush_to_zero() {
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
  std::uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control | (std::uint64_t{1} << 24)));
#endif
}

struct Misuse {
  Mutation mutation;
  Moment moment;
  void (*action)();
};
const Misuse misuses[] = {
    {Mutation::segfault_at_query, Moment::query, crash},
    {Mutation::segfault_at_create, Moment::create, crash},
    {Mutation::segfault_at_execute, Moment::execute, crash},
    {Mutation::segfault_at_shutdown, Moment::shutdown, crash},
    {Mutation::segfault_at_exit, Moment::create, [] { std::atexit(crash); }},
    {Mutation::hangs_at_create, Moment::create, hang},
    {Mutation::hangs_at_execute, Moment::execute, hang},
    {Mutation::exits_at_create, Moment::create, [] { std::exit(0); }},
    {Mutation::exits_at_execute, Moment::execute, [] { std::exit(0); }},
    {Mutation::aborts_at_query, Moment::query, [] { std::abort(); }},
    {Mutation::aborts_at_execute, Moment::execute, [] { std::abort(); }},
    {Mutation::throws_from_query, Moment::query, [] { throw std::logic_error("nobody expects this"); }},
    {Mutation::throws_from_create, Moment::create, [] { throw std::runtime_error("the vendor's library was not expected to fail"); }},
    {Mutation::throws_from_execute, Moment::execute, [] { throw std::runtime_error("the vendor's kernel was not expected to fail"); }},
    {Mutation::throws_an_integer, Moment::execute, [] { throw 42; }},
    {Mutation::changes_rounding, Moment::execute, [] { std::fesetround(FE_UPWARD); }},
    {Mutation::changes_rounding_at_create, Moment::create, [] { std::fesetround(FE_UPWARD); }},
    {Mutation::flush_to_zero, Moment::execute, set_flush_to_zero},
    {Mutation::changes_locale, Moment::create, change_locale},
    {Mutation::changes_environment, Moment::create, [] { set_variable("TENON_MUTANT_WAS_HERE", "1"); }},
    {Mutation::installs_signal_handler, Moment::create, [] { std::signal(SIGINT, ignore_signal); }},
    {Mutation::changes_umask, Moment::create, change_umask},
    {Mutation::lowers_limits, Moment::create, lower_file_limit},
    {Mutation::leaves_file_open, Moment::create, leave_file_open},
    {Mutation::changes_affinity, Moment::create, stay_on_one_processor},
    {Mutation::leaves_thread_behind, Moment::create, [] { std::thread(hang).detach(); }},
    {Mutation::prints_to_stdout, Moment::execute,
     [] {
       std::puts("kernel launched");
       std::fflush(stdout);
     }},
};

}  // namespace

void misbehave(Moment moment) {
  for (const Misuse& misuse : misuses) {
    if (misuse.mutation == mutation && misuse.moment == moment) misuse.action();
  }
}

}  // namespace tenon::mutants
