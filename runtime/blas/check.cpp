#include "blas/check.h"

namespace tenon::blas {

void refuse(Routine routine, const char* argument, std::int64_t got, const std::string& wanted) {
  throw ArgumentError(routine, argument, "is " + std::to_string(got) + ": wanted " + wanted);
}

void refuse_null(Routine routine, const char* argument) {
  throw ArgumentError(routine, argument, "is NULL: wanted the address of what is read or written there");
}

}  // namespace tenon::blas
