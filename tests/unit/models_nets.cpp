// models/: every definition is read and built; parameters are as many as its source says; small cuts train alike on two backends.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "config/model_yaml.h"
#include "exec_testing.h"
#include "train/builder.h"
#include "train/objective.h"

namespace tenon {
namespace {

using test::test_config;

const std::string folder = std::string(TENON_SOURCE_DIRECTORY) + "/models/";

/// The model of a train.yaml or model.yaml.
ModelDefinition model_in(const std::string& file) {
  if (config::load_yaml(file).find("layers") != nullptr) return config::load_model(file);
  return config::load_train(file).model;
}

Shape batch_shape(const ModelDefinition& model, std::int64_t batch) {
  Shape shape{batch};
  for (const std::int64_t size : *model.input_shape) shape.push_back(size);
  return shape;
}

train::Forward built(Graph& graph, const ModelDefinition& model, std::int64_t batch) {
  return train::build(graph, model, graph.input("x", train::input_dtype(model), batch_shape(model, batch)), {});
}

struct Counts {
  std::int64_t learned = 0, kept = 0;
  std::int64_t flops = 0;  ///< of a forward pass, per sample
};

Counts count(const ModelDefinition& model) {
  Graph graph;
  Counts counts;
  for (const LayerSummary& row : built(graph, model, 1).layers) {
    counts.learned += row.parameters - row.non_trainable;
    counts.kept += row.non_trainable;
    counts.flops += row.flops;
  }
  return counts;
}

std::vector<std::string> definitions() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("nets: parameters are as many as the papers and repositories say") {
  struct Row {
    const char* file;
    std::int64_t learned;
  };
  // the counts beyond those that benchmarks state are torchvision's, where it has the net
  const Row rows[] = {
      {"fcn_s", 117'997'696},      {"fcn_8", 130'586'752},     {"fcn_5_k40", 11'492'328},   {"fcn_8_k40", 24'081'384},
      {"fcn_r", 14'205'962},       {"alexnet_s", 62'378'344},  {"alexnet_r", 89'578},       {"lstm_32", 6'180'624},
      {"lstm_64", 6'180'624},      {"resnet_18", 11'689'512},  {"resnet_34", 21'797'672},   {"resnet_50", 25'557'032},
      {"resnet_101", 44'549'160},  {"resnet_152", 60'192'808}, {"vgg_16", 138'357'544},     {"vgg_19", 143'667'240},
      {"vgg_a", 132'863'336},      {"alexnet", 60'965'224},    {"alexnet_owt", 61'100'840}, {"inception_v1", 6'998'552},
      {"googlenet_v1", 6'998'552}, {"overfeat", 145'920'872},  {"resnet_200", 64'673'832},
  };
  for (const Row& row : rows) {
    CAPTURE(row.file);
    CHECK(count(model_in(folder + "bench/" + row.file + ".yaml")).learned == row.learned);
  }
  CHECK(count(model_in(folder + "convnet/model.yaml")).learned == 818'698);
  CHECK(count(model_in(folder + "mnist_mlp/model.yaml")).learned == 266'200);
}

TEST_CASE("nets: ResNet-56 has 848,304 numbers in its convolutions") {
  Graph graph;
  std::int64_t in_convolutions = 0;
  for (const LayerSummary& row : built(graph, model_in(folder + "bench/resnet_56.yaml"), 1).layers) {
    if (row.type == "Conv2D") in_convolutions += row.parameters;
  }
  CHECK(in_convolutions == 848'304);
}

TEST_CASE("nets: the work of a forward pass is what the benchmarks count, within a few percent") {
  struct Row {
    const char* file;
    std::int64_t batch;
    double gflop;
  };
  const Row rows[] = {{"fcn_s", 64, 15.1},      {"fcn_8", 64, 16.7},     {"fcn_5_k40", 8192, 188}, {"fcn_8_k40", 8192, 394},
                      {"fcn_r", 1024, 29.1},    {"alexnet_s", 16, 36.3}, {"resnet_50", 16, 131},   {"alexnet_r", 1024, 25.2},
                      {"resnet_56", 128, 32.1}, {"vgg_16", 16, 496},     {"lstm_32", 128, 29.6}};
  for (const Row& row : rows) {
    CAPTURE(row.file);
    const double gflop = static_cast<double>(count(model_in(folder + "bench/" + row.file + ".yaml")).flops * row.batch) / 1e9;
    CHECK(gflop == doctest::Approx(row.gflop).epsilon(0.03));
  }
}

/// Losses of `steps` steps on one batch of the model's cut, made up but for its shape.
std::vector<double> losses_of(const config::TrainDefinition& cut, const std::string& backend, int steps) {
  const ModelDefinition& definition = cut.model;
  Context context(test_config(backend));
  Graph graph;
  const Shape output = built(graph, definition, cut.batch_size).output.shape();
  const Shape shape = batch_shape(definition, cut.batch_size);
  const auto noise = [](std::int64_t i) { return static_cast<float>(i * 7919 % 1009) / 1009.0f; };
  const auto classes = static_cast<std::int64_t>(output[output.rank() - 1]);

  Tensor x = Tensor::zeros(train::input_dtype(definition), shape);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    if (x.dtype() == DType::f32) {
      x.data<float>()[i] = noise(i);
    } else {
      x.data<std::int64_t>()[i] = i * 7 % classes;
    }
  }
  Tensor y;
  if (train::rule_of(cut.loss.loss).targets == train::Targets::labels) {
    Shape labels;
    for (std::size_t i = 0; i + 1 < output.rank(); ++i) labels.push_back(output[i]);
    y = Tensor::zeros(DType::i64, labels);
    for (std::int64_t i = 0; i < y.count(); ++i) y.data<std::int64_t>()[i] = i * 3 % classes;
  } else {
    y = Tensor::zeros(DType::f32, output);
    for (std::int64_t i = 0; i < y.count(); ++i) y.data<float>()[i] = noise(i + 5);
  }
  Model model(definition);
  model.compile(context, {.optimizer = cut.optimizer, .loss = cut.loss});
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) losses.push_back(model.train_batch(x, y)[0].second);
  return losses;
}

TEST_CASE("nets: 20 steps of each model's cut have the losses of the reference within 1e-3") {
  int cuts = 0;
  for (const std::string& file : definitions()) {
    if (config::load_yaml(file).find("layers") != nullptr) continue;  // the model of a train.yaml beside it, or a single layer
    if (!config::load_train(file).model.conformance) continue;
    CAPTURE(file);
    config::TrainDefinition cut = config::load_cut(file);
    cut.optimizer.schedule = {};  // which may ask how long the fit is
    const double gflop = 3e-9 * static_cast<double>(count(cut.model).flops * cut.batch_size);
    CHECK(gflop <= 1);
    const std::vector<double> fast = losses_of(cut, "openblas:0", 20), exact = losses_of(cut, "reference:0", 20);
    double most = 0;
    for (std::size_t step = 0; step < fast.size(); ++step) {
      CHECK(std::isfinite(exact[step]));
      most = std::max(most, std::abs(fast[step] - exact[step]) / std::max(1.0, std::abs(exact[step])));
    }
    CHECK(most <= 1e-3);
    MESSAGE(std::filesystem::path(file).lexically_relative(folder).string()
            << ": " << gflop << " GFLOP a step, loss " << exact.front() << " to " << exact.back() << ", apart by " << most);
    ++cuts;
  }
  CHECK(cuts >= 25);
}

}  // namespace
}  // namespace tenon
