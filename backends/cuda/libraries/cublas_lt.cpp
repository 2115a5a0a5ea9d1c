// SPDX-License-Identifier: Apache-2.0
#include "libraries/cublas_lt.h"

#include "libraries/cublas.h"

namespace tenon::cuda {
namespace {

constexpr LibrarySpec spec{"cuBLASLt", "libcublasLt", CUBLAS_VER_MAJOR};

/// A cuBLASLt object with attributes.
template <class Handle, class Destroy, class Set>
class Described {
 public:
  Described(Device& device, Destroy destroy, Set set_attribute) : device_(device), destroy_(destroy), set_(set_attribute) {}
  ~Described() {
    if (handle != nullptr) destroy_(handle);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  template <class Attribute, class Value>
  void set(Attribute attribute, const Value& value) {
    check(device_, set_(handle, attribute, &value, sizeof value), "set an attribute");
  }
  Handle handle = nullptr;

 private:
  Device& device_;
  Destroy destroy_;
  Set set_;
};

}  // namespace

/// The cuBLASLt objects that describe a product.
struct LtDevice::Description {
  Described<cublasLtMatmulDesc_t, decltype(&::cublasLtMatmulDescDestroy), decltype(&::cublasLtMatmulDescSetAttribute)> product;
  Described<cublasLtMatrixLayout_t, decltype(&::cublasLtMatrixLayoutDestroy), decltype(&::cublasLtMatrixLayoutSetAttribute)> a, b, d;

  Description(Device& device, const CublasLt& lt, const LtProblem& p, const LtOperands& operands)
      : product(device, lt.cublasLtMatmulDescDestroy, lt.cublasLtMatmulDescSetAttribute),
        a(device, lt.cublasLtMatrixLayoutDestroy, lt.cublasLtMatrixLayoutSetAttribute),
        b(device, lt.cublasLtMatrixLayoutDestroy, lt.cublasLtMatrixLayoutSetAttribute),
        d(device, lt.cublasLtMatrixLayoutDestroy, lt.cublasLtMatrixLayoutSetAttribute) {
    const cudaDataType_t scale = p.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    check(device, lt.cublasLtMatmulDescCreate(&product.handle, p.compute, scale), "MatmulDescCreate");
    const auto op = [](bool transposed) -> std::int32_t { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    product.set(CUBLASLT_MATMUL_DESC_TRANSA, op(p.a.transposed));
    product.set(CUBLASLT_MATMUL_DESC_TRANSB, op(p.b.transposed));
    if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT) product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(p.epilogue));
    if (operands.bias != nullptr) product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    if (operands.a_scale != nullptr) {
      product.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(operands.a_scale));
      product.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(operands.b_scale));
      product.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{0});
    }
    const auto describe = [&](auto& layout, const LtProblem::Matrix& matrix, cudaDataType_t type) {
      check(device,
            lt.cublasLtMatrixLayoutCreate(&layout.handle, type, static_cast<std::uint64_t>(matrix.rows),
                                          static_cast<std::uint64_t>(matrix.columns), matrix.ld),
            "MatrixLayoutCreate");
      if (p.batch == 1) return;
      layout.set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, p.batch);
      layout.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
    };
    describe(a, p.a, p.type);
    describe(b, p.b, p.type);
    describe(d, p.d, p.result_type);
  }
};

CublasLt::CublasLt(const Search& search) : library(spec, search) {
  cublasLtGetProperty = library.function<decltype(cublasLtGetProperty)>("cublasLtGetProperty");
  int major = 0;
  cublasLtGetProperty(MAJOR_VERSION, &major);
  library.check_version(major);
#define TENON_FUNCTION(name) name = library.function<decltype(name)>(#name);
  TENON_CUBLAS_LT_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
}

const CublasLt& cublas_lt(const sdk::Host& host) {
  // Never destroyed: other threads may still use it when the process exits.
  static constinit std::mutex mutex;
  static constinit const CublasLt* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = new CublasLt(search_here(host.option("libraries")));
  return *opened;
}

LtDevice::LtDevice(Device& device) : device_(device), functions_(cublas_lt(device.host)) {
  device_.enter();
  const OutsideOfRecordings outside;
  check(device_, functions_.cublasLtCreate(&handle_), "LtCreate");
}

LtDevice::~LtDevice() {
  functions_.cublasLtDestroy(handle_);
}

LtDevice::Choice LtDevice::choice_of(const LtProblem& problem, const Description& described) {
  const std::lock_guard lock(mutex_);
  if (const auto found = choices_.find(problem); found != choices_.end()) return found->second;
  Described<cublasLtMatmulPreference_t, decltype(&::cublasLtMatmulPreferenceDestroy), decltype(&::cublasLtMatmulPreferenceSetAttribute)>
      preference(device_, functions_.cublasLtMatmulPreferenceDestroy, functions_.cublasLtMatmulPreferenceSetAttribute);
  check(device_, functions_.cublasLtMatmulPreferenceCreate(&preference.handle), "MatmulPreferenceCreate");
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(problem.workspace_bytes));
  // Partial sums are accumulated in the type they were computed in, in a fixed order.
  preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.a.alignment_bytes);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.b.alignment_bytes);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.d.alignment_bytes);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.d.alignment_bytes);
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  const cublasStatus_t status =
      functions_.cublasLtMatmulAlgoGetHeuristic(handle_, described.product.handle, described.a.handle, described.b.handle,
                                                described.d.handle, described.d.handle, preference.handle, 1, &best, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) check(device_, status, "MatmulAlgoGetHeuristic");
  return choices_[problem] = {status == CUBLAS_STATUS_SUCCESS && count > 0 && best.state == CUBLAS_STATUS_SUCCESS, best.algo};
}

bool LtDevice::can_multiply(const LtProblem& problem, const LtOperands& operands) {
  device_.enter();
  return choice_of(problem, Description(device_, functions_, problem, operands)).found;
}

bool LtDevice::multiply(Stream& stream, const LtProblem& problem, const LtOperands& operands, double alpha, double beta) {
  device_.enter();
  const Description described(device_, functions_, problem, operands);
  const Choice choice = choice_of(problem, described);
  if (!choice.found) return false;
  const float alpha_f32 = static_cast<float>(alpha), beta_f32 = static_cast<float>(beta);
  const bool is_f64 = problem.type == CUDA_R_64F;
  const void* const factor = is_f64 ? static_cast<const void*>(&alpha) : &alpha_f32;
  const void* const of_c = is_f64 ? static_cast<const void*>(&beta) : &beta_f32;
  check(device_,
        functions_.cublasLtMatmul(handle_, described.product.handle, factor, operands.a, described.a.handle, operands.b, described.b.handle,
                                  of_c, operands.c, described.d.handle, operands.d, described.d.handle, &choice.algorithm,
                                  operands.workspace, problem.workspace_bytes, stream.handle()),
        "LtMatmul");
  return true;
}

}  // namespace tenon::cuda
