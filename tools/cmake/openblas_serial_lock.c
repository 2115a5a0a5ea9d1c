/* SPDX-License-Identifier: Apache-2.0 */
/* openblas_serial_lock.c - makes the serial OpenBLAS usable from several threads at once.
 *
 * Every product borrows a packing buffer from a table in OpenBLAS's memory.c. Debian builds the serial library without USE_LOCKING, so two
 * threads that look for a free entry at the same moment take the same one, pack over each other and return garbage, a few times in a
 * thousand products. The linker's --wrap (see FindOpenBLASSerial.cmake) sends the two functions that touch the table through here.
 */
#include <pthread.h>

void* __real_blas_memory_alloc(int position);
void __real_blas_memory_free(void* buffer);
void* __wrap_blas_memory_alloc(int position);
void __wrap_blas_memory_free(void* buffer);

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;

void* __wrap_blas_memory_alloc(int position) {
  pthread_mutex_lock(&table_mutex);
  void* buffer = __real_blas_memory_alloc(position);
  pthread_mutex_unlock(&table_mutex);
  return buffer;
}

void __wrap_blas_memory_free(void* buffer) {
  pthread_mutex_lock(&table_mutex);
  __real_blas_memory_free(buffer);
  pthread_mutex_unlock(&table_mutex);
}
