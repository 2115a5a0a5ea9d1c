// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "arena.h"
#include "places.h"
#include "sanitizers.h"
#include "state.h"

namespace tenon::emulation {
namespace {

constexpr int poison_byte = 0xFF;  // a NaN in every format, -1 as an integer

struct Pool {
  int device = 0;
  std::set<int> granted;  ///< other devices that may access its memory
  std::uint64_t used_bytes = 0;
};

struct Block {
  std::size_t size_bytes = 0;
  int device = 0;
  std::shared_ptr<Pool> pool;  ///< NULL: from cudaMalloc
};

/// Memory whose stream-ordered free has not been reached yet.
struct Dying {
  char* address = nullptr;
  Block block;
  std::shared_ptr<Stream> stream;
  bool taken = false;  ///< by a later allocation in the same stream
};

struct HostBlock {
  std::size_t size_bytes = 0;
  bool owned = false;  ///< from cudaHostAlloc, else registered
};

struct Memory {
  std::vector<Arena*> arenas;                        ///< by device
  std::vector<std::shared_ptr<Pool>> default_pools;  ///< by device
  Handles<Pool, cudaMemPool_t> pools;
  std::map<char*, Block> blocks;
  std::vector<std::shared_ptr<Dying>> dying;
  std::map<char*, HostBlock> host_blocks;
  bool anything_open = false;
};

Memory* make_memory() {
  const char* const text = std::getenv("TENON_CUDA_EMULATION_MEMORY_MB");
  const std::size_t megabytes = text == nullptr || *text == '\0' ? 2048 : std::strtoull(text, nullptr, 10);
  auto* const memory = new Memory;
  for (std::size_t i = 0; i < state().devices.size(); ++i) {
    memory->arenas.push_back(new Arena(megabytes << 20));
    memory->default_pools.push_back(std::make_shared<Pool>());
    memory->default_pools.back()->device = static_cast<int>(i);
  }
  return memory;
}
Memory& memory() {
  static Memory* const the_memory = make_memory();
  return *the_memory;
}

Arena& arena_of(int device) {
  return *memory().arenas[static_cast<std::size_t>(device)];
}

template <class B>
typename std::map<char*, B>::const_iterator around(const std::map<char*, B>& blocks, const void* pointer) {
  auto at = blocks.upper_bound(const_cast<char*>(static_cast<const char*>(pointer)));
  if (at == blocks.begin()) return blocks.end();
  --at;
  return static_cast<const char*>(pointer) < at->first + std::max<std::size_t>(at->second.size_bytes, 1) ? at : blocks.end();
}
template <class B>
bool holds(const std::map<char*, B>& blocks, const void* pointer, std::size_t size_bytes) {
  const auto at = around(blocks, pointer);
  return at != blocks.end() && static_cast<const char*>(pointer) + size_bytes <= at->first + at->second.size_bytes;
}

void poison(void* address, std::size_t size_bytes, int device) {
  set_reach(Reach::all, device);
  std::memset(address, poison_byte, size_bytes);
}

void count(Pool* pool, std::size_t added, std::size_t taken) {
  if (pool == nullptr) return;
  pool->used_bytes += added - taken;
}

/// Reuses memory that the same stream frees before this allocation, as a pool does. Not under AddressSanitizer, which detects more if
/// addresses are not reused.
char* take_dying(const std::shared_ptr<Stream>& stream, const Pool* pool, std::size_t size_bytes) {
  if (address_sanitized) return nullptr;
  for (const auto& dying : memory().dying) {
    if (!dying->taken && dying->stream == stream && dying->block.pool.get() == pool && dying->block.size_bytes == size_bytes) {
      dying->taken = true;
      return dying->address;
    }
  }
  return nullptr;
}

cudaError_t allocate_ordered(void** out_pointer, std::size_t size_bytes, std::shared_ptr<Pool> pool, cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(handle, &stream); error != cudaSuccess) return error;
  if (out_pointer == nullptr || size_bytes == 0) return cudaErrorInvalidValue;
  // CUDA would create a graph node; the emulation rejects it.
  if (stream->capture) return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
  if (!pool) pool = memory().default_pools[static_cast<std::size_t>(stream->device)];
  const int device = pool->device;
  char* address = take_dying(stream, pool.get(), size_bytes);
  if (address == nullptr) address = static_cast<char*>(arena_of(device).allocate(size_bytes));
  if (address == nullptr) {
    for (const auto& dying : std::vector(memory().dying)) drain(*dying->stream);  // a pool would make its stream wait for them
    address = static_cast<char*>(arena_of(device).allocate(size_bytes));
  }
  if (address == nullptr) return cudaErrorMemoryAllocation;
  memory().blocks[address] = {size_bytes, device, pool};
  count(pool.get(), size_bytes, 0);
  *out_pointer = address;
  return enqueue(stream, {[=] { poison(address, size_bytes, device); }, Reach::all});
}

cudaError_t free_ordered(void* pointer, cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(handle, &stream); error != cudaSuccess) return error;
  if (pointer == nullptr) return cudaSuccess;
  const auto at = memory().blocks.find(static_cast<char*>(pointer));
  if (at == memory().blocks.end()) return cudaErrorInvalidValue;
  if (stream->capture) return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
  auto dying = std::make_shared<Dying>(Dying{at->first, at->second, stream, false});
  memory().blocks.erase(at);
  count(dying->block.pool.get(), 0, dying->block.size_bytes);
  memory().dying.push_back(dying);
  return enqueue(stream, {[dying] {
                            poison(dying->address, dying->block.size_bytes, dying->block.device);
                            if (!dying->taken) arena_of(dying->block.device).release(dying->address, dying->block.size_bytes);
                            std::erase(memory().dying, dying);
                          },
                          Reach::all});
}

cudaError_t allocate_now(void** out_pointer, std::size_t size_bytes) {
  if (out_pointer == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
  *out_pointer = nullptr;
  if (size_bytes == 0) return cudaSuccess;
  const int device = caller().device;
  void* address = arena_of(device).allocate(size_bytes);
  if (address == nullptr) {
    drain_device(device);
    address = arena_of(device).allocate(size_bytes);
  }
  if (address == nullptr) return cudaErrorMemoryAllocation;
  poison(address, size_bytes, device);
  memory().blocks[static_cast<char*>(address)] = {size_bytes, device, nullptr};
  *out_pointer = address;
  return cudaSuccess;
}

cudaError_t free_now(void* pointer) {
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
  if (pointer == nullptr) return cudaSuccess;
  const auto at = memory().blocks.find(static_cast<char*>(pointer));
  if (at == memory().blocks.end()) return cudaErrorInvalidValue;
  const Block block = at->second;
  drain_device(block.device);  // cudaFree waits
  memory().blocks.erase(static_cast<char*>(pointer));
  count(block.pool.get(), 0, block.size_bytes);
  poison(pointer, block.size_bytes, block.device);
  arena_of(block.device).release(pointer, block.size_bytes);
  return outcome(block.device);
}

cudaError_t allocate_host(void** out_pointer, std::size_t size_bytes, unsigned flags) {
  constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (out_pointer == nullptr || (flags & ~known) != 0) return cudaErrorInvalidValue;
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
  *out_pointer = nullptr;
  if (size_bytes == 0) return cudaSuccess;
  void* address = nullptr;
  if (posix_memalign(&address, 4096, size_bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(address, poison_byte, size_bytes);
  memory().host_blocks[static_cast<char*>(address)] = {size_bytes, true};
  *out_pointer = address;
  return cudaSuccess;
}

}  // namespace

Place place_of(const void* pointer) {
  if (around(memory().blocks, pointer) != memory().blocks.end()) return Place::device;
  return around(memory().host_blocks, pointer) != memory().host_blocks.end() ? Place::pinned : Place::pageable;
}

bool fits(const void* pointer, std::size_t size_bytes) {
  switch (place_of(pointer)) {
    case Place::device:
      return holds(memory().blocks, pointer, size_bytes);
    case Place::pinned:
      return holds(memory().host_blocks, pointer, size_bytes);
    case Place::pageable:
      break;
  }
  return true;
}

int device_of(const void* pointer) {
  const auto at = around(memory().blocks, pointer);
  return at == memory().blocks.end() ? -1 : at->second.device;
}

bool is_granted(const void* pointer, int device) {
  const auto at = around(memory().blocks, pointer);
  if (at == memory().blocks.end()) return true;
  const Block& block = at->second;
  return block.device == device || block.pool == nullptr || block.pool->granted.contains(device);
}

void set_reach(Reach reach, int device) {
  if (reach == Reach::any) return;
  Memory& m = memory();
  if (reach == Reach::none && !m.anything_open) return;
  m.anything_open = reach != Reach::none;
  for (std::size_t i = 0; i < m.arenas.size(); ++i) {
    m.arenas[i]->set_open(reach == Reach::all || (reach == Reach::own && static_cast<int>(i) == device));
  }
}

std::size_t device_memory_bytes(int device) {
  return arena_of(device).total_bytes();
}

void forget_memory(int device) {
  Memory& m = memory();
  const auto of_device = [device](const Block& block) { return block.device == device; };
  for (const auto& [address, block] : m.blocks) {
    if (of_device(block)) arena_of(device).release(address, block.size_bytes);
  }
  std::erase_if(m.blocks, [&](const auto& entry) { return of_device(entry.second); });
  for (const auto& dying : m.dying) {
    if (of_device(dying->block) && !dying->taken) arena_of(device).release(dying->address, dying->block.size_bytes);
  }
  std::erase_if(m.dying, [&](const auto& dying) { return of_device(dying->block); });
  m.pools.remove_if([&](const Pool& pool) { return pool.device == device; });
}

}  // namespace tenon::emulation

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaMalloc(void** out_pointer, std::size_t size_bytes) {
  return call("cudaMalloc", [&] { return allocate_now(out_pointer, size_bytes); });
}
cudaError_t cudaFree(void* pointer) {
  return call("cudaFree", [&] { return free_now(pointer); });
}
cudaError_t cudaMallocAsync(void** out_pointer, std::size_t size_bytes, cudaStream_t stream) {
  return call("cudaMallocAsync", [&] { return allocate_ordered(out_pointer, size_bytes, nullptr, stream); });
}
cudaError_t cudaMallocFromPoolAsync(void** out_pointer, std::size_t size_bytes, cudaMemPool_t handle, cudaStream_t stream) {
  return call("cudaMallocFromPoolAsync", [&] {
    std::shared_ptr<Pool> pool = memory().pools.find(handle);
    return pool ? allocate_ordered(out_pointer, size_bytes, std::move(pool), stream) : cudaErrorInvalidValue;
  });
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call("cudaFreeAsync", [&] { return free_ordered(pointer, stream); });
}

cudaError_t cudaHostAlloc(void** out_pointer, std::size_t size_bytes, unsigned flags) {
  return call("cudaHostAlloc", [&] { return allocate_host(out_pointer, size_bytes, flags); });
}
cudaError_t cudaFreeHost(void* pointer) {
  return call(
      "cudaFreeHost",
      [&] {
        if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
        if (pointer == nullptr) return cudaSuccess;
        const auto at = memory().host_blocks.find(static_cast<char*>(pointer));
        if (at == memory().host_blocks.end() || !at->second.owned) return cudaErrorInvalidValue;
        for (std::size_t i = 0; i < state().devices.size(); ++i) drain_device(static_cast<int>(i));  // waits, as cudaFree does
        memory().host_blocks.erase(static_cast<char*>(pointer));
        std::free(pointer);
        return cudaSuccess;
      },
      Lost::allows);
}
cudaError_t cudaHostRegister(void* pointer, std::size_t size_bytes, unsigned) {
  return call("cudaHostRegister", [&] {
    if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
    if (pointer == nullptr || size_bytes == 0) return cudaErrorInvalidValue;
    auto& blocks = memory().host_blocks;
    const auto next = blocks.lower_bound(static_cast<char*>(pointer));
    if (place_of(pointer) != Place::pageable || (next != blocks.end() && next->first < static_cast<char*>(pointer) + size_bytes)) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
    blocks[static_cast<char*>(pointer)] = {size_bytes, false};
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* pointer) {
  return call("cudaHostUnregister", [&] {
    if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
    const auto at = memory().host_blocks.find(static_cast<char*>(pointer));
    if (at == memory().host_blocks.end() || at->second.owned) return cudaErrorHostMemoryNotRegistered;
    for (std::size_t i = 0; i < state().devices.size(); ++i) drain_device(static_cast<int>(i));
    memory().host_blocks.erase(static_cast<char*>(pointer));
    return cudaSuccess;
  });
}
cudaError_t cudaHostGetDevicePointer(void** out_pointer, void* pointer, unsigned flags) {
  return call("cudaHostGetDevicePointer", [&] {
    if (out_pointer == nullptr || flags != 0 || place_of(pointer) != Place::pinned) return cudaErrorInvalidValue;
    *out_pointer = pointer;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* out_pool, const cudaMemPoolProps* properties) {
  return call("cudaMemPoolCreate", [&] {
    if (out_pool == nullptr || properties == nullptr || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice) {
      return cudaErrorInvalidValue;
    }
    if (!is_device(properties->location.id)) return cudaErrorInvalidDevice;
    auto pool = std::make_shared<Pool>();
    pool->device = properties->location.id;
    *out_pool = memory().pools.add(std::move(pool));
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return call(
      "cudaMemPoolDestroy",
      [&] {
        if (!memory().pools.take(handle)) return cudaErrorInvalidValue;
        return cudaSuccess;
      },
      Lost::allows);
}
// A pool gives no memory back to a system, so that the threshold changes nothing.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolSetAttribute", [&] {
    const bool known = memory().pools.find(handle) && attribute == cudaMemPoolAttrReleaseThreshold && value != nullptr;
    return known ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolGetAttribute", [&] {
    const std::shared_ptr<Pool> pool = memory().pools.find(handle);
    if (!pool || attribute != cudaMemPoolAttrUsedMemCurrent || value == nullptr) return cudaErrorInvalidValue;
    *static_cast<std::uint64_t*>(value) = pool->used_bytes;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions, std::size_t count) {
  return call("cudaMemPoolSetAccess", [&] {
    const std::shared_ptr<Pool> pool = memory().pools.find(handle);
    if (!pool || (descriptions == nullptr && count > 0)) return cudaErrorInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      const cudaMemAccessDesc& given = descriptions[i];
      const int device = given.location.id;
      if (given.location.type != cudaMemLocationTypeDevice || !can_access_peer(device, pool->device)) return cudaErrorInvalidValue;
      if (given.flags == cudaMemAccessFlagsProtReadWrite) {
        pool->granted.insert(device);
      } else if (given.flags == cudaMemAccessFlagsProtNone) {
        pool->granted.erase(device);
      } else {
        return cudaErrorInvalidValue;
      }
    }
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, std::size_t) {
  return call("cudaMemPoolTrimTo", [&] { return memory().pools.find(handle) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaMemGetInfo(std::size_t* out_free, std::size_t* out_total) {
  return call("cudaMemGetInfo", [&] {
    const Arena& arena = arena_of(caller().device);
    *out_total = arena.total_bytes();
    *out_free = arena.total_bytes() - arena.used_bytes();
    return cudaSuccess;
  });
}

}  // extern "C"
