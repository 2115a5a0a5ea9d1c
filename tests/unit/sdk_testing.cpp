// SPDX-License-Identifier: Apache-2.0
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>
#include <tenon/sdk/strided.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "platform/memory.h"

namespace tenon::sdk_test {

// ---------------------------------------------------------------- kernels

namespace {

void note() {
  probe.kernels.fetch_add(1, std::memory_order_relaxed);
}

template <class T, class Function>
void unary(const sdk::Call& call, Function f) {
  note();
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = f(x[at[0]]); });
}
template <class T, class Function>
void binary(const sdk::Call& call, Function f) {
  note();
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  T* y = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = f(a[at[0]], b[at[1]]); });
}

template <class T>
void add(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
void sub(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return static_cast<T>(a - b); });
}
template <class T>
void mul(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return static_cast<T>(a * b); });
}
template <class T>
void neg(const sdk::Call& call) {
  unary<T>(call, [](T x) { return static_cast<T>(-x); });
}
template <class T>
void relu(const sdk::Call& call) {
  unary<T>(call, [](T x) { return x > 0 ? x : T(0); });
}
template <class T>
void sigmoid(const sdk::Call& call) {
  probe.math = call.math;
  probe.deterministic = call.deterministic ? 1 : 0;
  unary<T>(call, [](T x) { return 1 / (1 + std::exp(-x)); });
}
/// Reads its input as dense, so a missing copy gives wrong results.
template <class T>
void tanh(const sdk::Call& call) {
  note();
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) call.output<T>(0)[i] = std::tanh(call.input<T>(0)[i]);
}
/// Along the last axis, through scratch memory that it fills to the end.
template <class T>
void softmax(const sdk::Call& call) {
  note();
  const auto [rows, n] = sdk::as_rows(call.inputs[0]);
  if (n == 0 || rows == 0) return;
  T* row = static_cast<T*>(call.scratch);
  if (row == nullptr || reinterpret_cast<std::uintptr_t>(row) % 64 != 0) probe.bad_scratch = true;
  probe.scratch_at = reinterpret_cast<std::uintptr_t>(row);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T peak = *std::max_element(x, x + n);
    T total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += row[i] = std::exp(x[i] - peak);
    for (std::int64_t i = 0; i < n; ++i) y[i] = row[i] / total;
  }
}
std::size_t softmax_scratch(const sdk::Call& call) {
  if (call.host.table() == nullptr) probe.no_traits_host = true;
  return static_cast<std::size_t>(sdk::as_rows(call.inputs[0]).n) * sizeof(float);
}
template <class T>
void relu_grad(const sdk::Call& call) {
  binary<T>(call, [](T dy, T y) { return y > 0 ? dy : T(0); });
}
/// Only copies, after the gradient of a relu if there is one.
template <class T>
void log_softmax(const sdk::Call& call) {
  call.has_input(1) ? relu_grad<T>(call) : unary<T>(call, [](T x) { return x; });
}
const char* refuse_vectors(const sdk::Call& call) {
  if (call.host.table() == nullptr) probe.no_traits_host = true;
  return call.inputs[0].rank == 1 ? "vectors are not served" : nullptr;
}
template <class T>
void div(const sdk::Call& call) {
  note();
  switch (probe.fail_div.load()) {
    case 1:
      throw sdk::Error(TENON_CANCELLED, "div: stopped");
    case 2:
      throw std::runtime_error("div: runtime trouble");
    case 3:
      throw 3;
    case 4:
      throw std::bad_alloc();
    case 5:
      call.host.parallel_for(1000, 1, [](std::int64_t begin, std::int64_t) {
        if (begin == 0) throw sdk::Error(TENON_INTERNAL, "div: a range failed");
      });
      break;
    default:
      break;
  }
  binary<T>(call, [](T a, T b) { return static_cast<T>(a / b); });
}

template <class T>
void copy_elements(const sdk::Call& call) {
  note();
  const sdk::Operand& x = call.inputs[0];
  const T* from = call.input<T>(0);
  T* y = call.output<T>(0);
  const std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
  sdk::for_each_element(x.shape, x.rank, strides, [&](std::int64_t i, const auto& at) { y[i] = from[at[0]]; });
}
template <class T>
void reshape(const sdk::Call& call) {
  copy_elements<T>(call);
}
template <class T>
void flatten(const sdk::Call& call) {
  copy_elements<T>(call);
}
template <class T>
void transpose(const sdk::Call& call) {
  note();
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& y = call.outputs[0];
  std::array<sdk::Strides, 1> strides{};
  for (std::uint32_t d = 0; d < y.rank; ++d) strides[0][d] = call.inputs[0].strides[attributes.axes[d]];
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { call.output<T>(0)[i] = call.input<T>(0)[at[0]]; });
}
template <class T>
void expand(const sdk::Call& call) {
  unary<T>(call, [](T x) { return x; });
}
float wide(float x) {
  return x;
}
float wide(sdk::BFloat16 x) {
  const std::uint32_t bits = std::uint32_t{x.bits} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// To f64, f32 and (cut off, not rounded) bf16.
template <class T>
void cast(const sdk::Call& call) {
  note();
  const tenon_dtype to = call.attr<tenon_attributes_cast>().to;
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) {
    const float x = wide(call.input<T>(0)[i]);
    if (to == TENON_DTYPE_F64) call.output<double>(0)[i] = static_cast<double>(x);
    if (to == TENON_DTYPE_F32) call.output<float>(0)[i] = x;
    if (to != TENON_DTYPE_BF16) continue;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    call.output<sdk::BFloat16>(0)[i].bits = static_cast<std::uint16_t>(bits >> 16);
  }
}

template <class T>
void reduce_sum(const sdk::Call& call) {
  note();
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& x = call.inputs[0];
  const sdk::Operand& y = call.outputs[0];
  std::array<sdk::Strides, 2> strides{sdk::strides_of(x), {}};
  std::uint32_t kept = 0;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    const bool reduced = std::find(attributes.axes, attributes.axes + attributes.count, d) != attributes.axes + attributes.count;
    if (!reduced) strides[1][d] = y.strides[kept];
    if (!reduced || attributes.keepdims != 0) ++kept;
  }
  std::fill(call.output<T>(0), call.output<T>(0) + y.count, T(0));
  sdk::for_each_element(x.shape, x.rank, strides,
                        [&](std::int64_t, const auto& at) { call.output<T>(0)[at[1]] += call.input<T>(0)[at[0]]; });
}

template <class T>
T finished(const sdk::Call& call, T result, std::int64_t column) {
  if (call.epilogue.bias != nullptr) result += call.epilogue.bias->as<const T>()[column];
  switch (call.epilogue.activation.kind) {
    case sdk::Activation::relu:
      return result > 0 ? result : T(0);
    case sdk::Activation::sigmoid:
      return 1 / (1 + std::exp(-result));
    case sdk::Activation::tanh:
      return std::tanh(result);
    default:
      return result;
  }
}
/// Matrices only; b(k, j) is element (k, j) of the right side.
template <class T, class Right>
void product(const sdk::Call& call, Right b) {
  const sdk::Operand& a = call.inputs[0];
  const std::int64_t m = call.outputs[0].shape[0], n = call.outputs[0].shape[1], depth = a.shape[1];
  const T* left = call.input<T>(0);
  T* y = call.output<T>(0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += left[i * a.strides[0] + k * a.strides[1]] * b(k, j);
      if (call.has_input(2)) sum += call.input<T>(2)[j];
      *y++ = finished(call, sum, j);
    }
  }
}
template <class T>
void matmul(const sdk::Call& call) {
  note();
  const sdk::Operand& b = call.inputs[1];
  product<T>(call, [&](std::int64_t k, std::int64_t j) { return call.input<T>(1)[k * b.strides[0] + j * b.strides[1]]; });
}
/// The packed right side is its transpose followed by a marker.
template <class T>
void gemm(const sdk::Call& call) {
  note();
  const sdk::Operand& b = call.inputs[1];
  if (call.packed != nullptr && call.packed[1] != nullptr) {
    const T* packed = static_cast<const T*>(call.packed[1]);
    const std::int64_t depth = b.shape[0];
    if (reinterpret_cast<std::uintptr_t>(packed) % 64 != 0 || packed[b.count] != T(4711)) throw std::logic_error("gemm: not my packing");
    product<T>(call, [&](std::int64_t k, std::int64_t j) { return packed[j * depth + k]; });
  } else {
    product<T>(call, [&](std::int64_t k, std::int64_t j) { return call.input<T>(1)[k * b.strides[0] + j * b.strides[1]]; });
  }
}
std::size_t gemm_pack_size(const sdk::Call& call, std::uint32_t input) {
  if (call.host.table() == nullptr) probe.no_traits_host = true;
  return input == 1 ? static_cast<std::size_t>(call.inputs[1].count + 1) * sizeof(float) : 0;
}
std::string gemm_pack_form(const sdk::Call&, std::uint32_t) {
  return "transposed";
}
std::size_t gemm_scratch(const sdk::Call& call) {
  return call.packed != nullptr && call.packed[1] != nullptr ? 0 : probe.unpacked_scratch.load();
}
void gemm_pack(const sdk::Call& call, std::uint32_t input, void* out_packed) {
  ++probe.packs;
  const sdk::Operand& b = call.inputs[input];
  const std::int64_t depth = b.shape[0], n = b.shape[1];
  auto* packed = static_cast<float*>(out_packed);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < depth; ++k) {
      packed[j * depth + k] = call.input<float>(input)[k * b.strides[0] + j * b.strides[1]];
      if (probe.fail_pack) throw std::runtime_error("gemm: cannot pack");
    }
  }
  packed[b.count] = 4711;
}

/// lr, then (w, g) or (w, g, v) groups. All of a group's operands are read before it is written, groups from the last to the first.
template <class T>
void sgd_step(const sdk::Call& call) {
  note();
  const auto momentum = static_cast<T>(call.attr<tenon_attributes_sgd>().momentum);
  const auto lr = static_cast<T>(*call.input<double>(0));
  const std::uint32_t in = momentum != 0 ? 3 : 2, out = in - 1;
  for (std::uint32_t group = (call.input_count - 1) / in; group-- > 0;) {
    const std::uint32_t first = 1 + group * in;
    for (std::int64_t i = 0; i < call.inputs[first].count; ++i) {
      const T w = call.input<T>(first)[i], g = call.input<T>(first + 1)[i];
      const T step = momentum != 0 ? momentum * call.input<T>(first + 2)[i] + g : g;
      if (momentum != 0 && call.has_output(group * out + 1)) call.output<T>(group * out + 1)[i] = step;
      if (call.has_output(group * out)) call.output<T>(group * out)[i] = w - lr * step;
    }
  }
}

/// Not the loss: a sum that shows which optional operands were present.
template <class T>
void softmax_cross_entropy(const sdk::Call& call) {
  note();
  T total = call.has_input(2) ? call.input<T>(2)[0] : T(0);
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) total += call.input<T>(0)[i];
  *call.output<T>(0) = total;
  if (call.has_output(1)) std::fill(call.output<T>(1), call.output<T>(1) + call.outputs[1].count, T(7));
}

constexpr sdk::Traits any_strides{.strided = true};
constexpr sdk::Traits elementwise{.strided = true, .in_place = true, .elementwise = true};

}  // namespace

TENON_KERNEL_WITH(add, elementwise, float, std::int64_t)
TENON_KERNEL_WITH(sub, any_strides, float)
TENON_KERNEL_WITH(mul, elementwise, float)
TENON_KERNEL_WITH(neg, elementwise, float)
TENON_KERNEL_WITH(relu, elementwise, float)
TENON_KERNEL_WITH(sigmoid, elementwise, float)
TENON_KERNEL(tanh, float)
TENON_KERNEL_WITH(softmax, (sdk::Traits{.in_place = true, .scratch = softmax_scratch}), float)
TENON_KERNEL_WITH(log_softmax, (sdk::Traits{.refuse = refuse_vectors, .relu_grad = true}), float)
TENON_KERNEL_WITH(relu_grad, elementwise, float)
TENON_KERNEL_WITH(div, any_strides, float)
TENON_KERNEL_WITH(reshape, any_strides, float, std::int64_t, sdk::BFloat16)
TENON_KERNEL_WITH(flatten, any_strides, float)
TENON_KERNEL_WITH(transpose, any_strides, float)
TENON_KERNEL_WITH(expand, any_strides, float)
TENON_KERNEL_WITH(cast, (sdk::Traits{.in_place = false}), float, sdk::BFloat16)
TENON_KERNEL_WITH(reduce_sum, any_strides, float)
TENON_KERNEL_WITH(matmul, (sdk::Traits{.strided = true, .epilogue = true}), float)
TENON_KERNEL_WITH(gemm,
                  (sdk::Traits{.strided = true,
                               .epilogue = true,
                               .activations = sdk::activation_bit(sdk::Activation::relu),
                               .scratch = gemm_scratch,
                               .pack_size = gemm_pack_size,
                               .pack = gemm_pack,
                               .pack_form = gemm_pack_form}),
                  float)
TENON_KERNEL_WITH(sgd_step, (sdk::Traits{.in_place = true}), float)
TENON_KERNEL(softmax_cross_entropy, float)

namespace dense {
namespace {
template <class T>
void transpose(const sdk::Call& call) {
  sdk_test::transpose<T>(call);
}
}  // namespace
TENON_KERNEL(transpose, float)
}  // namespace dense

// ---------------------------------------------------------------- the backends

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
      made.functions[TENON_DTYPE_NONE] = [](const sdk::Call& call) {
        note();
        for (std::uint32_t i = call.input_count; i-- > 0;) {  // in no order that a test could rely on
          const sdk::Operand& x = call.inputs[i];
          const std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
          const auto* const from = call.input<float>(i);
          auto* const y = call.output<float>(i);
          sdk::for_each_element(x.shape, x.rank, strides, [&](std::int64_t e, const auto& at) { y[e] = from[at[0]]; });
        }
      };
      return made;
    }();
    static constexpr sdk::KernelRow row{TENON_OP_Reshape, 14, 0, &kernel};
    return &row;
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
tenon_status query_small(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<small_spec, small_rows, no_blas>(host, out_info);
}
tenon_status query_dense(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<dense_spec, dense_rows>(host, out_info);
}

// ---------------------------------------------------------------- the host

TestHost::TestHost(std::uint32_t threads) : threads_(threads) {
  const auto self = [](tenon_host_context* context) { return reinterpret_cast<TestHost*>(context); };
  static constexpr auto cast = self;
  table_.struct_size = sizeof table_;
  table_.abi_minor = TENON_ABI_MINOR;
  table_.context = reinterpret_cast<tenon_host_context*>(this);
  table_.log = [](tenon_host_context*, std::uint32_t, const char*) {};
  table_.allocate = [](tenon_host_context* context, std::uint64_t size, std::uint64_t alignment) -> void* {
    TestHost& host = *cast(context);
    if (host.allocations_left == 0) return nullptr;
    if (host.allocations_left > 0) --host.allocations_left;
    if (alignment < 64) host.misaligned = true;
    if (size > (std::uint64_t{1} << 40)) return nullptr;
    void* memory = platform::allocate_aligned(alignment, (size + alignment - 1) / alignment * alignment);
    std::memset(memory, 0xCD, size);
    ++host.allocations, ++host.live_blocks, host.live_bytes += static_cast<std::int64_t>(size);
    return memory;
  };
  table_.release = [](tenon_host_context* context, void* memory, std::uint64_t size) {
    --cast(context)->live_blocks, cast(context)->live_bytes -= static_cast<std::int64_t>(size);
    platform::free_aligned(memory);
  };
  table_.parallel_for = [](tenon_host_context* context, const tenon_run*, std::int64_t count, std::int64_t grain,
                           void (*body)(void*, std::int64_t, std::int64_t), void* argument) {
    const std::int64_t ranges = std::max<std::int64_t>(std::min<std::int64_t>(cast(context)->threads_, count / grain), 1);
    std::vector<std::thread> workers;
    for (std::int64_t r = 1; r < ranges; ++r) {
      workers.emplace_back([=] { body(argument, count * r / ranges, count * (r + 1) / ranges); });
    }
    body(argument, 0, count / ranges);
    for (std::thread& worker : workers) worker.join();
  };
  table_.thread_count = [](tenon_host_context* context, const tenon_run*) { return cast(context)->threads_; };
  table_.trace_begin = [](tenon_host_context*, const char*, std::uint64_t) {};
  table_.trace_end = [](tenon_host_context*) {};
  table_.option = [](tenon_host_context*, const char*) -> const char* { return nullptr; };
  table_.cache_directory = [](tenon_host_context*) -> const char* { return nullptr; };
  table_.cancel_requested = [](tenon_host_context* context, const tenon_run*) -> std::uint32_t {
    TestHost& host = *cast(context);
    return ++host.questions >= host.cancel_from ? 1 : 0;
  };
  table_.autotune_get = [](tenon_host_context*, const char*, void*, std::uint64_t) -> std::uint64_t { return 0; };
  table_.autotune_put = [](tenon_host_context*, const char*, const void*, std::uint64_t) {};
  table_.extension = [](tenon_host_context*, const char*, std::uint32_t) -> const void* { return nullptr; };
}

// ---------------------------------------------------------------- Session

Session::Session(std::uint32_t threads, tenon_backend_query_fn query) : host(threads) {
  const tenon_host_info asking = host_info();
  info.struct_size = sizeof info;
  REQUIRE(query(&asking, &info) == TENON_OK);
  ErrorText error;
  REQUIRE(info.create(host.table(), &backend, &table, error) == TENON_OK);
  REQUIRE_MESSAGE(table->device_open(backend, 0, &device, error) == TENON_OK, error.text());
  REQUIRE(table->stream_create(device, nullptr, &stream, error) == TENON_OK);
  probe.packs = probe.kernels = probe.fail_div = 0;
  probe.fail_pack = probe.bad_scratch = probe.no_traits_host = false;
  probe.scratch_at = 0;
  probe.unpacked_scratch = 0;
}

Session::~Session() {
  table->stream_destroy(stream);
  table->device_close(device);
  table->shutdown(backend);
  table->destroy(backend);
  CHECK(host.live_blocks == 0);
  CHECK(host.live_bytes == 0);
  CHECK_FALSE(host.misaligned);
  CHECK_FALSE(probe.no_traits_host);
}

// ---------------------------------------------------------------- Net

std::int64_t Net::Value::count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::uint32_t Net::add(std::uint32_t kind, Shape shape, Strides strides, tenon_dtype dtype) {
  Value value{kind, std::move(shape), std::move(strides), dtype, {}};
  if (kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER || kind == TENON_VALUE_OUTPUT) value.binding = binding_count++;
  values.push_back(std::move(value));
  return static_cast<std::uint32_t>(values.size() - 1);
}

std::uint32_t Net::constant(Shape shape, const Floats& data) {
  const std::uint32_t v = add(TENON_VALUE_CONSTANT, std::move(shape), {}, TENON_DTYPE_F32);
  values[v].bytes.resize(data.size() * sizeof(float));
  if (!data.empty()) std::memcpy(values[v].bytes.data(), data.data(), values[v].bytes.size());
  return v;
}

void Net::add_node(tenon_op op, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs,
                   std::vector<std::uint64_t> attributes) {
  std::uint32_t version = 1;
  switch (op) {
#define TENON_OP(id, name, since, stem, family, type_operand, dtypes, attribute_struct, indexing, schema) \
  case id:                                                                                                \
    version = since;                                                                                      \
    break;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      break;
  }
  nodes.push_back({op, version, std::move(inputs), std::move(outputs), std::move(attributes), 100 + nodes.size()});
}

const tenon_graph& Net::abi_graph() {
  abi_values.clear();
  abi_nodes.clear();
  for (const Value& value : values) {
    tenon_value abi_value{.desc = {value.shape.data(), value.strides.empty() ? nullptr : value.strides.data(),
                                   static_cast<std::uint32_t>(value.shape.size()), value.dtype},
                          .kind = value.kind,
                          .binding = value.binding,
                          .data = value.kind == TENON_VALUE_CONSTANT && !value.bytes.empty() ? value.bytes.data() : nullptr,
                          .packed = value.packed};
    abi_values.push_back(abi_value);
  }
  for (const Node& node : nodes) {
    abi_nodes.push_back({node.op, node.version, node.inputs.data(), node.outputs.data(), static_cast<std::uint32_t>(node.inputs.size()),
                         static_cast<std::uint32_t>(node.outputs.size()), node.attributes.data(), "node", node.id, 0, 0});
  }
  graph = {};
  graph.struct_size = sizeof graph;
  graph.value_count = static_cast<std::uint32_t>(abi_values.size());
  graph.values = abi_values.data();
  graph.value_stride = sizeof(tenon_value);
  graph.node_count = static_cast<std::uint32_t>(abi_nodes.size());
  graph.nodes = abi_nodes.data();
  graph.node_stride = sizeof(tenon_node);
  graph.donation_count = static_cast<std::uint32_t>(donations.size());
  graph.donations = donations.data();
  graph.binding_count = binding_count;
  return graph;
}

tenon_attributes_axes axes(std::initializer_list<std::int64_t> list, bool keepdims) {
  tenon_attributes_axes attributes{.struct_size = sizeof attributes, .keepdims = keepdims};
  for (const std::int64_t value : list) attributes.axes[attributes.count++] = value;
  return attributes;
}
tenon_attributes_axis axis(std::int64_t value) {
  return {sizeof(tenon_attributes_axis), 0, value};
}
tenon_attributes_gemm gemm_attributes(double alpha, double beta) {
  return {sizeof(tenon_attributes_gemm), 0, 0, 0, alpha, beta};
}
tenon_attributes_sgd sgd_attributes(double momentum) {
  return {sizeof(tenon_attributes_sgd), 0, momentum, 0};
}
tenon_plan_options options(std::uint32_t fusion) {
  return {sizeof(tenon_plan_options), TENON_MATH_STRICT, 1, fusion, 0, 0, nullptr};
}

// ---------------------------------------------------------------- evaluate

namespace {

/// Multi-dimensional index of element i of a dense shape.
Shape index_of(std::int64_t i, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}
/// The element of a dense array of `shape` that broadcasts to `index`.
std::int64_t broadcast(const Shape& index, const Shape& shape) {
  std::int64_t i = 0;
  const std::size_t missing = index.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + (shape[d] == 1 ? 0 : index[d + missing]);
  return i;
}

}  // namespace

std::vector<Floats> evaluate(const Net& net, const std::map<std::uint32_t, Floats>& bound) {
  std::vector<Floats> result(net.values.size());
  for (const auto& [v, data] : bound) result[v] = data;
  for (std::size_t v = 0; v < net.values.size(); ++v) {
    if (net.values[v].kind != TENON_VALUE_CONSTANT) continue;
    result[v].resize(static_cast<std::size_t>(net.values[v].count()));
    if (!result[v].empty()) std::memcpy(result[v].data(), net.values[v].bytes.data(), net.values[v].bytes.size());
  }
  for (const Net::Node& node : net.nodes) {
    const Net::Value& out = net.values[node.outputs[0]];
    const Shape& x_shape = net.values[node.inputs[0]].shape;
    const Floats& x = result[node.inputs[0]];
    const auto count = static_cast<std::size_t>(out.count());
    Floats y(count, 0.0f);
    const auto each = [&](auto f) {
      for (std::size_t i = 0; i < count; ++i) y[i] = f(i, index_of(static_cast<std::int64_t>(i), out.shape));
    };
    const auto operand = [&](std::size_t k, const Shape& index) {
      return result[node.inputs[k]][static_cast<std::size_t>(broadcast(index, net.values[node.inputs[k]].shape))];
    };
    switch (node.op) {
      case TENON_OP_Add:
        each([&](std::size_t, const Shape& index) { return operand(0, index) + operand(1, index); });
        break;
      case TENON_OP_Sub:
        each([&](std::size_t, const Shape& index) { return operand(0, index) - operand(1, index); });
        break;
      case TENON_OP_Mul:
        each([&](std::size_t, const Shape& index) { return operand(0, index) * operand(1, index); });
        break;
      case TENON_OP_Neg:
        each([&](std::size_t i, const Shape&) { return -x[i]; });
        break;
      case TENON_OP_Relu:
        each([&](std::size_t i, const Shape&) { return x[i] > 0 ? x[i] : 0.0f; });
        break;
      case TENON_OP_Sigmoid:
        each([&](std::size_t i, const Shape&) { return 1 / (1 + std::exp(-x[i])); });
        break;
      case TENON_OP_Tanh:
        each([&](std::size_t i, const Shape&) { return std::tanh(x[i]); });
        break;
      case TENON_OP_Reshape:
      case TENON_OP_Flatten:
        y = x;
        break;
      case TENON_OP_Transpose: {
        const auto& perm = *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data());
        each([&](std::size_t, const Shape& index) {
          Shape from(index.size());
          for (std::size_t d = 0; d < index.size(); ++d) from[static_cast<std::size_t>(perm.axes[d])] = index[d];
          return x[static_cast<std::size_t>(broadcast(from, x_shape))];
        });
        break;
      }
      case TENON_OP_Expand:
        each([&](std::size_t, const Shape& index) { return operand(0, index); });
        break;
      case TENON_OP_ReduceSum: {
        const auto& a = *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const Shape index = index_of(static_cast<std::int64_t>(i), x_shape);
          std::int64_t to = 0;
          for (std::size_t d = 0; d < index.size(); ++d) {
            if (std::find(a.axes, a.axes + a.count, static_cast<std::int64_t>(d)) == a.axes + a.count) to = to * x_shape[d] + index[d];
          }
          y[static_cast<std::size_t>(to)] += x[i];
        }
        break;
      }
      case TENON_OP_MatMul:
      case TENON_OP_Gemm: {
        const Floats& b = result[node.inputs[1]];
        const auto depth = static_cast<std::size_t>(x_shape[1]), n = static_cast<std::size_t>(out.shape[1]);
        each([&](std::size_t i, const Shape&) {
          float sum = 0;
          for (std::size_t k = 0; k < depth; ++k) sum += x[i / n * depth + k] * b[k * n + i % n];
          return sum;
        });
        break;
      }
      case TENON_OP_Softmax: {
        const auto n = static_cast<std::size_t>(x_shape.back());
        for (std::size_t first = 0; n > 0 && first < count; first += n) {
          const float peak =
              *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first + n));
          float total = 0;
          for (std::size_t i = first; i < first + n; ++i) total += y[i] = std::exp(x[i] - peak);
          for (std::size_t i = first; i < first + n; ++i) y[i] /= total;
        }
        break;
      }
      default:
        FAIL("evaluate does not know op " << node.op);
    }
    result[node.outputs[0]] = std::move(y);
  }
  return result;
}

// ---------------------------------------------------------------- Run

namespace {
constexpr std::size_t guard = 64;
constexpr unsigned char guard_byte = 0xA5;
constexpr std::size_t element_size(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_F64 || dtype == TENON_DTYPE_I64 ? 8 : 4;
}
struct Reach {
  std::int64_t lowest = 0, highest = 0;
};
Reach reach_of(const Net::Value& value) {
  Reach reach;
  std::int64_t dense = 1;
  for (std::size_t d = value.shape.size(); d-- > 0;) {
    const std::int64_t stride = value.strides.empty() ? dense : value.strides[d];
    const std::int64_t extent = stride * (value.shape[d] - 1);
    (extent < 0 ? reach.lowest : reach.highest) += extent;
    dense *= value.shape[d];
  }
  return reach;
}
}  // namespace

void Run::Buffer::make(std::size_t bytes) {
  size = bytes;
  storage.assign(bytes + 2 * guard + 64, guard_byte);
  const auto address = reinterpret_cast<std::uintptr_t>(storage.data() + guard);
  begin = storage.data() + guard + (64 - address % 64) % 64;
}
bool Run::Buffer::whole() const {
  const auto intact = [](unsigned char byte) { return byte == guard_byte; };
  return std::all_of(storage.data(), static_cast<const unsigned char*>(begin), intact) &&
         std::all_of(static_cast<const unsigned char*>(begin + size), storage.data() + storage.size(), intact);
}

Run::Run(std::unique_ptr<Session> own, Session* session, Net& net, const tenon_plan_options& given)
    : own_session_(std::move(own)), session_(session != nullptr ? *session : *own_session_), net_(net) {
  ErrorText error;
  const tenon_status status = session_.table->plan_create(session_.device, &net.abi_graph(), &given, &plan, error);
  REQUIRE_MESSAGE(status == TENON_OK, error.text());
  info.struct_size = sizeof info;
  REQUIRE(session_.table->plan_info(plan, &info, error) == TENON_OK);
  CHECK(info.workspace_alignment_bytes <= 64);
  workspace_buffer_.make(info.workspace_size_bytes);
  workspace = reinterpret_cast<std::uintptr_t>(workspace_buffer_.begin);
  buffers_.resize(net.binding_count);
  buffer_of_.resize(net.binding_count);
  addresses.resize(net.binding_count);
  for (std::size_t b = 0; b < buffer_of_.size(); ++b) buffer_of_[b] = b;
  for (const tenon_donation& d : net.donations) buffer_of_[net.values[d.output].binding] = net.values[d.input].binding;
  for (const Net::Value& value : net.values) {
    if (value.binding == TENON_NO_INDEX || value.kind == TENON_VALUE_INTERNAL) continue;
    Buffer& buffer = buffers_[buffer_of_[value.binding]];
    const Reach reach = value.count() == 0 ? Reach{0, -1} : reach_of(value);
    if (buffer.begin == nullptr) buffer.make(static_cast<std::size_t>(reach.highest - reach.lowest + 1) * element_size(value.dtype));
    addresses[value.binding] =
        reinterpret_cast<std::uintptr_t>(buffer.begin) + static_cast<std::uint64_t>(-reach.lowest) * element_size(value.dtype);
  }
}

Run::~Run() {
  session_.table->plan_destroy(plan);
}

void Run::for_each_offset(std::uint32_t v, void (*body)(void*, std::int64_t, std::int64_t), void* context) const {
  const Net::Value& value = net_.values[v];
  for (std::int64_t i = 0; i < value.count(); ++i) {
    const Shape index = index_of(i, value.shape);
    std::int64_t offset = value.strides.empty() ? i : 0;
    for (std::size_t d = 0; d < value.strides.size(); ++d) offset += index[d] * value.strides[d];
    body(context, i, offset);
  }
}

void Run::set(std::uint32_t v, const Floats& dense) {
  REQUIRE(static_cast<std::int64_t>(dense.size()) == net_.values[v].count());
  struct Context {
    const float* from;
    float* to;
  } context{dense.data(), data<float>(v)};
  for_each_offset(
      v, [](void* c, std::int64_t i, std::int64_t offset) { static_cast<Context*>(c)->to[offset] = static_cast<Context*>(c)->from[i]; },
      &context);
}

Floats Run::get(std::uint32_t v) const {
  Floats dense(static_cast<std::size_t>(net_.values[v].count()));
  struct Context {
    float* to;
    const float* from;
  } context{dense.data(), reinterpret_cast<const float*>(addresses[net_.values[v].binding])};
  for_each_offset(
      v, [](void* c, std::int64_t i, std::int64_t offset) { static_cast<Context*>(c)->to[i] = static_cast<Context*>(c)->from[offset]; },
      &context);
  return dense;
}

tenon_bindings Run::bindings() const {
  tenon_bindings bound{};
  bound.struct_size = sizeof bound;
  bound.address_count = static_cast<std::uint32_t>(addresses.size());
  bound.addresses = addresses.data();
  bound.parameters_epoch = epoch;
  bound.run = run;
  bound.execution_id = execution_id;
  return bound;
}

tenon_status Run::execute(tenon_error* error) {
  const tenon_bindings bound = bindings();
  return session_.table->plan_execute(plan, &bound, workspace, session_.stream, error);
}

void Run::operator()(std::initializer_list<std::pair<std::uint32_t, Floats>> inputs) {
  for (const auto& [value, dense] : inputs) set(value, dense);
  std::memset(workspace_buffer_.begin, 0xFF, workspace_buffer_.size);  // NaN, whatever the type
  ErrorText error;
  const tenon_status status = execute(error);
  REQUIRE_MESSAGE(status == TENON_OK, error.text());
  CHECK(workspace_buffer_.whole());
  for (const Buffer& buffer : buffers_) CHECK((buffer.begin == nullptr || buffer.whole()));
}

}  // namespace tenon::sdk_test
