// SPDX-License-Identifier: Apache-2.0
// c/data.h - data in the C API.
#pragma once

#include <memory>

#include <tenon/batch_source.h>
#include <tenon/data.h>

#include "c/json.h"
#include "c/object.h"

struct TenonData final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::data;
  explicit TenonData(std::shared_ptr<const tenon::Dataset> data) : Object(kind_of), samples(std::move(data)) {}
  explicit TenonData(std::unique_ptr<tenon::BatchSource> source) : Object(kind_of), batches(std::move(source)) {}
  // One of both.
  std::shared_ptr<const tenon::Dataset> samples;
  std::unique_ptr<tenon::BatchSource> batches;
};

namespace tenon::c {

/// [{name, dtype, shape}]
Json json_of(const std::vector<SampleType>& types);
/// Tensors by name; names of null: one tensor, named `usual`.
std::vector<NamedTensor> named_tensors(const char* const* names, const TenonTensor* const* first, std::uint64_t count, const char* usual);

}  // namespace tenon::c
