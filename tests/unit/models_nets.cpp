// SPDX-License-Identifier: Apache-2.0
// models/: every definition is read and built, has the parameter count of its source, and a small reduced form.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <tenon/train_definition.h>

#include "config/model_yaml.h"
#include "platform/path.h"
#include "testing.h"
#include "train/program/builder.h"

namespace tenon {
namespace {

const std::string folder = std::string(TENON_SOURCE_DIRECTORY) + "/models/";

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

TEST_CASE("nets: parameter counts match the papers and repositories") {
  struct Row {
    const char* file;
    std::int64_t learned;
  };
  // Counts that benchmarks do not state are those of torchvision, if it has the net.
  const Row rows[] = {
      {"fcn_s", 117'997'696},      {"fcn_8", 130'586'752},     {"fcn_5_k40", 11'492'328},   {"fcn_8_k40", 24'081'384},
      {"fcn_r", 14'205'962},       {"alexnet_s", 62'378'344},  {"alexnet_r", 89'578},       {"lstm_32", 6'180'624},
      {"lstm_64", 6'180'624},      {"resnet_18", 11'689'512},  {"resnet_34", 21'797'672},   {"resnet_50", 25'557'032},
      {"resnet_101", 44'549'160},  {"resnet_152", 60'192'808}, {"vgg_16", 138'357'544},     {"vgg_19", 143'667'240},
      {"vgg_a", 132'863'336},      {"alexnet", 60'965'224},    {"alexnet_owt", 61'100'840}, {"inception_v1", 6'998'552},
      {"googlenet_v1", 6'998'552}, {"overfeat", 145'920'872},  {"resnet_200", 64'673'832},  {"lstm_narrow", 341'224},
  };
  for (const Row& row : rows) {
    CAPTURE(row.file);
    CHECK(count(load_definition(folder + "bench/" + row.file + ".yaml").model).learned == row.learned);
  }
  CHECK(count(load_definition(folder + "convnet/model.yaml").model).learned == 818'698);
  CHECK(count(load_definition(folder + "mnist_mlp/model.yaml").model).learned == 266'200);
  CHECK(count(load_definition(folder + "iris/model.yaml").model).learned == 5);
  CHECK(count(load_definition(folder + "iris/model_classifier.yaml").model).learned == 131);
}

TEST_CASE("nets: ResNet-56 has 848,304 weights in its convolutions") {
  Graph graph;
  std::int64_t in_convolutions = 0;
  for (const LayerSummary& row : built(graph, load_definition(folder + "bench/resnet_56.yaml").model, 1).layers) {
    if (row.type == "Conv2D") in_convolutions += row.parameters;
  }
  CHECK(in_convolutions == 848'304);
}

TEST_CASE("nets: the FLOPs of a forward pass match the benchmarks within a few percent") {
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
    const double gflop = static_cast<double>(count(load_definition(folder + "bench/" + row.file + ".yaml").model).flops * row.batch) / 1e9;
    CHECK(gflop == doctest::Approx(row.gflop).epsilon(0.03));
  }
}

TEST_CASE("nets: every training model has a reduced form of at most 1 GFLOP per step, which the conformance kit's training profile uses") {
  const auto canonical = [](const std::string& file) {
    return platform::text_of(std::filesystem::weakly_canonical(platform::path_of(file)));
  };
  std::set<std::string> named;  // by a train.yaml
  int cuts = 0;
  for (const std::string& file : definitions()) {
    const TrainDefinition definition = load_definition(file);
    if (definition.data) named.insert(canonical(definition.model.file));
  }
  for (const std::string& file : definitions()) {
    if (named.contains(canonical(file))) continue;
    CAPTURE(file);
    const TrainDefinition cut = config::load_cut(file);
    CHECK(3e-9 * static_cast<double>(count(cut.model).flops * cut.fit.batch_size) <= 1);
    ++cuts;
  }
  CHECK(cuts >= 37);
}

}  // namespace
}  // namespace tenon
