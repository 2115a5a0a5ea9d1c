// SPDX-License-Identifier: Apache-2.0
// core/memory_pool.h - a caching suballocator for blocks of memory, of devices and of the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace tenon {

/// Best fit; adjacent free pieces are merged.
/// Threads  one at a time.
class MemoryPool {
 public:
  static constexpr std::uint64_t min_alignment = 256;
  static constexpr std::uint64_t small_size_bytes = 1 << 20;    ///< pieces up to this size share blocks
  static constexpr std::uint64_t small_block_bytes = 2u << 20;  ///< size of the shared blocks

  struct Block {
    std::uint64_t address = 0, size_bytes = 0;
    void* owner = nullptr;  ///< the allocator's own
  };
  /// Allocates a block of exactly that size. Exceptions propagate.
  using Allocate = std::function<Block(std::uint64_t size_bytes)>;
  using Free = std::function<void(const Block&)>;

  /// `alignment`: a power of two that the addresses of blocks are multiples of.
  MemoryPool(Allocate allocate, Free free, std::uint64_t alignment = min_alignment)
      : allocate_block_(std::move(allocate)), free_block_(std::move(free)), alignment_(std::max(alignment, min_alignment)) {}
  ~MemoryPool() { trim(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// The bytes that a request occupies after rounding.
  std::uint64_t rounded(std::uint64_t size_bytes) const;
  /// Of the sizes of pieces, and of their distances from the start of their block.
  std::uint64_t alignment() const { return alignment_; }

  /// Allocates a free piece; 0 if none is large enough.
  std::uint64_t reuse(std::uint64_t size_bytes);
  /// Adds a block of that many bytes.
  void grow(std::uint64_t block_size_bytes);
  void release(std::uint64_t address);
  /// Whether a used piece begins at the address.
  bool owns(std::uint64_t address) const;
  /// Frees the blocks without used pieces.
  void trim();

  std::uint64_t reserved_size_bytes() const { return reserved_; }
  std::uint64_t used_size_bytes() const { return used_; }
  std::uint64_t largest_free_bytes() const { return free_pieces_.empty() ? 0 : free_pieces_.rbegin()->first; }

 private:
  struct Piece {
    std::uint64_t size_bytes;
    bool free;
    std::uint64_t block;  ///< address of the block it is part of
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  void set_free(Pieces::iterator piece);
  void set_used(Pieces::iterator piece);

  Allocate allocate_block_;
  Free free_block_;
  const std::uint64_t alignment_;
  std::map<std::uint64_t, Block> blocks_;                          ///< by address
  Pieces pieces_;                                                  ///< by address
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_pieces_;  ///< (size, address)
  std::uint64_t reserved_ = 0, used_ = 0;
};

}  // namespace tenon
