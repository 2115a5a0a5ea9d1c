// SPDX-License-Identifier: Apache-2.0
// Errors of the C API.
#include "c/object.h"

namespace tenon::c {
namespace {

/// Stands for an error when there is no memory for one. It is never deleted: a reference is its own.
TenonError* out_of_memory() noexcept {
  alignas(TenonError) static unsigned char place[sizeof(TenonError)];
  static TenonError* const error = new (place) TenonError(TENON_OUT_OF_MEMORY, "out of memory", false);  // a short text: not allocated
  error->retain();
  return error;
}

TenonError* new_error(tenon_status status, const char* text, const char* function = nullptr) noexcept {
  try {
    return new TenonError(status, function == nullptr ? text : std::string(function) + ": " + text);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace

TenonError* error_of_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const BadArgument& error) {
    return new_error(TENON_INVALID_ARGUMENT, error.what(), function);
  } catch (const Error& error) {
    return new_error(static_cast<tenon_status>(error.status()), error.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return new_error(TENON_INTERNAL, error.what(), function);
  } catch (...) {
    return new_error(TENON_INTERNAL, "an exception that is no std::exception", function);
  }
}

void raise(const TenonError* error) {
  if (error == nullptr) return;
  checked(error, Kind::error, "result of the callback");
  const Error copy(error->status == TENON_OK ? Status::internal : static_cast<Status>(error->status), error->message);
  error->release();
  throw copy;
}

}  // namespace tenon::c

using namespace tenon::c;

TenonError* tenon_error_create(tenon_status status, const char* message) {
  try {
    return new TenonError(status, optional_text(message));
  } catch (...) {
    return error_of_exception("tenon_error_create");
  }
}

tenon_status tenon_error_status(const TenonError* error) {
  if (error == nullptr) return TENON_OK;
  return static_cast<const Object*>(error)->kind() == Kind::error ? error->status : tenon_status{TENON_INVALID_ARGUMENT};
}

const char* tenon_error_message(const TenonError* error) {
  if (error == nullptr) return "";
  return static_cast<const Object*>(error)->kind() == Kind::error ? error->message.c_str() : "the object is no error";
}

const char* tenon_status_name(tenon_status status) {
  return status <= TENON_FORKED ? tenon::name_of(static_cast<tenon::Status>(status)) : "?";
}
