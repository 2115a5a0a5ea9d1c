#include <cstdio>

#include <tenon/tenon.h>

int main() {
  using namespace tenon;
  const Context context;  // backends and device from the environment, TENON_CONFIG and defaults
  Model model({layers::Flatten{}, layers::Dense{64, Activation::relu}, layers::Dense{10, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  model.fit(generate_digits({.count = 2000}), {.epochs = 2});
  std::printf("accuracy %.2f\n", model.evaluate(generate_digits({.count = 500, .split = Split::test}))[1].second);
}
