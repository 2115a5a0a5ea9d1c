// SPDX-License-Identifier: Apache-2.0
#include "loader/self_check.h"

#include <fmt/format.h>

#include <cfenv>
#include <cstring>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace tenon::loader {
namespace {

// The bits of the control register that change results: all except the sticky exception flags.
#if defined(__SSE2__)
constexpr std::uint32_t control_mask = 0xffc0, flush_to_zero = 1u << 15, denormals_are_zero = 1u << 6;
std::uint32_t read_control() {
  return _mm_getcsr() & control_mask;
}
void write_control(std::uint32_t control) {
  _mm_setcsr((_mm_getcsr() & ~control_mask) | control);
}
#elif defined(__aarch64__)
constexpr std::uint32_t flush_to_zero = 1u << 24, denormals_are_zero = 1u << 24;
std::uint32_t read_control() {
  std::uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return static_cast<std::uint32_t>(control);
}
void write_control(std::uint32_t control) {
  __asm__ volatile("msr fpcr, %0" : : "r"(static_cast<std::uint64_t>(control)));
}
#else
constexpr std::uint32_t flush_to_zero = 0, denormals_are_zero = 0;
std::uint32_t read_control() {
  return 0;
}
void write_control(std::uint32_t) {}
#endif

bool same_text(const char* a, const char* b) {
  return a == b || (a && b && std::strcmp(a, b) == 0);
}

bool same_option(const tenon_option& a, const tenon_option& b) {
  return same_text(a.name, b.name) && a.type == b.type && same_text(a.default_value, b.default_value) && same_text(a.choices, b.choices) &&
         a.lowest == b.lowest && a.highest == b.highest && same_text(a.help, b.help);
}

bool same_vendor_op(const tenon_vendor_op& a, const tenon_vendor_op& b) {
  return a.id == b.id && a.version == b.version && same_text(a.domain, b.domain) && same_text(a.name, b.name) &&
         same_text(a.schema, b.schema) && a.infer == b.infer;
}

}  // namespace

FloatingPoint FloatingPoint::current() {
  FloatingPoint now;
  now.rounding_ = std::fegetround();
  now.control_ = read_control();
  return now;
}

void FloatingPoint::restore() const {
  // fesetround sets the rounding of every unit, x87 included; the control register holds the rest.
  if (rounding_ >= 0) std::fesetround(rounding_);
  write_control(control_);
}

std::optional<std::string> FloatingPoint::change_since(const FloatingPoint& before) const {
  if (control_ == before.control_ && rounding_ == before.rounding_) return std::nullopt;
  const std::uint32_t set = control_ & ~before.control_;
  if ((set & (flush_to_zero | denormals_are_zero)) != 0) return "sets flush-to-zero for the process (linked with -ffast-math?)";
  if (rounding_ != before.rounding_) return fmt::format("changes the rounding mode from {} to {}", before.rounding_, rounding_);
  return fmt::format("changes the floating-point control register from {:#06x} to {:#06x}", before.control_, control_);
}

std::optional<std::string> difference(const tenon_backend_info& a, const tenon_backend_info& b) {
  if (a.abi_major != b.abi_major || a.abi_minor_lowest != b.abi_minor_lowest || a.abi_minor_highest != b.abi_minor_highest) return "abi";
  if (a.flags != b.flags) return "flags";
  if (a.sanitizer != b.sanitizer) return "sanitizer";
  if (a.priority != b.priority) return "priority";
  if (!same_text(a.name, b.name)) return "name";
  if (!same_text(a.version, b.version)) return "version";
  if (!same_text(a.build_id, b.build_id)) return "build_id";
  if (!same_text(a.platform, b.platform)) return "platform";
  if (!same_text(a.vendor, b.vendor)) return "vendor";
  if (!same_text(a.description, b.description)) return "description";
  if (!same_text(a.requirements, b.requirements)) return "requirements";
  if (a.digest_count != b.digest_count) return "digest_count";
  for (std::uint32_t i = 0; i < a.digest_count; ++i) {
    const tenon_op_digest &x = a.digests[i], &y = b.digests[i];
    if (x.op != y.op || x.version != y.version || x.digest != y.digest) return fmt::format("digests[{}]", i);
  }
  if (a.capability_count != b.capability_count) return "capability_count";
  for (std::uint32_t i = 0; i < a.capability_count; ++i) {
    const tenon_capability &x = a.capabilities[i], &y = b.capabilities[i];
    if (x.op != y.op || x.version != y.version || x.dtypes != y.dtypes || x.features != y.features)
      return fmt::format("capabilities[{}]", i);
  }
  if (a.option_count != b.option_count) return "option_count";
  for (std::uint32_t i = 0; i < a.option_count; ++i) {
    if (!same_option(a.options[i], b.options[i])) return fmt::format("options[{}]", i);
  }
  if (a.vendor_op_count != b.vendor_op_count) return "vendor_op_count";
  for (std::uint32_t i = 0; i < a.vendor_op_count; ++i) {
    if (!same_vendor_op(a.vendor_ops[i], b.vendor_ops[i])) return fmt::format("vendor_ops[{}]", i);
  }
  if (a.create != b.create) return "create";
  return std::nullopt;
}

}  // namespace tenon::loader
