#include "blas/check.h"

namespace tenon::blas {

void refuse(Routine routine, const char* argument, std::int64_t got, const std::string& expected) {
  throw ArgumentError(routine, argument, "is " + std::to_string(got) + ": expected " + expected);
}

void refuse_null(Routine routine, const char* argument) {
  throw ArgumentError(routine, argument, "is NULL: expected the address of memory that is read or written");
}

}  // namespace tenon::blas
