// SPDX-License-Identifier: Apache-2.0
#include "kernel/binary_cache.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tenon::opencl {
namespace {

constexpr char magic[8] = {'T', 'N', 'O', 'C', 'L', 'B', '0', '1'};

/// The start of a file; the key and the bytes follow.
struct Header {
  char magic[8];
  std::uint64_t key_size, bytes_size, checksum;
};

/// FNV-1a
std::uint64_t hash(const std::string& text, std::uint64_t from = 14695981039346656037u) {
  for (const char c : text) from = (from ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return from;
}

}  // namespace

std::string cache_file_name(const std::string& key) {
  char name[64];
  std::snprintf(name, sizeof name, "opencl-%016llx.bin", static_cast<unsigned long long>(hash(key)));
  return name;
}

CacheResult read_cache_file(const std::string& file, const std::string& key, std::string& out_bytes) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return CacheResult::absent;
  const std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Header header;
  if (content.size() < sizeof header) return CacheResult::damaged;
  std::memcpy(&header, content.data(), sizeof header);
  const std::uint64_t rest = content.size() - sizeof header;
  if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.key_size > rest || header.bytes_size != rest - header.key_size) {
    return CacheResult::damaged;
  }
  const std::string stored_key = content.substr(sizeof header, header.key_size);
  std::string bytes = content.substr(sizeof header + header.key_size);
  if (hash(bytes, hash(stored_key)) != header.checksum) return CacheResult::damaged;
  if (stored_key != key) return CacheResult::absent;
  out_bytes = std::move(bytes);
  return CacheResult::found;
}

void write_cache_file(const std::string& file, const std::string& key, const std::string& bytes) {
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.key_size = key.size();
  header.bytes_size = bytes.size();
  header.checksum = hash(bytes, hash(key));
  const std::string temporary = file + "." + std::to_string(getpid());
  std::error_code error;
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    out << key << bytes;
    out.flush();
    if (!out) {
      out.close();
      std::filesystem::remove(temporary, error);
      return;
    }
  }
  std::filesystem::rename(temporary, file, error);
  if (error) std::filesystem::remove(temporary, error);
}

}  // namespace tenon::opencl
