// SPDX-License-Identifier: Apache-2.0
#include <tenon/predictor.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

#include <tenon/error.h>
#include <tenon/npy.h>

#include "data/files.h"
#include "data/image_file.h"
#include "platform/path.h"
#include "train/datasets/preprocessing.h"
#include "train/program/model_setup.h"
#include "train/program/objective.h"
#include "train/run_record.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

DataDefinition data_of(const TrainingRun& run) {
  return run.definition().data.value_or(DataDefinition{});
}

/// The preprocessing as far as it follows from the definition, else that of the data.
Preprocessing preprocessing_of(const TrainingRun& run, const std::string& given) {
  const DataDefinition data = data_of(run);
  if (run.definition().checkpoint) {
    if (const auto saved = train::saved_preprocessing(run.definition().checkpoint->directory)) return *saved;
  }
  const std::string directory = given.empty() ? data.directory : given;
  if (!train::defines_preprocessing(data) || (data.source == DataSource::csv && !directory.empty())) {
    try {
      return run.load_data(directory).preprocessing;
    } catch (const Error& problem) {
      throw Error(problem.status(),
                  fmt::format("normalize: {} depends on the training data, and there is no run.json beside the checkpoint: {}",
                              name_of(data.normalize.value_or(Normalize::none)), problem.what()));
    }
  }
  const bool named_by_folders = data.source == DataSource::images && !directory.empty();
  return {DType::none, {}, train::class_names_of(data, named_by_folders ? data::class_folders(directory) : std::vector<std::string>(), {})};
}

/// True if `shape` is (n, sample...).
bool is_batch_of(const Shape& shape, const Shape& sample) {
  return shape.rank() == sample.rank() + 1 && Shape(shape.dims().subspan(1)) == sample;
}

/// An image as a batch of one sample.
Tensor read_image(const std::string& file, ImageOptions options, const Shape& sample) {
  const bool grey = sample.rank() == 2;
  if (sample.rank() != 3 && !grey) {
    throw Error(fmt::format("{}: expected an .npy array, for the model's samples {} are not images, got an image", file, sample.str()));
  }
  options.channels = grey ? 1 : sample[0] == 1 || sample[0] == 3 ? sample[0] : 0;
  const Tensor image = load_image(file, options);
  const Shape& shape = image.shape();
  const std::int64_t height = sample[sample.rank() - 2], width = sample[sample.rank() - 1];
  if (shape[1] != height || shape[2] != width || (!grey && shape[0] != sample[0])) {
    throw Error(fmt::format(
        "{}: expected an image {} (channels, height, width) for the model's samples {}, got {}; `image: {{resize: [{}, {}]}}` in the "
        "block `data` resizes images (--set data.image.resize=[{},{}])",
        file, Shape{grey ? 1 : sample[0], height, width}.str(), sample.str(), shape.str(), height, width, height, width));
  }
  return image.reshape(sample.with_batch(1));
}

/// The indices of the largest values along the last axis.
Tensor best_classes(const Tensor& scores) {
  Shape steps(scores.shape().dims().first(scores.shape().rank() - 1));
  Tensor best = Tensor::empty(DType::i64, steps);
  const std::int64_t classes = scores.shape()[scores.shape().rank() - 1];
  const auto find = [&](const auto* row) {
    for (std::int64_t i = 0; i < best.count(); ++i, row += classes)
      best.data<std::int64_t>()[i] = std::max_element(row, row + classes) - row;
  };
  scores.dtype() == DType::f64 ? find(scores.data<double>()) : find(scores.data<float>());
  return best;
}

std::vector<ClassScore> sorted_classes(const Tensor& scores, const std::vector<std::string>& names) {
  std::vector<ClassScore> classes;
  for (std::int64_t c = 0; c < scores.count(); ++c) {
    const auto label = static_cast<std::size_t>(c);
    classes.push_back({c, label < names.size() ? names[label] : "", scores[c].item()});
  }
  std::stable_sort(classes.begin(), classes.end(), [](const ClassScore& a, const ClassScore& b) { return a.score > b.score; });
  return classes;
}

}  // namespace

Predictor Predictor::load(const std::string& run, const std::string& checkpoint, const std::vector<ConfigOverride>& overrides) {
  train::SavedRun saved = train::find_run(run, checkpoint);
  saved.overrides.insert(saved.overrides.end(), overrides.begin(), overrides.end());
  TrainingRun loaded = TrainingRun::load(saved.definition, saved.overrides);
  loaded.load_weights(saved.checkpoint);
  if (!saved.preprocessing) saved.preprocessing = train::saved_preprocessing(saved.checkpoint);
  return saved.preprocessing ? Predictor(std::move(loaded), *saved.preprocessing) : Predictor(std::move(loaded));
}

Predictor::Predictor(TrainingRun run, const std::string& data_directory)
    : run_(std::move(run)), preprocessing_(preprocessing_of(run_, data_directory)) {}
Predictor::Predictor(TrainingRun run, Preprocessing preprocessing) : run_(std::move(run)), preprocessing_(std::move(preprocessing)) {}

Inputs Predictor::read(const std::string& file) const {
  const DataDefinition data = data_of(run_);
  const Shape& sample = run_.model().sample_shape();
  Tensor stored;
  if (platform::path_of(file).extension() == ".npy") {
    stored = load_npy(file);
    const bool is_image = stored.dtype() == DType::u8 && (sample.rank() == 2 || sample.rank() == 3);
    if (stored.shape() == sample) {
      stored = stored.reshape(sample.with_batch(1));
    } else if (!is_batch_of(stored.shape(), sample)) {
      if (!is_image) {
        throw Error(fmt::format("{}: expected one sample {} or several {}, got {}", file, sample.str(), "(n, " + sample.str().substr(1),
                                stored.str()));
      }
      stored = read_image(file, data.image, sample);
    }
  } else {
    stored = read_image(file, data.image, sample);
  }
  Inputs inputs;
  inputs.x = train::prepare_samples(stored, data, preprocessing_, file);
  const std::int64_t count = inputs.x.shape()[0];
  for (std::int64_t i = 0; i < count; ++i) inputs.names.push_back(count == 1 ? file : fmt::format("{}[{}]", file, i));
  return inputs;
}

std::vector<Prediction> Predictor::predict(const Tensor& x, const std::vector<std::string>& names) {
  return predict(NamedTensors{{"x", x}}, names);
}

std::vector<Prediction> Predictor::predict(const NamedTensors& inputs, const std::vector<std::string>& names) {
  const NamedTensors results = run_.model().predict_probabilities(inputs, run_.definition().fit.batch_size);
  const bool several = results.size() > 1;
  const std::int64_t count = results.begin()->second.shape()[0];
  std::vector<Prediction> all;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const SampleType& result : run_.model().outputs()) {
      const Tensor& output = results.at(result.name);
      const OutputLoss* const loss = train::loss_of(run_.definition(), several ? result.name : "");
      const bool is_only = !several && run_.definition().losses.empty();
      const bool classes = output.shape().rank() > 1 && (is_only ? train::scores_classes(run_.definition().loss, data_of(run_).targets)
                                                                 : loss != nullptr && train::scores_classes(loss->loss, Targets::as_given));
      Prediction p;
      p.input = names.empty() ? std::to_string(i) : names[static_cast<std::size_t>(i)];
      if (several) p.output_name = result.name;
      p.output = output.select(0, i);
      const auto rank = static_cast<std::int64_t>(p.output.shape().rank());
      if (classes && rank == 1) p.classes = sorted_classes(p.output, several ? std::vector<std::string>() : preprocessing_.class_names);
      if (classes && rank > 1) p.steps = best_classes(p.output);
      all.push_back(std::move(p));
    }
  }
  return all;
}

std::vector<Prediction> Predictor::predict_files(const std::string& path) {
  if (run_.model().built() && run_.model().inputs().size() > 1) {
    throw Error(
        fmt::format("{}: expected a model with one input for samples in files, got {} inputs; their samples are those of the test set",
                    path, run_.model().inputs().size()));
  }
  std::vector<std::string> files{path};
  if (data::is_folder(path)) {
    files = data::images_in(path);
    if (files.empty()) throw Error(fmt::format("{}: expected images ({}), got a folder without any", path, data::image_endings));
  }
  std::vector<Prediction> all;
  const auto flush = [&](std::vector<Inputs>& waiting) {
    std::int64_t count = 0;
    std::vector<std::string> names;
    for (const Inputs& inputs : waiting) {
      count += inputs.x.shape()[0];
      names.insert(names.end(), inputs.names.begin(), inputs.names.end());
    }
    if (count == 0) return;
    Tensor x = Tensor::empty(waiting[0].x.dtype(), run_.model().sample_shape().with_batch(count));
    auto* to = static_cast<char*>(x.raw());
    for (const Inputs& inputs : waiting) {
      std::memcpy(to, inputs.x.raw(), static_cast<std::size_t>(inputs.x.size_bytes()));
      to += inputs.x.size_bytes();
    }
    waiting.clear();
    for (Prediction& p : predict(x, names)) all.push_back(std::move(p));
  };
  std::vector<Inputs> waiting;  // files are read a batch at a time
  for (const std::string& file : files) {
    Inputs inputs = read(file);
    if (!waiting.empty() && waiting[0].x.dtype() != inputs.x.dtype()) flush(waiting);
    waiting.push_back(std::move(inputs));
    if (static_cast<std::int64_t>(waiting.size()) == run_.definition().fit.batch_size) flush(waiting);
  }
  flush(waiting);
  return all;
}

std::vector<Prediction> Predictor::predict_test(const DataSplits& data, std::int64_t count) {
  if (count < 1) throw Error(fmt::format("predict: expected a count of at least 1, got {}", count));
  Batches batches(data.test, {.batch_size = std::min(count, data.test->size()), .shuffle = false, .workers = 0});
  batches.start(0);
  const Batch* const batch = batches.next();
  NamedTensors inputs;
  for (std::size_t i = 0; i < batch->inputs.size(); ++i) inputs[data.test->inputs()[i].name] = batch->inputs[i];
  std::vector<Prediction> all = predict(inputs);
  const std::vector<SampleType>& targets = data.test->targets();
  const std::vector<SampleType>& outputs = run_.model().outputs();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const OutputLoss* const loss = train::loss_of(run_.definition(), outputs.size() > 1 ? outputs[k].name : "");
    auto target = std::ranges::find(targets, loss == nullptr || loss->target.empty() ? outputs[k].name : loss->target, &SampleType::name);
    if (target == targets.end() && targets.size() == 1) target = targets.begin();
    if (target == targets.end()) continue;
    const Tensor expected = batch->targets[static_cast<std::size_t>(target - targets.begin())].to_host();
    for (std::size_t i = k; i < all.size(); i += outputs.size())
      all[i].expected = expected.select(0, static_cast<std::int64_t>(i / outputs.size()));
  }
  return all;
}

}  // namespace tenon
