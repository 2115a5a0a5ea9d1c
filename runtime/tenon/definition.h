// SPDX-License-Identifier: Apache-2.0
// tenon/definition.h - models and training runs as plain data, as written in model.yaml and
// train.yaml or built in C++.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/config.h>
#include <tenon/dtype.h>
#include <tenon/graph.h>
#include <tenon/layers.h>

namespace tenon {

/// The library whose defaults apply where a definition states none. `none`: the project's own.
enum class Preset { none, keras, torch, gorgonia };
/// The name in YAML.
TENON_API const char* name_of(Preset preset);

/// Reduces a model to at most 1 GFLOP a step, so that slow backends can be compared with fast ones.
/// `set` holds keys and values as for `--set model.<key>`.
struct ConformanceCut {
  std::int64_t batch_size = 2;
  double width = 1;  ///< factor applied to the units and channels of all layers but the last
  std::vector<std::pair<std::string, std::string>> set;
};

/// A model: its layers and input.
struct ModelDefinition {
  std::string name;
  /// without the batch axis; default: that of the first batch
  std::optional<std::vector<std::int64_t>> input_shape;
  /// in place of it, of a model with several inputs, by their names; default: those of the file
  std::map<std::string, std::vector<std::int64_t>> input_shapes;
  DType input_dtype = DType::f32;
  DType dtype = DType::f32;             ///< dtype of the parameters: f32 or f64
  Preset preset = Preset::none;         ///< the defaults of fields of the layers that are not set
  std::vector<LayerDefinition> layers;  ///< at least one
  std::optional<ConformanceCut> conformance;
  std::string file;  ///< the YAML file; empty for text
};

/// Loss functions, averaged over the batch. Cross-entropies take probabilities, or scores if
/// from_logits is set. Labels are 0 to classes - 1, or LossDefinition::ignore_index; any other label
/// is an error.
enum class Loss {
  sparse_categorical_crossentropy,  ///< labels
  categorical_crossentropy,         ///< targets of one value per class
  binary_crossentropy,              ///< targets 0 or 1, of the output's shape
  /// labels; the output is log-probabilities, as from log_softmax
  nll,
  mse,            ///< (y - t)^2
  half_mse,       ///< half the squared distance of each sample, as in Caffe
  mae,            ///< |y - t|
  huber,          ///< e^2 / 2 within delta, delta (|e| - delta / 2) beyond
  neg_mean_prod,  ///< -y t, as in Gorgonia's examples
  /// sum t (log t - log y) over the last axis; targets of one value per class
  kl_divergence,
  /// connectionist temporal classification, ops::ctc_loss: the output is (batch, time, classes), the
  /// targets are labels (batch, n), each row filled up at its end with the blank or negative numbers
  ctc,
  custom,  ///< LossDefinition::function
};
/// The name in YAML.
TENON_API const char* name_of(Loss loss);

/// The loss of a training run.
struct LossDefinition {
  Loss loss = Loss::mse;
  /// cross-entropies: the output is scores instead of probabilities
  bool from_logits = false;
  /// losses of labels: targets with this label are ignored. Unset, none is: PyTorch's default is
  /// -100.
  std::optional<std::int64_t> ignore_index;
  /// huber: the error at which the loss becomes linear; > 0
  double delta = 1;
  /// cross-entropies, kl_divergence: the share of each target, in [0, 1), that is spread evenly over
  /// all classes
  double label_smoothing = 0;
  /// sparse_categorical_crossentropy, categorical_crossentropy: the weight of each class. With
  /// labels, the loss is divided by the sum of the weights of the labels. Empty: 1 each.
  std::vector<double> class_weights;
  /// binary_crossentropy: the weight of targets 1 relative to targets 0
  double positive_weight = 1;
  std::int64_t blank = 0;  ///< ctc: the class that stands for no label
  /// custom: appends the loss to the graph of the output and its targets (floating ones in the dtype
  /// of the output). It returns the losses of the samples, (batch, ...), or their mean as a scalar,
  /// and is called for each program of the model.
  std::function<Value(Value output, Value target)> function = nullptr;
  std::string name = {};  ///< custom: in messages, summaries and checkpoints
  std::string where;

  /// `name` of a custom loss, else the name in YAML.
  TENON_API std::string str() const;
};

/// Learning rate schedules. t counts steps (or epochs) from 0, after the warm-up; r is the initial
/// rate.
///
///   constant     r
///   step         r * factor ^ floor(t / every)
///   exponential  r * factor ^ (t / every)
///   cosine       minimum + (r - minimum) * (1 + cos(pi * min(t, length) / length)) / 2
///   inv          r * (1 + gamma * t) ^ -power
///   one_cycle    half a cosine from r / initial_factor up to r in the first `rise` of the length,
///                then half a cosine down to r / initial_factor / final_factor
///   cyclic       r + (maximum - r) * max(0, 1 - |t / every - 2 c + 1|), c = floor(1 + t / (2 *
///                every)): triangles of 2 * every between r and maximum
///
/// During the warm-up, for t in [0, warmup) of the run: r * (warmup_from + (1 - warmup_from) * (t +
/// 1) / warmup).
/// Source  Loshchilov and Hutter (2017) for cosine, Goyal et al. (2017) for the warm-up, the Caffe
///         solver for inv, Smith and Topin (2018) for one_cycle, Smith (2017) for cyclic. The
///         momentum stays as it is, other than in PyTorch's schedules of these names.
struct TENON_API Schedule {
  /// The formula.
  enum class Kind { constant, step, exponential, cosine, inv, one_cycle, cyclic };
  /// What the schedule counts.
  enum class Per { step, epoch };
  Kind kind = Kind::constant;
  Per per = Per::step;  ///< unit of t, every, length and warmup
  double factor = 0.1;
  std::int64_t every = 1;
  std::int64_t length = 0;  ///< cosine, one_cycle: duration; 0: to the end of the fit
  double minimum = 0;
  double gamma = 1e-4;
  double power = 0.75;
  double maximum = 0;           ///< cyclic: the highest rate
  double rise = 0.3;            ///< one_cycle: fraction of the length in which the rate rises
  double initial_factor = 25;   ///< one_cycle: r by the first rate
  double final_factor = 10000;  ///< one_cycle: the first rate by the last
  std::int64_t warmup = 0;
  double warmup_from = 0;  ///< fraction of the initial rate

  /// The rate after `now` steps or epochs of training. `total` is the duration of the fit, used if
  /// length is 0.
  /// Errors  a cosine or one_cycle without length or total.
  double at(double initial, std::int64_t now, std::int64_t total = 0) const;
};
/// The name in YAML.
TENON_API const char* name_of(Schedule::Kind kind);

/// Gradient clipping, applied before the optimizer in the order of the fields; unset fields do
/// nothing. A norm is the root of the sum of squares.
struct Clipping {
  std::optional<double> value = {};  ///< clamps each element to [-value, value]
  /// scales each parameter's gradient g to g * norm / max(norm, |g|)
  std::optional<double> norm = {};
  std::optional<double> global_norm = {};  ///< the same with |g| over all parameters together
};

/// Options of the optimizer for some of the parameters.
struct ParameterGroup {
  std::string match;                        ///< a glob of parameter names: "*/bias", "conv2d*"
  double learning_rate_factor = 1;          ///< multiplies the scheduled learning rate
  std::optional<double> weight_decay = {};  ///< replaces that of the optimizer
};

/// Optimizer and hyperparameters. Fields that are not set have these defaults, by kind and preset:
///
///                     none              keras    torch           gorgonia
///   adam     epsilon  1e-8              1e-7     1e-8            1e-8
///   amsgrad  as adam
///   adamw    decay    0.01              0.004    0.01            0.01      else as adam
///   rmsprop  rho      0.999             0.9      0.99            0.999
///            epsilon  1e-8 in the root  1e-7 in  1e-8 outside it 1e-8 in
///   adagrad  epsilon  1e-10             1e-7     1e-10           1e-10
///            start    0                 0.1      0               0
///   adadelta rho      0.9               0.95     0.9             0.9
///            epsilon  1e-6              1e-7     1e-6            1e-6
///   nadam    epsilon  1e-8              1e-7     1e-8            1e-8
///   radam    epsilon  1e-8              1e-7     1e-8            1e-8
///
///   adam     learning_rate 0.001, beta1 0.9, beta2 0.999, weight_decay 0
///   sgd      learning_rate 0.01, momentum 0, weight_decay 0
///   rmsprop  learning_rate 0.001 (torch: 0.01), momentum 0, weight_decay 0
///   adagrad  learning_rate 0.01 (keras: 0.001), weight_decay 0
///   adadelta learning_rate 1 (keras: 0.001), weight_decay 0
///   nadam    learning_rate 0.001 (torch: 0.002), otherwise as adam
///   radam    as adam
///
/// Source  Dozat (2016) for nadam, Liu et al. (2020) for radam, both as in PyTorch.
struct OptimizerDefinition {
  /// The algorithm.
  enum class Kind { adam, adamw, amsgrad, sgd, rmsprop, adagrad, adadelta, nadam, radam };
  Kind kind = Kind::adam;
  Preset preset = Preset::none;
  std::optional<double> learning_rate = {};  ///< at least 0
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> epsilon = {};
  /// adam, adamw: use the largest mean square so far; Kind::amsgrad is adam with this set
  bool amsgrad = false;
  /// rmsprop: g / (sqrt(v) + epsilon) instead of g / sqrt(v + epsilon)
  std::optional<bool> epsilon_outside_root = {};
  /// rmsprop: divides by the deviation of the gradients, sqrt(v - mean^2), instead of sqrt(v)
  bool centered = false;
  std::optional<double> rho = {};
  std::optional<double> momentum = {};  ///< sgd, rmsprop
  bool nesterov = false;
  /// adamw: decoupled; all others: weight_decay times the weight is added to the gradient, which is
  /// the gradient of weight_decay / 2 times its square
  std::optional<double> weight_decay = {};
  std::optional<double> initial_accumulator = {};  ///< adagrad: initial sum of squares
  Schedule schedule;                               ///< starts from learning_rate
  Clipping clip;
  std::vector<ParameterGroup> groups;  ///< the first that matches a parameter applies
  std::string where;
};
/// The name in YAML.
TENON_API const char* name_of(OptimizerDefinition::Kind kind);

/// Metrics reported with the loss.
enum class Metric {
  accuracy,                     ///< the one of the next three that matches the loss
  sparse_categorical_accuracy,  ///< labels: the label has the largest score
  /// targets of one value per class: the largest score and the largest target coincide
  categorical_accuracy,
  /// one score: it and the target are on the same side of 0.5 (score from logits: 0)
  binary_accuracy,
  top_k,       ///< fewer than k scores exceed that of the correct class
  perplexity,  ///< exp of the mean cross-entropy
  mse,         ///< mean of (y - t)^2
  mae,         ///< mean of |y - t|
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

/// The loss and the metrics of one output of a model that has several.
struct OutputLoss {
  std::string output;  ///< its name
  LossDefinition loss = {};
  /// the target of the data that it is compared with; empty: the one of the output's name, or the
  /// only one
  std::string target = {};
  double weight = 1;  ///< factor in the sum of losses, at least 0
  std::vector<MetricDefinition> metrics = {};
};

}  // namespace tenon
