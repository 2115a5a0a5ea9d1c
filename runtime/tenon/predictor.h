// SPDX-License-Identifier: Apache-2.0
// tenon/predictor.h - predictions of a trained run for files and tensors. `tenon predict` is this
// class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/tensor.h>
#include <tenon/training_run.h>

namespace tenon {

/// A class and its score.
struct ClassScore {
  std::int64_t label = 0;
  std::string name;  ///< empty: classes have no names
  double score = 0;  ///< a probability, unless the loss is one of values
};

/// The result for one sample, or one of its results if the model has several outputs.
struct Prediction {
  std::string input;             ///< "photo.jpg", "x.npy[3]", or the index of a sample
  std::string output_name = {};  ///< empty: the model has one output
  /// without the batch axis: probabilities, as Model::predict_probabilities, or values
  Tensor output;
  /// what the loss compares with `output`; undefined: not known
  Tensor expected;
  /// all classes, best first, of a model with one label per sample; else empty
  std::vector<ClassScore> classes;
  /// i64: the best class of each step, of a model with one label per step; else undefined
  Tensor steps;
};

/// Samples that were read from files.
struct Inputs {
  std::vector<std::string> names;  ///< one per sample, as in Prediction::input
  Tensor x;                        ///< (n, sample...), scaled as in training
};

/// Predicts with the weights of a run, and prepares inputs as its training did.
///
///   Predictor predictor = Predictor::load("runs/mnist");
///   for (const Prediction& p : predictor.predict_files("photo.png")) use(p.classes[0].name);
///
/// Threads  one thread at a time, as its model.
class TENON_API Predictor {
 public:
  /// `run` is a train.yaml, a folder of checkpoints, or the YAML file of a checkpoint. `checkpoint`
  /// is that of TrainingRun::load_weights; for a run that is a checkpoint, it is that by default.
  /// Errors  a folder without run.json; those of TrainingRun::load and load_weights.
  static Predictor load(const std::string& run, const std::string& checkpoint = "",
                        const std::vector<ConfigOverride>& overrides = {});
  /// `run` has its weights. The preprocessing follows from the definition of its data; if it depends
  /// on the training data, or needs its class names, those of `data_directory` are read.
  explicit Predictor(TrainingRun run, const std::string& data_directory = "");
  /// With the preprocessing of DataSplits or of a run.json.
  Predictor(TrainingRun run, Preprocessing preprocessing);

  /// The run.
  TrainingRun& run() { return run_; }
  /// How inputs are prepared.
  const Preprocessing& preprocessing() const { return preprocessing_; }

  /// The samples in a file: an image (see load_image), or an .npy of one sample or of (n, sample...).
  /// Images get the size and the channels of `data.image` and the channels of the model's samples.
  /// Errors  name the file, what the model expects and what the file has.
  Inputs read(const std::string& file) const;
  /// Predictions for x (n, sample...), scaled as in training; `names` has one name per sample, or is
  /// empty: the index.
  std::vector<Prediction> predict(const Tensor& x, const std::vector<std::string>& names = {});
  /// The same for the inputs of a model by name. Of several outputs, those of a sample follow each
  /// other.
  std::vector<Prediction> predict(const NamedTensors& inputs,
                                  const std::vector<std::string>& names = {});
  /// The same for a file, or for each image in a folder, in the order of their names.
  /// Errors  those of read; a folder without images; a model with several inputs.
  std::vector<Prediction> predict_files(const std::string& path);
  /// The same for the first `count` samples of data.test, or all if it has fewer, with what the data
  /// has as `expected`.
  std::vector<Prediction> predict_test(const DataSplits& data, std::int64_t count);

 private:
  TrainingRun run_;
  Preprocessing preprocessing_;
};

}  // namespace tenon
