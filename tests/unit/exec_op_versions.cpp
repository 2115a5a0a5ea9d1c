// SPDX-License-Identifier: Apache-2.0
// Which version of an op is sent to a backend. The test defines its own versions: Elu-6 as if it had followed an Elu-5 without alpha.
#include "exec/op_versions.h"

#include <tenon/functions.h>

#include <cstring>
#include <memory>

#include "loader/backend.h"
#include "testing.h"

namespace tenon {
namespace {

void alpha_is_one(void* bytes) {
  tenon_attributes_alpha attributes;
  std::memcpy(&attributes, bytes, sizeof attributes);
  attributes.alpha = 1;
  std::memcpy(bytes, &attributes, sizeof attributes);
}
const sdk::OlderVersion lines[] = {
    {TENON_OP_Elu, 5, 6, sizeof(tenon_attributes_none), sizeof(tenon_attributes_alpha), alpha_is_one},
};

/// A backend that only has capabilities.
class Stating {
 public:
  explicit Stating(std::vector<tenon_capability> has, std::vector<loader::SwitchedOff> off = {}) {
    auto parts = std::make_unique<loader::Backend::Parts>();
    parts->answer.capabilities = std::move(has);
    parts->answer.info.capabilities = parts->answer.capabilities.data();
    parts->answer.info.capability_count = static_cast<std::uint32_t>(parts->answer.capabilities.size());
    parts->switched_off = std::move(off);
    parts->table.table.shutdown = [](tenon_backend*) {};
    parts->table.table.destroy = [](tenon_backend*) {};
    backend_ = std::make_unique<loader::Backend>(std::move(parts));
  }
  const loader::Backend& get() const { return *backend_; }

 private:
  std::unique_ptr<loader::Backend> backend_;
};

tenon_capability elu(std::uint32_t version) {
  return {TENON_OP_Elu, version, TENON_DTYPE_BIT(TENON_DTYPE_F32), 0, 0};
}

struct Sent {
  std::uint32_t version = 0, size = 0;
};
/// The version that the backend is sent for an Elu with this alpha.
Sent sent(const loader::Backend& backend, double alpha) {
  Graph graph;
  graph.output("y", ops::elu(graph.input("x", DType::f32, {3}), alpha));
  exec::AbiGraph abi_graph;
  exec::lower(graph, {0}, std::vector<bool>(graph.values().size(), false), {}, exec::count_uses(graph), abi_graph);
  exec::lower_to_supported_versions(backend, graph, abi_graph, lines);
  CHECK(exec::supported_version(backend, graph.nodes()[0], lines) == abi_graph.nodes[0].version);
  Sent result{abi_graph.nodes[0].version, 0};
  std::memcpy(&result.size, abi_graph.nodes[0].attributes, sizeof result.size);
  return result;
}

TEST_CASE("op versions: a backend with the newest version is sent the newest") {
  const Stating both({elu(5), elu(6)});
  CHECK(sent(both.get(), 1).version == 6);
  CHECK(sent(both.get(), 1).size == sizeof(tenon_attributes_alpha));
}

TEST_CASE("op versions: a backend with only an older version is sent that, if it is equivalent") {
  const Stating older({elu(5)});
  CHECK(sent(older.get(), 1).version == 5);
  CHECK(sent(older.get(), 1).size == sizeof(tenon_attributes_none));
  CHECK(sent(older.get(), 0.5).version == 6);
}

TEST_CASE("op versions: a node that no older version can express is rejected by name") {
  const Stating older({elu(5)});
  Graph graph;
  const Value x = graph.input("x", DType::f32, {3});
  ops::elu(x, 0.5);
  ops::elu(x, 1);
  CHECK(exec::why_not_older(older.get(), graph.nodes()[0], lines) ==
        "the backend has Elu-5 and not Elu-6, and only the latter has attributes for this node");
  CHECK(exec::why_not_older(older.get(), graph.nodes()[1], lines).empty());
  CHECK(exec::why_not_older(Stating(std::vector<tenon_capability>{}).get(), graph.nodes()[0], lines).empty());
}

TEST_CASE("op versions: a disabled version is not used, and other versions are") {
  const Stating newest_off({elu(5), elu(6)}, {{TENON_OP_Elu, 6, "its digest differs"}});
  CHECK(sent(newest_off.get(), 1).version == 5);
  const Stating older_off({elu(5), elu(6)}, {{TENON_OP_Elu, 5, "its digest differs"}});
  CHECK(sent(older_off.get(), 1).version == 6);
}

}  // namespace
}  // namespace tenon
