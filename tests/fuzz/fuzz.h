// fuzz.h - what the targets share: claims, bytes taken apart, files made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <tenon/error.h>

/// A target: one run on these bytes. Ends the process where a claim does not hold; an exception that leaves it does so as well.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tenon::fuzz {

/// Ends the process with the claim if it does not hold.
void demand(bool holds, const char* claim);

/// True if `read` comes to an end, false if it refuses with a tenon::Error that says why. Any other exception ends the run.
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

/// Bytes from front to back; zeros behind the end, so that a short input is a plain one.
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

/// A number as liars send it: small, a power of two and its neighbours, the ends of the range, or anything.
std::uint64_t odd_number(Bytes& bytes);

/// A folder of this process alone, gone when it ends.
const std::string& scratch_folder();
/// Writes the bytes to a file of that folder; its path.
std::string file_of(const std::string& name, std::span<const std::uint8_t> bytes);

}  // namespace tenon::fuzz
