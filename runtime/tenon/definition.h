// tenon/definition.h - models and training runs as plain data: what model.yaml and train.yaml say, and what C++ code may say itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/config.h>
#include <tenon/dtype.h>

namespace tenon {

/// Whose defaults are taken where a definition says nothing. `none`: the project's own.
enum class Preset { none, keras, torch, gorgonia };
/// As YAML has it.
const char* name_of(Preset preset);

/// How a parameter starts. Glorot: n1 + n2 of its first two dimensions, times what further dimensions span (a kernel's window). fan_in: the
/// numbers that one sum of the layer reads: features of a dense layer, channels of a group times the window of a convolution.
/// Source  Glorot and Bengio (2010), He et al. (2015), LeCun et al. (1998), Saxe et al. (2014) for orthogonal.
struct Initializer {
  /// Which one it is; the other fields that matter follow from it.
  enum class Kind {
    zeros,
    ones,
    constant,          ///< value
    uniform,           ///< in [low, high)
    normal,            ///< mean, stddev
    truncated_normal,  ///< mean, stddev of the normal distribution that is cut 2 stddev from its mean, as Keras has it
    glorot_uniform,    ///< within gain * sqrt(6 / ((n1 + n2) * window))
    glorot_normal,     ///< stddev gain * sqrt(2 / ((n1 + n2) * window))
    he_uniform,        ///< within gain * sqrt(6 / fan_in)
    he_normal,         ///< stddev gain * sqrt(2 / fan_in)
    lecun_uniform,     ///< within gain * sqrt(3 / fan_in)
    lecun_normal,      ///< stddev gain * sqrt(1 / fan_in)
    fan_in_uniform,    ///< within gain / sqrt(fan_in) of the layer's kernel: PyTorch's start of kernels and biases
    orthogonal,        ///< gain times a matrix (first dimension, the rest) with orthonormal rows or columns, whichever are fewer
    identity,          ///< gain on the diagonal of a matrix
  };
  Kind kind = Kind::glorot_uniform;
  double gain = 1;
  double value = 0;
  double low = -0.05;
  double high = 0.05;
  double mean = 0;
  double stddev = 0.05;
  /// Of glorot_normal, he_normal and lecun_normal: cut at 2 deviations of a wider normal distribution, so that the deviation is the one
  /// stated. What Keras does.
  bool truncated = false;
};
/// As YAML has it.
const char* name_of(Initializer::Kind kind);

/// What a layer does to its sums.
enum class Activation { linear, relu, sigmoid, tanh, softmax, log_softmax, relu6, leaky_relu, elu, softplus, mish, gelu, silu };
/// As YAML has it.
const char* name_of(Activation activation);
/// True of those that LayerDefinition::alpha means something to.
bool takes_alpha(Activation activation);

/// What slides over the spatial dimensions of images (batch, channels, d...): kernels of convolutions, windows of pools. Lists have one
/// entry per spatial dimension; an empty one is what stands behind it.
struct WindowDefinition {
  std::vector<std::int64_t> size;                              ///< of the kernel or window; adaptive_average_pool: of the result
  std::vector<std::int64_t> strides;                           ///< convolutions: 1; pools: size
  std::vector<std::int64_t> dilation;                          ///< 1
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;  ///< (before, after): 0
  std::vector<std::int64_t> output_padding;                    ///< conv2d_transpose: 0
  bool same = false;                                           ///< in place of padding: ceil(d / stride) results
  bool ceil_mode = false;                                      ///< pools: a last window that is cut short counts
  bool count_include_pad = true;                               ///< average pools: padding counts as zeros
  std::int64_t groups = 1;                                     ///< of convolutions
};

/// What normalising layers may be told.
struct NormDefinition {
  double momentum = 0.1;  ///< batch_norm: running = (1 - momentum) running + momentum batch
  double epsilon = 1e-5;
  std::optional<std::int64_t> axis;  ///< batch_norm: of the channels, else 1 (preset keras: the last of what is no image); layer_norm and
                                     ///< rms_norm: the first that is normalised, else -1
  bool per_activation = false;       ///< batch_norm: every element of a sample has statistics of its own
  bool biased = false;               ///< batch_norm: running variance without n / (n - 1)
  bool channels_last = false;        ///< batch_norm, preset keras: without `axis`, that of what is no image is the last
  std::int64_t groups = 1;           ///< group_norm
  bool scale = true;                 ///< a factor per channel, which starts as gamma_initializer says
  bool center = true;                ///< and a summand, as beta_initializer does
  Initializer gamma_initializer{.kind = Initializer::Kind::ones};
  Initializer beta_initializer{.kind = Initializer::Kind::zeros};
  std::int64_t size = 5;  ///< lrn: neighbouring channels
  double alpha = 1e-4;    ///< lrn
  double beta = 0.75;     ///< lrn
  double bias = 1;        ///< lrn
};

/// What layers that read (batch, time, features) may be told.
struct SequenceDefinition {
  std::int64_t num_layers = 1;      ///< on top of each other
  bool bidirectional = false;       ///< a second one from the end to the beginning, its results behind those of the first
  double dropout = 0;               ///< between layers, in training
  double forget_bias = 0;           ///< lstm: where the bias of the forget gate starts
  bool return_sequences = false;    ///< the results of all steps instead of the last
  bool linear_before_reset = true;  ///< gru: the reset gate behind the product, as PyTorch, cuDNN and Keras have it
  bool relu = false;                ///< rnn: relu in place of tanh
  Initializer recurrent_initializer{.kind = Initializer::Kind::orthogonal};
  std::int64_t heads = 1;  ///< attention
  bool causal = false;     ///< attention: no step sees a later one
};

/// One layer. The functions below make them; model.yaml lists them.
struct LayerDefinition {
  /// Which one it is; the other fields that matter follow from it.
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
  std::string name;        ///< "": the builder numbers them (dense, dense_1)
  std::string device;      ///< "": where the model runs
  std::int64_t units = 0;  ///< features or, of convolutions and pad_channels, channels of the result; depthwise_conv2d: per channel of x
  Activation activation = Activation::linear;  ///< behind the sums of dense, convolutions and residual; what Kind::activation is
  std::optional<double> alpha;                 ///< of leaky_relu (else 0.01) and elu (else 1)
  bool bias = true;
  Initializer kernel_initializer;
  Initializer bias_initializer{.kind = Initializer::Kind::zeros};
  double kernel_l1 = 0;  ///< added to the loss: kernel_l1 * sum |w|
  double kernel_l2 = 0;  ///< and kernel_l2 * sum w^2
  double dropout_p = 0;
  std::int64_t rows = 0;  ///< of embedding: numbers 0 to rows - 1 have a vector
  std::int64_t dim = 0;   ///< of `dim` elements each
  Initializer embedding_initializer{.kind = Initializer::Kind::uniform};
  std::vector<std::int64_t> shape;  ///< reshape: of a sample; one may be -1
  WindowDefinition window;
  bool bilinear = false;  ///< upsample2d: between the centres of pixels; else the nearest
  NormDefinition norm;
  SequenceDefinition sequence;
  std::vector<std::vector<LayerDefinition>>
      parts;          ///< residual: body and shortcut, whose sum it is; branches: side by side in the channels
  std::string where;  ///< "model.yaml:9:5: layers[2] dense" if it came from a file: how messages call it

  /// Throws Error "<where or name>: <reason>".
  [[noreturn]] void fail(const std::string& reason) const;
};
/// As YAML has it.
const char* name_of(LayerDefinition::Kind kind);

namespace layers {
/// The layer of that name, as model.yaml has it.
LayerDefinition flatten();
/// The layer of that name, as model.yaml has it.
LayerDefinition reshape(std::vector<std::int64_t> shape);
/// The layer of that name, as model.yaml has it.
LayerDefinition dense(std::int64_t units, Activation activation = Activation::linear, bool bias = true);
/// The layer of that name, as model.yaml has it.
LayerDefinition dropout(double p);
/// The layer of that name, as model.yaml has it.
LayerDefinition activation(Activation activation, std::optional<double> alpha = {});
/// The layer of that name, as model.yaml has it.
LayerDefinition embedding(std::int64_t rows, std::int64_t dim);
/// The layer of that name, as model.yaml has it; sizes, strides and padding alike in both directions.
LayerDefinition conv1d(std::int64_t filters, std::int64_t kernel_size, std::int64_t strides = 1, std::int64_t padding = 0);
LayerDefinition conv2d(std::int64_t filters, std::int64_t kernel_size, std::int64_t strides = 1, std::int64_t padding = 0);
LayerDefinition max_pool2d(std::int64_t pool_size, std::int64_t strides = 0, std::int64_t padding = 0);
LayerDefinition average_pool2d(std::int64_t pool_size, std::int64_t strides = 0, std::int64_t padding = 0);
LayerDefinition global_average_pool();
LayerDefinition batch_norm(double momentum = 0.1, double epsilon = 1e-5);
LayerDefinition layer_norm(double epsilon = 1e-5);
LayerDefinition lstm(std::int64_t units, bool return_sequences = false);
LayerDefinition gru(std::int64_t units, bool return_sequences = false);
LayerDefinition rnn(std::int64_t units, bool return_sequences = false);
/// body(x) + shortcut(x), then the activation; an empty list is the identity.
LayerDefinition residual(std::vector<LayerDefinition> body, std::vector<LayerDefinition> shortcut = {},
                         Activation activation = Activation::linear);
/// What the lists make of x, one behind the other in the channels.
LayerDefinition branches(std::vector<std::vector<LayerDefinition>> parts);
}  // namespace layers

/// How a model is made small, so that slow backends may train it beside fast ones: at most 1 GFLOP a step. `set` holds keys and values as
/// `--set model.<key>` takes them.
struct ConformanceCut {
  std::int64_t batch_size = 2;
  double width = 1;  ///< every layer but the last keeps this part of its units, channels and groups of them
  std::vector<std::pair<std::string, std::string>> set;
};

/// A model: layers, and what they start from.
struct ModelDefinition {
  std::string name;
  std::optional<std::vector<std::int64_t>> input_shape;  ///< without the batch axis; nothing: taken from the first batch
  DType input_dtype = DType::f32;
  DType dtype = DType::f32;  ///< of the parameters: f32 or f64
  Preset preset = Preset::none;
  std::vector<LayerDefinition> layers;  ///< at least one
  std::optional<ConformanceCut> conformance;
  std::string file;  ///< where it came from; "" for a text
};

/// Means over the batch. Cross-entropies take probabilities, or scores with from_logits.
enum class Loss {
  sparse_categorical_crossentropy,  ///< labels
  categorical_crossentropy,         ///< targets of one value per class
  binary_crossentropy,              ///< targets 0 or 1, of the output's shape
  nll,                              ///< labels; the output is logarithms of probabilities, as log_softmax gives them
  mse,                              ///< (y - t)^2
  half_mse,                         ///< Caffe's: half the squared distance of each sample
  mae,                              ///< |y - t|
  huber,                            ///< e^2 / 2 within delta, delta (|e| - delta / 2) beyond
  neg_mean_prod,                    ///< -y t: Gorgonia's examples
};
/// As YAML has it.
const char* name_of(Loss loss);

/// The loss of a training run.
struct LossDefinition {
  Loss loss = Loss::mse;
  bool from_logits = false;                  ///< cross-entropies: the output is scores instead of probabilities
  std::optional<std::int64_t> ignore_index;  ///< sparse_categorical_crossentropy: this label counts for nothing
  double delta = 1;                          ///< huber: the error at which the parabola becomes a line; > 0
  std::string where;
};

/// Learning rates that change as training goes on. t counts steps (or epochs) from 0, after the warm-up; r is the initial rate.
///
///   constant     r
///   step         r * factor ^ floor(t / every)
///   exponential  r * factor ^ (t / every)
///   cosine       minimum + (r - minimum) * (1 + cos(pi * min(t, length) / length)) / 2
///   inv          r * (1 + gamma * t) ^ -power
///
/// Before any of them, for t in [0, warmup) of the run: r * (warmup_from + (1 - warmup_from) * (t + 1) / warmup).
/// Source  Loshchilov and Hutter (2017) for cosine, Goyal et al. (2017) for the warm-up, Caffe's solver for inv.
struct Schedule {
  /// Which one it is; the other fields that matter follow from it.
  enum class Kind { constant, step, exponential, cosine, inv };
  /// What the schedule counts.
  enum class Per { step, epoch };
  Kind kind = Kind::constant;
  Per per = Per::step;  ///< what t, every, length and warmup count
  double factor = 0.1;
  std::int64_t every = 1;
  std::int64_t length = 0;  ///< cosine; 0: to the end of the fit
  double minimum = 0;
  double gamma = 1e-4;
  double power = 0.75;
  std::int64_t warmup = 0;
  double warmup_from = 0;  ///< part of the initial rate

  /// The rate at `now` (steps or epochs finished since training began). `total`: how long the fit is, for a length of 0.
  /// Errors  a cosine without length or total.
  double at(double initial, std::int64_t now, std::int64_t total = 0) const;
};
/// As YAML has it.
const char* name_of(Schedule::Kind kind);

/// What is done to gradients before the optimizer sees them, in this order; nothing where absent. `norm` is the root of the sum of squares.
struct Clipping {
  std::optional<double> value = {};        ///< each element to [-value, value]
  std::optional<double> norm = {};         ///< each parameter's gradient g to g * norm / max(norm, |g|)
  std::optional<double> global_norm = {};  ///< the same with |g| over all parameters together
};

/// Defaults by preset (rows G06-G08):
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
  /// Which one it is; the other fields that matter follow from it.
  enum class Kind { adam, adamw, amsgrad, sgd, rmsprop, adagrad, adadelta };
  Kind kind = Kind::adam;
  Preset preset = Preset::none;
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool amsgrad = false;  ///< adam, adamw: the largest mean square yet in the place of the present one; Kind::amsgrad is adam with it
  bool epsilon_outside_root = false;  ///< rmsprop: g / (sqrt(v) + epsilon) instead of g / sqrt(v + epsilon)
  double rho = 0.999;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;         ///< sgd, adagrad, adadelta: added to the gradient; adamw: decoupled
  double initial_accumulator = 0;  ///< adagrad: what the sum of squares starts from
  Schedule schedule;               ///< of the learning rate, which is where it starts
  Clipping clip;
  std::string where;
};
/// As YAML has it.
const char* name_of(OptimizerDefinition::Kind kind);

/// What is counted beside the loss.
enum class Metric {
  accuracy,                     ///< the one of the next three that suits the loss
  sparse_categorical_accuracy,  ///< labels: the largest score is the label's
  categorical_accuracy,         ///< targets of one value per class: the largest score is where the largest target is
  binary_accuracy,              ///< one score: above 0.5 (from logits: 0) where the target is
  top_k,                        ///< fewer than k scores are above the right class's
  perplexity,                   ///< exp of the mean cross-entropy
  mse,                          ///< mean of (y - t)^2
  mae,                          ///< mean of |y - t|
};
/// As YAML has it.
const char* name_of(Metric metric);

/// A number that is shown beside the loss.
struct MetricDefinition {
  Metric metric = Metric::accuracy;
  std::int64_t k = 5;  ///< of top_k

  /// Of a metric; `top` is that of top-k accuracy.
  MetricDefinition(Metric metric_kind, std::int64_t top = 5) : metric(metric_kind), k(top) {}
  /// What logs call it: "accuracy", "top_5_accuracy".
  std::string name() const;
  bool operator==(const MetricDefinition&) const = default;
};

}  // namespace tenon
