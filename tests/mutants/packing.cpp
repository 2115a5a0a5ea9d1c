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

tenon_status describe(tenon_device*, const tenon_graph* caller, const tenon_plan_options* options, tenon_packing* out_packings,
                      std::uint32_t packing_stride, tenon_error* error) {
  if ((caller->needs | options->needs) != 0) return say(error, TENON_UNSUPPORTED, "expected no bits in `needs`");
  if (is(Mutation::packs_by_its_own_size)) packing_stride = sizeof(tenon_packing);
  const Graph graph(*caller);
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const std::string key = key_of(graph, v);
    tenon_packing packing{};
    packing.size_bytes = key.empty() ? 0 : graph.values[v].size_bytes();
    std::snprintf(packing.key, sizeof packing.key, "%s", key.c_str());
    std::memcpy(reinterpret_cast<unsigned char*>(out_packings) + std::size_t{v} * packing_stride, &packing,
                std::min<std::size_t>(packing_stride, sizeof packing));
  }
  return TENON_OK;
}

tenon_status create(tenon_device*, const tenon_graph* caller, const tenon_plan_options* options, const std::uint32_t* values,
                    std::uint32_t value_count, tenon_packed** out_packed, tenon_error* error) {
  if ((caller->needs | options->needs) != 0) return say(error, TENON_UNSUPPORTED, "expected no bits in `needs`");
  const Graph graph(*caller);
  std::vector<std::shared_ptr<PackedCopy>> copies;
  for (std::uint32_t i = 0; i < value_count; ++i) {
    const std::string key = values[i] < graph.values.size() ? key_of(graph, values[i]) : std::string();
    if (key.empty()) {
      if (is(Mutation::packs_some_of_them) && i > 0) out_packed[0] = new tenon_packed{copies[0]};
      return say(error, TENON_INVALID_ARGUMENT, "the plan does not read this value packed");
    }
    const Graph::Value& weights = graph.values[values[i]];
    auto copy = std::make_shared<PackedCopy>();
    copy->key = key;
    copy->bytes.resize(weights.size_bytes());
    if (weights.abi.kind == TENON_VALUE_CONSTANT) std::memcpy(copy->bytes.data(), weights.abi.data, copy->bytes.size());
    copies.push_back(std::move(copy));
  }
  for (std::uint32_t i = 0; i < value_count; ++i) out_packed[i] = new tenon_packed{std::move(copies[i])};
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
         is(Mutation::any_packed_will_do) || is(Mutation::packs_by_its_own_size) || is(Mutation::packs_some_of_them);
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
