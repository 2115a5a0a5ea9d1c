// SPDX-License-Identifier: Apache-2.0
// What `tenon explain --roofline` says of kernels and their sums.
#include "cli/roofline_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test_numbers.h"

using namespace tenon;
using namespace tenon::cli;
using test::contains;

namespace {

std::string op_of(const Trace::Kernel& kernel) {
  return kernel.nodes == 0 ? cli::name_of(kernel) : kernel.op;
}

/// A kernel of a device whose peaks are 100 GFLOP/s of f32, 400 of i8, and 10 GB/s.
Trace::Kernel kernel(const std::string& node, const std::string& op, const std::string& algorithm, std::uint64_t ns, std::uint64_t flops,
                     std::uint64_t size_bytes, DType dtype = DType::f32) {
  return {.node = node,
          .op = op,
          .device = "cpu:0",
          .algorithm = algorithm,
          .runs = 1,
          .duration_ns = ns,
          .best_ns = ns,
          .flops = flops,
          .size_bytes = size_bytes,
          .nodes = 1,
          .dtype = dtype};
}

Roofline roofline_of(const std::vector<Trace::Kernel>& kernels, const Peaks* expected = nullptr) {
  Roofline roofline{.group = "op", .dtype = DType::f32, .groups = {}, .kernels = {}, .roofs = {}, .steps = 1, .expected = expected};
  add_kernels(kernels, op_of, roofline);
  roofline.roofs.push_back({.device = "cpu:0", .gflops = {{DType::f32, 100}, {DType::i8, 400}}, .gb_per_s = 10});
  complete(roofline);
  return roofline;
}

const Work& find(const std::vector<Work>& list, const std::string& name) {
  for (const Work& work : list) {
    if (work.name == name) return work;
  }
  FAIL("nothing is called " << name);
  return list[0];
}

}  // namespace

TEST_CASE("roofline: a change of layout is no kernel of the convolution that it was inserted for") {
  Trace::Kernel inserted = kernel("conv", "Conv", "Transpose", 1000, 0, 8000);
  inserted.nodes = 0;
  const Roofline roofline = roofline_of({inserted, kernel("conv", "Conv", "Conv+relu", 3000, 200'000, 8000)});
  CHECK(find(roofline.groups, "Conv").kernels == 1);
  CHECK(find(roofline.groups, "Conv").duration_ns == 3000);
  CHECK(find(roofline.groups, "Transpose (inserted)").kernels == 1);
  CHECK(roofline.kernels[0].algorithm == "Conv+relu");
  CHECK(roofline.kernels[1].algorithm == "Transpose (inserted)");
}

TEST_CASE("roofline: percent are of the peak of the dtype that a kernel computes with, those of a group of its kernels' bounds") {
  const Roofline roofline = roofline_of({kernel("a", "MatMul", "MatMul", 2000, 100'000, 10),             // 1000 ns of f32
                                         kernel("b", "MatMul", "MatMul", 1000, 200'000, 10, DType::u8),  // 500 ns of i8
                                         kernel("c", "MatMul", "MatMul", 4000, 10, 20'000)});            // 2000 ns of memory
  CHECK(*find(roofline.kernels, "a").percent_of_roof() == doctest::Approx(50));
  CHECK(*find(roofline.kernels, "b").percent_of_roof() == doctest::Approx(50));
  CHECK(*find(roofline.kernels, "c").percent_of_roof() == doctest::Approx(50));
  CHECK(std::string(find(roofline.kernels, "b").bound()) == "compute");
  CHECK(std::string(find(roofline.kernels, "c").bound()) == "memory");
  const Work& all = find(roofline.groups, "MatMul");
  CHECK(*all.percent_of_roof() == doctest::Approx(50));  // 3500 of 7000 ns; the larger one of all arithmetic and all traffic is 2002 ns
  CHECK(std::string(all.bound()) == "memory");
}

TEST_CASE("roofline: expected times of groups add up to those of kernels") {
  const Peaks peaks{.name = "test", .source = "a test", .gflops = {{DType::f32, 100}}, .gb_per_s = 10, .launch_us = 1};
  const Roofline roofline = roofline_of({kernel("a", "Conv", "Conv", 1, 100'000, 10), kernel("b", "Conv", "Conv", 1, 10, 20'000)}, &peaks);
  CHECK(roofline.duration_ns() == 1000 + 2000 + 2 * 1000);
  CHECK(roofline.groups[0].duration_ns == roofline.duration_ns());
  CHECK(roofline.share(roofline.groups[0]) == doctest::Approx(100));
}

TEST_CASE("roofline: the text says why kernels exceed the roof where they do, and only there") {
  const std::string caches = "stays in the caches", winograd = "Winograd";
  std::string text = as_text(roofline_of({kernel("a", "Conv", "Conv", 2000, 100'000, 10)}));
  CHECK(contains(text, "Shortest times of 1 run, 2.0 us in all"));
  CHECK(contains(text, "peak 100.0 GFLOP/s of f32 and 10.0 GB/s of memory; work below 10 FLOP/byte is memory-bound"));
  CHECK(!contains(text, caches));
  CHECK(!contains(text, winograd));
  text = as_text(roofline_of({kernel("a", "Conv", "Conv", 980, 100'000, 10)}));  // 102 %: within what peaks are measured by
  CHECK(!contains(text, winograd));
  text = as_text(roofline_of({kernel("a", "Conv", "Conv", 500, 100'000, 10)}));
  CHECK(!contains(text, caches));
  CHECK(contains(text, winograd));
  text = as_text(roofline_of({kernel("a", "Add", "Add", 500, 10, 10'000)}));
  CHECK(contains(text, caches));
  CHECK(!contains(text, winograd));
}

TEST_CASE("roofline: a row counts the kernels that ran in its launch") {
  Trace::Kernel joined = kernel("pool", "MaxPool", "MaxPool (joined)", 0, 100, 100);
  const Roofline roofline = roofline_of({kernel("conv", "Conv", "Conv+relu", 3000, 200'000, 8000), joined});
  REQUIRE(roofline.kernels.size() == 1);
  CHECK(roofline.kernels[0].joined == 1);
  CHECK(roofline.kernels[0].flops == 200'100);
  CHECK(contains(as_text(roofline), "Conv+relu, 1 joined"));
}

TEST_CASE("roofline: names are shortened for lines that fit into a terminal, and columns stay aligned") {
  const std::string name = "encoder/layer.0/attention/output/dense/MatMul/matmul/quantize_linear/QuantizeLinear";
  const Roofline roofline = roofline_of({kernel(name, "MatMul", "MatMul", 2000, 100'000, 10), kernel("b", "Add", "Add", 2000, 10, 1000)});
  CHECK(contains(as_text(roofline), name));
  const std::string text = as_text(roofline, 140);
  CHECK(!contains(text, name));
  CHECK(contains(text, "..."));
  CAPTURE(text);
  CHECK(!contains(text, "device"));  // there is only one, which the line of its peaks names
  std::size_t column = std::string::npos, begin = text.find("node ");
  for (int row = 0; row < 3; ++row) {  // the header and both kernels
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    CHECK(line.size() <= 140);
    const std::size_t found = line.find(row == 0 ? "us " : "2.0 ");
    if (row == 0) column = found;
    CHECK(found == column);
    begin = end + 1;
  }
}

TEST_CASE("roofline: expected times say of which dtypes the peak is not known") {
  const Peaks peaks{.name = "test", .source = "a test", .gflops = {{DType::f32, 100}}, .gb_per_s = 10, .launch_us = 1};
  const Trace::Kernel known = kernel("a", "Conv", "Conv", 1, 100'000, 10);
  const Trace::Kernel unknown = kernel("b", "Conv", "Conv", 1, 100'000, 10, DType::f64);
  CHECK(!contains(as_text(roofline_of({known}, &peaks)), "No peak"));
  CHECK(contains(as_text(roofline_of({known, unknown}, &peaks)), "No peak of f64: of kernels that compute with it only the launches"));
}
