// SPDX-License-Identifier: Apache-2.0
#include "yaml/suggest.h"

#include <algorithm>
#include <vector>

namespace tenon::yaml {
namespace {
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The word in lower case without '_' and '-'.
std::string letters_of(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    if (c != '_' && c != '-') letters += lower(c);
  }
  return letters;
}

struct ForeignName {
  std::string_view foreign, ours;
};
constexpr ForeignName foreign_names[] = {
#define TENON_FOREIGN_NAME(kind, foreign, ours) {foreign, ours},
#include "yaml/foreign_names.def"
#undef TENON_FOREIGN_NAME
};

/// The candidate that is the same word, or our name for it; or "". A foreign name may have several rows: one key of each kind of thing.
std::string synonym(std::string_view word, std::span<const std::string> candidates) {
  const std::string letters = letters_of(word);
  for (const std::string& candidate : candidates) {
    if (letters_of(candidate) == letters) return candidate;
  }
  for (const ForeignName& name : foreign_names) {
    if (name.foreign == letters && std::ranges::find(candidates, name.ours) != candidates.end()) return std::string(name.ours);
  }
  return {};
}
}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table are enough: a transposition looks two rows back.
  std::vector<std::size_t> two_back(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) current[j] = std::min(current[j], two_back[j - 2] + 1);
    }
    two_back.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::string suggest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > 100) return {};  // not a typo; also bounds the cost
  if (std::string same = synonym(word, candidates); !same.empty()) return same;
  std::size_t nearest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    // Require at least half of a short candidate to match: otherwise it is another word, not a typo.
    if (distance < nearest && 2 * distance <= candidate.size()) {
      nearest = distance;
      best = candidate;
    }
  }
  if (!best.empty() || word.size() < 3) return best;
  for (const std::string& candidate : candidates) {  // "limit" for "limit_mb"
    if (candidate.size() > word.size() && edit_distance(word, std::string_view(candidate).substr(0, word.size())) == 0) return candidate;
  }
  return {};
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = suggest(word, candidates);
  return best.empty() ? std::string() : "; did you mean '" + best + "'?";
}

}  // namespace tenon::yaml
