// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <tenon/program.h>

#include <algorithm>

#include "core/device_bridge.h"

namespace tenon {

Tensor& ParameterStore::create(const std::string& name, const Device& device, DType dtype, const Shape& shape) {
  if (const auto found = tensors_.find(name); found != tensors_.end()) {
    if (found->second.dtype() != dtype || !(found->second.shape() == shape)) {
      throw Error(fmt::format("parameter '{}' is {}, but {}{} was requested", name, found->second.str(), name_of(dtype), shape.str()));
    }
    return found->second;
  }
  Tensor& made = tensors_[name] = device.empty(dtype, shape);
  if (made.count() > 0) unset_.insert(name);
  changed_[name] = ++epoch_;
  return made;
}

void ParameterStore::adopt(const std::string& name, const Tensor& value) {
  if (!value.is_dense()) throw Error(fmt::format("parameter '{}': expected a dense tensor, got {}", name, value.str()));
  if (!tensors_.try_emplace(name, value).second) throw Error(fmt::format("parameter '{}' exists already", name));
  touch(name);
}

void ParameterStore::set(const std::string& name, const Tensor& value) {
  Tensor parameter = get(name);
  if (parameter.dtype() != value.dtype() || !(parameter.shape() == value.shape())) {
    throw Error(fmt::format("parameter '{}': expected {}, got {}", name, parameter.str(), value.str()));
  }
  if (value.storage()->device == parameter.storage()->device) {
    parameter.copy_from(value);  // within the device
  } else {
    const Tensor host = value.on_host() && value.is_dense() ? value : value.to_host();
    parameter.storage()->device->upload(parameter.address(), host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  }
  touch(name);
}

void ParameterStore::fill(const std::string& name, double value) {
  Tensor parameter = get(name);
  parameter.fill(value);
  touch(name);
}

void ParameterStore::erase(const std::string& name) {
  static_cast<void>(get(name));
  tensors_.erase(name);
  unset_.erase(name);
  changed_.erase(name);
  ++epoch_;
}

std::uint64_t ParameterStore::epoch(const std::string& name) const {
  const auto found = changed_.find(name);
  if (found == changed_.end()) throw Error(fmt::format("there is no parameter '{}'", name));
  return std::max(found->second, all_changed_);
}

const Tensor& ParameterStore::get(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error(fmt::format("there is no parameter '{}'", name));
  return found->second;
}

}  // namespace tenon
