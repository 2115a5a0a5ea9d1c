#include "report.h"

#include <cctype>
#include <cstdio>
#include <string>

#include <tenon/blas.h>

namespace tenon::shim {
namespace {

/// Without a destructor: calls may come when the thread has come to its end.
struct Failure {
  bool argument;  ///< one is wrong; else something else is
  int level;
  int position;  ///< in the Fortran interface; 0: layout
  char sentence[2048];
};
thread_local Failure kept{};

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

/// "lda is 3: wanted ..." from "gemv: argument 6, lda, is 3: wanted ...": numbers are the caller's to give.
std::string without_number(const blas::ArgumentError& error) {
  const std::string text = error.what(), name = std::string(" ") + error.argument() + ", ";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? text : std::string(error.argument()) + " " + text.substr(at + name.size());
}

void keep_sentence(const char* text) {
  std::snprintf(kept.sentence, sizeof kept.sentence, "%s", text);
}

/// What is no argument's fault goes to stderr at once: a program's own xerbla_ has no words for it.
void say(const char* name) {
  std::fprintf(stderr, "libtenon_blas: %s: %s\n", name, kept.sentence);
}

}  // namespace

void keep_failure() noexcept {
  kept.argument = false;
  try {
    throw;
  } catch (const blas::ArgumentError& error) {
    kept.argument = true;
    kept.level = level_of(error.routine());
    kept.position = error.position();
    try {
      keep_sentence(without_number(error).c_str());
    } catch (...) {  // no memory for it
      keep_sentence(error.what());
    }
  } catch (const std::exception& error) {
    keep_sentence(error.what());
  } catch (...) {
    keep_sentence("failed, and nothing says why");
  }
}

void Fortran::report(const char* name, bool) {
  char padded[] = "      ";
  for (int i = 0; i < 6 && name[i] != '\0'; ++i) padded[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[i])));
  if (!kept.argument) say(name);
  add_to_xerbla(kept.argument ? kept.sentence : nullptr);
  const int position = kept.argument ? kept.position : 0;
  xerbla_(padded, &position, 6);
  add_to_xerbla(nullptr);
}

void Cblas::report(const char* name, bool row_major) {
  if (!kept.argument) {
    say(name);
    return cblas_xerbla(0, name, "");
  }
  const int position = kept.level == 1 ? kept.position : kept.position + 1;  // layout comes first
  RowMajorStrg = row_major ? 1 : 0;
  cblas_xerbla(row_major ? exchanged(name, position) : position, name, "%s\n", kept.sentence);
  RowMajorStrg = 0;
}

}  // namespace tenon::shim
