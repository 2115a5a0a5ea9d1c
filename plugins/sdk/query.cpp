// SPDX-License-Identifier: Apache-2.0
// query.cpp - what a plugin says of itself before it is created: versions, platform, ops and options.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <tenon/op_digests.h>
#include <tenon/sdk/backend.h>
#include <tenon/sdk/op_versions.h>

#include "boundary.h"
#include "plan.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_BUILT_WITH TENON_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define TENON_BUILT_WITH TENON_SANITIZER_THREAD
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TENON_BUILT_WITH TENON_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define TENON_BUILT_WITH TENON_SANITIZER_THREAD
#endif
#ifndef TENON_BUILT_WITH
#define TENON_BUILT_WITH TENON_SANITIZER_NONE
#endif

namespace tenon::sdk {
namespace {

constexpr tenon_op_digest digests[] = TENON_OP_DIGESTS;

constexpr const char* compiler =
#if defined(__clang__)
    "clang " __clang_version__;
#elif defined(__GNUC__)
    "gcc " __VERSION__;
#else
    "unknown compiler";
#endif

/// "gcc 12.2.0, ABI 1.0", in static memory: the query allocates nothing.
const char* build_id() {
  static const auto text = [] {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%s, ABI %u.%u", compiler, TENON_ABI_MAJOR, TENON_ABI_MINOR);
    return line;
  }();
  return text.data();
}

constexpr const char* platform =
#if defined(_WIN32)
    "windows-"
#elif defined(__APPLE__)
    "macos-"
#else
    "linux-"
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
    "aarch64";
#else
    "x86_64";
#endif

}  // namespace

namespace detail {

static tenon_capability capability_of(const KernelRow& row, const KernelRow* rows, bool captures) {
  tenon_capability capability{};
  capability.op = row.op;
  capability.version = row.version;
  for (tenon_dtype t = 0; t < TENON_DTYPE_COUNT; ++t) {
    if (row.kernel->functions[t] != nullptr || widens(rows, row, t)) capability.dtypes |= TENON_DTYPE_BIT(t);
  }
  const Traits& traits = row.kernel->traits;
  capability.features = (traits.strided ? TENON_FEATURE_STRIDED : 0) | (traits.in_place ? TENON_FEATURE_IN_PLACE : 0) |
                        (traits.epilogue ? TENON_FEATURE_EPILOGUE : 0) | (captures && traits.capture_safe ? TENON_FEATURE_CAPTURE_SAFE : 0);
  return capability;
}

std::size_t list_capabilities(const KernelRow* rows, bool captures, tenon_capability* out_list) {
  tenon_capability* next = out_list;
  for (const KernelRow* row = rows; row->kernel != nullptr; ++row) {
    const tenon_capability capability = *next++ = capability_of(*row, rows, captures);
    for (const OlderVersion& older : older_versions()) {
      if (older.op != row->op || older.newest != row->version) continue;
      *next = capability;
      next++->version = older.version;
    }
  }
  return static_cast<std::size_t>(next - out_list);
}

std::size_t list_vendor_ops(const KernelRow* rows, tenon_vendor_op* out_list) {
  tenon_vendor_op* next = out_list;
  for (const KernelRow* row = rows; row->kernel != nullptr; ++row) {
    if (row->vendor_op != nullptr) *next++ = *row->vendor_op;
  }
  return static_cast<std::size_t>(next - out_list);
}

tenon_status query(const Registration& registration, const tenon_host_info* host, tenon_backend_info* out_info) {
  const BackendSpec& spec = registration.spec;
  tenon_backend_info info{};
  info.abi_major = TENON_ABI_MAJOR;
  info.abi_minor_lowest = TENON_ABI_MINOR_LOWEST;
  info.abi_minor_highest = TENON_ABI_MINOR;
  info.flags = spec.flags;
  info.sanitizer = TENON_BUILT_WITH;
  info.priority = spec.priority;
  info.digest_count = static_cast<std::uint32_t>(sizeof digests / sizeof digests[0]);
  info.name = spec.name;
  info.version = spec.version;
  info.build_id = build_id();
  info.platform = platform;
  info.vendor = spec.vendor;
  info.description = spec.description;
  info.requirements = spec.requirements;
  info.digests = digests;
  info.capabilities = registration.capabilities.data();
  info.capability_count = static_cast<std::uint32_t>(registration.capabilities.size());
  info.capability_stride = sizeof(tenon_capability);
  info.options = spec.options.data();
  info.option_count = static_cast<std::uint32_t>(spec.options.size());
  info.option_stride = sizeof(tenon_option);
  info.vendor_ops = registration.vendor_ops.data();
  info.vendor_op_count = static_cast<std::uint32_t>(registration.vendor_ops.size());
  info.vendor_op_stride = sizeof(tenon_vendor_op);
  info.create = registration.create;
  hand_over(info, out_info);
  const bool meets = host->abi_major == info.abi_major && host->abi_minor_lowest <= info.abi_minor_highest &&
                     info.abi_minor_lowest <= host->abi_minor_highest;
  return meets ? TENON_OK : TENON_INCOMPATIBLE;
}

}  // namespace detail
}  // namespace tenon::sdk
