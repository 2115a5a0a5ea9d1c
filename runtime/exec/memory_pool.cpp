#include "exec/memory_pool.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace tenon::exec {

std::uint64_t MemoryPool::rounded(std::uint64_t size_bytes) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / alignment * alignment;
  if (size_bytes > most) return most;
  return std::max<std::uint64_t>(alignment, (size_bytes + alignment - 1) / alignment * alignment);
}

void MemoryPool::set_free(Pieces::iterator piece) {
  piece->second.free = true;
  free_.insert({piece->second.size_bytes, piece->first});
}

void MemoryPool::set_used(Pieces::iterator piece) {
  piece->second.free = false;
  free_.erase({piece->second.size_bytes, piece->first});
}

std::uint64_t MemoryPool::reuse(std::uint64_t size_bytes) {
  const std::uint64_t wanted = rounded(size_bytes);
  const auto found = free_.lower_bound({wanted, 0});
  if (found == free_.end()) return 0;
  const auto piece = pieces_.find(found->second);
  set_used(piece);
  if (piece->second.size_bytes > wanted) {
    const auto rest = pieces_.emplace(piece->first + wanted, Piece{piece->second.size_bytes - wanted, true, piece->second.block}).first;
    piece->second.size_bytes = wanted;
    set_free(rest);
  }
  used_ += wanted;
  return piece->first;
}

void MemoryPool::grow(std::uint64_t block_size_bytes) {
  const Block block = take_(block_size_bytes);
  blocks_[block.address] = block;
  reserved_ += block.size_bytes;
  set_free(pieces_.emplace(block.address, Piece{block.size_bytes, true, block.address}).first);
}

void MemoryPool::release(std::uint64_t address) {
  auto piece = pieces_.find(address);
  used_ -= piece->second.size_bytes;
  // Pieces of one block only become one: two blocks may lie side by side by chance.
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
    give_(block->second);
    block = blocks_.erase(block);
  }
}

}  // namespace tenon::exec
