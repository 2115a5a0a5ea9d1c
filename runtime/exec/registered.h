// exec/registered.h - backends that are part of the process: tests, static builds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

namespace tenon::exec {

using RegisteredBackends = std::vector<std::pair<std::string, tenon_backend_query_fn>>;

/// While it lives, contexts made on its thread know this backend, before any file. Contexts that are there do not change. Scopes nest.
/// Threads  ends on the thread that made it, in the reverse order of making.
class BackendScope {
 public:
  BackendScope(std::string name, tenon_backend_query_fn query);
  ~BackendScope();
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;
};

/// Those of this thread's scopes, the innermost first.
RegisteredBackends registered_backends();

}  // namespace tenon::exec
