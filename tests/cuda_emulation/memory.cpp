// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "arena.h"
#include "sanitizers.h"
#include "state.h"

namespace tenon::emulation {
namespace {

constexpr int poison_byte = 0xFF;  // a NaN in every format, -1 as an integer

struct Pool {
  int device = 0;
  std::uint64_t release_threshold = 0, used_bytes = 0, max_used_bytes = 0;
  int reuse[3] = {1, 1, 1};  ///< cudaMemPoolReuse..., stored but ignored
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
  int device = 0;
  unsigned flags = 0;
  bool owned = false;  ///< from cudaHostAlloc, else registered
};

struct Memory {
  std::vector<Arena*> arenas;  ///< by device
  std::vector<std::shared_ptr<Pool>> default_pools, current_pools;
  Handles<Pool, cudaMemPool_t> pools;
  std::map<char*, Block> blocks;
  std::vector<std::shared_ptr<Dying>> dying;
  std::map<char*, HostBlock> host_blocks;
  std::map<const Pool*, cudaMemPool_t> pool_handles;
  bool anything_open = false;
};

Memory* make_memory() {
  const char* const text = std::getenv("TENON_CUDA_EMULATION_MEMORY_MB");
  const std::size_t megabytes = text == nullptr || *text == '\0' ? 2048 : std::strtoull(text, nullptr, 10);
  auto* const memory = new Memory;
  for (std::size_t i = 0; i < state().devices.size(); ++i) {
    memory->arenas.push_back(new Arena(megabytes << 20));
    auto pool = std::make_shared<Pool>();
    pool->device = static_cast<int>(i);
    memory->default_pools.push_back(pool);
    memory->current_pools.push_back(pool);
    memory->pool_handles[pool.get()] = memory->pools.add(pool);
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

enum class Place { device, pinned, pageable };
Place place_of(const void* pointer) {
  if (around(memory().blocks, pointer) != memory().blocks.end()) return Place::device;
  return around(memory().host_blocks, pointer) != memory().host_blocks.end() ? Place::pinned : Place::pageable;
}

void poison(void* address, std::size_t size_bytes, int device) {
  set_reach(Reach::all, device);
  std::memset(address, poison_byte, size_bytes);
}

void count(Pool* pool, std::size_t added, std::size_t taken) {
  if (pool == nullptr) return;
  pool->used_bytes += added - taken;
  pool->max_used_bytes = std::max(pool->max_used_bytes, pool->used_bytes);
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
  if (!pool) pool = memory().current_pools[static_cast<std::size_t>(stream->device)];
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
  memory().host_blocks[static_cast<char*>(address)] = {size_bytes, caller().device, flags, true};
  *out_pointer = address;
  return cudaSuccess;
}

// ---- copies

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

bool agrees(cudaMemcpyKind kind, Place to, Place from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to != Place::device && from != Place::device;
    case cudaMemcpyHostToDevice:
      return to == Place::device && from != Place::device;
    case cudaMemcpyDeviceToHost:
      return to != Place::device && from == Place::device;
    case cudaMemcpyDeviceToDevice:
      return to == Place::device && from == Place::device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

/// `height` rows of `width` bytes. Source: the CUDA Runtime API's page "API synchronization behavior".
struct Copy {
  void* to = nullptr;
  std::size_t to_pitch = 0;
  const void* from = nullptr;
  std::size_t from_pitch = 0, width = 0, height = 1;

  std::size_t extent(std::size_t pitch) const { return (height - 1) * pitch + width; }
  void run() const {
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    }
  }
};

cudaError_t copy(Copy copy, cudaMemcpyKind kind, cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(handle, &stream); error != cudaSuccess) return error;
  if (copy.width == 0 || copy.height == 0) return cudaSuccess;
  if (copy.to == nullptr || copy.from == nullptr || (copy.height > 1 && (copy.to_pitch < copy.width || copy.from_pitch < copy.width))) {
    return cudaErrorInvalidValue;
  }
  const Place to = place_of(copy.to), from = place_of(copy.from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (!agrees(kind, to, from) || !fits(copy.to, copy.extent(copy.to_pitch)) || !fits(copy.from, copy.extent(copy.from_pitch))) {
    return cudaErrorInvalidValue;
  }
  if (stream->capture) return enqueue(stream, {[=] { copy.run(); }, Reach::all, ItemKind::copy});  // a replay reads the memory at that time
  if (from == Place::pageable) {
    // The caller may change its memory as soon as the call returns.
    auto staged = std::make_shared<std::vector<char>>(copy.width * copy.height);
    Copy{staged->data(), copy.width, copy.from, copy.from_pitch, copy.width, copy.height}.run();
    copy.from = staged->data();
    copy.from_pitch = copy.width;
    if (const cudaError_t error = enqueue(stream, {[copy, staged] { copy.run(); }, Reach::all, ItemKind::copy}); error != cudaSuccess)
      return error;
  } else if (const cudaError_t error = enqueue(stream, {[copy] { copy.run(); }, Reach::all, ItemKind::copy}); error != cudaSuccess) {
    return error;
  }
  if (to != Place::pageable) return cudaSuccess;
  drain(*stream);
  return outcome(stream->device);
}

cudaError_t copy_now(const Copy& the_copy, cudaMemcpyKind kind) {
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
  if (const cudaError_t error = copy(the_copy, kind, nullptr); error != cudaSuccess) return error;
  drain(*current_device().legacy);
  return outcome(caller().device);
}

cudaError_t fill(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(handle, &stream); error != cudaSuccess) return error;
  if (width == 0 || height == 0) return cudaSuccess;
  if (to == nullptr || place_of(to) == Place::pageable || !fits(to, (height - 1) * pitch + width)) return cudaErrorInvalidValue;
  return enqueue(stream, {[=] {
                            for (std::size_t row = 0; row < height; ++row) std::memset(static_cast<char*>(to) + row * pitch, value, width);
                          },
                          Reach::all, ItemKind::copy});
}

bool is_device(int device) {
  return device >= 0 && device < static_cast<int>(state().devices.size());
}

}  // namespace

void set_reach(Reach reach, int device) {
  if (reach == Reach::any) return;
  Memory& m = memory();
  if (reach == Reach::none && !m.anything_open) return;
  m.anything_open = reach != Reach::none;
  for (std::size_t i = 0; i < m.arenas.size(); ++i) {
    const int other = static_cast<int>(i);
    m.arenas[i]->set_open(
        reach == Reach::all ||
        (reach == Reach::peers && (other == device || state().devices[static_cast<std::size_t>(device)].peers.count(other) != 0)));
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
  auto& kept = m.default_pools[static_cast<std::size_t>(device)];
  kept->used_bytes = kept->max_used_bytes = 0;
  m.current_pools[static_cast<std::size_t>(device)] = kept;
  m.pools.remove_if([&](const Pool& pool) { return pool.device == device && &pool != kept.get(); });
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
cudaError_t cudaMallocHost(void** out_pointer, std::size_t size_bytes) {
  return call("cudaMallocHost", [&] { return allocate_host(out_pointer, size_bytes, 0); });
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
cudaError_t cudaHostRegister(void* pointer, std::size_t size_bytes, unsigned flags) {
  return call("cudaHostRegister", [&] {
    if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
    if (pointer == nullptr || size_bytes == 0) return cudaErrorInvalidValue;
    auto& blocks = memory().host_blocks;
    const auto next = blocks.lower_bound(static_cast<char*>(pointer));
    if (place_of(pointer) != Place::pageable || (next != blocks.end() && next->first < static_cast<char*>(pointer) + size_bytes)) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
    blocks[static_cast<char*>(pointer)] = {size_bytes, caller().device, flags, false};
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
cudaError_t cudaHostGetFlags(unsigned* out_flags, void* pointer) {
  return call("cudaHostGetFlags", [&] {
    const auto at = memory().host_blocks.find(static_cast<char*>(pointer));
    if (at == memory().host_blocks.end()) return cudaErrorInvalidValue;
    *out_flags = at->second.flags;
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
    const Pool* const key = pool.get();
    *out_pool = memory().pool_handles[key] = memory().pools.add(std::move(pool));
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return call(
      "cudaMemPoolDestroy",
      [&] {
        const std::shared_ptr<Pool> pool = memory().pools.find(handle);
        if (!pool || pool == memory().default_pools[static_cast<std::size_t>(pool->device)]) return cudaErrorInvalidValue;
        memory().pools.take(handle);
        memory().pool_handles.erase(pool.get());
        auto& current = memory().current_pools[static_cast<std::size_t>(pool->device)];
        if (current == pool) current = memory().default_pools[static_cast<std::size_t>(pool->device)];
        return cudaSuccess;
      },
      Lost::allows);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolSetAttribute", [&] {
    const std::shared_ptr<Pool> pool = memory().pools.find(handle);
    if (!pool || value == nullptr) return cudaErrorInvalidValue;
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        pool->reuse[attribute - cudaMemPoolReuseFollowEventDependencies] = *static_cast<int*>(value);
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold:
        pool->release_threshold = *static_cast<std::uint64_t*>(value);
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        if (*static_cast<std::uint64_t*>(value) != 0) return cudaErrorInvalidValue;
        pool->max_used_bytes = pool->used_bytes;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolGetAttribute", [&] {
    const std::shared_ptr<Pool> pool = memory().pools.find(handle);
    if (!pool || value == nullptr) return cudaErrorInvalidValue;
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        *static_cast<int*>(value) = pool->reuse[attribute - cudaMemPoolReuseFollowEventDependencies];
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold:
        *static_cast<std::uint64_t*>(value) = pool->release_threshold;
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent:
        *static_cast<std::uint64_t*>(value) = pool->used_bytes;
        return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        *static_cast<std::uint64_t*>(value) = pool->max_used_bytes;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, std::size_t) {
  return call("cudaMemPoolTrimTo", [&] { return memory().pools.find(handle) ? cudaSuccess : cudaErrorInvalidValue; });
}
// Here, cudaDeviceEnablePeerAccess decides which devices can access a pool: these calls are checked and change nothing.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* accesses, std::size_t count) {
  return call("cudaMemPoolSetAccess",
              [&] { return memory().pools.find(handle) && (accesses != nullptr || count == 0) ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out_pool, int device) {
  return call("cudaDeviceGetDefaultMemPool", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *out_pool = memory().pool_handles[memory().default_pools[static_cast<std::size_t>(device)].get()];
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out_pool, int device) {
  return call("cudaDeviceGetMemPool", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *out_pool = memory().pool_handles[memory().current_pools[static_cast<std::size_t>(device)].get()];
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
  return call("cudaDeviceSetMemPool", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    std::shared_ptr<Pool> pool = memory().pools.find(handle);
    if (!pool || pool->device != device) return cudaErrorInvalidValue;
    memory().current_pools[static_cast<std::size_t>(device)] = std::move(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* out_free, std::size_t* out_total) {
  return call("cudaMemGetInfo", [&] {
    const Arena& arena = arena_of(caller().device);
    *out_total = arena.total_bytes();
    *out_free = arena.total_bytes() - arena.used_bytes();
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out_attributes, const void* pointer) {
  return call("cudaPointerGetAttributes", [&] {
    if (out_attributes == nullptr) return cudaErrorInvalidValue;
    *out_attributes = {};
    out_attributes->device = cudaInvalidDeviceId;
    void* const address = const_cast<void*>(pointer);
    if (const auto at = around(memory().blocks, pointer); at != memory().blocks.end()) {
      out_attributes->type = cudaMemoryTypeDevice;
      out_attributes->device = at->second.device;
      out_attributes->devicePointer = address;
    } else if (const auto host = around(memory().host_blocks, pointer); host != memory().host_blocks.end()) {
      out_attributes->type = cudaMemoryTypeHost;
      out_attributes->device = host->second.device;
      out_attributes->devicePointer = out_attributes->hostPointer = address;
    } else {
      out_attributes->type = cudaMemoryTypeUnregistered;
      out_attributes->hostPointer = address;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&] { return copy_now({to, 0, from, 0, size_bytes}, kind); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] { return copy({to, 0, from, 0, size_bytes}, kind, stream); });
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width, std::size_t height,
                         cudaMemcpyKind kind) {
  return call("cudaMemcpy2D", [&] { return copy_now({to, to_pitch, from, from_pitch, width, height}, kind); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                              std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", [&] { return copy({to, to_pitch, from, from_pitch, width, height}, kind, stream); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t size_bytes, cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&] {
    if (!is_device(to_device) || !is_device(from_device)) return cudaErrorInvalidDevice;
    return copy({to, 0, from, 0, size_bytes}, cudaMemcpyDeviceToDevice, stream);
  });
}
cudaError_t cudaMemset(void* to, int value, std::size_t size_bytes) {
  return call("cudaMemset", [&] {
    const cudaError_t error = refuse_in_capture();
    return error != cudaSuccess ? error : fill(to, 0, value, size_bytes, 1, nullptr);  // CUDA does not wait for it either
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t size_bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] { return fill(to, 0, value, size_bytes, 1, stream); });
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, cudaStream_t stream) {
  return call("cudaMemset2DAsync", [&] { return fill(to, pitch, value, width, height, stream); });
}

}  // extern "C"
