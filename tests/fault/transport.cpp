// SPDX-License-Identifier: Apache-2.0
// The loader's messages about transports that are wrong, and versions of their ABI other than the core's.
#include "loader/transport.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "platform/conventions.h"

using tenon::loader::open_transport;
using tenon::loader::OpenTransport;
using tenon::loader::TransportRecord;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

OpenTransport opened(const std::string& name) {
  const auto& conventions = tenon::platform::conventions();
  return open_transport(
      fmt::format("{}/{}tenon_transport_{}{}", TRANSPORT_DIRECTORY, conventions.library_prefix, name, conventions.library_suffix));
}

void check_refused(const std::string& name, const std::string& text) {
  CAPTURE(name);
  const TransportRecord record = opened(name).record;
  CHECK_FALSE(record.usable);
  CHECK_MESSAGE(contains(record.text, text), record.text);
  CHECK_FALSE(record.remedy.empty());
}

}  // namespace

TEST_CASE("transport: one of this minor and one of a later minor are taken, with the functions that this core knows") {
  for (const char* name : {"healthy", "later_minor"}) {
    CAPTURE(name);
    const OpenTransport transport = opened(name);
    REQUIRE_MESSAGE(transport.record.usable, transport.record.text);
    CHECK(transport.record.name == name);
    tenon_transport_request request{};
    request.struct_size = sizeof request;
    tenon_transport* handle = nullptr;
    const tenon_transport_table* table = nullptr;
    REQUIRE(transport.info.create(&request, &handle, &table, nullptr) == TENON_OK);
    CHECK(table->struct_size > sizeof(tenon_transport_table));
    tenon_transport_group group{};
    group.struct_size = sizeof group;
    CHECK(table->group(handle, &group, nullptr) == TENON_OK);
    CHECK(group.size == 1);
    table->destroy(handle);
  }
}

TEST_CASE("transport: what cannot be used is refused with the reason and a remedy") {
  check_refused("needs_newer", fmt::format("works with versions {0}.{1} to {0}.{2} of the ABI of transports, expected {0}.0 to {0}.{3}",
                                           TENON_TRANSPORT_ABI_MAJOR, TENON_TRANSPORT_ABI_MINOR + 7, TENON_TRANSPORT_ABI_MINOR + 8,
                                           TENON_TRANSPORT_ABI_MINOR));
  check_refused("other_major", fmt::format("works with versions {}.0", TENON_TRANSPORT_ABI_MAJOR + 1));
  check_refused("no_create", "gave no name, or no `create`");
  check_refused("bad_name", "gave no name, or no `create`");
  check_refused("query_fails", "its query returned");
  check_refused("absent", "there is no such file");
}

#ifdef TRANSPORT_MPI
TEST_CASE("transport: mpi refuses what it does not know, before it connects") {
  const OpenTransport mpi = open_transport(TRANSPORT_MPI);
  REQUIRE_MESSAGE(mpi.record.usable, mpi.record.text);
  tenon_transport_request request{};
  request.struct_size = sizeof request;
  request.needs = TENON_NEEDS_TEST;
  std::array<char, 256> text{};
  tenon_error error{};
  error.struct_size = sizeof error;
  error.text = text.data();
  error.text_capacity = text.size();
  tenon_transport* handle = nullptr;
  const tenon_transport_table* table = nullptr;
  CHECK(mpi.info.create(&request, &handle, &table, &error) == TENON_UNSUPPORTED);
  CHECK(contains(text.data(), "needs"));
  CHECK(handle == nullptr);
}
#endif
