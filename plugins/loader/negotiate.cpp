// SPDX-License-Identifier: Apache-2.0
#include "loader/negotiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "loader/load_error.h"
#include "loader/vendor_ops.h"
#include "platform/conventions.h"

// Clang has __has_feature, GCC macros.
#if defined(__has_feature)
#define TENON_HAS_FEATURE(name) __has_feature(name)
#else
#define TENON_HAS_FEATURE(name) 0
#endif

namespace tenon::loader {
namespace {

#if defined(__SANITIZE_ADDRESS__) || TENON_HAS_FEATURE(address_sanitizer)
constexpr std::uint32_t own_sanitizer = TENON_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__) || TENON_HAS_FEATURE(thread_sanitizer)
constexpr std::uint32_t own_sanitizer = TENON_SANITIZER_THREAD;
#elif TENON_HAS_FEATURE(memory_sanitizer)
constexpr std::uint32_t own_sanitizer = TENON_SANITIZER_MEMORY;
#else
constexpr std::uint32_t own_sanitizer = TENON_SANITIZER_NONE;
#endif

#if defined(__clang__)
#define TENON_COMPILER "clang-" __clang_version__
#elif defined(__GNUC__)
#define TENON_COMPILER "gcc-" __VERSION__
#else
#define TENON_COMPILER "unknown compiler"
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define TENON_MACHINE "x86_64"
#elif defined(__aarch64__) || defined(_M_ARM64)
#define TENON_MACHINE "aarch64"
#elif defined(__riscv)
#define TENON_MACHINE "riscv64"
#elif defined(__powerpc64__)
#define TENON_MACHINE "powerpc64"
#else
#define TENON_MACHINE "unknown"
#endif

const char* name_of_sanitizer(std::uint32_t sanitizer) {
  switch (sanitizer) {
    case TENON_SANITIZER_NONE:
      return "no sanitizer";
    case TENON_SANITIZER_ADDRESS:
      return "AddressSanitizer";
    case TENON_SANITIZER_THREAD:
      return "ThreadSanitizer";
    case TENON_SANITIZER_MEMORY:
      return "MemorySanitizer";
    default:
      return "an unknown sanitizer";
  }
}

std::string range_text(std::uint32_t major, std::uint32_t lowest, std::uint32_t highest) {
  return lowest == highest ? fmt::format("ABI {}.{}", major, lowest) : fmt::format("ABI {}.{} to {}.{}", major, lowest, major, highest);
}

std::string text_or(const char* text, const char* otherwise) {
  return text && *text ? text : otherwise;
}

std::string name_of_op(tenon_op op) {
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  case id:                                                                                            \
    return #name;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return fmt::format("op {}", op);
  }
}

}  // namespace

const tenon_host_info& host_info() {
  static const std::string own_platform = std::string(platform::conventions().system) + "-" TENON_MACHINE;
  static const tenon_host_info info{
      .struct_size = sizeof(tenon_host_info),
      .abi_major = TENON_ABI_MAJOR,
      .abi_minor_lowest = TENON_ABI_MINOR_LOWEST,
      .abi_minor_highest = TENON_ABI_MINOR,
      .sanitizer = own_sanitizer,
      .reserved = 0,
      .build_id = "tenon " TENON_VERSION " " TENON_COMPILER,
      .platform = own_platform.c_str(),
  };
  return info;
}

std::uint32_t negotiate_version(const tenon_host_info& host, const tenon_backend_info& info) {
  const bool same_major = host.abi_major == info.abi_major;
  const std::uint32_t highest = std::min(host.abi_minor_highest, info.abi_minor_highest);
  if (same_major && info.abi_minor_lowest <= info.abi_minor_highest && highest >= std::max(host.abi_minor_lowest, info.abi_minor_lowest)) {
    return highest;
  }
  const std::string core = range_text(host.abi_major, host.abi_minor_lowest, host.abi_minor_highest);
  const std::string plugin = range_text(info.abi_major, info.abi_minor_lowest, info.abi_minor_highest);
  const std::string text = fmt::format("the core supports {} (build '{}'), the plugin {} (build '{}')", core,
                                       text_or(host.build_id, "unknown"), plugin, text_or(info.build_id, "unknown"));
  if (info.abi_minor_lowest > info.abi_minor_highest) {
    throw LoadError(TENON_INCOMPATIBLE, text + ": the plugin's range is empty", "report this to the plugin's vendor");
  }
  const bool plugin_is_newer = same_major ? info.abi_minor_lowest > host.abi_minor_highest : info.abi_major > host.abi_major;
  throw LoadError(TENON_INCOMPATIBLE, text,
                  plugin_is_newer
                      ? fmt::format("install a Tenon that supports {}, or a build of the plugin made for {}", plugin, core)
                      : fmt::format("install a newer build of the plugin, made for {}, or a Tenon that still supports {}", core, plugin));
}

void check_sanitizers(std::uint32_t host, std::uint32_t plugin) {
  // Every system library is uninstrumented code in an instrumented process; the reverse ends the process.
  if (plugin == TENON_SANITIZER_NONE || plugin == host) return;
  throw LoadError(TENON_INCOMPATIBLE,
                  fmt::format("it was built with {}, the core with {}", name_of_sanitizer(plugin), name_of_sanitizer(host)),
                  "build both with the same -fsanitize option, or the plugin without one");
}

bool is_valid_name(const char* name) {
  if (!name || *name < 'a' || *name > 'z') return false;
  return std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == std::strlen(name);
}

void check_answer(const tenon_host_info& host, const tenon_backend_info& info, std::vector<std::string>& out_warnings) {
  if (!is_valid_name(info.name)) {
    throw LoadError(
        TENON_INCOMPATIBLE,
        info.name
            ? fmt::format("its name '{}' is invalid: expected a lower-case letter, then lower-case letters, digits and '_'", info.name)
            : "it has no name",
        "the backend must state a name that is valid before ':' in device names; report this to its vendor");
  }
  check_sanitizers(host.sanitizer, info.sanitizer);
  if (info.platform && *info.platform && std::strcmp(info.platform, host.platform) != 0) {
    throw LoadError(TENON_INCOMPATIBLE, fmt::format("it was built for {}, the core for {}", info.platform, host.platform),
                    fmt::format("install the plugin's build for {}", host.platform));
  }
  if (!info.create) {
    throw LoadError(TENON_INCOMPATIBLE, "its answer to the query has no `create`", "report this to the plugin's vendor");
  }
  for (std::uint32_t i = 0; i < info.option_count; ++i) {
    if (!info.options[i].name || !*info.options[i].name) {
      throw LoadError(TENON_INCOMPATIBLE, fmt::format("option {} of {} has no name", i, info.option_count),
                      "report this to the plugin's vendor");
    }
    if (info.options[i].type == TENON_OPTION_CHOICE && !info.options[i].choices) {
      throw LoadError(TENON_INCOMPATIBLE, fmt::format("option '{}' is a choice without choices", info.options[i].name),
                      "report this to the plugin's vendor");
    }
  }
  check_vendor_ops(vendor_ops_of(info));
  if (host.sanitizer != TENON_SANITIZER_NONE && host.sanitizer != TENON_SANITIZER_ADDRESS && info.sanitizer == TENON_SANITIZER_NONE) {
    out_warnings.push_back(fmt::format("it was built without {}: reports about it may be false", name_of_sanitizer(host.sanitizer)));
  }
  std::string unnamed;
  std::set<std::pair<tenon_op, std::uint32_t>> digests;
  for (std::uint32_t i = 0; i < info.digest_count; ++i) digests.insert({info.digests[i].op, info.digests[i].version});
  for (std::uint32_t i = 0; i < info.capability_count; ++i) {
    const tenon_capability& offered = info.capabilities[i];
    if (digests.count({offered.op, offered.version}) == 0 && offered.op < TENON_OP_VENDOR) {
      unnamed += fmt::format("{}{}-{}", unnamed.empty() ? "" : ", ", name_of_op(offered.op), offered.version);
    }
  }
  if (!unnamed.empty()) {
    out_warnings.push_back(fmt::format("it has no schema digest for {}: whether core and plugin define it alike was not checked", unnamed));
  }
}

std::vector<SwitchedOff> compare_digests(std::span<const tenon_op_digest> core, std::span<const tenon_op_digest> plugin) {
  std::vector<SwitchedOff> off;
  for (const tenon_op_digest& ours : core) {
    for (const tenon_op_digest& theirs : plugin) {
      if (ours.op != theirs.op || ours.version != theirs.version || ours.digest == theirs.digest) continue;
      off.push_back({ours.op, ours.version,
                     fmt::format("{}-{} is switched off: its schema digest is {:016x} in the core and {:016x} in the plugin, so they "
                                 "define it differently; rebuild the plugin with the core's tenon/ops.def",
                                 name_of_op(ours.op), ours.version, ours.digest, theirs.digest)});
    }
  }
  return off;
}

}  // namespace tenon::loader
