// SPDX-License-Identifier: Apache-2.0
// Processes that are killed at random points while they write checkpoints: there is always a checkpoint that loads, and its weights are
// those of the step that it states.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
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

#include "platform/path.h"
#include "platform/process.h"
#include "platform/system.h"
#include "unit/temporary_folder.h"

#define DOCTEST_CONFIG_IMPLEMENT
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

/// Tells the parent of each step, before the checkpoint is written.
struct Notify final : Callback {
  explicit Notify(const platform::MessageChannel& to) : channel(to) {}
  void epoch_end(const EpochLogs&) override {
    if (!channel.send("x")) platform::exit_now(2);
  }
  const platform::MessageChannel& channel;
};

/// An epoch is one step.
void train(Model& model, std::int64_t epochs, std::vector<Callback*> callbacks) {
  model.fit(digits(), {.batch_size = 32, .epochs = epochs, .workers = 0, .callbacks = std::move(callbacks)});
}

/// Trains until the process is killed.
[[noreturn]] void train_for_ever(const Kind& kind, const std::string& folder, const platform::MessageChannel& channel) {
  try {
    const Context context = new_context();
    Model model = new_model(context);
    if (const std::string newest = newest_checkpoint(folder); !newest.empty()) model.load(newest);
    const std::unique_ptr<Callback> saver = kind.saver(folder);
    Notify notify(channel);
    train(model, std::numeric_limits<std::int32_t>::max(), {&notify, saver.get()});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "the child that trains: %s\n", e.what());
  }
  platform::exit_now(3);
}

using Clock = std::chrono::steady_clock;

/// The first argument of a child, which is this program; then follow the kind and the folder.
constexpr const char* child_verb = "--train";

/// Kills a child at some point of its `checkpoints`th checkpoint, or soon after. `part`: fraction of the time of one, in [0, 1).
void run_and_kill(const Kind& kind, const std::string& folder, int checkpoints, double part, Clock::duration& time_of_one) {
  platform::ProcessOptions options;
  options.program = platform::path_of(platform::executable_path());
  options.arguments = {child_verb, kind.name, folder};
  options.messages = true;
  platform::Process child(options);
  bool alive = true;
  for (int i = 0; i < checkpoints && alive;) {
    const Clock::time_point begin = Clock::now();
    std::string told;
    while (alive && told.empty()) {
      platform::Process* const one[] = {&child};
      platform::wait_for_any(one, std::chrono::milliseconds(50));
      alive = !child.ended();
      told = child.read_messages();
    }
    if (i > 0) time_of_one = Clock::now() - begin;
    i += static_cast<int>(told.size());
  }
  std::this_thread::sleep_for(std::chrono::duration_cast<Clock::duration>(part * time_of_one));
  alive = alive && !child.ended();
  child.kill();
  REQUIRE_MESSAGE(alive, "the child ended by itself");
}

/// Without the temporary files that killed runs leave on file systems that cannot keep them unnamed.
std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    // A killed run leaves the file of its lock, unlocked, and on some file systems a temporary file.
    if (name != "checkpoint.lock" && name.extension() != ".tmp") names.insert(platform::text_of(name));
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

const Kind kinds[] = {
    {"epochs",
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
     }},
    {"one name", [](const std::string& folder) -> std::unique_ptr<Callback> { return std::make_unique<SaveOne>(folder); },
     [](std::int64_t) {
       return std::set<std::string>{"best.yaml", "best.safetensors"};
     }},
};

TEST_CASE("checkpoint: a killed run leaves one that loads, with a file name per epoch") {
  check_kills(kinds[0]);
}

TEST_CASE("checkpoint: a killed run leaves one that loads, with one file name for all epochs") {
  check_kills(kinds[1]);
}

/// What main() does in a child.
void train_as_child(const std::vector<std::string>& arguments) {
  const auto channel = platform::MessageChannel::to_parent();
  const auto kind = std::ranges::find(kinds, arguments[2], &Kind::name);
  if (channel && kind != std::end(kinds)) train_for_ever(*kind, arguments[3], *channel);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::vector<std::string> arguments = tenon::platform::command_line(argc, argv);
  if (arguments.size() == 4 && arguments[1] == tenon::child_verb) {
    tenon::train_as_child(arguments);
    return 2;
  }
  return doctest::Context(argc, argv).run();
}
