// SPDX-License-Identifier: Apache-2.0
// data/idx.cpp - IDX: two zero bytes, a dtype byte, a rank byte, u32 sizes, elements; all big-endian.
//
// Source  LeCun, Cortes, Burges: the MNIST database, "file formats".
#include "data/idx.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <tenon/data.h>

#include "io/gzip.h"
#include "text/counted.h"

namespace tenon::data {
namespace {

DType dtype_of_code(std::uint32_t code) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0B:
      return DType::i16;
    case 0x0C:
      return DType::i32;
    case 0x0D:
      return DType::f32;
    case 0x0E:
      return DType::f64;
    default:
      return DType::none;
  }
}

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::string shown_magic(std::uint32_t magic) {
  const DType dtype = magic >> 16 == 0 ? dtype_of_code(magic >> 8) : DType::none;
  const std::uint32_t rank = magic & 0xff;
  if (dtype == DType::none) return std::to_string(magic) + " (not an IDX file)";
  return std::to_string(magic) + " (" + name_of(dtype) + " with " + counted(rank, "dimension") + ")";
}

std::uint32_t check_magic(const std::string& path, const std::vector<std::uint8_t>& bytes, std::optional<std::uint32_t> expected) {
  if (bytes.size() < 4) throw Error(path + ": expected an IDX file of at least 4 bytes, got " + std::to_string(bytes.size()));
  const std::uint32_t magic = big_endian(bytes.data());
  if (expected && magic != *expected) throw Error(path + ": expected magic " + shown_magic(*expected) + ", got " + shown_magic(magic));
  const std::uint32_t rank = magic & 0xff;
  if (magic >> 16 != 0 || dtype_of_code(magic >> 8) == DType::none || rank < 1 || rank > Shape::max_rank) {
    throw Error(path + ": expected an IDX magic (two zero bytes, a dtype of 8, 9, 11, 12, 13 or 14, 1 to 8 dimensions), got " +
                std::to_string(magic));
  }
  return magic;
}

Shape read_shape(const std::string& path, const std::vector<std::uint8_t>& bytes, std::size_t rank) {
  if (bytes.size() < 4 + 4 * rank) {
    throw Error(path + ": truncated: expected a header of " + std::to_string(4 + 4 * rank) + " bytes, got " + std::to_string(bytes.size()));
  }
  Shape shape;
  try {
    for (std::size_t i = 0; i < rank; ++i) shape.push_back(std::int64_t{big_endian(bytes.data() + 4 + 4 * i)});
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  return shape;
}

/// The bytes of data that the header states.
std::uint64_t stated_bytes(const std::string& path, DType dtype, const Shape& shape) {
  const auto count = static_cast<std::uint64_t>(shape.count()), size = static_cast<std::uint64_t>(size_of(dtype));
  if (count > std::numeric_limits<std::uint64_t>::max() / size - 64) {
    throw Error(path + ": " + name_of(dtype) + shape.str() + " expects more bytes than a file can have");
  }
  return count * size;
}

void check_size(const std::string& path, DType dtype, const Shape& shape, std::uint64_t stated, std::uint64_t got) {
  if (stated == got) return;
  throw Error(path + ": " + (got < stated ? "truncated" : "trailing bytes") + ": " + name_of(dtype) + shape.str() + " expects " +
              std::to_string(stated) + " bytes after the header, got " + (got < stated ? "" : "at least ") + std::to_string(got));
}

Tensor native_order(const std::vector<std::uint8_t>& bytes, std::size_t header, DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::empty(dtype, shape);
  const auto size = static_cast<std::size_t>(size_of(dtype));
  auto* to = static_cast<std::uint8_t*>(tensor.raw());
  for (std::size_t at = header; at < bytes.size(); at += size, to += size)
    std::reverse_copy(bytes.data() + at, bytes.data() + at + size, to);
  return tensor;
}

}  // namespace

Tensor read_idx(const std::string& path, std::optional<std::uint32_t> expected_magic) {
  io::MaybeGzip file(path);
  const std::vector<std::uint8_t> head = file.head(4 + 4 * Shape::max_rank);
  const std::uint32_t magic = check_magic(path, head, expected_magic);
  const DType dtype = dtype_of_code(magic >> 8);
  const Shape shape = read_shape(path, head, magic & 0xff);
  const std::size_t header = 4 + 4 * shape.rank();
  const std::uint64_t stated = stated_bytes(path, dtype, shape);
  // One byte more than stated shows whether there are more; a gzip file may hold any number of them.
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(std::move(file).head(header + stated + 1));
  check_size(path, dtype, shape, stated, bytes->size() - header);
  if (size_of(dtype) > 1) return native_order(*bytes, header, dtype, shape);
  return Tensor::borrow(bytes->data() + header, dtype, shape, bytes);  // single bytes need no swapping: the tensor uses the file's memory
}

}  // namespace tenon::data

namespace tenon {

Tensor load_idx(const std::string& path) {
  return data::read_idx(path, std::nullopt);
}

}  // namespace tenon
