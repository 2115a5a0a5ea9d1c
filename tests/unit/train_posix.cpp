// SPDX-License-Identifier: Apache-2.0
// Training: a full disk under a checkpoint, threads that cannot be started, and what ends the process.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include <tenon/callbacks.h>

#include "io/input_file.h"
#include "little_memory.h"
#include "sanitized.h"
#include "temporary_folder.h"
#include "train/rank_threads.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

Model regression(const Context& context) {
  return compiled(context, {layers::Dense{1}}, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd}});
}

Model classifier(const Context& context) {
  return compiled(context, {layers::Flatten{}, layers::Dense{16, Activation::relu}, layers::Dense{10, Activation::softmax}});
}

TEST_CASE_FIXTURE(InFolder, "model: moving it in a callback ends the process with the reason") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::freopen(folder.file("err").c_str(), "w", stderr);
    std::signal(SIGABRT, [](int) { _exit(42); });
    Model model = regression(Context(test_config()));
    LambdaCallback moves({.epoch_end = [&](const EpochLogs&) { const Model taken = std::move(model); }});
    model.fit(generate_linear({.count = 64}).data, {.callbacks = {&moves}});
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 42);
  CHECK(folder.read("err") == "tenon: error: the model is moved while fit runs on it, probably in a callback; wait until fit returns\n");
}

#if !TENON_IS_SANITIZED
TEST_CASE("devices: a thread that cannot be started is an error, and those that were started have ended") {
  const int status = with_room_for_stacks(3, [] {
    try {
      const train::RankThreads threads(512);
    } catch (const Error& error) {
      return contains(error.what(), "expected to start 511 threads, one for each of 512 devices but the first, got ") ? 0 : 2;
    }
    return 1;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

TEST_CASE_FIXTURE(InFolder, "checkpoint: the old one stays valid until its replacement is complete") {
  const Context context(deterministic());
  Model model = classifier(context);
  model.fit(digits());
  model.save(folder.path(), "c");
  const auto saved = weights(model);
  model.fit(digits(), {.epochs = 2});
  // The YAML, which is written last, becomes a link to a descriptor that can only be read.
  std::filesystem::rename(folder.file("c.yaml"), folder.file("kept.yaml"));
  const io::OpenFile kept = io::open_for_reading(folder.file("kept.yaml"));
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(kept.file.native()), folder.file("c.yaml"));
  CHECK_ERROR_CONTAINS("cannot be written: Bad file descriptor", model.save(folder.path(), "c"));
  Model again = classifier(context);
  CHECK(again.load(folder.path() + "/c.yaml").epoch == 1);
  CHECK(weights(again) == saved);

  std::filesystem::rename(folder.file("kept.yaml"), folder.file("c.yaml"));
  model.save(folder.path(), "c");
  CHECK(again.load(folder.path() + "/c.yaml").epoch == 2);
  CHECK(weights(again) == weights(model));
  CHECK(folder.count_files() == 2);
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: a full disk leaves the old one valid") {
  const Context context(deterministic());
  Model model = classifier(context);
  FitOptions options;
  model.fit(digits(), options);
  model.save(folder.path(), "c");
  const auto saved = weights(model);
  options.epochs = 2;
  model.fit(digits(), options);

  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = message_of([&] { model.save(folder.path(), "c"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  CHECK(contains(text, "c.safetensors"));
  Model again = classifier(context);
  CHECK(again.load(folder.path() + "/c.yaml").epoch == 1);
  CHECK(weights(again) == saved);
}

TEST_CASE_FIXTURE(InFolder, "checkpoint folder: pipes are no checkpoints, and nothing waits for them") {
  CHECK(::mkfifo(folder.file("x.yaml").c_str(), 0600) == 0);
  CHECK(::mkfifo(folder.file("epoch-000001.safetensors.tmp").c_str(), 0600) == 0);
  CHECK(newest_checkpoint(folder.path()).empty());
  Model model = regression(Context(test_config()));
  CHECK_ERROR(folder.file("x.yaml") + ": expected a file, got a device or pipe", model.load(folder.file("x.yaml")));
}

}  // namespace
}  // namespace tenon::test
