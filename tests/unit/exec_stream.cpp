// SPDX-License-Identifier: Apache-2.0
// Streams, events and asynchronous copies, on a CPU backend and on the same backend presented as a device with separate memory.
#include "testing.h"

#include <thread>

#include "exec/context_state.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The reference backend, presented as neither inline nor host-addressable, so that the runtime treats it as an accelerator.
Device far_device(const Context& context) {
  const exec::DeviceEntry& entry = context.state()->entries[find_device(parse_device_name("reference"), context.state()->available)];
  DeviceInfo info = entry.info;
  info.name = "far:0";
  info.flags &= ~(TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS);
  return Device(
      std::shared_ptr<exec::DeviceState>(new exec::DeviceState(entry.loaded, entry.index, info, {context.state()->copy_counters})));
}

using Floats = std::vector<float>;

}  // namespace

TEST_CASE_FIXTURE(OnReference, "stream: copies to, within and from the device") {
  for (const Device& device : {context.device("reference:0"), far_device(context)}) {
    CAPTURE(device.name());
    Tensor host = device.empty_pinned(DType::f32, {4}), back = device.empty_pinned(DType::f32, {4});
    CHECK(host.on_host());
    host.copy_from(Tensor::of<float>({1, 2, 3, 4}, {4}));
    Tensor a = device.empty(DType::f32, {4}), b = device.empty(DType::f32, {4});
    const Stream stream(device);
    copy_async(host, a, stream);
    copy_async(a, b, stream);
    copy_async(b, back, stream);
    stream.synchronize();
    CHECK(back.to_vector<float>() == Floats{1, 2, 3, 4});
    Tensor part = b.narrow(0, 2, 2);
    copy_async(host.narrow(0, 0, 2), part, stream);
    stream.synchronize();
    CHECK(b.to_vector<float>() == Floats{1, 2, 1, 2});
  }
}

TEST_CASE_FIXTURE(OnReference, "stream: every pending copy keeps its memory alive") {
  const Device device = far_device(context);
  Tensor sum = Tensor::zeros(DType::f32, {64});
  {
    const Stream stream(device);
    for (int i = 0; i < 100; ++i) {
      Tensor host = Tensor::full(DType::f32, {64}, i), there = device.empty(DType::f32, {64});
      copy_async(host, there, stream);
      copy_async(there, sum, stream);
    }
  }
  CHECK(sum.to_vector<float>() == Floats(64, 99.0f));
  CHECK(device.live_size_bytes() == 0);
}

TEST_CASE_FIXTURE(OnReference, "stream: an event orders two streams, and two events measure elapsed time") {
  for (const Device& device : {context.device("reference:0"), far_device(context)}) {
    const Stream first(device);
    Stream second(device);
    Event begin(device), end(device);
    CHECK(begin.done());  // never recorded
    begin.record(first);
    Tensor host = Tensor::full(DType::f32, {1000}, 3), there = device.empty(DType::f32, {1000}), back = Tensor::zeros(DType::f32, {1000});
    copy_async(host, there, first);
    end.record(first);
    second.wait(end);
    copy_async(there, back, second);
    second.synchronize();
    CHECK(end.done());
    end.synchronize();
    CHECK(back.to_vector<float>()[999] == 3.0f);
    CHECK(end.elapsed_ns_since(begin) < 10'000'000'000u);
  }
}

TEST_CASE_FIXTURE(OnReference, "stream: invalid copies are rejected") {
  const Device device = context.device("reference:0"), far = far_device(context);
  const Stream stream(device), far_stream(far);
  Tensor a = device.empty(DType::f32, {4, 4}), host = Tensor::zeros(DType::f32, {4, 4}), other = Tensor::zeros(DType::f32, {4, 4});
  Tensor there = far.empty(DType::f32, {4, 4}), column = a.narrow(1, 0, 1), upper = a.narrow(0, 0, 3), lower = a.narrow(0, 1, 3);
  Tensor longer = Tensor::zeros(DType::f32, {5}), undefined;
  CHECK_ERROR("copy_async: expected two tensors of one dtype and shape, got f32(5) and f32(4,4)", copy_async(longer, a, stream));
  CHECK_ERROR("copy_async: got an undefined tensor", copy_async(undefined, a, stream));
  CHECK_ERROR("copy_async: expected dense tensors, got a strided source f32(4,1); contiguous() makes a dense copy",
              copy_async(host.narrow(1, 0, 1), column, stream));
  CHECK_ERROR("copy_async: expected memory that does not overlap, got two views of f32(3,4) that do", copy_async(upper, lower, stream));
  CHECK_ERROR(
      "copy_async on a stream of device 'far:0': expected a copy between that device and the host, within it, or to it from "
      "another of its backend; got a source on the host and a destination on the host",
      copy_async(host, other, far_stream));
  Event event(far);
  CHECK_ERROR("an event of device 'far:0': expected a stream of the same device, got one of 'reference:0'", event.record(stream));
  CHECK_ERROR("an event of device 'far:0': expected a begin event of the same device, got an event of device 'reference:0'",
              event.elapsed_ns_since(Event(device)));
}

TEST_CASE_FIXTURE(OnReference, "profile: copies are counted with their bytes and their time") {
  CHECK(context.profile().host_to_device.copies == 0);
  const Tensor host = Tensor::zeros(DType::f32, {1000});
  const Tensor near = host.to(context.device("reference:0"));
  CHECK(context.profile().host_to_device.copies == 1);
  CHECK(context.profile().host_to_device.size_bytes == 4000);
  CHECK(context.profile().host_to_device.duration_ns > 0);
  (void)near.to_host();
  CHECK(context.profile().device_to_host.size_bytes == 4000);
  const Device far = far_device(context);
  Tensor a = host.to(far), b = far.empty(DType::f32, {1000});
  const Stream stream(far);
  const std::uint64_t before = context.profile().device_to_device.duration_ns;
  copy_async(a, b, stream);
  stream.synchronize();
  const ContextProfile after = context.profile();
  CHECK(after.device_to_device.copies == 1);
  CHECK(after.device_to_device.size_bytes == 4000);
  CHECK(after.device_to_device.duration_ns >= before);
  CHECK(after.host_to_device.copies == 2);
}

TEST_CASE_FIXTURE(OnReference, "device memory: every view of it works as on the host") {
  for (const Device& device : {context.device("reference:0"), far_device(context)}) {
    CAPTURE(device.name());
    Tensor t = device.empty(DType::f32, {2, 3});
    t.copy_from(Tensor::of<float>({0, 1, 2, 3, 4, 5}, {2, 3}));
    CHECK(t.flip(1).to_vector<float>() == Floats{2, 1, 0, 5, 4, 3});
    CHECK(t.transpose(0, 1).contiguous().to_vector<float>() == Floats{0, 3, 1, 4, 2, 5});
    CHECK(t.transpose(0, 1).contiguous().storage()->device == t.storage()->device);
    Tensor ends = t.select(0, 1).slice(0, 2, -1, -2);
    ends.fill(9);
    CHECK(t.text() == "[[0, 1, 2],\n [9, 4, 9]]");
    CHECK(t.diagonal(1).to_vector<float>() == Floats{1, 9});
  }
}

TEST_CASE_FIXTURE(OnReference, "device memory: a size that overflows is rejected before the device is called") {
  const Device device = context.device("reference:0");
  const std::string message = "device 'reference:0': f64(2305843009213693952) needs more bytes than any memory has";
  CHECK_ERROR(message.c_str(), device.empty(DType::f64, {std::int64_t{1} << 61}));
  CHECK_ERROR(message.c_str(), device.empty_pinned(DType::f64, {std::int64_t{1} << 61}));
  CHECK_THROWS_AS(device.empty(DType::none, {1}), Error);
}

TEST_CASE_FIXTURE(OnReference, "stream: the stream of a device's programs orders work after and before them") {
  const Device device = context.default_device();
  Stream programs = Stream::of_programs(device);
  const Stream copies(device);
  Event there(device), done(device);
  Graph graph;
  const Value x = graph.input("x", DType::f32, {4});
  graph.output("y", ops::add(x, x));
  Program program(context, graph);
  Tensor a = device.empty(DType::f32, {4});
  copy_async(Tensor::of<float>({1, 2, 3, 4}, {4}), a, copies);
  there.record(copies);
  programs.wait(there);
  CHECK(test::floats(program.run({a})[0]) == Floats{2, 4, 6, 8});
  done.record(programs);
  done.synchronize();
  CHECK(done.done());
  { const Stream again = Stream::of_programs(device); }  // its destruction does not destroy the device's stream
  CHECK(test::floats(program.run({a})[0]) == Floats{2, 4, 6, 8});
}
