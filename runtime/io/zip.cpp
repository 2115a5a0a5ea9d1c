// SPDX-License-Identifier: Apache-2.0
// io/zip.cpp - reads and writes zip archives: local headers, the central directory, data compressed by zlib.
//
// Source  PKWARE: APPNOTE.TXT, .ZIP File Format Specification 6.3.10, sections 4.3 and 4.5.3 (64-bit sizes).
#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include <tenon/error.h>

#include "io/lfs_pointer.h"
#include "io/limits.h"

namespace tenon::io {
namespace {

constexpr std::uint32_t local_magic = 0x04034b50, entry_magic = 0x02014b50, end_magic = 0x06054b50;
constexpr std::uint32_t end64_magic = 0x06064b50, locator64_magic = 0x07064b50;
constexpr std::uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, end64_bytes = 56, locator64_bytes = 20;
constexpr std::uint16_t stored = 0, deflated = 8, encrypted_flag = 1;
constexpr std::uint32_t in_extra = 0xffffffff;  ///< the 64-bit value is in the extra field
constexpr std::uint64_t max_inflation = 1032;   ///< deflate's maximum ratio

template <class T>
T get(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);  // zip is little-endian, as are all supported hosts
  return value;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

uInt piece(std::uint64_t size) {
  return static_cast<uInt>(std::min<std::uint64_t>(size, 1u << 30));
}

std::uint32_t crc_of(std::uint32_t crc, const void* bytes, std::uint64_t size_bytes) {
  const auto* at = static_cast<const Bytef*>(bytes);
  while (size_bytes > 0) {
    const uInt part = piece(size_bytes);
    crc = static_cast<std::uint32_t>(crc32(crc, at, part));
    at += part;
    size_bytes -= part;
  }
  return crc;
}

/// Inflates `packed` into exactly out.size() bytes; returns an error message, or "".
std::string inflate_into(const std::vector<std::uint8_t>& packed, std::vector<std::uint8_t>& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return "out of memory for zlib";
  std::uint64_t in = 0, done = 0;
  std::uint8_t beyond = 0;  // an extra byte to detect excess data
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_in = const_cast<Bytef*>(packed.data() + in);  // zlib does not write through it
    stream.avail_in = piece(packed.size() - in);
    stream.next_out = done < out.size() ? out.data() + done : &beyond;
    stream.avail_out = done < out.size() ? piece(out.size() - done) : 1;
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    code = inflate(&stream, Z_NO_FLUSH);
    in += in_before - stream.avail_in;
    done += out_before - stream.avail_out;
    if (done > out.size()) break;
  }
  const std::string message = stream.msg != nullptr ? stream.msg : "";
  inflateEnd(&stream);
  if (done > out.size()) return "expected " + std::to_string(out.size()) + " bytes as in the directory, got more";
  if (code == Z_BUF_ERROR) return "its deflated data is truncated after " + std::to_string(done) + " bytes";
  if (code != Z_STREAM_END) return "its deflated data is damaged near byte " + std::to_string(in) + (message.empty() ? "" : ": " + message);
  if (done < out.size())
    return "expected " + std::to_string(out.size()) + " bytes, got " + std::to_string(done) + " from its deflated data";
  return "";
}

/// Deflates a sequence of pieces into a string.
class Deflater {
 public:
  explicit Deflater(const std::string& path) {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw Error(Status::out_of_memory, path + ": out of memory for zlib");
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void add(const void* bytes, std::uint64_t size_bytes, bool last) {
    const auto* at = static_cast<const Bytef*>(bytes);
    do {
      const uInt part = piece(size_bytes);
      stream_.next_in = const_cast<Bytef*>(at);
      stream_.avail_in = part;
      at += part;
      size_bytes -= part;
      const int flush = last && size_bytes == 0 ? Z_FINISH : Z_NO_FLUSH;
      do {
        stream_.next_out = buffer_.data();
        stream_.avail_out = static_cast<uInt>(buffer_.size());
        deflate(&stream_, flush);
        packed_.append(reinterpret_cast<const char*>(buffer_.data()), buffer_.size() - stream_.avail_out);
      } while (stream_.avail_out == 0);
    } while (size_bytes > 0);
  }
  const std::string& packed() const { return packed_; }

 private:
  z_stream stream_{};
  std::vector<Bytef> buffer_ = std::vector<Bytef>(1 << 18);
  std::string packed_;
};

}  // namespace

void ZipReader::fail(const std::string& reason) const {
  throw Error(path_ + ": " + reason);
}

void ZipReader::fail(std::size_t i, const std::string& reason) const {
  throw Error(path_ + ": member '" + names_[i] + "': " + reason);
}

void ZipReader::read_at(std::uint64_t offset, void* out_bytes, std::uint64_t size_bytes) const {
  if (const std::error_code error = file_.file.seek(offset)) fail("cannot be read: " + platform::message_of(error));
  read_exactly(file_.file, path_, out_bytes, size_bytes);
}

ZipReader::ZipReader(const std::string& path) : path_(path), file_(open_for_reading(path)) {
  const std::uint64_t size = file_.size_bytes;
  if (size < end_bytes) fail("expected a zip archive of at least 22 bytes, got " + std::to_string(size));
  // The end record is followed by a comment of up to 65535 bytes: search backwards for a record whose comment ends the file.
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(size, end_bytes + 0xffff);
  std::vector<std::uint8_t> tail(static_cast<std::size_t>(tail_bytes));
  read_at(size - tail_bytes, tail.data(), tail_bytes);
  std::size_t at = tail.size() - end_bytes;
  while (get<std::uint32_t>(&tail[at]) != end_magic || at + end_bytes + get<std::uint16_t>(&tail[at + 20]) != tail.size()) {
    if (at-- > 0) continue;
    if (is_lfs_pointer({reinterpret_cast<const char*>(tail.data()), tail.size()}))
      fail("expected a zip archive, " + std::string(got_lfs_pointer));
    fail("not a zip archive, or truncated: the end record is missing");
  }
  const std::uint8_t* end = &tail[at];
  const std::uint64_t end_offset = size - tail_bytes + at;
  std::uint64_t count = get<std::uint16_t>(end + 10), directory_bytes = get<std::uint32_t>(end + 12), begin = get<std::uint32_t>(end + 16);
  std::uint64_t directory_end = end_offset;
  bool one_disk = get<std::uint16_t>(end + 4) == 0 && get<std::uint16_t>(end + 8) == count;
  if (end_offset >= locator64_bytes) {
    std::uint8_t locator[locator64_bytes], end64[end64_bytes];
    read_at(end_offset - locator64_bytes, locator, sizeof locator);
    if (get<std::uint32_t>(locator) == locator64_magic) {
      const auto offset = get<std::uint64_t>(locator + 8);
      if (offset > end_offset || end_offset - offset < end64_bytes + locator64_bytes) fail("its 64-bit end record lies outside the file");
      read_at(offset, end64, sizeof end64);
      if (get<std::uint32_t>(end64) != end64_magic) fail("its 64-bit end record is damaged");
      count = get<std::uint64_t>(end64 + 32);
      one_disk = get<std::uint32_t>(end64 + 16) == 0 && get<std::uint64_t>(end64 + 24) == count;
      directory_bytes = get<std::uint64_t>(end64 + 40);
      begin = get<std::uint64_t>(end64 + 48);
      directory_end = offset;
    }
  }
  if (!one_disk) fail("an archive of several disks is not supported; join its parts");
  if (begin > directory_end || directory_bytes > directory_end - begin)
    fail("its directory lies outside the file; it is truncated or damaged");
  check_limit(path_, Limit::zip_directory_bytes, directory_bytes);
  if (count > directory_bytes / entry_bytes) {
    fail("its directory of " + std::to_string(directory_bytes) + " bytes cannot hold " + std::to_string(count) + " members");
  }
  read_directory(begin, directory_bytes, count);
}

void ZipReader::read_directory(std::uint64_t begin, std::uint64_t size_bytes, std::uint64_t count) {
  std::vector<std::uint8_t> directory(static_cast<std::size_t>(size_bytes));
  read_at(begin, directory.data(), size_bytes);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string damaged = "entry " + std::to_string(i) + " of its directory is damaged";
    if (directory.size() - at < entry_bytes || get<std::uint32_t>(&directory[at]) != entry_magic) fail(damaged);
    const std::uint8_t* fixed = &directory[at];
    const std::size_t name_bytes = get<std::uint16_t>(fixed + 28), extra_bytes = get<std::uint16_t>(fixed + 30);
    const std::size_t all = entry_bytes + name_bytes + extra_bytes + get<std::uint16_t>(fixed + 32);
    if (directory.size() - at < all) fail(damaged);
    Entry entry;
    entry.flags = get<std::uint16_t>(fixed + 8);
    entry.method = get<std::uint16_t>(fixed + 10);
    entry.crc = get<std::uint32_t>(fixed + 16);
    entry.packed_bytes = get<std::uint32_t>(fixed + 20);
    entry.size_bytes = get<std::uint32_t>(fixed + 24);
    entry.offset = get<std::uint32_t>(fixed + 42);
    names_.emplace_back(reinterpret_cast<const char*>(fixed + entry_bytes), name_bytes);
    const std::uint8_t* extra = fixed + entry_bytes + name_bytes;
    const std::uint8_t* extra_end = extra + extra_bytes;
    while (extra_end - extra >= 4) {
      const std::uint16_t id = get<std::uint16_t>(extra), length = get<std::uint16_t>(extra + 2);
      extra += 4;
      if (extra_end - extra < length) fail(damaged);
      const std::uint8_t* field = extra;
      extra += length;
      if (id != 1) continue;
      for (std::uint64_t* value :
           {&entry.size_bytes, &entry.packed_bytes, &entry.offset}) {  // present only if they did not fit, in this order
        if (*value != in_extra) continue;
        if (extra - field < 8) fail(damaged);
        *value = get<std::uint64_t>(field);
        field += 8;
      }
    }
    entries_.push_back(entry);
    at += all;
  }
  check_overlap();
}

/// Rejects members with overlapping data, which would allow a small file to expand without limit.
void ZipReader::check_overlap() const {
  std::vector<std::size_t> by_offset(entries_.size());
  for (std::size_t i = 0; i < by_offset.size(); ++i) by_offset[i] = i;
  std::sort(by_offset.begin(), by_offset.end(), [&](std::size_t a, std::size_t b) { return entries_[a].offset < entries_[b].offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const Entry &before = entries_[by_offset[i - 1]], &entry = entries_[by_offset[i]];
    const std::uint64_t distance = entry.offset - before.offset;
    if (distance < local_bytes || distance - local_bytes < before.packed_bytes) {
      fail(by_offset[i], "overlaps member '" + names_[by_offset[i - 1]] + "'; the archive is damaged");
    }
  }
}

std::uint64_t ZipReader::data_offset(std::size_t i) const {
  const Entry& entry = entries_[i];
  const std::uint64_t size = file_.size_bytes;
  if (entry.offset > size || size - entry.offset < local_bytes) fail(i, "begins outside the file; the archive is truncated or damaged");
  std::uint8_t local[local_bytes];
  read_at(entry.offset, local, sizeof local);
  if (get<std::uint32_t>(local) != local_magic) fail(i, "its header is damaged");
  const std::uint64_t begin = entry.offset + local_bytes + get<std::uint16_t>(local + 26) + get<std::uint16_t>(local + 28);
  if (begin > size || entry.packed_bytes > size - begin) {
    fail(i, "expected " + std::to_string(entry.packed_bytes) + " bytes of data, got the end of the file; it is truncated or damaged");
  }
  return begin;
}

std::vector<std::uint8_t> ZipReader::read(std::size_t i) const {
  const Entry& entry = entries_[i];
  if ((entry.flags & encrypted_flag) != 0) fail(i, "is encrypted; expected an archive without encryption");
  if (entry.method != stored && entry.method != deflated) {
    fail(i, "expected method 0 (stored) or 8 (deflated), got " + std::to_string(entry.method));
  }
  if (entry.method == stored && entry.packed_bytes != entry.size_bytes) fail(i, "is stored, but its two sizes differ");
  const std::uint64_t begin = data_offset(i);
  if (entry.size_bytes > max_inflation * entry.packed_bytes + 64) {
    fail(i, "claims " + std::to_string(entry.size_bytes) + " bytes, which " + std::to_string(entry.packed_bytes) +
                " deflated bytes cannot contain");
  }
  std::vector<std::uint8_t> packed = new_buffer(path_, entry.packed_bytes);
  read_at(begin, packed.data(), entry.packed_bytes);
  std::vector<std::uint8_t> content;
  if (entry.method == stored) {
    content = std::move(packed);
  } else {
    content = new_buffer(path_, entry.size_bytes);
    const std::string problem = inflate_into(packed, content);
    if (!problem.empty()) fail(i, problem);
  }
  const std::uint32_t crc = crc_of(0, content.data(), content.size());
  if (crc != entry.crc) {
    fail(i,
         "is damaged: expected CRC " + std::to_string(entry.crc) + ", got " + std::to_string(crc) + "; download or write the file again");
  }
  return content;
}

void ZipWriter::add(const std::string& name, const std::string& head, const void* body, std::uint64_t body_bytes, bool deflate) {
  const std::uint64_t size = head.size() + body_bytes;
  std::uint64_t packed_bytes = size;
  std::string packed;
  if (deflate) {
    Deflater deflater(path_);
    deflater.add(head.data(), head.size(), false);
    deflater.add(body, body_bytes, true);
    packed = deflater.packed();
    packed_bytes = packed.size();
  }
  const std::uint32_t crc = crc_of(crc_of(0, head.data(), head.size()), body, body_bytes);
  const std::uint64_t offset = written_bytes_;
  const bool wide = std::max(size, packed_bytes) >= in_extra;
  const bool wide_offset = offset >= in_extra;

  // The fields shared by a local header and a directory entry, from "version needed" to the length of the name.
  const auto put_common = [&](std::string& out, bool any_wide) {
    put<std::uint16_t>(out, any_wide ? 45 : 20);  // version needed
    put<std::uint16_t>(out, 0x0800);              // the name is UTF-8
    put<std::uint16_t>(out, deflate ? deflated : stored);
    put<std::uint16_t>(out, 0);     // time: midnight
    put<std::uint16_t>(out, 0x21);  // date: 1980-01-01, so that equal arrays give equal files
    put<std::uint32_t>(out, crc);
    put<std::uint32_t>(out, wide ? in_extra : static_cast<std::uint32_t>(packed_bytes));
    put<std::uint32_t>(out, wide ? in_extra : static_cast<std::uint32_t>(size));
    put<std::uint16_t>(out, static_cast<std::uint16_t>(name.size()));
  };
  std::string local;
  put(local, local_magic);
  put_common(local, wide);
  put<std::uint16_t>(local, wide ? 20 : 0);
  local += name;
  if (wide) {
    put<std::uint16_t>(local, 1);
    put<std::uint16_t>(local, 16);
    put(local, size);
    put(local, packed_bytes);
  }

  std::string extra;
  if (wide) put(extra, size), put(extra, packed_bytes);
  if (wide_offset) put(extra, offset);
  put(directory_, entry_magic);
  put<std::uint16_t>(directory_, 45);  // made by version 4.5, MS-DOS attributes
  put_common(directory_, wide || wide_offset);
  put<std::uint16_t>(directory_, static_cast<std::uint16_t>(extra.empty() ? 0 : extra.size() + 4));
  put<std::uint16_t>(directory_, 0);  // comment
  put<std::uint16_t>(directory_, 0);  // disk
  put<std::uint16_t>(directory_, 0);  // internal attributes
  put<std::uint32_t>(directory_, 0);  // external attributes
  put<std::uint32_t>(directory_, wide_offset ? in_extra : static_cast<std::uint32_t>(offset));
  directory_ += name;
  if (!extra.empty()) {
    put<std::uint16_t>(directory_, 1);
    put<std::uint16_t>(directory_, static_cast<std::uint16_t>(extra.size()));
    directory_ += extra;
  }

  file_.write(local.data(), local.size());
  if (deflate) {
    file_.write(packed.data(), packed.size());
  } else {
    file_.write(head.data(), head.size());
    file_.write(body, body_bytes);
  }
  written_bytes_ += local.size() + packed_bytes;
  ++count_;
}

void ZipWriter::finish() {
  const std::uint64_t begin = written_bytes_;
  std::string end;
  const bool wide = count_ >= 0xffff || begin >= in_extra || directory_.size() >= in_extra;
  if (wide) {
    put(end, end64_magic);
    put<std::uint64_t>(end, end64_bytes - 12);
    put<std::uint16_t>(end, 45);
    put<std::uint16_t>(end, 45);
    put<std::uint32_t>(end, 0);
    put<std::uint32_t>(end, 0);
    put(end, count_);
    put(end, count_);
    put<std::uint64_t>(end, directory_.size());
    put(end, begin);
    put(end, locator64_magic);
    put<std::uint32_t>(end, 0);
    put<std::uint64_t>(end, begin + directory_.size());
    put<std::uint32_t>(end, 1);
  }
  put(end, end_magic);
  put<std::uint32_t>(end, 0);
  put<std::uint16_t>(end, wide ? 0xffff : static_cast<std::uint16_t>(count_));
  put<std::uint16_t>(end, wide ? 0xffff : static_cast<std::uint16_t>(count_));
  put<std::uint32_t>(end, wide ? in_extra : static_cast<std::uint32_t>(directory_.size()));
  put<std::uint32_t>(end, wide ? in_extra : static_cast<std::uint32_t>(begin));
  put<std::uint16_t>(end, 0);
  file_.write(directory_.data(), directory_.size());
  file_.write(end.data(), end.size());
  file_.commit();
}

}  // namespace tenon::io
