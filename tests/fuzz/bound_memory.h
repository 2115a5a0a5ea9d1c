// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::fuzz {

/// Lets this process have 4 GiB of memory at most: a file of some hundred bytes must not need gigabytes. A sanitizer itself maps more than
/// that; with one there is no limit.
void bound_memory();

}  // namespace tenon::fuzz
