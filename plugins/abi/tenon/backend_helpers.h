/* SPDX-License-Identifier: Apache-2.0 */
/* tenon/backend_helpers.h - small functions that every backend in plain C needs. They are no part of the ABI: everything
 * here is compiled into the plugin that includes it, and a backend may do without. */
#ifndef TENON_BACKEND_HELPERS_H
#define TENON_BACKEND_HELPERS_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tenon/backend.h>

#ifdef __GNUC__ /* a plugin need not use all of them, and the compiler checks what a format is given */
#define TENON_HELPER static __attribute__((unused))
#define TENON_HELPER_PRINTF static __attribute__((unused, format(printf, 3, 4)))
#else
#define TENON_HELPER static inline
#define TENON_HELPER_PRINTF static inline
#endif

/* Describes a failure in the caller's tenon_error, if there is one, and returns the status. */
TENON_HELPER_PRINTF tenon_status tenon_fail(tenon_error* error, tenon_status status, const char* format, ...) {
  va_list arguments;
  if (!error) return status;
  va_start(arguments, format);
  vsnprintf(error->text, error->text_capacity, format, arguments); /* writes nothing if the capacity is 0 */
  va_end(arguments);
  error->status = status;
  error->node_id = 0;
  return status;
}

/* The failure of plan_create for a node that `supports` refuses, for the same reason. */
TENON_HELPER tenon_status tenon_refuse_node(tenon_error* error, const tenon_node* node, const char* reason) {
  tenon_fail(error, TENON_UNSUPPORTED, "%s: %s", node->name ? node->name : "a node", reason);
  if (error) error->node_id = node->id;
  return TENON_UNSUPPORTED;
}

/* Fills the caller's struct from ours. Its struct_size, the first field, says how much of it the caller knows. */
TENON_HELPER void tenon_answer_with(void* out, const void* own, uint32_t own_size) {
  uint32_t size;
  memcpy(&size, out, sizeof size);
  if (size > own_size) size = own_size;
  memcpy(out, own, size);
  memcpy(out, &size, sizeof size);
}

/* Whether host and plugin have a version of the ABI in common; if not, a query returns TENON_INCOMPATIBLE. */
TENON_HELPER int tenon_versions_meet(const tenon_host_info* host, const tenon_backend_info* own) {
  return host->abi_major == own->abi_major && host->abi_minor_lowest <= own->abi_minor_highest &&
         own->abi_minor_lowest <= host->abi_minor_highest;
}

/* Elements of a graph's arrays, whose structs may grow: the stride says how far apart they are. */
TENON_HELPER const tenon_value* tenon_value_at(const tenon_graph* graph, uint32_t index) {
  return (const tenon_value*)((const char*)graph->values + (uint64_t)index * graph->value_stride);
}
TENON_HELPER const tenon_node* tenon_node_at(const tenon_graph* graph, uint32_t index) {
  return (const tenon_node*)((const char*)graph->nodes + (uint64_t)index * graph->node_stride);
}

/* Writes the answer of node `index`: of `own` as much as fits the caller's stride. */
TENON_HELPER void tenon_set_answer(tenon_answer* out_answers, uint32_t answer_stride, uint32_t index, const tenon_answer* own) {
  memcpy((char*)out_answers + (uint64_t)index * answer_stride, own, answer_stride < sizeof *own ? answer_stride : sizeof *own);
}

/* The bits of `needs` that touch a node: its own, its values', the graph's and the options'. A backend that knows none of them
 * refuses the node, for TENON_REASON_NEEDS, if one is set. */
TENON_HELPER uint32_t tenon_unknown_needs(const tenon_graph* graph, const tenon_plan_options* options, const tenon_node* node) {
  uint32_t needs = graph->needs | node->needs | (options ? options->needs : 0);
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    const uint32_t index = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    if (index < graph->value_count) needs |= tenon_value_at(graph, index)->needs;
  }
  return needs;
}

/* Bytes of a node's attributes, whose struct begins with its size. A struct of another size is not of the op's version. */
TENON_HELPER uint32_t tenon_attributes_size(const tenon_node* node) {
  uint32_t size;
  memcpy(&size, node->attributes, sizeof size);
  return size;
}

/* The name of an op in ops.def, for messages. */
TENON_HELPER const char* tenon_op_name(tenon_op op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  if (op == (id)) return #name;
#include <tenon/ops.def>
#undef TENON_OP
  return "unknown";
}

/* -1: an invalid rank or size, or more elements than 64 bits can address. */
TENON_HELPER int64_t tenon_element_count(const tenon_tensor_desc* desc) {
  int64_t count = 1;
  if (desc->rank > TENON_MAX_RANK) return -1;
  for (uint32_t i = 0; i < desc->rank; ++i) {
    const int64_t size = desc->shape[i];
    if (size < 0 || (size > 0 && count > INT64_MAX / 8 / size)) return -1;
    count *= size;
  }
  return count;
}

/* Whether the elements follow each other in row-major order, without gaps. The description is valid. */
TENON_HELPER int tenon_is_dense(const tenon_tensor_desc* desc) {
  int64_t expected = 1;
  if (!desc->strides) return 1;
  for (uint32_t i = desc->rank; i-- > 0; expected *= desc->shape[i])
    if (desc->shape[i] != 1 && desc->strides[i] != expected) return tenon_element_count(desc) == 0;
  return 1;
}

#endif
