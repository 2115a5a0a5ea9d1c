// SPDX-License-Identifier: Apache-2.0
// Checkpoints: bitwise resume, rejection of mismatches, and robustness.
#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

Model make_model(const Context& context, std::int64_t units = 16) {
  return compiled(
      context, {layers::Flatten{}, layers::Dense{units, Activation::relu}, layers::Dropout{0.3}, layers::Dense{10, Activation::softmax}});
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: a resumed run ends with the same bits as one that was never stopped") {
  const Context context(deterministic());
  Model straight = make_model(context);
  FitOptions options{.epochs = 4};
  straight.fit(digits(), options);

  Model first = make_model(context);
  options.epochs = 2;
  first.fit(digits(), options);
  first.save(folder.path(), "half");

  Model second = make_model(context);
  const Model::Position position = second.load(folder.path() + "/half.yaml");
  CHECK(position.epoch == 2);
  CHECK(position.seed == 3);
  CHECK(second.step() == first.step());
  options.epochs = 4;
  CHECK(second.fit(digits(), options).size() == 2);
  CHECK(weights(second) == weights(straight));
}

TEST_CASE_FIXTURE(Deterministic, "checkpoint: the same seed gives the same bits, another seed different ones") {
  Model a = make_model(context), b = make_model(context);
  a.fit(digits(), {});
  b.fit(digits(), {});
  CHECK(weights(a) == weights(b));
  Config config = deterministic();
  config.seed = 4;
  const Context other(config);
  Model c = make_model(other);
  c.fit(digits(), {});
  CHECK(weights(c) != weights(a));
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: that of another model is rejected and changes nothing") {
  const Context context(deterministic());
  Model small = make_model(context, 16);
  small.build({28, 28});
  small.save(folder.path(), "small");
  Model large = make_model(context, 20);
  large.build({28, 28});
  const auto before = weights(large);
  const std::string text = message_of([&] { large.load(folder.path() + "/small.yaml"); });
  CHECK(contains(text, "belongs to another model: expected parameter 'dense/bias' f32(20), got f32(16)"));
  CHECK(weights(large) == before);
  CHECK(large.step() == 0);

  CHECK_ERROR_CONTAINS("key 'sample': expected (3,32,32), got (28,28)", [&] {
    Model other = make_model(context);
    other.build({3, 32, 32});
    other.load(folder.path() + "/small.yaml");
  }());

  Model deeper({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
  deeper.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}});
  CHECK_ERROR_CONTAINS("belongs to another model", deeper.load(folder.path() + "/small.yaml"));
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: that of another optimizer names both, whichever has the state that the other lacks") {
  const Context context(deterministic());
  const auto with = [&](OptimizerDefinition::Kind kind) {
    Model model({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
    CompileOptions options{.loss = {.loss = Loss::sparse_categorical_crossentropy}};
    options.optimizer.kind = kind;
    model.compile(context, options);
    model.build({28, 28});
    return model;
  };
  Model adam = with(OptimizerDefinition::Kind::adam), sgd = with(OptimizerDefinition::Kind::sgd);
  adam.fit(digits(), {});
  sgd.fit(digits(), {});
  adam.save(folder.path(), "adam");
  sgd.save(folder.path(), "sgd");
  const std::string file = folder.file("adam.yaml");
  CHECK_ERROR((file +
               ": was trained with the optimizer adam, this run uses sgd; keep adam, or start from its weights alone: `resume: never`, "
               "`weights: {file: " +
               file + ", strict: false}` and another checkpoint.directory")
                  .c_str(),
              sgd.load(file));
  CHECK_ERROR_CONTAINS("was trained with the optimizer sgd, this run uses adam", adam.load(folder.file("sgd.yaml")));
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: that of the same optimizer with other options names the state, and no other model") {
  const Context context(deterministic());
  const auto with = [&](OptimizerDefinition::Kind kind, const auto& change) {
    Model model({layers::Flatten{}, layers::Dense{10, Activation::softmax}});
    CompileOptions options{.loss = {.loss = Loss::sparse_categorical_crossentropy}};
    options.optimizer.kind = kind;
    change(options.optimizer);
    model.compile(context, options);
    model.build({28, 28});
    return model;
  };
  const auto as_it_is = [](OptimizerDefinition&) {};
  const auto expect = [&](Model saved, Model loading, const std::string& difference) {
    saved.fit(digits(), {});
    saved.save(folder.path(), "saved");
    const std::string file = folder.file("saved.yaml"), text = message_of([&] { loading.load(file); });
    CHECK(text == file + ": its optimizer " + difference +
                      "; use the options of the optimizer, and what is `trainable`, that it was saved with, or start from its weights "
                      "alone: `resume: never`, `weights: {file: " +
                      file + ", strict: false}` and another checkpoint.directory");
  };
  using Kind = OptimizerDefinition::Kind;
  const auto amsgrad = [](OptimizerDefinition& o) { o.amsgrad = true; };
  const auto momentum = [](OptimizerDefinition& o) { o.momentum = 0.9; };
  expect(with(Kind::adam, as_it_is), with(Kind::adam, amsgrad), "adam has no state 'optimizer/dense/bias/peak', which this run needs");
  expect(with(Kind::adam, amsgrad), with(Kind::adam, as_it_is),
         "adam has the state 'optimizer/dense/bias/peak', which this run does not have");
  expect(with(Kind::sgd, as_it_is), with(Kind::sgd, momentum), "sgd has no state 'optimizer/dense/bias/velocity', which this run needs");
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: missing, damaged and foreign files are reported") {
  const Context context(deterministic());
  Model model = make_model(context);
  model.build({28, 28});
  CHECK_ERROR_CONTAINS("none.yaml", model.load(folder.path() + "/none.yaml"));
  model.save(folder.path(), "good");
  const std::string tensors = folder.path() + "/good.safetensors";
  fs::resize_file(tensors, fs::file_size(tensors) - 1);
  CHECK_ERROR_CONTAINS("good.safetensors: damaged: expected ", model.load(folder.path() + "/good.yaml"));
  fs::remove(tensors);
  CHECK_ERROR_CONTAINS("good.safetensors: file not found", model.load(folder.path() + "/good.yaml"));
  folder.write("other.yaml", "format: something-else\n");
  CHECK_ERROR_CONTAINS("is not a checkpoint: expected a YAML file that begins with 'format: tenon-checkpoint-3'",
                       model.load(folder.path() + "/other.yaml"));
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: the newest complete one is found, an incomplete one is not") {
  const Context context(deterministic());
  Model model = make_model(context);
  model.build({28, 28});
  CHECK(newest_checkpoint(folder.path()).empty());
  FitOptions options;
  Checkpoint keep_two({.directory = folder.path(), .every_epochs = 1, .keep = 2});
  options.callbacks = {&keep_two};
  options.epochs = 4;
  model.fit(digits(), options);
  CHECK(newest_checkpoint(folder.path()) == folder.file("epoch-000004.yaml"));
  CHECK(!fs::exists(folder.path() + "/epoch-000002.yaml"));
  CHECK(!fs::exists(folder.path() + "/epoch-000002.safetensors"));
  CHECK(fs::exists(folder.path() + "/epoch-000003.yaml"));
  fs::remove(folder.path() + "/epoch-000004.safetensors");  // as after a crash between the two renames
  CHECK(newest_checkpoint(folder.path()) == folder.file("epoch-000003.yaml"));
}

TEST_CASE_FIXTURE(InFolder, "checkpoint: what an interrupted removal left, and nothing else, is removed with the next one") {
  const Context context(deterministic());
  Model model = make_model(context);
  for (const char* name : {"epoch-000001-notes.txt", "epoch-notes.yaml"}) folder.write(name, "left");
  Checkpoint keep_one({.directory = folder.path(), .keep = 1});
  model.fit(digits(), {.epochs = 2, .callbacks = {&keep_one}});
  model.save(folder.path(), "epoch-000001");
  fs::remove(folder.file("epoch-000001.safetensors"));
  model.fit(digits(), {.epochs = 3, .callbacks = {&keep_one}});
  CHECK(newest_checkpoint(folder.path()) == folder.file("epoch-000003.yaml"));
  CHECK(folder.read("epoch-000001-notes.txt") == "left");
  CHECK(folder.read("epoch-notes.yaml") == "left");
  CHECK(folder.count_files() == 4);
}

}  // namespace
}  // namespace tenon::test
