// SPDX-License-Identifier: Apache-2.0
// onnx/report.h - what an ONNX file says of itself, and what of it can be imported.
#pragma once

#include <string>
#include <vector>

#include <tenon/onnx.h>

#include "onnx/model_file.h"

namespace tenon::onnx {

/// Of a file whose records have been read. Reads no weights.
FileReport report_of(const ModelFile& file);
/// The type of an input or output.
ValueType type_of(const ValueRecord& record);
/// Throws UNSUPPORTED, naming each operator of the report that cannot be imported.
void require_supported(const std::string& file, const FileReport& report);

/// That the file imports a newer version of ai.onnx than the rules know, and how it is read; "" for other files.
std::string remark_on_opset(const Metadata& metadata);
/// The same as a warning, for files that are imported.
void warn_of_opset(const std::string& file, const Metadata& metadata);

}  // namespace tenon::onnx
