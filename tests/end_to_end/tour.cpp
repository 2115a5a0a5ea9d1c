#include <cstdio>

#include <tenon/tenon.h>

using namespace tenon;

int main() {
  const Context context;
  const Device device = context.default_device();
  for (const DeviceInfo& each : context.devices()) std::printf("%s: %s\n", each.name.c_str(), each.product.c_str());

  const Tensor m = Tensor::of<float>({1, 2, 3, 4}, {2, 2}).to(device);
  const Tensor column = m.select(1, 0);   // a view: 1 3
  std::printf("%g\n", column[1].item());  // 3

  const Tensor y = softmax(relu(m) + 1.0);  // computed at once, on the device of m
  std::printf("%g\n", y[0][1].item());      // 0.731059

  Graph graph;
  const Value x = graph.input("x", DType::f32, {3});
  const Value w = graph.parameter("w", DType::f32, {3});
  const Value loss = ops::mse(ops::mul(x, w), graph.input("target", DType::f32, {3}));
  graph.output("loss", loss);
  graph.output("gradient", gradients(loss, {w})[0]);

  Program program(context, graph);
  program.parameters()->set("w", Tensor::of<float>({1, 1, 1}, {3}));
  const auto& results = program.run({Tensor::of<float>({1, 2, 3}, {3}), Tensor::zeros(DType::f32, {3})});
  std::printf("loss %g, third gradient %g\n", results[0].item(), results[1][2].item());  // 4.66667, 6
  std::printf("%s\n", program.placement().str().c_str());                                // where each node runs

  CompiledFunction norm(context, [](std::span<const TensorType> types) {
    Graph squares;
    const Value v = squares.input("v", types[0].dtype, types[0].shape);
    squares.output("norm", ops::sqrt(ops::reduce_sum(v * v)));
    return squares;
  });
  std::printf("%g\n", norm.run({Tensor::of<float>({3, 4}, {2})})[0].item());              // 5
  std::printf("%g\n", norm.run({Tensor::full(DType::f32, {2, 8}, 1.0)})[0].item());       // 4, by another program
  std::printf("%llu compiled\n", static_cast<unsigned long long>(norm.counts().misses));  // 2

  const Tensor product = device.empty(DType::f32, {2, 2});
  blas::gemm(device, 1, m, m.transpose(0, 1), 0, product);  // BLAS reads views without a copy
  std::printf("%g\n", product[1][1].item());                // 25

  try {
    static_cast<void>(context.device("no_such_backend:0"));
  } catch (const Error& error) {
    std::printf("%s\n", error.what());  // names the device, and those there are
  }
}
