// SPDX-License-Identifier: Apache-2.0
// The C API's texts: attributes of any op as JSON, and options of arrays.
#include <tenon/attributes.h>
#include <tenon/graph.h>
#include <tenon/runtime.h>

#include <string>

#include "fuzz.h"

namespace {

const char* const ops[] = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) #name,
#include <tenon/ops.def>
#undef TENON_OP
};

/// True for success. A failure has a status and a message.
bool succeeds(TenonError* error) {
  if (error == nullptr) return true;
  tenon::fuzz::demand(tenon_error_status(error) != TENON_OK && tenon_error_message(error)[0] != '\0', "a failure says why");
  tenon_release(error);
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::fuzz;
  Bytes bytes(data, size);
  const char* const op = ops[bytes.take<std::uint8_t>() % std::size(ops)];
  const std::uint64_t count = bytes.below(4);
  const std::string text(reinterpret_cast<const char*>(bytes.rest().data()), bytes.rest().size());
  TenonGraph* graph = nullptr;
  demand(succeeds(tenon_graph_create(&graph)), "a graph can be made");
  const std::int64_t shape[] = {2, 3};
  TenonValue inputs[3] = {}, results[16] = {};
  const tenon_dtype dtypes[] = {TENON_DTYPE_F32, TENON_DTYPE_F32, TENON_DTYPE_I64};
  for (std::uint32_t i = 0; i < 3; ++i)
    demand(succeeds(tenon_graph_input(graph, std::string(1, static_cast<char>('a' + i)).c_str(), dtypes[i], 2, shape, &inputs[i])),
           "an input can be made");
  std::uint64_t made = 0;
  if (succeeds(tenon_graph_apply_named(graph, op, text.c_str(), inputs, count, results, 16, &made))) {
    for (std::uint64_t i = 0; i < made && i < 16; ++i) {
      TenonValueInfo info{};
      info.struct_size = sizeof info;
      demand(succeeds(tenon_graph_value_info(graph, results[i], &info)), "a result is a value of the graph");
    }
  }
  TenonTensor* x = nullptr;
  demand(succeeds(tenon_tensor_full(nullptr, TENON_DTYPE_F32, 2, shape, 1, &x)), "a tensor can be made");
  TenonData* arrays = nullptr;
  succeeds(tenon_data_arrays(nullptr, &x, 1, nullptr, &x, 1, nullptr, text.c_str(), &arrays));
  tenon_release(arrays);
  tenon_release(x);
  tenon_release(graph);
  demand(tenon_object_count() == 0, "no object is left");
  return 0;
}
