// SPDX-License-Identifier: Apache-2.0
// tenon/train_definition.h - training runs as plain data, as written in a train.yaml or built in
// C++. No file of data is opened here.
// Threads  any; a definition is a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/callbacks.h>
#include <tenon/config.h>
#include <tenon/data.h>
#include <tenon/definition.h>
#include <tenon/model.h>
#include <tenon/weights.h>

namespace tenon {

/// Where the samples come from: files of a format, or a generator. The names in YAML are the same.
enum class DataSource {
  mnist,
  fashion_mnist,
  idx,
  cifar10,
  npz,
  images,
  csv,
  tokens,
  text,
  digits,
  linear_regression,
  cifar_like,
  signals,
  ptb_like,
  markov,
  random
};
/// The name in YAML.
TENON_API const char* name_of(DataSource source);

/// Scaling of the samples.
enum class Normalize {
  unit,         ///< x / 255
  gorgonia,     ///< x / 255 * 0.9 + 0.1
  standard,     ///< mean 0, deviation 1 over the training set
  per_channel,  ///< the same for each index of a sample's first axis
  none,         ///< as read
  given,        ///< (x / 255 - mean) / std of bytes, (x - mean) / std of numbers
};
/// The name in YAML; `given`: "mean and std".
TENON_API const char* name_of(Normalize normalize);

/// Where scaled samples are kept: computed anew for each batch, in memory, or in mapped files.
enum class DataCache { none, ram, disk };
/// The name in YAML.
TENON_API const char* name_of(DataCache cache);

/// The data of a training run: the block `data` of a train.yaml.
struct DataDefinition {
  DataSource source = DataSource::mnist;
  /// Absolute; needed by sources that read files, some of which take a single file; empty: not given.
  std::string directory;
  /// empty: unit for bytes, none for numbers
  std::optional<Normalize> normalize = Normalize::unit;
  /// for Normalize::given: one value, or one per channel
  std::vector<double> mean, deviation;
  /// 0: all samples, or the generator's default count
  std::int64_t train_count = 0;
  std::int64_t test_count = 0;  ///< same
  /// for generated data and augmentation; empty: the run's seed
  std::optional<std::uint64_t> seed;
  /// fraction of the training data, taken from its end, in [0, 1)
  double validation_split = 0;
  /// npz, images, csv, tokens, text without a test part: fraction taken from the end
  double test_split = 0;
  std::int64_t features = 3;  ///< linear_regression: inputs
  /// linear_regression: standard deviation of the noise added to y
  double noise = 0.1;
  CsvOptions csv;                   ///< csv; `classes` stays empty
  std::int64_t vocabulary = 10000;  ///< tokens, ptb_like: words
  /// tokens, text, ptb_like, markov: tokens per sample
  std::int64_t sequence = 35;
  std::int64_t symbols = 64;                        ///< markov
  std::vector<std::int64_t> shape = {3, 224, 224};  ///< random: shape of a sample
  std::int64_t classes = 1000;                      ///< random
  ArrayNames input_arrays = {{"x", "x"}};           ///< npz: as in NumpyOptions
  ArrayNames target_arrays = {{"y", "y"}};          ///< npz: likewise
  bool reconstruct = false;                         ///< a sample is its own target
  Targets targets = Targets::as_given;              ///< the form of class labels
  /// an .npy with a weight for each sample of the training part; csv: csv.sample_weight
  std::string sample_weights;
  /// by label; empty: those of the source (folder names, words of a table, the names of known sets)
  std::vector<std::string> class_names;
  ImageOptions image;  ///< images, in training and prediction
  /// `fill` and `seed` are set when the data is loaded
  AugmentOptions augment;
  DataCache cache = DataCache::none;
  std::string cache_directory;  ///< absolute; empty: the user's cache folder
  std::string where;            ///< "train.yaml:5:7"; used in messages
};

/// The block `checkpoint` of a train.yaml.
struct CheckpointDefinition {
  std::string directory;
  std::int64_t every_epochs = 1;
  std::int64_t keep = 1;  ///< number of newest checkpoints to keep; 0: all
  /// replace the checkpoints of another run in the folder, instead of refusing it
  bool overwrite = false;
};

/// Which checkpoint a run starts from: the key `resume` of a train.yaml.
struct ResumeDefinition {
  /// automatic: the newest checkpoint in checkpoint.directory, if there is any.
  enum class Kind { never, automatic, path };
  Kind kind = Kind::never;
  std::string path;  ///< Kind::path: the YAML file of a checkpoint, or a folder of checkpoints
};

/// The lines that `tenon train` prints: as Keras, or as Gorgonia's examples.
enum class LogStyle { keras, gorgonia };
/// The name in YAML.
TENON_API const char* name_of(LogStyle style);

/// A training run. The top level of a train.yaml also takes every key of Config (`seed`,
/// `deterministic`, `device`, `check_numerics`, ...), stored in `config`.
struct TrainDefinition {
  ModelDefinition model;
  std::optional<DataDefinition> data;  ///< nothing: the definition is that of a model.yaml
  LossDefinition loss;                 ///< of the only output
  OptimizerDefinition optimizer;
  std::vector<MetricDefinition> metrics;
  std::vector<OutputLoss> losses;  ///< in place of loss and metrics, as in CompileOptions
  std::vector<CallbackDefinition> callbacks;
  ParallelOptions parallel;            ///< as in CompileOptions
  std::vector<std::string> trainable;  ///< as in CompileOptions
  std::vector<std::string> frozen;     ///< as in CompileOptions
  /// validation, callbacks and stop are not part of a file
  FitOptions fit;
  /// what `tenon train` prints: 0 nothing, 1 a progress bar, 2 a line per epoch
  int verbose = 1;
  LogStyle log_style = LogStyle::keras;
  std::optional<CheckpointDefinition> checkpoint;
  ResumeDefinition resume;
  /// weights to start from, unless the run is resumed
  std::optional<WeightsFile> weights;
  std::string output;  ///< folder for log.csv and curves.html; empty: nothing is written
  /// a layer for resolve_config: only keys set by the file or an override have an origin
  Config config;
  std::string file;                       ///< the YAML file; empty for text
  std::vector<ConfigOverride> overrides;  ///< those applied to the file
};

/// Reads a train.yaml with the model that it names, or a model.yaml, which gets the defaults of a
/// training run: accuracy and sparse_categorical_crossentropy if its last layer, or the graph of
/// its ONNX file, ends in a softmax, binary_crossentropy if it ends in a sigmoid, otherwise mse; for
/// each of several outputs.
///
/// `overrides` replace keys of the file before it is read ("epochs", "layers.1.dense.units"); in a
/// train.yaml, "model.<key>" is a key of the model.
/// Errors  "train.yaml:9:5: unknown key 'epohcs'; did you mean 'epochs'?"; for an override "--set
///         epochs=abc: key 'epochs': expected ...".
TENON_API TrainDefinition load_definition(const std::string& path,
                                          const std::vector<ConfigOverride>& overrides = {});

}  // namespace tenon
