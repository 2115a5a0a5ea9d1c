// SPDX-License-Identifier: Apache-2.0
// tenon/weights.h - the weights of a model in files that other programs read and write: safetensors,
// npz. A checkpoint (Model::save) also has what training needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/model.h>
#include <tenon/safetensors.h>

namespace tenon {

/// A file of weights and how its names belong to those of a model: the key `weights` of a train.yaml.
struct WeightsFile {
  /// .safetensors, .npz, or, to read, a checkpoint: its YAML file, or a folder of checkpoints.
  std::string file;
  /// a file of name rules, see load_name_map; empty: the names are the same
  std::string map = {};
  /// the file has each dense kernel as (out, in), as PyTorch's Linear, and not as (in, out)
  bool transpose = false;
  /// reading: a parameter without a tensor, or a tensor without a parameter, is an error
  bool strict = true;
};

/// A rule that pairs names. A `*` on one side stands for the same text as that `*` on the other.
struct NameRule {
  std::string ours;    ///< a parameter: "block_*/kernel"; empty: tensors to leave out
  std::string theirs;  ///< a tensor of the file: "blocks.*.weight"
  bool transpose = false;
};

/// Reads a file of rules, one a line; the first that fits a name decides, and a name that none fits
/// stays as it is.
///
///   # ours: theirs
///   dense_*/kernel: fc*.weight transposed
///   dense_*/bias: fc*.bias
///   -: *.num_batches_tracked
///
/// Errors  name the file and the line: no colon, another number of `*` on each side.
TENON_API std::vector<NameRule> load_name_map(const std::string& path);

/// What import_weights did.
struct WeightsReport {
  std::string file;
  std::vector<std::pair<std::string, std::string>> matched;  ///< parameter, tensor of the file
  std::vector<std::string> missing;    ///< parameters without a tensor, which keep their values
  std::vector<std::string> left_over;  ///< tensors without a parameter

  /// "fc.npz: 4 of 5 parameters; missing: scores/bias; left over: head.weight, head.bias"
  TENON_API std::string str() const;
};

/// Sets the weights and running statistics of a model, which has been built, to those of a file.
/// Floating-point tensors are converted to the dtype of the parameter, and axes of size 1 may be
/// missing or added. The position of the training and the optimizer state stay.
/// Errors  a model that was not built; others name the file, parameter and tensor: another shape; with `strict`, what is
///         missing or left over; no parameter is matched. The model is then unchanged.
TENON_API WeightsReport import_weights(Model& model, const WeightsFile& from);

/// Writes the weights and running statistics of a model under the names that the rules give them.
/// Errors  a model that was not built; an ending other than .safetensors and .npz; two parameters with one name.
TENON_API void export_weights(Model& model, const WeightsFile& to);

/// The tensors of a .safetensors or .npz file, or the weights of a checkpoint.
TENON_API std::vector<NamedTensor> load_weights_file(const std::string& path);

/// A tensor by which two files differ.
struct WeightDifference {
  std::string name;
  /// "only in a.npz", "f32(3,4) and f32(4,3)", "by at most 0.25, at element 7"
  std::string text;
};

/// The tensors that are in one file only, have another shape, or have an element that differs by
/// more than `tolerance`. NaN equals NaN.
TENON_API std::vector<WeightDifference> compare_weights(const std::string& a, const std::string& b,
                                                        double tolerance = 0);

}  // namespace tenon
