// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <tenon/npy.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "io/atomic_file.h"
#include "io/gzip.h"
#include "io/zip.h"

namespace tenon::io {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::size_t max_header_bytes = 1 << 20;  // NumPy's limit is 10,000 characters

struct Code {
  const char* text;  ///< kind and bytes, as NumPy writes them
  DType dtype;
};
constexpr Code codes[] = {{"b1", DType::boolean}, {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32},  {"i8", DType::i64},
                          {"u1", DType::u8},      {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64},  {"f2", DType::f16},
                          {"f4", DType::f32},     {"f8", DType::f64}, {"c8", DType::c64}, {"c16", DType::c128}};

struct Header {
  DType dtype = DType::none;
  bool big_endian = false, fortran = false;
  Shape shape;
};

/// The Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  HeaderParser(const std::string& what, std::string_view text) : what_(what), text_(text) {}

  Header parse() {
    Header header;
    std::set<std::string> seen;
    take('{');
    while (!peek('}')) {
      const std::string key = take_string();
      if (!seen.insert(key).second) fail("key '" + key + "' is given twice");
      take(':');
      if (key == "descr")
        read_dtype(header);
      else if (key == "fortran_order")
        header.fortran = take_bool();
      else if (key == "shape")
        header.shape = take_shape();
      else
        fail("key '" + key + "' is unknown, expected descr, fortran_order and shape");
      if (!peek('}')) take(',');
    }
    take('}');
    skip_space();
    if (at_ != text_.size()) fail("unexpected text after its end");
    for (const char* key : {"descr", "fortran_order", "shape"}) {
      if (seen.count(key) == 0) fail(std::string("key '") + key + "' is missing");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw Error(what_ + ": its .npy header is damaged: " + reason); }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool peek(char expected) {
    skip_space();
    return at_ < text_.size() && text_[at_] == expected;
  }
  void take(char expected) {
    if (!peek(expected)) {
      fail(std::string("expected '") + expected + "' at character " + std::to_string(at_) + ", got " +
           (at_ < text_.size() ? std::string("'") + text_[at_] + "'" : std::string("its end")));
    }
    ++at_;
  }
  std::string take_string() {
    const char quote = peek('"') ? '"' : '\'';
    take(quote);
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("unterminated text at character " + std::to_string(at_));
    const std::string text(text_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }
  bool take_bool() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("expected True or False at character " + std::to_string(at_));
  }
  Shape take_shape() {
    Shape shape;
    take('(');
    while (!peek(')')) {
      std::int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("expected a non-negative size at character " + std::to_string(at_));
      at_ += static_cast<std::size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote 3L
      try {
        shape.push_back(size);
      } catch (const Error& error_of_shape) {
        throw Error(what_ + ": " + error_of_shape.what());
      }
      if (!peek(')')) take(',');
    }
    take(')');
    return shape;
  }
  void read_dtype(Header& header) {
    if (!peek('\'') && !peek('"')) throw Error(Status::unsupported, what_ + ": expected an array of plain numbers, got records");
    const std::string text = take_string();
    const char order = text.empty() ? '?' : text[0];
    for (const Code& code : codes) {
      if (text.size() > 1 && text.substr(1) == code.text && std::strchr("<>|=", order) != nullptr) header.dtype = code.dtype;
    }
    if (header.dtype == DType::none) {
      throw Error(Status::unsupported, what_ + ": dtype '" + text +
                                           "' is not supported; expected bool, integers of 1 to 8 bytes, floats of 2 to 8 or complex "
                                           "numbers of 8 or 16 bytes; convert it with astype");
    }
    header.big_endian = order == '>';
  }

  const std::string& what_;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// The size of the unit of byte order: a complex number has two.
std::size_t word_size(DType dtype) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  return dtype == DType::c64 || dtype == DType::c128 ? size / 2 : size;
}

void check_size(const std::string& what, const Header& header, std::uint64_t got) {
  const auto count = static_cast<std::uint64_t>(header.shape.count());
  const auto size = static_cast<std::uint64_t>(size_of(header.dtype));
  const bool too_many = count > std::numeric_limits<std::uint64_t>::max() / size;
  if (!too_many && count * size == got) return;
  throw Error(what + ": " + (too_many || got < count * size ? "truncated" : "trailing bytes") + ": " + name_of(header.dtype) +
              header.shape.str() + " expects " + (too_many ? "more than 2^64" : std::to_string(count * size)) +
              " bytes after the header, got " + std::to_string(got));
}

/// Bools other than 0 and 1 would be undefined behaviour in kernels.
void check_bools(const std::string& what, const std::uint8_t* bytes, std::int64_t count) {
  const auto* wrong = std::find_if(bytes, bytes + count, [](std::uint8_t byte) { return byte > 1; });
  if (wrong != bytes + count) {
    throw Error(what + ": element " + std::to_string(wrong - bytes) + " of bool is " + std::to_string(*wrong) + ", expected 0 or 1");
  }
}

Shape reversed(const Shape& shape) {
  Shape result;
  for (std::size_t i = shape.rank(); i-- > 0;) result.push_back(shape[i]);
  return result;
}

}  // namespace

Tensor parse_npy(const std::string& what, std::shared_ptr<std::vector<std::uint8_t>> bytes) {
  const std::vector<std::uint8_t>& file = *bytes;
  if (file.size() < 10 || std::memcmp(file.data(), magic.data(), magic.size()) != 0) {
    throw Error(what + ": not a .npy file: expected it to start with \\x93NUMPY and a version");
  }
  const int major = file[6], minor = file[7];
  if (major < 1 || major > 3 || minor != 0) {
    throw Error(Status::unsupported,
                what + ": expected .npy version 1.0, 2.0 or 3.0, got " + std::to_string(major) + "." + std::to_string(minor));
  }
  const std::size_t prefix = major == 1 ? 10 : 12;
  std::size_t header_bytes = 0;
  for (std::size_t i = 8; i < std::min(prefix, file.size()); ++i) header_bytes |= std::size_t{file[i]} << (8 * (i - 8));
  if (file.size() < prefix || header_bytes > file.size() - prefix || header_bytes > max_header_bytes) {
    throw Error(what + ": expected a header of at most " +
                std::to_string(std::min(max_header_bytes, file.size() < prefix ? std::size_t{0} : file.size() - prefix)) +
                " bytes, got a length of " + std::to_string(header_bytes) + "; the file is truncated or damaged");
  }
  const Header header = HeaderParser(what, {reinterpret_cast<const char*>(file.data()) + prefix, header_bytes}).parse();
  const std::size_t begin = prefix + header_bytes;
  check_size(what, header, file.size() - begin);
  if (header.dtype == DType::boolean) check_bools(what, file.data() + begin, header.shape.count());

  const Shape stored = header.fortran ? reversed(header.shape) : header.shape;
  const std::size_t word = word_size(header.dtype);
  const bool swapped = header.big_endian && word > 1;
  Tensor tensor;
  if (!swapped && reinterpret_cast<std::uintptr_t>(file.data() + begin) % word == 0) {
    tensor = Tensor::borrow(bytes->data() + begin, header.dtype, stored, bytes);
  } else {
    tensor = Tensor::empty(header.dtype, stored);
    auto* to = static_cast<std::uint8_t*>(tensor.raw());
    if (!swapped) std::copy(file.begin() + static_cast<std::ptrdiff_t>(begin), file.end(), to);
    for (std::size_t at = begin; swapped && at < file.size(); at += word, to += word)
      std::reverse_copy(file.data() + at, file.data() + at + word, to);
  }
  if (!header.fortran || header.shape.rank() < 2) return tensor;
  std::vector<std::int64_t> backwards;
  for (std::size_t i = header.shape.rank(); i-- > 0;) backwards.push_back(static_cast<std::int64_t>(i));
  return tensor.permute(backwards).contiguous();
}

std::string npy_header(const std::string& what, DType dtype, const Shape& shape) {
  const auto* code = std::find_if(std::begin(codes), std::end(codes), [&](const Code& c) { return c.dtype == dtype; });
  if (code == std::end(codes)) {
    throw Error(Status::unsupported, what + ": cannot be written: the .npy format has no dtype for " + name_of(dtype) + shape.str() +
                                         "; cast it, or save it as safetensors");
  }
  std::string text =
      std::string("{'descr': '") + (word_size(dtype) == 1 ? '|' : '<') + code->text + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.rank(); ++i)
    text += (i > 0 ? " " : "") + std::to_string(shape[i]) + (i == 0 || i + 1 < shape.rank() ? "," : "");
  text += "), }";
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace tenon::io

namespace tenon {
namespace {

constexpr std::string_view ending = ".npy";

bool has_ending(const std::string& name) {
  return name.size() >= ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

Tensor dense_on_host(const std::string& what, const Tensor& tensor) {
  if (!tensor.defined()) throw Error(what + ": cannot be written: the tensor is undefined");
  return tensor.on_host() && tensor.is_dense() ? tensor : tensor.to_host();
}

std::string array_name(const std::string& member) {
  return has_ending(member) ? member.substr(0, member.size() - ending.size()) : member;
}

Tensor read_member(const std::string& path, const io::ZipReader& archive, std::size_t i) {
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(archive.read(i));
  return io::parse_npy(path + ": member '" + archive.names()[i] + "'", std::move(bytes));
}

}  // namespace

Tensor load_npy(const std::string& path) {
  return io::parse_npy(path, std::make_shared<std::vector<std::uint8_t>>(io::read_file(path)));
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const Tensor host = dense_on_host(path, tensor);
  const std::string header = io::npy_header(path, host.dtype(), host.shape());
  io::AtomicFile file(path);
  file.write(header.data(), header.size());
  file.write(host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  file.commit();
}

std::vector<NamedTensor> load_npz(const std::string& path) {
  const io::ZipReader archive(path);
  std::vector<NamedTensor> arrays;
  for (std::size_t i = 0; i < archive.names().size(); ++i)
    arrays.push_back({array_name(archive.names()[i]), read_member(path, archive, i)});
  return arrays;
}

Tensor load_npz(const std::string& path, const std::string& name) {
  const io::ZipReader archive(path);
  std::string known;
  for (std::size_t i = 0; i < archive.names().size(); ++i) {
    const std::string here = array_name(archive.names()[i]);
    if (here == name) return read_member(path, archive, i);
    known += (known.empty() ? "" : ", ") + here;
  }
  throw Error(path + ": expected an array '" + name + "', got " + (known.empty() ? "an empty archive" : known));
}

void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, NpzCompression compression) {
  constexpr std::size_t max_name_bytes = 65000;  // lengths are 16 bits in the archive
  std::set<std::string> seen;
  for (const NamedTensor& named : tensors) {
    const std::string what = path + ": cannot be written: array '" + named.name.substr(0, 100) + "'";
    if (named.name.empty() || has_ending(named.name) || named.name.size() > max_name_bytes)
      throw Error(what + ": expected a name of 1 to 65000 bytes without the ending .npy, which is appended");
    if (!seen.insert(named.name).second) throw Error(what + " is given twice");
  }
  io::ZipWriter archive(path);
  for (const auto& [name, tensor] : tensors) {
    const std::string what = path + ": array '" + name + "'";
    const Tensor host = dense_on_host(what, tensor);
    archive.add(name + std::string(ending), io::npy_header(what, host.dtype(), host.shape()), host.raw(),
                static_cast<std::uint64_t>(host.size_bytes()), compression == NpzCompression::deflate);
  }
  archive.finish();
}

}  // namespace tenon
