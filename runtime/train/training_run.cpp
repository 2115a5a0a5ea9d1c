// SPDX-License-Identifier: Apache-2.0
#include <tenon/training_run.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <tenon/callbacks.h>
#include <tenon/error.h>

#include "core/log.h"
#include "exec/process_group.h"
#include "platform/path.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/datasets/datasets.h"
#include "train/program/model_setup.h"
#include "train/run_record.h"

namespace tenon {
namespace {

/// Whether a callback only writes files, which one of several processes does.
bool only_writes(const CallbackDefinition& callback) {
  return std::visit(
      []<class Options>(const Options&) {
        return std::is_same_v<Options, Checkpoint::Options> || std::is_same_v<Options, CsvLog::Options> ||
               std::is_same_v<Options, JsonLines::Options> || std::is_same_v<Options, TensorBoard::Options> ||
               std::is_same_v<Options, Curves::Options>;
      },
      callback);
}

/// The callbacks of the definition, those of `checkpoint` and `output` last. `writes`: with those that write files.
std::vector<std::unique_ptr<Callback>> make_callbacks(const TrainDefinition& definition, bool writes) {
  std::vector<std::unique_ptr<Callback>> all;
  for (const CallbackDefinition& callback : definition.callbacks) {
    if (writes || !only_writes(callback)) all.push_back(make_callback(callback));
  }
  if (!writes) return all;
  if (definition.checkpoint) {
    const CheckpointDefinition& c = *definition.checkpoint;
    all.push_back(make_callback(
        Checkpoint::Options{.directory = c.directory, .every_epochs = c.every_epochs, .keep = c.keep, .overwrite = c.overwrite}));
  }
  if (!definition.output.empty()) {
    all.push_back(make_callback(CsvLog::Options{definition.output + "/log.csv"}));
    all.push_back(make_callback(Curves::Options{definition.output + "/curves.html", definition.model.name}));
  }
  return all;
}

/// The folders that the run writes checkpoints to.
std::set<std::string> checkpoint_folders(const TrainDefinition& definition) {
  std::set<std::string> folders;
  if (definition.checkpoint) folders.insert(definition.checkpoint->directory);
  for (const CallbackDefinition& callback : definition.callbacks) {
    if (const auto* const saves = std::get_if<Checkpoint::Options>(&callback)) folders.insert(saves->directory);
  }
  return folders;
}

/// What processes say when they have to end during a fit.
class AdviceOnEnd {
 public:
  explicit AdviceOnEnd(std::function<std::string()> advice) : processes_(exec::ProcessGroup::current()) {
    if (processes_ != nullptr) processes_->set_advice(std::move(advice));
  }
  ~AdviceOnEnd() {
    if (processes_ != nullptr) processes_->set_advice(nullptr);
  }
  AdviceOnEnd(const AdviceOnEnd&) = delete;
  AdviceOnEnd& operator=(const AdviceOnEnd&) = delete;

 private:
  const std::shared_ptr<exec::ProcessGroup> processes_;
};

}  // namespace

TrainingRun::TrainingRun(TrainDefinition definition, const Context& context)
    : definition_(std::move(definition)), context_(context), model_(definition_.model) {
  definition_.model = model_.definition();  // with what the file of an imported model says of its input
  model_.compile(context_, train::compile_options(definition_));
}

DataSplits TrainingRun::load_data(const std::string& directory) const {
  if (!definition_.data && directory.empty() && !definition_.file.empty()) {
    throw Error(
        fmt::format("{}: expected a train.yaml, whose `data` says what to read, got a model without it; write one with `model: {}`, or "
                    "give --data DIR with the IDX files of MNIST",
                    definition_.file, platform::text_of(platform::path_of(definition_.file).filename())));
  }
  return train::make_data(definition_.data.value_or(DataDefinition{}), directory, context_.config().seed);
}

std::optional<TrainingRun::Resumed> TrainingRun::resume() {
  const ResumeDefinition& resume = definition_.resume;
  std::string from = resume.path;
  if (resume.kind == ResumeDefinition::Kind::automatic && definition_.checkpoint) {
    from = definition_.checkpoint->directory;
    if (!train::has_checkpoints(from)) return std::nullopt;
  }
  if (from.empty()) return std::nullopt;
  const Model::Position position = model_.load(from);
  if (const std::uint64_t seed = context_.config().seed; position.seed != seed) {
    throw Error(fmt::format("{}: expected a checkpoint of seed {}, got seed {}; set seed: {} to resume from it", position.file, seed,
                            position.seed, position.seed));
  }
  has_weights_ = true;
  return Resumed{position.file, position};
}

Model::Position TrainingRun::load_weights(const std::string& checkpoint) {
  if (checkpoint.empty() && !definition_.checkpoint) throw Error("no weights: pass --checkpoint, or set checkpoint.directory in the YAML");
  Model::Position position = model_.load(checkpoint.empty() ? definition_.checkpoint->directory : checkpoint, Model::Load::weights);
  has_weights_ = true;
  return position;
}

std::optional<WeightsReport> TrainingRun::load_initial_weights(const DataSplits& data) {
  if (!definition_.weights || has_weights_ || model_.step() > 0) return std::nullopt;
  model_.build_for(*data.train);
  const WeightsReport report = import_weights(model_, *definition_.weights);
  has_weights_ = true;
  return report;
}

History TrainingRun::fit(const DataSplits& data, const std::vector<Callback*>& callbacks, const RunOptions& run) {
  preprocessing_ = data.preprocessing;
  if (const auto report = load_initial_weights(data); report && !(report->missing.empty() && report->left_over.empty()))
    log::warning("weights: {}", report->str());
  const bool writes = model_.rank() == 0;
  std::vector<std::unique_ptr<Callback>> own = make_callbacks(definition_, writes);
  // Before the callbacks that save; a run that is refused by then leaves the file of another run as it is.
  const auto describe_run = [&, written = false](const EpochLogs&) mutable {
    if (!std::exchange(written, true)) save_description();
  };
  if (writes) own.push_back(std::make_unique<LambdaCallback>(LambdaCallback::Functions{.name = "run", .epoch_end = describe_run}));
  FitOptions options = definition_.fit;
  options.validation = data.validation;
  options.callbacks.insert(options.callbacks.end(), callbacks.begin(), callbacks.end());
  for (const auto& callback : own) options.callbacks.push_back(callback.get());
  options.run = run;
  const AdviceOnEnd advice([this] { return last_checkpoint(); });
  try {
    return model_.fit(data.train, options);
  } catch (const Error& error) {
    const std::string last = model_.rank_count() > 1 ? last_checkpoint() : std::string();
    if (last.empty()) throw;
    throw Error(error.status(), fmt::format("{}. {}", error.what(), last));
  }
}

std::string TrainingRun::last_checkpoint() const {
  if (!definition_.checkpoint) return {};
  try {
    const std::string newest = newest_checkpoint(definition_.checkpoint->directory);
    if (!newest.empty()) return fmt::format("The last checkpoint is {}: continue with resume: auto", newest);
  } catch (const Error&) {  // what has to be said is another error
  }
  return {};
}

Logs TrainingRun::evaluate(const DataSplits& data) {
  return model_.evaluate(data.test, definition_.fit.batch_size);
}

TrainingRun::Predictions TrainingRun::predict(const DataSplits& data, std::int64_t count) {
  if (count < 1) throw Error(fmt::format("predict: expected a count of at least 1, got {}", count));
  Batches batches(data.test, {.batch_size = std::min(count, data.test->size()), .shuffle = false, .workers = 0});
  batches.start(0);
  const Batch* batch = batches.next();
  const Tensor output = model_.predict(batch->x(), definition_.fit.batch_size);
  return {output, batch->y().to_host()};
}

void TrainingRun::save_description() const {
  for (const std::string& folder : checkpoint_folders(definition_)) train::save_run(folder, definition_, preprocessing_);
}

std::string TrainingRun::save_interrupted() const {
  std::string folder = "interrupted";
  if (!definition_.output.empty()) folder = definition_.output;
  if (definition_.checkpoint) folder = definition_.checkpoint->directory;
  std::string name = "interrupted";
  if (train::is_of_another_run(folder + "/" + name + ".yaml", model_.run())) name += "-" + model_.run();
  model_.save(folder, name);
  train::save_run(folder, definition_, preprocessing_);
  return folder + "/" + name + ".yaml";
}

}  // namespace tenon
