// SPDX-License-Identifier: Apache-2.0
// error.cpp - what a plugin reports to the host: the status and text of an error.
#include <tenon/sdk/error.h>

#include <cstdio>
#include <new>
#include <string>
#include <string_view>

#include <tenon/sdk/blas.h>
#include <tenon/sdk/kernel.h>

#include "guarded.h"

namespace tenon::sdk {

tenon_status report(tenon_error* error, tenon_status status, const char* text, std::uint64_t node_id) {
  if (error != nullptr) {
    error->status = status;
    error->node_id = node_id;
    if (error->text != nullptr && error->text_capacity > 0) std::snprintf(error->text, error->text_capacity, "%s", text);
  }
  return status;
}

namespace detail {

tenon_status report_current_exception(tenon_error* error) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return report(error, e.status(), e.what(), e.node_id());
  } catch (const std::bad_alloc& e) {
    const bool says_more = std::string_view(e.what()) != std::bad_alloc().what();
    return report(error, TENON_OUT_OF_MEMORY, says_more ? e.what() : "out of host memory");
  } catch (const std::exception& e) {
    return report(error, TENON_INTERNAL, e.what());
  } catch (...) {
    return report(error, TENON_INTERNAL, "an exception of unknown type");
  }
}

void refuse_blas_call(const char* routine, const tenon_blas_call& call) {
  std::string text = std::string("it does not take ") + name_of(call.dtype);
  if (call.needs != 0) text = "this backend knows no bit of `needs`, got " + std::to_string(call.needs);
  if (call.math > TENON_MATH_BF16) text = "expected one of TENON_MATH_*, got " + std::to_string(call.math);
  if (call.deterministic > 1) text = "expected deterministic to be 0 or 1, got " + std::to_string(call.deterministic);
  throw Error(TENON_UNSUPPORTED, std::string(routine) + ": " + text);
}

}  // namespace detail
}  // namespace tenon::sdk
