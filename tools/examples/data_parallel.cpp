// Data parallelism by hand: two devices, here virtual ones, compute the gradients of the two halves of each batch concurrently; both copies
// of the parameters are updated with the average. The result equals that of one device with whole batches.
#include <cstdio>
#include <thread>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

constexpr std::int64_t features = 8, batch = 100, samples = 2000;
constexpr float rate = 0.1f;

/// The parameters on one device, and the gradient of the loss with respect to them.
class Replica {
 public:
  Replica(const Context& context, const std::string& device, std::int64_t rows) : program_(make(context, device, rows)) {}
  void set(const Tensor& w) { program_.parameters()->set("w", w); }
  Tensor gradient(const Tensor& x, const Tensor& y) { return program_.run({x, y})[0].to_host(); }

 private:
  static Program make(const Context& context, const std::string& device, std::int64_t rows) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {rows, features});
    const Value y = graph.input("y", DType::f32, {rows, 1});
    const Value w = graph.parameter("w", DType::f32, {features, 1});
    graph.output("gradient", gradients(ops::mse(ops::matmul(x, w), y), {w})[0]);
    return Program(context, graph, {.device = device});
  }
  Program program_;
};

void descend(Tensor& w, const Tensor& gradient) {
  for (std::int64_t i = 0; i < features; ++i) w.data<float>()[i] -= rate * gradient.data<float>()[i];
}

}  // namespace

int main() {
  Config config = resolve_config();
  config.virtual_devices = {{.of = "cpu:0", .count = 2}};
  const Context context(config);
  const std::string first = context.devices()[0].name, second = context.devices()[1].name;
  const auto data = generate_linear({.count = samples, .features = features}).data;

  Tensor w = Tensor::zeros(DType::f32, {features, 1}), w_single = Tensor::zeros(DType::f32, {features, 1});
  Replica left(context, first, batch / 2), right(context, second, batch / 2), single(context, first, batch);
  for (std::int64_t i = 0; i < samples; i += batch) {
    const Tensor x = data->x().narrow(0, i, batch), y = data->y().narrow(0, i, batch);
    left.set(w);
    right.set(w);
    Tensor gradient, other;
    std::thread thread([&] { other = right.gradient(x.narrow(0, batch / 2, batch / 2), y.narrow(0, batch / 2, batch / 2)); });
    gradient = left.gradient(x.narrow(0, 0, batch / 2), y.narrow(0, 0, batch / 2));
    thread.join();
    for (std::int64_t j = 0; j < features; ++j) gradient.data<float>()[j] = (gradient.data<float>()[j] + other.data<float>()[j]) / 2;
    descend(w, gradient);

    single.set(w_single);
    descend(w_single, single.gradient(x, y));
  }
  std::printf("%s and %s: w is\n%s\n", first.c_str(), second.c_str(), w.transpose(0, 1).text(features).c_str());
  std::printf("%s only: %s\n", first.c_str(), all_close(w, w_single, 0, 1e-5) ? "the same within 1e-5" : "different");
}
