// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <string>

#include "control.h"
#include "state.h"

namespace tenon::emulation {
namespace {

unsigned long number_from(const char* variable, unsigned long otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoul(text, nullptr, 10);
}

/// "cudaMalloc=2,cudaStreamCreate=46".
void read_failures(State& s, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size()), equals = text.find('=', at);
    if (equals == std::string::npos || equals > end) {
      std::fprintf(stderr, "TENON_CUDA_EMULATION_FAIL: expected function=number,..., got '%s'\n", text.c_str());
      std::abort();
    }
    s.failures.emplace(text.substr(at, equals - at), static_cast<cudaError_t>(std::atoi(text.c_str() + equals + 1)));
    at = end + 1;
  }
}

/// Writes "kernels 12 library_calls 3 copies 4 waits 5" to the file that TENON_CUDA_EMULATION_COUNTS names.
void write_counts() {
  std::FILE* const file = std::fopen(std::getenv("TENON_CUDA_EMULATION_COUNTS"), "w");
  if (file == nullptr) return;
  auto& counts = state().counts;
  const auto number = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
  std::fprintf(file, "kernels %llu library_calls %llu copies %llu waits %llu\n", number(counts[ItemKind::kernel]),
               number(counts[ItemKind::library_call]), number(counts[ItemKind::copy]), number(state().waits));
  std::fclose(file);
}

State* make_state() {
  auto* const s = new State;
  s->devices.resize(number_from("TENON_CUDA_EMULATION_DEVICES", 1));
  for (std::size_t i = 0; i < s->devices.size(); ++i) {
    auto legacy = std::make_shared<Stream>();
    legacy->device = static_cast<int>(i);
    legacy->legacy = true;
    s->devices[i].legacy = legacy;
    s->devices[i].streams.push_back(std::move(legacy));
  }
  if (const char* order = std::getenv("TENON_CUDA_EMULATION_ORDER"); order != nullptr && *order != '\0') s->order = parse_order(order);
  if (const char* failures = std::getenv("TENON_CUDA_EMULATION_FAIL"); failures != nullptr) read_failures(*s, failures);
  if (std::getenv("TENON_CUDA_EMULATION_COUNTS") != nullptr) std::atexit(write_counts);
  return s;
}

}  // namespace

// Never destroyed: a queue may hold work of a plugin that is already closed.
State& state() {
  static State* const the_state = make_state();
  return *the_state;
}

Caller& caller() {
  thread_local Caller the_caller;
  return the_caller;
}

cudaError_t before_call(const char* name, Lost lost) {
  State& s = state();
  if (const auto failure = s.failures.find(name); failure != s.failures.end()) {
    const cudaError_t error = failure->second;
    s.failures.erase(failure);
    return error;
  }
  if (lost == Lost::allows) return cudaSuccess;
  if (s.devices.empty()) return cudaErrorNoDevice;
  return current_device().lost;
}

void after_call() {
  set_reach(Reach::none, 0);
}

void fail_next(const char* function_name, cudaError_t error) {
  const std::lock_guard guard(state().lock);
  state().failures.emplace(function_name, error);
}

void set_static_shared(const void* kernel, std::size_t bytes) {
  const std::lock_guard guard(state().lock);
  state().static_shared_bytes[kernel] = bytes;
}

void fault(cudaError_t error) {
  const std::lock_guard guard(state().lock);
  current_device().pending_fault = error;
}

void set_order(const char* order) {
  const std::lock_guard guard(state().lock);
  state().order = parse_order(order);
}

}  // namespace tenon::emulation

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaGetLastError() {
  const std::lock_guard guard(state().lock);
  const cudaError_t error = cudaPeekAtLastError();
  caller().last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  const std::lock_guard guard(state().lock);
  if (!state().devices.empty() && current_device().lost != cudaSuccess) return current_device().lost;
  return caller().last_error;
}

}  // extern "C"
