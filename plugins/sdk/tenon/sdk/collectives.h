// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/collectives.h - a device as a rank of a group, for Device::join.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/backend.h>

namespace tenon::sdk {

class Stream;

/// How a device joins a group.
struct GroupOptions {
  tenon_group_id id;
  std::uint32_t rank, size;  ///< rank < size
  std::uint32_t timeout_ms;  ///< for all ranks to join; 0: no limit
  bool deterministic;
};

/// One collective whose fields have been checked: see tenon_collective.
struct Collective {
  std::uint32_t kind, operation, peer;
  tenon_dtype dtype;
  std::uint64_t count;
  std::uint64_t source, destination;
};

/// One rank of a group. Its end: the work has been waited for, or the group was aborted.
class Group {
 public:
  virtual ~Group() = default;
  /// Submits collectives, together and in stream order. Throws CANCELLED once the group is aborted.
  virtual void submit(std::span<const Collective> collectives, Stream& stream) = 0;
  /// Throws the failure that has been noticed, if any.
  /// Threads  any.
  virtual void query() = 0;
  /// Ends the work of this rank.
  /// Threads  any.
  virtual void abort() noexcept = 0;
};

}  // namespace tenon::sdk
