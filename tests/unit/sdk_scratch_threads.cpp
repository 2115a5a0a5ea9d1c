// SPDX-License-Identifier: Apache-2.0
// Scratch memory suffices for runs with fewer threads than the plan was made for.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_neg;

namespace dividing {
namespace {

template <class T>
void tanh(const sdk::Call& call) {
  std::memset(call.scratch, 0xff, 4096);
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) call.output<T>(0)[i] = call.input<T>(0)[i];
}
/// Three threads need more memory than four, as if each had a part of a block of its own.
std::size_t scratch(const sdk::Call& call) {
  return call.host.thread_count() == 3 ? 4096 : 64;
}

}  // namespace
TENON_KERNEL_WITH(tanh, (sdk::Traits{.scratch = scratch}), float)
}  // namespace dividing

namespace {

constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Tanh, 13, 0, &dividing::kernel_tanh},
    {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec divides{"divides", "1", "tests", "scratch by threads", nullptr, 1, 0, {}, [](sdk::Host host) {
                                              return sdk::make_cpu_backend(host, "scratch by threads");
                                            }};
  return divides;
}
constexpr tenon_backend_query_fn query = sdk::query<spec, rows>;

TEST_CASE("sdk: scratch memory is that of the number of threads that needs most") {
  for (const std::uint32_t threads : {1, 2, 3, 4, 8}) {
    Net net;
    const auto x = net.input({8}), h = net.internal({8}), y = net.output({8});
    net.node(TENON_OP_Tanh, {x}, {h});
    net.node(TENON_OP_Neg, {h}, {y});
    Session session(threads, query);
    const Run run(session, net);
    CHECK((run.info.workspace_size_bytes >= 4096) == (threads >= 3));
  }
}

}  // namespace
}  // namespace tenon::sdk_test
