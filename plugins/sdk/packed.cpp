// SPDX-License-Identifier: Apache-2.0
#include "packed.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include <tenon/sdk/error.h>
#include <tenon/sdk/rounding.h>

#include "address.h"
#include "plan.h"

namespace tenon::sdk {
namespace {

bool is_donated(const GraphModel& graph, std::uint32_t value) {
  return std::any_of(graph.donations.begin(), graph.donations.end(), [value](const tenon_donation& d) { return d.input == value; });
}

std::string numbers(const std::int64_t* list, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text += (i == 0 ? "(" : ",") + std::to_string(list[i]);
  return text.empty() ? "()" : text + ")";
}

/// "f32(64,3,7,7)", "f32(3,4) strides (1,3)".
std::string layout_of(const Operand& x) {
  std::string text = name_of(x.dtype) + numbers(x.shape, x.rank);
  if (!x.dense) text += " strides " + numbers(x.strides, x.rank);
  return text;
}

/// " of f16(3,4)", of a conversion.
std::string source_of(const GraphModel& graph, const Node& conversion) {
  return " of " + layout_of(graph.values[conversion.inputs[0]].operand());
}

/// What the bytes of the packed copy depend on, besides those of the parameter or constant: "Conv-22 input 1 f32(64,3,7,7) direct, groups
/// 1", and with a conversion "MatMul-13 input 1 f32(3,4) of f16(3,4) panels".
std::string form_of(const GraphModel& graph, const Node& node, const Call& call, std::uint32_t i) {
  std::string text = op_name(node) + "-" + std::to_string(node.version) + " input " + std::to_string(i) + " " + layout_of(call.inputs[i]);
  if (const Node* const conversion = graph.conversion_of(node.inputs[i])) text += source_of(graph, *conversion);
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

// The size of a form in the first header.
constexpr std::uint32_t packing_size_v1 = offsetof(tenon_packing, key) + sizeof(tenon_packing::key);

/// Bytes of the packed copy of input i; 0: it is not packed.
std::uint64_t packed_size(const GraphModel& graph, const Node& node, std::uint32_t i, std::vector<Operand>& operands) {
  const Traits& traits = node.row->kernel->traits;
  const std::uint32_t v = node.inputs[i];
  if (traits.pack_size == nullptr || v == TENON_NO_INDEX || graph.values[v].count == 0) return 0;
  const std::uint32_t root = graph.packed_root(v), kind = graph.values[root].kind;
  if (kind != TENON_VALUE_CONSTANT && kind != TENON_VALUE_PARAMETER) return 0;
  if (!traits.pack_donated && is_donated(graph, root)) return 0;
  return checked_size(traits.pack_size(describe(graph, node, operands), i), node, "packed operands");
}

}  // namespace

std::map<std::uint32_t, Packing> packings_of(const GraphModel& graph) {
  struct Found {
    std::uint32_t node, input;
    std::string form;
  };
  struct Forms {
    std::vector<Found> reads;
    std::map<std::uint32_t, std::string> converted;  ///< values that kernels read as they are, with their forms
    std::map<std::string, std::uint64_t> sizes;      ///< sorted, so that neither key nor offsets depend on the order of nodes
    bool shareable = true;
  };
  std::map<std::uint32_t, Forms> by_value;
  std::vector<Operand> operands;
  const auto read_converted = [&](std::uint32_t v) {
    const Node* const conversion = v == TENON_NO_INDEX ? nullptr : graph.conversion_of(v);
    if (conversion == nullptr) return;
    const Value& value = graph.values[conversion->outputs[0]];
    Forms& forms = by_value[graph.packed_root(v)];
    const std::string form = layout_of(value.operand()) + source_of(graph, *conversion);
    forms.converted.emplace(conversion->outputs[0], form);
    forms.sizes.emplace(form, value.size_bytes());
  };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    node.for_each_epilogue_operand(read_converted);
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const std::uint64_t size = packed_size(graph, node, i, operands);
      if (size == 0) {
        read_converted(node.inputs[i]);
        continue;
      }
      Forms& forms = by_value[graph.packed_root(node.inputs[i])];
      const bool is_named = node.row->kernel->traits.pack_form != nullptr;
      std::string form =
          is_named ? form_of(graph, node, describe(graph, node, operands), i) : "node " + std::to_string(n) + " input " + std::to_string(i);
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
    for (const auto& [converted, form] : forms.converted) packing.converted.push_back({converted, offsets[form]});
    for (const Found& read : forms.reads) {
      packing.reads.push_back({read.node, read.input, offsets[read.form]});
      const auto same_copy = [&](const Packing::Read& copy) { return copy.offset == offsets[read.form]; };
      if (std::none_of(packing.copies.begin(), packing.copies.end(), same_copy)) packing.copies.push_back(packing.reads.back());
    }
  }
  return packings;
}

Packed::Packed(Device& device, MemoryStats& memory_stats, const Packing& packing, std::shared_ptr<SharedMutex> lock)
    : device_(device),
      key_(packing.key),
      blocks_(device, memory_stats),
      address_(blocks_.allocate(packing.size_bytes)),
      lock_(std::move(lock)) {
  if (!device.inline_streams) packed_ = device.make_event({.timed = false});
}

Packed::Packed(Device& device, MemoryStats& memory_stats, const Packing& packing, const GraphModel& graph, const Value& constant)
    : device_(device), key_(packing.key), blocks_(device, memory_stats), address_(blocks_.allocate(packing.size_bytes)) {
  DeviceBlocks plain(device, memory_stats);
  tenon_stream stream;
  stream.stream = device.make_stream({});
  void* const bytes = pointer(upload(plain, device, constant.data, constant.size_bytes(), *stream.stream));
  std::vector<Operand> operands;
  const auto convert = [&](const Node& conversion, std::uint64_t out_address) {
    Call call = describe(graph, conversion, operands);
    call.stream = &stream;
    operands[0].data = bytes;
    operands[1].data = pointer(out_address);
    conversion.function(call);
    return operands[1].data;
  };
  for (const Packing::Converted& converted : packing.converted) convert(*graph.conversion_of(converted.value), address_ + converted.offset);
  for (const Packing::Read& copy : packing.copies) {
    const Node& node = graph.nodes[copy.node];
    const Node* const conversion = graph.conversion_of(node.inputs[copy.input]);
    void* const from =
        conversion == nullptr ? bytes : convert(*conversion, plain.allocate(graph.values[conversion->outputs[0]].size_bytes()));
    Call call = describe(graph, node, operands);
    call.stream = &stream;
    operands[copy.input].data = from;
    node.row->kernel->traits.pack(call, copy.input, pointer(address_ + copy.offset));
  }
  stream.stream->synchronize();
}

void Packed::wait_on(tenon_stream& stream) {
  if (packed_ == nullptr || stream_id_ == stream.id || stream.recording) return;
  const std::lock_guard lock(event_mutex_);
  packed_->wait(*stream.stream);
}

void describe_packings(Device& device, const tenon_graph& abi_graph, const tenon_plan_options& options, const KernelRow* rows,
                       tenon_packing* out_packings, std::uint32_t packing_stride) {
  GraphModel graph = read_graph("pack describe", device, abi_graph, options, rows);
  if (!graph.values.empty() && (out_packings == nullptr || packing_stride < packing_size_v1)) {
    throw Error(TENON_INVALID_ARGUMENT, "pack describe: expected forms of at least " + std::to_string(packing_size_v1) + " bytes, got " +
                                            std::to_string(out_packings == nullptr ? 0 : packing_stride));
  }
  const auto shares = [rows](const Node& node) {
    const KernelRow* row = find_row(rows, node.op, node.version);
    return row != nullptr && row->kernel->traits.pack_form != nullptr;
  };
  const auto is_stored_in_16_bits = [](const Value& value) {
    return is_half(value.dtype) && (value.kind == TENON_VALUE_PARAMETER || value.kind == TENON_VALUE_CONSTANT);
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), shares) &&
      std::none_of(graph.values.begin(), graph.values.end(), is_stored_in_16_bits))
    return;
  arrange_supported(graph, rows);
  for (const auto& [value, packing] : packings_of(graph)) {
    if (!packing.shareable) continue;
    tenon_packing form{};
    form.size_bytes = packing.size_bytes;
    std::snprintf(form.key, sizeof form.key, "%s", packing.key.c_str());
    std::memcpy(reinterpret_cast<char*>(out_packings) + std::size_t{value} * packing_stride, &form,
                std::min<std::size_t>(packing_stride, sizeof form));
  }
}

std::vector<std::shared_ptr<Packed>> make_packed(Device& device, MemoryStats& memory_stats, const tenon_graph& abi_graph,
                                                 const tenon_plan_options& options, const KernelRow* rows,
                                                 std::span<const std::uint32_t> values) {
  GraphModel graph = read_graph("pack create", device, abi_graph, options, rows);
  arrange_supported(graph, rows);
  const std::map<std::uint32_t, Packing> packings = packings_of(graph);
  const auto lock = std::make_shared<SharedMutex>();
  std::vector<std::shared_ptr<Packed>> made;
  for (const std::uint32_t v : values) {
    const auto found = packings.find(v);
    if (found == packings.end() || !found->second.shareable) {
      throw Error(TENON_INVALID_ARGUMENT, "pack create: expected parameters and constants that `describe` gives a key, got value " +
                                              std::to_string(v) + " of " + std::to_string(abi_graph.value_count));
    }
    const Value& value = graph.values[v];
    made.push_back(value.kind == TENON_VALUE_CONSTANT ? std::make_shared<Packed>(device, memory_stats, found->second, graph, value)
                                                      : std::make_shared<Packed>(device, memory_stats, found->second, lock));
  }
  return made;
}

}  // namespace tenon::sdk
