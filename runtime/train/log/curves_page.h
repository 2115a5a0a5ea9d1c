// SPDX-License-Identifier: Apache-2.0
// train/log/curves_page.h - the history of a training run as an HTML page.
#pragma once

#include <string>

#include <tenon/model.h>

namespace tenon::train {

/// One chart per logged value with training and validation curves, and a table of the last epoch. The page needs no other file and no
/// script; it follows the light or dark setting of the browser. Non-finite values leave a gap.
std::string curves_page(const std::string& title, const History& history);

}  // namespace tenon::train
