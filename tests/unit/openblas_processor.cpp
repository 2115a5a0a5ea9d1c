// SPDX-License-Identifier: Apache-2.0
// Which kernels OpenBLAS uses on a processor that it does not know (tools/cmake/openblas_serial/processor.cpp). The functions of OpenBLAS
// are replaced: they recognise the processor, or do not.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace {

std::string recognised, user_choice, core;
int choices = 0;

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace

extern "C" {
char* __wrap_getenv(const char* name);
void __wrap_gotoblas_dynamic_init();
char* __real_getenv(const char* name);
void __real_gotoblas_dynamic_init();
void gotoblas_dynamic_quit();
char* openblas_get_corename();

char* __real_getenv(const char* name) {
  return std::string(name) == "OPENBLAS_CORETYPE" && !user_choice.empty() ? user_choice.data() : nullptr;
}
char* openblas_get_corename() {
  return core.data();
}
void gotoblas_dynamic_quit() {
  core.clear();
}
void __real_gotoblas_dynamic_init() {
  if (!core.empty()) return;
  ++choices;
  const char* const forced = __wrap_getenv("OPENBLAS_CORETYPE");
  core = forced == nullptr ? recognised : forced;
}
}

namespace {

std::string core_of(const char* by_itself, const char* by_user) {
  recognised = by_itself;
  user_choice = by_user;
  core.clear();
  choices = 0;
  __wrap_gotoblas_dynamic_init();
  return core;
}

}  // namespace

TEST_CASE("openblas: a processor that OpenBLAS recognises, or that the user names, keeps its kernels") {
  CHECK(core_of("Haswell", "") == "Haswell");
  CHECK(choices == 1);
  CHECK(core_of("Haswell", "Prescott") == "Prescott");
  CHECK(choices == 1);
  CHECK(__wrap_getenv("HOME") == nullptr);
}

TEST_CASE("openblas: a processor that OpenBLAS does not recognise gets kernels for its vectors") {
  const std::string chosen = core_of("Prescott", "");
  if (has_avx2()) {
    CHECK((chosen == "SkylakeX" || chosen == "Haswell"));
    CHECK(choices == 2);
  } else {
    CHECK(chosen == "Prescott");
  }
  CHECK(__wrap_getenv("HOME") == nullptr);
}
