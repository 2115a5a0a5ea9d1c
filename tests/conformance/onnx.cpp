// SPDX-License-Identifier: Apache-2.0
// ONNX node tests: ONNX's test vectors in the form that onnx/convert.py writes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include <tenon/dtype.h>
#include <tenon/error.h>

#include "case.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

Array array_of(const json& from) {
  const std::string dtype = from.at("dtype");
  const auto type = dtype_from(dtype);
  if (!type) throw Error(fmt::format("unknown dtype '{}'", dtype));
  Array array(static_cast<tenon_dtype>(*type), from.at("shape").get<Dims>());
  const std::string hex = from.at("data");
  if (hex.size() != 2 * array.size_bytes()) {
    throw Error(fmt::format("{} has {} bytes, expected {}", array.str(), hex.size() / 2, array.size_bytes()));
  }
  for (std::size_t i = 0; i < array.size_bytes(); ++i)
    array.bytes()[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return array;
}

/// One number per dimension.
template <class T, std::size_t size>
void copy_entries(const json& from, T (&to)[size]) {
  const auto entries = from.get<std::vector<T>>();
  if (entries.size() > size) throw Error("too many dimensions");
  std::copy(entries.begin(), entries.end(), to);
}

/// strides, dilations and padding of a conv or window, one per spatial dimension
template <class Struct>
void copy_spatial(const json& from, Struct& a) {
  std::fill(std::begin(a.strides), std::end(a.strides), 1);
  std::fill(std::begin(a.dilations), std::end(a.dilations), 1);
  copy_entries(from.at("strides"), a.strides);
  copy_entries(from.at("dilations"), a.dilations);
  copy_entries(from.at("pads_before"), a.pads_before);
  copy_entries(from.at("pads_after"), a.pads_after);
}

AttributeBytes attributes_of(tenon_op op, const json& from) {
  const auto integer = [&](const char* key) { return from.value(key, std::int64_t{0}); };
  const auto flag = [&](const char* key) { return static_cast<std::uint32_t>(from.value(key, 0)); };
  switch (op) {
    case TENON_OP_ReduceSum:
    case TENON_OP_ReduceMean:
    case TENON_OP_ReduceMax:
    case TENON_OP_ReduceMin:
    case TENON_OP_ReduceProd:
    case TENON_OP_ReduceL1:
    case TENON_OP_ReduceL2:
    case TENON_OP_ReduceSumSquare:
    case TENON_OP_ReduceLogSumExp:
    case TENON_OP_Transpose: {
      tenon_attributes_axes a{};
      const auto axes = from.at("axes").get<Dims>();
      if (axes.size() > TENON_MAX_RANK) throw Error("too many axes");
      a.keepdims = flag("keepdims");
      a.count = static_cast<std::uint32_t>(axes.size());
      std::copy(axes.begin(), axes.end(), a.axes);
      return a;
    }
    case TENON_OP_ArgMax:
    case TENON_OP_ArgMin:
    case TENON_OP_Concat:
    case TENON_OP_Split:
    case TENON_OP_Gather:
    case TENON_OP_GatherElements:
    case TENON_OP_Flatten:
    case TENON_OP_Softmax:
    case TENON_OP_LogSoftmax: {
      tenon_attributes_axis a{};
      a.axis = integer("axis");
      a.keepdims = flag("keepdims");
      return a;
    }
    case TENON_OP_Slice: {
      tenon_attributes_slice a{};
      copy_entries(from.at("starts"), a.starts);
      copy_entries(from.at("steps"), a.steps);
      return a;
    }
    case TENON_OP_Pad: {
      tenon_attributes_pad a{};
      const std::string mode = from.at("mode");
      a.mode = mode == "reflect" ? TENON_PAD_REFLECT : mode == "edge" ? TENON_PAD_EDGE : TENON_PAD_CONSTANT;
      a.value = from.at("value");
      copy_entries(from.at("before"), a.before);
      return a;
    }
    case TENON_OP_ScatterElements: {
      tenon_attributes_scatter a{};
      const std::string reduction = from.at("reduction");
      a.reduction = reduction == "add" ? TENON_SCATTER_ADD : reduction == "mul" ? TENON_SCATTER_MUL : TENON_SCATTER_NONE;
      a.axis = integer("axis");
      return a;
    }
    case TENON_OP_OneHot: {
      tenon_attributes_one_hot a{};
      a.axis = integer("axis");
      a.off = from.at("off");
      a.on = from.at("on");
      return a;
    }
    case TENON_OP_Gemm: {
      tenon_attributes_gemm a{};
      a.trans_a = flag("trans_a");
      a.trans_b = flag("trans_b");
      a.alpha = from.at("alpha");
      a.beta = from.at("beta");
      return a;
    }
    case TENON_OP_Clip: {
      tenon_attributes_clip a{};
      a.low = from.value("low", -std::numeric_limits<double>::infinity());
      a.high = from.value("high", std::numeric_limits<double>::infinity());
      return a;
    }
    case TENON_OP_LeakyRelu:
    case TENON_OP_Elu: {
      tenon_attributes_alpha a{};
      a.alpha = from.at("alpha");
      return a;
    }
    case TENON_OP_Gelu: {
      tenon_attributes_gelu a{};
      a.approximate_tanh = flag("approximate_tanh");
      return a;
    }
    case TENON_OP_Cast: {
      tenon_attributes_cast a{};
      a.to = static_cast<tenon_dtype>(*dtype_from(from.at("to").get<std::string>()));
      return a;
    }
    case TENON_OP_Conv:
    case TENON_OP_ConvTranspose: {
      tenon_attributes_conv a{};
      a.groups = static_cast<std::uint32_t>(integer("groups"));
      copy_spatial(from, a);
      return a;
    }
    case TENON_OP_MaxPool:
    case TENON_OP_AveragePool: {
      tenon_attributes_window a{};
      a.ceil_mode = flag("ceil_mode");
      a.count_include_pad = flag("count_include_pad");
      std::fill(std::begin(a.kernel), std::end(a.kernel), 1);
      copy_entries(from.at("kernel"), a.kernel);
      copy_spatial(from, a);
      return a;
    }
    case TENON_OP_Resize: {  // the enums are in the order of these words
      const auto index = [&](const char* key, std::initializer_list<const char*> words) {
        const std::string word = from.at(key);
        const auto found = std::find(words.begin(), words.end(), word);
        if (found == words.end()) throw Error(fmt::format("{} '{}'", key, word));
        return static_cast<std::uint32_t>(found - words.begin());
      };
      tenon_attributes_resize a{};
      a.mode = index("mode", {"nearest", "linear"});
      a.coordinates = index("coordinates", {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"});
      a.rounding = index("rounding", {"prefer_floor", "prefer_ceil", "floor", "ceil"});
      std::fill(std::begin(a.scales), std::end(a.scales), 1);
      copy_entries(from.at("scales"), a.scales);
      return a;
    }
    case TENON_OP_BatchNormalization:
    case TENON_OP_BatchNormTrain: {
      tenon_attributes_batch_norm a{};
      a.axis = 1;
      a.epsilon = from.at("epsilon");
      a.momentum = from.value("momentum", 0.0);
      a.biased = from.value("biased", 0u);
      return a;
    }
    case TENON_OP_LayerNormalization: {
      tenon_attributes_layer_norm a{};
      a.axis = integer("axis");
      a.epsilon = from.at("epsilon");
      return a;
    }
    case TENON_OP_LRN: {
      tenon_attributes_lrn a{};
      a.size = integer("size");
      a.alpha = from.at("alpha");
      a.beta = from.at("beta");
      a.bias = from.at("bias");
      return a;
    }
    case TENON_OP_RNN:
    case TENON_OP_GRU:
    case TENON_OP_LSTM: {
      tenon_attributes_recurrent a{};
      a.direction = flag("direction");
      a.activation = flag("activation");
      a.linear_before_reset = flag("linear_before_reset");
      return a;
    }
    case TENON_OP_TopK: {
      tenon_attributes_top_k a{};
      a.axis = integer("axis");
      a.k = integer("k");
      a.largest = flag("largest");
      a.sorted = flag("sorted");
      return a;
    }
    case TENON_OP_CumSum: {
      tenon_attributes_cum_sum a{};
      a.axis = integer("axis");
      a.exclusive = flag("exclusive");
      a.reverse = flag("reverse");
      return a;
    }
    case TENON_OP_SoftmaxCrossEntropyLoss: {
      tenon_attributes_cross_entropy a{};
      const std::string reduction = from.at("reduction");
      a.reduction = reduction == "mean" ? TENON_REDUCTION_MEAN : reduction == "sum" ? TENON_REDUCTION_SUM : TENON_REDUCTION_NONE;
      a.has_ignore_index = from.contains("ignore_index") ? 1 : 0;
      a.ignore_index = integer("ignore_index");
      return a;
    }
    default:
      return tenon_attributes_none{};
  }
}

struct Vector {
  const OpLine* line;
  AttributeBytes attributes;
  std::vector<Array> inputs, outputs;  ///< absent ones have TENON_DTYPE_NONE
};

void check_vector(CaseContext& context, const Vector& vector) {
  Variant variant;
  variant.attributes = vector.attributes;
  double largest_operand = 1;
  for (const Array& input : vector.inputs) {
    variant.inputs.push_back({input.shape(), {}, input.dtype(), input.dtype() != TENON_DTYPE_NONE});
    for (std::int64_t i = 0; is_float(input.dtype()) && i < input.count(); ++i)
      largest_operand = std::max(largest_operand, std::fabs(input.at(i)));
  }
  std::vector<Array> expected;
  for (const Array& output : vector.outputs) {
    variant.outputs.push_back({output.shape(), output.dtype(), output.dtype() != TENON_DTYPE_NONE});
    if (output.dtype() != TENON_DTYPE_NONE) expected.push_back(output);
  }
  const auto got = context.run(net_of(*vector.line, variant, vector.inputs[0].dtype(), vector.inputs));
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Both sides have the error of an f32 (or f64) computation with at most some hundred terms.
    Bound bound;
    if (is_float(got[i].dtype())) bound = {32 * epsilon(got[i].dtype()), 32 * epsilon(got[i].dtype()) * largest_operand};
    const std::string wrong = compare(expected[i], got[i], bound);
    if (!wrong.empty()) throw Failure(fmt::format("output {}: {}", i, wrong));
  }
}

}  // namespace

std::vector<Case> onnx_case_list(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot be read; tests/conformance/onnx/convert.py writes it", file.string()));
  std::vector<Case> cases;
  try {
    const json root = json::parse(stream);
    for (const json& entry : root.at("vectors")) {
      const std::string op = entry.at("op");
      const auto line = std::find_if(op_lines().begin(), op_lines().end(), [&](const OpLine& l) { return op == l.name; });
      if (line == op_lines().end()) throw Error(fmt::format("op '{}' is not in ops.def", op));
      Vector vector{&*line, attributes_of(line->op, entry.at("attributes")), {}, {}};
      for (const json& input : entry.at("inputs")) vector.inputs.push_back(input.is_null() ? Array() : array_of(input));
      for (const json& output : entry.at("outputs")) vector.outputs.push_back(output.is_null() ? Array() : array_of(output));
      if (vector.inputs.empty() || vector.outputs.empty()) throw Error("a vector without operands or results");
      const tenon_dtype dtype = vector.inputs[0].dtype();
      cases.push_back({"onnx/" + entry.at("name").get<std::string>(), line->stem, "onnx", dtype,
                       (line->dtypes & TENON_DTYPE_BIT(dtype)) != 0, [vector](CaseContext& context) { check_vector(context, vector); }});
    }
  } catch (const json::exception& e) {
    throw Error(fmt::format("{}: {}", file.string(), e.what()));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file.string(), e.what()));
  }
  return cases;
}

}  // namespace tenon::conformance
