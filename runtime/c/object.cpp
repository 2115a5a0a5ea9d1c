// SPDX-License-Identifier: Apache-2.0
#include "c/object.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "text/counted.h"

namespace tenon::c {
namespace {

std::atomic<std::uint64_t> live{0};

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::error:
      return "an error";
    case Kind::context:
      return "a context";
    case Kind::device:
      return "a device";
    case Kind::tensor:
      return "a tensor";
    case Kind::cancellation:
      return "a cancellation";
    case Kind::graph:
      return "a graph";
    case Kind::parameters:
      return "parameters";
    case Kind::program:
      return "a program";
    case Kind::onnx:
      return "an ONNX model";
    case Kind::model:
      return "a model";
    case Kind::data:
      return "data";
    case Kind::batcher:
      return "a batcher";
    case Kind::request:
      return "a request";
    case Kind::trace:
      return "a trace";
  }
  return "something that is no object of Tenon";
}

Object::Object(Kind kind, bool counted) : kind_(kind) {
  if (counted) live.fetch_add(1, std::memory_order_relaxed);
}
Object::~Object() {
  live.fetch_sub(1, std::memory_order_relaxed);
}

void Object::release() const {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

const Object& checked(const void* object, Kind expected, const char* argument) {
  if (object == nullptr) throw BadArgument(std::string(argument) + ": expected " + name_of(expected) + ", got NULL");
  const auto& given = *static_cast<const Object*>(object);
  if (given.kind() != expected) {
    throw BadArgument(std::string(argument) + ": expected " + name_of(expected) + ", got " + name_of(given.kind()));
  }
  return given;
}

Shape shape_of(std::uint32_t rank, const std::int64_t* shape) {
  if (rank > Shape::max_rank) {
    throw BadArgument("rank: expected at most " + std::to_string(Shape::max_rank) + " dimensions, got " + std::to_string(rank));
  }
  return Shape(std::span<const std::int64_t>(array(shape, rank, "shape")));
}

DType dtype_of(tenon_dtype dtype, const char* argument) {
  if (dtype == TENON_DTYPE_NONE || dtype > TENON_DTYPE_BOOL) {
    throw BadArgument(std::string(argument) + ": expected a dtype from TENON_DTYPE_F16 to TENON_DTYPE_BOOL, got " + std::to_string(dtype));
  }
  return static_cast<DType>(dtype);
}

char* new_text(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

std::optional<Device> optional_device(const TenonDevice* device) {
  return device == nullptr ? std::nullopt : std::optional(get(device, "device").value);
}

Tensor& writable(const TenonTensor* tensor, const char* argument) {
  TenonTensor& object = get(tensor, argument);
  if (object.read_only) throw BadArgument(std::string(argument) + ": expected a tensor that may be written to, got a read-only one");
  return object.value;
}

std::vector<Tensor> tensors(const TenonTensor* const* first, std::uint64_t count, const char* argument) {
  std::vector<Tensor> all;
  for (const TenonTensor* tensor : array(first, count, argument)) {
    all.push_back(get(tensor, (std::string(argument) + "[" + std::to_string(all.size()) + "]").c_str()).value);
  }
  return all;
}

std::vector<std::string> texts(const char* const* first, std::uint64_t count, const char* argument) {
  std::vector<std::string> all;
  for (const char* given : array(first, count, argument)) {
    all.push_back(text(given, (std::string(argument) + "[" + std::to_string(all.size()) + "]").c_str()));
  }
  return all;
}

std::vector<Tensor> given_outputs(TenonTensor* const* outputs, std::uint64_t count) {
  std::vector<Tensor> given;
  for (const TenonTensor* output : array(outputs, count, "outputs")) {
    given.push_back(output == nullptr ? Tensor() : writable(output, ("outputs[" + std::to_string(given.size()) + "]").c_str()));
  }
  return given;
}

void give_missing(const std::vector<Tensor>& results, TenonTensor** outputs) {
  std::vector<std::unique_ptr<TenonTensor>> made(results.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (outputs[i] == nullptr) made[i] = std::make_unique<TenonTensor>(results[i]);
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] != nullptr) outputs[i] = made[i].release();
  }
}

void give(const std::vector<Tensor>& results, TenonTensor** out_tensors, std::uint64_t capacity, const char* argument) {
  if (capacity < results.size()) {
    throw BadArgument(std::string(argument) + ": expected space for " + counted(results.size(), "tensor") + ", got it for " +
                      std::to_string(capacity));
  }
  const std::span<TenonTensor*> out = array(out_tensors, results.size(), argument);
  std::vector<std::unique_ptr<TenonTensor>> made;
  for (const Tensor& result : results) made.push_back(std::make_unique<TenonTensor>(result));
  std::ranges::transform(made, out.begin(), [](auto& tensor) { return tensor.release(); });
}

}  // namespace tenon::c

using namespace tenon::c;

const char* tenon_version(void) {
  return TENON_VERSION;
}

void tenon_retain(const void* object) {
  if (object != nullptr) static_cast<const Object*>(object)->retain();
}

void tenon_release(const void* object) {
  if (object != nullptr) static_cast<const Object*>(object)->release();
}

uint64_t tenon_object_count(void) {
  return live.load(std::memory_order_relaxed);
}

void tenon_string_free(char* text) {
  std::free(text);
}
