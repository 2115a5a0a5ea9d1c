// ops/conv.cpp - which road a convolution and its gradients take, where their weights are packed, and what they need of scratch memory.
#include <algorithm>

#include "conv_depthwise.h"
#include "conv_direct.h"
#include "conv_geometry.h"
#include "conv_weight_grad.h"

namespace tenon::openblas {
namespace {

// The operand that is packed, of conv and conv_input_grad alike.
constexpr std::uint32_t weights = 1;

/// Weights of `elements` that a thread of its own packs: about 20 us.
constexpr std::int64_t pack_grain = 16 * 1024;

/// The panels of all groups; source(group) says where the weights of one lie.
template <class T, class Source>
void pack_direct(const sdk::Host& host, const DirectConv& conv, const Source& source, T* out_packed) {
  const std::int64_t elements = panel_elements<T>(conv.k(), conv.group_columns());
  const std::int64_t panels = panel_count<T>(conv.group_columns());
  const std::int64_t panel = std::max<std::int64_t>(1, conv.k() * panel_width<T>);
  host.parallel_for(conv.groups * panels, std::max<std::int64_t>(1, pack_grain / panel), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) pack_panel(source(i / panels), i % panels, out_packed + i / panels * elements);
  });
}

/// y = conv(x, w) + b, with its epilogue.
template <class T>
class Forward {
 public:
  explicit Forward(const sdk::Call& call)
      : g_(conv_geometry(call.inputs[0], call.inputs[1], call.outputs[0], call.attr<tenon_attributes_conv>())), direct_(forward_conv(g_)) {}

  std::int64_t packed_elements() const { return false ? g_.weights() : direct_panel_elements<T>(direct_); }

  void pack(const sdk::Host& host, const T* w, T* out_packed) const {
    if (false) {
      depthwise_weights(g_, w, out_packed);
    } else {
      pack_direct(
          host, direct_, [&](std::int64_t group) { return forward_panels(g_, w, group); }, out_packed);
    }
  }

  /// Beyond the packed weights: two biases made one, and what the road itself wants.
  std::size_t scratch(const sdk::Call& call) const {
    return scratch_bytes(g_.out_channels, sizeof(T)) + (false ? 0 : direct_scratch(direct_, call.host, sizeof(T)));
  }

  void run(const sdk::Call& call, const T* packed, char* scratch) const {
    const T* const bias = bias_of(call, reinterpret_cast<T*>(scratch));
    scratch += scratch_bytes(g_.out_channels, sizeof(T));
    if (false) {
      depthwise_forward(g_, call, call.input<T>(0), packed, bias, call.output<T>(0));
      return;
    }
    DirectOperands<T> operands{call.input<T>(0), packed, call.output<T>(0), bias, nullptr, call.epilogue.activation};
    if (call.epilogue.residual != nullptr) operands.residual = call.epilogue.residual->as<const T>();
    direct_conv(direct_, operands, call.host, scratch);
  }

 private:
  /// b and the epilogue's bias: either, or their sum.
  const T* bias_of(const sdk::Call& call, T* sum) const {
    const T* const own = call.has_input(2) ? call.input<T>(2) : nullptr;
    const T* const added = call.epilogue.bias == nullptr ? nullptr : call.epilogue.bias->as<const T>();
    if (own == nullptr || added == nullptr) return own == nullptr ? added : own;
    for (std::int64_t i = 0; i < g_.out_channels; ++i) sum[i] = own[i] + added[i];
    return sum;
  }

  ConvGeometry g_;
  DirectConv direct_;
};

/// dx of conv.
template <class T>
class InputGrad {
 public:
  explicit InputGrad(const sdk::Call& call)
      : g_(conv_geometry(call.outputs[0], call.inputs[1], call.inputs[0], call.attr<tenon_attributes_conv>())) {}

  std::int64_t packed_elements() const {
    if (false) return g_.weights();
    std::int64_t elements = 0;
    for (std::int64_t phase = 0; phase < input_grad_phases(g_); ++phase) elements += direct_panel_elements<T>(input_grad_conv(g_, phase));
    return elements;
  }

  void pack(const sdk::Host& host, const T* w, T* out_packed) const {
    if (false) {
      depthwise_weights(g_, w, out_packed);
      return;
    }
    for (std::int64_t phase = 0; phase < input_grad_phases(g_); ++phase) {
      const DirectConv conv = input_grad_conv(g_, phase);
      pack_direct(
          host, conv, [&](std::int64_t group) { return input_grad_panels(g_, phase, w, group); }, out_packed);
      out_packed += direct_panel_elements<T>(conv);
    }
  }

  std::size_t scratch(const sdk::Call& call) const {
    std::size_t bytes = 0;
    if (false) return bytes;
    for (std::int64_t phase = 0; phase < input_grad_phases(g_); ++phase) {
      bytes = std::max(bytes, direct_scratch(input_grad_conv(g_, phase), call.host, sizeof(T)));
    }
    return bytes;
  }

  void run(const sdk::Call& call, const T* packed, char* scratch) const {
    if (false) {
      depthwise_input_grad(g_, call, call.input<T>(0), packed, call.output<T>(0));
      return;
    }
    for (std::int64_t phase = 0; phase < input_grad_phases(g_); ++phase) {
      const DirectConv conv = input_grad_conv(g_, phase);
      DirectOperands<T> operands;
      operands.x = call.input<T>(0);
      operands.panels = packed;
      operands.y = call.output<T>(0);
      direct_conv(conv, operands, call.host, scratch);
      packed += direct_panel_elements<T>(conv);
    }
  }

 private:
  ConvGeometry g_;
};

template <template <class> class Road, class T>
std::size_t packed_bytes(const sdk::Call& call) {
  return scratch_bytes(Road<T>(call).packed_elements(), sizeof(T));
}

/// Weights are packed into the scratch memory by a call that does not find them packed.
template <template <class> class Road, class T>
std::size_t scratch_of(const sdk::Call& call) {
  return packed_bytes<Road, T>(call) + Road<T>(call).scratch(call);
}

template <template <class> class Road>
std::size_t scratch(const sdk::Call& call) {
  return call.inputs[0].dtype == TENON_DTYPE_F64 ? scratch_of<Road, double>(call) : scratch_of<Road, float>(call);
}

template <template <class> class Road>
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  if (input != weights) return 0;
  return call.inputs[0].dtype == TENON_DTYPE_F64 ? packed_bytes<Road, double>(call) : packed_bytes<Road, float>(call);
}

template <template <class> class Road>
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  if (call.inputs[0].dtype == TENON_DTYPE_F64) {
    Road<double>(call).pack(call.host, call.input<double>(weights), static_cast<double*>(out_packed));
  } else {
    Road<float>(call).pack(call.host, call.input<float>(weights), static_cast<float*>(out_packed));
  }
}

template <template <class> class Road, class T>
void run(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Road<T> road(call);
  const T* packed = call.packed == nullptr ? nullptr : static_cast<const T*>(call.packed[weights]);
  char* scratch = static_cast<char*>(call.scratch);
  if (packed == nullptr) {
    T* const own = reinterpret_cast<T*>(scratch);
    road.pack(call.host, call.input<T>(weights), own);
    packed = own;
  }
  road.run(call, packed, scratch + packed_bytes<Road, T>(call));
}

template <class T>
void conv(const sdk::Call& call) {
  run<Forward, T>(call);
}

template <class T>
void conv_input_grad(const sdk::Call& call) {
  run<InputGrad, T>(call);
}

ConvGeometry weight_grad_geometry(const sdk::Call& call) {
  return conv_geometry(call.inputs[1], call.outputs[0], call.inputs[0], call.attr<tenon_attributes_conv>());
}

std::size_t scratch_of_weight_grad(const sdk::Call& call) {
  const ConvGeometry g = weight_grad_geometry(call);
  const std::size_t element_size = call.inputs[0].dtype == TENON_DTYPE_F64 ? sizeof(double) : sizeof(float);
  return false ? depthwise_weight_grad_scratch(g, call, element_size) : weight_grad_scratch(g, call, element_size);
}

template <class T>
void conv_weight_grad(const sdk::Call& call) {
  const ConvGeometry g = weight_grad_geometry(call);
  if (call.outputs[0].count == 0) return;
  if (false) {
    depthwise_weight_grad(g, call, call.input<T>(0), call.input<T>(1), call.output<T>(0));
  } else {
    weight_grad<T>(g, call);
  }
}

constexpr sdk::Traits conv_traits{.epilogue = true,
                                  .residual = true,
                                  .channels_last = {.inputs = 1, .outputs = 1},
                                  .scratch = scratch<Forward>,
                                  .pack_size = pack_size<Forward>,
                                  .pack = pack<Forward>};
constexpr sdk::Traits input_grad_traits{.channels_last = {.inputs = 1, .outputs = 1},
                                        .scratch = scratch<InputGrad>,
                                        .pack_size = pack_size<InputGrad>,
                                        .pack = pack<InputGrad>};
constexpr sdk::Traits weight_grad_traits{.channels_last = {.inputs = 3}, .scratch = scratch_of_weight_grad};

}  // namespace

TENON_KERNEL_WITH(conv, conv_traits, float, double)
TENON_KERNEL_WITH(conv_input_grad, input_grad_traits, float, double)
TENON_KERNEL_WITH(conv_weight_grad, weight_grad_traits, float, double)

}  // namespace tenon::openblas
