// SPDX-License-Identifier: Apache-2.0
#include "elementwise_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include <tenon/sdk/error.h>
#include <tenon/sdk/rounding.h>

namespace tenon::sdk {
namespace {

const ElementwiseGroup& group_of(const Call& call) {
  const ElementwiseGroup* group = nullptr;
  std::memcpy(&group, call.attributes, sizeof group);
  return *group;
}

constexpr Kernel piecewise_kernel = [] {
  Kernel kernel;
  kernel.functions[TENON_DTYPE_NONE] = [](const Call& call) { group_of(call).run(call); };
  kernel.traits.strided = true;
  kernel.traits.in_place = true;
  kernel.traits.scratch = [](const Call& call) { return group_of(call).scratch(); };
  return kernel;
}();

// Elements from which a table of 256 results pays.
constexpr std::int64_t worth_a_table = 4096;
// Elements to look up that are worth a thread.
constexpr std::int64_t lookup_grain = 64 * 1024;
constexpr std::int64_t table_size = 256;

/// y[i] = table[x[i]] for i in [begin, end)
template <class T>
void look_up(const std::uint8_t* x, const void* table, void* y, std::int64_t begin, std::int64_t end) {
  const T* const from = static_cast<const T*>(table);
  T* const to = static_cast<T*>(y);
  for (std::int64_t i = begin; i < end; ++i) to[i] = from[x[i]];
}

/// The memory ranges of the next piece, prefetched a few cache lines at a time between kernels.
class Prefetch {
 public:
  void clear() { count_ = at_ = 0; }
  void add(const char* begin, std::int64_t bytes) {
    if (count_ < max_ranges && bytes > 0) ranges_[count_++] = {begin, begin + bytes};
  }
  std::int64_t lines() const {
    std::int64_t total = 0;
    for (int i = 0; i < count_; ++i) total += ceil_div(ranges_[i].end - ranges_[i].next, line);
    return total;
  }
  void fetch(std::int64_t lines) {
    while (lines > 0 && at_ < count_) {
      Range& range = ranges_[at_];
      const std::int64_t n = std::min(lines, ceil_div(range.end - range.next, line));
      for (std::int64_t i = 0; i < n; ++i) __builtin_prefetch(range.next + i * line, 0, 2);
      range.next += n * line;
      lines -= n;
      if (range.next >= range.end) ++at_;
    }
  }

 private:
  static constexpr std::int64_t line = 64;
  static constexpr int max_ranges = 8;
  struct Range {
    const char *next, *end;
  };
  Range ranges_[max_ranges];
  int count_ = 0, at_ = 0;
};

}  // namespace

const ElementwiseFusion piecewise_fusion{
    {TENON_OP_NONE, 0, 0, &piecewise_kernel},
    [](tenon_op, tenon_dtype, tenon_dtype) { return 1u; },
    ElementwiseGroup::max_members,
    ElementwiseGroup::max_places,
};

ElementwiseFusion piecewise(KernelFunction (*whole)(const ElementwiseProgram& program)) {
  ElementwiseFusion fusion = piecewise_fusion;
  fusion.whole = whole;
  return fusion;
}
bool is_piecewise(const ElementwiseFusion& fusion) {
  return fusion.row.kernel == &piecewise_kernel;
}

const ElementwiseProgram& program_of(const Call& call) {
  return group_of(call);
}

std::vector<std::uint64_t> group_attributes(const ElementwiseGroup& group) {
  std::vector<std::uint64_t> words(1);
  const ElementwiseGroup* pointer = &group;
  static_assert(sizeof pointer <= sizeof words[0]);
  std::memcpy(words.data(), &pointer, sizeof pointer);
  return words;
}

bool collapse(const Value& x, const Value& over, std::int64_t& out_row_stride, std::int64_t& out_column_stride) {
  out_row_stride = out_column_stride = 0;
  if (x.rank > over.rank) return false;
  const std::uint32_t missing = over.rank - x.rank;
  const auto stride = [&](std::uint32_t d) { return d < missing || x.shape[d - missing] == 1 ? std::int64_t{0} : x.strides[d - missing]; };
  if (over.rank == 0) return true;
  out_column_stride = stride(over.rank - 1);
  std::int64_t next = 0;  // the required stride of the next outer dimension
  bool begun = false;
  for (std::uint32_t d = over.rank - 1; d-- > 0;) {
    if (over.shape[d] == 1) continue;
    if (!begun) {
      out_row_stride = stride(d);
      begun = true;
    } else if (stride(d) != next) {
      return false;
    }
    next = stride(d) * over.shape[d];
  }
  return true;
}

void ElementwiseGroup::settle(const GraphModel& graph, const Node& node) {
  columns = space.rank == 0 ? 1 : space.shape[space.rank - 1];
  rows = space.count / columns;
  bool contiguous = true;
  for (std::uint32_t p = 0; p < input_count + output_count; ++p) {
    const std::uint32_t v = p < input_count ? node.inputs[p] : node.outputs[p - input_count];
    ElementwisePlace& place = places[p];
    if (!collapse(graph.values[v], space, place.row_stride, place.column_stride)) {
      throw Error(TENON_INTERNAL, "elementwise group: an operand's strides changed");
    }
    contiguous = contiguous && place.row_stride == place.column_stride * columns;
  }
  if (contiguous) {
    columns = space.count;
    rows = 1;
  }
  if (graph.fusion->prepare != nullptr) prepared = graph.fusion->prepare(*this);
  if (!is_piecewise(*graph.fusion)) return;
  find_table();
  if (table_ == nullptr && graph.fusion->whole != nullptr) whole_ = graph.fusion->whole(*this);
}

void ElementwiseGroup::find_table() {
  table_ = nullptr;
  if (rows != 1 || columns < worth_a_table || output_count != 1) return;
  bool found = false;
  for (std::uint32_t p = 0; p < input_count; ++p) {
    if (places[p].column_stride == 0) continue;
    if (found || (places[p].dtype != TENON_DTYPE_I8 && places[p].dtype != TENON_DTYPE_U8)) return;
    found = true;
    table_input_ = p;
  }
  if (!found) return;
  auto group = std::make_shared<ElementwiseGroup>(*this);
  group->columns = table_size;
  group->slots = 1;
  table_ = std::move(group);
}

std::size_t ElementwiseGroup::table_bytes() const {
  if (table_ == nullptr) return 0;
  return table_->scratch() + aligned_size(static_cast<std::size_t>(table_size * size_of(places[input_count].dtype)));
}

void ElementwiseGroup::run_table(const Call& call) const {
  static constexpr auto bytes = [] {
    std::array<std::uint8_t, table_size> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
    return all;
  }();
  Operand inputs[max_places], table = call.outputs[0];
  std::copy(call.inputs, call.inputs + input_count, inputs);
  inputs[table_input_].data = const_cast<std::uint8_t*>(bytes.data());
  table.data = static_cast<char*>(call.scratch) + table_->scratch();
  Call part = call;
  part.inputs = inputs;
  part.outputs = &table;
  table_->run_slot(part, 0);
  const auto* const x = call.inputs[table_input_].as<const std::uint8_t>();
  void* const y = call.outputs[0].data;
  call.host.parallel_for(columns, lookup_grain, [&](std::int64_t begin, std::int64_t end) {
    switch (size_of(table.dtype)) {
      case 1:
        return look_up<std::uint8_t>(x, table.data, y, begin, end);
      case 2:
        return look_up<std::uint16_t>(x, table.data, y, begin, end);
      case 4:
        return look_up<std::uint32_t>(x, table.data, y, begin, end);
      default:
        return look_up<std::uint64_t>(x, table.data, y, begin, end);
    }
  });
}

std::int64_t ElementwiseGroup::widest() const {
  std::int64_t bytes = 1;
  for (const ElementwisePlace& place : places) bytes = std::max(bytes, size_of(place.dtype));
  return bytes;
}

std::int64_t ElementwiseGroup::piece_elements() const {
  return piece_bytes / widest();
}

std::size_t ElementwiseGroup::buffer_bytes() const {
  const std::int64_t bytes = std::min(piece_bytes, rows * columns * widest());
  return aligned_size(static_cast<std::size_t>(bytes));
}

void ElementwiseGroup::run(const Call& call) const {
  if (table_ != nullptr) return run_table(call);
  if (whole_ != nullptr) return whole_(call);
  call.host.parallel_for(slots, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = begin; slot < end; ++slot) run_slot(call, slot);
  });
}

void ElementwiseGroup::run_slot(const Call& call, std::int64_t slot) const {
  // A piece is several whole rows, or a part of one row.
  const std::int64_t elements = piece_elements();
  const std::int64_t high = std::max<std::int64_t>(1, std::min(rows, elements / columns));
  const std::int64_t wide = std::min(columns, elements);
  const std::int64_t across = ceil_div(columns, wide);
  const std::int64_t pieces = ceil_div(rows, high) * across;
  const std::int64_t share = ceil_div(pieces, slots);
  const std::int64_t begin = slot * share;
  const std::int64_t end = std::min(pieces, begin + share);
  if (begin >= end) return;

  // All operands of a place share shapes and strides; these arrays are updated for each piece.
  std::int64_t shape[2] = {0, 0};
  std::int64_t strides[max_places][2];
  char* base[max_places];
  Operand operands[max_operands];
  std::uint32_t place_of[max_operands];
  Call calls[max_members];
  char* const buffers = static_cast<char*>(call.scratch) + static_cast<std::size_t>(slot) * slot_bytes();
  for (std::uint32_t p = 0; p < places.size(); ++p) {
    const ElementwisePlace& place = places[p];
    if (place.buffer >= 0) {
      base[p] = buffers + static_cast<std::size_t>(place.buffer) * buffer_bytes();
    } else {
      base[p] = static_cast<char*>(p < input_count ? call.inputs[p].data : call.outputs[p - input_count].data);
    }
    strides[p][0] = place.row_stride;
    strides[p][1] = place.column_stride;
  }
  std::uint32_t count = 0;
  const auto append = [&](std::uint32_t p) {
    operands[count] = {nullptr, shape, strides[p], 0, 2, places[p].dtype, true};
    place_of[count++] = p;
  };
  for (std::size_t m = 0; m < members.size(); ++m) {
    const ElementwiseMember& member = members[m];
    Call& part = calls[m];
    part.inputs = operands + count;
    for (const std::uint32_t p : member.inputs) append(p);
    part.outputs = operands + count;
    append(member.output);
    part.input_count = static_cast<std::uint32_t>(member.inputs.size());
    part.output_count = 1;
    part.attributes = member.attributes.data();
    part.math = call.math;
    part.deterministic = call.deterministic;
    part.stream = call.stream;
    part.host = call.host;
  }

  Prefetch prefetch;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t row = piece / across * high;
    const std::int64_t column = piece % across * wide;
    shape[0] = std::min(high, rows - row);
    shape[1] = std::min(wide, columns - column);
    char* at[max_places];
    bool dense[max_places];
    for (std::uint32_t p = 0; p < places.size(); ++p) {
      const ElementwisePlace& place = places[p];
      if (place.buffer >= 0) {
        strides[p][0] = shape[1];
        strides[p][1] = 1;
        at[p] = base[p];
        dense[p] = true;
      } else {
        at[p] = base[p] + (row * place.row_stride + column * place.column_stride) * size_of(place.dtype);
        dense[p] = (place.column_stride == 1 || shape[1] == 1) && (place.row_stride == shape[1] || shape[0] == 1);
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      operands[i].data = at[place_of[i]];
      operands[i].dense = dense[place_of[i]];
      operands[i].count = shape[0] * shape[1];
    }
    prefetch.clear();
    if (piece + 1 < end) {
      const std::int64_t next_row = (piece + 1) / across * high, next_column = (piece + 1) % across * wide;
      const std::int64_t next_count = std::min(high, rows - next_row) * std::min(wide, columns - next_column);
      for (std::uint32_t p = 0; p < input_count + output_count; ++p) {
        const ElementwisePlace& place = places[p];
        if (place.column_stride != 1 || (rows > 1 && place.row_stride != columns)) continue;
        prefetch.add(base[p] + (next_row * columns + next_column) * size_of(place.dtype), next_count * size_of(place.dtype));
      }
    }
    const std::int64_t lines = prefetch.lines(), parts = static_cast<std::int64_t>(members.size());
    for (std::int64_t m = 0; m < parts; ++m) {
      prefetch.fetch(lines * (m + 1) / parts - lines * m / parts);
      members[static_cast<std::size_t>(m)].function(calls[m]);
    }
  }
}

}  // namespace tenon::sdk
