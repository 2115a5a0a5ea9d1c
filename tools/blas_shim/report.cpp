// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <cctype>
#include <cstdio>
#include <string>

#include <tenon/blas.h>

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

/// Prints an error that is not about an argument to stderr, because a program's own xerbla_ cannot report it.
void print_failure(const char* name) {
  std::fprintf(stderr, "libtenon_blas: %s: %s\n", name, saved.text);
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
  char padded[] = "      ";
  for (int i = 0; i < 6 && name[i] != '\0'; ++i) padded[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[i])));
  if (!saved.argument) print_failure(name);
  set_xerbla_detail(saved.argument ? saved.text : nullptr);
  const int position = saved.argument ? saved.position : 0;
  xerbla_(padded, &position, 6);
  set_xerbla_detail(nullptr);
}

void Cblas::report(const char* name, bool row_major) {
  if (!saved.argument) {
    print_failure(name);
    return cblas_xerbla(0, name, "");
  }
  const int position = saved.level == 1 ? saved.position : saved.position + 1;  // layout comes first
  RowMajorStrg = row_major ? 1 : 0;
  cblas_xerbla(row_major ? exchanged(name, position) : position, name, "%s\n", saved.text);
  RowMajorStrg = 0;
}

}  // namespace tenon::shim
