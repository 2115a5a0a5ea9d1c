// config/suggest.h - the "did you mean" of messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tenon::config {

/// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and swaps of neighbours, letter case
/// ignored.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" if none is near enough to be a slip of the keyboard: one edit per three letters, at least one;
/// else a candidate that begins with it. Of equally near candidates the first wins.
std::string suggest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'precision'?", or "" without a near candidate: the tail of a message.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tenon::config
