// train/model_state.h - what a Model holds.
#pragma once

#include <optional>

#include <tenon/model.h>

#include "exec/context_state.h"
#include "train/builder.h"

namespace tenon {

struct Model::State {
  ModelDefinition definition;
  std::optional<Context> context;
  CompileOptions compiled;
  std::shared_ptr<ParameterStore> parameters;
  std::optional<Shape> sample;  ///< known once parameters exist
  std::vector<train::ParameterSpec> specs;
  std::vector<LayerSummary> layers;
  exec::ProgramCache programs{16};  ///< by phase and batch shape
  Program* last_train = nullptr;    ///< of the last training step, and what it was for
  Shape last_x, last_y;
  DType last_x_dtype = DType::none, last_y_dtype = DType::none;
  std::int64_t step = 0;
  std::int64_t epochs_done = 0;
  Logs batch_logs;  ///< of the last batch: loss, then metrics
  // What changes each step, as inputs of the program: a captured plan may be replayed unchanged.
  Tensor key = Tensor::zeros(DType::u64, {2});
  Tensor learning_rate = Tensor::zeros(DType::f64, {});
  Tensor step_number = Tensor::zeros(DType::i64, {});

  const Context& need_context() const;
  train::Forward forward(Graph& graph, const Shape& x_shape, DType x_dtype, bool training) const;
  void make_state();
  Program& train_program(const Shape& x, DType x_dtype, const Shape& y, DType y_dtype);
  Program& evaluate_program(const Shape& x, DType x_dtype, const Shape& y, DType y_dtype);
  Program& predict_program(const Shape& x, DType x_dtype);
};

}  // namespace tenon
