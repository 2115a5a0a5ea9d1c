#include "case.h"

namespace tenon::conformance {

std::vector<Case> training_case_list(const std::filesystem::path& models) {
  static_cast<void>(models);
  return {};
}

}  // namespace tenon::conformance
