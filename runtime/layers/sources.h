// SPDX-License-Identifier: Apache-2.0
// layers/sources.h - the files that layers import.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "onnx/source.h"

namespace tenon::layers {

/// The ONNX files of a model's layers, each opened once for all programs of the model.
/// Threads  one call at a time.
class Sources {
 public:
  /// Errors  those of onnx::Source::open.
  onnx::Source& open(const std::string& path) {
    std::shared_ptr<onnx::Source>& source = by_path_[path];
    if (source == nullptr) source = onnx::Source::open(path);
    return *source;
  }

 private:
  std::map<std::string, std::shared_ptr<onnx::Source>> by_path_;
};

}  // namespace tenon::layers
