// SPDX-License-Identifier: Apache-2.0
#include "packed.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <tenon/sdk/error.h>
#include <tenon/sdk/rounding.h>

#include "operands.h"
#include "plan.h"

namespace tenon::sdk {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

bool is_donated(const GraphModel& graph, std::uint32_t value) {
  return std::any_of(graph.donations.begin(), graph.donations.end(), [value](const tenon_donation& d) { return d.input == value; });
}

/// Bytes of the packed copy of input i; 0: it is not packed.
std::uint64_t packed_size(const GraphModel& graph, const Node& node, std::uint32_t i, std::vector<Operand>& operands) {
  const Traits& traits = node.row->kernel->traits;
  const std::uint32_t v = node.inputs[i];
  if (traits.pack_size == nullptr || v == TENON_NO_INDEX || graph.values[v].count == 0) return 0;
  const std::uint32_t root = graph.values[v].root, kind = graph.values[root].kind;
  if (kind != TENON_VALUE_CONSTANT && kind != TENON_VALUE_PARAMETER) return 0;
  if (!traits.pack_donated && is_donated(graph, root)) return 0;
  return checked_size(traits.pack_size(describe(graph, node, operands), i), node, "packed operands");
}

std::string numbers(const std::int64_t* list, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text += (i == 0 ? "(" : ",") + std::to_string(list[i]);
  return text.empty() ? "()" : text + ")";
}

/// What the bytes of the packed copy depend on, besides those of the operand: "Conv-22 input 1 f32(64,3,7,7) direct, groups 1".
std::string form_of(const Node& node, const Call& call, std::uint32_t i) {
  const Operand& x = call.inputs[i];
  const std::string op = node.op < TENON_OP_VENDOR ? op_name(node.op) : "op " + std::to_string(node.op);
  std::string text =
      op + "-" + std::to_string(node.version) + " input " + std::to_string(i) + " " + name_of(x.dtype) + numbers(x.shape, x.rank);
  if (!x.dense) text += " strides " + numbers(x.strides, x.rank);
  return text + " " + node.row->kernel->traits.pack_form(call, i);
}

/// The text, its end replaced by a digest of the whole (FNV-1a) if it is longer than a key.
std::string as_key(std::string text) {
  constexpr std::size_t longest = sizeof(tenon_packing::key) - 1;
  if (text.size() <= longest) return text;
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char end[20];
  const int length = std::snprintf(end, sizeof end, "...%016llx", static_cast<unsigned long long>(digest));
  return text.replace(longest - static_cast<std::size_t>(length), std::string::npos, end);
}

/// Whether a kernel that shares what it packs reads the value or a view of it: cheap, to be asked about every value of a large graph.
bool may_be_shared(const GraphModel& graph, std::uint32_t value, const KernelRow* rows) {
  std::vector<bool> is_view(graph.values.size(), false);
  is_view[value] = true;
  for (const Node& node : graph.nodes) {
    const auto reads = [&](std::uint32_t v) { return v != TENON_NO_INDEX && is_view[v]; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), reads)) continue;
    const KernelRow* row = find_row(rows, node.op, node.version);
    if (row != nullptr && row->kernel->traits.pack_form != nullptr) return true;
    const Indexing indexing = indexing_of(node);
    if (indexing != Indexing::reshape && indexing != Indexing::transpose && indexing != Indexing::expand) continue;
    for (const std::uint32_t v : node.outputs) {
      if (v != TENON_NO_INDEX) is_view[v] = true;
    }
  }
  return false;
}

/// How an arranged graph reads one of its values packed.
struct Arranged {
  GraphModel graph;
  Packing packing;
};
Arranged shared_packing(const char* slot, Device& device, const tenon_graph& abi_graph, const tenon_plan_options& options,
                        std::uint32_t value, const KernelRow* rows) {
  if (value >= abi_graph.value_count) {
    throw Error(TENON_INVALID_ARGUMENT, std::string(slot) + ": expected the index of a value below " +
                                            std::to_string(abi_graph.value_count) + ", got " + std::to_string(value));
  }
  GraphModel graph = read_graph(slot, device, abi_graph, options);
  std::map<std::uint32_t, Packing> all;
  if (may_be_shared(graph, value, rows)) {
    arrange_supported(graph, rows);
    all = packings_of(graph);
  }
  const auto found = all.find(value);
  const std::string name = std::string(slot) + ": value " + std::to_string(value);
  if (found == all.end()) throw Error(TENON_UNSUPPORTED, name + ": the plan reads it as it is, or packs it for itself alone");
  if (!found->second.shareable) throw Error(TENON_UNSUPPORTED, name + ": one of the kernels that pack it does so for its own plan alone");
  return {std::move(graph), std::move(found->second)};
}

}  // namespace

std::map<std::uint32_t, Packing> packings_of(const GraphModel& graph) {
  struct Found {
    std::uint32_t node, input;
    std::string form;
  };
  struct Forms {
    std::vector<Found> reads;
    std::map<std::string, std::uint64_t> sizes;  ///< sorted, so that neither key nor offsets depend on the order of nodes
    bool shareable = true;
  };
  std::map<std::uint32_t, Forms> by_value;
  std::vector<Operand> operands;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const std::uint64_t size = packed_size(graph, node, i, operands);
      if (size == 0) continue;
      Forms& forms = by_value[graph.values[node.inputs[i]].root];
      const bool is_named = node.row->kernel->traits.pack_form != nullptr;
      std::string form =
          is_named ? form_of(node, describe(graph, node, operands), i) : "node " + std::to_string(n) + " input " + std::to_string(i);
      forms.shareable = forms.shareable && is_named;
      forms.sizes.emplace(form, size);
      forms.reads.push_back({n, i, std::move(form)});
    }
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(block_alignment, graph.device->operand_alignment_bytes);
  std::map<std::uint32_t, Packing> packings;
  for (const auto& [value, forms] : by_value) {
    Packing& packing = packings[value];
    packing.shareable = forms.shareable;
    std::map<std::string, std::uint64_t> offsets;
    std::string names;
    for (const auto& [form, size] : forms.sizes) {
      offsets[form] = aligned_size(packing.size_bytes, alignment);
      packing.size_bytes = offsets[form] + size;
      names += (names.empty() ? "" : "; ") + form;
    }
    packing.key = as_key((graph.values[value].kind == TENON_VALUE_CONSTANT ? "constant: " : "parameter: ") + names);
    for (const Found& read : forms.reads) {
      packing.reads.push_back({read.node, read.input, offsets[read.form]});
      const auto same_copy = [&](const Packing::Read& copy) { return copy.offset == offsets[read.form]; };
      if (std::none_of(packing.copies.begin(), packing.copies.end(), same_copy)) packing.copies.push_back(packing.reads.back());
    }
  }
  return packings;
}

Packed::Packed(Device& device, MemoryStats& memory_stats, const Packing& packing)
    : device_(device), key_(packing.key), blocks_(device, memory_stats), address_(blocks_.allocate(packing.size_bytes)) {
  if (!device.inline_streams) packed_ = device.make_event();
}

Packed::Packed(Device& device, MemoryStats& memory_stats, const Packing& packing, const GraphModel& graph, const Value& constant)
    : device_(device), key_(packing.key), blocks_(device, memory_stats), address_(blocks_.allocate(packing.size_bytes)) {
  DeviceBlocks plain(device, memory_stats);
  tenon_stream stream;
  stream.stream = device.make_stream();
  void* const bytes = pointer(upload(plain, device, constant.data, constant.size_bytes(), *stream.stream));
  std::vector<Operand> operands;
  for (const Packing::Read& copy : packing.copies) {
    const Node& node = graph.nodes[copy.node];
    Call call = describe(graph, node, operands);
    call.stream = &stream;
    operands[copy.input].data = bytes;
    node.row->kernel->traits.pack(call, copy.input, pointer(address_ + copy.offset));
  }
  stream.stream->synchronize();
}

void Packed::wait_on(tenon_stream& stream) {
  if (packed_ == nullptr || stream_id_ == stream.id || stream.recording) return;
  const std::lock_guard lock(event_mutex_);
  packed_->wait(*stream.stream);
}

tenon_packing describe_packing(Device& device, const tenon_graph& graph, const tenon_plan_options& options, std::uint32_t value,
                               const KernelRow* rows) {
  const Packing packing = shared_packing("pack describe", device, graph, options, value, rows).packing;
  tenon_packing result{};
  result.size_bytes = packing.size_bytes;
  std::snprintf(result.key, sizeof result.key, "%s", packing.key.c_str());
  return result;
}

std::shared_ptr<Packed> make_packed(Device& device, MemoryStats& memory_stats, const tenon_graph& abi_graph,
                                    const tenon_plan_options& options, std::uint32_t value, const KernelRow* rows) {
  const Arranged arranged = shared_packing("pack create", device, abi_graph, options, value, rows);
  const Value& packed = arranged.graph.values[value];
  return packed.kind == TENON_VALUE_CONSTANT ? std::make_shared<Packed>(device, memory_stats, arranged.packing, arranged.graph, packed)
                                             : std::make_shared<Packed>(device, memory_stats, arranged.packing);
}

}  // namespace tenon::sdk
