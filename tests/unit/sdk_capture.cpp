// SPDX-License-Identifier: Apache-2.0
// The capture block of the SDK: recording executes nothing, a replay executes the recorded work, and work that cannot be recorded is
// rejected.
#include "recording_backend.h"
#include "sdk_testing.h"

#include <string>

#include <tenon/sdk/kernel_markers.h>

namespace tenon::sdk_test {
namespace {

using test::recording::tape;

const tenon_capability& capability(const tenon_backend_info& info, tenon_op op) {
  for (std::uint32_t i = 0; i < info.capability_count; ++i) {
    if (info.capabilities[i].op == op) return info.capabilities[i];
  }
  FAIL("no such op");
  return info.capabilities[0];
}

/// A device whose streams can be recorded, and y = -(x + x) on it.
struct Studio {
  Studio() {
    tape = {};
    net.node(TENON_OP_Add, {x, x}, {between});
    net.node(TENON_OP_Neg, {between}, {y});
  }
  void begin(tenon_stream* stream) {
    ErrorText error;
    REQUIRE_MESSAGE(block().begin(stream, error) == TENON_OK, error.text());
  }
  tenon_capture* end(tenon_stream* stream) {
    ErrorText error;
    tenon_capture* capture = nullptr;
    REQUIRE_MESSAGE(block().end(stream, &capture, error) == TENON_OK, error.text());
    return capture;
  }
  void wait() {
    ErrorText error;
    REQUIRE_MESSAGE(session.table->stream_synchronize(session.stream, error) == TENON_OK, error.text());
  }
  const tenon_capture_table& block() const { return *session.table->capture; }

  Session session{1, test::recording::query};
  Net net;
  const std::uint32_t x = net.input({3}), between = net.internal({3}), y = net.output({3});
};

TEST_CASE("sdk: only backends that capture have the capture block") {
  const Session plain;
  CHECK(plain.table->capture == nullptr);
  CHECK((capability(plain.info, TENON_OP_Add).features & TENON_FEATURE_CAPTURE_SAFE) == 0);
  const Studio studio;
  REQUIRE(studio.session.table->capture != nullptr);
  CHECK((capability(studio.session.info, TENON_OP_Add).features & TENON_FEATURE_CAPTURE_SAFE) != 0);
  CHECK((capability(studio.session.info, TENON_OP_Tanh).features & TENON_FEATURE_CAPTURE_SAFE) == 0);
}

TEST_CASE("sdk: recording executes nothing; each replay computes anew, on any stream of the device") {
  Studio studio;
  Run run(studio.session, studio.net);
  run.set(studio.x, {1, 2, 3});
  run.set(studio.y, {7, 7, 7});
  studio.begin(studio.session.stream);
  run();
  tenon_capture* capture = studio.end(studio.session.stream);
  studio.wait();
  CHECK(tape.kernels == 0);
  CHECK(run.get(studio.y) == Floats{7, 7, 7});

  const auto replay = [&](tenon_stream* stream) {
    ErrorText error;
    REQUIRE_MESSAGE(studio.block().replay(capture, stream, 0, error) == TENON_OK, error.text());
    REQUIRE(studio.session.table->stream_synchronize(stream, error) == TENON_OK);
  };
  replay(studio.session.stream);
  CHECK(run.get(studio.y) == Floats{-2, -4, -6});
  run.set(studio.x, {4, 5, 6});
  tenon_stream* other = nullptr;
  REQUIRE(studio.session.table->stream_create(studio.session.device, nullptr, &other, nullptr) == TENON_OK);
  replay(other);
  studio.session.table->stream_destroy(other);
  CHECK(run.get(studio.y) == Floats{-8, -10, -12});
  CHECK(tape.kernels == 4);
  studio.block().destroy(capture);
  CHECK(tape.live == 0);

  run({{studio.x, {1, 1, 1}}});
  studio.wait();
  CHECK(run.get(studio.y) == Floats{-2, -2, -2});
}

TEST_CASE("sdk: a profiler's ranges enclose each kernel of marked plans, which are not recorded") {
  static std::string ranges;
  ranges.clear();
  static constexpr sdk::KernelMarkers markers{[](const char* name) { ranges += std::string("<") + name; }, [] { ranges += ">"; }};
  Studio studio;
  sdk::set_kernel_markers(&markers);
  Run marked(studio.session, studio.net);
  sdk::set_kernel_markers(nullptr);
  Run plain(studio.session, studio.net);
  plain({{studio.x, {1, 2, 3}}});
  studio.wait();
  CHECK(ranges.empty());
  marked({{studio.x, {1, 2, 3}}});
  studio.wait();
  CHECK(ranges == "<Add node><Neg node>");
  CHECK(marked.get(studio.y) == Floats{-2, -4, -6});

  studio.begin(studio.session.stream);
  ErrorText error;
  CHECK(marked.execute(error) == TENON_UNSUPPORTED);
  CHECK(error.says("a profiler marks the kernels"));
  studio.block().destroy(studio.end(studio.session.stream));
}

TEST_CASE("sdk: a stream in recording cannot be synchronised, recorded again or used for a replay") {
  Studio studio;
  tenon_stream* const stream = studio.session.stream;
  tenon_capture* capture = nullptr;
  ErrorText error;
  CHECK(studio.block().end(stream, &capture, error) == TENON_INVALID_ARGUMENT);
  CHECK(error.says("begin comes first"));
  CHECK(capture == nullptr);
  studio.begin(stream);
  CHECK(studio.block().begin(stream, error) == TENON_INVALID_ARGUMENT);
  CHECK(error.says("end the recording first"));
  CHECK(studio.session.table->stream_synchronize(stream, error) == TENON_INVALID_ARGUMENT);
  CHECK(error.says("stream_synchronize: the stream is being recorded"));
  capture = studio.end(stream);
  studio.begin(stream);
  CHECK(studio.block().replay(capture, stream, 0, error) == TENON_INVALID_ARGUMENT);
  studio.block().destroy(studio.end(stream));
  studio.block().destroy(capture);
  studio.wait();
}

TEST_CASE("sdk: a recording that cannot be ended leaves no capture and a usable stream") {
  Studio studio;
  Run run(studio.session, studio.net);
  run.set(studio.x, {1, 2, 3});
  tape.fail_end = true;
  studio.begin(studio.session.stream);
  run();
  tenon_capture* capture = nullptr;
  ErrorText error;
  CHECK(studio.block().end(studio.session.stream, &capture, error) == TENON_VENDOR_ERROR);
  CHECK(error.says("torn"));
  CHECK(capture == nullptr);
  run();
  studio.wait();
  CHECK(run.get(studio.y) == Floats{-2, -4, -6});
}

TEST_CASE("sdk: a kernel that reads results on the host is rejected in a recording, with its node") {
  Studio studio;
  Net net;
  const auto x = net.input({2}), between = net.internal({2}), y = net.output({2});
  net.node(TENON_OP_Neg, {x}, {between});
  net.node(TENON_OP_Tanh, {between}, {y});
  Run run(studio.session, net);
  run.set(x, {0, 0});
  studio.begin(studio.session.stream);
  ErrorText error;
  CHECK(run.execute(error) == TENON_UNSUPPORTED);
  CHECK(error.says("Tanh: its kernel reads results on the host"));
  CHECK(error.node_id() == net.nodes[1].id);
  studio.block().destroy(studio.end(studio.session.stream));
  run();
  studio.wait();
  CHECK(run.get(y) == Floats{0, 0});
}

TEST_CASE("sdk: parameters are packed by an execution, never by a recording") {
  Studio studio;
  Net net;
  const auto a = net.input({1, 2}), w = net.parameter({2, 2}), y = net.output({1, 2});
  net.node(TENON_OP_MatMul, {a, w}, {y});
  Run run(studio.session, net);
  run.set(a, {1, 1});
  run.set(w, {1, 2, 3, 4});
  ErrorText error;
  studio.begin(studio.session.stream);
  CHECK(run.execute(error) == TENON_UNSUPPORTED);
  CHECK(error.says("parameters of epoch 1 are not packed yet"));
  studio.block().destroy(studio.end(studio.session.stream));

  run();
  studio.wait();
  CHECK(tape.packs == 1);
  studio.begin(studio.session.stream);
  run();
  tenon_capture* capture = studio.end(studio.session.stream);
  run.set(a, {2, 0});
  REQUIRE(studio.block().replay(capture, studio.session.stream, 0, error) == TENON_OK);
  studio.wait();
  CHECK(run.get(y) == Floats{2, 4});
  CHECK(tape.packs == 1);
  studio.block().destroy(capture);

  run.epoch = 2;
  studio.begin(studio.session.stream);
  CHECK(run.execute(error) == TENON_UNSUPPORTED);
  studio.block().destroy(studio.end(studio.session.stream));
  run();
  studio.wait();
  CHECK(tape.packs == 2);
}

/// y = a w, with w packed for several plans.
struct SharedProduct {
  explicit SharedProduct(const Session& in) : session(in) {
    net.node(TENON_OP_MatMul, {a, w}, {y});
    ErrorText error;
    const tenon_plan_options given = options();
    const tenon_status status = session.table->pack->create(session.device, &net.abi_graph(), &given, &w, 1, &net.values[w].packed, error);
    REQUIRE_MESSAGE(status == TENON_OK, error.text());
  }
  ~SharedProduct() { session.table->pack->destroy(net.values[w].packed); }
  const Session& session;
  Net net;
  const std::uint32_t a = net.input({1, 2}), w = net.parameter({2, 2}), y = net.output({1, 2});
};

TEST_CASE("sdk: a plan is not recorded in an epoch that only another plan of its packed operands has seen") {
  // Whoever records a plan under an epoch that it never had takes acceptance for a promise that it packs nothing.
  Studio studio;
  SharedProduct product(studio.session);
  Run first(studio.session, product.net), second(studio.session, product.net);
  for (Run* run : {&first, &second}) {
    run->set(product.a, {1, 1});
    run->set(product.w, {1, 2, 3, 4});
  }
  first();
  studio.wait();
  second();
  studio.wait();
  CHECK(tape.packs == 1);
  second.epoch = 2;
  second();
  studio.wait();
  CHECK(tape.packs == 2);
  first.epoch = 2;
  ErrorText error;
  studio.begin(studio.session.stream);
  CHECK(first.execute(error) == TENON_UNSUPPORTED);
  studio.block().destroy(studio.end(studio.session.stream));
  first();
  studio.wait();
  CHECK(tape.packs == 2);
  studio.begin(studio.session.stream);
  CHECK(first.execute(error) == TENON_OK);
  studio.block().destroy(studio.end(studio.session.stream));
}

TEST_CASE("sdk: work on one stream waits for the packing on another") {
  Studio studio;
  SharedProduct product(studio.session);
  Run first(studio.session, product.net), second(studio.session, product.net);
  for (Run* run : {&first, &second}) {
    run->set(product.a, {1, 1});
    run->set(product.w, {1, 2, 3, 4});
  }
  first();  // submitted, not executed
  CHECK(tape.packs == 0);
  ErrorText error;
  tenon_stream* other = nullptr;
  REQUIRE(studio.session.table->stream_create(studio.session.device, nullptr, &other, error) == TENON_OK);
  const tenon_bindings bindings = second.bindings();
  REQUIRE(studio.session.table->plan_execute(second.plan, &bindings, second.workspace, other, error) == TENON_OK);
  REQUIRE(studio.session.table->stream_synchronize(other, error) == TENON_OK);
  CHECK(tape.packs == 1);
  CHECK(second.get(product.y) == Floats{4, 6});
  studio.wait();
  studio.session.table->stream_destroy(other);
}

}  // namespace
}  // namespace tenon::sdk_test
