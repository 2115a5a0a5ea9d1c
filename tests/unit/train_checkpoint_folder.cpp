// SPDX-License-Identifier: Apache-2.0
// Folders of checkpoints: whose they are, which is the newest, what is removed, and what damage does.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>

#include <tenon/callbacks.h>

#include "core/log.h"
#include "io/lock_file.h"
#include "temporary_folder.h"
#include "train/checkpoint/checkpoint_file.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using train::CheckpointFolder;

struct WithModels : InFolder {
  Context context{test_config()};
  std::shared_ptr<const ArrayDataset> data = generate_linear({.count = 8}).data;
  Model model() { return compiled(context, {layers::Dense{1}}, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd}}); }
  void fit(Model& model, std::int64_t epochs, Checkpoint::Options options = {}) {
    options.directory = folder.path();
    Checkpoint checkpoint(options);
    model.fit(data, {.epochs = epochs, .callbacks = {&checkpoint}});
  }
  std::string newest() const { return fs::path(newest_checkpoint(folder.path())).filename().string(); }
  /// Inverts a bit of a file.
  void damage(const std::string& name, std::size_t at) const {
    std::string content = folder.read(name);
    content[at % content.size()] ^= 1;
    folder.write(name, content);
  }
  /// What is logged while `body` runs.
  std::string logged(const std::function<void()>& body) const {
    log::set_file(folder.file("log"));
    log::set_level(TENON_LOG_WARNING);
    body();
    log::set_level(TENON_LOG_ERROR + 1);
    log::set_file("");
    const std::string text = folder.read("log");
    fs::remove(folder.file("log"));
    return text;
  }
};

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: that of another run is refused before the first epoch, and keeps its files") {
  Model first = model();
  fit(first, 10);
  Model second = model();
  CHECK(second.run() != first.run());
  const std::string text = message_of([&] { fit(second, 5); });
  for (const std::string& part : {folder.file("epoch-000010.yaml"), std::string("(epoch 10, step 10, seed 0)"), first.run(), second.run(),
                                  std::string("resume: auto"), std::string("--overwrite"), std::string("another folder")})
    CHECK_MESSAGE(contains(text, part), text);
  CHECK(second.step() == 0);
  CHECK(newest() == "epoch-000010.yaml");
  CHECK(folder.count_files() == 2);

  fit(second, 5, {.overwrite = true});  // shorter than the first run
  CHECK(newest() == "epoch-000005.yaml");
  CHECK(folder.count_files() == 2);

  Model resumed = model();
  resumed.load(folder.path());
  CHECK(resumed.run() == second.run());
  fit(resumed, 7);
  CHECK(newest() == "epoch-000007.yaml");
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: `overwrite` removes what was there, not what a callback has replaced") {
  Model first = model(), second = model();
  first.fit(data, {.epochs = 9});
  for (const char* name : {"best", "epoch-000009", "interrupted"}) first.save(folder.path(), name);
  folder.write("epoch-000010.yaml", "format: tenon-checkpoint-0\n");
  CHECK_ERROR_CONTAINS("of another run", fit(second, 1));
  Checkpoint best({.directory = folder.path(), .best = true, .overwrite = true}), last({.directory = folder.path(), .overwrite = true});
  second.fit(data, {.epochs = 1, .callbacks = {&best, &last}});
  CHECK(folder.count_files() == 4);
  CHECK(second.load(folder.file("best.yaml")).step == 1);
  CHECK(second.load(folder.file("epoch-000001.yaml")).step == 1);

  fs::resize_file(folder.file("best.yaml"), 50);
  fs::remove(folder.file("epoch-000001.yaml"));
  CHECK_ERROR_CONTAINS("has a checkpoint that cannot be read: " + folder.file("best.yaml") + ": damaged", [&] {
    Model third = model();
    fit(third, 1);
  }());
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: a run that is resumed before its newest checkpoint is refused") {
  Model first = model();
  fit(first, 3, {.keep = 0});
  Model second = model();
  second.load(folder.file("epoch-000001.yaml"));
  CHECK_ERROR_CONTAINS("of this run, which is resumed from step 1", fit(second, 3));
  CHECK(folder.count_files() == 6);
  fit(second, 2, {.overwrite = true});
  CHECK(newest() == "epoch-000002.yaml");
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: epochs are ordered as numbers, and only those of the run are removed") {
  Model any = model();
  any.build({3});
  folder.write("epoch-000001.safetensors", "weights of somebody");
  folder.write("epoch-1.yaml", "format: none");
  CheckpointFolder checkpoints(folder.path(), {any.run(), 0, false});
  for (const std::int64_t epoch : {999'999, 1'000'000}) {
    any.save(folder.path(), CheckpointFolder::name_of_epoch(epoch));
    checkpoints.add(epoch, 1);
  }
  CHECK(fs::exists(folder.file("epoch-1000000.yaml")));
  CHECK_FALSE(fs::exists(folder.file("epoch-999999.yaml")));
  CHECK(folder.read("epoch-000001.safetensors") == "weights of somebody");
  CHECK(folder.read("epoch-1.yaml") == "format: none");
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: the newest is of the run that wrote last, not of the highest step") {
  Model first = model(), second = model();
  first.fit(data, {.epochs = 3});
  first.save(folder.path(), "a");
  second.fit(data, {.epochs = 1});
  second.save(folder.path(), "b");
  fs::last_write_time(folder.file("a.yaml"), fs::last_write_time(folder.file("b.yaml")) - std::chrono::seconds(1));
  CHECK(newest() == "b.yaml");
}

TEST_CASE_FIXTURE(WithModels, "checkpoint: every inverted bit is found, in the YAML and in the weights") {
  Model saved = model();
  saved.fit(data);
  saved.save(folder.path(), "c");
  const auto before = weights(saved);
  for (const char* name : {"c.yaml", "c.safetensors"}) {
    const std::size_t size = folder.read(name).size();
    for (std::size_t at = 0; at < size; ++at) {
      damage(name, at);
      const std::string text = message_of([&] { saved.load(folder.file("c.yaml")); });
      CHECK_MESSAGE(contains(text, folder.file("c.yaml")), at, text);
      damage(name, at);
    }
  }
  CHECK(weights(saved) == before);
  saved.load(folder.file("c.yaml"));
}

TEST_CASE_FIXTURE(WithModels, "checkpoint: a damaged one is an error if it is named, and passed over with a warning in a folder") {
  Model saved = model();
  fit(saved, 3, {.keep = 0});
  damage("epoch-000003.safetensors", fs::file_size(folder.file("epoch-000003.safetensors")) - 1);
  CHECK_ERROR_CONTAINS("epoch-000003.safetensors: damaged: tensor \"dense/kernel\": expected content of CRC-32",
                       model().load(folder.file("epoch-000003.yaml")));
  Model other = model();
  std::string text = logged([&] { CHECK(other.load(folder.path()).file == folder.file("epoch-000002.yaml")); });
  CHECK_MESSAGE((contains(text, "epoch-000003.yaml: its weights: ") &&
                 contains(text, "epoch-000002.yaml (epoch 2, step 2, seed 0) is taken instead")),
                text);
  logged([&] { fit(other, 3, {.keep = 0}); });  // replaces the damaged one
  CHECK(logged([&] { CHECK(newest() == "epoch-000003.yaml"); }).empty());

  fs::resize_file(folder.file("epoch-000003.yaml"), 100);
  text = logged([&] { CHECK(newest() == "epoch-000002.yaml"); });
  CHECK_MESSAGE((contains(text, "epoch-000003.yaml: damaged: its last line") && contains(text, "is taken instead")), text);
  for (const char* name : {"epoch-000001.safetensors", "epoch-000002.safetensors"}) fs::resize_file(folder.file(name), 10);
  CHECK_ERROR_CONTAINS("every checkpoint is damaged", newest_checkpoint(folder.path()));
  CHECK_ERROR_CONTAINS("epoch-000002.yaml", model().load(folder.path()));
}

TEST_CASE_FIXTURE(WithModels, "checkpoint: weights are loaded without the optimizer state, which is not read") {
  CompileOptions adam;
  adam.optimizer.kind = OptimizerDefinition::Kind::adam;
  Model saved = compiled(context, {layers::Dense{1}}, adam);
  saved.fit(data);
  saved.save(folder.path(), "c");
  const std::string whole = folder.read("c.safetensors");
  const train::CheckpointFile checkpoint = train::read_checkpoint_file(folder.file("c.yaml"));
  const train::CheckpointWeights file(checkpoint);
  const std::size_t data_begin = whole.size() - std::ranges::max(file.entries(), {}, &io::TensorEntry::end).end;
  damage("c.safetensors", data_begin + file.find("optimizer/dense/kernel/m")->begin);
  Model other = compiled(context, {layers::Dense{1}}, adam);
  CHECK_ERROR_CONTAINS("damaged: tensor \"optimizer/dense/kernel/m\"", other.load(folder.file("c.yaml")));
  other.load(folder.file("c.yaml"), Model::Load::weights);
  const auto is_weight = [](const std::string& name, const Tensor&) { return !is_training_state(name); };
  CHECK(weights(other, is_weight) == weights(saved, is_weight));
  CHECK(load_weights_file(folder.file("c.yaml")).size() == 2);
  CHECK_ERROR_CONTAINS("every checkpoint is damaged", newest_checkpoint(folder.path()));
}

TEST_CASE_FIXTURE(WithModels, "checkpoint: one of the version before, with one checksum of its weights, is read") {
  Model saved = model();
  saved.fit(data);
  saved.save(folder.path(), "c");
  train::CheckpointFile checkpoint = train::read_checkpoint_file(folder.file("c.yaml"));
  CHECK(checkpoint.checksum.tensors.size() == 2);
  const std::string bytes = folder.read("c.safetensors");
  io::Crc32 of_all;
  of_all.add(bytes.data(), bytes.size());
  checkpoint.checksum.has_parts = false;
  checkpoint.checksum.crc32 = of_all.value();
  folder.write("c.yaml", train::checkpoint_text(checkpoint));
  CHECK(folder.read("c.yaml").starts_with("format: tenon-checkpoint-2\n"));
  Model other = model();
  other.load(folder.file("c.yaml"));
  CHECK(weights(other) == weights(saved));
  CHECK(newest() == "c.yaml");
  damage("c.safetensors", bytes.size() - 1);
  CHECK_ERROR_CONTAINS("damaged: expected content of CRC-32", other.load(folder.file("c.yaml"), Model::Load::weights));
}

TEST_CASE_FIXTURE(WithModels, "checkpoint: the YAML has a checksum of each tensor, of more than a YAML file may have values") {
  Model saved = model();
  saved.fit(data);
  saved.save(folder.path(), "c");
  train::CheckpointFile checkpoint = train::read_checkpoint_file(folder.file("c.yaml"));
  const std::vector<std::uint32_t> own = checkpoint.checksum.tensors;
  REQUIRE(own.size() == 2);
  CHECK(contains(folder.read("c.yaml"), fmt::format("weights_tensors_crc32: \"{:08x}{:08x}\"\n", own[0], own[1])));
  std::vector<std::uint32_t>& tensors = checkpoint.checksum.tensors;
  for (std::uint32_t i = 0; i < 150'000; ++i) tensors.push_back(i * 0x9e3779b9u);
  folder.write("many.yaml", train::checkpoint_text(checkpoint));
  CHECK(train::read_checkpoint_file(folder.file("many.yaml")).checksum.tensors == tensors);
  for (const std::vector<std::uint32_t>& few : {std::vector<std::uint32_t>{}, {0}, {0xffffffff}}) {
    checkpoint.checksum.tensors = few;
    folder.write("few.yaml", train::checkpoint_text(checkpoint));
    CHECK(train::read_checkpoint_file(folder.file("few.yaml")).checksum.tensors == few);
  }
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: folders and other files are no checkpoints") {
  fs::create_directory(folder.file("y.yaml"));
  folder.write("train.yaml", "model: m\n");
  CHECK(newest_checkpoint(folder.path()).empty());
  CHECK(newest_checkpoint(folder.file("none")).empty());
  CHECK_ERROR_CONTAINS("is not a checkpoint: expected a YAML file that begins with", model().load(folder.file("train.yaml")));
  Model saved = model();
  saved.fit(data);
  saved.save(folder.path(), "c");
  CHECK_ERROR_CONTAINS("give " + folder.file("c.yaml"), model().load(folder.file("c.safetensors")));
  CHECK(newest() == "c.yaml");
}

TEST_CASE_FIXTURE(WithModels, "checkpoint: a position beyond any use is refused on reading") {
  Model saved = model();
  saved.fit(data);
  saved.save(folder.path(), "c");
  train::CheckpointFile file = train::read_checkpoint_file(folder.file("c.yaml"));
  file.progress.step = std::int64_t{1} << 60;
  folder.write("c.yaml", train::checkpoint_text(file));
  CHECK_ERROR_CONTAINS("key 'step': expected an integer", saved.load(folder.file("c.yaml")));
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: one that cannot be written is refused before the first epoch") {
  folder.write("file", "");
  Model never = model();
  Checkpoint checkpoint({.directory = folder.file("file/c")});
  CHECK_ERROR_CONTAINS("file/c cannot be created: Not a directory", never.fit(data, {.callbacks = {&checkpoint}}));
  CHECK(never.step() == 0);
}

TEST_CASE_FIXTURE(WithModels, "checkpoint folder: a second writer is refused with the name of the first") {
  const std::string path = folder.file("checkpoint.lock");
  {
    const io::LockFile other(path);
    Model second = model();
    CHECK_ERROR_CONTAINS("cannot be used: " + path + ": locked by process " + std::to_string(::getpid()) + " on ", fit(second, 1));
  }
  CHECK_FALSE(fs::exists(path));
  Model first = model(), second = model();
  const CheckpointFolder one(folder.path(), {first.run(), 0, false}), same(folder.path(), {first.run(), 0, false});
  CHECK_ERROR_CONTAINS("locked by another run of this process", fit(second, 1));
}

}  // namespace
}  // namespace tenon::test
