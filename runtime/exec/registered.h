// SPDX-License-Identifier: Apache-2.0
// exec/registered.h - backends linked into the process, for tests and static builds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

namespace tenon::exec {

using RegisteredBackends = std::vector<std::pair<std::string, tenon_backend_query_fn>>;

/// While it lives, contexts created on its thread use this backend before any file. Existing contexts do not change. Scopes nest.
/// Threads  destroy it on the thread that created it, in reverse order of creation.
class BackendScope {
 public:
  BackendScope(std::string name, tenon_backend_query_fn query);
  ~BackendScope();
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;
};

/// The backends of this thread's scopes, innermost first.
RegisteredBackends registered_backends();

}  // namespace tenon::exec
