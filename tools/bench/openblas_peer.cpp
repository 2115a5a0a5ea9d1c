// SPDX-License-Identifier: Apache-2.0
#include "bench/openblas_peer.h"

#include <fmt/core.h>

#include "platform/library.h"
#include "text/counted.h"

namespace tenon::bench {
namespace {

// Debian's folders, by architecture.
#if defined(__x86_64__)
#define TENON_BENCH_LIBRARIES "/usr/lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TENON_BENCH_LIBRARIES "/usr/lib/aarch64-linux-gnu"
#else
#define TENON_BENCH_LIBRARIES "/usr/lib"
#endif
const char* const candidates[] = {TENON_BENCH_LIBRARIES "/openblas-pthread/libopenblas.so.0",
                                  TENON_BENCH_LIBRARIES "/openblas-serial/libopenblas.so.0"};

template <class Function>
bool find(void* library, const char* symbol, Function& out) {
  out = reinterpret_cast<Function>(platform::find_symbol(library, symbol));
  return out != nullptr;
}

template <class T, class Gemm>
void call(Gemm gemm, const ProductShape& s, const T* a, const T* b, T* c) {
  constexpr int row_major = 101, no_trans = 111, trans = 112;
  const int m = static_cast<int>(s.m), n = static_cast<int>(s.n), k = static_cast<int>(s.k);
  gemm(row_major, s.trans_a ? trans : no_trans, s.trans_b ? trans : no_trans, m, n, k, T(1), a, s.trans_a ? m : k, b, s.trans_b ? k : n,
       T(0), c, n);
}

}  // namespace

std::unique_ptr<OpenBlasPeer> OpenBlasPeer::open(int threads, std::string& out_absent) {
  std::unique_ptr<OpenBlasPeer> peer(new OpenBlasPeer);
  void* library = nullptr;
  const char* path = nullptr;
  for (const char* candidate : candidates) {
    std::string reason;
    library = platform::open_library(candidate, reason);
    path = candidate;
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    out_absent = fmt::format("no OpenBLAS to compare with: {} and {} not found (apt-get install libopenblas0-pthread)", candidates[0],
                             candidates[1]);
    return nullptr;
  }
  for (const char* needed : {"cblas_sgemm", "cblas_dgemm", "openblas_get_parallel", "openblas_set_num_threads", "openblas_get_num_threads",
                             "openblas_get_config"}) {
    if (platform::find_symbol(library, needed) != nullptr) continue;
    out_absent = fmt::format("{} is not OpenBLAS: it lacks {}", path, needed);
    return nullptr;
  }
  peer->library_ = library;
  peer->path_ = path;
  find(library, "cblas_sgemm", peer->sgemm_);
  find(library, "cblas_dgemm", peer->dgemm_);
  peer->set_threads(threads);
  return peer;
}

void* OpenBlasPeer::symbol(const std::string& name) const {
  return platform::find_symbol(library_, name.c_str());
}

void OpenBlasPeer::set_threads(int threads) {
  int (*is_parallel)() = nullptr;
  void (*set)(int) = nullptr;
  int (*get)() = nullptr;
  char* (*config)() = nullptr;
  find(library_, "openblas_get_parallel", is_parallel);
  find(library_, "openblas_set_num_threads", set);
  find(library_, "openblas_get_num_threads", get);
  find(library_, "openblas_get_config", config);
  if (is_parallel() != 0) {
    set(threads);
    threads_ = get();
  }
  name_ = fmt::format("{} ({}), {}", path_, config(), counted(threads_, "thread"));
}

void OpenBlasPeer::product(const ProductShape& shape, const float* a, const float* b, float* c) const {
  call(sgemm_, shape, a, b, c);
}
void OpenBlasPeer::product(const ProductShape& shape, const double* a, const double* b, double* c) const {
  call(dgemm_, shape, a, b, c);
}

}  // namespace tenon::bench
