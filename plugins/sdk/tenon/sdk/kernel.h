// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/kernel.h - what a kernel is: a function template over a Call, and a last line that
// registers it.
//
//   template <class T> void relu(const sdk::Call& call) { ... }
//   TENON_KERNEL(relu, float, double)
//
// The function's name is the op's stem in tenon/ops.def; the file is ops/<family>.cpp of the
// backend. tools/cmake/backend.cmake writes the kernel table from the list and the backend's
// families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <tenon/backend.h>
#include <tenon/sdk/error.h>
#include <tenon/sdk/host.h>

namespace tenon::sdk {

/// Storage of f16 and bf16. Kernels compute in f32.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

namespace detail {
template <class T>
struct DTypeOf;
#define TENON_DTYPE_OF(T, dtype)                \
  template <>                                   \
  struct DTypeOf<T> {                           \
    static constexpr tenon_dtype value = dtype; \
  };
TENON_DTYPE_OF(Half, TENON_DTYPE_F16)
TENON_DTYPE_OF(BFloat16, TENON_DTYPE_BF16)
TENON_DTYPE_OF(float, TENON_DTYPE_F32)
TENON_DTYPE_OF(double, TENON_DTYPE_F64)
TENON_DTYPE_OF(std::int8_t, TENON_DTYPE_I8)
TENON_DTYPE_OF(std::int16_t, TENON_DTYPE_I16)
TENON_DTYPE_OF(std::int32_t, TENON_DTYPE_I32)
TENON_DTYPE_OF(std::int64_t, TENON_DTYPE_I64)
TENON_DTYPE_OF(std::uint8_t, TENON_DTYPE_U8)
TENON_DTYPE_OF(std::uint16_t, TENON_DTYPE_U16)
TENON_DTYPE_OF(std::uint32_t, TENON_DTYPE_U32)
TENON_DTYPE_OF(std::uint64_t, TENON_DTYPE_U64)
TENON_DTYPE_OF(bool, TENON_DTYPE_BOOL)
#undef TENON_DTYPE_OF
}  // namespace detail

template <class T>
inline constexpr tenon_dtype dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// Bytes of one element; 0 for dtypes smaller than a byte.
std::int64_t size_of(tenon_dtype dtype);
/// "f32", "i64", ...
const char* name_of(tenon_dtype dtype);

/// One operand of a call: an address and its layout. An absent optional operand has dtype
/// TENON_DTYPE_NONE.
struct Operand {
  void* data = nullptr;                   ///< element (0, ..., 0)
  const std::int64_t* shape = nullptr;    ///< [rank]
  const std::int64_t* strides = nullptr;  ///< [rank], elements; never NULL when rank > 0
  std::int64_t count = 0;                 ///< elements
  std::uint32_t rank = 0;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  bool dense = true;  ///< row-major without gaps

  bool present() const { return dtype != TENON_DTYPE_NONE; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// The value of a scalar of f32 or f64, such as a learning rate, in memory that the host can read.
inline double number_of(const Operand& scalar) {
  return scalar.dtype == TENON_DTYPE_F32 ? double{*scalar.as<const float>()} : *scalar.as<const double>();
}

class Device;

/// The function that an epilogue applies last.
struct Activation {
  enum Kind : std::uint32_t { none, relu, sigmoid, tanh, clip, gelu, silu };  ///< gelu: x Phi(x) with erf
  Kind kind = none;
  float low = 0, high = 0;  ///< the bounds of clip, as of the op Clip

  constexpr Activation() = default;
  constexpr Activation(Kind only) : kind(only) {}
  friend constexpr bool operator==(const Activation& a, Kind b) { return a.kind == b; }
};

/// Sets of activations, for Traits::activations.
constexpr std::uint32_t activation_bit(Activation::Kind kind) {
  return std::uint32_t{1} << kind;
}
inline constexpr std::uint32_t basic_activations =
    activation_bit(Activation::relu) | activation_bit(Activation::sigmoid) | activation_bit(Activation::tanh);
inline constexpr std::uint32_t all_activations =
    basic_activations | activation_bit(Activation::clip) | activation_bit(Activation::gelu) | activation_bit(Activation::silu);

/// What a kernel with Traits::epilogue does to its result before it is stored:
/// y = activation(result + bias + residual). With Traits::dequantize, the result of i32 is multiplied
/// by `scale` first, and y may be quantised: each step is rounded to f32, as ops of their own would.
struct Epilogue {
  /// Dense (n), n the last dimension of the result; NULL: none, as for images whose channels are
  /// not last.
  const Operand* bias = nullptr;
  const Operand* residual = nullptr;  ///< dense, of the result's shape, never its storage; NULL: none. Only for Traits::residual
  Activation activation = {};
  /// DequantizeLinear of an i32 result: f32, one element or dense (n). NULL: none, and with
  /// Traits::dequantize there is no epilogue.
  const Operand* scale = nullptr;
  /// QuantizeLinear of y: one element of f32; NULL: y is f32.
  const Operand* y_scale = nullptr;
  const Operand* y_zero_point = nullptr;  ///< one element of the output's dtype, i8 or u8; NULL: 0
  /// The result r of a relu, whose gradient is taken last: y where r > 0, r where it is NaN, 0
  /// elsewhere. Dense, of the result's shape, never its storage; NULL: none. Only for
  /// Traits::epilogue_relu_grad.
  const Operand* relu_result = nullptr;
};

/// One execution of an op. Operands have been checked by the op's shape rule; they are dense unless
/// the kernel's traits say strided.
struct Call {
  const Operand* inputs = nullptr;
  const Operand* outputs = nullptr;
  std::uint32_t input_count = 0;
  std::uint32_t output_count = 0;
  const void* attributes = nullptr;     ///< the struct named in ops.def
  void* scratch = nullptr;              ///< Traits::scratch bytes for this call only, aligned to 64
  const void* const* packed = nullptr;  ///< per input: the result of Traits::pack, or NULL; the array itself may be NULL
  Epilogue epilogue;
  std::uint32_t math = TENON_MATH_STRICT;
  bool deterministic = false;
  bool channels_last = false;      ///< the operands of Traits::channels_last have shape (N, d..., C)
  bool merged_heads = false;       ///< results are (B, S, H, E), as Traits::merges_heads says
  std::uint64_t node_id = 0;       ///< tenon_node.id, for failures that are detected later
  tenon_stream* stream = nullptr;  ///< NULL in the functions of Traits other than `pack`
  Device* device = nullptr;        ///< the plan's device
  Host host;

  template <class T>
  const T* input(std::uint32_t i) const {
    return static_cast<const T*>(inputs[i].data);
  }
  template <class T>
  T* output(std::uint32_t i) const {
    return static_cast<T*>(outputs[i].data);
  }
  template <class Attributes>
  const Attributes& attr() const {
    return *static_cast<const Attributes*>(attributes);
  }
  bool has_input(std::uint32_t i) const { return i < input_count && inputs[i].present(); }
  bool has_output(std::uint32_t i) const { return i < output_count && outputs[i].present(); }
};

/// Traits::refuse of ops whose results have sizes that only the results tell.
inline const char* refuse_absent_results(const Call& call) {
  for (std::uint32_t k = 0; k < call.output_count; ++k) {
    if (!call.has_output(k)) return "every result is required: their sizes determine the offsets";
  }
  return nullptr;
}

/// x viewed as (rows, n) with n its last dimension; a scalar is (1, 1).
struct Rows {
  std::int64_t rows, n;
};
inline Rows as_rows(const Operand& x) {
  const std::int64_t n = x.rank == 0 ? 1 : x.shape[x.rank - 1];
  return {n == 0 ? 0 : x.count / n, n};
}

/// x viewed as (outer, n, inner) around `axis`; dense operands only.
struct AxisView {
  std::int64_t outer, n, inner;
};
inline AxisView around_axis(const Operand& x, std::int64_t axis) {
  AxisView view{1, x.shape[axis], 1};
  for (std::int64_t i = 0; i < axis; ++i) view.outer *= x.shape[i];
  for (std::int64_t i = axis + 1; i < static_cast<std::int64_t>(x.rank); ++i) view.inner *= x.shape[i];
  return view;
}

/// Sets of a kernel's operands: bit i is operand i.
struct ChannelsLast {
  std::uint32_t inputs = 0, outputs = 0;
};

/// The inputs of a MatMulInteger that computes an attention (Traits::quantized_attention), after the
/// four of the op. Those of one element may have any number of dimensions.
namespace attention_input {
enum : std::uint32_t {
  score_scale = 4,    ///< one element of f32: DequantizeLinear of the products of q and k
  score_factor = 5,   ///< one element of f32 that scores are then multiplied by; absent: 1
  mask = 6,           ///< of f32, added to scores, to which it broadcasts; may be absent
  p_scale = 7,        ///< one element of f32: QuantizeLinear of the softmax
  p_zero_point = 8,   ///< one element of the integers' dtype, i8 or u8
  v = 9,              ///< (..., L, E), i8 or u8
  v_zero_point = 10,  ///< one element of v's dtype; absent: 0
  count = 11
};
}  // namespace attention_input

/// The inputs of a Conv whose input 0 is multiplied by a scale (Traits::scaled_input).
namespace conv_input {
enum : std::uint32_t {
  scale = 3,  ///< a factor for each image and channel, in the dtype of input 0
  count = 4
};
}  // namespace conv_input

/// The most calls that the plan builder gives to a Traits::run_together of an op.
inline constexpr std::uint32_t max_calls_together = 16;

/// The most calls of a Traits::run_chain.
inline constexpr std::uint32_t max_calls_in_chain = 3;

/// What the plan builder may do with a kernel. Functions get a Call whose data pointers are not yet
/// set.
struct Traits {
  bool strided = false;  ///< inputs may have any strides (0 and negative too); outputs are always dense
  /// An output may use the storage of an input of the same dtype and shape: of any input if there
  /// is one output; of the input that it updates, for steps over several tensors.
  bool in_place = false;
  /// Each element of the one output depends on the same element of every input, broadcast, and on
  /// the attributes. Implies strided and in_place. Chains of such kernels run piece by piece, so
  /// that intermediate results stay in the L1 cache.
  bool elementwise = false;
  bool epilogue = false;  ///< honours Call::epilogue
  bool residual = false;  ///< honours Call::epilogue.residual too
  /// The activations of epilogues. Results of f64 only ever get the basic ones.
  std::uint32_t activations = basic_activations;
  /// The submitted work may be recorded and replayed: the kernel reads no result on the host.
  bool capture_safe = true;
  /// Images have their channels last: bit i of `inputs` and `outputs` says that operand i of rank 3
  /// or 4, (N, C, d...) in the graph, reaches this kernel as a dense (N, d..., C), shape included;
  /// attributes are unchanged. `refuse` sees the graph's shapes.
  ChannelsLast channels_last{};
  /// Called for each instance; false: its images reach the kernel with the graph's layout, and
  /// Call::channels_last is false. NULL: always.
  bool (*channels_last_when)(const Call&) = nullptr;
  /// Called for each instance with images that have their channels last: the `inputs` of
  /// channels_last that reach the kernel with the graph's layout all the same. NULL: none.
  std::uint32_t (*graph_layout_inputs)(const Call&) = nullptr;
  std::size_t (*scratch)(const Call&) = nullptr;  ///< bytes needed; `packed` is not NULL for inputs that will be packed
  std::size_t (*pack_size)(const Call&, std::uint32_t input) = nullptr;        ///< bytes of a packed copy of this input; 0: not packed
  void (*pack)(const Call&, std::uint32_t input, void* out_packed) = nullptr;  ///< writes the packed copy, aligned to 64
  /// A short text for all that the packed copy depends on besides the op, the input, its dtype,
  /// shape and elements: the algorithm, attributes. Equal texts must mean equal copies, in calls of
  /// any other operands; then plans share them. NULL: they do not.
  std::string (*pack_form)(const Call&, std::uint32_t input) = nullptr;
  /// False: a parameter that the plan itself overwrites is not packed (the copy would be used
  /// once), so that training runs can be recorded.
  bool pack_donated = true;
  const char* (*refuse)(const Call&) = nullptr;  ///< a sentence if this instance is not supported, else NULL
  /// Input 0 may be a value before ReluGrad: an input follows those of the op then, the relu's result
  /// y of the same dtype and layout, and the kernel takes input 0 where y > 0, y where it is NaN, and
  /// 0 elsewhere.
  bool relu_grad = false;
  /// A result of i32 may be continued by DequantizeLinear to f32, bias, residual, activation and
  /// QuantizeLinear to i8 or u8: Epilogue::scale. Only with Traits::epilogue.
  bool dequantize = false;
  /// Whether this instance reads the input with the strides that the call describes, where `strided`
  /// is false; a dense copy is made otherwise. NULL: never.
  bool (*takes_view)(const Call&, std::uint32_t input) = nullptr;
  /// Whether this instance, of the op Attention or AttentionGrad or of quantized_attention, may store
  /// its results with four dimensions, (B, H, S, E), as (B, S, H, E): where a Transpose makes that of
  /// each. NULL: never.
  bool (*merges_heads)(const Call&) = nullptr;
  /// Of SoftmaxCrossEntropyLoss, called for an instance with a scalar loss: true if the kernel can
  /// compute in the same call what a training step computes next to it. Output 2 is then the gradient
  /// of the loss, that of SoftmaxCrossEntropyLossGrad with the dloss that is input 3; output 3 is the
  /// accuracy, the mean over all positions of ArgMax(scores, axis 1) == labels, in the dtype of the
  /// scores. Each may be absent.
  bool (*loss_companions)(const Call&) = nullptr;
  bool epilogue_relu_grad = false;  ///< with `epilogue`: honours Call::epilogue.relu_result too
  /// Runs `count` calls, none of which reads what another one writes, by fewer launches than one
  /// after the other: at most max_calls_together, or any number of copies of Device::batched_copy.
  /// Their kernels have the same function here. Not called for kernels that are in_place or
  /// elementwise. NULL: calls are run one by one.
  void (*run_together)(const Call* calls, std::uint32_t count) = nullptr;
  /// Called for each instance: whether it may run later than in the graph's order, together with
  /// others. That is worth it for small operands, which are kept until then. NULL: always.
  bool (*together_when)(const Call&) = nullptr;
  /// Of Gemm without trans_b, called for each instance: whether output 1 may be the sum of the rows of
  /// input 1, in its dtype: the gradient of a bias, next to that of the weights. That output is dense
  /// and has n elements, in a shape of any rank: (n), (1, n), (1, 1, n). NULL: never.
  bool (*column_sums)(const Call&) = nullptr;
  /// Of MatMulInteger, called with the inputs of attention_input: whether this instance may compute
  ///
  ///     y = dequantize(p' v), p' = quantize(softmax(factor dequantize(q k) + mask))
  ///
  /// of q (..., S, D), its input 0, and k (..., D, L), its input 1, with the bits that the nodes
  /// have one by one: two MatMulInteger with their DequantizeLinear, Mul, Add, Softmax along the last
  /// axis and QuantizeLinear. Epilogue::scale has one element, that of y (..., S, E), which
  /// Epilogue::y_scale and y_zero_point may quantise; there is nothing else in the epilogue.
  /// Operands have the same number of dimensions, 3 or 4, of which the leading ones are equal.
  /// NULL: never.
  bool (*quantized_attention)(const Call&) = nullptr;
  /// Of Conv, called with conv_input::scale: whether this instance may read, in place of input 0, its
  /// product with that factor of each image and channel, rounded to its dtype: the bits of Mul. Input
  /// 0 is (N, d..., C) and the scale (N, 1..., C) if call.channels_last, else (N, C, d...) and
  /// (N, C, 1...); both are dense. NULL: never.
  bool (*scaled_input)(const Call&) = nullptr;
  /// Of Conv, called with two outputs: whether output 1 may be the mean over all pixels of output 0,
  /// as it is stored after the epilogue, for each image and channel: dense, N C elements in a shape
  /// of any rank, f32 if output 0 has 16 bits, else in its dtype. NULL: never.
  bool (*pixel_means)(const Call&) = nullptr;
  /// Of Conv, called for two or more calls in a row, at most max_calls_in_chain, each but the first
  /// with the result of the one before as input 0, which nothing else reads: whether run_chain is to
  /// run them. If not, it is called without the last one. NULL: never.
  bool (*chains)(const Call* calls, std::uint32_t count) = nullptr;
  /// Runs such calls, with the bits that they have one by one. The results of all but the last need
  /// not be written: their memory is for this call's use. `scratch` has memory for each.
  void (*run_chain)(const Call* calls, std::uint32_t count) = nullptr;
  /// How many bytes of the memory of the result of calls[i], which is not the last call, run_chain
  /// uses, from its beginning on, with as many threads as the host has or fewer: it gets no more.
  /// NULL: all.
  std::size_t (*chain_result_size)(const Call* calls, std::uint32_t count, std::uint32_t i) = nullptr;
  /// The last call given to `chains` may be a MaxPool without indices, the one call with one input.
  bool chains_max_pool = false;
};

using KernelFunction = void (*)(const Call&);

/// A kernel for each dtype of the op's type operand; NULL where there is none.
struct Kernel {
  KernelFunction functions[TENON_DTYPE_COUNT] = {};
  Traits traits{};
};

/// A row of the kernel table, which the build generates.
struct KernelRow {
  tenon_op op;
  std::uint32_t version;
  std::int32_t type_operand;  ///< input whose dtype selects; -1: output 0
  const Kernel* kernel;
  const tenon_vendor_op* vendor_op = nullptr;  ///< of an op of the vendor (tenon/sdk/vendor_op.h), else NULL
};

namespace detail {
template <class Function, class... T>
constexpr Kernel kernel_of(Traits traits) {
  Kernel kernel;
  kernel.traits = traits;
  ((kernel.functions[dtype_of<T>] = [](const Call& call) { Function{}.template operator()<T>(call); }), ...);
  return kernel;
}
}  // namespace detail

/// Registers stem<T> for the listed types. Placed at the end of the file, in the backend's
/// namespace.
#define TENON_KERNEL(stem, ...) TENON_KERNEL_WITH(stem, (::tenon::sdk::Traits{}), __VA_ARGS__)

/// The same with traits, in parentheses:
/// TENON_KERNEL_WITH(add, (sdk::Traits{.strided = true}), float, double)
#define TENON_KERNEL_WITH(stem, traits, ...)                \
  struct kernel_function_##stem {                           \
    template <class T>                                      \
    void operator()(const ::tenon::sdk::Call& call) const { \
      stem<T>(call);                                        \
    }                                                       \
  };                                                        \
  extern const ::tenon::sdk::Kernel kernel_##stem;          \
  constinit const ::tenon::sdk::Kernel kernel_##stem = ::tenon::sdk::detail::kernel_of<kernel_function_##stem, __VA_ARGS__>(traits);

}  // namespace tenon::sdk
