// SPDX-License-Identifier: Apache-2.0
// cublas_functions.h - the list of cuBLAS functions in use; the table in cublas.h, its loading and the emulated cuBLAS of the tests are
// generated from it.
//
//   FOUR(routine, S, D, C, Z)   a routine of blas.def with its functions for f32, f64, c64, c128
//   REAL(routine, S, D)         one for real numbers only
//   COMPLEX(routine, C, Z)      one for complex numbers only
//
// cublas_v2.h defines these names as macros for those of the library (cublasSaxpy_64 is cublasSaxpy_v2_64), so FOUR receives its arguments
// already expanded.
#pragma once

#include <cublas_v2.h>

#define TENON_CUBLAS_FOUR(FOUR, routine) \
  FOUR(routine, cublasS##routine##_64, cublasD##routine##_64, cublasC##routine##_64, cublasZ##routine##_64)
#define TENON_CUBLAS_REAL(REAL, routine) REAL(routine, cublasS##routine##_64, cublasD##routine##_64)
#define TENON_CUBLAS_COMPLEX(COMPLEX, routine) COMPLEX(routine, cublasC##routine##_64, cublasZ##routine##_64)

#define TENON_CUBLAS_ROUTINES(FOUR, REAL, COMPLEX)                                                                     \
  FOUR(rotg, cublasSrotg, cublasDrotg, cublasCrotg, cublasZrotg)                                                       \
  REAL(rotmg, cublasSrotmg, cublasDrotmg)                                                                              \
  TENON_CUBLAS_FOUR(FOUR, rot)                                                                                         \
  TENON_CUBLAS_REAL(REAL, rotm)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, swap)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, scal)                                                                                        \
  COMPLEX(rscal, cublasCsscal_64, cublasZdscal_64)                                                                     \
  TENON_CUBLAS_FOUR(FOUR, copy)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, axpy)                                                                                        \
  TENON_CUBLAS_REAL(REAL, dot)                                                                                         \
  TENON_CUBLAS_COMPLEX(COMPLEX, dotu)                                                                                  \
  TENON_CUBLAS_COMPLEX(COMPLEX, dotc)                                                                                  \
  FOUR(asum, cublasSasum_64, cublasDasum_64, cublasScasum_64, cublasDzasum_64)                                         \
  FOUR(iamax, cublasIsamax_64, cublasIdamax_64, cublasIcamax_64, cublasIzamax_64)                                      \
  FOUR(iamin, cublasIsamin_64, cublasIdamin_64, cublasIcamin_64, cublasIzamin_64)                                      \
  TENON_CUBLAS_FOUR(FOUR, gemv)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, gbmv)                                                                                        \
  TENON_CUBLAS_REAL(REAL, symv)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, hemv)                                                                                  \
  TENON_CUBLAS_REAL(REAL, sbmv)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, hbmv)                                                                                  \
  TENON_CUBLAS_REAL(REAL, spmv)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, hpmv)                                                                                  \
  TENON_CUBLAS_FOUR(FOUR, trmv)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, tbmv)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, tpmv)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, trsv)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, tbsv)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, tpsv)                                                                                        \
  TENON_CUBLAS_REAL(REAL, ger)                                                                                         \
  TENON_CUBLAS_COMPLEX(COMPLEX, geru)                                                                                  \
  TENON_CUBLAS_COMPLEX(COMPLEX, gerc)                                                                                  \
  TENON_CUBLAS_REAL(REAL, syr)                                                                                         \
  TENON_CUBLAS_COMPLEX(COMPLEX, her)                                                                                   \
  TENON_CUBLAS_REAL(REAL, spr)                                                                                         \
  TENON_CUBLAS_COMPLEX(COMPLEX, hpr)                                                                                   \
  TENON_CUBLAS_REAL(REAL, syr2)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, her2)                                                                                  \
  TENON_CUBLAS_REAL(REAL, spr2)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, hpr2)                                                                                  \
  TENON_CUBLAS_FOUR(FOUR, gemm)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, symm)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, hemm)                                                                                  \
  TENON_CUBLAS_FOUR(FOUR, syrk)                                                                                        \
  TENON_CUBLAS_COMPLEX(COMPLEX, herk)                                                                                  \
  TENON_CUBLAS_FOUR(FOUR, syr2k)                                                                                       \
  TENON_CUBLAS_COMPLEX(COMPLEX, her2k)                                                                                 \
  TENON_CUBLAS_FOUR(FOUR, trmm)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, trsm)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, geam)                                                                                        \
  TENON_CUBLAS_FOUR(FOUR, dgmm)                                                                                        \
  FOUR(gemm_batched, cublasSgemmBatched_64, cublasDgemmBatched_64, cublasCgemmBatched_64, cublasZgemmBatched_64)       \
  FOUR(gemm_strided_batched, cublasSgemmStridedBatched_64, cublasDgemmStridedBatched_64, cublasCgemmStridedBatched_64, \
       cublasZgemmStridedBatched_64)
