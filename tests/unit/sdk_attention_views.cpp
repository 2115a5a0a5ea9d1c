// SPDX-License-Identifier: Apache-2.0
// Traits::takes_view and Traits::merges_heads: heads that are read and written where the products before and after have them.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>
#include <tenon/sdk/strided.h>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_neg, kernel_reshape, kernel_tanh, kernel_transpose;

namespace attending {
namespace {

/// y = q + k + v: a stand-in for Attention that shows where it reads and writes.
template <class T>
void attention(const sdk::Call& call) {
  ++probe.kernels;
  const auto* const shape = call.inputs[0].shape;
  const std::array<sdk::Strides, 3> strides{sdk::strides_of(call.inputs[0]), sdk::strides_of(call.inputs[1]),
                                            sdk::strides_of(call.inputs[2])};
  sdk::for_each_element(shape, 4, strides, [&](std::int64_t i, const auto& at) {
    const std::int64_t e = i % shape[3], s = i / shape[3] % shape[2], h = i / (shape[3] * shape[2]) % shape[1],
                       b = i / (shape[3] * shape[2] * shape[1]);
    const std::int64_t to = call.merged_heads ? ((b * shape[2] + s) * shape[1] + h) * shape[3] + e : i;
    call.output<T>(0)[to] = call.input<T>(0)[at[0]] + call.input<T>(1)[at[1]] + call.input<T>(2)[at[2]];
  });
}
/// Rows of neighbouring elements, but not of v.
bool takes_view(const sdk::Call& call, std::uint32_t input) {
  return input < 2 && call.inputs[input].strides[3] == 1;
}
bool merges_heads(const sdk::Call& call) {
  return call.inputs[0].shape[2] > 1;
}

}  // namespace
TENON_KERNEL_WITH(attention, (sdk::Traits{.takes_view = takes_view, .merges_heads = merges_heads}), float)
}  // namespace attending

namespace {

constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Tanh, 13, 0, &kernel_tanh},
    {TENON_OP_Reshape, 14, 0, &kernel_reshape},
    {TENON_OP_Transpose, 13, 0, &kernel_transpose},
    {TENON_OP_Attention, 24, 0, &attending::kernel_attention},
    {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec attends{"attends", "1", "tests", "attention of views", nullptr, 1, 0, {}, [](sdk::Host host) {
                                              return sdk::make_cpu_backend(host, "attention of views");
                                            }};
  return attends;
}
constexpr tenon_backend_query_fn query = sdk::query<spec, rows>;

/// Heads (B, H, S, 2) of rows (B, S, H, 2), or of what `order` makes heads of; their results as rows again, and the negative of those.
struct Heads {
  Net net;
  std::uint32_t x[3], heads[3], y, merged, z;

  Heads(const Shape& shape, std::initializer_list<std::int64_t> order, std::initializer_list<std::int64_t> back = {0, 2, 1, 3},
        tenon_dtype dtype = TENON_DTYPE_F32) {
    Shape given(4), after;
    std::size_t d = 0;
    for (const std::int64_t from : order) given[static_cast<std::size_t>(from)] = shape[d++];
    for (const std::int64_t from : back) after.push_back(shape[static_cast<std::size_t>(from)]);
    for (int i = 0; i < 3; ++i) {
      x[i] = net.input(given, {}, dtype);
      heads[i] = net.internal(shape, dtype);
      net.node(TENON_OP_Transpose, {x[i]}, {heads[i]}, axes(order));
    }
    y = net.internal(shape, dtype);
    merged = net.internal(after, dtype);
    z = net.output(after, dtype);
    tenon_attributes_attention attributes{.struct_size = sizeof attributes, .scale = 1};
    net.node(TENON_OP_Attention, {heads[0], heads[1], heads[2], TENON_NO_INDEX}, {y, TENON_NO_INDEX}, attributes);
    net.node(TENON_OP_Transpose, {y}, {merged}, axes(back));
    net.node(TENON_OP_Neg, {merged}, {z});
  }

  std::string algorithm() {
    Session session(1, query);
    Run run(session, net);
    tenon_profile_record records[8] = {};
    std::uint32_t count = 0;
    ErrorText error;
    REQUIRE(session.table->profile->read(run.plan, 0, records, sizeof records[0], 8, &count, error) == TENON_OK);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (std::string(records[i].algorithm).rfind("Attention", 0) == 0) return records[i].algorithm;
    }
    return "none";
  }

  void check(std::uint32_t kernels, std::uint32_t fusion = TENON_FUSION_FULL) {
    Session session(1, query);
    Run run(session, net, options(fusion));
    CHECK(run.info.kernel_count == kernels);
    for (int i = 0; i < 3; ++i) {
      Floats values(static_cast<std::size_t>(net.values[x[i]].count()));
      for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>(j * (i == 0 ? 1 : i == 1 ? 100 : 10000));
      run.set(x[i], values);
    }
    run();
    const Floats got = run.get(z);
    for (std::size_t j = 0; j < got.size(); ++j) {
      // Whatever the order is, rows come back as they were given if it is that of `back` too.
      if (net.values[x[0]].shape == net.values[z].shape) CHECK(got[j] == -static_cast<float>(j) * 10101);
    }
  }
};

TEST_CASE("sdk: heads are read and written as rows by a kernel that says so") {
  Heads({2, 3, 4, 2}, {0, 2, 1, 3}).check(3);                    // a copy of v, the kernel, the negative
  Heads({2, 3, 4, 2}, {0, 2, 1, 3}).check(3, TENON_FUSION_OFF);  // the Transpose after it is a view that Neg reads
  Heads({2, 3, 1, 2}, {0, 2, 1, 3}).check(2);                    // heads of one row are dense, and not merged
}

TEST_CASE("sdk: heads whose elements are apart are copied") {
  Heads({2, 3, 4, 2}, {0, 1, 3, 2}, {0, 1, 3, 2}).check(5);  // three copies; the result is transposed in another way, a view
}

TEST_CASE("sdk: the order of dimensions of one element does not matter to merged heads") {
  Heads net({1, 3, 4, 2}, {0, 2, 1, 3}, {2, 0, 1, 3});
  Session session(1, query);
  Run run(session, net.net);
  CHECK(run.info.kernel_count == 3);
  for (const std::uint32_t x : net.x) {
    Floats values(24);
    for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>(j);
    run.set(x, values);
  }
  run();
  for (std::size_t j = 0; j < 24; ++j) CHECK(run.get(net.z)[j] == -3 * static_cast<float>(j));
}

TEST_CASE("sdk: what else reads heads that are merged reads a view, or they are not merged") {
  Heads viewed({2, 3, 4, 2}, {0, 2, 1, 3});
  const auto negative = viewed.net.output({2, 3, 4, 2});
  viewed.net.node(TENON_OP_Neg, {viewed.y}, {negative});
  viewed.check(4);  // a copy of v, the kernel, two negatives
  CHECK(viewed.algorithm() == "Attention+merged_heads");
  Heads copied({2, 3, 4, 2}, {0, 2, 1, 3});
  copied.net.node(TENON_OP_Tanh, {copied.y}, {copied.net.output({2, 3, 4, 2})});  // reads dense operands only
  copied.check(4);
  CHECK(copied.algorithm() == "Attention");
}

}  // namespace
}  // namespace tenon::sdk_test
