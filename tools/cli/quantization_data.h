// SPDX-License-Identifier: Apache-2.0
// cli/quantization_data.h - the samples that `tenon quantize` calibrates and compares with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/onnx.h>
#include <tenon/quantize.h>

namespace CLI {
class App;
}

namespace tenon::cli {

/// Samples of the inputs of a model.
struct QuantizationData {
  quantize::Samples calibration, test;  ///< test: the test part, or the same samples if there is none
  Tensor labels;                        ///< i64 (test.count), or undefined
  std::string description;              ///< "128 of 60000 samples of fashion-mnist train"
};

/// How samples are read: --data, --samples, --test-samples, and for ONNX files --normalize, --mean and --std.
struct DataOptions {
  std::string path, normalize;
  std::vector<double> mean, deviation;
  std::int64_t samples = 128, test_samples = 1000;

  void add_to(CLI::App& command);
  /// The data of a training run.
  /// Errors  an input of the model that the samples do not fit.
  QuantizationData of_run(const DataSplits& data, const onnx::Model& model) const;
  /// The files at `path`, for the inputs of an ONNX file: arrays by the names of the inputs (.npz, .safetensors, a folder of .npy), or of
  /// the only input (.npy); else a data set in any format of train.yaml that files tell. Errors  no path; files of no known format; those
  /// of the readers; an input that the samples do not fit.
  QuantizationData of_files(const onnx::Model& model) const;
};

}  // namespace tenon::cli
