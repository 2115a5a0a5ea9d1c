// SPDX-License-Identifier: Apache-2.0
#include "kernel/programs.h"

#include <string_view>
#include <utility>

#include "device/process_guard.h"
#include "kernel/binary_cache.h"
#include "kernel/sources.h"

namespace tenon::opencl {
namespace {

std::string fact(cl_device_id device, cl_device_info which) {
  char text[512] = {};
  api().clGetDeviceInfo(device, which, sizeof text - 1, text, nullptr);
  return text;
}

}  // namespace

Programs::Programs(sdk::Host host, cl_context context, cl_device_id device) : host_(host), context_(context), device_(device) {
  device_key_ = fact(device, CL_DEVICE_NAME) + "\n" + fact(device, CL_DEVICE_VERSION) + "\n" + fact(device, CL_DRIVER_VERSION);
  cl_device_fp_config single = 0;
  api().clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, nullptr);
  if ((single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) common_options_ = " -cl-fp32-correctly-rounded-divide-sqrt";
  const char* const wanted = host.option("program_cache");
  const char* const folder = wanted != nullptr && std::string_view(wanted) == "off" ? nullptr : host.cache_directory();
  if (folder != nullptr) cache_folder_ = folder;
}

Programs::~Programs() {
  for (auto& [key, entry] : entries_) {
    for (auto& [name, kernel] : entry.kernels) api().clReleaseKernel(kernel);
    api().clReleaseProgram(entry.program);
  }
}

cl_kernel Programs::kernel(const Source& source, const std::string& options, const char* function) {
  const std::lock_guard lock(mutex_);
  auto at = entries_.find({&source, options});
  if (at == entries_.end()) at = entries_.emplace(std::pair(&source, options), Entry{build(source, options), {}}).first;
  cl_kernel& kernel = at->second.kernels[function];
  if (kernel == nullptr) {
    cl_int error = CL_SUCCESS;
    kernel = api().clCreateKernel(at->second.program, function, &error);
    if (error != CL_SUCCESS) throw sdk::Error(status_of(error), std::string(source.file) + ": kernel " + function + ": " + name_of(error));
  }
  return kernel;
}

cl_program Programs::build(const Source& source, const std::string& given) {
  const std::string options = given + common_options_;
  const ProcessGuard guard;
  const std::string key = device_key_ + "\n" + options + "\n" + sources::common.text + source.text;
  const std::string file = cache_folder_.empty() ? "" : cache_folder_ + "/" + cache_file_name(key);
  if (!file.empty()) {
    if (const cl_program cached = build_from_binary(file, key, options); cached != nullptr) return cached;
  }
  const sdk::Span span(host_, "compile OpenCL C");
  const char* texts[] = {sources::common.text, source.text};
  cl_int error = CL_SUCCESS;
  const cl_program program = api().clCreateProgramWithSource(context_, 2, texts, nullptr, &error);
  check(error, "clCreateProgramWithSource");
  error = api().clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
  if (error != CL_SUCCESS) {
    const std::string text =
        std::string(source.file) + " does not compile with \"" + options + "\" (" + name_of(error) + "): " + log_of(program);
    api().clReleaseProgram(program);
    throw sdk::Error(status_of(error) == TENON_OUT_OF_MEMORY ? TENON_OUT_OF_MEMORY : TENON_VENDOR_ERROR, text);
  }
  if (!file.empty()) store_binary(program, file, key);
  return program;
}

/// NULL: there is no file, or not a usable one.
cl_program Programs::build_from_binary(const std::string& file, const std::string& key, const std::string& options) {
  std::string bytes;
  const CacheResult result = read_cache_file(file, key, bytes);
  if (result == CacheResult::absent) return nullptr;
  cl_program program = nullptr;
  if (result == CacheResult::found) {
    const std::size_t size = bytes.size();
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    cl_int status = CL_SUCCESS, error = CL_SUCCESS;
    program = api().clCreateProgramWithBinary(context_, 1, &device_, &size, &data, &status, &error);
    if (error == CL_SUCCESS && api().clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr) == CL_SUCCESS) return program;
    if (program != nullptr) api().clReleaseProgram(program);
  }
  host_.log(TENON_LOG_WARNING,
            ("the compiled kernels in " + file + " are damaged, or the driver refuses them: they are compiled again").c_str());
  return nullptr;
}

void Programs::store_binary(cl_program program, const std::string& file, const std::string& key) {
  std::size_t size = 0;
  if (api().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || size == 0) return;
  std::string bytes(size, '\0');
  auto* data = reinterpret_cast<unsigned char*>(bytes.data());
  if (api().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, static_cast<void*>(&data), nullptr) != CL_SUCCESS) return;
  write_cache_file(file, key, bytes);
}

std::string Programs::log_of(cl_program program) const {
  std::size_t size = 0;
  api().clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  api().clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

}  // namespace tenon::opencl
