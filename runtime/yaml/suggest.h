// SPDX-License-Identifier: Apache-2.0
// yaml/suggest.h - "did you mean" suggestions for error messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tenon::yaml {

/// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and transpositions, ignoring
/// letter case.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` means: equal to it but for letter case, '_' and '-'; or our name for it (yaml/foreign_names.def); or the
/// nearest within one edit per three letters (at least one); or one that begins with `word`; or "". Ties go to the first candidate.
std::string suggest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'precision'?", or "" without a near candidate; appended to messages.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tenon::yaml
