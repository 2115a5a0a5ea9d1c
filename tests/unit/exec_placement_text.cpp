// SPDX-License-Identifier: Apache-2.0
// The placement report for a terminal.
#include "exec/placement_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "testing.h"

namespace tenon::test {
namespace {

const char* const long_name = "encoder/layer.0/attention/output/dense/MatMul/matmul";

Placement node(const std::string& name, const std::string& device, const std::string& reason = {}) {
  return {.node = name,
          .op = "QLinearConv",
          .requested = "openblas:0",
          .device = device,
          .reason = reason,
          .algorithm = device.empty() ? "" : "QLinearConv (inserted: Transpose before, Transpose after)",
          .dtype = DType::f32};
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    longest = std::max(longest, end - begin);
  return longest;
}

TEST_CASE("placement: in a terminal columns that say nothing new are left out, and names are shortened") {
  PlacementReport report;
  for (const char* const name : {"conv_1", long_name}) report.nodes.push_back(node(name, "openblas:0"));
  CHECK(placement_text(report) == report.str());
  CHECK(placement_text(report, 1000) == report.str());
  for (const std::size_t columns : {80, 100, 120}) {
    const std::string text = placement_text(report, columns), table = text.substr(0, text.find("2 nodes"));
    CAPTURE(text);
    CHECK(!contains(table, "device"));
    CHECK(!contains(table, "requested"));
    CHECK(contains(table, "conv_1"));
    CHECK(longest_line(text) <= columns);
  }
}

TEST_CASE("placement: in a terminal reasons are listed below the table, each once") {
  const std::string reason =
      "openblas:0 computes QLinearConv only with zero points of the dtype of its operands; devices that can: reference:0";
  PlacementReport report;
  report.nodes = {node(long_name, "reference:0", reason), node("conv_1", "openblas:0"), node("conv_2", "reference:0", reason)};
  report.nodes[1].once = true;
  CHECK(contains(report.str(), "  " + reason + "\n"));
  for (const std::size_t columns : {80, 100, 120}) {
    std::string text = placement_text(report, columns);
    CAPTURE(text);
    CHECK(longest_line(text) <= columns);
    CHECK(contains(text, "reference:0"));
    CHECK(contains(text, "requested: openblas:0\n"));
    CHECK(contains(text, "  [1]\n"));
    CHECK(contains(text, "\n[2] runs when parameters change\n"));
    CHECK(!contains(text, "[3]"));
    for (std::size_t at = 0; (at = text.find("\n    ")) != text.npos;) text.replace(at, 5, " ");
    CHECK(contains(text, "\n[1] " + reason + "\n"));
  }
  report.nodes[2].requested = "reference:0";
  CHECK(!contains(placement_text(report, 120), "requested: "));
  CHECK(contains(placement_text(report, 120), "requested"));
}

TEST_CASE("placement: in a terminal what follows the table is wrapped") {
  PlacementReport report;
  report.nodes = {node(long_name, "", "no kernel for f16"), node("conv_2", "", "no kernel for operands of f16 and of f32")};
  const std::string value = std::string(long_name) + "/" + long_name;
  report.copies = {{.value = value, .from = "openblas:0", .to = "reference:0", .size_bytes = 48}};
  report.dense_copies = {
      {.value = "x", .device = "openblas:0", .reason = "takes rows without gaps, as all of its kernels for images do", .size_bytes = 48}};
  for (const std::size_t columns : {80, 100, 120}) {
    const std::string text = placement_text(report, columns);
    CAPTURE(text);
    CHECK(longest_line(text) <= columns);
    CHECK(contains(text, "copy encoder/"));
    CHECK(!contains(text, "kernel  "));  // no node has one
    CHECK(contains(text, "2 of 2 nodes have no device, for the reasons given"));
  }
  CHECK(contains(report.str(), "copy " + value + ": openblas:0 -> reference:0, 48 bytes\n"));
  report.nodes = {node("conv_1", "openblas:0")};
  report.replay = "not recorded, since the programs of this device allocate memory in each run and so have other addresses";
  CHECK(longest_line(placement_text(report, 80)) <= 80);
  CHECK(contains(report.str(), "replay: " + report.replay + "; 0 recorded, 0 replayed\n"));
}

}  // namespace
}  // namespace tenon::test
