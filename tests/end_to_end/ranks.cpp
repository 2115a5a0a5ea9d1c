// SPDX-License-Identifier: Apache-2.0
// ranks <folder>: run by mpirun. A model whose optimizer state is sharded over processes is compiled again, for as many ranks, for twice as
// many and without shards, is saved, loaded and saved again; it has the bits of one whose state is whole at each of these steps. Loads that
// fail on one process fail on all.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/safetensors.h>
#include <tenon/tenon.h>

using namespace tenon;

namespace {

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected " + what);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.size_bytes())) == 0;
}

void expect_same_weights(Model& a, Model& b, const std::string& when) {
  for (const auto& [name, tensor] : b.parameters().all()) {
    if (is_training_state(name)) continue;
    expect(same(a.parameters().get(name).to_host(), tensor.to_host()), "the bits of '" + name + "' that whole state gives, " + when);
  }
}

void expect_same_files(const std::string& a, const std::string& b, const std::string& when) {
  const Safetensors one = load_safetensors(a), other = load_safetensors(b);
  expect(one.tensors.size() == other.tensors.size(), "as many tensors in " + a + " as in " + b + ", " + when);
  for (const NamedTensor& tensor : one.tensors) {
    const Tensor* const found = other.find(tensor.name);
    expect(found != nullptr && same(*found, tensor.tensor), "the same '" + tensor.name + "' in " + a + " as in " + b + ", " + when);
  }
}

CompileOptions options_of(int devices, bool shards) {
  CompileOptions options;
  options.optimizer.kind = OptimizerDefinition::Kind::adam;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  for (int device = 0; device < devices; ++device) options.parallel.devices.push_back("openblas:" + std::to_string(device));
  options.parallel.shard_optimizer = shards;
  options.parallel.transport = "mpi";
  return options;
}

/// What a load throws; empty: nothing.
std::string failure_of(Model& model, const std::string& checkpoint) {
  try {
    model.load(checkpoint);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// One process has no checkpoint, or another one than the others: none of them waits for an answer, and what was loaded stays.
void expect_agreement(Model& model, const std::string& folder) {
  const bool is_first = model.rank() == 0;
  const std::string good = folder + "/sharded.yaml";
  std::filesystem::create_directory(folder + "/missing");
  for (const std::string& missing : {folder + "/missing.yaml", folder + "/missing"}) {
    const std::string text = failure_of(model, is_first ? good : missing);
    expect(text.find("missing") != std::string::npos, "the error of '" + missing + "', got '" + text + "'");
    expect(!is_first || text.starts_with("process 1: "), "the process that has failed, got '" + text + "'");
  }
  const std::string text = failure_of(model, is_first ? good : folder + "/whole.yaml");
  expect(text.find("every process loads the same checkpoints") != std::string::npos, "a difference of checkpoints, got '" + text + "'");
  expect(failure_of(model, good).empty(), "a checkpoint that is loaded after others were not");
}

/// A checkpoint that was loaded is replaced before the first step, more than once. The model has more state than the checkpoint.
void expect_replaced(Model& model, const std::string& folder) {
  model.load(folder + "/again.yaml");
  if (model.rank() > 0) return;
  for (const float value : {1.0f, 2.0f}) {
    const std::string name = "dense/bias";
    const Tensor changed = Tensor::full(DType::f32, model.parameters().get(name).shape(), value);
    model.parameters().set(name, changed);
    model.save(folder, "again");
    const Safetensors saved = load_safetensors(folder + "/again.safetensors");
    expect(saved.find(name) != nullptr && same(*saved.find(name), changed), "the value of '" + name + "' that was saved last");
  }
}

Model small() {
  return Model({layers::Flatten{}, layers::Dense{20, Activation::relu}, layers::Dense{10, Activation::softmax}});
}

void run(const std::string& folder) {
  Config config = resolve_config();
  config.virtual_devices = {{.of = "openblas:0", .count = 2}};
  config.threads = 2;
  config.seed = 5;
  const Context context(config);
  const auto data = generate_digits({.count = 60});
  Model sharded = small(), whole = small();
  std::int64_t epochs = 0;
  struct Way {
    int devices;
    bool shards;
  };
  for (const Way way : {Way{1, true}, Way{1, true}, Way{2, true}, Way{1, false}, Way{2, true}, Way{1, true}}) {
    ++epochs;
    const std::string when = "epoch " + std::to_string(epochs) + ", rank " + std::to_string(sharded.rank());
    sharded.compile(context, options_of(way.devices, way.shards));
    whole.compile(context, options_of(way.devices, false));
    for (Model* const model : {&sharded, &whole}) model->fit(data, {.batch_size = 20, .epochs = epochs});
    expect(sharded.step() == 3 * epochs, "3 steps in each epoch");
    expect_same_weights(sharded, whole, when);
    if (sharded.rank() > 0) continue;
    sharded.save(folder, "sharded");
    whole.save(folder, "whole");
    expect_same_files(folder + "/sharded.safetensors", folder + "/whole.safetensors", when);
  }
  // A fit makes the processes wait for each other: the files are complete.
  whole.fit(data, {.batch_size = 20, .epochs = epochs});
  for (const int devices : {1, 2}) {
    Model loaded = small();
    loaded.compile(context, options_of(devices, true));
    loaded.load(folder + "/sharded.yaml");
    if (loaded.rank() == 0) {
      loaded.save(folder, "again");
      expect_same_files(folder + "/again.safetensors", folder + "/sharded.safetensors", "saved as it was loaded");
    }
    loaded.compile(context, options_of(3 - devices, true));  // what each process has read goes to other owners
    if (loaded.rank() == 0) {
      loaded.save(folder, "again");
      expect_same_files(folder + "/again.safetensors", folder + "/sharded.safetensors", "saved after it was compiled again");
    }
    Model expected = small();
    expected.compile(context, options_of(3 - devices, false));
    expected.load(folder + "/whole.yaml");
    for (Model* const model : {&loaded, &expected}) model->fit(data, {.batch_size = 20, .epochs = epochs + 1});
    expect_same_weights(loaded, expected, "after it was loaded");
  }
  if (whole.rank_count() > 1) {
    Model loaded = small();
    loaded.compile(context, options_of(1, true));
    expect_agreement(loaded, folder);
    config.precision = Precision::mixed_float16;  // there is a scale of the loss
    const Context mixed(config);
    Model scaled = small();
    scaled.compile(mixed, options_of(1, true));
    expect_replaced(scaled, folder);
  }
  if (whole.rank() == 0) std::printf("%d ranks: the same bits\n", whole.rank_count());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    run(arguments[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ranks: %s\n", error.what());
    std::_Exit(1);  // the other processes may wait for this one: mpirun ends them
  }
}
