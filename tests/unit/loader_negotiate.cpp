// SPDX-License-Identifier: Apache-2.0
#include "loader/negotiate.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "loader/check.h"
#include "loader/complete.h"
#include "loader/dependencies.h"
#include "loader/load_error.h"
#include "loader/self_check.h"
#include "loader/vendor_ops.h"
#include "platform/path.h"
#include "platform/system.h"
#include "testing.h"

using namespace tenon::loader;
using namespace tenon::test;

namespace {

tenon_host_info host_of(std::uint32_t major, std::uint32_t lowest, std::uint32_t highest) {
  return tenon_host_info{.struct_size = sizeof(tenon_host_info),
                         .abi_major = major,
                         .abi_minor_lowest = lowest,
                         .abi_minor_highest = highest,
                         .build_id = "tenon 9.9",
                         .platform = "linux-x86_64"};
}

tenon_status never_called(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*) {
  return TENON_INTERNAL;
}

tenon_backend_info info_of(std::uint32_t major, std::uint32_t lowest, std::uint32_t highest) {
  return tenon_backend_info{.struct_size = sizeof(tenon_backend_info),
                            .abi_major = major,
                            .abi_minor_lowest = lowest,
                            .abi_minor_highest = highest,
                            .name = "fake",
                            .build_id = "fake 3.1",
                            .create = never_called};
}

/// The LoadError that `call` throws; the test fails if it throws none.
template <class Call>
LoadError refusal_of(Call&& call) {
  try {
    call();
  } catch (const LoadError& refusal) {
    CHECK_FALSE(refusal.text.empty());
    CHECK_FALSE(refusal.remedy.empty());
    return refusal;
  }
  FAIL("expected a refusal");
  return {TENON_OK, "", ""};
}

}  // namespace

TEST_CASE("negotiate: the highest common minor version is used") {
  CHECK(negotiate_version(host_of(1, 2, 5), info_of(1, 1, 3)) == 3);
  CHECK(negotiate_version(host_of(1, 2, 5), info_of(1, 5, 9)) == 5);
  CHECK(negotiate_version(host_of(1, 2, 5), info_of(1, 0, 2)) == 2);
  CHECK(negotiate_version(host_of(0, 1, 1), info_of(0, 1, 1)) == 1);
}

TEST_CASE("negotiate: disjoint ranges are rejected with both ranges and the side to upgrade") {
  LoadError refusal = refusal_of([] { negotiate_version(host_of(1, 2, 5), info_of(1, 6, 8)); });
  CHECK(refusal.status == TENON_INCOMPATIBLE);
  CHECK(refusal.text == "the core supports ABI 1.2 to 1.5 (build 'tenon 9.9'), the plugin ABI 1.6 to 1.8 (build 'fake 3.1')");
  CHECK(contains(refusal.remedy, "install a Tenon that supports ABI 1.6 to 1.8"));
  refusal = refusal_of([] { negotiate_version(host_of(1, 2, 5), info_of(1, 0, 1)); });
  CHECK(contains(refusal.remedy, "install a newer build of the plugin"));
  refusal = refusal_of([] { negotiate_version(host_of(2, 0, 5), info_of(1, 0, 9)); });
  CHECK(contains(refusal.remedy, "install a newer build of the plugin"));
  refusal = refusal_of([] { negotiate_version(host_of(1, 0, 5), info_of(2, 0, 9)); });
  CHECK(contains(refusal.remedy, "install a Tenon that supports ABI 2.0 to 2.9"));
  refusal = refusal_of([] { negotiate_version(host_of(1, 0, 5), info_of(1, 4, 3)); });
  CHECK(contains(refusal.text, "the plugin's range is empty"));
}

TEST_CASE("negotiate: the host fills its info completely") {
  const tenon_host_info& host = host_info();
  CHECK(host.struct_size == sizeof(tenon_host_info));
  CHECK(host.abi_minor_lowest <= host.abi_minor_highest);
  CHECK(contains(host.build_id, "tenon "));
  CHECK(contains(host.platform, "-"));
}

TEST_CASE("negotiate: an instrumented plugin needs a host with the same sanitizers, a plain one fits every host") {
  CHECK_NOTHROW(check_sanitizers(TENON_SANITIZER_NONE, TENON_SANITIZER_NONE));
  CHECK_NOTHROW(check_sanitizers(TENON_SANITIZER_ADDRESS, TENON_SANITIZER_NONE));
  CHECK_NOTHROW(check_sanitizers(TENON_SANITIZER_THREAD, TENON_SANITIZER_THREAD));
  const LoadError refusal = refusal_of([] { check_sanitizers(TENON_SANITIZER_NONE, TENON_SANITIZER_ADDRESS); });
  CHECK(refusal.text == "it was built with AddressSanitizer, the core with no sanitizer");
  CHECK_THROWS_AS(check_sanitizers(TENON_SANITIZER_ADDRESS, TENON_SANITIZER_THREAD), LoadError);
}

TEST_CASE("negotiate: a required sanitizer runtime is detected before the library is opened") {
  CHECK(sanitizer_of({"libstdc++.so.6", "libasan.so.8"}) == TENON_SANITIZER_ADDRESS);
  CHECK(sanitizer_of({"libtsan.so.2"}) == TENON_SANITIZER_THREAD);
  CHECK(sanitizer_of({"libclang_rt.msan-x86_64.so"}) == TENON_SANITIZER_MEMORY);
  CHECK(sanitizer_of({"libc.so.6"}) == TENON_SANITIZER_NONE);
}

TEST_CASE("negotiate: names must be valid device names") {
  for (const char* name : {"a", "cuda", "my_gpu2"}) CHECK(is_valid_name(name));
  for (const char* name : {"", "2cuda", "_a", "Cuda", "my gpu", "a:0", "a-b"}) CHECK_FALSE(is_valid_name(name));
  CHECK_FALSE(is_valid_name(nullptr));
}

TEST_CASE("negotiate: an info without create or with an unnamed option is rejected") {
  std::vector<std::string> warnings;
  tenon_backend_info info = info_of(0, 1, 1);
  CHECK_NOTHROW(check_answer(host_of(0, 1, 1), info, warnings));
  CHECK(warnings.empty());
  info.create = nullptr;
  CHECK(contains(refusal_of([&] { check_answer(host_of(0, 1, 1), info, warnings); }).text, "no `create`"));
  info = info_of(0, 1, 1);
  const tenon_option option{};
  info.options = &option;
  info.option_count = 1;
  CHECK(contains(refusal_of([&] { check_answer(host_of(0, 1, 1), info, warnings); }).text, "option 0 of 1 has no name"));
  const tenon_option choice{"kernels", TENON_OPTION_CHOICE, 0, "tuned", nullptr, 0, 0, nullptr};
  info.options = &choice;
  CHECK(contains(refusal_of([&] { check_answer(host_of(0, 1, 1), info, warnings); }).text, "option 'kernels' is a choice without choices"));
  info = info_of(0, 1, 1);
  info.name = nullptr;
  CHECK(contains(refusal_of([&] { check_answer(host_of(0, 1, 1), info, warnings); }).text, "it has no name"));
}

TEST_CASE("negotiate: listed ops without a digest cause a warning, vendor ops do not") {
  const tenon_capability offered[] = {{TENON_OP_Relu, 14, 1, 0, 0}, {TENON_OP_Add, 14, 1, 0, 0}, {TENON_OP_VENDOR + 1, 1, 1, 0, 0}};
  const tenon_op_digest digest{TENON_OP_Add, 14, 1};
  tenon_backend_info info = info_of(0, 1, 1);
  info.capabilities = offered;
  info.capability_count = 3;
  info.digests = &digest;
  info.digest_count = 1;
  std::vector<std::string> warnings;
  check_answer(host_of(0, 1, 1), info, warnings);
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "no schema digest for Relu-14:"));
}

TEST_CASE("negotiate: an op of the vendor that is not valid refuses the backend, and is named") {
  static const auto infer = [](const tenon_tensor_desc*, std::uint32_t, const tenon_attributes_vendor*, tenon_vendor_result*, std::uint32_t,
                               tenon_error*) -> tenon_status { return TENON_OK; };
  const tenon_vendor_op good{TENON_OP_VENDOR, 1, "com.example", "SoftClip", "x:T -> y:T; limit:float=1", infer};
  const auto refused = [&](auto spoil) {
    tenon_vendor_op ops[] = {good, good};
    ops[1].id = TENON_OP_VENDOR + 1;
    ops[1].version = 2;
    spoil(ops[1]);
    return refusal_of([&] { check_vendor_ops(ops); }).text;
  };
  CHECK_NOTHROW(check_vendor_ops({&good, 1}));
  CHECK(refused([](tenon_vendor_op& op) { op.id = 7; }) ==
        "its op com.example.SoftClip-2: expected an id of at least 1073741824 (TENON_OP_VENDOR), got 7");
  CHECK(contains(refused([](tenon_vendor_op& op) { op.id = TENON_OP_VENDOR; }), "got 1073741824, which another of its ops has"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.version = 1; }), "expected each version of an op once"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.version = 0; }), "expected a version of at least 1"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.domain = "Com"; }), "its op Com.SoftClip-2: expected a domain"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.domain = nullptr; }), "its op NULL.SoftClip-2: expected a domain"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.name = "soft-clip"; }), "expected a name of letters"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.infer = nullptr; }), "expected a function in `infer`, got NULL"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.schema = nullptr; }), "expected a schema, got NULL"));
  CHECK(contains(refused([](tenon_vendor_op& op) { op.schema = "x:T"; }), "its schema 'x:T' cannot be read: expected '<operands>"));

  tenon_backend_info info = info_of(0, 1, 1);
  info.vendor_ops = &good;
  info.vendor_op_count = 1;
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "its vendor_ops are 0 bytes apart"));
  info.vendor_op_stride = sizeof good;
  const Answer answer = complete_answer(info);
  CHECK(vendor_op_name(answer.info, TENON_OP_VENDOR, 1) == "com.example.SoftClip-1");
  CHECK(vendor_op_name(answer.info, TENON_OP_VENDOR + 9, 1) == "op 1073741833");
}

TEST_CASE("digests: only an op version that both define differently is disabled") {
  const tenon_op_digest core[] = {{TENON_OP_Add, 14, 1}, {TENON_OP_Relu, 14, 2}, {TENON_OP_Sub, 14, 3}};
  const tenon_op_digest plugin[] = {{TENON_OP_Relu, 14, 99}, {TENON_OP_Add, 14, 1}, {TENON_OP_Sub, 13, 77}, {TENON_OP_VENDOR, 1, 5}};
  const auto off = compare_digests(core, plugin);
  REQUIRE(off.size() == 1);
  CHECK(off[0].op == TENON_OP_Relu);
  CHECK(off[0].version == 14);
  CHECK(contains(off[0].reason, "0000000000000002 in the core and 0000000000000063 in the plugin"));
}

TEST_CASE("complete: fields beyond the sender's size read as zero, fields beyond ours are dropped") {
  tenon_plan_info sent{.struct_size = offsetof(tenon_plan_info, workspace_alignment_bytes),
                       .kernel_count = 3,
                       .workspace_size_bytes = 4,
                       .workspace_alignment_bytes = 5};
  const tenon_plan_info got = completed(sent);
  CHECK(got.struct_size == sizeof(tenon_plan_info));
  CHECK(got.kernel_count == 3);
  CHECK(got.workspace_size_bytes == 4);
  CHECK(got.workspace_alignment_bytes == 0);
  sent.struct_size = 4096;
  CHECK(completed(sent).workspace_alignment_bytes == 5);
}

TEST_CASE("complete: a field that the size covers in part is not read") {
  tenon_plan_info sent{
      .struct_size = offsetof(tenon_plan_info, workspace_size_bytes) + 4, .kernel_count = 3, .workspace_size_bytes = ~std::uint64_t{0}};
  CHECK(completed(sent).workspace_size_bytes == 0);
  CHECK(completed(sent).kernel_count == 3);
}

TEST_CASE("complete: arrays of a newer plugin are read with its stride") {
  struct Newer {
    tenon_capability known;
    std::uint64_t added;
  };
  const std::array<Newer, 2> sent{{{{TENON_OP_Add, 14, 8, 1, 0}, 111}, {{TENON_OP_Relu, 14, 8, 2, 0}, 222}}};
  tenon_backend_info info = info_of(0, 1, 1);
  info.capabilities = &sent[0].known;
  info.capability_count = 2;
  info.capability_stride = sizeof(Newer);
  const Answer answer = complete_answer(info);
  REQUIRE(answer.capabilities.size() == 2);
  CHECK(answer.capabilities[1].op == TENON_OP_Relu);
  CHECK(answer.capabilities[1].features == 2);
  CHECK(answer.info.capabilities == answer.capabilities.data());
  CHECK(answer.info.capability_stride == sizeof(tenon_capability));
}

TEST_CASE("complete: an info of a newer plugin is accepted, one smaller than the first version is not") {
  tenon_backend_info info = info_of(0, 1, 1);
  info.struct_size = sizeof info + 64;
  CHECK(complete_answer(info).info.struct_size == sizeof info);
  info.struct_size = sizeof info - 8;
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "less than the"));
}

TEST_CASE("complete: arrays inconsistent with their counts are rejected") {
  tenon_backend_info info = info_of(0, 1, 1);
  info.digest_count = 2;
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "it has 2 op digests and hands over none"));
  info = info_of(0, 1, 1);
  const tenon_option option{};
  info.options = &option;
  info.option_count = 1;
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "its options are 0 bytes apart"));
  info.option_stride = sizeof option + 4;  // its second option would be misaligned
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "bytes apart, expected a multiple of 8 up to 1024"));
  info.option_stride = 4096;  // an element never grows that far: what lies behind is not the array
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "its options are 4096 bytes apart"));
  info.options = nullptr;
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "it has 1 options and hands over none"));
  info.options = &option;
  info.option_stride = sizeof option;
  info.option_count = 0xffffffffu;
  CHECK(contains(refusal_of([&] { complete_answer(info); }).text, "too many"));
}

TEST_CASE("self-check: the floating-point environment is described and restored") {
  const FloatingPoint before = FloatingPoint::current();
  CHECK_FALSE(FloatingPoint::current().change_since(before));
  before.restore();
  CHECK_FALSE(FloatingPoint::current().change_since(before));
}

TEST_CASE("self-check: answers compare text by content, and the differing field is reported") {
  const tenon_backend_info first = info_of(0, 1, 1);
  tenon_backend_info second = first;
  const std::string same = "fake";
  second.name = same.c_str();
  CHECK_FALSE(difference(first, second));
  second.vendor = "somebody";
  CHECK(difference(first, second) == "vendor");
  second = first;
  second.priority = 7;
  CHECK(difference(first, second) == "priority");
}

TEST_CASE("dependencies: a running program has no missing libraries") {
  const Missing missing = find_missing(tenon::platform::path_of(tenon::platform::executable_path()));
  CHECK(missing.libraries.empty());
  CHECK(missing.versions.empty());
}
