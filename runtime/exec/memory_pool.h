// exec/memory_pool.h - pieces of larger blocks of device memory, kept for reuse when they are freed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace tenon::exec {

/// Best fit; neighbours that are free become one piece again.
/// Threads  one at a time.
class MemoryPool {
 public:
  static constexpr std::uint64_t alignment = 256;               ///< of addresses and sizes
  static constexpr std::uint64_t small_size_bytes = 1 << 20;    ///< up to here pieces share blocks
  static constexpr std::uint64_t small_block_bytes = 2u << 20;  ///< of such blocks

  struct Block {
    std::uint64_t address = 0, size_bytes = 0;
    void* owner = nullptr;  ///< the taker's own
  };
  /// A block of exactly that size. What it throws passes.
  using Take = std::function<Block(std::uint64_t size_bytes)>;
  using Give = std::function<void(const Block&)>;

  MemoryPool(Take take, Give give) : take_(std::move(take)), give_(std::move(give)) {}
  ~MemoryPool() { trim(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// The bytes that a request occupies.
  static std::uint64_t rounded(std::uint64_t size_bytes);

  /// An address of a free piece; 0 if there is none that large.
  std::uint64_t reuse(std::uint64_t size_bytes);
  /// Takes a block of that many bytes.
  void grow(std::uint64_t block_size_bytes);
  void release(std::uint64_t address);
  /// Gives blocks back of which nothing is used.
  void trim();

  std::uint64_t reserved_size_bytes() const { return reserved_; }
  std::uint64_t used_size_bytes() const { return used_; }
  std::uint64_t largest_free_bytes() const { return free_.empty() ? 0 : free_.rbegin()->first; }

 private:
  struct Piece {
    std::uint64_t size_bytes;
    bool free;
    std::uint64_t block;  ///< address of the block it is part of
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  void set_free(Pieces::iterator piece);
  void set_used(Pieces::iterator piece);

  Take take_;
  Give give_;
  std::map<std::uint64_t, Block> blocks_;                   ///< by address
  Pieces pieces_;                                           ///< by address
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_;  ///< (size, address)
  std::uint64_t reserved_ = 0, used_ = 0;
};

}  // namespace tenon::exec
