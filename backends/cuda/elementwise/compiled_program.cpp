// SPDX-License-Identifier: Apache-2.0
#include "elementwise/compiled_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/options.h"
#include "kernel/launch.h"
#include "libraries/cublas.h"

namespace tenon::cuda::program {
namespace {

namespace fs = std::filesystem;

/// FNV-1a, in 64 bits.
std::uint64_t hash_of(const std::string& text, std::uint64_t basis) {
  std::uint64_t hash = basis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// The file of the code of `identity` in a folder; empty: there is no folder.
fs::path file_of(const std::string& folder, const std::string& identity) {
  if (folder.empty()) return {};
  char name[48];
  std::snprintf(name, sizeof name, "%016llx%016llx.cubin", static_cast<unsigned long long>(hash_of(identity, 0xcbf29ce484222325u)),
                static_cast<unsigned long long>(hash_of(identity, 0x9ae16a3b2f90404fu)));
  return fs::path(folder) / name;
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns false if it cannot: the code is compiled again the next time.
bool write(const fs::path& file, const std::string& code) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path part = file.string() + "." + std::to_string(getpid());
  {
    std::ofstream out(part, std::ios::binary);
    if (!out.write(code.data(), static_cast<std::streamsize>(code.size())).flush()) return false;
  }
  fs::rename(part, file, error);
  if (!error) return true;
  fs::remove(part, error);
  return false;
}

/// With fewer elements a launch takes longer than the interpretation.
constexpr std::int64_t min_elements = std::int64_t{1} << 16;

OperandForm form_of(const sdk::ElementwisePlace& place) {
  using Columns = OperandForm::Columns;
  return {place.dtype, place.column_stride == 1 ? Columns::dense : place.column_stride == 0 ? Columns::same : Columns::strided};
}

}  // namespace

CompiledKernel::CompiledKernel(Device& device, const std::string& code) {
  device.enter();
  device.check(cudaLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "cudaLibraryLoadData");
  try {
    device.check(cudaLibraryGetKernel(&kernel_, library_, kernel_name), "cudaLibraryGetKernel");
  } catch (...) {
    cudaLibraryUnload(library_);
    throw;
  }
}

CompiledKernel::~CompiledKernel() {
  cudaLibraryUnload(library_);
}

std::shared_ptr<const CompiledKernel> CompiledKernels::make(const std::string& source) const {
  const Nvrtc& compiler = nvrtc(device_.host);
  const std::string architecture = "sm_" + std::to_string(device_.compute_capability());
  const OutsideOfRecordings outside;
  const fs::path file = file_of(options_of(device_).kernel_cache, compiler.version() + " " + architecture + "\n" + source);
  if (!file.empty()) {
    if (const std::string code = read(file); !code.empty()) {
      try {
        return std::make_shared<const CompiledKernel>(device_, code);
      } catch (const sdk::Error&) {  // a damaged file
        if (device_.is_lost()) throw;
      }
    }
  }
  const std::string code = compiler.compile(source, source_headers(), architecture);
  auto kernel = std::make_shared<const CompiledKernel>(device_, code);
  if (!file.empty() && !write(file, code)) {
    const std::string line = "cuda: backends.options.cuda.kernel_cache: " + file.string() + " cannot be written";
    device_.host.log(TENON_LOG_WARNING, line.c_str());
  }
  return kernel;
}

std::shared_ptr<const CompiledKernel> CompiledKernels::get(const std::string& source) {
  const std::lock_guard lock(mutex_);
  if (unusable_) return nullptr;
  const auto found = kernels_.find(source);
  if (found != kernels_.end()) return found->second;
  try {
    return kernels_.emplace(source, make(source)).first->second;
  } catch (const sdk::Error& error) {
    if (error.status() == TENON_DEVICE_LOST || error.status() == TENON_OUT_OF_MEMORY) throw;
    unusable_ = true;
    const std::string line = std::string("cuda: groups of elementwise ops are interpreted, not compiled, which is slower: ") + error.what();
    const bool demanded = options_of(device_).elementwise == Options::Elementwise::compiled;
    device_.host.log(demanded ? TENON_LOG_WARNING : TENON_LOG_INFO, line.c_str());
    return nullptr;
  }
}

void CompiledProgram::prepare(const sdk::ElementwiseProgram& group) {
  rows_ = group.rows;
  columns_ = group.columns;
  std::vector<OperandForm> inputs, outputs;
  for (std::uint32_t i = 0; i < group.input_count; ++i) inputs.push_back(form_of(group.places[i]));
  for (std::uint32_t i = 0; i < group.output_count; ++i) outputs.push_back(form_of(group.places[group.input_count + i]));
  source_ = source_of(translate(group, max_inputs), inputs, outputs, rows_ == 1);
  bool fits = rows_ == 1 || columns_ % source_.pack == 0;
  for (std::uint32_t i = 0; i < group.input_count + group.output_count; ++i) {
    const sdk::ElementwisePlace& place = group.places[i];
    const bool dense = place.column_stride == 1;
    if (dense && rows_ != 1 && place.row_stride % source_.pack != 0) fits = false;
    const std::int64_t bytes = sdk::size_of(place.dtype) * (dense ? source_.pack : 1);
    operands_.push_back({place.row_stride, place.column_stride, static_cast<std::uintptr_t>(std::min<std::int64_t>(bytes, 16))});
  }
  if (!fits) source_.text.clear();
}

const CompiledKernel* CompiledProgram::kernel_for(const sdk::Call& call) const {
  const std::lock_guard lock(mutex_);
  if (!asked_) {
    if (stream_of(call).capturing()) return nullptr;  // nothing is loaded while work is recorded
    asked_ = true;
    auto& device = static_cast<Device&>(*call.device);
    kernel_ = device.attached.get<CompiledKernels>(device).get(source_.text);
  }
  return kernel_.get();
}

bool CompiledProgram::run(const sdk::Call& call) const {
  using Choice = Options::Elementwise;
  const Choice choice = options_of(static_cast<Device&>(*call.device)).elementwise;
  if (source_.text.empty() || choice == Choice::interpreted) return false;
  if (choice == Choice::automatic && rows_ * columns_ < min_elements) return false;
  std::vector<KernelOperand> operands;
  for (std::uint32_t i = 0; i < call.input_count; ++i) operands.push_back({call.inputs[i].data, 0, 0});
  for (std::uint32_t i = 0; i < call.output_count; ++i) operands.push_back({call.outputs[i].data, 0, 0});
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operands[i].row_stride = operands_[i].row_stride;
    operands[i].column_stride = operands_[i].column_stride;
    if (reinterpret_cast<std::uintptr_t>(operands[i].address) % operands_[i].alignment != 0) return false;
  }
  const CompiledKernel* const kernel = kernel_for(call);
  if (kernel == nullptr) return false;
  std::int64_t rows = rows_, columns = columns_;
  std::vector<void*> pointers{&rows, &columns};
  for (KernelOperand& operand : operands) pointers.push_back(&operand);
  Stream& stream = stream_of(call);
  const std::int64_t packs = (rows * columns + source_.pack - 1) / source_.pack;
  launch_compiled(stream, one_thread_each((packs + source_.unroll - 1) / source_.unroll), kernel->handle(), pointers.data());
  return true;
}

}  // namespace tenon::cuda::program
