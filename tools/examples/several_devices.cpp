// Several devices in one process, here two virtual ones of one CPU: one model each, one after the other and then at the same time. Models
// that share nothing give the same results either way.
#include <cstdio>
#include <thread>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

Model make_model(const Context& context) {
  Model model({layers::flatten(), layers::dense(32, Activation::relu), layers::dense(10, Activation::softmax)});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  return model;
}

/// The loss after two epochs on the device.
double train_on(const Context& context, const std::string& device, const std::shared_ptr<const Dataset>& data) {
  const PlacementScope here(context, device);
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

  double alone[2], together[2];
  for (int i = 0; i < 2; ++i) alone[i] = train_on(context, devices[i], data);
  std::thread other([&] { together[1] = train_on(context, devices[1], data); });
  together[0] = train_on(context, devices[0], data);
  other.join();

  for (int i = 0; i < 2; ++i) {
    std::printf("%s: loss %.6f alone, %.6f beside the other: %s\n", devices[i].c_str(), alone[i], together[i],
                alone[i] == together[i] ? "the same bits" : "different");
  }
}
