// SPDX-License-Identifier: Apache-2.0
// A plugin with one fault. All plugins link this object with a generated source that names their fault.
#include <tenon/backend.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "crash.h"

extern "C" tenon_status healthy_query(const tenon_host_info* host, tenon_backend_info* out_info);
extern "C" const char fault_name[];

namespace {

bool fault_is(std::string_view fault) {
  return fault == fault_name;
}

tenon_status say(tenon_error* error, tenon_status status, const char* text) {
  std::snprintf(error->text, error->text_capacity, "%s", text);
  return status;
}

tenon_status no_device(tenon_backend*, std::uint32_t* out_count, tenon_error* error) {
  *out_count = 0;
  return say(error, TENON_OK, fault_is("no_devices") ? "no card answers on the bus; seat it again" : "");
}
tenon_status nameless_device(tenon_backend*, std::uint32_t, tenon_device_info*, tenon_error* error) {
  return say(error, TENON_VENDOR_ERROR, "vendorGetName returned 7");
}

tenon_backend_table modified(tenon_backend_table table) {
  if (fault_is("small_table")) table.struct_size = 64;
  if (fault_is("null_slot")) table.event_query = nullptr, table.plan_info = nullptr;
  if (fault_is("no_devices") || fault_is("no_devices_silently")) table.device_count = no_device;
  if (fault_is("device_info_fails")) table.device_info = nameless_device;
  return table;
}

void crash_with_output() {
  std::puts("vendor: no licence");
  std::fflush(stdout);
  crash();
}

tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  if (fault_is("crashes_in_create")) crash_with_output();
  if (fault_is("create_throws")) throw std::runtime_error("the vendor's library was not expected to fail");
  if (fault_is("create_throws_integer")) throw 42;
  if (fault_is("create_fails")) return say(error, TENON_VENDOR_ERROR, "vendorInit returned 999: the driver is too old");
  if (fault_is("create_fails_silently")) return TENON_INTERNAL;
  if (fault_is("create_returns_nothing")) return TENON_OK;
#if defined(__SSE2__)
  if (fault_is("rounds_down")) _mm_setcsr(_mm_getcsr() | 0x2000);
#endif
  tenon_host_info host_info{};
  host_info.struct_size = sizeof host_info;
  host_info.abi_minor_highest = host->abi_minor;
  tenon_backend_info healthy{};
  healthy.struct_size = sizeof healthy;
  healthy_query(&host_info, &healthy);
  const tenon_backend_table* healthy_table = nullptr;
  const tenon_status status = healthy.create(host, out_backend, &healthy_table, error);
  if (status != TENON_OK) return status;
  static const tenon_backend_table table = modified(*healthy_table);
  *out_table = &table;
  return TENON_OK;
}

__attribute__((constructor)) void at_open() {
#if defined(__SSE2__)
  // A library linked with -ffast-math does this when it is opened.
  if (fault_is("flush_to_zero")) _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  if (fault_is("crashes_at_open")) crash_with_output();
  if (fault_is("exits_at_open")) std::exit(0);
}
__attribute__((destructor)) void at_exit() {
  if (fault_is("crashes_at_exit")) crash();
  if (fault_is("exits_at_exit")) std::_Exit(3);
}

}  // namespace

extern "C" TENON_EXPORT tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  while (fault_is("hangs_in_query")) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (fault_is("query_throws")) throw std::logic_error("nobody expects this");
  if (fault_is("query_fails")) return TENON_INTERNAL;
  const std::uint32_t offered = out_info->struct_size;
  const tenon_status status = healthy_query(host, out_info);
  out_info->create = create;
  out_info->name = fault_name;
  if (fault_is("wrong_major")) out_info->abi_major = TENON_ABI_MAJOR + 7;
  if (fault_is("too_new")) out_info->abi_minor_lowest = TENON_ABI_MINOR + 1, out_info->abi_minor_highest = TENON_ABI_MINOR + 3;
  if (fault_is("wrong_major") || fault_is("too_new") || fault_is("refuses_host")) return TENON_INCOMPATIBLE;
  if (fault_is("small_info")) out_info->struct_size = 40;
  if (fault_is("bad_name")) out_info->name = "Bad Name";
  if (fault_is("other_name")) out_info->name = "healthy";
  if (fault_is("overrun")) reinterpret_cast<unsigned char*>(out_info)[offered + 8] = 1;
  if (fault_is("foreign_sanitizer")) {
    out_info->sanitizer = host->sanitizer == TENON_SANITIZER_THREAD ? TENON_SANITIZER_ADDRESS : TENON_SANITIZER_THREAD;
  }
  if (fault_is("foreign_platform")) out_info->platform = "plan9-mips";
  if (fault_is("query_starts_thread")) std::thread([] { std::this_thread::sleep_for(std::chrono::seconds(2)); }).detach();
  if (fault_is("impure_query")) {
    static std::int32_t calls = 0;
    out_info->priority = ++calls;
  }
  if (fault_is("unloadable")) out_info->flags = TENON_BACKEND_UNLOADABLE;
  if (fault_is("digest_mismatch")) {
    static const tenon_op_digest digests[] = {{TENON_OP_Add, 14, 0x0ac45bf52f7b52f5ull}, {TENON_OP_Relu, 14, 0xbadull}};
    out_info->digests = digests;
  }
  return status;
}
