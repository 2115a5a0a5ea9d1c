#include <tenon/definition.h>

#include <tenon/error.h>

namespace tenon {

void LayerDefinition::fail(const std::string& reason) const {
  throw Error((where.empty() ? "layer " + (name.empty() ? std::string(name_of(kind)) : name) : where) + ": " + reason);
}

bool takes_alpha(Activation activation) {
  return activation == Activation::leaky_relu || activation == Activation::elu;
}

namespace layers {

LayerDefinition flatten() {
  return {};
}

LayerDefinition dense(std::int64_t units, Activation activation, bool bias) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::dense;
  layer.units = units;
  layer.activation = activation;
  layer.bias = bias;
  if (units < 1) layer.fail("units is " + std::to_string(units) + ", wanted at least 1");
  return layer;
}

LayerDefinition dropout(double p) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::dropout;
  layer.dropout_p = p;
  if (!(p >= 0 && p < 1)) layer.fail("p is " + std::to_string(p) + ", wanted 0 <= p < 1");
  return layer;
}

LayerDefinition activation(Activation activation, std::optional<double> alpha) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::activation;
  layer.activation = activation;
  layer.alpha = alpha;
  if (alpha && !takes_alpha(activation)) layer.fail(std::string(name_of(activation)) + " takes no alpha; leaky_relu and elu do");
  return layer;
}

LayerDefinition embedding(std::int64_t rows, std::int64_t dim) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::embedding;
  layer.rows = rows;
  layer.dim = dim;
  if (rows < 1) layer.fail("rows is " + std::to_string(rows) + ", wanted at least 1");
  if (dim < 1) layer.fail("dim is " + std::to_string(dim) + ", wanted at least 1");
  return layer;
}

}  // namespace layers
}  // namespace tenon
