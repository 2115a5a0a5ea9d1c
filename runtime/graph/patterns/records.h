// SPDX-License-Identifier: Apache-2.0
// graph/patterns/records.h - the tables of patterns, a file for each family.
#pragma once

#include <vector>

#include <tenon/graph.h>

#include "graph/patterns/match.h"
#include "graph/patterns/pattern.h"

namespace tenon::graph::patterns {

/// One pattern and what replaces it.
struct Record {
  const char* name;    ///< as counted: that of the op, if there is one
  const char* source;  ///< who writes it like that
  Pattern pattern;     ///< of the value to be replaced
  /// Whether shapes and numbers fit, such that `replacement` cannot fail. It may add inner nodes.
  bool (*accepts)(Match& match);
  /// The value that replaces the matched one, of its dtype and shape.
  Value (*replacement)(const Match& match);
  bool scales_weights = false;  ///< only for graphs without updates
};

const std::vector<Record>& activation_records();
const std::vector<Record>& norm_records();
const std::vector<Record>& attention_records();
const std::vector<Record>& rotary_records();
const std::vector<Record>& transpose_records();
const std::vector<Record>& channel_records();

}  // namespace tenon::graph::patterns
