// Placement of ops: by a scope, or on the default device. `log_device_placement` prints each placement.
#include <iostream>

#include <tenon/tenon.h>

int main() {
  using namespace tenon;
  Config config = resolve_config();
  config.log_device_placement = true;
  const Context context(config);

  Graph graph;
  const Value a = graph.input("a", DType::f32, {2, 3});
  const Value b = graph.input("b", DType::f32, {3, 2});
  Value product;
  {
    const DeviceScope on_reference(graph, "reference:0");
    product = ops::matmul(a, b);
  }
  graph.output("y", ops::relu(product));

  Program program(context, graph);
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  std::cout << program.run({x, x.transpose(0, 1)})[0] << '\n' << program.placement().str();
}
