/* SPDX-License-Identifier: Apache-2.0 */
/* far.c - the reference backend as a device whose memory the host cannot address. An address that it returns faults if the host accesses
 * it, and a host pointer passed as an address faults here. FAR_OF: the file of the reference backend. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <tenon/backend.h>

/* No address of a process has this bit set. */
#define DISTANCE ((uint64_t)1 << 62)
static uint64_t away(uint64_t address) {
  return address == 0 ? 0 : address ^ DISTANCE;
}

static tenon_status (*near_create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*);
static const tenon_backend_table* near_table;
static const tenon_blas_table* near_blas;
static tenon_backend_table far_table;

static tenon_status far_device_info(tenon_backend* backend, uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  const tenon_status status = near_table->device_info(backend, index, out_info, error);
  if (status == TENON_OK) out_info->flags &= ~(uint32_t)(TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS);
  return status;
}
static tenon_status far_memory_allocate(tenon_device* device, uint32_t kind, uint64_t size_bytes, tenon_memory** out_memory,
                                        uint64_t* out_address, tenon_error* error) {
  const tenon_status status = near_table->memory_allocate(device, kind, size_bytes, out_memory, out_address, error);
  if (status == TENON_OK && kind == TENON_MEMORY_DEVICE) *out_address = away(*out_address);
  return status;
}
static tenon_status far_copy(tenon_device* device, const tenon_copy* copy, tenon_stream* stream, tenon_error* error) {
  tenon_copy here = *copy;
  if (here.direction != TENON_COPY_DEVICE_TO_HOST) here.destination = away(here.destination);
  if (here.direction != TENON_COPY_HOST_TO_DEVICE) here.source = away(here.source);
  here.direction = TENON_COPY_DEVICE_TO_DEVICE;
  return near_table->copy(device, &here, stream, error);
}
static tenon_status far_fill(tenon_device* device, uint64_t address, uint64_t size_bytes, uint8_t value, tenon_stream* stream,
                             tenon_error* error) {
  return near_table->fill(device, away(address), size_bytes, value, stream, error);
}

/* Functions by signature class: their parameters, and the arguments for the reference backend. Scalars stay in host memory. */
#define HEAD device, stream, dtype
#define PARAMETERS_rotg uint64_t a, uint64_t b, uint64_t c, uint64_t s, uint32_t on_device
#define ARGUMENTS_rotg a, b, c, s, on_device
#define PARAMETERS_rotmg uint64_t d1, uint64_t d2, uint64_t x1, uint64_t y1, uint64_t param, uint32_t on_device
#define ARGUMENTS_rotmg d1, d2, x1, y1, param, on_device
#define PARAMETERS_rot int64_t n, uint64_t x, int64_t incx, uint64_t y, int64_t incy, const tenon_scalar *c, const tenon_scalar *s
#define ARGUMENTS_rot n, away(x), incx, away(y), incy, c, s
#define PARAMETERS_rotm int64_t n, uint64_t x, int64_t incx, uint64_t y, int64_t incy, const tenon_scalar *param
#define ARGUMENTS_rotm n, away(x), incx, away(y), incy, param
#define PARAMETERS_xy int64_t n, uint64_t x, int64_t incx, uint64_t y, int64_t incy
#define ARGUMENTS_xy n, away(x), incx, away(y), incy
#define PARAMETERS_scal int64_t n, const tenon_scalar *alpha, uint64_t x, int64_t incx
#define ARGUMENTS_scal n, alpha, away(x), incx
#define PARAMETERS_axpy int64_t n, const tenon_scalar *alpha, uint64_t x, int64_t incx, uint64_t y, int64_t incy
#define ARGUMENTS_axpy n, alpha, away(x), incx, away(y), incy
#define PARAMETERS_dot \
  int64_t n, const tenon_scalar *alpha, uint64_t x, int64_t incx, uint64_t y, int64_t incy, const tenon_scalar *out_result
#define ARGUMENTS_dot n, alpha, away(x), incx, away(y), incy, out_result
#define PARAMETERS_reduce int64_t n, uint64_t x, int64_t incx, const tenon_scalar *out_result
#define ARGUMENTS_reduce n, away(x), incx, out_result
#define PARAMETERS_gemv                                                                                                              \
  uint32_t layout, uint32_t trans, int64_t m, int64_t n, int64_t kl, int64_t ku, const tenon_scalar *alpha, uint64_t a, int64_t lda, \
      uint64_t x, int64_t incx, const tenon_scalar *beta, uint64_t y, int64_t incy
#define ARGUMENTS_gemv layout, trans, m, n, kl, ku, alpha, away(a), lda, away(x), incx, beta, away(y), incy
#define PARAMETERS_symv                                                                                                               \
  uint32_t layout, uint32_t uplo, int64_t n, int64_t k, const tenon_scalar *alpha, uint64_t a, int64_t lda, uint64_t x, int64_t incx, \
      const tenon_scalar *beta, uint64_t y, int64_t incy
#define ARGUMENTS_symv layout, uplo, n, k, alpha, away(a), lda, away(x), incx, beta, away(y), incy
#define PARAMETERS_trmv \
  uint32_t layout, uint32_t uplo, uint32_t trans, uint32_t diag, int64_t n, int64_t k, uint64_t a, int64_t lda, uint64_t x, int64_t incx
#define ARGUMENTS_trmv layout, uplo, trans, diag, n, k, away(a), lda, away(x), incx
#define PARAMETERS_ger                                                                                                              \
  uint32_t layout, int64_t m, int64_t n, const tenon_scalar *alpha, uint64_t x, int64_t incx, uint64_t y, int64_t incy, uint64_t a, \
      int64_t lda
#define ARGUMENTS_ger layout, m, n, alpha, away(x), incx, away(y), incy, away(a), lda
#define PARAMETERS_syr                                                                                                                  \
  uint32_t layout, uint32_t uplo, int64_t n, const tenon_scalar *alpha, uint64_t x, int64_t incx, uint64_t y, int64_t incy, uint64_t a, \
      int64_t lda
#define ARGUMENTS_syr layout, uplo, n, alpha, away(x), incx, away(y), incy, away(a), lda
#define PARAMETERS_gemm                                                                                                           \
  uint32_t layout, uint32_t uplo, uint32_t trans_a, uint32_t trans_b, int64_t m, int64_t n, int64_t k, const tenon_scalar *alpha, \
      uint64_t a, int64_t lda, uint64_t b, int64_t ldb, const tenon_scalar *beta, uint64_t c, int64_t ldc
#define ARGUMENTS_gemm layout, uplo, trans_a, trans_b, m, n, k, alpha, away(a), lda, away(b), ldb, beta, away(c), ldc
#define PARAMETERS_symm                                                                                                                \
  uint32_t layout, uint32_t side, uint32_t uplo, int64_t m, int64_t n, const tenon_scalar *alpha, uint64_t a, int64_t lda, uint64_t b, \
      int64_t ldb, const tenon_scalar *beta, uint64_t c, int64_t ldc
#define ARGUMENTS_symm layout, side, uplo, m, n, alpha, away(a), lda, away(b), ldb, beta, away(c), ldc
#define PARAMETERS_syrk                                                                                                                 \
  uint32_t layout, uint32_t uplo, uint32_t trans, int64_t n, int64_t k, const tenon_scalar *alpha, uint64_t a, int64_t lda, uint64_t b, \
      int64_t ldb, const tenon_scalar *beta, uint64_t c, int64_t ldc
#define ARGUMENTS_syrk layout, uplo, trans, n, k, alpha, away(a), lda, away(b), ldb, beta, away(c), ldc
#define PARAMETERS_trmm                                                                                                          \
  uint32_t layout, uint32_t side, uint32_t uplo, uint32_t trans, uint32_t diag, int64_t m, int64_t n, const tenon_scalar *alpha, \
      uint64_t a, int64_t lda, uint64_t b, int64_t ldb
#define ARGUMENTS_trmm layout, side, uplo, trans, diag, m, n, alpha, away(a), lda, away(b), ldb

/* The extensions are not offered: the drop-in BLAS has none of them. */
#define SLOT(routine, signature)                                                                    \
  static tenon_status slot_##routine(TENON_BLAS_HEAD, PARAMETERS_##signature, tenon_error* error) { \
    return near_blas->routine(HEAD, ARGUMENTS_##signature, error);                                  \
  }
#define SLOT_axpby(routine)
#define SLOT_geam(routine)
#define SLOT_dgmm(routine)
#define SLOT_gemm_batched(routine)
#define SLOT_gemm_strided_batched(routine)
#define SLOT_rotg(routine) SLOT(routine, rotg)
#define SLOT_rotmg(routine) SLOT(routine, rotmg)
#define SLOT_rot(routine) SLOT(routine, rot)
#define SLOT_rotm(routine) SLOT(routine, rotm)
#define SLOT_xy(routine) SLOT(routine, xy)
#define SLOT_scal(routine) SLOT(routine, scal)
#define SLOT_axpy(routine) SLOT(routine, axpy)
#define SLOT_dot(routine) SLOT(routine, dot)
#define SLOT_reduce(routine) SLOT(routine, reduce)
#define SLOT_gemv(routine) SLOT(routine, gemv)
#define SLOT_symv(routine) SLOT(routine, symv)
#define SLOT_trmv(routine) SLOT(routine, trmv)
#define SLOT_ger(routine) SLOT(routine, ger)
#define SLOT_syr(routine) SLOT(routine, syr)
#define SLOT_gemm(routine) SLOT(routine, gemm)
#define SLOT_symm(routine) SLOT(routine, symm)
#define SLOT_syrk(routine) SLOT(routine, syrk)
#define SLOT_trmm(routine) SLOT(routine, trmm)
#define TENON_BLAS(id, routine, level, signature, dtypes) SLOT_##signature(routine)
#include <tenon/blas.def>
#undef TENON_BLAS

#define slot_axpby NULL
#define slot_geam NULL
#define slot_dgmm NULL
#define slot_gemm_batched NULL
#define slot_gemm_strided_batched NULL
static const tenon_blas_table far_blas = {
    sizeof(tenon_blas_table),
    0,
#define TENON_BLAS(id, routine, level, signature, dtypes) slot_##routine,
#include <tenon/blas.def>
#undef TENON_BLAS
};

static tenon_status far_create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                               tenon_error* error) {
  const tenon_status status = near_create(host, out_backend, &near_table, error);
  if (status != TENON_OK) return status;
  near_blas = near_table->blas;
  far_table = *near_table;
  far_table.device_info = far_device_info;
  far_table.memory_allocate = far_memory_allocate;
  far_table.copy = far_copy;
  far_table.fill = far_fill;
  far_table.blas = &far_blas;
  *out_table = &far_table;
  return TENON_OK;
}

__attribute__((visibility("default"))) tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  void* const library = dlopen(FAR_OF, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return TENON_INTERNAL;
  tenon_status (*near_query)(const tenon_host_info*, tenon_backend_info*);
  *(void**)&near_query = dlsym(library, "tenon_backend_query");
  const tenon_status status = near_query(host, out_info);
  near_create = out_info->create;
  out_info->name = "far";
  out_info->create = far_create;
  return status;
}
