// SPDX-License-Identifier: Apache-2.0
// tenon/layers.h - the layers of a model: a struct for each kind, with the fields that it has. The
// names are those of Keras; docs/yaml.md says what each computes, and how model.yaml writes it.
//
//   std::vector<LayerDefinition> net{layers::Flatten{},
//                                    layers::Dense{.units = 64, .activation = Activation::relu},
//                                    layers::Dense{10, Activation::softmax}};
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/api.h>
#include <tenon/vendor_ops.h>

namespace tenon {

/// Initial value of a parameter. Glorot: n1 and n2 are its first two dimensions, `window` is the
/// product of the others (the size of a convolution's kernel). fan_in: the number of inputs of each
/// sum, which is the features of a dense layer, or the channels of a group times the kernel size of
/// a convolution.
/// Source  Glorot and Bengio (2010), He et al. (2015), LeCun et al. (1998), Saxe et
///         al. (2014) for orthogonal.
struct Initializer {
  /// The distribution.
  enum class Kind {
    zeros,
    ones,
    constant,  ///< `value` everywhere
    uniform,   ///< in [low, high)
    normal,    ///< mean, stddev
    /// normal with mean and stddev, truncated at 2 stddev from the mean, as in Keras
    truncated_normal,
    glorot_uniform,  ///< within gain * sqrt(6 / ((n1 + n2) * window))
    glorot_normal,   ///< stddev gain * sqrt(2 / ((n1 + n2) * window))
    he_uniform,      ///< within gain * sqrt(6 / fan_in)
    he_normal,       ///< stddev gain * sqrt(2 / fan_in)
    lecun_uniform,   ///< within gain * sqrt(3 / fan_in)
    lecun_normal,    ///< stddev gain * sqrt(1 / fan_in)
    /// within gain / sqrt(fan_in) of the layer's kernel: PyTorch's default for kernels and biases
    fan_in_uniform,
    /// gain times a matrix (first dimension, the rest) with orthonormal rows or columns, whichever
    /// is fewer
    orthogonal,
    identity,  ///< gain on the diagonal of a matrix
  };
  Kind kind = Kind::glorot_uniform;
  double gain = 1;
  double value = 0;
  double low = -0.05;
  double high = 0.05;
  double mean = 0;
  double stddev = 0.05;
  /// For glorot_normal, he_normal and lecun_normal: sample a wider normal distribution truncated at
  /// 2 deviations, so that the result has the stated deviation. Default: as Keras does with
  /// Preset::keras, else not.
  std::optional<bool> truncated = {};
};
/// The name in YAML.
TENON_API const char* name_of(Initializer::Kind kind);

/// Activation functions.
enum class Activation {
  linear,
  relu,
  sigmoid,
  tanh,
  softmax,
  log_softmax,
  relu6,
  leaky_relu,
  elu,
  softplus,
  mish,
  gelu,
  silu,
  gelu_tanh,   ///< gelu's approximation by tanh
  selu,        ///< 1.0507 elu(x) with alpha 1.67326: mean 0 and variance 1 are kept
  hard_swish,  ///< x relu6(x + 3) / 6
};
/// The name in YAML.
TENON_API const char* name_of(Activation activation);

struct LayerDefinition;

namespace layers {

/// One size for each spatial dimension. A single one stands for all dimensions, none for the
/// default.
struct Sizes {
  std::vector<std::int64_t> values;

  Sizes() = default;
  /// The same size in all dimensions.
  Sizes(std::int64_t all) : values{all} {}
  /// One size for each dimension.
  Sizes(std::initializer_list<std::int64_t> each) : values(each) {}
  bool operator==(const Sizes&) const = default;
};

/// Zeros around an image.
struct Padding {
  /// (before, after) of each spatial dimension; a single pair stands for all dimensions.
  std::vector<std::pair<std::int64_t, std::int64_t>> sides;
  bool fits_stride = false;  ///< instead of `sides`: as much as gives ceil(d / stride) results

  Padding() = default;
  /// The same on all sides.
  Padding(std::int64_t all) : sides{{all, all}} {}
  /// As much as gives ceil(d / stride) results.
  static Padding same() {
    Padding padding;
    padding.fits_stride = true;
    return padding;
  }
};

/// Kernel and bias of a layer: whether it has a bias, their initial values, and what they add to
/// the loss. Initializers that are not set: glorot_uniform and zeros; Preset::torch: fan_in_uniform
/// for both; Preset::gorgonia: glorot_normal and zeros.
struct Weights {
  bool bias = true;
  std::optional<Initializer> kernel_initializer = {};
  std::optional<Initializer> bias_initializer = {};
  double kernel_l1 = 0;  ///< dense layers and convolutions add kernel_l1 * sum |w| to the loss
  double kernel_l2 = 0;  ///< and kernel_l2 * sum w^2
};

/// Factor and summand of a normalisation, one per channel.
struct Affine {
  bool scale = true;
  bool center = true;
  Initializer gamma_initializer = {.kind = Initializer::Kind::ones};  ///< of the factor
  Initializer beta_initializer = {.kind = Initializer::Kind::zeros};  ///< of the summand
};

/// An activation function with its parameter: a layer, or applied to the result of another one.
struct Activation {
  tenon::Activation function = tenon::Activation::linear;
  std::optional<double> alpha;  ///< leaky_relu (default 0.01) and elu (default 1)

  Activation() = default;
  /// A function with its default parameter, or with this one.
  Activation(tenon::Activation name, std::optional<double> parameter = {})
      : function(name), alpha(parameter) {}
  bool operator==(const Activation&) const = default;
};

/// All axes except the batch become one.
struct Flatten {};

/// Gives each sample another shape.
struct Reshape {
  std::vector<std::int64_t> shape = {};  ///< of a sample; one entry may be -1
};

/// Reorders the axes of a sample, which count from 1, as in Keras: {2, 1} makes (batch, features,
/// time) of (batch, time, features), so that a convolution slides over time.
struct Permute {
  std::vector<std::int64_t> order = {};  ///< axis i of the result is axis order[i] of x
};

/// x where x > 0, else a learned slope times x, one slope for each channel or one for all.
struct PReLU {
  double start = 0.25;  ///< initial slopes
  bool shared = false;  ///< one slope for all channels
};

/// Halves the features or channels: the first half times the sigmoid of the second.
struct GLU {};

/// (batch, ..., features) to (batch, ..., units), by one kernel (features, units) for all
/// positions.
struct Dense {
  std::int64_t units = 0;
  Activation activation = {};
  Weights weights = {};
  /// The name of an earlier embedding with as many rows as this layer has units, whose table,
  /// transposed, is this layer's kernel as well. Empty: the layer has a kernel of its own.
  std::string tied = {};
};

/// In training, sets elements to 0 with probability p and scales the others by 1 / (1 - p).
struct Dropout {
  double p = 0;
};

/// A row of a table for each index of x.
struct Embedding {
  std::int64_t rows = 0;  ///< number of vectors, with indices 0 to rows - 1
  std::int64_t dim = 0;   ///< elements per vector
  /// default: uniform within 0.05; Preset::torch: normal with deviation 1
  std::optional<Initializer> initializer = {};
  /// The index of steps that are padding: attention does not attend to them and mean_over_time leaves
  /// them out. Absent: no step is.
  std::optional<std::int64_t> padding_index = {};
};

/// body(x) + shortcut(x), then the activation; an empty list is the identity.
struct Residual {
  std::vector<LayerDefinition> body;
  std::vector<LayerDefinition> shortcut;
  Activation activation = {};
};

/// The results of the lists, each applied to x, concatenated along the channels.
struct Branches {
  std::vector<std::vector<LayerDefinition>> parts;
};

/// Convolution of (batch, channels, d...).
template <int dims>
struct Conv {
  std::int64_t filters = 0;
  Sizes kernel_size = {};
  Sizes strides = {};  ///< default 1
  Padding padding = {};
  Sizes dilation = {};  ///< default 1
  std::int64_t groups = 1;
  Activation activation = {};
  Weights weights = {};
};
using Conv1D = Conv<1>;
using Conv2D = Conv<2>;

/// Convolution of each channel by itself.
struct DepthwiseConv2D {
  std::int64_t multiplier = 1;  ///< channels of the result for each channel of x
  Sizes kernel_size = {};
  Sizes strides = {};  ///< default 1
  Padding padding = {};
  Sizes dilation = {};  ///< default 1
  Activation activation = {};
  Weights weights = {};
};

/// The transpose of a convolution, which enlarges an image.
struct Conv2DTranspose {
  std::int64_t filters = 0;
  Sizes kernel_size = {};
  Sizes strides = {};  ///< default 1
  Padding padding = {};
  Sizes dilation = {};  ///< default 1
  std::int64_t groups = 1;
  Sizes output_padding = {};  ///< default 0
  Activation activation = {};
  Weights weights = {};
};

/// The largest element of each window.
template <int dims>
struct MaxPooling {
  Sizes pool_size = {};
  Sizes strides = {};  ///< default: pool_size
  Padding padding = {};
  bool ceil_mode = false;  ///< include a last, partial window
  Sizes dilation = {};     ///< default 1
};
using MaxPooling1D = MaxPooling<1>;
using MaxPooling2D = MaxPooling<2>;

/// The mean of each window.
template <int dims>
struct AveragePooling {
  Sizes pool_size = {};
  Sizes strides = {};  ///< default: pool_size
  Padding padding = {};
  bool ceil_mode = false;         ///< include a last, partial window
  bool count_include_pad = true;  ///< padding counts as zeros
  /// the sum of a window is divided by this instead of the number of its elements
  std::optional<double> divisor = {};
};
using AveragePooling1D = AveragePooling<1>;
using AveragePooling2D = AveragePooling<2>;

/// (sum |x|^p)^(1/p) of each window; padding counts as zeros.
template <int dims>
struct LPPooling {
  Sizes pool_size = {};
  double p = 2;        ///< at least 1
  Sizes strides = {};  ///< default: pool_size
  Padding padding = {};
  bool ceil_mode = false;  ///< include a last, partial window
};
using LPPooling1D = LPPooling<1>;
using LPPooling2D = LPPooling<2>;

/// The mean of each channel.
struct GlobalAveragePooling {};

/// The largest element of each channel.
struct GlobalMaxPooling {};

/// Means of windows that give a result of this size.
struct AdaptiveAveragePooling {
  Sizes size = {};
};

/// Maxima of windows that give a result of this size.
struct AdaptiveMaxPooling {
  Sizes size = {};
};

/// Enlarges an image by whole factors.
struct UpSampling2D {
  Sizes size = 2;
  bool bilinear = false;  ///< bilinear interpolation between pixel centres instead of nearest
};

/// Appends channels of zeros up to this count.
struct PadChannels {
  std::int64_t channels = 0;
};

/// Normalises each channel over the batch; in evaluation, by running statistics. The default of a
/// field is that of the model's preset, or the second one with Preset::keras.
struct BatchNorm {
  /// running = (1 - momentum) running + momentum batch; default 0.1, or 0.01
  std::optional<double> momentum = {};
  std::optional<double> epsilon = {};     ///< default 1e-5, or 1e-3
  std::optional<std::int64_t> axis = {};  ///< of the channels, default 1
  bool per_activation = false;            ///< each element of a sample has its own statistics
  /// running variance without the factor n / (n - 1); default false, or true
  std::optional<bool> biased = {};
  /// the default axis is the last if x is not an image; default false, or true
  std::optional<bool> channels_last = {};
  Affine affine = {};
};

/// Normalises each sample over its axes from `axis` on.
struct LayerNorm {
  double epsilon = 1e-5;
  std::int64_t axis = -1;
  Affine affine = {};
};

/// Normalises groups of channels of each sample.
struct GroupNorm {
  std::int64_t groups = 1;
  double epsilon = 1e-5;
  Affine affine = {};
};

/// Normalises each channel of each sample.
struct InstanceNorm {
  double epsilon = 1e-5;
  Affine affine = {};
};

/// x / sqrt(mean(x^2) + epsilon) over the axes from `axis` on.
struct RMSNorm {
  double epsilon = 1e-5;
  std::int64_t axis = -1;
  bool scale = true;
  Initializer gamma_initializer = {.kind = Initializer::Kind::ones};
};

/// Local response normalisation, over neighbouring channels.
struct LRN {
  /// number of neighbouring channels; of an even size, one more after the channel than before it, as
  /// in ONNX (PyTorch: one more before it)
  std::int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double bias = 1;
};

/// Parameters of lstm, beyond those of any recurrence.
struct LSTMCell {
  /// initial bias of the forget gate; default 0, with Preset::keras 1
  std::optional<double> forget_bias = {};
};
/// Parameters of gru.
struct GRUCell {
  /// Apply the reset gate after the product, as PyTorch, cuDNN and Keras do.
  bool linear_before_reset = true;
};
/// Parameters of rnn.
struct SimpleRNNCell {
  bool relu = false;  ///< relu instead of tanh
};

/// A recurrence over the steps of (batch, time, features).
template <class Cell>
struct Recurrent {
  std::int64_t units = 0;
  bool return_sequences = false;  ///< return the results of all steps instead of the last
  std::int64_t num_layers = 1;    ///< stacked layers
  bool bidirectional = false;     ///< also run in reverse; concatenated after the forward results
  double dropout = 0;             ///< between layers, in training
  Cell cell = {};
  /// One bias for each gate, as in Keras; PyTorch learns two whose sum counts, which doubles their
  /// rate. A gru with linear_before_reset has two here as well.
  Weights weights = {};
  /// default: orthogonal; Preset::torch: fan_in_uniform
  std::optional<Initializer> recurrent_initializer = {};
};
using LSTM = Recurrent<LSTMCell>;
using GRU = Recurrent<GRUCell>;
using SimpleRNN = Recurrent<SimpleRNNCell>;

/// Attention over the steps of (batch, time, features).
/// Source  Vaswani et al. (2017); Ainslie et al. (2023) for kv_heads, Su et al. (2021) for rotary,
///         Beltagy et al. (2020) for window.
struct Attention {
  std::int64_t heads = 1;
  bool causal = false;  ///< each step attends only to itself and earlier ones
  Weights weights = {};
  /// heads of keys and values, each shared by heads / kv_heads of the queries; 0: as many as heads
  std::int64_t kv_heads = 0;
  /// each step attends only to steps less than this many steps away; 0: to all
  std::int64_t window = 0;
  bool rotary = false;  ///< rotate pairs of features of queries and keys by their steps' positions
  double rotary_base = 10000;  ///< pair i of n rotates by position * rotary_base^(-i / n)
  double dropout = 0;          ///< of the weights of the steps, in training
  /// The name of an earlier layer whose result (batch, steps, features) gives keys and values, which
  /// is cross-attention. Empty: x gives them.
  std::string memory = {};
};

/// x plus a learned vector for each step of (batch, time, features).
struct PositionEmbedding {
  std::int64_t length = 0;                      ///< number of vectors; x may have fewer steps
  std::optional<Initializer> initializer = {};  ///< default: that of Embedding
};

/// x (batch, time, features) plus, in feature 2 i of step t, sin(t / wavelength^(2 i / features)),
/// and in feature 2 i + 1 the cosine of the same angle.
/// Source  Vaswani et al.: Attention Is All You Need (2017), section 3.5.
struct SinusoidalPosition {
  double wavelength = 10000;
};

/// The mean of each feature over the steps of (batch, time, features), without padding.
struct MeanOverTime {};

/// The first result of an op that only some backends have, whose vendors define it: see
/// tenon/vendor_ops.h. It has no gradient: to train a parameter before it is an error.
struct VendorOp {
  std::string op;                   ///< "com.example.SoftClip"
  AttributeValues attributes = {};  ///< those without a default in its schema have to be given
  std::uint32_t version = 0;        ///< 0: the newest that a loaded backend has
};

/// The graph of an ONNX file, or the part of it that computes one of its values: a model, or the body
/// of one. Weights are parameters under their names in the file, after "<layer>/" if the model has
/// other layers; running statistics of batch normalisation are its state. In training steps batch
/// normalisation and dropout do what they do in training, whatever mode the file states. The first
/// axis of input and result is the batch.
struct Onnx {
  std::string file = {};  ///< the path
  /// The value that is the result, and what it does not depend on is left out: any name in the graph.
  /// Empty: the file's output.
  std::string output = {};
  /// In place of `output`, the outputs of a model of this layer alone; empty: all of the file.
  std::vector<std::string> outputs = {};
  /// The input that gets x; empty: those that the outputs depend on, more than one only in a model
  /// of this layer alone.
  std::string input = {};
  /// The elements of the inputs besides it, a number for each input: an attention mask is 1. Their
  /// axes have the sizes that x has by the names of the axes in the file.
  std::map<std::string, double> constants = {};
  /// Globs of names in the file of weights that do not learn; {"*"}: none does.
  std::vector<std::string> frozen = {};
};

/// A layer of any kind. Messages list the kinds in this order.
using Any = std::variant<                                                                //
    Flatten, Dense, Dropout, Activation, PReLU, GLU, Embedding, Reshape, Permute,        //
    Residual, Branches,                                                                  //
    Conv1D, Conv2D, DepthwiseConv2D, Conv2DTranspose,                                    //
    MaxPooling1D, MaxPooling2D, AveragePooling1D, AveragePooling2D,                      //
    LPPooling1D, LPPooling2D,                                                            //
    GlobalAveragePooling, GlobalMaxPooling, AdaptiveAveragePooling, AdaptiveMaxPooling,  //
    UpSampling2D, PadChannels,                                                           //
    BatchNorm, LayerNorm, GroupNorm, InstanceNorm, RMSNorm, LRN,                         //
    LSTM, GRU, SimpleRNN,                                                                //
    Attention, PositionEmbedding, SinusoidalPosition, MeanOverTime,                      //
    VendorOp, Onnx>;

/// The position of L in a variant; the variant's size if L is not in it.
template <class L, class Kinds>
inline constexpr std::size_t index_of = 0;
template <class L, class First, class... Rest>
inline constexpr std::size_t index_of<L, std::variant<First, Rest...>> =
    1 + index_of<L, std::variant<Rest...>>;
template <class L, class... Rest>
inline constexpr std::size_t index_of<L, std::variant<L, Rest...>> = 0;
template <class L>
inline constexpr std::size_t index_of<L, std::variant<>> = 0;
/// A struct of this list.
template <class L>
concept Layer = index_of<L, Any> < std::variant_size_v<Any>;

}  // namespace layers

/// One layer of a model; converts from the structs of namespace layers, and is read from
/// model.yaml.
struct LayerDefinition {
  layers::Any kind;
  std::string name;    ///< empty: generated (dense, dense_1)
  std::string device;  ///< empty: the model's device
  std::string where;   ///< "model.yaml:9:5: layers[2] dense" if read from a file; used in messages

  // Defined in the library: each file that copies a list of layers would otherwise compile the copy
  // of every kind, for seconds.
  TENON_API LayerDefinition();
  /// Copies.
  TENON_API LayerDefinition(const LayerDefinition& other);
  /// Moves.
  TENON_API LayerDefinition(LayerDefinition&& other) noexcept;
  TENON_API LayerDefinition& operator=(const LayerDefinition& other);
  TENON_API LayerDefinition& operator=(LayerDefinition&& other) noexcept;
  TENON_API ~LayerDefinition();
  /// A layer of this kind.
  template <layers::Layer L>
  LayerDefinition(L layer, std::string layer_name = "", std::string layer_device = "")
      : LayerDefinition(&layer, layers::index_of<L, layers::Any>, std::move(layer_name),
                        std::move(layer_device)) {}

  /// The kind's name in YAML.
  TENON_API const char* kind_name() const;
  /// Throws Error "<where or name>: <reason>".
  [[noreturn]] TENON_API void fail(const std::string& reason) const;

 private:
  /// Moves from `layer`, a struct of the kind that Any has at `index`.
  TENON_API LayerDefinition(void* layer, std::size_t index, std::string layer_name,
                            std::string layer_device);
};

}  // namespace tenon
