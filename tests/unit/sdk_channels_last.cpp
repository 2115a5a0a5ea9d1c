// SPDX-License-Identifier: Apache-2.0
// Images with channels last: transposed where a chain of such kernels begins and ends, and not in between.
#include "sdk_channels_last_testing.h"

namespace tenon::sdk_test {
namespace {

TEST_CASE("sdk: a single convolution is transposed on input and on output") {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{2, 3, 4}}) {
    Images images;
    images.conv(images.net.input(shape), 4, true);
    CHECK(check(images.net) == 3);
    CHECK(check(images.net, TENON_FUSION_OFF) == 3);
  }
}

TEST_CASE("sdk: an instance whose kernel does not request channels last keeps the graph's order") {
  for (const std::int64_t channels : {2, 3}) {
    Images images;
    const auto x = images.conv(images.net.input({2, channels, 4, 5}), channels);
    images.conv(images.apply(TENON_OP_Relu, {x}), 4, true);
    CHECK(check(images.net, TENON_FUSION_FULL, query_either) == (channels == 2 ? 2 : 4));
  }
}

TEST_CASE("sdk: a kernel may read one image in the graph's form and write another with channels last") {
  for (const std::int64_t channels : {2, 3}) {
    Images images;
    const auto x = images.conv(images.net.input({2, channels, 4, 5}), 3);
    images.conv(images.apply(TENON_OP_Relu, {x}), 4, true);
    CHECK(check(images.net, TENON_FUSION_FULL, query_mixed) == (channels == 2 ? 3 : 4));
  }
}

TEST_CASE_FIXTURE(Images, "sdk: images with channels first take no bias along their last dimension") {
  const auto y = conv(net.input({2, 2, 4, 5}), 4);
  apply(TENON_OP_Add, {y, net.parameter({5})}, true);
  CHECK(check(net, TENON_FUSION_FULL, query_either) == 2);
}

TEST_CASE_FIXTURE(Images, "sdk: a chain of layers is transposed once on input and once on output") {
  const auto x = net.input({2, 3, 4, 5});
  const auto bias = net.parameter({4, 1, 1});
  auto y = conv(x, 4);
  y = apply(TENON_OP_Add, {y, bias});
  y = apply(TENON_OP_Relu, {y});
  y = conv(y, 6);
  y = max_pool(y);
  conv(y, 2, true);
  CHECK(check(net) == 6);  // transpose, convolution with bias and activation, convolution, pool, convolution, transpose
  CHECK(check(net, TENON_FUSION_OFF) == 8);
  CHECK(check(net, TENON_FUSION_ELEMENTWISE) == 7);
}

TEST_CASE("sdk: a bias may have any shape that broadcasts along the channels") {
  for (const Shape& shape : {Shape{4, 1, 1}, Shape{1, 4, 1, 1}}) {
    Images images;
    auto y = images.conv(images.net.input({2, 3, 4, 5}), 4);
    y = images.apply(TENON_OP_Add, {images.net.input(shape), y});
    images.apply(TENON_OP_Relu, {y}, true);
    CHECK(check(images.net) == 3);
  }
  for (const Shape& shape : {Shape{5}, Shape{4, 5}, Shape{}, Shape{1}, Shape{1, 1, 4, 5}, Shape{2, 4, 1, 1}}) {
    Images images;
    auto y = images.conv(images.net.input({2, 3, 4, 5}), 4);
    images.apply(TENON_OP_Add, {y, images.net.input(shape)}, true);
    CHECK(check(images.net) == 4);
  }
}

TEST_CASE_FIXTURE(Images, "sdk: elementwise ops between convolutions work on channels last") {
  auto y = conv(net.input({2, 3, 4, 5}), 4);
  const auto gate = net.input({2, 4, 1, 1}), scalar = net.input({}), row = net.input({5});
  const auto a = apply(TENON_OP_Mul, {y, gate});
  const auto b = apply(TENON_OP_Sigmoid, {apply(TENON_OP_Add, {a, scalar})});
  const auto c = apply(TENON_OP_Add, {apply(TENON_OP_Mul, {b, y}), row});
  conv(c, 2, true);
  const std::uint32_t kernels = check(net, TENON_FUSION_OFF);
  CHECK(kernels == 9);  // two transposes, two convolutions, five ops
  CHECK(check(net) < kernels);
}

TEST_CASE_FIXTURE(Images, "sdk: an operand is transposed once for all its readers") {
  const auto x = net.input({2, 3, 4, 5}), p = net.input({2, 4, 4, 5});
  const auto y = conv(x, 4), z = conv(x, 4);
  const auto a = apply(TENON_OP_Mul, {y, p}), b = apply(TENON_OP_Mul, {p, z});
  conv(apply(TENON_OP_Add, {a, b}), 3, true);
  CHECK(check(net, TENON_FUSION_OFF) == 9);  // x, p and the result transposed; three convolutions, three ops
}

TEST_CASE("sdk: outputs are transposed back, and other readers use them with channels last") {
  Images images;
  const auto y = images.conv(images.net.input({2, 3, 4, 5}), 4, true);
  const auto z = images.apply(TENON_OP_Relu, {y}, true);
  images.conv(z, 2, true);
  CHECK(check(images.net, TENON_FUSION_OFF) == 7);  // x, y, z and the last result transposed; two convolutions, one op
  Images flat;
  const auto t = flat.conv(flat.net.input({2, 3, 4, 5}), 4);
  flat.net.node(TENON_OP_Flatten, {t}, {flat.net.output({2, 80})}, axis(1));
  CHECK(check(flat.net) == 3);
}

TEST_CASE("sdk: an image of one pixel or one channel has the same layout either way") {
  for (const Shape& shape : {Shape{2, 3, 1, 1}, Shape{2, 1, 4, 5}}) {
    Images images;
    const auto y = images.conv(images.net.input(shape), shape[1]);
    images.apply(TENON_OP_Neg, {images.conv(y, shape[1])}, false);
    const auto r = images.net.output({y == 0 ? 0 : shape[0] * shape[1] * shape[2] * shape[3]});
    images.net.node(TENON_OP_Reshape, {y}, {r});
    CHECK(check(images.net, TENON_FUSION_OFF) == 4);  // only the four nodes
  }
}

TEST_CASE("sdk: reductions use channels last with remapped axes") {
  const auto reduce = [](std::initializer_list<std::int64_t> list, bool keepdims, Shape to) {
    Images images;
    const auto y = images.conv(images.net.input({2, 3, 4, 5}), 6);
    const auto r = images.net.internal(std::move(to));
    images.net.node(TENON_OP_ReduceSum, {y}, {r}, axes(list, keepdims));
    images.apply(TENON_OP_Neg, {r}, true);
    return check(images.net, TENON_FUSION_OFF);
  };
  CHECK(reduce({2, 3}, false, {2, 6}) == 4);
  CHECK(reduce({2, 3}, true, {2, 6, 1, 1}) == 4);
  CHECK(reduce({0, 2, 3}, false, {6}) == 4);
  CHECK(reduce({1}, false, {2, 4, 5}) == 4);
  CHECK(reduce({1}, true, {2, 1, 4, 5}) == 4);
  CHECK(reduce({3}, false, {2, 6, 4}) == 4);  // channels first: read as stored
  CHECK(reduce({3}, true, {2, 6, 4, 1}) == 5);
  CHECK(reduce({0}, false, {6, 4, 5}) == 4);
  CHECK(reduce({0, 1, 2, 3}, false, {}) == 4);
}

TEST_CASE_FIXTURE(Images, "sdk: a gradient that is broadcast over an image is broadcast with channels last") {
  const auto y = conv(net.input({2, 3, 4, 5}), 6);
  const auto g = net.input({2, 6, 1, 1}), wide = net.internal({2, 6, 4, 5});
  net.node(TENON_OP_Expand, {g}, {wide});
  conv(apply(TENON_OP_Mul, {wide, y}), 2, true);
  CHECK(check(net, TENON_FUSION_OFF) == 5);  // two transposes, two convolutions, one op
}

TEST_CASE_FIXTURE(Images, "sdk: an operand made only for convolutions is transposed before it is made") {
  const auto x = net.input({2, 1, 4, 5}), shift = net.input({1, 1, 1});
  const auto a = apply(TENON_OP_Mul, {x, shift});
  conv(apply(TENON_OP_Relu, {a}), 1, true);
  CHECK(check(net, TENON_FUSION_OFF) == 3);  // one channel in, one out: nothing is transposed
}

TEST_CASE("sdk: images are sliced and concatenated with channels last") {
  Images images;
  Net& net = images.net;
  const auto x = images.net.input({2, 3, 4, 5});
  const auto a = images.conv(x, 4), b = images.conv(x, 2);
  const auto joined = net.internal({2, 6, 4, 5});
  net.node(TENON_OP_Concat, {a, b}, {joined}, axis(1));
  const auto first = net.internal({2, 6, 4, 2}), second = net.internal({2, 6, 4, 3});
  net.node(TENON_OP_Split, {joined}, {first, second}, axis(3));
  tenon_attributes_pad around{.struct_size = sizeof around, .value = 2};
  around.before[1] = 1;
  around.before[3] = 2;
  const auto padded = net.internal({2, 8, 4, 5});
  net.node(TENON_OP_Pad, {first}, {padded}, around);
  tenon_attributes_slice part{.struct_size = sizeof part};
  for (std::int64_t& step : part.steps) step = 1;
  part.starts[1] = 5;
  part.steps[1] = -2;
  part.starts[2] = 1;
  const auto taken = net.internal({2, 3, 3, 3});
  net.node(TENON_OP_Slice, {second}, {taken}, part);
  const auto shares = net.internal({2, 8, 4, 5});
  net.node(TENON_OP_Softmax, {padded}, {shares}, axis(1));
  images.conv(shares, 2, true);
  images.conv(taken, 2, true);
  CHECK(check(net) == 12);  // one transpose in, two out, four convolutions, four parts and the softmax
}

TEST_CASE("sdk: indices of a pool are transposed back only if they are read") {
  for (const bool read : {false, true}) {
    Images images;
    Net& net = images.net;
    const auto y = net.output({2, 3, 4, 4});
    const auto at = read ? net.output({2, 3, 4, 4}, TENON_DTYPE_I64) : net.internal({2, 3, 4, 4}, TENON_DTYPE_I64);
    net.node(TENON_OP_MaxPool, {net.input({2, 3, 4, 5})}, {y, at}, window_attributes());
    CHECK(check(net) == (read ? 4 : 3));
  }
}

TEST_CASE("sdk: f16 and bf16 keep channels last between the conversions") {
  std::vector<std::uint16_t> results[2];
  for (const bool is_last : {false, true}) {
    Images images;
    Net& net = images.net;
    const auto x = net.input({2, 3, 4, 5}, {}, TENON_DTYPE_BF16), y = net.output({2, 2, 4, 5}, TENON_DTYPE_BF16);
    const auto a = net.internal({2, 4, 4, 5}, TENON_DTYPE_BF16), b = net.internal({2, 4, 4, 5}, TENON_DTYPE_BF16);
    const auto v = net.input({4, 3, 1, 1}, {}, TENON_DTYPE_BF16), w = net.input({2, 4, 1, 1}, {}, TENON_DTYPE_BF16);
    net.node(TENON_OP_Conv, {x, v}, {a}, conv_attributes());
    net.node(TENON_OP_Relu, {a}, {b});
    net.node(TENON_OP_Conv, {b, w}, {y}, conv_attributes());
    Session session(1, is_last ? query_last : query_plain);
    Run run(session, net, options(TENON_FUSION_OFF));
    CHECK(run.info.kernel_count == (is_last ? 13 : 11));  // three nodes, eight conversions, and two transposes
    for (const std::uint32_t source : {x, v, w}) {
      const Floats values = some(net.values[source].count(), source);
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &values[i], sizeof bits);
        run.data<std::uint16_t>(source)[i] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
    run();
    results[is_last].assign(run.data<std::uint16_t>(y), run.data<std::uint16_t>(y) + net.values[y].count());
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("sdk: an input that has channels last is used as it is") {
  Images images;
  const auto x = images.net.input({2, 3, 4, 5}, {60, 1, 15, 3});
  images.conv(x, 4, true);
  CHECK(check(images.net) == 2);
  Images turned;
  const auto w = turned.net.input({2, 4, 5, 3}), v = turned.net.internal({2, 3, 4, 5});
  turned.net.node(TENON_OP_Transpose, {w}, {v}, axes({0, 3, 1, 2}));
  const auto y = turned.conv(v, 4), back = turned.net.output({2, 4, 5, 4});
  turned.net.node(TENON_OP_Transpose, {y}, {back}, axes({0, 2, 3, 1}));
  CHECK(check(turned.net) == 2);
}

TEST_CASE("sdk: a donated image is read before it is overwritten") {
  Images images;
  const auto x = images.net.input({2, 3, 4, 5});
  const auto y = images.conv(x, 3, true);
  images.apply(TENON_OP_Mul, {x, images.apply(TENON_OP_Neg, {x})}, true);
  images.net.donate(x, y);
  check(images.net);
  check(images.net, TENON_FUSION_OFF);
  Images pixel;
  const auto p = pixel.net.input({2, 3, 1, 1});
  const auto q = pixel.conv(pixel.apply(TENON_OP_Neg, {pixel.conv(p, 3)}), 3, true);
  pixel.net.donate(p, q);
  check(pixel.net);
}

TEST_CASE("sdk: a backend that cannot transpose rejects kernels with channels last") {
  Session session(1, query_fixed);
  Images images;
  images.conv(images.net.input({2, 3, 4, 5}), 4, true);
  tenon_answer answer{};
  ErrorText error;
  const tenon_plan_options given = options();
  REQUIRE(session.table->supports(session.device, &images.net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK);
  CHECK(answer.supported == 0);
  CHECK(std::string(answer.text) == "Conv: takes images with their channels last, but there is no Transpose kernel to convert them");
}

TEST_CASE("sdk: refuse is called with the graph's form") {
  Session session(1, query_last);
  Images images;
  Net& net = images.net;
  const auto w = net.constant({4, 5, 1, 1}, Floats(20));
  net.node(TENON_OP_Conv, {net.input({2, 3, 4, 5}), w}, {net.output({2, 4, 4, 5})}, conv_attributes());
  tenon_answer answer{};
  ErrorText error;
  const tenon_plan_options given = options();
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK);
  CHECK(std::string(answer.text) == "Conv: as many channels as the weights have are expected");
}

}  // namespace
}  // namespace tenon::sdk_test
