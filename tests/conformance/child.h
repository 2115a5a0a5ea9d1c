// child.h - cases in a process of their own: what the backend does to that process is one result, and nothing of it reaches this one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "rig.h"

namespace tenon::conformance {

/// Consecutive cases, [begin, end), that one process runs.
struct Chunk {
  std::size_t begin = 0, end = 0;
};

/// A process that loads the backend and runs a chunk of cases, seen from the one that started it. It can print, hang, crash, call exit(),
/// install handlers and close descriptors: it has a process group, an end of the terminal and descriptors of its own, and is killed.
/// Threads  one.
class Child {
 public:
  /// Starts it; options and cases outlive it. `shuts_down`: it closes devices and backends at its end, instead of leaving them to the
  /// system.
  Child(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down);
  /// Kills what is left of it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Its ends of pipes, for poll(): something to read is a reason to advance(). -1: closed.
  int messages() const { return messages_; }
  int output() const { return output_; }
  /// Takes what there is, without waiting; kills it when it has been silent for too long.
  void advance();
  bool over() const { return over_; }

  Chunk chunk() const { return chunk_; }
  /// Of the cases from chunk().begin on, so far.
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  std::size_t next() const { return chunk_.begin + verdicts_.size(); }
  bool loaded() const { return !backend_.empty(); }
  /// It did all that it was to do, its shutdown included.
  bool ended() const { return ended_; }
  /// For a case that ends with exit(0): it did.
  bool exited_well() const;
  /// Why the backend could not be loaded, in the loader's words; empty: it was, or the process died of it.
  const std::string& refusal() const { return refusal_; }
  const std::string& wrong_use() const { return wrong_use_; }
  /// How it ended, with the last lines that it printed.
  std::string fate() const;

  const std::string& backend() const { return backend_; }
  const std::string& version() const { return version_; }
  const std::string& device() const { return device_; }

 private:
  void handle(const std::string& line);
  void end_it();

  const Options& options_;
  const Chunk chunk_;
  pid_t process_ = -1;
  int messages_ = -1, output_ = -1;
  std::string unread_, printed_;
  std::chrono::steady_clock::time_point heard_;
  std::vector<Verdict> verdicts_;
  std::string backend_, version_, device_, refusal_, wrong_use_;
  int status_ = 0;
  bool timed_out_ = false, killed_ = false, ended_ = false, over_ = false;
};

}  // namespace tenon::conformance
