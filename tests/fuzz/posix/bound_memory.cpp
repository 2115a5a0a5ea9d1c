// SPDX-License-Identifier: Apache-2.0
#include "bound_memory.h"

#include <sys/resource.h>

namespace tenon::fuzz {

void bound_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(TENON_SANITIZED)
  const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace tenon::fuzz
