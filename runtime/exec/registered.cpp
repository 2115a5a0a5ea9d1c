// SPDX-License-Identifier: Apache-2.0
#include "exec/registered.h"

#include "platform/per_thread.h"

namespace tenon::exec {
namespace {

constinit const platform::PerThread<RegisteredBackends> scopes;

}  // namespace

BackendScope::BackendScope(std::string name, tenon_backend_query_fn query) {
  scopes->emplace_back(std::move(name), query);
}
BackendScope::~BackendScope() {
  scopes->pop_back();
}

RegisteredBackends registered_backends() {
  return {scopes->rbegin(), scopes->rend()};
}

}  // namespace tenon::exec
