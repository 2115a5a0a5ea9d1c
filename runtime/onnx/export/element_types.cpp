// SPDX-License-Identifier: Apache-2.0
#include "onnx/export/element_types.h"

#include <algorithm>
#include <array>

namespace tenon::onnx::exporting {
namespace {

struct Missing {
  std::string_view op;
  DType dtype;
  std::int64_t until;  ///< the opset that has it
};
constexpr std::array missing{
    Missing{"IsInf", DType::f16, 20},        Missing{"IsInf", DType::bf16, 20},         Missing{"Round", DType::bf16, 22},
    Missing{"Sin", DType::bf16, 22},         Missing{"Cos", DType::bf16, 22},           Missing{"Atan", DType::bf16, 22},
    Missing{"Elu", DType::bf16, 22},         Missing{"Softplus", DType::bf16, 22},      Missing{"Mish", DType::bf16, 22},
    Missing{"Conv", DType::bf16, 22},        Missing{"ConvTranspose", DType::bf16, 22}, Missing{"MaxPool", DType::bf16, 22},
    Missing{"AveragePool", DType::bf16, 22}, Missing{"RNN", DType::bf16, 22},           Missing{"GRU", DType::bf16, 22},
    Missing{"LSTM", DType::bf16, 22},        Missing{"TopK", DType::bf16, 24},          Missing{"OneHot", DType::bf16, 1 << 20},
};

}  // namespace

bool takes(std::string_view op, DType dtype, std::int64_t opset) {
  const auto lacks = [&](const Missing& entry) { return entry.op == op && entry.dtype == dtype && opset < entry.until; };
  return std::ranges::none_of(missing, lacks);
}

}  // namespace tenon::onnx::exporting
