#include <cstdio>

#include <tenon/tenon.h>

int main() {
  using namespace tenon;
  const Context context;  // backends and device from the environment, TENON_CONFIG and defaults

  Graph graph;
  const Value a = graph.input("a", DType::f32, {3});
  const Value b = graph.input("b", DType::f32, {3});
  graph.output("product", a * b);
  Program program(context, graph);
  const Tensor y = program.run({Tensor::of<float>({1, 2, 3}, {3}), Tensor::of<float>({4, 5, 6}, {3})})[0].to_host();
  std::printf("%g %g %g\n", y.data<float>()[0], y.data<float>()[1], y.data<float>()[2]);

  const Tensor m = Tensor::of<float>({1, 2, 3, 4}, {2, 2}).to(context.default_device());
  const Tensor product = context.default_device().empty(DType::f32, {2, 2});
  blas::gemm(context.default_device(), 1, m, m.transpose(0, 1), 0, product);  // BLAS reads views without a copy
  std::printf("%g\n", product[1][1].item());

  Model model({layers::flatten(), layers::dense(64, Activation::relu), layers::dense(10, Activation::softmax)});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  model.fit(generate_digits({.count = 2000}), {.epochs = 2});
  std::printf("accuracy %.2f\n", model.evaluate(generate_digits({.count = 500, .split = Split::test}))[1].second);
}
