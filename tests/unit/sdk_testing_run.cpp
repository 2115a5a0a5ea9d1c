// SPDX-License-Identifier: Apache-2.0
// sdk_testing_run.cpp - a plan with its memory: guard zones, poisoned bytes, operands with strides.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "sdk_testing.h"

namespace tenon::sdk_test {
namespace {
constexpr std::size_t guard = 64;
constexpr unsigned char guard_byte = 0xA5;
constexpr std::size_t element_size(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_F64 || dtype == TENON_DTYPE_I64 ? 8 : 4;
}
struct Reach {
  std::int64_t lowest = 0, highest = 0;
};
Reach reach_of(const Net::Value& value) {
  Reach reach;
  std::int64_t dense = 1;
  for (std::size_t d = value.shape.size(); d-- > 0;) {
    const std::int64_t stride = value.strides.empty() ? dense : value.strides[d];
    const std::int64_t extent = stride * (value.shape[d] - 1);
    (extent < 0 ? reach.lowest : reach.highest) += extent;
    dense *= value.shape[d];
  }
  return reach;
}
}  // namespace

void Run::Buffer::make(std::size_t bytes) {
  size = bytes;
  storage.assign(bytes + 2 * guard + 64, guard_byte);
  const auto address = reinterpret_cast<std::uintptr_t>(storage.data() + guard);
  begin = storage.data() + guard + (64 - address % 64) % 64;
}
bool Run::Buffer::whole() const {
  const auto intact = [](unsigned char byte) { return byte == guard_byte; };
  return std::all_of(storage.data(), static_cast<const unsigned char*>(begin), intact) &&
         std::all_of(static_cast<const unsigned char*>(begin + size), storage.data() + storage.size(), intact);
}

Run::Run(std::unique_ptr<Session> own, Session* session, Net& net, const tenon_plan_options& given)
    : own_session_(std::move(own)), session_(session != nullptr ? *session : *own_session_), net_(net) {
  ErrorText error;
  const tenon_status status = session_.table->plan_create(session_.device, &net.abi_graph(), &given, &plan, error);
  REQUIRE_MESSAGE(status == TENON_OK, error.text());
  info.struct_size = sizeof info;
  REQUIRE(session_.table->plan_info(plan, &info, error) == TENON_OK);
  CHECK(info.workspace_alignment_bytes <= 64);
  workspace_buffer_.make(info.workspace_size_bytes);
  workspace = reinterpret_cast<std::uintptr_t>(workspace_buffer_.begin);
  buffers_.resize(net.binding_count);
  buffer_of_.resize(net.binding_count);
  addresses.resize(net.binding_count);
  for (std::size_t b = 0; b < buffer_of_.size(); ++b) buffer_of_[b] = b;
  for (const tenon_donation& d : net.donations) buffer_of_[net.values[d.output].binding] = net.values[d.input].binding;
  for (const Net::Value& value : net.values) {
    if (value.binding == TENON_NO_INDEX || value.kind == TENON_VALUE_INTERNAL) continue;
    Buffer& buffer = buffers_[buffer_of_[value.binding]];
    const Reach reach = value.count() == 0 ? Reach{0, -1} : reach_of(value);
    if (buffer.begin == nullptr) buffer.make(static_cast<std::size_t>(reach.highest - reach.lowest + 1) * element_size(value.dtype));
    addresses[value.binding] =
        reinterpret_cast<std::uintptr_t>(buffer.begin) + static_cast<std::uint64_t>(-reach.lowest) * element_size(value.dtype);
  }
}

Run::~Run() {
  session_.table->plan_destroy(plan);
}

void Run::for_each_offset(std::uint32_t v, void (*body)(void*, std::int64_t, std::int64_t), void* context) const {
  const Net::Value& value = net_.values[v];
  for (std::int64_t i = 0; i < value.count(); ++i) {
    const Shape index = index_of(i, value.shape);
    std::int64_t offset = value.strides.empty() ? i : 0;
    for (std::size_t d = 0; d < value.strides.size(); ++d) offset += index[d] * value.strides[d];
    body(context, i, offset);
  }
}

void Run::set(std::uint32_t v, const Floats& dense) {
  REQUIRE(static_cast<std::int64_t>(dense.size()) == net_.values[v].count());
  struct Context {
    const float* from;
    float* to;
  } context{dense.data(), data<float>(v)};
  for_each_offset(
      v, [](void* c, std::int64_t i, std::int64_t offset) { static_cast<Context*>(c)->to[offset] = static_cast<Context*>(c)->from[i]; },
      &context);
}

Floats Run::get(std::uint32_t v) const {
  Floats dense(static_cast<std::size_t>(net_.values[v].count()));
  struct Context {
    float* to;
    const float* from;
  } context{dense.data(), reinterpret_cast<const float*>(addresses[net_.values[v].binding])};
  for_each_offset(
      v, [](void* c, std::int64_t i, std::int64_t offset) { static_cast<Context*>(c)->to[i] = static_cast<Context*>(c)->from[offset]; },
      &context);
  return dense;
}

tenon_bindings Run::bindings() const {
  tenon_bindings bound{};
  bound.struct_size = sizeof bound;
  bound.address_count = static_cast<std::uint32_t>(addresses.size());
  bound.addresses = addresses.data();
  bound.parameters_epoch = epoch;
  bound.run = run;
  bound.execution_id = execution_id;
  return bound;
}

tenon_status Run::execute(tenon_error* error) {
  const tenon_bindings bound = bindings();
  return session_.table->plan_execute(plan, &bound, workspace, session_.stream, error);
}

void Run::operator()(std::initializer_list<std::pair<std::uint32_t, Floats>> inputs) {
  for (const auto& [value, dense] : inputs) set(value, dense);
  std::memset(workspace_buffer_.begin, 0xFF, workspace_buffer_.size);  // NaN, whatever the type
  ErrorText error;
  const tenon_status status = execute(error);
  REQUIRE_MESSAGE(status == TENON_OK, error.text());
  CHECK(workspace_buffer_.whole());
  for (const Buffer& buffer : buffers_) CHECK((buffer.begin == nullptr || buffer.whole()));
}

}  // namespace tenon::sdk_test
