// SPDX-License-Identifier: Apache-2.0
// exec/load_report.h - the loader's result as the public API shows it.
#pragma once

#include <tenon/load_report.h>

#include "loader/loader.h"

namespace tenon::exec {

LoadReport load_report_of(const loader::Result& result);

}  // namespace tenon::exec
