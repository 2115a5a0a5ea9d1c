// SPDX-License-Identifier: Apache-2.0
// lock.cpp - makes the serial OpenBLAS usable from several threads at once, and with little memory.
//
// Every product borrows a packing buffer from a table in OpenBLAS's memory.c. Debian builds the serial library without USE_LOCKING, so two
// threads that look for a free entry at the same moment take the same one, pack over each other and return garbage, a few times in a
// thousand products. And where the system refuses the memory of a new buffer, OpenBLAS asks again forever. The linker's --wrap (see
// FindOpenBLASSerial.cmake) sends the two functions that touch the table through here.
#include <cstddef>
#include <mutex>
#include <new>

#include "memory.h"

namespace {

constexpr std::size_t buffer_bytes = std::size_t{128} << 20;  ///< BUFFER_SIZE of the builds for x86-64; others have less

struct NoBuffer : std::bad_alloc {
  const char* what() const noexcept override {
    return "out of memory for a packing buffer of OpenBLAS: each thread needs 128 MiB of address space; raise the limit of the process "
           "(`ulimit -v`), use fewer threads, or the backend 'reference'";
  }
};

std::mutex table_mutex;
int in_use = 0;    ///< buffers that a product holds; guarded by table_mutex, like the next
int existing = 0;  ///< buffers that OpenBLAS has allocated and keeps

}  // namespace

extern "C" {
void* __real_blas_memory_alloc(int position);
void __real_blas_memory_free(void* buffer);
void* __wrap_blas_memory_alloc(int position);
void __wrap_blas_memory_free(void* buffer);

void* __wrap_blas_memory_alloc(int position) {
  const std::lock_guard lock(table_mutex);
  // The exception passes OpenBLAS's interface function, which holds nothing yet.
  if (in_use == existing && !tenon::openblas_serial::has_memory(buffer_bytes)) throw NoBuffer();
  void* const buffer = __real_blas_memory_alloc(position);
  if (++in_use > existing) existing = in_use;
  return buffer;
}

void __wrap_blas_memory_free(void* buffer) {
  const std::lock_guard lock(table_mutex);
  __real_blas_memory_free(buffer);
  --in_use;
}
}
