// Several devices in one process, here two virtual ones of one CPU: each trains a model, first one after the other, then concurrently. The
// results are the same, because the models share nothing.
#include <cstdio>
#include <thread>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

Model make_model(const Context& context) {
  Model model({layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dense{10, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  return model;
}

/// The loss after two epochs on the device.
double train_on(const Context& context, const std::string& device, const std::shared_ptr<const Dataset>& data) {
  const PlacementScope scope(context, device);
  Model model = make_model(context);
  return model.fit(data, {.epochs = 2}).back().logs[0].second;
}

}  // namespace

int main() {
  Config config = resolve_config();
  config.virtual_devices = {{.of = "cpu:0", .count = 2}};
  config.deterministic = true;
  const Context context(config);
  const std::string devices[] = {context.devices()[0].name, context.devices()[1].name};
  const auto data = generate_digits({.count = 1000});

  double sequential[2], concurrent[2];
  for (int i = 0; i < 2; ++i) sequential[i] = train_on(context, devices[i], data);
  std::thread other([&] { concurrent[1] = train_on(context, devices[1], data); });
  concurrent[0] = train_on(context, devices[0], data);
  other.join();

  for (int i = 0; i < 2; ++i) {
    std::printf("%s: loss %.6f sequentially, %.6f concurrently: %s\n", devices[i].c_str(), sequential[i], concurrent[i],
                sequential[i] == concurrent[i] ? "bit-identical" : "different");
  }
}
