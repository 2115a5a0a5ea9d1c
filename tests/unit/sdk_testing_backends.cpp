// SPDX-License-Identifier: Apache-2.0
// sdk_testing_backends.cpp - the test backends: rows of kernels, devices, and their query functions.
#include <array>
#include <memory>
#include <string>

#include <tenon/sdk/backend.h>
#include <tenon/sdk/strided.h>

#include "sdk_testing_kernels.h"

namespace tenon::sdk_test {
namespace {

constexpr sdk::KernelRow full_rows[] = {
    {TENON_OP_Add, 14, 0, &kernel_add},
    {TENON_OP_Sub, 14, 0, &kernel_sub},
    {TENON_OP_Mul, 14, 0, &kernel_mul},
    {TENON_OP_Div, 14, 0, &kernel_div},
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Relu, 14, 0, &kernel_relu},
    {TENON_OP_ReluGrad, 1, 0, &kernel_relu_grad},
    {TENON_OP_Sigmoid, 13, 0, &kernel_sigmoid},
    {TENON_OP_Tanh, 13, 0, &kernel_tanh},
    {TENON_OP_Cast, 13, 0, &kernel_cast},
    {TENON_OP_ReduceSum, 11, 0, &kernel_reduce_sum},
    {TENON_OP_Reshape, 14, 0, &kernel_reshape},
    {TENON_OP_Flatten, 13, 0, &kernel_flatten},
    {TENON_OP_Transpose, 13, 0, &kernel_transpose},
    {TENON_OP_Expand, 13, 0, &kernel_expand},
    {TENON_OP_MatMul, 13, 0, &kernel_matmul},
    {TENON_OP_Gemm, 13, 0, &kernel_gemm},
    {TENON_OP_Softmax, 13, 0, &kernel_softmax},
    {TENON_OP_LogSoftmax, 13, 0, &kernel_log_softmax},
    {TENON_OP_SoftmaxCrossEntropyLoss, 13, 0, &kernel_softmax_cross_entropy},
    {TENON_OP_SgdStep, 2, 1, &kernel_sgd_step},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow together_rows[] = {
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_ReluGrad, 1, 0, &kernel_relu_grad},
    {TENON_OP_Tanh, 13, 0, &kernel_tanh},
    {TENON_OP_Reshape, 14, 0, &kernel_reshape},
    {TENON_OP_Sigmoid, 13, 0, &together::kernel_sigmoid},
    {TENON_OP_MatMul, 13, 0, &together::kernel_matmul},
    {TENON_OP_Gemm, 13, 0, &together::kernel_gemm_with_sums},
    {TENON_OP_ReduceSum, 11, 0, &kernel_reduce_sum},
    {TENON_OP_Add, 14, 0, &kernel_add},
    {TENON_OP_Softmax, 13, 0, &kernel_softmax},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow small_rows[] = {
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Tanh, 13, 0, &kernel_tanh},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow dense_rows[] = {
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Tanh, 13, 0, &kernel_tanh},
    {TENON_OP_Transpose, 13, 0, &dense::kernel_transpose},
    {TENON_OP_NONE, 0, 0, nullptr},
};

constexpr tenon_option options[] = {{"level", TENON_OPTION_INTEGER, 0, "1", nullptr, 0, 9, "how much"}};

class NoDevices final : public sdk::Backend {
 public:
  using Backend::Backend;
  std::uint32_t device_count() override { return 0; }
  std::string no_device_reason() override { return "no such device here: plug one in"; }
  const sdk::DeviceDescription& describe(std::uint32_t) override { throw sdk::Error(TENON_INTERNAL, "asked about no device"); }
  std::unique_ptr<sdk::Device> open(std::uint32_t) override { throw sdk::Error(TENON_INTERNAL, "opened no device"); }
};

/// A CPU whose copies are batched.
class CopyingDevice final : public sdk::CpuDevice {
 public:
  using CpuDevice::CpuDevice;
  const sdk::KernelRow* batched_copy() const override {
    static constexpr sdk::Kernel kernel = [] {
      sdk::Kernel made;
      made.traits.run_together = [](const sdk::Call* calls, std::uint32_t count) {
        note();
        for (std::uint32_t i = count; i-- > 0;) {  // in no order that a test could rely on
          const sdk::Operand& x = calls[i].inputs[0];
          const std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
          const auto* const from = calls[i].input<float>(0);
          auto* const y = calls[i].output<float>(0);
          sdk::for_each_element(x.shape, x.rank, strides, [&](std::int64_t e, const auto& at) { y[e] = from[at[0]]; });
        }
      };
      return made;
    }();
    static constexpr sdk::Kernel none{};
    static constexpr sdk::KernelRow row{TENON_OP_Reshape, 14, 0, &kernel}, without{TENON_OP_Reshape, 14, 0, &none};
    return probe.copies_one_by_one ? &without : &row;
  }
};
class CopyingBackend final : public sdk::Backend {
 public:
  using Backend::Backend;
  std::uint32_t device_count() override { return 1; }
  const sdk::DeviceDescription& describe(std::uint32_t) override { return description_; }
  std::unique_ptr<sdk::Device> open(std::uint32_t) override { return std::make_unique<CopyingDevice>(host); }

 private:
  sdk::DeviceDescription description_ = sdk::describe_cpu("batched copies");
};

const tenon_blas_table* no_blas() {
  static constexpr tenon_blas_table table = [] {
    tenon_blas_table empty{};
    empty.struct_size = sizeof empty;
    return empty;
  }();
  return &table;
}

const sdk::BackendSpec& full_spec() {
  static constexpr sdk::BackendSpec spec{"full", "1.2.3", "tests", "small kernels", nullptr, 7, 0, options, [](sdk::Host host) {
                                           return sdk::make_cpu_backend(host, "small kernels");
                                         }};
  return spec;
}
const sdk::BackendSpec& copying_spec() {
  static constexpr sdk::BackendSpec spec{
      "copying", "0.1", "tests", "batched copies", nullptr, 1, 0, {}, [](sdk::Host host) -> std::unique_ptr<sdk::Backend> {
        return std::make_unique<CopyingBackend>(host);
      }};
  return spec;
}
const sdk::BackendSpec& together_spec() {
  static constexpr sdk::BackendSpec spec{"together", "0.1", "tests", "several calls at once", nullptr, 1, 0, {}, [](sdk::Host host) {
                                           return sdk::make_cpu_backend(host, "several calls at once");
                                         }};
  return spec;
}
const sdk::BackendSpec& small_spec() {
  static constexpr sdk::BackendSpec spec{"small",
                                         "0.1",
                                         "tests",
                                         "no devices",
                                         "a device",
                                         1,
                                         TENON_BACKEND_UNLOADABLE,
                                         {},
                                         [](sdk::Host host) -> std::unique_ptr<sdk::Backend> { return std::make_unique<NoDevices>(host); }};
  return spec;
}
const sdk::BackendSpec& dense_spec() {
  static constexpr sdk::BackendSpec spec{
      "dense", "0.1", "tests", "no copies", nullptr, 1, 0, {}, [](sdk::Host host) { return sdk::make_cpu_backend(host, "no copies"); }};
  return spec;
}

}  // namespace

tenon_status query_full(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<full_spec, full_rows>(host, out_info);
}
tenon_status query_copying(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<copying_spec, full_rows>(host, out_info);
}
tenon_status query_together(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<together_spec, together_rows>(host, out_info);
}
tenon_status query_small(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<small_spec, small_rows, no_blas>(host, out_info);
}
tenon_status query_dense(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<dense_spec, dense_rows>(host, out_info);
}

}  // namespace tenon::sdk_test
