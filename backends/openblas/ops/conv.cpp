// SPDX-License-Identifier: Apache-2.0
// ops/conv.cpp - the choice of algorithm for convolutions and their gradients, the packing of weights, and scratch memory.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "conv/conv_bias.h"
#include "conv/conv_chain.h"
#include "conv/conv_depthwise.h"
#include "conv/conv_depthwise_tiles.h"
#include "conv/conv_direct.h"
#include "conv/conv_direct_forms.h"
#include "conv/conv_few_channels.h"
#include "conv/conv_geometry.h"
#include "conv/conv_weight_grad.h"
#include "conv/conv_winograd.h"
#include "conv/direct_cost.h"
#include "conv/winograd_choice.h"
#include "conv/winograd_operands.h"
#include "conv/winograd_weights.h"
#include "gemm/product_types.h"

namespace tenon::openblas {
namespace {

// The operand that is packed, for both conv and conv_input_grad.
constexpr std::uint32_t weights = 1;

enum class Algorithm { depthwise, winograd, direct, few_channels };

std::string name_of(Algorithm algorithm) {
  static constexpr const char* names[] = {"depthwise", "winograd", "direct", "few channels"};
  return names[static_cast<std::size_t>(algorithm)];
}

template <class T>
Algorithm algorithm_of(const ConvGeometry& g, const WinogradConv& winograd, const sdk::Host& host) {
  if (g.depthwise()) return Algorithm::depthwise;
  return winograd_pays(winograd, direct_cost<T>(host)) ? Algorithm::winograd : Algorithm::direct;
}

bool reads_graph_layout(const sdk::Call& call) {
  return is_of_few_channels(call.inputs[0].dtype, call.inputs[weights], call.attr<tenon_attributes_conv>());
}

/// y = epilogue(conv(x, w) + b)
template <class T>
class Forward {
 public:
  explicit Forward(const sdk::Call& call)
      : g_(conv_geometry(call.inputs[0], call.inputs[1], call.outputs[0], call.attr<tenon_attributes_conv>(), !reads_graph_layout(call))),
        direct_(forward_conv(g_)),
        winograd_(winograd_forward(g_)),
        algorithm_(reads_graph_layout(call) ? Algorithm::few_channels : algorithm_of<T>(g_, winograd_, call.host)) {
    direct_.scales = call.has_input(sdk::conv_input::scale);
  }

  /// A 1x1 convolution without strides, which multiplies pixels as they are.
  bool is_pointwise() const { return algorithm_ == Algorithm::direct && reads_pixels(direct_) && !g_.empty(); }
  /// A depthwise one by tiles.
  bool is_tiled_depthwise() const { return algorithm_ == Algorithm::depthwise && depthwise_tiles_fit(g_) && !g_.empty(); }

  std::size_t packed_bytes() const {
    if (algorithm_ == Algorithm::depthwise) return scratch_bytes(g_.weights(), sizeof(T));
    if (algorithm_ == Algorithm::few_channels) return scratch_bytes(few_channels_weight_elements<Single>(g_), sizeof(T));
    if (algorithm_ == Algorithm::winograd) return scratch_bytes(winograd_weight_elements(winograd_), sizeof(float));
    return scratch_bytes(direct_panel_elements<T>(direct_), sizeof(T));
  }

  std::string form(const sdk::Host& host) const {
    if (algorithm_ == Algorithm::winograd) return winograd_packing_key(winograd_);
    return algorithm_ == Algorithm::direct ? forward_form(g_, host) : name_of(algorithm_);
  }

  void pack(const sdk::Host& host, const T* w, void* out_packed) const {
    T* const out = static_cast<T*>(out_packed);
    if (algorithm_ == Algorithm::depthwise) return depthwise_weights(g_, w, out);
    if constexpr (std::is_same_v<T, Single>) {
      if (algorithm_ == Algorithm::few_channels) return few_channels_weights(g_, w, out);
      if (algorithm_ == Algorithm::winograd) {
        return winograd_weights(winograd_, host, w, g_.taps(), g_.taps() * g_.channels, false, static_cast<float*>(out_packed));
      }
    }
    pack_forward(g_, host, w, out);
  }

  /// Scratch memory in addition to the packed weights: the sum of two biases, and the algorithm's own scratch memory.
  std::size_t scratch(const sdk::Call& call) const {
    std::size_t bytes = scratch_bytes(g_.out_channels, sizeof(T));
    if (call.has_output(1)) bytes += depthwise_means_scratch(g_);
    if (algorithm_ == Algorithm::winograd) bytes += winograd_scratch(winograd_, call.host);
    if (algorithm_ == Algorithm::direct) bytes += direct_scratch(direct_, call.host, sizeof(T));
    if (algorithm_ == Algorithm::few_channels) bytes += few_channels_scratch<Single>(g_, call.host);
    return bytes;
  }

  void run(const sdk::Call& call, const void* packed_weights, char* scratch) const {
    const T* const packed = static_cast<const T*>(packed_weights);
    const T* const x = call.input<T>(0);
    T* const y = call.output<T>(0);
    const T* const bias = bias_of(call, g_.out_channels, reinterpret_cast<T*>(scratch));
    const T* const residual = call.epilogue.residual == nullptr ? nullptr : call.epilogue.residual->as<const T>();
    scratch += scratch_bytes(g_.out_channels, sizeof(T));
    if (algorithm_ == Algorithm::depthwise) return depthwise_forward(g_, call, x, packed, bias, y, scratch);
    if constexpr (std::is_same_v<T, Single>) {
      if (algorithm_ == Algorithm::few_channels) {
        return few_channels_conv<T>(g_, {x, packed, y, bias, residual, call.epilogue.activation}, call.host, scratch);
      }
      if (algorithm_ == Algorithm::winograd) {
        return winograd_conv<T>(winograd_, {x, static_cast<const float*>(packed_weights), y, bias, residual, call.epilogue.activation},
                                call.host, scratch);
      }
    }
    const T* const scale = direct_.scales ? call.input<T>(sdk::conv_input::scale) : nullptr;
    direct_conv<T>(direct_, {x, packed, y, bias, residual, call.epilogue.activation, scale}, call.host, scratch);
  }

  /// MaxPool of the result, by tiles that have whole windows.
  bool takes_max_pool(const sdk::Epilogue& epilogue, const sdk::Call& pool) const {
    const auto& a = pool.attr<tenon_attributes_window>();
    const sdk::Operand& y = pool.outputs[0];
    if (algorithm_ != Algorithm::winograd || !winograd_pools(winograd_, epilogue) || y.rank != 4) return false;
    if (y.shape[1] != g_.out_height / 2 || y.shape[2] != g_.out_width / 2) return false;
    for (int i = 0; i < 2; ++i) {
      if (a.kernel[i] != 2 || a.strides[i] != 2 || a.dilations[i] != 1 || a.pads_before[i] != 0) return false;
    }
    return true;
  }
  void run_with_max_pool(const sdk::Call& call, const sdk::Call& pool, const void* packed_weights, char* scratch) const {
    const T* const bias = bias_of(call, g_.out_channels, reinterpret_cast<T*>(scratch));
    scratch += scratch_bytes(g_.out_channels, sizeof(T));
    if constexpr (std::is_same_v<T, Single>) {
      WinogradOperands<T> operands{call.input<T>(0), static_cast<const float*>(packed_weights), pool.output<T>(0), bias};
      operands.activation = call.epilogue.activation;
      operands.max_pool = true;
      winograd_conv<T>(winograd_, operands, call.host, scratch);
    }
  }

  const ConvGeometry& geometry() const { return g_; }
  bool has_scale() const { return direct_.scales; }

 private:
  /// T, or any other type where T has neither a convolution of few channels nor Winograd's.
  using Single = std::conditional_t<std::is_same_v<T, double>, float, T>;
  ConvGeometry g_;
  DirectConv direct_;
  WinogradConv winograd_;
  Algorithm algorithm_;
};

/// dx of conv: a convolution of dy with the weights rotated by 180 degrees, or one for each phase of the strides.
template <class T>
class InputGrad {
 public:
  explicit InputGrad(const sdk::Call& call)
      : g_(conv_geometry(call.outputs[0], call.inputs[1], call.inputs[0], call.attr<tenon_attributes_conv>())),
        winograd_(winograd_input_grad(g_)),
        algorithm_(algorithm_of<T>(g_, winograd_, call.host)) {}

  std::size_t packed_bytes() const {
    if (algorithm_ == Algorithm::depthwise) return scratch_bytes(g_.weights(), sizeof(T));
    if (algorithm_ == Algorithm::winograd) return scratch_bytes(winograd_weight_elements(winograd_), sizeof(float));
    return scratch_bytes(input_grad_elements<T>(g_), sizeof(T));
  }

  std::string form(const sdk::Host& host) const {
    if (algorithm_ == Algorithm::winograd) return winograd_packing_key(winograd_);
    return algorithm_ == Algorithm::direct ? input_grad_form(g_, host) : name_of(algorithm_);
  }

  void pack(const sdk::Host& host, const T* w, void* out_packed) const {
    T* const out = static_cast<T*>(out_packed);
    if (algorithm_ == Algorithm::depthwise) return depthwise_weights(g_, w, out);
    if constexpr (!std::is_same_v<T, double>) {
      if (algorithm_ == Algorithm::winograd) {
        return winograd_weights(winograd_, host, w, g_.taps() * g_.channels, g_.taps(), true, static_cast<float*>(out_packed));
      }
    }
    pack_input_grad(g_, host, w, out);
  }

  std::size_t scratch(const sdk::Call& call) const {
    if (algorithm_ == Algorithm::winograd) return winograd_scratch(winograd_, call.host);
    std::size_t bytes = 0;
    if (algorithm_ == Algorithm::depthwise) return bytes;
    for (std::int64_t phase = 0; phase < input_grad_phases(g_); ++phase) {
      bytes = std::max(bytes, direct_scratch(input_grad_conv(g_, phase), call.host, sizeof(T)));
    }
    return bytes;
  }

  void run(const sdk::Call& call, const void* packed_weights, char* scratch) const {
    const T* packed = static_cast<const T*>(packed_weights);
    const T* const dy = call.input<T>(0);
    T* const dx = call.output<T>(0);
    if (algorithm_ == Algorithm::depthwise) return depthwise_input_grad(g_, call, dy, packed, dx);
    if constexpr (!std::is_same_v<T, double>) {
      if (algorithm_ == Algorithm::winograd) {
        return winograd_conv<T>(winograd_, {dy, static_cast<const float*>(packed_weights), dx}, call.host, scratch);
      }
    }
    for (std::int64_t phase = 0; phase < input_grad_phases(g_); ++phase) {
      const DirectConv conv = input_grad_conv(g_, phase);
      direct_conv<T>(conv, {dy, packed, dx}, call.host, scratch);
      packed += direct_panel_elements<T>(conv);
    }
  }

 private:
  ConvGeometry g_;
  WinogradConv winograd_;
  Algorithm algorithm_;
};

/// The weights that were packed ahead of the call; NULL if the call has to pack them into its scratch memory.
const void* packed_weights(const sdk::Call& call) {
  return call.packed == nullptr ? nullptr : call.packed[weights];
}

template <template <class> class Op, class T>
std::size_t scratch_of(const sdk::Call& call) {
  return (packed_weights(call) == nullptr ? Op<T>(call).packed_bytes() : 0) + Op<T>(call).scratch(call);
}

template <template <class> class Op>
std::size_t scratch(const sdk::Call& call) {
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return scratch_of<Op, T>(call); });
}

template <template <class> class Op>
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  if (input != weights) return 0;
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return Op<T>(call).packed_bytes(); });
}

template <template <class> class Op>
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  with_product_type(call.inputs[0].dtype, [&]<class T>(T) { Op<T>(call).pack(call.host, call.input<T>(weights), out_packed); });
}

template <template <class> class Op>
std::string pack_form(const sdk::Call& call, std::uint32_t) {
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return Op<T>(call).form(call.host); });
}

/// A call with its packed weights and the scratch memory after them.
template <template <class> class Op, class T>
struct Prepared {
  explicit Prepared(const sdk::Call& of)
      : call(of), op(of), packed(static_cast<const T*>(packed_weights(of))), scratch(static_cast<char*>(of.scratch)) {
    if (packed != nullptr) return;
    op.pack(call.host, call.input<T>(weights), scratch);
    packed = reinterpret_cast<const T*>(scratch);
    scratch += op.packed_bytes();
  }
  const sdk::Call& call;
  const Op<T> op;
  const T* packed;
  char* scratch;
};

template <template <class> class Op, class T>
void run(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Prepared<Op, T> prepared(call);
  prepared.op.run(call, prepared.packed, prepared.scratch);
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
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) {
    return g.depthwise() ? depthwise_weight_grad_scratch<T>(g) : weight_grad_scratch<T>(g, call);
  });
}

template <class T>
void conv_weight_grad(const sdk::Call& call) {
  const ConvGeometry g = weight_grad_geometry(call);
  if (call.outputs[0].count == 0) return;
  if (g.depthwise()) {
    depthwise_weight_grad(g, call, call.input<T>(0), call.input<T>(1), call.output<T>(0));
  } else {
    weight_grad<T>(g, call);
  }
}

std::uint32_t images_in_graph_layout(const sdk::Call& call) {
  return reads_graph_layout(call) ? 1 : 0;
}

bool takes_scale(const sdk::Call& call) {
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return Forward<T>(call).is_pointwise(); });
}
/// Sums of f64 are those of ReduceMean only by its compensated additions, which the tiles have no time for.
bool computes_means(const sdk::Call& call) {
  if (call.inputs[0].dtype == TENON_DTYPE_F64) return false;
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return Forward<T>(call).is_tiled_depthwise(); });
}

bool is_max_pool(const sdk::Call& call) {
  return call.input_count == 1;
}
/// A convolution and the MaxPool of its result.
template <class T>
bool pools(const sdk::Call* calls, std::uint32_t count) {
  return count == 2 && Forward<T>(calls[0]).takes_max_pool(calls[0].epilogue, calls[1]);
}

/// The sizes of 1x1 and depthwise, or either with a 1x1 after it; none for other convolutions.
template <class T>
std::optional<ChainSizes> chain_sizes(const sdk::Call* calls, std::uint32_t count) {
  ChainSizes sizes;
  sizes.element_size = sizeof(T);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Forward<T> op(calls[i]);
    const bool last = i + 1 == count;
    if (op.has_scale() || (!last && calls[i].epilogue.residual != nullptr)) return {};
    if (op.is_tiled_depthwise()) {
      if (sizes.depthwise.channels != 0 || calls[i].epilogue.residual != nullptr) return {};
      sizes.depthwise = op.geometry();
    } else if (!op.is_pointwise()) {
      return {};
    } else if (i == 0) {
      sizes.in_channels = op.geometry().channels;
    } else if (last && sizes.depthwise.channels != 0) {
      sizes.out_channels = op.geometry().out_channels;
    } else {
      return {};
    }
  }
  if (sizes.depthwise.channels == 0) return {};
  return sizes;
}

template <class T>
PointwiseStage<T> pointwise_stage(const Prepared<Forward, T>& of) {
  PointwiseStage<T> stage;
  stage.channels = of.op.geometry().channels;
  stage.out_channels = of.op.geometry().out_channels;
  stage.operands.x = of.call.template input<T>(0);
  stage.operands.panels = of.packed;
  stage.operands.y = of.call.template output<T>(0);
  stage.operands.bias = bias_of(of.call, stage.out_channels, reinterpret_cast<T*>(of.scratch));
  if (of.call.epilogue.residual != nullptr) stage.operands.residual = of.call.epilogue.residual->template as<const T>();
  stage.operands.activation = of.call.epilogue.activation;
  return stage;
}

template <class T>
void run_convolutions(const sdk::Call* calls, std::uint32_t count) {
  if (is_max_pool(calls[count - 1])) {
    const Prepared<Forward, T> prepared(calls[0]);
    return prepared.op.run_with_max_pool(calls[0], calls[1], prepared.packed, prepared.scratch);
  }
  const std::uint32_t middle = Forward<T>(calls[0]).geometry().depthwise() ? 0 : 1;
  const Prepared<Forward, T> depthwise(calls[middle]);
  std::optional<PointwiseStage<T>> expand, project;
  if (middle == 1) expand = pointwise_stage<T>(Prepared<Forward, T>(calls[0]));
  if (middle + 1 < count) project = pointwise_stage<T>(Prepared<Forward, T>(calls[middle + 1]));
  ConvChain<T> chain;
  if (expand) chain.expand = &*expand;
  if (project) chain.project = &*project;
  chain.depthwise = depthwise.op.geometry();
  chain.x = depthwise.call.template input<T>(0);
  chain.w = depthwise.packed;
  chain.bias = bias_of(depthwise.call, chain.depthwise.channels, reinterpret_cast<T*>(depthwise.scratch));
  chain.y = depthwise.call.template output<T>(0);
  chain.activation = depthwise.call.epilogue.activation;
  chain.call = &depthwise.call;
  chain.means_scratch = depthwise.scratch + scratch_bytes(chain.depthwise.channels, sizeof(T));
  conv_chain(chain, calls[0].host);
}

std::optional<ChainSizes> chain_sizes(const sdk::Call* calls, std::uint32_t count) {
  return with_product_type(calls[0].inputs[0].dtype, [&]<class T>(T) { return chain_sizes<T>(calls, count); });
}
bool forms_chain(const sdk::Call* calls, std::uint32_t count) {
  if (is_max_pool(calls[count - 1])) {
    return with_product_type(calls[0].inputs[0].dtype, [&]<class T>(T) { return pools<T>(calls, count); });
  }
  const std::optional<ChainSizes> sizes = chain_sizes(calls, count);
  return sizes && chain_pays(*sizes, calls[0].host);
}
std::size_t chain_result_size(const sdk::Call* calls, std::uint32_t count, std::uint32_t i) {
  if (is_max_pool(calls[count - 1])) return 0;  // the pool's operand is not stored
  const ChainSizes sizes = *chain_sizes(calls, count);
  const ChainMemory memory = chain_memory(sizes, calls[0].host);
  return i == 0 && sizes.in_channels != 0 ? memory.lines : memory.rows;
}
void run_convolutions(const sdk::Call* calls, std::uint32_t count) {
  with_product_type(calls[0].inputs[0].dtype, [&]<class T>(T) { run_convolutions<T>(calls, count); });
}

constexpr sdk::Traits conv_traits{.epilogue = true,
                                  .residual = true,
                                  .activations = sdk::all_activations,
                                  .channels_last = {.inputs = 1, .outputs = 1},
                                  .graph_layout_inputs = images_in_graph_layout,
                                  .scratch = scratch<Forward>,
                                  .pack_size = pack_size<Forward>,
                                  .pack = pack<Forward>,
                                  .pack_form = pack_form<Forward>,
                                  .scaled_input = takes_scale,
                                  .pixel_means = computes_means,
                                  .chains = forms_chain,
                                  .run_chain = run_convolutions,
                                  .chain_result_size = chain_result_size,
                                  .chains_max_pool = true};
constexpr sdk::Traits input_grad_traits{.channels_last = {.inputs = 1, .outputs = 1},
                                        .scratch = scratch<InputGrad>,
                                        .pack_size = pack_size<InputGrad>,
                                        .pack = pack<InputGrad>,
                                        .pack_form = pack_form<InputGrad>};
constexpr sdk::Traits weight_grad_traits{.channels_last = {.inputs = 3}, .scratch = scratch_of_weight_grad};

}  // namespace

TENON_KERNEL_WITH(conv, conv_traits, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(conv_input_grad, input_grad_traits, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(conv_weight_grad, weight_grad_traits, sdk::BFloat16, float, double)

}  // namespace tenon::openblas
