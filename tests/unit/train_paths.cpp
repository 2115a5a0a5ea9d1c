// SPDX-License-Identifier: Apache-2.0
// Files in folders with names in any script, with spaces, and with paths of more than 260 characters.
#include <fstream>
#include <string>

#include "data/disk_cache.h"
#include "platform/path.h"
#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

/// A folder in a temporary one.
struct Place {
  const TemporaryFolder outer;
  std::string path;

  explicit Place(bool is_long) {
    fs::path inner = platform::path_of(outer.path()) / platform::path_of("Модель 漢字 é 🙂");
    for (int i = 0; is_long && i < 5; ++i) inner /= platform::path_of("длинное имя " + std::string(45, static_cast<char>('a' + i)));
    path = platform::text_of(inner);
    fs::create_directories(platform::path_of(path));
    CHECK((path.size() > 260) == is_long);
  }
  std::string file(const std::string& name) const { return platform::text_of(platform::path_of(path) / platform::path_of(name)); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(platform::path_of(file(name)), std::ios::binary) << content;
    return file(name);
  }
  bool has(const std::string& name) const { return fs::exists(platform::path_of(file(name))); }
};

const Tensor values = Tensor::of<float>({1, 2, 3, 4}, {2, 2});

void check_tensors(const Place& place) {
  save_npy(place.file("массив.npy"), values);
  CHECK(load_npy(place.file("массив.npy")).to_vector<float>() == values.to_vector<float>());
  save_npz(place.file("архив.npz"), {{"имя", values}});
  CHECK(load_npz(place.file("архив.npz"), "имя").to_vector<float>() == values.to_vector<float>());
  save_safetensors(place.file("веса.safetensors"), {{"имя", values}});
  CHECK(load_safetensors(place.file("веса.safetensors")).tensors.at(0).tensor.to_vector<float>() == values.to_vector<float>());
  CHECK_ERROR_CONTAINS(place.file("нет.npy") + ": file not found", load_npy(place.file("нет.npy")));
}

void check_onnx(const Place& place, const Context& context) {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {1, 512});
  graph.output("y", ops::matmul(x, graph.parameter("w", DType::f32, {512, 2})));
  const fs::path path = platform::path_of(place.file("сеть 網.onnx"));
  onnx::export_graph(path, graph, [](const std::string&) { return Tensor::full(DType::f32, {512, 2}, 0.5); }, {.external_above = 0});
  CHECK(place.has("сеть 網.onnx.data"));
  onnx::Model model = onnx::Model::load(path, context);
  CHECK(model.run({{"x", Tensor::full(DType::f32, {1, 512}, 2)}})[0].to_vector<float>() == std::vector<float>(2, 512));
}

void check_disk_cache(const Place& place) {
  const data::DiskCache cache(place.file("кэш"));
  data::ContentKey content, options;
  content.add_file(place.write("источник.csv", "1,2\n"));
  const std::string path = cache.path_of("csv", place.path, content, options);
  for (int round = 0; round < 2; ++round) cache.store(path, *digits(20), {{"key", "значение"}});
  const data::CachedPart part = cache.open(path);
  REQUIRE(part.data != nullptr);
  CHECK(part.data->size() == 20);
  CHECK(part.metadata.at("key") == "значение");
}

void check_training(const Place& place) {
  place.write("модель.yaml", "name: line\ninput: {shape: [2]}\nlayers: [{dense: {units: 1, name: out}}]\n");
  std::string table = "a,b,y\n";
  for (int i = 0; i < 20; ++i) table += std::to_string(i) + "," + std::to_string(i % 3) + "," + std::to_string(2 * i) + "\n";
  fs::create_directories(platform::path_of(place.file("данные 數據")));
  place.write("данные 數據/train.csv", table);
  const std::string file = place.write("обучение.yaml",
                                       "model: модель.yaml\n"
                                       "data: {source: csv, directory: \"данные 數據\", target: values, test_split: 0.1}\n"
                                       "loss: mse\noptimizer: {name: sgd, learning_rate: 0.0001}\nbatch_size: 5\nepochs: 2\n"
                                       "device: reference:0\ncheckpoint: {directory: точки}\nresume: auto\n"
                                       "callbacks: [{csv: {file: журнал.csv}}, {curves: {file: кривые.html}}]\n");
  const std::vector<ConfigOverride> search = {{"backends.search", std::string("[") + TENON_BACKEND_DIRECTORY + "]"}};
  TrainingRun run = TrainingRun::load(file, search);
  CHECK(run.fit(run.load_data()).size() == 2);
  CHECK(place.has("журнал.csv"));
  CHECK(place.has("кривые.html"));
  CHECK_FALSE(place.has("точки/checkpoint.lock"));
  TrainingRun resumed = TrainingRun::load(file, {search[0], {"epochs", "3"}});
  const auto from = resumed.resume();
  REQUIRE(from.has_value());
  CHECK(from->position.epoch == 2);
  CHECK(contains(from->checkpoint, "точки"));
  CHECK(resumed.fit(resumed.load_data()).size() == 1);
  // A checkpoint is replaced by one of the same name.
  for (int round = 0; round < 2; ++round) resumed.model().save(place.file("копия"), "последняя");
  CHECK(load_weights_file(place.file("копия/последняя.yaml")).size() == load_weights_file(place.file("копия")).size());
}

TEST_CASE("paths: names in any script, with spaces") {
  const Place place(false);
  check_tensors(place);
  check_onnx(place, Context(deterministic("reference:0")));
  check_disk_cache(place);
  check_training(place);
}

TEST_CASE("paths: more than 260 characters") {
  const Place place(true);
  check_tensors(place);
  check_onnx(place, Context(deterministic("reference:0")));
  check_disk_cache(place);
  check_training(place);
}

}  // namespace
}  // namespace tenon::test
