// SPDX-License-Identifier: Apache-2.0
// tenon/tenon.h - the C++ API.
#pragma once

#include <tenon/api.h>
#include <tenon/attributes.h>
#include <tenon/blas.h>
#include <tenon/callbacks.h>
#include <tenon/compiled_function.h>
#include <tenon/config.h>
#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/decoder.h>
#include <tenon/definition.h>
#include <tenon/device_name.h>
#include <tenon/dlpack.h>
#include <tenon/dtype.h>
#include <tenon/elementwise_functions.h>
#include <tenon/error.h>
#include <tenon/functions.h>
#include <tenon/gradcheck.h>
#include <tenon/graph.h>
#include <tenon/layers.h>
#include <tenon/load_report.h>
#include <tenon/model.h>
#include <tenon/npy.h>
#include <tenon/predictor.h>
#include <tenon/program.h>
#include <tenon/recurrent.h>
#include <tenon/safetensors.h>
#include <tenon/shape.h>
#include <tenon/stream.h>
#include <tenon/tensor.h>
#include <tenon/tensor_functions.h>
#include <tenon/trace.h>
#include <tenon/train_definition.h>
#include <tenon/training_run.h>
#include <tenon/weights.h>
