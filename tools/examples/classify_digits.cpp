// Trains a classifier, saves it, loads it as another process would, and predicts.
#include <cstdio>
#include <filesystem>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

Model make_model(const Context& context) {
  Model model({layers::Flatten{}, layers::Dense{64, Activation::relu}, layers::Dense{10, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  return model;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string folder = count > 1 ? arguments[1] : (std::filesystem::temp_directory_path() / "tenon_digits").string();
  std::filesystem::create_directories(folder);
  const Context context;
  const auto test_set = generate_digits({.count = 500, .split = Split::test});
  {
    Model model = make_model(context);
    model.fit(generate_digits({.count = 4000}), {.epochs = 5});
    for (const auto& [name, value] : model.evaluate(test_set)) std::printf("%s %.3f\n", name.c_str(), value);
    model.save(folder, "digits");
  }

  Model model = make_model(context);
  model.build({28, 28});
  model.load(folder + "/digits.yaml");
  Tensor x = Tensor::empty(DType::f32, {5, 28, 28}), y = Tensor::empty(DType::i64, {5});
  const std::int64_t samples[] = {0, 1, 2, 3, 4};
  test_set->gather(samples, x, y);
  const Tensor scores = model.predict(x).to(context.default_device());
  const Tensor guesses = arg_max(scores, 1);
  for (std::int64_t i = 0; i < 5; ++i) {
    std::printf("a %d, predicted as a %d\n", static_cast<int>(y[i].item()), static_cast<int>(guesses[i].item()));
  }
}
