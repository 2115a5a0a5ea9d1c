// SPDX-License-Identifier: Apache-2.0
// Execution of plans of the emulated cuDNN: plain loops with f64 sums over operands that are rounded as the engine's notes say.
#include <control.h>
#include <numbers.h>
#include <cstdlib>
#include <string>

#include <algorithm>
#include <atomic>
#include <map>

#include "attention.h"

namespace tenon::emulation {
namespace {

cudaDataType type_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
      return CUDA_R_16BF;
    case CUDNN_DATA_FLOAT:
      return CUDA_R_32F;
    default:
      return CUDA_R_64F;
  }
}

struct Placed {
  Tensor tensor;
  void* data = nullptr;

  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    const auto index = [&](int d, std::int64_t i) { return tensor.dimensions[d] == 1 ? 0 : i * tensor.strides[d]; };
    return index(0, n) + index(1, c) + index(2, h) + index(3, w);
  }
  double load(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return emulation::load(type_of(tensor.type), data, at(n, c, h, w));
  }
};

struct Work {
  Convolution convolution;
  Placed x, w, y, made;
  std::vector<Placed> addends;
  bool on_tensor_cores = false, narrow_sums = false;
  std::int64_t first_term = 0;  ///< where a nondeterministic sum begins

  double factor(double value, const Tensor& of) const {
    return on_tensor_cores && of.type == CUDNN_DATA_FLOAT ? rounded(value, 10, -126) : value;
  }
  void add(double& sum, double term) const {
    sum += term;
    if (narrow_sums) sum = rounded(sum, 10, -14);
  }
  void store(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t width, double value) const {
    for (const Placed& addend : addends) value += addend.load(n, c, h, width);
    emulation::store(type_of(made.tensor.type), made.data, made.at(n, c, h, width), value);
  }
  /// body(row, column) for each image element that result (p, q) reads at (r, s) of the filter.
  template <class Body>
  void at_window(std::int64_t p, std::int64_t q, std::int64_t r, std::int64_t s, const Body& body) const {
    const Convolution& c = convolution;
    const std::int64_t row = p * c.strides[0] + r * c.dilations[0] - c.before[0],
                       column = q * c.strides[1] + s * c.dilations[1] - c.before[1];
    if (row >= 0 && row < c.x.dimensions[2] && column >= 0 && column < c.x.dimensions[3]) body(row, column);
  }

  void run() const {
    const std::int64_t *dx = convolution.x.dimensions, *dw = convolution.w.dimensions, *dy = convolution.y.dimensions;
    const std::int64_t depth = dw[1], filters = dw[0] / convolution.groups();
    switch (convolution.operation) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        for (std::int64_t n = 0; n < dy[0]; ++n)
          for (std::int64_t k = 0; k < dy[1]; ++k)
            for (std::int64_t p = 0; p < dy[2]; ++p)
              for (std::int64_t q = 0; q < dy[3]; ++q) {
                double sum = 0;
                for (std::int64_t r = 0; r < dw[2]; ++r)
                  for (std::int64_t s = 0; s < dw[3]; ++s)
                    at_window(p, q, r, s, [&](std::int64_t row, std::int64_t column) {
                      for (std::int64_t c = 0; c < depth; ++c)
                        add(sum, factor(x.load(n, k / filters * depth + c, row, column), x.tensor) * factor(w.load(k, c, r, s), w.tensor));
                    });
                store(n, k, p, q, sum);
              }
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: {
        const std::int64_t area = dx[2] * dx[3];
        std::vector<double> sums(static_cast<std::size_t>(area));
        for (std::int64_t n = 0; n < dx[0]; ++n)
          for (std::int64_t c = 0; c < dx[1]; ++c) {
            std::fill(sums.begin(), sums.end(), 0.0);
            for (std::int64_t i = 0; i < filters; ++i) {
              const std::int64_t k = c / depth * filters + (i + first_term) % filters;
              for (std::int64_t p = 0; p < dy[2]; ++p)
                for (std::int64_t q = 0; q < dy[3]; ++q) {
                  const double of_y = factor(y.load(n, k, p, q), y.tensor);
                  for (std::int64_t r = 0; r < dw[2]; ++r)
                    for (std::int64_t s = 0; s < dw[3]; ++s)
                      at_window(p, q, r, s, [&](std::int64_t row, std::int64_t column) {
                        add(sums[static_cast<std::size_t>(row * dx[3] + column)], of_y * factor(w.load(k, c % depth, r, s), w.tensor));
                      });
                }
            }
            for (std::int64_t e = 0; e < area; ++e) store(n, c, e / dx[3], e % dx[3], sums[static_cast<std::size_t>(e)]);
          }
        break;
      }
      default:
        for (std::int64_t k = 0; k < dw[0]; ++k)
          for (std::int64_t c = 0; c < depth; ++c)
            for (std::int64_t r = 0; r < dw[2]; ++r)
              for (std::int64_t s = 0; s < dw[3]; ++s) {
                double sum = 0;
                for (std::int64_t i = 0; i < dy[0]; ++i) {
                  const std::int64_t n = (i + first_term) % dy[0];
                  for (std::int64_t p = 0; p < dy[2]; ++p)
                    for (std::int64_t q = 0; q < dy[3]; ++q)
                      at_window(p, q, r, s, [&](std::int64_t row, std::int64_t column) {
                        add(sum, factor(x.load(n, k / filters * depth + c, row, column), x.tensor) * factor(y.load(n, k, p, q), y.tensor));
                      });
                }
                store(k, c, r, s, sum);
              }
        break;
    }
  }
};

bool has_note(const Object& engine, cudnnBackendNumericalNote_t note) {
  for (std::int64_t i = 0; i < engine.count(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE); ++i) {
    if (engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, static_cast<std::size_t>(i)) == note) return true;
  }
  return false;
}

/// Attention: its pointers are read now, scalars with their values, and the operations run in the stream.
cudnnStatus_t execute_attention(cudaStream_t stream, const ObjectPointer& plan, const Object& graph, const Object& pack) {
  std::map<std::int64_t, const Object*> tensors;
  for (const ObjectPointer& operation : graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects) {
    for (const auto& [name, values] : operation->values) {
      for (const ObjectPointer& object : values.objects) {
        if (object->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) tensors[tensor_of(*object).id] = object.get();
      }
    }
  }
  std::vector<TensorPointer> pointers;
  for (std::int64_t i = 0; i < pack.count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS); ++i) {
    const auto at = static_cast<std::size_t>(i);
    TensorPointer pointer{pack.get<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, at),
                          pack.get<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, at), 0};
    const auto found = tensors.find(pointer.id);
    if (found == tensors.end()) return fail(CUDNN_STATUS_BAD_PARAM, "a pointer of no tensor of the graph");
    const Tensor tensor = tensor_of(*found->second);
    if (pointer.data == nullptr) return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a tensor has no pointer");
    if (found->second->get_or<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false)) {
      pointer.value = static_cast<double>(*static_cast<const float*>(pointer.data));
    } else if (reinterpret_cast<std::uintptr_t>(pointer.data) % static_cast<std::uintptr_t>(tensor.alignment) != 0) {
      return fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "a pointer is misaligned");
    }
    pointers.push_back(pointer);
  }
  for (const auto& [id, object] : tensors) {
    const auto is_it = [id = id](const TensorPointer& pointer) { return pointer.id == id; };
    if (!tensor_of(*object).is_virtual && std::none_of(pointers.begin(), pointers.end(), is_it)) {
      return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a tensor has no pointer");
    }
  }
  const auto workspace_bytes = plan->get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  auto* const workspace = static_cast<unsigned char*>(pack.get_or<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr));
  if (workspace_bytes > 0 && workspace == nullptr) return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace");
  const auto run = [plan, &graph, pointers, workspace, workspace_bytes] {  // the plan keeps the graph
    std::fill(workspace, workspace + workspace_bytes, static_cast<unsigned char>(0xA5));
    run_operations(graph, pointers);
  };
  return enqueue(stream, run) == cudaSuccess ? CUDNN_STATUS_SUCCESS : fail(CUDNN_STATUS_EXECUTION_FAILED, "the work was rejected");
}

}  // namespace

/// TENON_CUDNN_EMULATION_FAILING="28,61": engines whose plans are created but fail to run.
static bool fails_on_demand(std::int64_t engine) {
  const char* const list = std::getenv("TENON_CUDNN_EMULATION_FAILING");
  return list != nullptr && ("," + std::string(list) + ",").find("," + std::to_string(engine) + ",") != std::string::npos;
}

cudnnStatus_t execute(cudaStream_t stream, const ObjectPointer& plan, const Object& pack) {
  const Object& engine = plan->object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).object(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Object& graph = engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (refusal_of_attention(graph) == nullptr) return execute_attention(stream, plan, graph, pack);
  Work work;
  read(graph, work.convolution);
  const char* wrong = fails_on_demand(engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) ? "on demand" : nullptr;
  const auto place = [&](const Tensor& tensor) {
    Placed placed{tensor};
    if (tensor.is_virtual) return placed;
    for (std::int64_t i = 0; i < pack.count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (pack.get<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, at) != tensor.id) continue;
      placed.data = pack.get<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, at);
    }
    if (placed.data == nullptr) wrong = "a tensor has no pointer";
    if (reinterpret_cast<std::uintptr_t>(placed.data) % static_cast<std::uintptr_t>(tensor.alignment) != 0)
      wrong = "a pointer is misaligned";
    return placed;
  };
  work.x = place(work.convolution.x);
  work.w = place(work.convolution.w);
  work.y = place(work.convolution.y);
  work.made = place(work.convolution.made);
  for (const Tensor& addend : work.convolution.addends) work.addends.push_back(place(addend));
  if (wrong != nullptr) return fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, wrong);
  work.on_tensor_cores = has_note(engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  work.narrow_sums = has_note(engine, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  if (has_note(engine, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) {
    static std::atomic<std::int64_t> runs = 0;
    work.first_term = ++runs;
  }
  const auto workspace_bytes = plan->get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  auto* const workspace = static_cast<unsigned char*>(pack.get_or<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr));
  if (workspace_bytes > 0 && workspace == nullptr) return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace");
  const auto run = [work, workspace, workspace_bytes] {
    std::fill(workspace, workspace + workspace_bytes, static_cast<unsigned char>(0xA5));  // an engine may write anything there
    work.run();
  };
  return enqueue(stream, run) == cudaSuccess ? CUDNN_STATUS_SUCCESS : fail(CUDNN_STATUS_EXECUTION_FAILED, "the work was rejected");
}

}  // namespace tenon::emulation
