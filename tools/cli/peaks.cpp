// SPDX-License-Identifier: Apache-2.0
#include "cli/peaks.h"

#include <fmt/format.h>

#include <iterator>

#include <tenon/error.h>

namespace tenon::cli {
namespace {

// `tenon_cuda_roofs`, a part of the bundle for GPU machines, measures it as kernel_in_graph_us; no machine has run that yet.
constexpr double estimated_launch_us = 1;

// Without sparsity; 16 and 8 bits by tensor cores, f32 and f64 without them.
const Peaks known[] = {
    {"a100",
     "NVIDIA A100 80GB SXM, data sheet of 2021",
     {{DType::f64, 9.7e3}, {DType::f32, 19.5e3}, {DType::bf16, 312e3}, {DType::f16, 312e3}, {DType::i8, 624e3}},
     2039,
     estimated_launch_us},
    {"h100",
     "NVIDIA H100 SXM, data sheet of 2023",
     {{DType::f64, 34e3}, {DType::f32, 67e3}, {DType::bf16, 989.5e3}, {DType::f16, 989.5e3}, {DType::i8, 1979e3}},
     3350,
     estimated_launch_us},
    {"h200",
     "NVIDIA H200 SXM, data sheet of 2024",
     {{DType::f64, 34e3}, {DType::f32, 67e3}, {DType::bf16, 989.5e3}, {DType::f16, 989.5e3}, {DType::i8, 1979e3}},
     4800,
     estimated_launch_us},
};

}  // namespace

const Peaks& peaks_of(const std::string& name) {
  for (const Peaks& peaks : known) {
    if (peaks.name == name) return peaks;
  }
  throw Error(fmt::format("--peaks {}: expected {}", name, names_of_peaks()));
}

std::string names_of_peaks() {
  std::string text;
  for (std::size_t i = 0; i < std::size(known); ++i) {
    text += i == 0 ? "" : i + 1 < std::size(known) ? ", " : " or ";
    text += known[i].name;
  }
  return text;
}

}  // namespace tenon::cli
