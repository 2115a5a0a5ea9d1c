// plugin.h - a backend in this process whose answers the bytes bend: sizes, counts, strides, pointers, statuses, texts. All memory that it
// speaks of is there: what no host can check, that a pointer leads to as much as it should, is kept.
#pragma once

#include "fuzz.h"
#include "loader/loader.h"

namespace tenon::fuzz {

/// One query from the loader's to the last device, with `data` deciding what is odd in the query's answer, or in what comes after it.
enum class Part { query, table };
void load_bent(Part part, const std::uint8_t* data, std::size_t size);

}  // namespace tenon::fuzz
