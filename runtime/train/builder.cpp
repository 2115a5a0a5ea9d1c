#include "train/builder.h"

#include <fmt/core.h>

#include <map>
#include <set>

namespace tenon::train {
namespace {

Value activate(Value x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return ops::relu(x);
    case Activation::sigmoid:
      return ops::sigmoid(x);
    case Activation::tanh:
      return ops::tanh(x);
    case Activation::softmax:
      return ops::softmax(x);
    case Activation::log_softmax:
      return ops::log_softmax(x);
    case Activation::linear:
      return x;
  }
  return x;
}

const char* type_name(const LayerDefinition& layer) {
  switch (layer.kind) {
    case LayerDefinition::Kind::flatten:
      return "Flatten";
    case LayerDefinition::Kind::dense:
      return "Dense";
    case LayerDefinition::Kind::dropout:
      return "Dropout";
    case LayerDefinition::Kind::activation:
      return "Activation";
  }
  return "";
}

Shape without_batch(const Shape& shape) {
  return Shape(shape.dims().subspan(1));
}

}  // namespace

Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key) {
  Forward forward;
  std::map<std::string, int> numbers;
  std::set<std::string> names;
  Value h = x.dtype() == definition.dtype ? x : ops::cast(x, definition.dtype);
  forward.logits = h;
  const auto parameter = [&](const LayerDefinition& layer, const std::string& name, const Shape& shape, const Initializer& initializer,
                             std::int64_t fan_in) {
    const Value value = graph.parameter(name, definition.dtype, shape);
    forward.specs.push_back({name, definition.dtype, shape, initializer, fan_in, layer.device});
    forward.parameters.push_back(value);
    return value;
  };
  for (std::size_t i = 0; i < definition.layers.size(); ++i) {
    const LayerDefinition& layer = definition.layers[i];
    const DeviceScope scope(graph, layer.device);
    std::string name = layer.name;
    if (name.empty()) {
      const int number = numbers[name_of(layer.kind)]++;
      name = number == 0 ? name_of(layer.kind) : fmt::format("{}_{}", name_of(layer.kind), number);
    }
    if (!names.insert(name).second) layer.fail(fmt::format("the name '{}' is taken by an earlier layer", name));
    LayerSummary row{.name = name, .type = type_name(layer), .output = {}, .device = layer.device};
    const bool last = i + 1 == definition.layers.size();
    Value logits;
    switch (layer.kind) {
      case LayerDefinition::Kind::flatten:
        h = ops::flatten(h, 1);
        break;
      case LayerDefinition::Kind::dense: {
        if (h.shape().rank() != 2) {
          layer.fail(fmt::format("'{}' wants (batch, features), got {}; put a flatten before it", name, h.shape().str()));
        }
        const std::int64_t features = h.shape()[1];
        if (features == 0) layer.fail(fmt::format("'{}' got no features: {}", name, h.shape().str()));
        const Value kernel = parameter(layer, name + "/kernel", {features, layer.units}, layer.kernel_initializer, features);
        h = ops::matmul(h, kernel);
        row.parameters = features * layer.units;
        row.flops = 2 * features * layer.units;
        if (layer.bias) {
          h = ops::add(h, parameter(layer, name + "/bias", {layer.units}, layer.bias_initializer, features));
          row.parameters += layer.units;
          row.flops += layer.units;
        }
        logits = h;
        h = activate(h, layer.activation);
        break;
      }
      case LayerDefinition::Kind::dropout:
        // The stream is the node's number in the graph as built, so that masks do not depend on what passes make of it.
        if (key.present()) h = ops::dropout(h, key, layer.dropout_p, static_cast<std::uint32_t>(graph.nodes().size()));
        break;
      case LayerDefinition::Kind::activation:
        logits = h;
        h = activate(h, layer.activation);
        break;
    }
    const bool has_activation = layer.kind == LayerDefinition::Kind::dense || layer.kind == LayerDefinition::Kind::activation;
    if (last && has_activation && layer.activation == Activation::softmax) {
      forward.final_softmax = true;
      forward.logits = logits;
    } else {
      forward.logits = h;
    }
    row.output = without_batch(h.shape());
    forward.layers.push_back(std::move(row));
  }
  forward.output = h;
  return forward;
}

Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<Metric>& metrics) {
  Objective objective;
  const auto fail = [&](const std::string& reason) {
    throw Error(fmt::format("{}loss {}: {}", loss.where.empty() ? "" : loss.where + ": ", name_of(loss.loss), reason));
  };
  const Value output = forward.output;
  Value target = y;
  if (loss.loss == Loss::mse) {
    if (!(y.shape() == output.shape())) fail(fmt::format("targets {} do not fit the output {}", y.shape().str(), output.shape().str()));
    if (y.dtype() != output.dtype()) target = ops::cast(y, output.dtype());
    objective.loss = ops::mse(output, target);
  } else {
    if (y.dtype() != DType::i64 && y.dtype() != DType::i32) fail(fmt::format("wanted labels of i64 or i32, got {}", name_of(y.dtype())));
    if (output.shape().rank() < 2 || y.shape().rank() + 1 != output.shape().rank()) {
      fail(fmt::format("wanted scores (batch, classes) and labels (batch), got {} and {}", output.shape().str(), y.shape().str()));
    }
    // softmax and cross-entropy are one op: exact where the softmax alone would round a probability to 0.
    if (!loss.from_logits && !forward.final_softmax) {
      fail("the last layer is no softmax; add one, or set from_logits: true if its output is scores");
    }
    ops::CrossEntropyOptions options;
    options.ignore_index = loss.ignore_index;
    objective.loss = ops::softmax_cross_entropy(loss.from_logits ? output : forward.logits, y, options);
  }
  for (const Metric metric : metrics) {
    Value value;
    if (metric == Metric::mse) {
      if (loss.loss != Loss::mse) throw Error("metric mse: wants targets of the output's shape; the loss has labels");
      value = ops::mse(output, target);
    } else {
      if (loss.loss != Loss::sparse_categorical_crossentropy) throw Error("metric accuracy: wants labels; the loss is mse");
      Value best = ops::arg_max(loss.from_logits ? output : forward.logits, 1);
      if (y.dtype() != DType::i64) best = ops::cast(best, y.dtype());
      value = ops::reduce_mean(ops::cast(ops::equal(best, y), output.dtype()));
    }
    objective.metrics.emplace_back(name_of(metric), value);
  }
  return objective;
}

std::vector<std::string> state_names(const OptimizerDefinition& optimizer) {
  switch (optimizer.kind) {
    case OptimizerDefinition::Kind::adam:
    case OptimizerDefinition::Kind::adamw:
      return {"m", "v"};
    case OptimizerDefinition::Kind::rmsprop:
      return {"v"};
    case OptimizerDefinition::Kind::sgd:
      break;
  }
  if (optimizer.momentum != 0) return {"velocity"};
  return {};
}

void build_update(Graph& graph, const Objective& objective, const Forward& forward, const OptimizerDefinition& optimizer, Value lr,
                  Value step) {
  if (forward.parameters.empty()) throw Error("the model has no parameters: there is nothing to train");
  const std::vector<Value> gradient = gradients(objective.loss, forward.parameters);
  std::vector<Value> state;
  for (const ParameterSpec& spec : forward.specs) {
    for (const std::string& suffix : state_names(optimizer)) {
      state.push_back(graph.parameter(fmt::format("optimizer/{}/{}", spec.name, suffix), spec.dtype, spec.shape));
    }
  }
  switch (optimizer.kind) {
    case OptimizerDefinition::Kind::sgd: {
      tenon_attributes_sgd a{};
      a.momentum = optimizer.momentum;
      a.nesterov = optimizer.nesterov ? 1 : 0;
      a.weight_decay = optimizer.weight_decay;
      ops::sgd_step(forward.parameters, gradient, state, lr, a);
      break;
    }
    case OptimizerDefinition::Kind::rmsprop: {
      tenon_attributes_rmsprop a{};
      a.rho = optimizer.rho;
      a.epsilon = optimizer.epsilon;
      a.epsilon_outside = optimizer.epsilon_outside_root ? 1 : 0;
      ops::rmsprop_step(forward.parameters, gradient, state, lr, a);
      break;
    }
    default: {
      tenon_attributes_adam a{};
      a.beta1 = optimizer.beta1;
      a.beta2 = optimizer.beta2;
      a.epsilon = optimizer.epsilon;
      a.weight_decay = optimizer.kind == OptimizerDefinition::Kind::adamw ? optimizer.weight_decay : 0;
      ops::adam_step(forward.parameters, gradient, state, lr, step, a);
      break;
    }
  }
}

}  // namespace tenon::train
