// Linear regression by hand: forward pass, loss, gradients and update as a graph, then training and test.
#include <cstdio>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

constexpr std::int64_t features = 3, batch = 50;

struct Line {
  Value w, b;
  explicit Line(Graph& graph) : w(graph.parameter("w", DType::f32, {features, 1})), b(graph.parameter("b", DType::f32, {1})) {}
  Value operator()(Value x) const { return ops::add(ops::matmul(x, w), b); }
};

Program make_training(const Context& context, const std::shared_ptr<ParameterStore>& parameters) {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {batch, features});
  const Value y = graph.input("y", DType::f32, {batch, 1});
  const Line line(graph);
  const Value loss = ops::mse(line(x), y);
  const std::vector<Value> gradient = gradients(loss, {line.w, line.b});
  const double rate = 0.1;
  graph.update(line.w, ops::sub(line.w, ops::mul(gradient[0], rate)));
  graph.update(line.b, ops::sub(line.b, ops::mul(gradient[1], rate)));
  graph.output("loss", loss);
  return Program(context, graph, {.parameters = parameters});
}

Program make_test(const Context& context, const std::shared_ptr<ParameterStore>& parameters, std::int64_t count) {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {count, features});
  const Value y = graph.input("y", DType::f32, {count, 1});
  graph.output("loss", ops::mse(Line(graph)(x), y));
  return Program(context, graph, {.parameters = parameters});
}

}  // namespace

int main() {
  const Context context;
  const LinearProblem problem = generate_linear({.count = 1000, .features = features, .noise = 0.01});
  const LinearProblem held_out = generate_linear({.count = 200, .features = features, .noise = 0.01, .split = Split::test});

  const auto parameters = std::make_shared<ParameterStore>();
  Program train = make_training(context, parameters), test = make_test(context, parameters, held_out.data->size());
  parameters->set("w", Tensor::zeros(DType::f32, {features, 1}));
  parameters->set("b", Tensor::zeros(DType::f32, {1}));

  for (int epoch = 0; epoch < 10; ++epoch) {
    double loss = 0;
    for (std::int64_t i = 0; i < problem.data->size(); i += batch) {
      loss += train.run({problem.data->x().narrow(0, i, batch), problem.data->y().narrow(0, i, batch)})[0].item();
    }
    std::printf("epoch %d: mse %.6f\n", epoch, loss * batch / static_cast<double>(problem.data->size()));
  }
  std::printf("test: mse %.6f\n", test.run({held_out.data->x(), held_out.data->y()})[0].item());
  for (std::int64_t i = 0; i < features; ++i) {
    std::printf("w[%d] is %.3f, expected %.3f\n", static_cast<int>(i), parameters->get("w")[i].squeeze().item(),
                problem.w[i].squeeze().item());
  }
  std::printf("b is %.3f, expected %.3f\n", parameters->get("b").squeeze().item(), problem.b);
}
