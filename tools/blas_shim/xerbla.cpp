// SPDX-License-Identifier: Apache-2.0
// The default xerbla_ and cblas_xerbla, in a file of their own: a compiler may assume that a function of the same file is the one that
// runs.
#include <algorithm>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "report.h"

int RowMajorStrg = 0;
int CBLAS_CallFromC = 0;

namespace tenon::shim {
namespace {

thread_local const char* detail = nullptr;

/// Two positions of a row-major CBLAS call that are exchanged in the Fortran call.
struct Exchange {
  const char* stem;
  int first, second;
};
constexpr Exchange exchanges[] = {
    {"gemv", 3, 4},                   // m, n
    {"gbmv", 3, 4}, {"gbmv", 5, 6},   // m, n; kl, ku
    {"ger", 2, 3},  {"ger", 6, 8},    // m, n; incx, incy
    {"her2", 6, 8}, {"hpr2", 6, 8},   // incx, incy
    {"gemm", 4, 5}, {"gemm", 9, 11},  // m, n; lda, ldb
    {"symm", 4, 5}, {"hemm", 4, 5},   // m, n
    {"trmm", 6, 7}, {"trsm", 6, 7},
};

}  // namespace

int exchanged(const char* name, int position) {
  if (std::strstr(name, "her2k") != nullptr) return position;
  for (const Exchange& pair : exchanges) {
    if (std::strstr(name, pair.stem) == nullptr) continue;
    if (position == pair.first) return pair.second;
    if (position == pair.second) return pair.first;
  }
  return position;
}

void set_xerbla_detail(const char* text) {
  detail = text;
}

}  // namespace tenon::shim

/// The default handler prints the error and returns.
void xerbla_(const char* name, const int* position, std::size_t name_length) {
  if (*position == 0) return;
  std::size_t length = 0;  // C callers may omit the length, so only printable characters count
  while (length < std::min<std::size_t>(name_length, 32) && std::isgraph(static_cast<unsigned char>(name[length])) != 0) ++length;
  std::fprintf(stderr, " ** On entry to %-6.*s parameter number %2d had an illegal value\n", static_cast<int>(length), name, *position);
  if (tenon::shim::detail != nullptr) std::fprintf(stderr, "    %s\n", tenon::shim::detail);
}

/// The default handler prints the error and returns.
void cblas_xerbla(int position, const char* name, const char* format, ...) {
  if (position == 0) return;
  if (RowMajorStrg != 0) position = tenon::shim::exchanged(name, position);
  std::fprintf(stderr, "Parameter %d to routine %s was incorrect\n", position, name);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
}
