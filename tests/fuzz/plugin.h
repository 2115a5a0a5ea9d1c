// SPDX-License-Identifier: Apache-2.0
// plugin.h - a backend in this process whose answers the input alters: sizes, counts, strides, pointers, statuses, texts. Pointers always
// lead to as much memory as they should, since no host can check that.
#pragma once

#include "fuzz.h"
#include "loader/loader.h"

namespace tenon::fuzz {

/// One load, from the query to the last device. `data` alters the query's answer, or what follows it.
enum class Part { query, table };
void load_altered(Part part, const std::uint8_t* data, std::size_t size);

}  // namespace tenon::fuzz
