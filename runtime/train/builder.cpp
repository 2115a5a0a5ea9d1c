#include "train/builder.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "train/optimizers.h"

namespace tenon::train {
namespace {

Value activate(Value x, const LayerDefinition& layer) {
  switch (layer.activation) {
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
    case Activation::relu6:
      return ops::relu6(x);
    case Activation::leaky_relu:
      return layer.alpha ? ops::leaky_relu(x, *layer.alpha) : ops::leaky_relu(x);
    case Activation::elu:
      return layer.alpha ? ops::elu(x, *layer.alpha) : ops::elu(x);
    case Activation::softplus:
      return ops::softplus(x);
    case Activation::mish:
      return ops::mish(x);
    case Activation::gelu:
      return ops::gelu(x);
    case Activation::silu:
      return ops::silu(x);
    case Activation::linear:
      return x;
  }
  return x;
}

/// What the summary calls a layer.
std::string type_name(const LayerDefinition& layer) {
  switch (layer.kind) {
    case LayerDefinition::Kind::flatten:
      return "Flatten";
    case LayerDefinition::Kind::dense:
      return "Dense";
    case LayerDefinition::Kind::dropout:
      return "Dropout";
    case LayerDefinition::Kind::activation:
      return layer.alpha ? fmt::format("Activation {} {:g}", name_of(layer.activation), *layer.alpha)
                         : fmt::format("Activation {}", name_of(layer.activation));
    case LayerDefinition::Kind::embedding:
      return "Embedding";
  }
  return "";
}

Shape without_batch(const Shape& shape) {
  return Shape(shape.dims().subspan(1));
}

}  // namespace

bool starts_with_embedding(const ModelDefinition& definition) {
  for (const LayerDefinition& layer : definition.layers) {
    if (layer.kind != LayerDefinition::Kind::flatten) return layer.kind == LayerDefinition::Kind::embedding;
  }
  return false;
}

DType input_dtype(const ModelDefinition& definition) {
  return starts_with_embedding(definition) && is_floating(definition.input_dtype) ? DType::i64 : definition.input_dtype;
}

Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key, const std::vector<Value>* shared) {
  Forward forward;
  std::map<std::string, int> numbers;
  std::set<std::string> names;
  Value h = x.dtype() == definition.dtype || starts_with_embedding(definition) ? x : ops::cast(x, definition.dtype);
  forward.logits = h;
  const auto parameter = [&](const LayerDefinition& layer, const std::string& name, const Shape& shape, const Initializer& initializer,
                             std::int64_t fan_in) {
    const std::size_t number = forward.parameters.size();
    const Value value = shared != nullptr ? shared->at(number) : graph.parameter(name, definition.dtype, shape);
    forward.specs.push_back({name, definition.dtype, shape, initializer, fan_in, layer.device, 0, 0});
    forward.parameters.push_back(value);
    return value;
  };
  for (std::size_t i = 0; i < definition.layers.size(); ++i) {
    const LayerDefinition& layer = definition.layers[i];
    const DeviceScope scope(graph, layer.device.empty() ? graph.device() : layer.device);
    std::string name = layer.name;
    if (name.empty()) {
      const int number = numbers[name_of(layer.kind)]++;
      name = number == 0 ? name_of(layer.kind) : fmt::format("{}_{}", name_of(layer.kind), number);
    }
    if (!names.insert(name).second) layer.fail(fmt::format("the name '{}' is taken by an earlier layer", name));
    const NameScope name_scope(graph, name);
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
        forward.specs.back().l1 = layer.kernel_l1;
        forward.specs.back().l2 = layer.kernel_l2;
        h = ops::matmul(h, kernel);
        row.parameters = features * layer.units;
        row.flops = 2 * features * layer.units;
        if (layer.bias) {
          h = ops::add(h, parameter(layer, name + "/bias", {layer.units}, layer.bias_initializer, features));
          row.parameters += layer.units;
          row.flops += layer.units;
        }
        logits = h;
        h = activate(h, layer);
        break;
      }
      case LayerDefinition::Kind::embedding: {
        if (is_floating(h.dtype()))
          layer.fail(fmt::format("'{}' wants integers, got {}{}; put it first, after no more than a flatten", name, name_of(h.dtype()),
                                 h.shape().str()));
        if (h.dtype() != DType::i32 && h.dtype() != DType::i64) h = ops::cast(h, DType::i64);
        const Value table = parameter(layer, name + "/embeddings", {layer.rows, layer.dim}, layer.embedding_initializer, layer.rows);
        h = ops::embedding(table, h);
        row.parameters = layer.rows * layer.dim;
        break;
      }
      case LayerDefinition::Kind::dropout:
        // The stream is the node's number in the graph as built, so that masks do not depend on what passes make of it.
        if (key.present()) h = ops::dropout(h, key, layer.dropout_p, static_cast<std::uint32_t>(graph.nodes().size()));
        break;
      case LayerDefinition::Kind::activation:
        logits = h;
        h = activate(h, layer);
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

std::string state_name(const ParameterSpec& spec, const std::string& suffix) {
  return fmt::format("optimizer/{}/{}", spec.name, suffix);
}
std::string gradient_name(const ParameterSpec& spec) {
  return "gradient/" + spec.name;
}

namespace {

/// g * limit / max(norm, limit): exactly g where the norm is within the limit.
Value within(Graph& graph, Value g, Value norm, double limit) {
  const Value numerator = graph.constant(Tensor::full(g.dtype(), {}, limit));
  return ops::mul(g, ops::div(numerator, ops::maximum(norm, limit)));
}

void clip_gradients(Graph& graph, const Clipping& clip, std::vector<Value>& gradients) {
  for (Value& g : gradients) {
    if (clip.value) g = ops::clip(g, -*clip.value, *clip.value);
    if (clip.norm) g = within(graph, g, ops::sqrt(ops::reduce_sum(ops::mul(g, g))), *clip.norm);
  }
  if (!clip.global_norm) return;
  Value squares;
  for (const Value g : gradients) {
    const Value own = ops::reduce_sum(ops::mul(g, g));
    squares = squares.present() ? ops::add(squares, own) : own;
  }
  const Value norm = ops::sqrt(squares);
  for (Value& g : gradients) g = within(graph, g, norm, *clip.global_norm);
}

}  // namespace

void build_step(Graph& graph, const Forward& forward, std::vector<Value> gradients, const OptimizerDefinition& optimizer, Value lr,
                Value step) {
  clip_gradients(graph, optimizer.clip, gradients);
  const OptimizerRule& rule = rule_of(optimizer.kind);
  const std::vector<std::string> suffixes = rule.state(optimizer);
  struct Part {
    std::vector<Value> parameters, gradients, state;
  };
  std::map<std::string, Part> by_device;  // each weight is stepped where its layer is
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const ParameterSpec& spec = forward.specs[i];
    Part& part = by_device[spec.device];
    part.parameters.push_back(forward.parameters[i]);
    part.gradients.push_back(gradients[i]);
    for (const std::string& suffix : suffixes) part.state.push_back(graph.parameter(state_name(spec, suffix), spec.dtype, spec.shape));
  }
  for (const auto& [device, part] : by_device) {
    const DeviceScope scope(graph, device);
    rule.build({optimizer, part.parameters, part.gradients, part.state, lr, step});
  }
}

void build_accumulation(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, Value weight, bool first) {
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const ParameterSpec& spec = forward.specs[i];
    const DeviceScope scope(graph, spec.device);
    const Value sum = graph.parameter(gradient_name(spec), spec.dtype, spec.shape);
    const Value part = ops::mul(gradients[i], weight);
    graph.update(sum, first ? part : ops::add(sum, part));
  }
  const Value total = graph.parameter(gradient_weight_name, weight.dtype(), {});
  graph.update(total, first ? weight : ops::add(total, weight));
}

std::vector<Value> build_mean_gradients(Graph& graph, const Forward& forward) {
  const Value total = graph.parameter(gradient_weight_name, forward.specs.at(0).dtype, {});
  std::vector<Value> means;
  for (const ParameterSpec& spec : forward.specs) {
    const DeviceScope scope(graph, spec.device);
    means.push_back(ops::div(graph.parameter(gradient_name(spec), spec.dtype, spec.shape), total));
  }
  return means;
}

}  // namespace tenon::train
