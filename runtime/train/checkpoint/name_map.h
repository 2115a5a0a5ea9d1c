// SPDX-License-Identifier: Apache-2.0
// train/checkpoint/name_map.h - applies the rules of a name map (tenon/weights.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/weights.h>

namespace tenon::train {

/// The name that the first rule whose pattern fits gives to `name`; the name itself if none fits. `out_transpose`: as the rule says.
std::string their_name(const std::vector<NameRule>& rules, const std::string& name, bool& out_transpose);
/// True if a rule leaves this tensor out.
bool is_left_out(const std::vector<NameRule>& rules, const std::string& theirs);

}  // namespace tenon::train
