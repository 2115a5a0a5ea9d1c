// SPDX-License-Identifier: Apache-2.0
// Attributes of one op in two versions: the newer begins with the older's fields.
#include <tenon/sdk/op_versions.h>

#include <doctest/doctest.h>

#include <cstring>

using namespace tenon::sdk;

namespace {

struct Older {
  std::uint32_t struct_size, reserved;
  double alpha;
};
struct Newer {
  std::uint32_t struct_size, reserved;
  double alpha, gamma;
  std::uint32_t mode, more;
};

void set_defaults(void* bytes) {
  Newer newer;
  std::memcpy(&newer, bytes, sizeof newer);
  newer.gamma = 1;
  newer.mode = 2;
  std::memcpy(bytes, &newer, sizeof newer);
}
constexpr OlderVersion line{TENON_OP_Elu, 6, 22, sizeof(Older), sizeof(Newer), set_defaults};

}  // namespace

TEST_CASE("op versions: older attributes become the newest with defaults for newer fields") {
  const Older older{sizeof older, 0, 0.25};
  const AttributeBytes bytes = raised(line, &older);
  Newer newer;
  REQUIRE(bytes.size() * 8 == sizeof newer);
  std::memcpy(&newer, bytes.data(), sizeof newer);
  CHECK(newer.struct_size == sizeof newer);
  CHECK(newer.alpha == 0.25);
  CHECK(newer.gamma == 1);
  CHECK(newer.mode == 2);
}

TEST_CASE("op versions: the newest attributes become older ones if nothing is lost") {
  const Newer newer{sizeof newer, 0, 0.25, 1, 2, 0};
  const auto bytes = lowered(line, &newer);
  REQUIRE(bytes);
  Older older;
  REQUIRE(bytes->size() * 8 == sizeof older);
  std::memcpy(&older, bytes->data(), sizeof older);
  CHECK(older.struct_size == sizeof older);
  CHECK(older.alpha == 0.25);
}

TEST_CASE("op versions: an attribute that is not at its default has no older form") {
  for (const Newer& newer :
       {Newer{sizeof(Newer), 0, 0.25, 2, 2, 0}, Newer{sizeof(Newer), 0, 0.25, 1, 0, 0}, Newer{sizeof(Newer), 0, 0, 1, 2, 9}}) {
    CHECK_FALSE(lowered(line, &newer));
  }
}

TEST_CASE("op versions: each line of older_ops.def converts up and back") {
  CHECK(older_versions().size() == older_version_count);
  for (const OlderVersion& older : older_versions()) {
    CAPTURE(older.op);
    AttributeBytes smallest((older.attributes_size + 7) / 8);
    std::memcpy(smallest.data(), &older.attributes_size, sizeof older.attributes_size);
    const auto back = lowered(older, raised(older, smallest.data()).data());
    REQUIRE(back);
    CHECK(*back == smallest);
    CHECK(find_older(older.op, older.version) == &older);
    CHECK(find_older(older.op, older.newest) == nullptr);
  }
}

TEST_CASE("op versions: a value of an attribute that came later has no older form") {
  const OlderVersion* const older = find_older(TENON_OP_ScatterElements, 16);
  REQUIRE(older != nullptr);
  for (std::uint32_t reduction = TENON_SCATTER_NONE; reduction <= TENON_SCATTER_MIN; ++reduction) {
    const tenon_attributes_scatter attributes{sizeof attributes, reduction, 1};
    CHECK(lowered(*older, &attributes).has_value() == (reduction <= TENON_SCATTER_MUL));
  }
}
