// SPDX-License-Identifier: Apache-2.0
// tenon/quantize.h - post-training quantisation: an ONNX file whose products are computed with
// integers of 8 bits, or whose weights are stored in 8 or 4 bits, of a model of floats and some of
// its data.
//
//   onnx::Model model = onnx::Model::load("net.onnx");
//   quantize::Report report = quantize::quantize(model, samples, "net.int8.onnx");
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/dtype.h>
#include <tenon/onnx.h>
#include <tenon/safetensors.h>
#include <tenon/tensor.h>

namespace tenon::quantize {

/// How the range of an activation follows from what was observed. Each range is extended to
/// contain 0, so that 0 is exact.
enum class Calibration {
  minmax,  ///< from the least to the largest element
  /// without the (100 - Options::percentile) percent of elements farthest out, half of them on each
  /// side
  percentile,
  /// [-t, t] within the observed range, with the t at which the distribution of 8-bit values has
  /// the least Kullback-Leibler divergence from that of the floats.
  /// Source  S. Migacz: 8-bit inference with TensorRT, GPU Technology Conference 2017.
  entropy,
};
/// The name on the command line.
TENON_API const char* name_of(Calibration calibration);

/// Options of quantize.
struct Options {
  Calibration calibration = Calibration::minmax;
  double percentile = 99.99;      ///< in (50, 100]; of Calibration::percentile
  DType activations = DType::u8;  ///< u8 with a zero point, or i8 symmetric: with the zero point 0
  /// 0: weights and activations are quantised; 8 or 4: weights only, to as many bits
  std::int64_t weights_only_bits = 0;
  /// weights_only_bits 4: elements of a column of a matrix that share a scale; a power of two, at
  /// least 16
  std::int64_t block_size = 32;
  /// Globs of node names, as `tenon explain` prints them, that stay in f32, with the nodes below them:
  /// "head" is also "head/conv".
  std::vector<std::string> exclude = {};
  /// ONNX operators that are quantised, of quantizable_operators(); empty: those that are by default.
  /// If each has a plus before it, "+Attention", those that are by default and these.
  std::vector<std::string> op_types = {};
  /// Samples that are run at once, where the model leaves that open.
  std::int64_t batch_size = 32;
  /// The batch size of the file that is written; 0: any, unless the model fixes it.
  std::int64_t fixed_batch = 0;
  std::int64_t opset = 17;  ///< of the file that is written, as in onnx::ExportOptions
};

/// An operator that can be quantised.
struct QuantizableOperator {
  std::string name;         ///< of ONNX: "Conv"
  bool by_default = false;  ///< without Options::op_types
};
TENON_API const std::vector<QuantizableOperator>& quantizable_operators();

/// Samples of a model's inputs.
struct Samples {
  std::int64_t count = 0;
  /// Samples [begin, end), for each input of the model a tensor (end - begin, ...) on the host.
  std::function<NamedTensors(std::int64_t begin, std::int64_t end)> read;
};

/// What became of a node with weights.
struct NodeReport {
  std::string name = {}, op = {};
  bool quantized = false;
  std::string reason = {};  ///< why it stays in f32; empty if it does not
};
/// A quantised activation: q = round(x / scale) + zero_point.
struct ActivationReport {
  std::string name;         ///< of the value that was observed
  float low = 0, high = 0;  ///< its range
  float scale = 0;
  std::int64_t zero_point = 0;
};
/// What quantize did.
struct Report {
  std::vector<NodeReport> nodes = {};              ///< Conv, MatMul and Gemm, in order
  std::vector<ActivationReport> activations = {};  ///< in order; empty with weights_only_bits
  std::int64_t samples = 0;                        ///< that ranges were observed on
};

/// Writes the model in quantised form, as an ONNX file of QuantizeLinear and DequantizeLinear
/// around ordinary operators (ADR 54), which is replaced as a whole. Batch norms are folded into
/// convolutions first. Weights are i8, symmetric, with a scale for each output channel; biases i32.
/// Nodes between quantised products stay in integers where they can: pools, Relu, Clip, Add,
/// Concat, and those that move elements. In f32 stay: products of two activations, unless Options
/// select Attention, the outputs of the model, and all other ops.
///
/// Samples  for the shapes of the inputs and for the ranges of activations; with weights_only_bits
///          one is enough.
/// Errors   options outside their ranges; a glob or an operator that matches nothing; a model without
///          a node to quantise; no samples, or fewer than the batch that the file fixes; a value that
///          is NaN or infinite, by its name; those of onnx::Model::to_graph and onnx::export_graph.
TENON_API Report quantize(onnx::Model& model, const Context& context, const Samples& samples,
                          const std::filesystem::path& path, const Options& options = {});

/// How far the outputs of a model are from those of another one, over samples.
struct Comparison {
  std::int64_t samples = 0;
  /// per output: the largest difference, and the root of the mean square of differences, relative to
  /// those of the expected elements that are finite; NaN if an element of either model is, infinity
  /// if one is infinite where that of the other model is not the same
  double largest_difference = 0, rms_difference = 0;
  /// samples whose largest element of the first output has the same index; -1: it has no classes
  double same_class = -1;
  /// samples whose largest element is the label's; -1: there are no labels
  double expected_accuracy = -1, accuracy = -1;
};
/// Compares the outputs of `model` with those of `expected`, which has the same inputs and outputs.
/// `labels`: i64 (count) of classes, or undefined.
/// Errors  another number of outputs, other shapes; a batch size below 1; those of onnx::Model::run.
TENON_API Comparison compare(onnx::Model& expected, onnx::Model& model, const Samples& samples,
                             const Tensor& labels = {}, std::int64_t batch_size = 32);

}  // namespace tenon::quantize
