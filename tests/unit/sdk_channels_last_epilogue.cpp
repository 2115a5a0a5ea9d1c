// SPDX-License-Identifier: Apache-2.0
// Images with channels last: bias, residual and activation as the epilogue of a convolution.
#include "sdk_channels_last_testing.h"

namespace tenon::sdk_test {
namespace {

std::string first_algorithm(Net& net, const std::string& stem) {
  Session session(1, query_last);
  Run run(session, net);
  ErrorText error;
  tenon_profile_record records[16] = {};
  std::uint32_t count = 0;
  REQUIRE(session.table->profile->read(run.plan, 0, records, sizeof records[0], 16, &count, error) == TENON_OK);
  for (std::uint32_t i = 0; i < std::min(count, 16u); ++i) {
    if (std::string(records[i].algorithm).rfind(stem + "+", 0) == 0) return records[i].algorithm;
  }
  return "none";
}

TEST_CASE("sdk: bias, residual and activation that follow a convolution are one call with it, whatever their order") {
  for (const bool bias_first : {true, false}) {
    Images images;
    const auto x = images.conv(images.net.input({2, 3, 4, 5}), 4);
    const auto bias = images.net.parameter({4, 1, 1});
    auto y = images.conv(images.apply(TENON_OP_Relu, {x}), 4);
    if (bias_first) y = images.apply(TENON_OP_Add, {y, bias});
    y = images.apply(TENON_OP_Add, {x, y});
    if (!bias_first) y = images.apply(TENON_OP_Add, {bias, y});
    images.apply(TENON_OP_Relu, {y}, true);
    CHECK(check(images.net) == 5);  // transpose, convolution, relu, convolution with all, transpose
    CHECK(first_algorithm(images.net, "Conv") == "Conv+bias+residual+relu");
  }
}

TEST_CASE_FIXTURE(Images, "sdk: of two added convolutions one has the other's result as its residual") {
  const auto x = net.input({2, 3, 4, 5});
  const auto a = conv(x, 4), b = conv(x, 4);
  apply(TENON_OP_Relu, {apply(TENON_OP_Add, {a, b})}, true);
  CHECK(check(net) == 4);  // transpose, two convolutions, transpose
  CHECK(first_algorithm(net, "Conv") == "Conv+residual+relu");
}

TEST_CASE("sdk: a residual may be made after the product is listed, or be an input that is overwritten later") {
  Images images;
  Net& net = images.net;
  const auto x = net.input({2, 3, 4, 5}), p = net.input({2, 4, 4, 5});
  const auto y = images.conv(x, 4), r = images.apply(TENON_OP_Tanh, {images.apply(TENON_OP_Neg, {p})});
  images.conv(images.apply(TENON_OP_Add, {y, r}), 2, true);
  const auto next = images.apply(TENON_OP_Relu, {p}, true);
  net.donate(p, next);
  check(net);
  Images direct;
  const auto q = direct.net.input({2, 5, 1, 1}), z = direct.conv(direct.net.input({2, 3, 1, 1}), 5);
  direct.apply(TENON_OP_Add, {z, q}, true);
  direct.net.donate(q, direct.apply(TENON_OP_Neg, {q}, true));
  CHECK(check(direct.net) == 2);  // convolution with residual, and the writer of the donated residual
}

TEST_CASE("sdk: broadcast, doubled or otherwise read operands are no residual") {
  Images wide;
  const auto g = wide.net.input({2, 4, 1, 1});
  wide.apply(TENON_OP_Add, {wide.conv(wide.net.input({2, 3, 4, 5}), 4), g}, true);
  CHECK(check(wide.net) == 4);
  Images doubled;
  const auto y = doubled.conv(doubled.net.input({2, 3, 4, 5}), 4);
  doubled.apply(TENON_OP_Add, {y, y}, true);
  CHECK(check(doubled.net) == 4);
  Images thrice;  // one residual, the next sum is separate
  const auto x = thrice.net.input({2, 3, 4, 5});
  const auto a = thrice.conv(x, 4), b = thrice.apply(TENON_OP_Add, {thrice.conv(x, 4), a});
  thrice.apply(TENON_OP_Add, {b, a}, true);
  CHECK(check(thrice.net) == 5);
}

}  // namespace
}  // namespace tenon::sdk_test
