// train/curves_page.h - the history of a training run as a page of HTML.
#pragma once

#include <string>

#include <tenon/model.h>

namespace tenon::train {

/// One chart per number that is logged, training and validation together, and a table of the last epoch. The page needs no other file and
/// no script; it follows the reader's light or dark setting. Values that are not finite leave a gap.
std::string curves_page(const std::string& title, const History& history);

}  // namespace tenon::train
