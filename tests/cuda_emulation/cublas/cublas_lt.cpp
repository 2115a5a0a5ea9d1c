// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as documented: D = epilogue(alpha op(A) op(B) + beta C), column-major, in stream order, by a plain loop in f64. The scales of
// FP8 are multiplied in f32, their dtype, in which their product may overflow.
//
// It is stricter than NVIDIA's: it rejects a bias in f64 and operands with less alignment than the algorithm was requested for. Of FP8 it
// has what the documentation lists for compute capabilities 8.9 and 9.0, with one scale for each factor.
#include <control.h>
#include <cublasLt.h>
#include <handle_memory.h>
#include <numbers.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace {

using tenon::emulation::load, tenon::emulation::rounded, tenon::emulation::store;

struct Layout {
  cudaDataType type;
  std::int64_t rows, columns, ld;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
};
struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  const float *a_scale = nullptr, *b_scale = nullptr;  ///< of FP8, in device memory; NULL: 1
  std::int8_t fast_accumulation = 0;
};
struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  ///< A to D
};
/// The properties of the problem that an algorithm was requested for.
struct Algorithm {
  std::uint32_t alignment[4];
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Layout& of(cublasLtMatrixLayout_t handle) {
  return *reinterpret_cast<Layout*>(handle);
}
Description& of(cublasLtMatmulDesc_t handle) {
  return *reinterpret_cast<Description*>(handle);
}
Preference& of(cublasLtMatmulPreference_t handle) {
  return *reinterpret_cast<Preference*>(handle);
}

template <class T>
cublasStatus_t assign(T& to, const void* from, std::size_t size_bytes) {
  if (size_bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, size_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// A factor rounded to the compute type.
double factor(cublasComputeType_t compute, double x) {
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return rounded(x, 10, -126);
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return rounded(x, 7, -126);
  return x;
}

bool is_fp8(cudaDataType type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/// The current device computes products of FP8.
bool has_fp8() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && 10 * major + minor >= 89;
}

/// Source  cuBLAS documentation, "cublasLtMatmul()": A is transposed, B is not; lines of A, B and D are multiples of 16; at most one factor
///         is E5M2; f32 is the type of sums, alpha and beta; the bias of results in f32 would be bf16, which is left out here.
bool is_fp8_described(const Description& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  constexpr std::int64_t multiple = 16;
  if (!is_fp8(a.type) || !is_fp8(b.type) || (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2)) return false;
  if (p.op_a != CUBLAS_OP_T || p.op_b != CUBLAS_OP_N || p.compute != CUBLAS_COMPUTE_32F || p.scale != CUDA_R_32F) return false;
  if (c.type != d.type || (d.type != CUDA_R_16BF && d.type != CUDA_R_16F && d.type != CUDA_R_32F)) return false;
  if (d.type == CUDA_R_32F && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
  if (a.rows % multiple != 0 || a.columns % multiple != 0 || d.rows % multiple != 0) return false;
  for (const Layout* x : {&a, &b, &c, &d}) {
    if (x->ld % multiple != 0 || x->batch_stride % multiple != 0) return false;
  }
  return has_fp8();
}

bool is_described(const Description& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const auto shape = [](const Layout& x, std::int32_t op) {
    return op == CUBLAS_OP_N ? std::pair(x.rows, x.columns) : std::pair(x.columns, x.rows);
  };
  const auto left = shape(a, p.op_a), right = shape(b, p.op_b);
  if (left.second != right.first || left.first != d.rows || right.second != d.columns || c.rows != d.rows || c.columns != d.columns)
    return false;
  if (left.second < 1 || d.rows < 1 || d.columns < 1) return false;  // empty problems are rejected
  const bool fp8 = is_fp8(a.type) || is_fp8(b.type);
  for (const Layout* x : {&a, &b, &c, &d}) {
    if (x->ld < x->rows || (!fp8 && x->type != a.type) || x->batch != d.batch) return false;
  }
  if (d.batch > 1 && d.batch_stride == 0) return false;
  if (fp8) return is_fp8_described(p, a, b, c, d);
  if (p.a_scale != nullptr || p.b_scale != nullptr) return false;
  if (a.type == CUDA_R_64F) return p.compute == CUBLAS_COMPUTE_64F && p.scale == CUDA_R_64F && p.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  if (p.scale != CUDA_R_32F) return false;
  return p.compute == CUBLAS_COMPUTE_32F ||
         (a.type == CUDA_R_32F && (p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || p.compute == CUBLAS_COMPUTE_32F_FAST_16BF));
}

bool is_aligned(const void* address, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  auto made = std::make_unique<tenon::emulation::HandleMemory>();
  if (!made->allocated()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cublasLtHandle_t>(made.release());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<tenon::emulation::HandleMemory*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute, cudaDataType_t scale) {
  *handle = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t size_bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(of(handle).op_a, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(of(handle).op_b, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(of(handle).epilogue, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(of(handle).bias, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return assign(of(handle).a_scale, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return assign(of(handle).b_scale, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return assign(of(handle).fast_accumulation, value, size_bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type, std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t ld) {
  *handle =
      reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t size_bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return assign(of(handle).batch, value, size_bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return assign(of(handle).batch_stride, value, size_bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  *handle = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t size_bytes) {
  Preference& preference = of(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(preference.workspace_bytes, value, size_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return assign(preference.reductions, value, size_bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(preference.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, size_bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int, cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  *count = 0;
  if (!is_described(of(product), of(a), of(b), of(c), of(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::uint32_t(&alignment)[4] = of(preference).alignment;
  const Algorithm algorithm{{alignment[0], alignment[1], alignment[2], alignment[3]}};
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const Description p = of(product);
  const Layout la = of(a_layout), lb = of(b_layout), lc = of(c_layout), ld = of(d_layout);
  if (!is_described(p, la, lb, lc, ld) || (workspace_bytes > 0 && !is_aligned(workspace, 256))) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm algorithm{};
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (!is_aligned(a, algorithm.alignment[0]) || !is_aligned(b, algorithm.alignment[1]) || !is_aligned(c, algorithm.alignment[2]) ||
      !is_aligned(d, algorithm.alignment[3])) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (is_fp8(la.type) && !(is_aligned(a, 16) && is_aligned(b, 16) && is_aligned(c, 16) && is_aligned(d, 16) && is_aligned(p.bias, 16))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const double of_product = load(p.scale, alpha, 0), of_c = load(p.scale, beta, 0);
  const std::int64_t depth = p.op_a == CUBLAS_OP_N ? la.columns : la.rows;
  const auto work = [=] {
    const float scales = (p.a_scale == nullptr ? 1.0F : *p.a_scale) * (p.b_scale == nullptr ? 1.0F : *p.b_scale);
    for (std::int64_t entry = 0; entry < ld.batch; ++entry) {
      for (std::int64_t j = 0; j < ld.columns; ++j) {
        for (std::int64_t i = 0; i < ld.rows; ++i) {
          double sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) {
            const std::int64_t at_a = entry * la.batch_stride + (p.op_a == CUBLAS_OP_N ? i + k * la.ld : k + i * la.ld);
            const std::int64_t at_b = entry * lb.batch_stride + (p.op_b == CUBLAS_OP_N ? k + j * lb.ld : j + k * lb.ld);
            sum += factor(p.compute, load(la.type, a, at_a)) * factor(p.compute, load(lb.type, b, at_b));
          }
          double value = of_product * double{scales} * sum;
          if (of_c != 0) value += of_c * load(lc.type, c, entry * lc.batch_stride + i + j * lc.ld);
          if ((p.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += load(ld.type, p.bias, i);
          if ((p.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && value <= 0) value = 0;
          store(ld.type, d, entry * ld.batch_stride + i + j * ld.ld, value);
        }
      }
    }
  };
  return tenon::emulation::enqueue(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
#pragma GCC visibility pop
