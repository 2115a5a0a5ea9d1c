// loader/refusal.h - why a candidate is turned away, on its way to its record.
#pragma once

#include <string>
#include <utility>

#include <tenon/backend.h>

namespace tenon::loader {

/// Thrown by the steps of the loader, caught once per candidate. Both sentences are mandatory.
struct Refusal {
  Refusal(tenon_status why, std::string sentence, std::string advice) : status(why), text(std::move(sentence)), remedy(std::move(advice)) {}

  tenon_status status;
  std::string text;    ///< what was wanted, what was got
  std::string remedy;  ///< what to do about it
};

/// "INCOMPATIBLE", or "status 99" for a code this header does not know.
std::string status_name(tenon_status status);

}  // namespace tenon::loader
