// SPDX-License-Identifier: Apache-2.0
// How structs grow: a receiver reads a field only if the sender's struct_size covers its end.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <doctest/doctest.h>
#include <tenon/backend.h>
#include <tenon/op_digests.h>

namespace {

/// What a host sees of a plugin's table that ends after `size_bytes`.
tenon_backend_table table_of_size(std::size_t size_bytes) {
  tenon_backend_table table{};
  table.struct_size = static_cast<std::uint32_t>(size_bytes);
  return table;
}

TEST_CASE("abi: a struct covers a field once its size includes the field's last byte") {
  const std::size_t end = offsetof(tenon_backend_table, plan_execute) + sizeof(tenon_backend_table::plan_execute);
  const tenon_backend_table whole = table_of_size(end);
  CHECK(TENON_HAS(&whole, tenon_backend_table, plan_execute));
  CHECK(TENON_HAS(&whole, tenon_backend_table, shutdown));
  CHECK_FALSE(TENON_HAS(&whole, tenon_backend_table, blas));
  const tenon_backend_table cut = table_of_size(end - 1);
  CHECK_FALSE(TENON_HAS(&cut, tenon_backend_table, plan_execute));
  CHECK(TENON_HAS(&cut, tenon_backend_table, plan_info));
}

TEST_CASE("abi: a struct of size zero covers nothing, not even its size") {
  const tenon_host_info empty{};
  CHECK_FALSE(TENON_HAS(&empty, tenon_host_info, struct_size));
  CHECK_FALSE(TENON_HAS(&empty, tenon_host_info, platform));
}

TEST_CASE("abi: a struct from a newer header covers every field this one knows") {
  tenon_plan_options options{};
  options.struct_size = sizeof(options) + 64;
  CHECK(TENON_HAS(&options, tenon_plan_options, math));
  CHECK(TENON_HAS(&options, tenon_plan_options, fusion));
}

TEST_CASE("abi: an array of a newer element type is indexed by its stride") {
  // A node as a later header might declare it: today's fields first, then more.
  struct LaterNode {
    tenon_node node;
    std::uint64_t since_later[2];
  };
  LaterNode nodes[3] = {};
  for (std::uint32_t i = 0; i < std::size(nodes); ++i) {
    nodes[i].node.op = TENON_OP_Add + i;
    nodes[i].since_later[0] = ~std::uint64_t{0};
  }
  tenon_graph graph{};
  graph.struct_size = sizeof(graph);
  graph.nodes = &nodes[0].node;
  graph.node_count = 3;
  graph.node_stride = sizeof(LaterNode);
  for (std::uint32_t i = 0; i < graph.node_count; ++i) {
    tenon_node seen;
    std::memcpy(&seen, reinterpret_cast<const char*>(graph.nodes) + std::size_t{i} * graph.node_stride, sizeof(seen));
    CHECK(seen.op == TENON_OP_Add + i);
  }
}

TEST_CASE("abi: every op of the list has one published digest for its version") {
  constexpr tenon_op_digest digests[] = TENON_OP_DIGESTS;
  struct Listed {
    tenon_op op;
    std::uint32_t version;
  };
  constexpr Listed ops[] = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) {id, version},
#include <tenon/ops.def>
#undef TENON_OP
  };
  for (const Listed& listed : ops) {
    int found = 0;
    for (const tenon_op_digest& digest : digests) found += digest.op == listed.op && digest.version == listed.version;
    INFO("op id ", listed.op, " version ", listed.version);
    CHECK(found == 1);
  }
}

}  // namespace
