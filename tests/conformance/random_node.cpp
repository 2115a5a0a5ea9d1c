// SPDX-License-Identifier: Apache-2.0
// Random instances: sizes, dtypes, layouts, kinds, donations, options. The runtime's shape rule says which are valid.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

#include <tenon/error.h>
#include <tenon/graph.h>

#include "capability_consistency.h"

namespace tenon::conformance {
namespace {

/// Bytes of all operands and results together.
constexpr std::int64_t max_bytes = std::int64_t{1} << 22;
/// Elements of all operands and results together: products and recurrences take more time than memory.
constexpr std::int64_t max_elements = std::int64_t{1} << 16;

template <class List>
const auto& one_of(const List& list, Random& random) {
  return list[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(std::size(list))))];
}
bool one_in(std::int64_t n, Random& random) {
  return random.integer(0, n) == 0;
}

/// Calls body(shape) for each operand and result that is present.
template <class Body>
void for_each_shape(Variant& variant, const Body& body) {
  for (OperandSpec& spec : variant.inputs) {
    if (spec.present) body(spec.shape);
  }
  for (ResultSpec& spec : variant.outputs) {
    if (spec.present) body(spec.shape);
  }
}

bool fits_the_budget(const Variant& variant, tenon_dtype dtype, std::int64_t limit = max_elements) {
  double elements = 0, bytes = 0;  // double: the products do not overflow
  const auto add = [&](const Dims& shape, tenon_dtype spec) {
    double count = 1;
    for (const std::int64_t size : shape) count *= static_cast<double>(size);
    elements += count;
    bytes += count * static_cast<double>(Array(resolved(spec, dtype), {}).element_size());
  };
  for (const OperandSpec& spec : variant.inputs) {
    if (spec.present) add(spec.shape, spec.dtype);
  }
  for (const ResultSpec& spec : variant.outputs) {
    if (spec.present) add(spec.shape, spec.dtype);
  }
  return elements <= static_cast<double>(limit) && bytes <= static_cast<double>(max_bytes);
}

/// A variant as a Net without elements, which the shape rule does not need.
Net bare_net(const OpLine& line, const Variant& variant, tenon_dtype dtype) {
  return net_of(line, variant, dtype, std::vector<Array>(variant.inputs.size()));
}
bool is_valid(const OpLine& line, const Variant& variant, tenon_dtype dtype) {
  Net net = bare_net(line, variant, dtype);
  std::size_t v = 0;
  for (const OperandSpec& spec : variant.inputs) {
    if (!spec.present) continue;
    net.values[v].dtype = resolved(spec.dtype, dtype);
    net.values[v++].shape = spec.shape;
  }
  return keeps_the_rule(line, net);
}

/// Whether there are indices or labels, whose values depend on the sizes of the variant.
bool has_indices(const Variant& variant) {
  return std::any_of(variant.inputs.begin(), variant.inputs.end(), [](const OperandSpec& spec) {
    return spec.present && (spec.dtype == TENON_DTYPE_I32 || spec.dtype == TENON_DTYPE_I64);
  });
}

/// Whether errors grow from step to step, so that bounds hold only for the variant's number of steps and units.
bool is_recurrent(const OpLine& line) {
  const std::string family = line.family;
  return family == "rnn" || family == "gru" || family == "lstm";
}

/// Replaces all dimensions of one size by another size.
Variant resized(Variant variant, std::int64_t to, Random& random) {
  std::set<std::int64_t> sizes;
  for_each_shape(variant, [&](const Dims& shape) { sizes.insert(shape.begin(), shape.end()); });
  if (sizes.empty()) return variant;
  const std::int64_t from = one_of(std::vector<std::int64_t>(sizes.begin(), sizes.end()), random);
  for_each_shape(variant, [&](Dims& shape) { std::replace(shape.begin(), shape.end(), from, to); });
  return variant;
}

std::int64_t small_size(Random& random) {
  constexpr std::int64_t choices[] = {0, 1, 2, 3, 5, 7, 8, 13, 17, 31, 64, 129};
  return one_of(choices, random);
}

/// A size at which kernels may change from one loop, block or thread to the next: near a power of two or a multiple of 16, a prime, or any
/// up to 4,097.
std::int64_t boundary_size(Random& random) {
  constexpr std::int64_t primes[] = {37, 61, 97, 127, 257, 509, 1021, 2053, 4093};
  switch (random.integer(0, 8)) {
    case 1:
    case 2:
      return (std::int64_t{1} << random.integer(1, 13)) + random.integer(-1, 2);
    case 3:
    case 4:
    case 5:
      return 16 * (std::int64_t{1} << random.integer(0, 6)) * random.integer(1, 5) + random.integer(-1, 2);
    case 6:
      return one_of(primes, random);
    default:
      return random.integer(1, std::int64_t{1} << random.integer(1, 13));
  }
}

/// Prepends dimensions, up to rank 8, to all operands or only to those with the highest rank.
Variant deepened(Variant variant, Random& random) {
  std::size_t rank = 0;
  for_each_shape(variant, [&](const Dims& shape) { rank = std::max(rank, shape.size()); });
  if (rank == 0 || rank >= TENON_MAX_RANK) return variant;
  const bool all = one_in(2, random);
  const std::int64_t more = one_in(2, random) ? TENON_MAX_RANK - static_cast<std::int64_t>(rank) : 1;
  const std::int64_t size = random.integer(1, 3);
  for_each_shape(variant, [&](Dims& shape) {
    if (all || shape.size() == rank) shape.insert(shape.begin(), static_cast<std::size_t>(more), size);
  });
  return variant;
}

/// A random layout: any order of the dimensions in memory, gaps, negative and zero strides, an unaligned origin.
Layout lay_out(const Dims& shape, Random& random) {
  Layout layout;
  if (one_in(4, random)) layout.offset = random.integer(1, 5);
  if (shape.empty() || one_in(3, random)) return layout;
  std::vector<std::size_t> order(shape.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::reverse(order.begin(), order.end());  // innermost first
  if (one_in(2, random)) std::swap(order[0], one_of(order, random) == 0 ? order[0] : order[order.size() / 2]);
  layout.strides.resize(shape.size());
  std::int64_t stride = one_in(2, random) ? 1 : random.integer(2, 4);
  for (const std::size_t d : order) {
    layout.strides[d] = one_in(3, random) ? -stride : stride;
    stride = stride * std::max<std::int64_t>(shape[d], 1) + (one_in(3, random) ? 3 : 0);
    if (one_in(6, random)) layout.strides[d] = 0;
  }
  return layout;
}

std::vector<tenon_donation> some_donations(const Variant& variant, tenon_dtype dtype, Random& random) {
  if (!variant.donations.empty()) return variant.donations;
  const ResultSpec& out = variant.outputs[0];
  for (std::uint32_t i = 0; i < variant.inputs.size(); ++i) {
    const OperandSpec& in = variant.inputs[i];
    const bool fits = in.present && out.present && in.shape == out.shape && resolved(in.dtype, dtype) == resolved(out.dtype, dtype);
    if (fits && one_in(2, random)) return {{i, 0}};
  }
  return {};
}

}  // namespace

bool RandomNode::is_strided() const {
  return std::any_of(setting.layouts.begin(), setting.layouts.end(), [](const Layout& layout) { return !layout.strides.empty(); });
}

tenon_plan_options abi_plan_options(const PlanOptions& options, std::uint32_t math) {
  return tenon_plan_options{
      .struct_size = sizeof(tenon_plan_options), .math = math, .deterministic = options.deterministic, .fusion = options.fusion};
}

bool keeps_the_rule(const OpLine& line, const Net& net) {
  const Net::Node& node = net.nodes[0];
  Attributes attributes;
  std::memcpy(const_cast<void*>(attributes.data()), node.attributes.data(), node.attributes.size() * sizeof node.attributes[0]);
  const auto shape_of = [&](std::uint32_t v) { return Shape(std::span<const std::int64_t>(net.values[v].shape)); };
  try {
    Graph graph;
    std::vector<Value> operands;
    for (const std::uint32_t v : node.inputs) {
      operands.push_back(v == TENON_NO_INDEX ? Value()
                                             : graph.input(fmt::format("x{}", operands.size()), DType{net.values[v].dtype}, shape_of(v)));
    }
    NodeOptions options;
    for (const std::uint32_t v : node.outputs) {
      if (v == TENON_NO_INDEX) continue;
      if (!options.shape) options.shape = shape_of(v);
      if (line.op != TENON_OP_Split) continue;
      const auto axis = static_cast<std::size_t>(attributes.as<tenon_attributes_axis>().axis);
      if (axis >= net.values[v].shape.size()) return false;
      options.sizes.push_back(net.values[v].shape[axis]);
    }
    const std::vector<Value> results = graph.apply(line.op, operands, attributes, options);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const std::uint32_t v = node.outputs[i];
      if (v == TENON_NO_INDEX) continue;
      if (i >= results.size() || !(results[i].shape() == shape_of(v)) || results[i].dtype() != DType{net.values[v].dtype}) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

RandomNode random_node(const OpCase& op_case, Random& random) {
  const OpLine& line = line_of(op_case.op);
  RandomNode drawn;
  // Half of the dtypes are those of the case, the others any, also dtypes that the op cannot have.
  drawn.dtype = one_in(2, random) ? static_cast<tenon_dtype>(random.integer(TENON_DTYPE_F16, TENON_DTYPE_BOOL + 1))
                                  : one_of(dtypes_of(op_case), random);
  drawn.variant = one_of(op_case.variants, random);
  for (int attempt = 0; attempt < 8 && !fits_the_budget(drawn.variant, drawn.dtype); ++attempt) {
    drawn.variant = one_of(op_case.variants, random);
  }
  const auto adopt = [&](const Variant& changed) {
    if (fits_the_budget(changed, drawn.dtype) && is_valid(line, changed, dtypes_of(op_case).front())) drawn.variant = changed;
  };
  const int steps = has_indices(drawn.variant) || is_recurrent(line) ? 0 : 3;
  for (int step = 0; step < steps; ++step)
    adopt(one_in(3, random) ? deepened(drawn.variant, random) : resized(drawn.variant, small_size(random), random));

  drawn.setting.donations = one_in(3, random) ? some_donations(drawn.variant, drawn.dtype, random) : std::vector<tenon_donation>{};
  const auto is_donated = [&](std::size_t i) {
    return std::any_of(drawn.setting.donations.begin(), drawn.setting.donations.end(),
                       [&](const tenon_donation& d) { return d.input == i; });
  };
  const bool plain = one_in(4, random);
  for (std::size_t i = 0; i < drawn.variant.inputs.size(); ++i) {
    constexpr std::uint32_t kinds[] = {TENON_VALUE_INPUT, TENON_VALUE_PARAMETER, TENON_VALUE_CONSTANT};
    const bool donated = is_donated(i);
    drawn.kinds.push_back(donated ? tenon_dtype{TENON_VALUE_INPUT} : one_of(kinds, random));
    // Constants and donated inputs are dense.
    const bool dense = plain || donated || drawn.kinds[i] == TENON_VALUE_CONSTANT || !drawn.variant.inputs[i].present;
    drawn.setting.layouts.push_back(dense ? Layout{} : lay_out(drawn.variant.inputs[i].shape, random));
  }
  constexpr std::uint32_t maths[] = {TENON_MATH_STRICT, TENON_MATH_STRICT, TENON_MATH_TF32, TENON_MATH_BF16};
  constexpr std::uint32_t fusions[] = {TENON_FUSION_FULL, TENON_FUSION_ELEMENTWISE, TENON_FUSION_OFF};
  drawn.math = one_of(maths, random);
  drawn.options.fusion = one_of(fusions, random);
  drawn.options.deterministic = one_in(2, random);
  return drawn;
}

std::optional<Variant> variant_at_boundaries(const OpCase& op_case, tenon_dtype dtype, bool beyond_16_bits, Random& random) {
  const OpLine& line = line_of(op_case.op);
  Variant variant = one_of(op_case.variants, random);
  if (has_indices(variant) || is_recurrent(line)) return std::nullopt;
  // Where an element costs more than a few operations, the oracle takes long for as many elements as an axis beyond 16 bits has.
  constexpr const char* products[] = {"attention", "conv", "conv_transpose", "gemm", "im2col", "lrn", "matmul", "pool", "resize"};
  const bool is_product = std::find(std::begin(products), std::end(products), std::string(line.family)) != std::end(products);
  if (beyond_16_bits && is_product) return std::nullopt;
  const std::int64_t limit = is_product ? 1 << 14 : 7 << 16;
  bool changed = false;
  for (int attempt = 0; attempt < (beyond_16_bits ? 16 : 4); ++attempt) {
    // Next to a long axis the others are short.
    const Variant other = beyond_16_bits ? resized(resized(one_of(op_case.variants, random), random.integer(1, 4), random),
                                                   (std::int64_t{1} << random.integer(16, 18)) + random.integer(-1, 1025), random)
                                         : resized(variant, boundary_size(random), random);
    if (any_empty(other) || !fits_the_budget(other, dtype, limit) || !is_valid(line, other, dtypes_of(op_case).front())) continue;
    variant = other;
    changed = true;
    if (beyond_16_bits) break;
  }
  return changed ? std::optional(variant) : std::nullopt;
}

std::optional<Net> grown(const OpLine& line, const Net& net, Random& random) {
  constexpr std::int64_t large[] = {(std::int64_t{1} << 31) - 1, std::int64_t{1} << 31,       (std::int64_t{1} << 31) + 7,
                                    std::int64_t{1} << 32,       (std::int64_t{1} << 40) + 1, std::int64_t{1} << 46};
  std::set<std::int64_t> sizes;
  for (const Net::Value& value : net.values) sizes.insert(value.shape.begin(), value.shape.end());
  for (int attempt = 0; attempt < 6 && !sizes.empty(); ++attempt) {
    Net bigger = net;
    const std::int64_t from = one_of(std::vector<std::int64_t>(sizes.begin(), sizes.end()), random);
    const std::int64_t to = one_of(large, random);
    for (Net::Value& value : bigger.values) {
      std::replace(value.shape.begin(), value.shape.end(), from, to);
      value.layout = {};
      value.array = {};
      if (value.kind == TENON_VALUE_CONSTANT) value.kind = TENON_VALUE_INPUT;  // there are no bytes of this size
    }
    if (keeps_the_rule(line, bigger)) return bigger;
  }
  return std::nullopt;
}

Net retyped(const OpLine& line, const Net& net, Random& random) {
  Net other = net;
  const auto v = static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(net.values.size())));
  Net::Value& value = other.values[v];
  const auto dtype = static_cast<tenon_dtype>(random.integer(TENON_DTYPE_F16, TENON_DTYPE_BOOL + 1));
  // Zeros, which every dtype has; values that the dtype has already are kept, as the op may need others than zeros.
  if (dtype != value.dtype) value.array = value.kind == TENON_VALUE_OUTPUT ? Array() : Array(dtype, value.shape);
  value.dtype = dtype;
  value.layout = {};
  Net::Node& node = other.nodes[0];
  if (line.op == TENON_OP_Cast && v == node.outputs[0]) {
    tenon_attributes_cast attributes{};
    std::memcpy(&attributes, node.attributes.data(), sizeof attributes);
    attributes.to = value.dtype;
    std::memcpy(node.attributes.data(), &attributes, sizeof attributes);
  }
  return other;
}

std::optional<Net> broken(const OpLine& line, const Net& net, Random& random) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    Net other = net;
    // A constant has only the bytes of its original shape, and a plan may read as many as the changed shape has.
    for (Net::Value& value : other.values) {
      if (value.kind == TENON_VALUE_CONSTANT) value.kind = TENON_VALUE_INPUT;
    }
    Net::Value& value = other.values[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(net.values.size())))];
    if (value.shape.empty()) continue;
    std::int64_t& size = value.shape[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(value.shape.size())))];
    size += random.integer(1, 5);
    value.layout = {};
    if (!keeps_the_rule(line, other)) return other;
  }
  return std::nullopt;
}

}  // namespace tenon::conformance
