// SPDX-License-Identifier: Apache-2.0
// print.cpp - prints graphs as text.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <unordered_map>

#include <tenon/graph.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

/// The attributes' names in the op's line of ops.def, in the order of the line.
using Words = std::vector<std::string>;

Words attribute_words(tenon_op op) {
  const std::string schema = schema_of(op);
  const std::size_t semicolon = schema.find(';');
  std::istringstream rest(semicolon == std::string::npos ? "" : schema.substr(semicolon + 1));
  Words words;
  for (std::string word; rest >> word;) words.push_back(word);
  return words;
}

std::string pair(const std::string& word, double value) {
  return fmt::format(" {}={}", word, value);
}

std::string text(const tenon_attributes_none&, const Words&) {
  return {};
}

std::string text(const tenon_attributes_axis& a, const Words& words) {
  return fmt::format(" {}={}", words[0], a.axis) + (words.size() > 1 && a.keepdims ? " " + words[1] : "");
}

std::string text(const tenon_attributes_axes& a, const Words& words) {
  std::string list;
  for (std::uint32_t i = 0; i < a.count; ++i) list += (i == 0 ? "" : ",") + std::to_string(a.axes[i]);
  return fmt::format(" {}=({})", words[0], list) + (words.size() > 1 && a.keepdims ? " " + words[1] : "");
}

std::string text(const tenon_attributes_gemm& a, const Words& words) {
  return (a.trans_a ? " " + words[0] : "") + (a.trans_b ? " " + words[1] : "") + (a.alpha != 1 ? pair(words[2], a.alpha) : "") +
         (a.beta != 1 ? pair(words[3], a.beta) : "");
}

std::string text(const tenon_attributes_cast& a, const Words& words) {
  return fmt::format(" {}={}", words[0], name_of(static_cast<DType>(a.to)));
}

/// "2,0,1": the entries up to the last one that differs from `rest`.
template <class T, std::size_t size>
std::string list(const T (&entries)[size], T rest) {
  std::size_t count = size;
  while (count > 1 && entries[count - 1] == rest) --count;
  std::string line;
  for (std::size_t i = 0; i < count; ++i) line += fmt::format("{}{}", i == 0 ? "" : ",", entries[i]);
  return line;
}

std::string text(const tenon_attributes_clip& a, const Words& words) {
  return pair(words[0], a.low) + pair(words[1], a.high);
}

std::string text(const tenon_attributes_alpha& a, const Words& words) {
  return pair(words[0], a.alpha);
}

std::string text(const tenon_attributes_gelu& a, const Words& words) {
  return a.approximate_tanh ? " " + words[0] : "";
}

std::string text(const tenon_attributes_slice& a, const Words& words) {
  return fmt::format(" {}=({}) {}=({})", words[0], list<std::int64_t>(a.starts, 0), words[1], list<std::int64_t>(a.steps, 1));
}

std::string text(const tenon_attributes_pad& a, const Words& words) {
  const char* modes[] = {"constant", "reflect", "edge"};
  return fmt::format(" {}={}", words[0], modes[a.mode]) + pair(words[1], a.value) +
         fmt::format(" {}=({})", words[2], list<std::int64_t>(a.before, 0));
}

std::string text(const tenon_attributes_scatter& a, const Words& words) {
  const char* reductions[] = {"none", "add", "mul"};
  return fmt::format(" {}={} {}={}", words[0], a.axis, words[1], reductions[a.reduction]);
}

std::string text(const tenon_attributes_one_hot& a, const Words& words) {
  return fmt::format(" {}={}", words[0], a.axis) + pair(words[1], a.off) + pair(words[2], a.on) +
         fmt::format(" {}={}", words[3], name_of(static_cast<DType>(a.dtype)));
}

/// Strides, dilations and padding that differ from their defaults.
template <class Struct>
std::string spatial(const Struct& a) {
  const auto differs = [](const std::int64_t(&entries)[TENON_MAX_SPATIAL], std::int64_t usual) {
    return std::any_of(std::begin(entries), std::end(entries), [&](std::int64_t entry) { return entry != usual; });
  };
  std::string line;
  if (differs(a.strides, 1)) line += fmt::format(" strides=({})", list<std::int64_t>(a.strides, 1));
  if (differs(a.dilations, 1)) line += fmt::format(" dilations=({})", list<std::int64_t>(a.dilations, 1));
  if (differs(a.pads_before, 0)) line += fmt::format(" pads_before=({})", list<std::int64_t>(a.pads_before, 0));
  if (differs(a.pads_after, 0)) line += fmt::format(" pads_after=({})", list<std::int64_t>(a.pads_after, 0));
  return line;
}

std::string text(const tenon_attributes_conv& a, const Words& words) {
  return (a.groups != 1 ? fmt::format(" {}={}", words[0], a.groups) : "") + spatial(a);
}

std::string text(const tenon_attributes_window& a, const Words&) {
  return fmt::format(" kernel=({})", list<std::int64_t>(a.kernel, 1)) + spatial(a) + (a.ceil_mode ? " ceil_mode" : "") +
         (a.count_include_pad ? " count_include_pad" : "");
}

std::string text(const tenon_attributes_resize& a, const Words& words) {
  const char* modes[] = {"nearest", "linear"};
  const char* coordinates[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
  const char* roundings[] = {"prefer_floor", "prefer_ceil", "floor", "ceil"};
  return fmt::format(" {}={} {}={} {}={} {}=({})", words[0], modes[a.mode], words[1], coordinates[a.coordinates], words[2],
                     roundings[a.rounding], words[3], list<double>(a.scales, 1));
}

std::string text(const tenon_attributes_batch_norm& a, const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    if (word == "biased") line += a.biased ? " biased" : "";
    if (word == "axis") line += fmt::format(" axis={}", a.axis);
    if (word == "epsilon") line += pair(word, a.epsilon);
    if (word == "momentum") line += pair(word, a.momentum);
  }
  return line;
}

std::string text(const tenon_attributes_layer_norm& a, const Words& words) {
  return fmt::format(" {}={}", words[0], a.axis) + pair(words[1], a.epsilon);
}

std::string text(const tenon_attributes_lrn& a, const Words& words) {
  return fmt::format(" {}={}", words[0], a.size) + pair(words[1], a.alpha) + pair(words[2], a.beta) + pair(words[3], a.bias);
}

std::string text(const tenon_attributes_recurrent& a, const Words& words) {
  const char* directions[] = {"forward", "reverse", "both"};
  const char* activations[] = {"tanh", "relu"};
  std::string line = fmt::format(" {}={}", words[0], directions[a.direction]);
  if (words.size() > 1 && words[1] == "activation") line += fmt::format(" {}={}", words[1], activations[a.activation]);
  if (words.size() > 1 && words[1] == "linear_before_reset" && a.linear_before_reset) line += " " + words[1];
  return line;
}

std::string text(const tenon_attributes_attention& a, const Words& words) {
  return (a.causal ? " " + words[0] : "") + pair(words[1], a.scale);
}

std::string text(const tenon_attributes_top_k& a, const Words& words) {
  return fmt::format(" {}={} {}={}", words[0], a.axis, words[3], a.k) + (a.largest ? " " + words[1] : "") +
         (a.sorted ? " " + words[2] : "");
}

std::string text(const tenon_attributes_cum_sum& a, const Words& words) {
  return fmt::format(" {}={}", words[0], a.axis) + (a.exclusive ? " " + words[1] : "") + (a.reverse ? " " + words[2] : "");
}

std::string text(const tenon_attributes_random& a, const Words& words) {
  std::string line = fmt::format(" {}={}", words[0], a.stream);
  if (words.size() > 1) line += pair(words[1], a.a);
  if (words.size() > 2 && words[2] != "dtype") line += pair(words[2], a.b);
  return line;
}

std::string text(const tenon_attributes_cross_entropy& a, const Words& words) {
  const char* reductions[] = {"none", "mean", "sum"};
  return fmt::format(" {}={}", words[0], reductions[a.reduction]) +
         (a.has_ignore_index ? fmt::format(" {}={}", words[1], a.ignore_index) : "");
}

std::string text(const tenon_attributes_sgd& a, const Words& words) {
  return (a.nesterov ? " " + words[0] : "") + pair(words[1], a.momentum) + pair(words[2], a.weight_decay);
}

std::string text(const tenon_attributes_adam& a, const Words& words) {
  return pair(words[0], a.beta1) + pair(words[1], a.beta2) + pair(words[2], a.epsilon) + pair(words[3], a.weight_decay);
}

std::string text(const tenon_attributes_rmsprop& a, const Words& words) {
  return (a.epsilon_outside ? " " + words[0] : "") + pair(words[1], a.rho) + pair(words[2], a.epsilon);
}

std::string text(const tenon_attributes_adagrad& a, const Words& words) {
  return pair(words[0], a.epsilon) + pair(words[1], a.weight_decay);
}

std::string text(const tenon_attributes_adadelta& a, const Words& words) {
  return pair(words[0], a.rho) + pair(words[1], a.epsilon) + pair(words[2], a.weight_decay);
}

template <class Struct>
std::string text_of(const Attributes& attributes, const Words& words) {
  return text(attributes.as<Struct>(), words);
}

struct Printer {
  tenon_op op;
  std::string (*print)(const Attributes&, const Words&);
};
constexpr Printer printers[] = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  {id, text_of<tenon_attributes_##attributes>},
#include <tenon/ops.def>
#undef TENON_OP
};

}  // namespace

std::string attributes_str(tenon_op op, const Attributes& attributes) {
  for (const Printer& printer : printers) {
    if (printer.op == op) return printer.print(attributes, attribute_words(op));
  }
  return {};
}

}  // namespace graph

namespace {

std::string declaration(const ValueInfo& info) {
  return fmt::format("{}:{}{}", info.name, name_of(info.dtype), info.shape.str());
}

/// Scalar constants by value, everything else by name.
std::string reference(const ValueInfo& info) {
  if (info.kind != ValueKind::constant || info.shape.rank() != 0 || info.dtype == DType::boolean) return info.name;
  return fmt::format("{}", info.constant.item());
}

}  // namespace

std::string Graph::str() const {
  std::string text;
  for (const ValueInfo& value : values_) {
    if (value.kind == ValueKind::input) text += "input " + declaration(value) + "\n";
    if (value.kind == ValueKind::parameter) text += "parameter " + declaration(value) + "\n";
    if (value.kind == ValueKind::constant && value.shape.rank() != 0) text += "constant " + declaration(value) + "\n";
  }
  for (const NodeInfo& node : nodes_) {
    std::string results, operands;
    for (ValueId id : node.outputs) results += (results.empty() ? "" : ", ") + (id == no_id ? "-" : declaration(values_[id]));
    for (ValueId id : node.inputs) operands += (operands.empty() ? "" : ", ") + (id == no_id ? "-" : reference(values_[id]));
    text += fmt::format("{} = {}({}){}", results, op_name(node.op), operands, graph::attributes_str(node.op, node.attributes));
    if (!node.device.empty()) text += "  @" + node.device;
    text += "\n";
  }
  for (const GraphOutput& output : outputs_) text += fmt::format("output {} = {}\n", output.name, reference(values_[output.value]));
  for (const GraphUpdate& update : updates_) {
    text += fmt::format("update {} = {}\n", values_[update.parameter].name, reference(values_[update.value]));
  }
  return text;
}

}  // namespace tenon
