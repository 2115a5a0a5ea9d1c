// SPDX-License-Identifier: Apache-2.0
// Packed operands: the weights of a product, of which a copy is all that packing does. Plans that share it read the copy.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>

#include "mutant.h"

namespace tenon::mutants {

struct PackedCopy {
  std::string key;
  std::vector<unsigned char> bytes;
  std::mutex mutex;  ///< guards all below, and the bytes of a parameter while a plan reads them
  bool is_packed = false;
  std::uint64_t epoch = 0;
  bool is_gone = false;  ///< the defect: its memory is used for something else
};

}  // namespace tenon::mutants

struct tenon_packed {
  std::shared_ptr<tenon::mutants::PackedCopy> copy;
};

namespace tenon::mutants {
namespace {

/// "parameter 3(8,6)"; empty for a value that plans read as it is.
std::string key_of(const Graph& graph, std::uint32_t v) {
  const Graph::Value& value = graph.values[v];
  const bool is_constant = value.abi.kind == TENON_VALUE_CONSTANT;
  const bool is_read = !graph.nodes.empty() && graph.nodes[0].abi.op == TENON_OP_MatMul && graph.nodes[0].inputs[1] == v;
  if (!is_read || !value.is_dense() || (!is_constant && value.abi.kind != TENON_VALUE_PARAMETER)) return {};
  std::string key = (is_constant ? "constant " : "parameter ") + std::to_string(value.abi.desc.dtype);
  for (std::size_t d = 0; d < value.shape.size(); ++d) key += (d == 0 ? "(" : ",") + std::to_string(value.shape[d]);
  return key + ")";
}

tenon_status find(const tenon_graph* caller, const tenon_plan_options* options, std::uint32_t value, Graph& out_graph, std::string& out_key,
                  tenon_error* error) {
  if (value >= caller->value_count || !Graph::can_copy(*caller)) return say(error, TENON_INVALID_ARGUMENT, "there is no such value");
  if ((caller->needs | options->needs) != 0) return say(error, TENON_UNSUPPORTED, "expected no bits in `needs`");
  out_graph = Graph(*caller);
  out_key = key_of(out_graph, value);
  return out_key.empty() ? say(error, TENON_UNSUPPORTED, "the plan reads this value as it is") : tenon_status{TENON_OK};
}

tenon_status describe(tenon_device*, const tenon_graph* caller, const tenon_plan_options* options, std::uint32_t value,
                      tenon_packing* out_packing, tenon_error* error) {
  Graph graph;
  std::string key;
  if (const tenon_status status = find(caller, options, value, graph, key, error); status != TENON_OK) return status;
  tenon_packing packing{};
  packing.size_bytes = graph.values[value].size_bytes();
  std::snprintf(packing.key, sizeof packing.key, "%s", key.c_str());
  packing.struct_size = std::min<std::uint32_t>(out_packing->struct_size, sizeof packing);
  std::memcpy(static_cast<void*>(out_packing), &packing, packing.struct_size);
  return TENON_OK;
}

tenon_status create(tenon_device*, const tenon_graph* caller, const tenon_plan_options* options, std::uint32_t value,
                    tenon_packed** out_packed, tenon_error* error) {
  Graph graph;
  std::string key;
  if (const tenon_status status = find(caller, options, value, graph, key, error); status != TENON_OK) return status;
  const Graph::Value& weights = graph.values[value];
  auto copy = std::make_shared<PackedCopy>();
  copy->key = key;
  copy->bytes.resize(weights.size_bytes());
  if (weights.abi.kind == TENON_VALUE_CONSTANT) std::memcpy(copy->bytes.data(), weights.abi.data, copy->bytes.size());
  *out_packed = new tenon_packed{std::move(copy)};
  return TENON_OK;
}

void destroy(tenon_packed* packed) {
  if (is(Mutation::frees_packed_too_early)) {
    const std::lock_guard lock(packed->copy->mutex);
    packed->copy->is_gone = true;
  }
  delete packed;
}

}  // namespace

bool shares_packed() {
  return is(Mutation::unmodified_packing) || is(Mutation::frees_packed_too_early) || is(Mutation::packs_only_once) ||
         is(Mutation::any_packed_will_do);
}

void spoil_packing(tenon_backend_table& table) {
  static constexpr tenon_pack_table pack{sizeof(tenon_pack_table), 0, describe, create, destroy};
  if (shares_packed()) table.pack = &pack;
}

void read_packed_constants(Graph& graph) {
  for (Graph::Value& value : graph.values) {
    if (value.abi.packed != nullptr && value.abi.kind == TENON_VALUE_CONSTANT) value.abi.data = value.abi.packed->copy->bytes.data();
    value.abi.packed = nullptr;
  }
}

tenon_status take_packed(const Graph& graph, Plan& plan, tenon_error* error) {
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const tenon_value& value = graph.values[v].abi;
    if (value.packed == nullptr) continue;
    const std::shared_ptr<PackedCopy>& copy = value.packed->copy;
    if (const std::string key = key_of(graph, v); copy->key != key && !is(Mutation::any_packed_will_do)) {
      return say(error, TENON_INVALID_ARGUMENT, ("expected one packed as '" + key + "', got '" + copy->key + "'").c_str());
    }
    plan.packed = copy;
    plan.packed_binding = value.binding;
  }
  return TENON_OK;
}

std::uint64_t packed_constant_bytes(const Plan& plan) {
  return plan.packed != nullptr && plan.packed_binding == TENON_NO_INDEX ? plan.packed->bytes.size() : 0;
}

std::unique_lock<std::mutex> read_packed(Plan& plan, std::uint64_t epoch, std::vector<std::uint64_t>& addresses) {
  if (plan.packed == nullptr || plan.packed_binding == TENON_NO_INDEX) return {};
  PackedCopy& copy = *plan.packed;
  std::unique_lock lock(copy.mutex);
  std::uint64_t& address = addresses[plan.packed_binding];
  if (!copy.is_packed || (copy.epoch != epoch && !is(Mutation::packs_only_once))) {
    std::memcpy(copy.bytes.data(), bytes_at(address), copy.bytes.size());
    copy.is_packed = true;
    copy.epoch = epoch;
  }
  if (copy.is_gone) std::fill(copy.bytes.begin(), copy.bytes.end(), static_cast<unsigned char>(0));
  address = reinterpret_cast<std::uintptr_t>(copy.bytes.data());
  return lock;
}

}  // namespace tenon::mutants
