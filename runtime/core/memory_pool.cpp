// SPDX-License-Identifier: Apache-2.0
#include "core/memory_pool.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <tenon/error.h>

namespace tenon {

std::uint64_t MemoryPool::rounded(std::uint64_t size_bytes) const {
  const std::uint64_t max_size = std::numeric_limits<std::uint64_t>::max() / alignment_ * alignment_;
  if (size_bytes > max_size) return max_size;
  return std::max<std::uint64_t>(alignment_, (size_bytes + alignment_ - 1) / alignment_ * alignment_);
}

void MemoryPool::set_free(Pieces::iterator piece) {
  piece->second.free = true;
  free_pieces_.insert({piece->second.size_bytes, piece->first});
}

void MemoryPool::set_used(Pieces::iterator piece) {
  piece->second.free = false;
  free_pieces_.erase({piece->second.size_bytes, piece->first});
}

std::uint64_t MemoryPool::reuse(std::uint64_t size_bytes) {
  const std::uint64_t needed = rounded(size_bytes);
  const auto found = free_pieces_.lower_bound({needed, 0});
  if (found == free_pieces_.end()) return 0;
  const auto piece = pieces_.find(found->second);
  set_used(piece);
  if (piece->second.size_bytes > needed) {
    const auto rest = pieces_.emplace(piece->first + needed, Piece{piece->second.size_bytes - needed, true, piece->second.block}).first;
    piece->second.size_bytes = needed;
    set_free(rest);
  }
  used_ += needed;
  return piece->first;
}

void MemoryPool::grow(std::uint64_t block_size_bytes) {
  const Block block = allocate_block_(block_size_bytes);
  const auto after = pieces_.lower_bound(block.address);
  const bool overlaps_before = after != pieces_.begin() && std::prev(after)->first + std::prev(after)->second.size_bytes > block.address;
  if (overlaps_before || (after != pieces_.end() && after->first - block.address < block.size_bytes)) {
    free_block_(block);
    throw Error(Status::internal, "memory_allocate returned memory that overlaps memory in use; report this to the plugin's vendor");
  }
  blocks_[block.address] = block;
  reserved_ += block.size_bytes;
  set_free(pieces_.emplace(block.address, Piece{block.size_bytes, true, block.address}).first);
}

bool MemoryPool::owns(std::uint64_t address) const {
  const auto piece = pieces_.find(address);
  return piece != pieces_.end() && !piece->second.free;
}

void MemoryPool::release(std::uint64_t address) {
  auto piece = pieces_.find(address);
  used_ -= piece->second.size_bytes;
  // Merge only pieces of the same block: two blocks may be adjacent by chance.
  if (const auto next = std::next(piece); next != pieces_.end() && next->second.free && next->second.block == piece->second.block) {
    set_used(next);
    piece->second.size_bytes += next->second.size_bytes;
    pieces_.erase(next);
  }
  if (piece != pieces_.begin()) {
    const auto before = std::prev(piece);
    if (before->second.free && before->second.block == piece->second.block) {
      set_used(before);
      before->second.size_bytes += piece->second.size_bytes;
      pieces_.erase(piece);
      piece = before;
    }
  }
  set_free(piece);
}

void MemoryPool::trim() {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto piece = pieces_.find(block->first);
    if (!piece->second.free || piece->second.size_bytes != block->second.size_bytes) {
      ++block;
      continue;
    }
    set_used(piece);
    pieces_.erase(piece);
    reserved_ -= block->second.size_bytes;
    free_block_(block->second);
    block = blocks_.erase(block);
  }
}

}  // namespace tenon
