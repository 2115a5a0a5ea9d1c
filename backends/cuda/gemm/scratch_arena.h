// SPDX-License-Identifier: Apache-2.0
// scratch_arena.h - the scratch memory of a call, in blocks for products.
#pragma once

#include <tenon/sdk/scratch_arena.h>

#include "gemm/products.h"

namespace tenon::cuda {

/// Blocks that are aligned for products.
class ScratchArena : public sdk::ScratchArena {
 public:
  explicit ScratchArena(void* scratch) : sdk::ScratchArena(scratch, product_alignment) {}
};

}  // namespace tenon::cuda
