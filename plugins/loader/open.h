// SPDX-License-Identifier: Apache-2.0
// loader/open.h - the operating system's part: mapping a library, finding its symbol.
#pragma once

#include <filesystem>
#include <memory>

#include <tenon/backend.h>
#include <tenon/transport.h>

namespace tenon::loader {

/// Throws the LoadError of what a library needs and is not there, without opening it.
void check_dependencies(const std::filesystem::path& file);

/// A library that has been mapped. It stays mapped for the life of the process, whatever becomes of this object, unless close_at_end() is
/// called: its threads, its thread-local data and pointers into it may outlive every object of ours.
class Library {
 public:
  /// Opens by absolute path, with immediate, local binding; on Windows, what it needs is searched for next to it and in System32 only.
  /// Throws a LoadError that names missing libraries and the folders tried.
  explicit Library(const std::filesystem::path& file);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Throws a LoadError if the library does not export it.
  tenon_backend_query_fn query() const;
  /// The same for a transport.
  tenon_transport_query_fn transport_query() const;
  /// Unmaps the library when this object is destroyed, if nothing else has it open.
  void close_at_end() { close_ = true; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  bool close_ = false;
};

}  // namespace tenon::loader
