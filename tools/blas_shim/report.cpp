// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tenon/blas.h>

#include "place.h"

namespace tenon::shim {
namespace {

/// Has no destructor, because calls may come after the end of the thread.
struct Failure {
  bool argument;  ///< true if an argument is invalid
  int level;
  int position;  ///< in the Fortran interface; 0: layout
  char text[2048];
};
thread_local Failure saved{};

int level_of(blas::Routine routine) {
  switch (routine) {
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  case blas::Routine::routine:                            \
    return level;
#include <tenon/blas.def>
#undef TENON_BLAS
  }
  return 0;
}

/// "lda is 3: expected ..." from "gemv: argument 6, lda, is 3: expected ...": the caller prints the position.
std::string without_position(const blas::ArgumentError& error) {
  const std::string text = error.what(), name = std::string(" ") + error.argument() + ", ";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? text : std::string(error.argument()) + " " + text.substr(at + name.size());
}

void save_text(const char* text) {
  std::snprintf(saved.text, sizeof saved.text, "%s", text);
}

/// Ends the program after an error that is not about an argument. The BLAS has no way to report one, and a program that went on would use a
/// result that nobody wrote.
[[noreturn]] void end_program(const char* name) {
  std::fprintf(
      stderr,
      "libtenon_blas: %s: %s\nlibtenon_blas: the result cannot be computed: the program is aborted. If the device is missing, %s=reference "
      "computes on the reference backend instead\n",
      name, saved.text, fallback_variable);
  std::abort();
}

}  // namespace

void keep_failure() noexcept {
  saved.argument = false;
  try {
    throw;
  } catch (const blas::ArgumentError& error) {
    saved.argument = true;
    saved.level = level_of(error.routine());
    saved.position = error.position();
    try {
      save_text(without_position(error).c_str());
    } catch (...) {  // out of memory
      save_text(error.what());
    }
  } catch (const std::exception& error) {
    save_text(error.what());
  } catch (...) {
    save_text("unknown error");
  }
}

void Fortran::report(const char* name, bool) {
  if (!saved.argument) end_program(name);
  char padded[] = "      ";
  for (int i = 0; i < 6 && name[i] != '\0'; ++i) padded[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[i])));
  set_xerbla_detail(saved.text);
  const int position = saved.position;
  xerbla_(padded, &position, 6);
  set_xerbla_detail(nullptr);
}

void Cblas::report(const char* name, bool row_major) {
  if (!saved.argument) end_program(name);
  const int position = saved.level == 1 ? saved.position : saved.position + 1;  // layout comes first
  RowMajorStrg = row_major ? 1 : 0;
  cblas_xerbla(row_major ? exchanged(name, position) : position, name, "%s\n", saved.text);
  RowMajorStrg = 0;
}

}  // namespace tenon::shim
