// SPDX-License-Identifier: Apache-2.0
// tenon/definition.h - models and training runs as plain data, as written in model.yaml and
// train.yaml or built in C++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/config.h>
#include <tenon/dtype.h>

namespace tenon {

/// The library whose defaults apply where a definition states none. `none`: the project's own.
enum class Preset { none, keras, torch, gorgonia };
/// The name in YAML.
TENON_API const char* name_of(Preset preset);

/// Initial value of a parameter. Glorot: n1 and n2 are its first two dimensions, `window` is the
/// product of the others (the size of a convolution's kernel). fan_in: the number of inputs of each
/// sum, which is the features of a dense layer, or the channels of a group times the kernel size of
/// a convolution.
/// Source  Glorot and Bengio (2010), He et al. (2015), LeCun et al. (1998), Saxe et
///         al. (2014) for orthogonal.
struct TENON_API Initializer {
  /// The distribution.
  enum class Kind {
    zeros,
    ones,
    constant,          ///< `value` everywhere
    uniform,           ///< in [low, high)
    normal,            ///< mean, stddev
    truncated_normal,  ///< normal with mean and stddev, truncated at 2 stddev from the mean, as in Keras
    glorot_uniform,    ///< within gain * sqrt(6 / ((n1 + n2) * window))
    glorot_normal,     ///< stddev gain * sqrt(2 / ((n1 + n2) * window))
    he_uniform,        ///< within gain * sqrt(6 / fan_in)
    he_normal,         ///< stddev gain * sqrt(2 / fan_in)
    lecun_uniform,     ///< within gain * sqrt(3 / fan_in)
    lecun_normal,      ///< stddev gain * sqrt(1 / fan_in)
    fan_in_uniform,    ///< within gain / sqrt(fan_in) of the layer's kernel: PyTorch's default for kernels and biases
    orthogonal,        ///< gain times a matrix (first dimension, the rest) with orthonormal rows or columns, whichever is fewer
    identity,          ///< gain on the diagonal of a matrix
  };
  Kind kind = Kind::glorot_uniform;
  double gain = 1;
  double value = 0;
  double low = -0.05;
  double high = 0.05;
  double mean = 0;
  double stddev = 0.05;
  /// For glorot_normal, he_normal and lecun_normal: sample a wider normal distribution truncated at
  /// 2 deviations, so that the result has the stated deviation, as Keras does.
  bool truncated = false;
};
/// The name in YAML.
TENON_API const char* name_of(Initializer::Kind kind);

/// Activation functions.
enum class Activation { linear, relu, sigmoid, tanh, softmax, log_softmax, relu6, leaky_relu, elu, softplus, mish, gelu, silu };
/// The name in YAML.
TENON_API const char* name_of(Activation activation);
/// True if the activation uses LayerDefinition::alpha.
TENON_API bool takes_alpha(Activation activation);

/// Sliding window over the spatial dimensions of images (batch, channels, d...): the kernel of a
/// convolution or the window of a pool. Lists have one entry per spatial dimension; the comments
/// give the default for an empty list.
struct TENON_API WindowDefinition {
  std::vector<std::int64_t> size;                              ///< size of the kernel or window; adaptive_average_pool: of the result
  std::vector<std::int64_t> strides;                           ///< convolutions: 1; pools: size
  std::vector<std::int64_t> dilation;                          ///< 1
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;  ///< (before, after): 0
  std::vector<std::int64_t> output_padding;                    ///< conv2d_transpose: 0
  bool same = false;                                           ///< instead of `padding`: pad for ceil(d / stride) results
  bool ceil_mode = false;                                      ///< pools: include a last, partial window
  bool count_include_pad = true;                               ///< average pools: padding counts as zeros
  std::int64_t groups = 1;                                     ///< convolutions only
};

/// Parameters of normalisation layers.
struct TENON_API NormDefinition {
  double momentum = 0.1;  ///< batch_norm: running = (1 - momentum) running + momentum batch
  double epsilon = 1e-5;
  std::optional<std::int64_t> axis;  ///< batch_norm: the channel axis, default 1 (preset keras: the last if x is not an image);
                                     ///< layer_norm and rms_norm: the first normalised axis, default -1
  bool per_activation = false;       ///< batch_norm: each element of a sample has its own statistics
  bool biased = false;               ///< batch_norm: running variance without the factor n / (n - 1)
  bool channels_last = false;        ///< batch_norm, preset keras: the default `axis` is the last if x is not an image
  std::int64_t groups = 1;           ///< group_norm
  bool scale = true;                 ///< a factor per channel, initialised by gamma_initializer
  bool center = true;                ///< a summand per channel, initialised by beta_initializer
  Initializer gamma_initializer{.kind = Initializer::Kind::ones};
  Initializer beta_initializer{.kind = Initializer::Kind::zeros};
  std::int64_t size = 5;  ///< lrn: number of neighbouring channels
  double alpha = 1e-4;    ///< lrn
  double beta = 0.75;     ///< lrn
  double bias = 1;        ///< lrn
};

/// Parameters of layers on (batch, time, features).
struct TENON_API SequenceDefinition {
  std::int64_t num_layers = 1;      ///< stacked layers
  bool bidirectional = false;       ///< also run in reverse; its results are concatenated after the forward ones
  double dropout = 0;               ///< between layers, in training
  double forget_bias = 0;           ///< lstm: initial bias of the forget gate
  bool return_sequences = false;    ///< return the results of all steps instead of the last
  bool linear_before_reset = true;  ///< gru: apply the reset gate after the product, as PyTorch, cuDNN and Keras do
  bool relu = false;                ///< rnn: relu instead of tanh
  Initializer recurrent_initializer{.kind = Initializer::Kind::orthogonal};
  std::int64_t heads = 1;  ///< attention
  bool causal = false;     ///< attention: each step attends only to itself and earlier ones
};

/// One layer; created by the functions in namespace layers, or read from model.yaml.
struct TENON_API LayerDefinition {
  /// The type of layer, which determines which other fields are used.
  enum class Kind {
    flatten,
    reshape,
    dense,
    dropout,
    activation,
    embedding,
    conv1d,
    conv2d,
    depthwise_conv2d,
    conv2d_transpose,
    max_pool1d,
    max_pool2d,
    average_pool1d,
    average_pool2d,
    global_average_pool,
    global_max_pool,
    adaptive_average_pool,
    upsample2d,
    pad_channels,
    batch_norm,
    layer_norm,
    group_norm,
    instance_norm,
    rms_norm,
    lrn,
    lstm,
    gru,
    rnn,
    attention,
    residual,
    branches
  };
  Kind kind = Kind::flatten;
  std::string name;        ///< empty: generated (dense, dense_1)
  std::string device;      ///< empty: the model's device
  std::int64_t units = 0;  ///< features or channels of the result; depthwise_conv2d: per channel of x
  Activation activation =
      Activation::linear;       ///< applied to the result of dense, convolutions and residual; Kind::activation: the function
  std::optional<double> alpha;  ///< leaky_relu (default 0.01) and elu (default 1)
  bool bias = true;
  Initializer kernel_initializer;
  Initializer bias_initializer{.kind = Initializer::Kind::zeros};
  double kernel_l1 = 0;  ///< added to the loss: kernel_l1 * sum |w|
  double kernel_l2 = 0;  ///< added to the loss: kernel_l2 * sum w^2
  double dropout_p = 0;
  std::int64_t rows = 0;  ///< embedding: number of vectors, with indices 0 to rows - 1
  std::int64_t dim = 0;   ///< embedding: elements per vector
  Initializer embedding_initializer{.kind = Initializer::Kind::uniform};
  std::vector<std::int64_t> shape;  ///< reshape: shape of a sample; one entry may be -1
  WindowDefinition window;
  bool bilinear = false;  ///< upsample2d: bilinear interpolation between pixel centres instead of nearest
  NormDefinition norm;
  SequenceDefinition sequence;
  std::vector<std::vector<LayerDefinition>>
      parts;          ///< residual: body and shortcut, which are added; branches: concatenated along the channels
  std::string where;  ///< "model.yaml:9:5: layers[2] dense" if read from a file; used in messages

  /// Throws Error "<where or name>: <reason>".
  [[noreturn]] void fail(const std::string& reason) const;
};
/// The name in YAML.
TENON_API const char* name_of(LayerDefinition::Kind kind);

namespace layers {
/// The model.yaml layer `flatten`.
TENON_API LayerDefinition flatten();
/// The model.yaml layer `reshape`; `shape` is that of a sample.
TENON_API LayerDefinition reshape(std::vector<std::int64_t> shape);
/// The model.yaml layer `dense`: (batch, ..., features) to (batch, ..., units), by one kernel
/// (features, units) for all positions.
TENON_API LayerDefinition dense(std::int64_t units, Activation activation = Activation::linear, bool bias = true);
/// The model.yaml layer `dropout`.
TENON_API LayerDefinition dropout(double p);
/// The model.yaml layer `activation`.
TENON_API LayerDefinition activation(Activation activation, std::optional<double> alpha = {});
/// The model.yaml layer `embedding`.
TENON_API LayerDefinition embedding(std::int64_t rows, std::int64_t dim);
/// The model.yaml layers of these names; sizes, strides and padding are equal in all spatial
/// dimensions.
TENON_API LayerDefinition conv1d(std::int64_t filters, std::int64_t kernel_size, std::int64_t strides = 1, std::int64_t padding = 0);
TENON_API LayerDefinition conv2d(std::int64_t filters, std::int64_t kernel_size, std::int64_t strides = 1, std::int64_t padding = 0);
TENON_API LayerDefinition max_pool2d(std::int64_t pool_size, std::int64_t strides = 0, std::int64_t padding = 0);
TENON_API LayerDefinition average_pool2d(std::int64_t pool_size, std::int64_t strides = 0, std::int64_t padding = 0);
TENON_API LayerDefinition global_average_pool();
TENON_API LayerDefinition batch_norm(double momentum = 0.1, double epsilon = 1e-5);
TENON_API LayerDefinition layer_norm(double epsilon = 1e-5);
TENON_API LayerDefinition lstm(std::int64_t units, bool return_sequences = false);
TENON_API LayerDefinition gru(std::int64_t units, bool return_sequences = false);
TENON_API LayerDefinition rnn(std::int64_t units, bool return_sequences = false);
/// body(x) + shortcut(x), then the activation; an empty list is the identity.
TENON_API LayerDefinition residual(std::vector<LayerDefinition> body, std::vector<LayerDefinition> shortcut = {},
                                   Activation activation = Activation::linear);
/// The results of the lists, each applied to x, concatenated along the channels.
TENON_API LayerDefinition branches(std::vector<std::vector<LayerDefinition>> parts);
}  // namespace layers

/// Reduces a model to at most 1 GFLOP a step, so that slow backends can be compared with fast ones.
/// `set` holds keys and values as for `--set model.<key>`.
struct ConformanceCut {
  std::int64_t batch_size = 2;
  double width = 1;  ///< factor applied to the units, channels and groups of all layers but the last
  std::vector<std::pair<std::string, std::string>> set;
};

/// A model: its layers and input.
struct ModelDefinition {
  std::string name;
  std::optional<std::vector<std::int64_t>> input_shape;  ///< without the batch axis; default: that of the first batch
  DType input_dtype = DType::f32;
  DType dtype = DType::f32;  ///< dtype of the parameters: f32 or f64
  Preset preset = Preset::none;
  std::vector<LayerDefinition> layers;  ///< at least one
  std::optional<ConformanceCut> conformance;
  std::string file;  ///< the YAML file; empty for text
};

/// Loss functions, averaged over the batch. Cross-entropies take probabilities, or scores if
/// from_logits is set.
enum class Loss {
  sparse_categorical_crossentropy,  ///< labels
  categorical_crossentropy,         ///< targets of one value per class
  binary_crossentropy,              ///< targets 0 or 1, of the output's shape
  nll,                              ///< labels; the output is log-probabilities, as from log_softmax
  mse,                              ///< (y - t)^2
  half_mse,                         ///< half the squared distance of each sample, as in Caffe
  mae,                              ///< |y - t|
  huber,                            ///< e^2 / 2 within delta, delta (|e| - delta / 2) beyond
  neg_mean_prod,                    ///< -y t, as in Gorgonia's examples
};
/// The name in YAML.
TENON_API const char* name_of(Loss loss);

/// The loss of a training run.
struct LossDefinition {
  Loss loss = Loss::mse;
  bool from_logits = false;                  ///< cross-entropies: the output is scores instead of probabilities
  std::optional<std::int64_t> ignore_index;  ///< sparse_categorical_crossentropy: targets with this label are ignored
  double delta = 1;                          ///< huber: the error at which the loss becomes linear; > 0
  std::string where;
};

/// Learning rate schedules. t counts steps (or epochs) from 0, after the warm-up; r is the initial
/// rate.
///
///   constant     r
///   step         r * factor ^ floor(t / every)
///   exponential  r * factor ^ (t / every)
///   cosine       minimum + (r - minimum) * (1 + cos(pi * min(t, length) / length)) / 2
///   inv          r * (1 + gamma * t) ^ -power
///
/// During the warm-up, for t in [0, warmup) of the run: r * (warmup_from + (1 - warmup_from) * (t +
/// 1) / warmup).
/// Source  Loshchilov and Hutter (2017) for cosine, Goyal et al. (2017) for the warm-up, the Caffe
///         solver for inv.
struct TENON_API Schedule {
  /// The formula.
  enum class Kind { constant, step, exponential, cosine, inv };
  /// What the schedule counts.
  enum class Per { step, epoch };
  Kind kind = Kind::constant;
  Per per = Per::step;  ///< unit of t, every, length and warmup
  double factor = 0.1;
  std::int64_t every = 1;
  std::int64_t length = 0;  ///< cosine: duration; 0: to the end of the fit
  double minimum = 0;
  double gamma = 1e-4;
  double power = 0.75;
  std::int64_t warmup = 0;
  double warmup_from = 0;  ///< fraction of the initial rate

  /// The rate after `now` steps or epochs of training. `total` is the duration of the fit, used if
  /// length is 0.
  /// Errors  a cosine without length or total.
  double at(double initial, std::int64_t now, std::int64_t total = 0) const;
};
/// The name in YAML.
TENON_API const char* name_of(Schedule::Kind kind);

/// Gradient clipping, applied before the optimizer in the order of the fields; unset fields do
/// nothing. A norm is the root of the sum of squares.
struct Clipping {
  std::optional<double> value = {};        ///< clamps each element to [-value, value]
  std::optional<double> norm = {};         ///< scales each parameter's gradient g to g * norm / max(norm, |g|)
  std::optional<double> global_norm = {};  ///< the same with |g| over all parameters together
};

/// Optimizer and hyperparameters. Defaults by preset:
///
///                       none              keras     torch             gorgonia
///   adam     epsilon    1e-8              1e-7      1e-8              1e-8        learning_rate 0.001, beta1 0.9, beta2 0.999
///   amsgrad  as adam
///   adamw    decay      0.01              0.004     0.01              0.01        else as adam
///   sgd                                                                           learning_rate 0.01, momentum 0, weight_decay 0
///   rmsprop  rho        0.999             0.9       0.99              0.999
///            epsilon    1e-8 in the root  1e-7 in   1e-8 outside it   1e-8 in     learning_rate 0.001 (torch: 0.01)
///   adagrad  epsilon    1e-10             1e-7      1e-10             1e-10       learning_rate 0.01 (keras: 0.001), weight_decay 0
///            start      0                 0.1       0                 0
///   adadelta rho        0.9               0.95      0.9               0.9         learning_rate 1 (keras: 0.001), weight_decay 0
///            epsilon    1e-6              1e-7      1e-6              1e-6
struct OptimizerDefinition {
  /// The algorithm.
  enum class Kind { adam, adamw, amsgrad, sgd, rmsprop, adagrad, adadelta };
  Kind kind = Kind::adam;
  Preset preset = Preset::none;
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool amsgrad = false;               ///< adam, adamw: use the largest mean square so far; Kind::amsgrad is adam with this set
  bool epsilon_outside_root = false;  ///< rmsprop: g / (sqrt(v) + epsilon) instead of g / sqrt(v + epsilon)
  double rho = 0.999;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;         ///< sgd, adagrad, adadelta: added to the gradient; adamw: decoupled
  double initial_accumulator = 0;  ///< adagrad: initial sum of squares
  Schedule schedule;               ///< starts from learning_rate
  Clipping clip;
  std::string where;
};
/// The name in YAML.
TENON_API const char* name_of(OptimizerDefinition::Kind kind);

/// Metrics reported with the loss.
enum class Metric {
  accuracy,                     ///< the one of the next three that matches the loss
  sparse_categorical_accuracy,  ///< labels: the label has the largest score
  categorical_accuracy,         ///< targets of one value per class: the largest score and the largest target coincide
  binary_accuracy,              ///< one score: it and the target are on the same side of 0.5 (score from logits: 0)
  top_k,                        ///< fewer than k scores exceed that of the correct class
  perplexity,                   ///< exp of the mean cross-entropy
  mse,                          ///< mean of (y - t)^2
  mae,                          ///< mean of |y - t|
};
/// The name in YAML.
TENON_API const char* name_of(Metric metric);

/// A metric with its parameter.
struct TENON_API MetricDefinition {
  Metric metric = Metric::accuracy;
  std::int64_t k = 5;  ///< top_k only

  /// `top` is the k of top_k.
  MetricDefinition(Metric metric_kind, std::int64_t top = 5) : metric(metric_kind), k(top) {}
  /// The name in logs: "accuracy", "top_5_accuracy".
  std::string name() const;
  bool operator==(const MetricDefinition&) const = default;
};

}  // namespace tenon
