// SPDX-License-Identifier: Apache-2.0
// boundary_plans.cpp - the slots for plans, their profiles, and operands that are packed before plans are made.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "boundary.h"
#include "guarded.h"
#include "handles.h"
#include "packed.h"
#include "plan.h"

struct tenon_plan {
  std::unique_ptr<tenon::sdk::Plan> plan;
};

namespace tenon::sdk {
namespace {

// The size of an answer in the first header.
constexpr std::uint32_t answer_size_v1 = offsetof(tenon_answer, text) + sizeof(tenon_answer::text);

tenon_status supports(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* given, tenon_answer* out_answers,
                      std::uint32_t answer_stride, tenon_error* error) {
  return guarded(error, [&] {
    GraphModel model = GraphModel::read(*graph, sent(given), self->rows);
    if (!model.nodes.empty() && (out_answers == nullptr || answer_stride < answer_size_v1)) {
      throw Error(TENON_INVALID_ARGUMENT, "supports: expected answers of at least " + std::to_string(answer_size_v1) + " bytes, got " +
                                              std::to_string(out_answers == nullptr ? 0 : answer_stride));
    }
    model.host = self->device->host;
    model.device = self->device.get();
    if (const ElementwiseFusion* fusion = self->device->elementwise_fusion()) model.fusion = fusion;
    auto* out = reinterpret_cast<char*>(out_answers);
    for (const tenon_answer& answer : answer_all(model, self->rows)) {
      std::memcpy(out, &answer, std::min<std::size_t>(answer_stride, sizeof answer));
      out += answer_stride;
    }
  });
}

tenon_status plan_create(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                         tenon_error* error) {
  return guarded(error, [&] {
    const Span span(self->device->host, "plan_create");
    auto plan = std::make_unique<tenon_plan>();
    plan->plan = std::make_unique<Plan>(*self->device, self->memory_stats, *graph, sent(options), self->rows);
    *out_plan = plan.release();
  });
}
void plan_destroy(tenon_plan* plan) {
  guarded(nullptr, [&] { plan->plan.reset(); });
  delete plan;
}
tenon_status plan_info(tenon_plan* plan, tenon_plan_info* out_info, tenon_error* error) {
  return guarded(error, [&] { hand_over(plan->plan->info(), out_info); });
}
tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                          tenon_error* error) {
  std::uint64_t node_id = 0;
  const tenon_status status = guarded(error, [&] {
    plan->plan->execute(*bindings, workspace, stream, &node_id);
    stream->stream->flush();
  });
  if (status != TENON_OK && error != nullptr) error->node_id = node_id;
  return status;
}

tenon_status profile_read(tenon_plan* plan, std::uint64_t execution_id, tenon_profile_record* out_records, std::uint32_t record_stride,
                          std::uint32_t capacity, std::uint32_t* out_count, tenon_error* error) {
  return guarded(error, [&] { *out_count = plan->plan->read_profile(execution_id, out_records, record_stride, capacity); });
}
constexpr tenon_profile_table profile_table{sizeof(tenon_profile_table), Profile::kept, profile_read};

// ---------------------------------------------------------------- packed operands

tenon_status pack_describe(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* options, tenon_packing* out_packings,
                           std::uint32_t packing_stride, tenon_error* error) {
  return guarded(error, [&] { describe_packings(*self->device, *graph, sent(options), self->rows, out_packings, packing_stride); });
}
tenon_status pack_create(tenon_device* self, const tenon_graph* graph, const tenon_plan_options* options, const std::uint32_t* values,
                         std::uint32_t value_count, tenon_packed** out_packed, tenon_error* error) {
  return guarded(error, [&] {
    std::vector<std::unique_ptr<tenon_packed>> handles;
    for (auto& packed : make_packed(*self->device, self->memory_stats, *graph, sent(options), self->rows, {values, value_count})) {
      handles.push_back(std::make_unique<tenon_packed>(tenon_packed{std::move(packed)}));
    }
    for (std::uint32_t i = 0; i < value_count; ++i) out_packed[i] = handles[i].release();
  });
}
void pack_destroy(tenon_packed* packed) {
  guarded(nullptr, [&] { packed->packed.reset(); });
  delete packed;
}
constexpr tenon_pack_table pack_table{sizeof(tenon_pack_table), 0, pack_describe, pack_create, pack_destroy};

}  // namespace

void add_plan_slots(tenon_backend_table& table, const KernelRow* rows) {
  table.supports = supports;
  table.plan_create = plan_create;
  table.plan_destroy = plan_destroy;
  table.plan_info = plan_info;
  table.plan_execute = plan_execute;
  table.profile = &profile_table;
  for (const KernelRow* row = rows; row->kernel != nullptr; ++row) {
    if (row->kernel->traits.pack_form != nullptr) table.pack = &pack_table;
  }
}

}  // namespace tenon::sdk
