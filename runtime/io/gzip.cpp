// SPDX-License-Identifier: Apache-2.0
// io/gzip.cpp - reads whole files into memory and inflates gzip content with zlib.
#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include <tenon/error.h>

#include "io/input_file.h"

namespace tenon::io {
namespace {

/// Inflates gzip members with zlib, whose counters are 32 bits wide, so input and output are passed in pieces.
class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {
    if (inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK)
      throw Error(Status::out_of_memory, path_ + ": out of memory for zlib");  // 16: gzip framing
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Stops after `max_bytes` of content.
  std::vector<std::uint8_t> inflate_head(const std::vector<std::uint8_t>& packed, std::uint64_t max_bytes) {
    std::vector<std::uint8_t> content = new_buffer(path_, first_size(packed, max_bytes));
    std::uint64_t in = 0, out = 0;
    for (bool member_open = true; out < max_bytes && (member_open || in < packed.size());) {
      if (!member_open) {  // another member, as after `cat a.gz b.gz`
        if (!is_gzip(packed, in)) damaged(in, std::to_string(packed.size() - in) + " trailing bytes after the gzip data");
        inflateReset(&stream_);
        member_open = true;
      }
      if (out == content.size()) {
        std::vector<std::uint8_t> larger = new_buffer(path_, std::min(max_bytes, std::max<std::uint64_t>(2 * out, 4096)));
        std::copy_n(content.data(), out, larger.data());
        content = std::move(larger);
      }
      stream_.next_in = const_cast<std::uint8_t*>(packed.data() + in);  // zlib does not write through it
      stream_.avail_in = piece(packed.size() - in);
      stream_.next_out = content.data() + out;
      stream_.avail_out = piece(content.size() - out);
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      const auto consumed = static_cast<std::uint64_t>(stream_.next_in - (packed.data() + in));
      in += consumed;
      out = static_cast<std::uint64_t>(stream_.next_out - content.data());
      if (code == Z_STREAM_END)
        member_open = false;
      else if (code == Z_MEM_ERROR)
        throw Error(Status::out_of_memory, path_ + ": out of memory for zlib");
      else if (code != Z_OK && code != Z_BUF_ERROR)
        damaged(in, stream_.msg ? stream_.msg : "not gzip data");
      else if (in == packed.size() && stream_.avail_out > 0) {
        throw Error(path_ + ": gzip data is truncated: it ends after " + std::to_string(in) + " bytes (" + std::to_string(out) +
                    " inflated); download the file again");
      }
    }
    content.resize(static_cast<std::size_t>(out));
    return content;
  }

  static bool is_gzip(const std::vector<std::uint8_t>& bytes, std::uint64_t at) {
    return bytes.size() - at >= 2 && bytes[static_cast<std::size_t>(at)] == 0x1f && bytes[static_cast<std::size_t>(at) + 1] == 0x8b;
  }

 private:
  static uInt piece(std::uint64_t size) { return static_cast<uInt>(std::min<std::uint64_t>(size, 1u << 30)); }

  /// The trailer has the size modulo 2^32. It is only a hint, limited to plausible ratios so that a wrong value is harmless.
  static std::uint64_t first_size(const std::vector<std::uint8_t>& packed, std::uint64_t max_bytes) {
    std::uint64_t claimed = 0;
    for (std::size_t i = 0; i < 4 && packed.size() >= 18; ++i) claimed |= std::uint64_t{packed[packed.size() - 4 + i]} << (8 * i);
    // One byte more, so that the end of the data is detected without another iteration.
    return std::min({claimed + 1, 16 * std::uint64_t{packed.size()} + 65536, max_bytes});
  }

  [[noreturn]] void damaged(std::uint64_t at, const std::string& reason) const {
    throw Error(path_ + ": gzip data is damaged near byte " + std::to_string(at) + ": " + reason + "; download the file again");
  }

  const std::string& path_;
  z_stream stream_{};
};

}  // namespace

MaybeGzip::MaybeGzip(const std::string& path) : path_(path), bytes_(read_file(path)) {}

bool MaybeGzip::is_packed() const {
  return Inflater::is_gzip(bytes_, 0);
}

std::vector<std::uint8_t> MaybeGzip::head(std::uint64_t max_bytes) const& {
  if (is_packed()) return Inflater(path_).inflate_head(bytes_, max_bytes);
  const auto size = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(max_bytes, bytes_.size()));
  return {bytes_.begin(), bytes_.begin() + size};
}

std::vector<std::uint8_t> MaybeGzip::head(std::uint64_t max_bytes) && {
  if (is_packed()) return Inflater(path_).inflate_head(bytes_, max_bytes);
  bytes_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(max_bytes, bytes_.size())));
  return std::move(bytes_);
}

std::vector<std::uint8_t> read_file(const std::string& path, Limit most) {
  const OpenFile file = open_for_reading(path);
  check_limit(path, most, file.size_bytes);
  std::vector<std::uint8_t> bytes = new_buffer(path, file.size_bytes);
  read_exactly(file.file, path, bytes.data(), file.size_bytes);
  return bytes;
}

std::vector<std::uint8_t> read_maybe_gzip(const std::string& path) {
  MaybeGzip file(path);
  if (!file.is_packed()) return std::move(file).head(UINT64_MAX);
  const std::uint64_t most = limit(Limit::inflated_bytes);
  std::vector<std::uint8_t> content = file.head(most + 1);
  if (content.size() > most) fail_limit(path, Limit::inflated_bytes, "more");
  return content;
}

}  // namespace tenon::io
