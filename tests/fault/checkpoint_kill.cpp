// SPDX-License-Identifier: Apache-2.0
// Processes that are killed at random points while they write checkpoints: there is always a checkpoint that loads, and its weights are
// those of the step that it states.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <tenon/callbacks.h>
#include <tenon/tenon.h>

#include "unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr int kills = 100;  ///< per kind of run
constexpr std::uint64_t seed = 1;

Context new_context() {
  Config config;
  config.backends.search = {TENON_BACKEND_DIRECTORY};
  config.device = "openblas:0";
  config.deterministic = true;
  config.seed = 5;
  config.threads = 1;
  config.logging.level = LogLevel::off;
  return Context(config);
}

Model new_model(const Context& context) {
  Model model({layers::Flatten{}, layers::Dense{16, Activation::relu}, layers::Dense{10, Activation::softmax}});
  model.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}});
  model.build({28, 28});
  return model;
}

std::shared_ptr<const Dataset> digits() {
  static const std::shared_ptr<const Dataset> data = generate_digits({.count = 32});
  return data;
}

using Weights = std::map<std::string, std::vector<float>>;

Weights weights_of(Model& model) {
  Weights all;
  for (const auto& [name, tensor] : model.parameters().all()) all[name] = tensor.to_host().to_vector<float>();
  return all;
}

/// A way to save checkpoints.
struct Kind {
  std::string name;
  /// The callback that saves after each epoch.
  std::unique_ptr<Callback> (*saver)(const std::string& folder);
  /// The files that a run leaves if it is not killed.
  std::set<std::string> (*files)(std::int64_t step);
};

/// Writes to a pipe after each step, before the checkpoint is written.
struct Notify final : Callback {
  explicit Notify(int to) : pipe(to) {}
  void epoch_end(const EpochLogs&) override {
    if (write(pipe, "x", 1) != 1) _exit(2);
  }
  int pipe;
};

/// An epoch is one step.
void train(Model& model, std::int64_t epochs, std::vector<Callback*> callbacks) {
  model.fit(digits(), {.batch_size = 32, .epochs = epochs, .workers = 0, .callbacks = std::move(callbacks)});
}

/// Trains until the process is killed.
[[noreturn]] void train_for_ever(const Kind& kind, const std::string& folder, int pipe) {
  try {
    const Context context = new_context();
    Model model = new_model(context);
    if (const std::string newest = newest_checkpoint(folder); !newest.empty()) model.load(newest);
    const std::unique_ptr<Callback> saver = kind.saver(folder);
    Notify notify(pipe);
    train(model, std::numeric_limits<std::int32_t>::max(), {&notify, saver.get()});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "the child that trains: %s\n", e.what());
  }
  _exit(3);
}

using Clock = std::chrono::steady_clock;

/// Kills a child at some point of its `checkpoints`th checkpoint, or soon after. `part`: fraction of the time of one, in [0, 1).
void run_and_kill(const Kind& kind, const std::string& folder, int checkpoints, double part, Clock::duration& time_of_one) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    train_for_ever(kind, folder, ends[1]);
  }
  close(ends[1]);
  char byte = 0;
  bool alive = true;
  for (int i = 0; i < checkpoints && alive; ++i) {
    const Clock::time_point begin = Clock::now();
    alive = read(ends[0], &byte, 1) == 1;
    if (i > 0) time_of_one = Clock::now() - begin;
  }
  std::this_thread::sleep_for(std::chrono::duration_cast<Clock::duration>(part * time_of_one));
  kill(child, SIGKILL);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE_MESSAGE((alive && WIFSIGNALED(status)), "the child ended by itself");
}

/// Without the temporary files that killed runs leave on file systems that cannot keep them unnamed.
std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    // A killed run leaves the file of its lock, unlocked, and on some file systems a temporary file.
    if (name != "checkpoint.lock" && name.extension() != ".tmp") names.insert(name.string());
  }
  return names;
}

void check_kills(const Kind& kind) {
  const test::TemporaryFolder folder;
  std::mt19937_64 random(seed);
  const auto below = [&](double end) { return static_cast<double>(random() >> 11) * 0x1p-53 * end; };
  const Context context = new_context();
  Model undisturbed = new_model(context);  // trained to the same step as each killed run
  int in_the_middle = 0;
  std::size_t max_files = 0;
  Clock::duration time_of_one = std::chrono::milliseconds(1);
  for (int round = 0; round < kills; ++round) {
    CAPTURE(round);
    // The second to the fifth checkpoint, so that there is always one.
    run_and_kill(kind, folder.path(), 2 + static_cast<int>(below(4)), below(1), time_of_one);
    const std::set<std::string> files = files_in(folder.path());
    max_files = std::max(max_files, files.size());

    const std::string newest = newest_checkpoint(folder.path());
    REQUIRE(!newest.empty());
    Model model = new_model(context);
    const Model::Position position = model.load(newest);
    REQUIRE(model.step() > undisturbed.step());
    CHECK(position.epoch == model.step());
    train(undisturbed, model.step(), {});
    REQUIRE(undisturbed.step() == model.step());
    REQUIRE(weights_of(model) == weights_of(undisturbed));
    in_the_middle += files != kind.files(model.step());
  }
  MESSAGE(kind.name, ", seed ", seed, ": ", kills, " runs killed, ", in_the_middle, " between two files; ", undisturbed.step(),
          " steps, at most ", max_files, " files");
  CHECK(in_the_middle > 0);

  // A run that ends normally removes leftover files.
  Model last = new_model(context);
  last.load(newest_checkpoint(folder.path()));
  const std::unique_ptr<Callback> saver = kind.saver(folder.path());
  train(last, last.step() + 2, {saver.get()});
  CHECK(files_in(folder.path()) == kind.files(last.step()));
}

/// Always saves under one name, like a `best` checkpoint whose metric keeps improving.
struct SaveOne final : Callback {
  explicit SaveOne(std::string to) : folder(std::move(to)) {}
  std::string name() const override { return "save_one"; }
  void epoch_end(const EpochLogs&) override { model().save(folder, "best"); }
  bool runs_last() const override { return true; }
  std::string folder;
};

TEST_CASE("checkpoint: a killed run leaves one that loads, with a file name per epoch") {
  check_kills({"epochs",
               [](const std::string& folder) -> std::unique_ptr<Callback> {
                 return std::make_unique<Checkpoint>(Checkpoint::Options{.directory = folder, .keep = 2});
               },
               [](std::int64_t step) {
                 std::set<std::string> names;
                 for (const std::int64_t epoch : {step - 1, step}) {
                   char name[32];
                   std::snprintf(name, sizeof name, "epoch-%06d", static_cast<int>(epoch));
                   for (const char* extension : {".yaml", ".safetensors"}) names.insert(name + std::string(extension));
                 }
                 return names;
               }});
}

TEST_CASE("checkpoint: a killed run leaves one that loads, with one file name for all epochs") {
  check_kills({"one name", [](const std::string& folder) -> std::unique_ptr<Callback> { return std::make_unique<SaveOne>(folder); },
               [](std::int64_t) {
                 return std::set<std::string>{"best.yaml", "best.safetensors"};
               }});
}

}  // namespace
}  // namespace tenon
