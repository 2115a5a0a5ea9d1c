// SPDX-License-Identifier: Apache-2.0
// compiled_program.h - kernels of elementwise programs that NVRTC has compiled for a device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "elementwise/program_source.h"

namespace tenon::cuda::program {

/// A kernel in a library of its own, which is unloaded with it.
class CompiledKernel {
 public:
  /// Errors  those of CUDA, for code that the device cannot load.
  CompiledKernel(Device& device, const std::string& code);
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  const void* handle() const { return kernel_; }  ///< for cudaLaunchKernel

 private:
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
};

/// The kernels of a device, by source. Code is also kept in the folder that backends.options.cuda.kernel_cache names, by a hash of the
/// source, the architecture and NVRTC's version. Attached to a device.
///
/// Threads  any
class CompiledKernels {
 public:
  explicit CompiledKernels(Device& device) : device_(device) {}

  /// NULL if there is no NVRTC or it fails; the first reason is logged, and programs are interpreted. The level
  /// is info, or warning where the option `elementwise` says compiled.
  std::shared_ptr<const CompiledKernel> get(const std::string& source);

 private:
  std::shared_ptr<const CompiledKernel> make(const std::string& source) const;

  Device& device_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> kernels_;
  bool unusable_ = false;
};

/// A program as a compiled kernel: decides whether there is one, and runs it.
///
/// Threads  run(): any
class CompiledProgram {
 public:
  /// For a group of class_f32.
  void prepare(const sdk::ElementwiseProgram& group);
  /// Returns false where the program must be interpreted: it has few elements, rows that are no whole packs, operands that are not aligned,
  /// or there is no kernel.
  bool run(const sdk::Call& call) const;

 private:
  struct Operand {
    std::int64_t row_stride, column_stride;
    std::uintptr_t alignment;  ///< of the address, in bytes
  };
  const CompiledKernel* kernel_for(const sdk::Call& call) const;

  std::int64_t rows_ = 0, columns_ = 0;
  KernelSource source_;  ///< no text: the program is always interpreted
  std::vector<Operand> operands_;
  mutable std::mutex mutex_;
  mutable bool asked_ = false;
  mutable std::shared_ptr<const CompiledKernel> kernel_;
};

}  // namespace tenon::cuda::program
