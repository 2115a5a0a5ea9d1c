// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/op_versions.h>

#include <algorithm>

namespace tenon::sdk {
namespace {

[[maybe_unused]] constexpr std::uint32_t newest_version([[maybe_unused]] tenon_op op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  if (op == id) return version;
#include <tenon/ops.def>
#undef TENON_OP
  return 0;
}

/// Sets defaults with `Set(Newest&)`; the bytes need not hold a Newest yet.
template <class Newest, void (*Set)(Newest&)>
void set_defaults(void* bytes) {
  Newest newest;
  std::memcpy(&newest, bytes, sizeof newest);
  Set(newest);
  std::memcpy(bytes, &newest, sizeof newest);
}

#define TENON_OLDER_OP(name, version, attributes, newest_attributes, defaults, schema)                      \
  void defaults_of_##name##_##version([[maybe_unused]] tenon_attributes_##newest_attributes& a) {           \
    defaults;                                                                                               \
  }                                                                                                         \
  static_assert(version < newest_version(TENON_OP_##name), #name ": the version in ops.def is the newest"); \
  static_assert(sizeof(tenon_attributes_##attributes) <= sizeof(tenon_attributes_##newest_attributes), "attributes grow");
#include <tenon/older_ops.def>
#undef TENON_OLDER_OP

/// The last line is a sentinel without an op.
constexpr OlderVersion lines[] = {
#define TENON_OLDER_OP(name, version, attributes, newest_attributes, defaults, schema) \
  {TENON_OP_##name,                                                                    \
   version,                                                                            \
   newest_version(TENON_OP_##name),                                                    \
   sizeof(tenon_attributes_##attributes),                                              \
   sizeof(tenon_attributes_##newest_attributes),                                       \
   set_defaults<tenon_attributes_##newest_attributes, defaults_of_##name##_##version>},
#include <tenon/older_ops.def>
#undef TENON_OLDER_OP
    {TENON_OP_NONE, 0, 0, 0, 0, nullptr},
};

AttributeBytes resized(const void* attributes, std::uint32_t from, std::uint32_t to) {
  AttributeBytes bytes((std::size_t{to} + 7) / 8);
  std::memcpy(bytes.data(), attributes, std::min(from, to));
  std::memcpy(bytes.data(), &to, sizeof to);  // struct_size comes first
  return bytes;
}

}  // namespace

std::span<const OlderVersion> older_versions() {
  return std::span(lines).first(std::size(lines) - 1);
}

const OlderVersion* find_older(tenon_op op, std::uint32_t version, std::span<const OlderVersion> among) {
  const auto found = std::find_if(among.begin(), among.end(), [&](const OlderVersion& o) { return o.op == op && o.version == version; });
  return found == among.end() ? nullptr : &*found;
}

AttributeBytes raised(const OlderVersion& older, const void* attributes) {
  AttributeBytes newest = resized(attributes, older.attributes_size, older.newest_size);
  older.set_defaults(newest.data());
  return newest;
}

std::optional<AttributeBytes> lowered(const OlderVersion& older, const void* newest_attributes) {
  // The older version is equivalent if raising it gives the same attributes.
  AttributeBytes smaller = resized(newest_attributes, older.newest_size, older.attributes_size);
  const AttributeBytes expected = resized(newest_attributes, older.newest_size, older.newest_size);
  if (raised(older, smaller.data()) != expected) return std::nullopt;
  return smaller;
}

}  // namespace tenon::sdk
