// SPDX-License-Identifier: Apache-2.0
// Callbacks: monitored values, actions and failures.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "temporary_folder.h"
#include "train/log/curves_page.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::shared_ptr<const ArrayDataset> line() {
  return generate_linear({.count = 64}).data;
}

Model regression(const Context& context, double learning_rate = 0.05) {
  Model model({layers::Dense{1}});
  model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd, .learning_rate = learning_rate}});
  return model;
}

/// Replays monitored values through a callback: each epoch sets the kernel to the epoch's index first.
struct Replay {
  Context context{test_config()};
  Model model = regression(context, 0.5);
  std::int64_t epochs = 0;

  Replay() { model.build({1}); }
  /// Epochs until the callback stopped the fit.
  std::int64_t run(Callback& callback, const std::vector<double>& values, const std::string& name = "val_loss") {
    callback.attach(model);
    callback.train_begin(static_cast<std::int64_t>(values.size()), 1);
    for (const double value : values) {
      model.parameters().set("dense/kernel", Tensor::of<float>({static_cast<float>(epochs)}, {1, 1}));
      callback.epoch_end({epochs++, {{"loss", 0.0}, {name, value}}, 1, 1, 0.1});
      if (!model.stop_reason().empty()) break;
    }
    callback.train_end();
    return epochs;
  }
  float kernel() { return floats(model.parameters().get("dense/kernel"))[0]; }
};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("early stopping: waits for `patience` epochs without an improvement of more than min_delta") {
  Replay replay;
  EarlyStopping stopping({.monitor = {.min_delta = 0.1}, .patience = 2});
  CHECK(replay.run(stopping, {1.0, 0.8, 0.75, 0.5, 0.45, 0.42, 0.1}) == 6);
  CHECK(replay.model.stop_reason() == "early_stopping: no improvement for 2 epochs; the best value was 0.5");
  CHECK(replay.kernel() == 5.0f);
}

TEST_CASE("early stopping: accuracies are maximised; NaN is no improvement") {
  Replay rising;
  EarlyStopping accuracy({.monitor = {.name = "val_accuracy"}, .patience = 1});
  CHECK(rising.run(accuracy, {0.5, 0.6, 0.7, 0.65, 0.9}, "val_accuracy") == 4);
  Replay told;
  EarlyStopping lowest({.monitor = {.name = "val_accuracy", .mode = Monitor::Mode::min}, .patience = 1});
  CHECK(told.run(lowest, {0.5, 0.6}, "val_accuracy") == 2);
  Replay broken;
  EarlyStopping loss({.patience = 2});
  CHECK(broken.run(loss, {nan, nan, 0.1}) == 2);
}

TEST_CASE("early stopping: restore_best brings back the weights of the best epoch") {
  Replay replay;
  EarlyStopping stopping({.patience = 2, .restore_best = true});
  CHECK(replay.run(stopping, {1.0, 0.5, 0.6, 0.7, 0.1}) == 4);
  CHECK(replay.kernel() == 1.0f);
}

TEST_CASE_FIXTURE(InFolder, "early stopping: a checkpoint preserves its state with the best weights") {
  const Context context(test_config());
  Model first = regression(context, 0);  // nothing improves after the first epoch
  EarlyStopping before({.monitor = {.name = "loss"}, .patience = 3, .restore_best = true});
  FitOptions options{.epochs = 2, .callbacks = {&before}};
  first.fit(line(), options);
  first.save(folder.path(), "c");

  Model second = regression(context, 0);
  second.load(folder.path() + "/c.yaml");
  const auto kept = floats(second.parameters().get("dense/kernel"));
  EarlyStopping after({.monitor = {.name = "loss"}, .patience = 3, .restore_best = true});
  LambdaCallback spoil({.epoch_begin = [&](std::int64_t) {
    second.parameters().set("dense/kernel", Tensor::full(DType::f32, {3, 1}, 100));
  }});
  options.callbacks = {&spoil, &after};
  options.epochs = 10;
  second.fit(line(), options);
  CHECK(second.fit_end() == FitEnd::stopped);
  CHECK(second.epochs_done() == 4);
  CHECK(floats(second.parameters().get("dense/kernel")) == kept);
}

TEST_CASE("monitor: a name that is not logged is rejected with the list of logged names") {
  Replay replay;
  EarlyStopping stopping({.monitor = {.name = "val_los"}});
  CHECK_ERROR("monitor 'val_los' is not logged; logged are loss, val_loss; did you mean 'val_loss'?", replay.run(stopping, {1.0}));
}

TEST_CASE_FIXTURE(InFolder, "a monitor, a log or a page that can never work is reported before the first epoch, and no file is lost") {
  const Context context(test_config());
  folder.write("file", "");
  folder.write("log.csv", "epoch,loss\n1,2\n");
  const std::string inside = folder.file("file/x");
  const Monitor misspelt{.name = "val_los"};
  const std::vector<std::pair<CallbackDefinition, std::string>> cases = {
      {EarlyStopping::Options{.monitor = misspelt},
       "callback early_stopping, at the beginning: monitor 'val_los' is not logged; logged are "
       "loss, val_loss; did you mean 'val_loss'?"},
      {ReduceOnPlateau::Options{.monitor = misspelt}, "logged are loss, val_loss"},
      {Checkpoint::Options{.directory = folder.file("best"), .best = true, .monitor = misspelt}, "logged are loss, val_loss"},
      {Checkpoint::Options{.directory = inside}, inside},
      {CsvLog::Options{inside}, inside},
      {Curves::Options{inside}, inside},
      {TensorBoard::Options{inside}, inside}};
  for (const auto& [definition, part] : cases) {
    Model model = regression(context);
    const auto callback = make_callback(definition);
    CsvLog log({folder.file("log.csv")});
    FitOptions options{.validation = line(), .callbacks = {&log, callback.get()}};
    CHECK_ERROR_CONTAINS(part, model.fit(line(), options));
    CHECK(model.step() == 0);
  }
  CHECK(folder.read("log.csv") == "epoch,loss\n1,2\n");
  CHECK_FALSE(std::filesystem::exists(folder.file("best")));
}

TEST_CASE("plateau: the rate is reduced after patience, held for cooldown, and bounded by its minimum") {
  Replay replay;
  ReduceOnPlateau plateau({.factor = 0.1, .patience = 2, .cooldown = 1, .minimum = 0.02});
  replay.run(plateau, {1.0, 1.0});
  CHECK(replay.model.learning_rate() == 0.5);
  replay.run(plateau, {1.0, 1.0, 1.0});
  CHECK(replay.model.learning_rate() == doctest::Approx(0.05));
  replay.run(plateau, {1.0, 1.0, 1.0});
  CHECK(replay.model.learning_rate() == doctest::Approx(0.02));
}

TEST_CASE_FIXTURE(OnReference, "learning rate: a function of epoch and rate") {
  Model model = regression(context);
  LearningRateSchedule halves([](std::int64_t epoch, double rate) { return epoch == 0 ? 0.08 : rate / 2; });
  const History history = model.fit(line(), {.epochs = 3, .callbacks = {&halves}});
  CHECK(history[0].learning_rate == 0.08);
  CHECK(history[1].learning_rate == 0.04);
  CHECK(history[2].learning_rate == 0.02);
}

TEST_CASE_FIXTURE(OnReference, "learning rate: a callback applies a schedule") {
  Model model = regression(context);
  Schedule schedule{.kind = Schedule::Kind::step, .per = Schedule::Per::epoch, .factor = 0.5};
  LearningRateSchedule callback({.schedule = schedule, .initial = 0.08});
  const History history = model.fit(line(), {.epochs = 2, .callbacks = {&callback}});
  CHECK(history[0].learning_rate == 0.08);
  CHECK(history[1].learning_rate == 0.04);
}

TEST_CASE_FIXTURE(OnReference, "terminate_on_nan: stops where fit would fail without it") {
  Model model = regression(context, 1e30);
  TerminateOnNan terminate;
  CHECK(model.fit(line(), {.epochs = 5, .callbacks = {&terminate}}).size() < 5);
  CHECK(model.fit_end() == FitEnd::stopped);
  CHECK(contains(model.stop_reason(), "terminate_on_nan: the loss is "));
}

TEST_CASE_FIXTURE(InFolder, "checkpoint best: one file, of the best epoch") {
  Replay replay;
  Checkpoint best({.directory = folder.path(), .best = true});
  replay.run(best, {1.0, 0.5, 0.7, 0.6});
  replay.model.load(folder.path() + "/best.yaml", Model::Load::weights);
  CHECK(replay.kernel() == 1.0f);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

/// A callback of an application that does not override its name.
struct Unlucky final : Callback {
  void batch_end(std::int64_t batch, const Logs&, const BatchResult&) override {
    if (batch == 1) throw std::runtime_error("no more paper");
  }
};

TEST_CASE_FIXTURE(InFolder,
                  "an exception of a callback ends fit with the callback's name; the model can be saved, loaded and fitted further") {
  const Context context(deterministic());
  FitOptions options{.batch_size = 16};
  Model straight = regression(context);
  straight.fit(line(), options);

  Model model = regression(context);
  Unlucky unlucky;
  FitOptions failing = options;
  failing.callbacks = {&unlucky};
  const std::string text = message_of([&] { model.fit(line(), failing); });
  CHECK(text.ends_with("Unlucky, after a batch: no more paper; the model is at epoch 1, step 2"));
  CHECK(contains(text, "callback tenon::"));
  CHECK(model.step() == 2);
  model.save(folder.path(), "c");
  Model again = regression(context);
  CHECK(again.load(folder.path() + "/c.yaml").batch == 2);
  again.fit(line(), options);
  CHECK(floats(again.parameters().get("dense/kernel")) == floats(straight.parameters().get("dense/kernel")));
  model.fit(line(), options);
  CHECK(floats(model.parameters().get("dense/kernel")) == floats(straight.parameters().get("dense/kernel")));
}

TEST_CASE_FIXTURE(OnReference, "a callback may throw any type") {
  Model model = regression(context);
  LambdaCallback odd({.name = "odd", .epoch_end = [](const EpochLogs&) { throw 3; }});
  CHECK_ERROR_CONTAINS("callback odd, at the end of an epoch: threw an object that is not a std::exception",
                       model.fit(line(), {.callbacks = {&odd}}));
  CHECK(model.epochs_done() == 1);
}

TEST_CASE_FIXTURE(OnReference, "model: null pointers and a moved-from model are errors") {
  Model model = regression(context);
  CHECK_ERROR("fit: expected a data set, got a null pointer", model.fit(nullptr));
  CHECK_ERROR("evaluate: expected a data set, got a null pointer", model.evaluate(nullptr));
  CHECK_ERROR("confusion_matrix: expected a data set, got a null pointer", model.confusion_matrix(nullptr));
  CHECK_ERROR("fit: expected callbacks, got a null pointer among them", model.fit(line(), {.callbacks = {nullptr}}));
  const Model other = std::move(model);
  const std::string moved = "model: it was moved from; use the object that it was moved to";
  CHECK_ERROR(moved, model.fit(line()));
  CHECK_ERROR(moved, (void)model.step());
  CHECK_ERROR(moved, model.save("/nowhere", "c"));
}

TEST_CASE("a full disk under a log is an error with the file; the training state is intact") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryFolder folder;
  const Context context(test_config());
  const std::vector<CallbackDefinition> logs{CsvLog::Options{"/dev/full"}, JsonLines::Options{"/dev/full"}};
  for (const CallbackDefinition& definition : logs) {
    Model model = regression(context);
    const auto log = make_callback(definition);
    FitOptions options{.callbacks = {log.get()}};
    const std::string text = message_of([&] { model.fit(line(), options); });
    CHECK(contains(text, "callback " + log->name()));
    CHECK(contains(text, "/dev/full: writing "));
    CHECK(contains(text, "No space left on device"));
    model.save(folder.path(), "c");
    Model again = regression(context);
    CHECK(again.load(folder.path() + "/c.yaml").epoch == 1);
  }
}

TEST_CASE_FIXTURE(InFolder, "csv: one line per epoch; a resumed run appends without repeating an epoch, another overwrites") {
  const std::string path = folder.path() + "/logs/run.csv";
  {
    CsvLog log({path});
    log.epoch_end({0, {{"loss", 0.5}, {"a,b", 1.0 / 3}}, 2, 100, 0.1});
  }
  {
    CsvLog log({path});
    log.epoch_end({1, {{"loss", 0.25}, {"a,b", 1}}, 2, 100, 0.05});
  }
  CHECK(content_of(path) ==
        "epoch,loss,\"a,b\",learning_rate,seconds,samples_per_second\n"
        "1,0.5,0.3333333333333333,0.1,2.000,50.0\n"
        "2,0.25,1,0.05,2.000,50.0\n");
  {
    std::ofstream(path, std::ios::app) << "3,0.125,1,0.0";  // of a run that was killed, and resumed from its second epoch
    CsvLog log({path});
    log.epoch_end({1, {{"loss", 0.5}, {"a,b", 1}}, 2, 100, 0.05});
  }
  CHECK(content_of(path) ==
        "epoch,loss,\"a,b\",learning_rate,seconds,samples_per_second\n"
        "1,0.5,0.3333333333333333,0.1,2.000,50.0\n"
        "2,0.5,1,0.05,2.000,50.0\n");
  CsvLog log({path});
  log.epoch_end({0, {{"loss", 1}}, 1, 1, 1});
  CHECK(content_of(path) == "epoch,loss,learning_rate,seconds,samples_per_second\n1,1,1,1.000,1.0\n");
}

TEST_CASE_FIXTURE(OnReference, "lambda: every function is called in the order of events") {
  Model model = regression(context);
  std::string events;
  LambdaCallback all(
      {.train_begin = [&](std::int64_t epochs, std::int64_t batches) { events += "T" + std::to_string(epochs) + std::to_string(batches); },
       .epoch_begin = [&](std::int64_t epoch) { events += " e" + std::to_string(epoch); },
       .batch_end = [&](std::int64_t batch, const Logs&, const BatchResult&) { events += "b" + std::to_string(batch); },
       .epoch_end = [&](const EpochLogs& logs) { events += "E" + std::to_string(logs.epoch); },
       .train_end = [&] { events += " t"; }});
  model.fit(line(), {.epochs = 2, .callbacks = {&all}});
  CHECK(events == "T22 e0b0b1E0 e1b0b1E1 t");
}

TEST_CASE_FIXTURE(OnReference, "lambda: after a batch its own loss and weight are given beside the means of the epoch") {
  Model model = regression(context);
  double sum = 0, count = 0;
  LambdaCallback check({.batch_end = [&](std::int64_t, const Logs& means, const BatchResult& result) {
    sum += result.loss() * result.weight;
    count += result.weight;
    CHECK(result.logs.size() == means.size());
    CHECK(result.step_taken);
    CHECK(means[0].second == doctest::Approx(sum / count));
  }});
  model.fit(line(), {.batch_size = 3, .callbacks = {&check}});
  CHECK(count == static_cast<double>(line()->size()));
}

// ---------------------------------------------------------------- curves

TEST_CASE("curves: a self-contained page with escaped names") {
  const History history{{0, {{"loss", 1.0}, {"<b>&\"x\"", 0.5}, {"val_loss", 1.2}}, 1, 10, 0.1},
                        {1, {{"loss", nan}, {"<b>&\"x\"", 0.6}, {"val_loss", 0.9}}, 1, 10, 0.1},
                        {2, {{"loss", 0.5}, {"<b>&\"x\"", 0.7}, {"val_loss", 0.8}}, 1, 10, 0.1}};
  const std::string page = train::curves_page("a <title> & more", history);
  CHECK(contains(page, "<h1>a &lt;title&gt; &amp; more</h1>"));
  CHECK(contains(page, "<b>&lt;b&gt;&amp;&quot;x&quot;</b>"));
  CHECK(!contains(page, "<title> "));
  CHECK(!contains(page, "http"));
  CHECK(!contains(page, "<script"));
  CHECK(contains(page, "prefers-color-scheme: dark"));
  CHECK(contains(page, ">validation</span>"));
  CHECK(contains(page, "epoch 3: val_loss 0.8000"));
  CHECK(!contains(page, "nan\""));
  CHECK(contains(train::curves_page("none", {}), "No epoch has ended yet."));
}

TEST_CASE_FIXTURE(InFolder, "curves: the page grows with each epoch, also after a resume") {
  const std::string path = folder.path() + "/out/curves.html";
  const Context context(test_config());
  FitOptions options{.validation = line()};
  Model first = regression(context);
  Curves before({path, "t"});
  options.callbacks = {&before};
  first.fit(line(), options);
  CHECK(contains(content_of(path), "epoch 1: loss "));
  first.save(folder.path(), "c");

  Model second = regression(context);
  second.load(folder.path() + "/c.yaml");
  Curves after({path, "t"});
  options.callbacks = {&after};
  options.epochs = 2;
  second.fit(line(), options);
  const std::string page = content_of(path);
  for (const char* text : {"epoch 1: loss ", "epoch 1: val_loss ", "epoch 2: loss ", "epoch 2: val_loss "}) CHECK(contains(page, text));
}

TEST_CASE_FIXTURE(InFolder, "curves: the page is not written at every epoch, and complete at the end, also after an error") {
  const std::string path = folder.file("curves.html");
  const Context context(test_config());
  for (const bool fails : {false, true}) {
    Model model = regression(context);
    std::vector<bool> shown;  // after each epoch, whether the page has it
    {
      Curves curves({path, "t"});
      LambdaCallback look({.epoch_end = [&](const EpochLogs& logs) {
        shown.push_back(contains(content_of(path), "epoch " + std::to_string(logs.epoch + 1) + ": loss "));
        if (fails && shown.size() == 3) throw Error("enough");
      }});
      message_of([&] { model.fit(line(), {.epochs = 3, .callbacks = {&curves, &look}}); });
    }
    CHECK(shown == std::vector<bool>{true, false, false});
    CHECK(contains(content_of(path), "epoch 3: loss "));
  }
}

TEST_CASE_FIXTURE(InFolder, "curves: a value that is not finite is a gap, also after a checkpoint") {
  Curves first({folder.path() + "/a.html", "t"});
  first.epoch_end({0, {{"loss", 0.5}, {"val_loss", nan}}, 1, 1, 0.1});
  Curves second({folder.path() + "/b.html", "t"});
  second.restore(first.state());
  second.epoch_end({1, {{"loss", 0.4}, {"val_loss", 0.2}}, 1, 1, 0.1});
  const std::string page = content_of(folder.path() + "/b.html");
  CHECK(contains(page, "epoch 1: loss 0.5000"));
  CHECK(!contains(page, "epoch 1: val_loss"));
}

}  // namespace
}  // namespace tenon::test
