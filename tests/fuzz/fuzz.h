// SPDX-License-Identifier: Apache-2.0
// fuzz.h - helpers of the targets: claims, reading numbers from the input, files with its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <tenon/error.h>

/// A target: one run on these bytes. Ends the process if a claim does not hold or an exception escapes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tenon::fuzz {

/// Prints the claim and aborts if it does not hold.
void demand(bool holds, const char* claim);

/// True if `read` succeeds, false if it throws a tenon::Error with a message. Any other exception ends the run.
template <class Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    demand(error.what()[0] != '\0', "a refusal says why");
    return false;
  }
}

/// Reads bytes from front to back, and zeros after the end, so that a short input means plain values.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  template <class T>
  T take() {
    T value{};
    const std::size_t n = rest_.size() < sizeof value ? rest_.size() : sizeof value;
    if (n > 0) std::memcpy(&value, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }
  /// In [0, n).
  std::uint32_t below(std::uint32_t n) { return take<std::uint8_t>() % n; }
  std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::span<const std::uint8_t> rest_;
};

/// An adversarial number: small, a power of two or its neighbour, an end of the range, or anything.
std::uint64_t odd_number(Bytes& bytes);

/// A temporary folder of this process, removed at its end.
const std::string& scratch_folder();
/// Writes the bytes to a file of that folder and returns its path.
std::string file_of(const std::string& name, std::span<const std::uint8_t> bytes);

}  // namespace tenon::fuzz
