// SPDX-License-Identifier: Apache-2.0
// tenon train | eval | summary FILE.yaml
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include <tenon/callbacks.h>

#include "cli/common.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/trace_file.h"
#include "cli/train_run.h"
#include "cli/train_stop.h"
#include "cli/verbs.h"
#include "exec/process_group.h"
#include "io/atomic_file.h"
#include "platform/path.h"
#include "text/counted.h"
#include "train/log/progress.h"
#include "train/summary.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string file, data, json, checkpoint, curves, trace;
  std::int64_t batch_size = 0;  ///< 0: that of the file
  bool confusion = false, overwrite = false;
  std::vector<std::string> freeze;
};

void print_logs(const char* title, const Logs& logs) {
  std::string text = title;
  for (std::size_t i = 0; i < logs.size(); ++i)
    text += (i == 0 ? ": " : " - ") + logs[i].first + ": " + train::format_value(logs[i].second);
  print(text + "\n");
}

void report_resumed(const TrainingRun::Resumed& resumed) {
  const Model::Position& position = resumed.position;
  print(fmt::format("Resuming from {} after epoch {}{}\n", resumed.checkpoint, position.epoch,
                    position.batch > 0 ? " and " + counted(position.batch, "batch", "batches") : ""));
}

/// Saves the model after the first Ctrl-C.
void save_interrupted(const TrainingRun& run) {
  const std::string file = run.save_interrupted();
  print(fmt::format("Interrupted after step {}. To resume, run the same command with --set resume={}\n", run.model().step(),
                    platform::text_of(std::filesystem::absolute(platform::path_of(file)).lexically_normal())));
  set_exit_code(130);  // 128 + SIGINT, as in shells
}

/// --freeze as the key of a train.yaml.
std::vector<ConfigOverride> overrides_of(const Arguments& arguments) {
  if (arguments.freeze.empty()) return {};
  std::string globs;
  for (const std::string& glob : arguments.freeze) {
    if (glob.find_first_of("\"\\") != std::string::npos)
      throw Error("--freeze: expected a glob without quotes and backslashes, got " + glob);
    globs += (globs.empty() ? "\"" : ", \"") + glob + "\"";
  }
  return {{"frozen", "[" + globs + "]", "--freeze"}};
}

/// A launcher that has lost a process ends the others. They wait for it and cannot stop; this names their last checkpoint in the second
/// that they are given.
class AdviceWhenStuck {
 public:
  AdviceWhenStuck(const TrainingRun& run, const std::stop_token& stop) : advise_(stop, [this, &run] { advise(run); }) {}
  ~AdviceWhenStuck() { ended_ = true; }
  AdviceWhenStuck(const AdviceWhenStuck&) = delete;
  AdviceWhenStuck& operator=(const AdviceWhenStuck&) = delete;

 private:
  void advise(const TrainingRun& run) const {
    constexpr int first_two = 2;  // one of them is left
    if (run.model().rank_count() == 1 || run.model().rank() >= first_two) return;
    for (int i = 0; i < 50 && !ended_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (ended_) return;
    if (const std::string text = run.last_checkpoint(); !text.empty()) print_message(text + "\n");
  }

  std::atomic<bool> ended_{false};
  std::stop_callback<std::function<void()>> advise_;  // last: it ends first
};

/// The part of a training of a process that is not the first: it computes, and leaves files and messages to that.
void train_quietly(TrainingRun& run, const Arguments& arguments) {
  const DataSplits data = run.load_data(arguments.data);
  run.resume();
  run.load_initial_weights(data);
  const StopOnSignal stop;
  const AdviceWhenStuck advice(run, stop.token());
  run.fit(data, {}, {.stop = stop.token()});
  if (run.model().fit_end() == FitEnd::interrupted) return set_exit_code(130);
  run.evaluate(data);  // its part
}

void train(const Arguments& arguments) {
  TrainingRun run = prepare_run(arguments.file, arguments.common, overrides_of(arguments), arguments.overwrite);
  if (run.model().rank() > 0) return train_quietly(run, arguments);
  const TrainDefinition& definition = run.definition();
  const TraceFile trace(run.context(), arguments.trace);
  const DataSplits data = trace.watch(run.load_data(arguments.data));
  const std::optional<TrainingRun::Resumed> resumed = run.resume();
  if (resumed && definition.verbose > 0) report_resumed(*resumed);

  const std::optional<WeightsReport> weights = run.load_initial_weights(data);
  if (weights && definition.verbose > 0) print("Weights from " + weights->str() + "\n");

  const std::string device = run.context().default_device().name();
  const bool gorgonia = definition.log_style == LogStyle::gorgonia;
  train::ProgressBar bar(train::progress_on_stdout(definition.verbose, write_output));
  train::GorgoniaLog log(device, print);
  std::vector<Callback*> callbacks;
  if (gorgonia && definition.verbose > 0) {
    callbacks.push_back(&log);
  } else {
    callbacks.push_back(&bar);
  }
  std::optional<JsonLines> json;
  if (!arguments.json.empty()) callbacks.push_back(&json.emplace(JsonLines::Options{arguments.json}));
  std::optional<Curves> curves;
  if (!arguments.curves.empty()) callbacks.push_back(&curves.emplace(Curves::Options{arguments.curves, definition.model.name}));
  if (definition.verbose > 0 && !gorgonia) {
    const int processes = run.model().rank_count();
    print(fmt::format("Training {} on {}{}{}\n", model_name(run), processes > 1 ? fmt::format("{} processes, this one on ", processes) : "",
                      device, in_precision(run.context())));
  }
  {
    const StopOnSignal stop;
    const AdviceWhenStuck advice(run, stop.token());
    run.fit(data, callbacks, {.stop = stop.token()});
    if (run.model().fit_end() == FitEnd::interrupted) return save_interrupted(run);
  }
  if (run.model().fit_end() == FitEnd::stopped) print(run.model().stop_reason() + "\n");

  if (gorgonia && definition.verbose > 0) log.test_begin();
  const Logs test = run.evaluate(data);
  if (gorgonia && definition.verbose > 0) log.test_end(test[0].second);
  if (json) json->test(test);
  if (!gorgonia) print_logs("test", test);
}

void run_train(const Arguments& arguments) {
  try {
    train(arguments);
  } catch (const std::exception& failure) {
    // Other processes would wait for this one.
    if (const auto processes = exec::ProcessGroup::current()) processes->abort(failure.what());
    throw;
  }
}

void print_confusion(const Tensor& matrix) {
  const std::int64_t classes = matrix.shape()[0];
  const std::int64_t* counts = matrix.data<std::int64_t>();
  const std::size_t width = std::to_string(*std::max_element(counts, counts + matrix.count())).size() + 2;
  const std::size_t cell = std::max(width, std::to_string(classes - 1).size() + 2);
  std::string text = "confusion matrix: rows are the true class, columns the predicted one\n      ";
  for (std::int64_t c = 0; c < classes; ++c) text += fmt::format("{:>{}}", c, cell);
  for (std::int64_t r = 0; r < classes; ++r) {
    text += fmt::format("\n{:>6}", r);
    for (std::int64_t c = 0; c < classes; ++c) text += fmt::format("{:>{}}", counts[r * classes + c], cell);
  }
  print(text + "\n");
}

void run_eval(const Arguments& arguments) {
  TrainingRun run = prepare_run(arguments.file, arguments.common);
  load_weights(run, arguments.checkpoint);
  const TraceFile trace(run.context(), arguments.trace);
  const DataSplits data = trace.watch(run.load_data(arguments.data));
  const Logs test = run.evaluate(data);
  std::optional<JsonLines> json;
  if (!arguments.json.empty()) json.emplace(JsonLines::Options{arguments.json}).test(test);
  print_logs("test", test);
  if (!arguments.confusion) return;
  const Tensor matrix = run.model().confusion_matrix(data.test, run.definition().fit.batch_size);
  if (json) json->confusion(matrix);
  print_confusion(matrix);
}

void run_summary(const Arguments& arguments) {
  const TrainDefinition definition = prepare_definition(arguments.file, arguments.common);
  const std::int64_t batch_size = arguments.batch_size > 0 ? arguments.batch_size : definition.fit.batch_size;
  print(train::summary_of(definition, context_of(definition, arguments.common), batch_size));
}

}  // namespace

void add_train_verbs(CLI::App& app) {
  const auto add = [&](const char* verb, const char* help, void (*body)(const Arguments&)) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(verb, help);
    command->add_option("file", arguments->file, "train.yaml or model.yaml")->required()->type_name("FILE");
    arguments->common.add_to(*command);
    command->callback([arguments, body] { body(*arguments); });
    return std::make_pair(command, arguments);
  };
  const auto [train, train_arguments] = add("train", "train a model and evaluate it on the test set", run_train);
  const auto [eval, eval_arguments] = add("eval", "print the loss and metrics of a trained model on the test set", run_eval);
  const auto [summary, summary_arguments] =
      add("summary", "print the layers, shapes, parameters and memory of a model; allocates nothing", run_summary);
  summary->add_option("--batch", summary_arguments->batch_size, "batch size of the memory (default: that of the file)")
      ->check(CLI::PositiveNumber);
  const auto add_data = [](CLI::App* command, Arguments& arguments) {
    command->add_option("--data", arguments.data, "folder of the data files")->type_name("DIR");
    command->add_option("--json", arguments.json, "write the results as JSON Lines")->type_name("FILE");
    command->add_option("--trace", arguments.trace, "write a trace for Perfetto or chrome://tracing; slows the run down")
        ->type_name("FILE");
  };
  add_data(train, *train_arguments);
  add_data(eval, *eval_arguments);
  eval->add_option("--checkpoint", eval_arguments->checkpoint, "weights: the YAML of a checkpoint, or a folder of checkpoints")
      ->type_name("PATH");
  train->add_option("--freeze", train_arguments->freeze, "globs of parameters that do not learn: short for --set frozen=[GLOB]")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  train->add_flag("--overwrite", train_arguments->overwrite, "replace the checkpoints of another run in the checkpoint folder");
  train->add_option("--curves", train_arguments->curves, "write the loss and metrics over the epochs as an HTML page")->type_name("FILE");
  eval->add_flag("--confusion", eval_arguments->confusion, "also print the confusion matrix");
}

}  // namespace tenon::cli
