// SPDX-License-Identifier: Apache-2.0
// list_devices.cpp - what the platforms offer, without opening anything.
#include <algorithm>
#include <string>
#include <string_view>

#include "device/device.h"

namespace tenon::opencl {
namespace {

template <class T>
T fact(cl_device_id device, cl_device_info which) {
  T value{};
  api().clGetDeviceInfo(device, which, sizeof value, &value, nullptr);
  return value;
}

std::string text(cl_device_id device, cl_device_info which) {
  std::size_t size = 0;
  if (api().clGetDeviceInfo(device, which, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string value(size, '\0');
  if (api().clGetDeviceInfo(device, which, size, value.data(), nullptr) != CL_SUCCESS) return {};
  while (!value.empty() && (value.back() == '\0' || value.back() == ' ')) value.pop_back();
  return value;
}

std::string platform_name(cl_platform_id platform) {
  char name[256] = {};
  api().clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
  return name;
}

/// The UUID of cl_khr_device_uuid; otherwise the place in the platform's list.
std::string identity_of(cl_device_id device, const std::string& extensions, const std::string& platform, unsigned index) {
  constexpr cl_device_info device_uuid = 0x106A;
  unsigned char uuid[16];
  if (extensions.find("cl_khr_device_uuid") == std::string::npos ||
      api().clGetDeviceInfo(device, device_uuid, sizeof uuid, uuid, nullptr) != CL_SUCCESS) {
    std::string word = platform;
    for (char& c : word) c = c == ' ' || c == '=' ? '-' : c;
    return "platform=" + word + " device=" + std::to_string(index);
  }
  std::string identity = "uuid=";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    identity += hex;
  }
  return identity;
}

sdk::DeviceDescription describe(cl_device_id device, const std::string& platform, unsigned index) {
  sdk::DeviceDescription found;
  const std::string extensions = text(device, CL_DEVICE_EXTENSIONS), version = text(device, CL_DEVICE_VERSION);
  const cl_device_type type = fact<cl_device_type>(device, CL_DEVICE_TYPE);
  found.kind = (type & CL_DEVICE_TYPE_CPU) != 0 ? TENON_DEVICE_CPU : TENON_DEVICE_GPU;
  found.clock_khz = fact<cl_uint>(device, CL_DEVICE_MAX_CLOCK_FREQUENCY) * 1000;
  found.name = text(device, CL_DEVICE_NAME);
  found.identity = identity_of(device, extensions, platform, index);
  found.description = platform + ", " + version + ", driver " + text(device, CL_DRIVER_VERSION) + ", " +
                      std::to_string(fact<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS)) + " compute units";
  found.memory_size_bytes = fact<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  found.max_allocation_size_bytes = std::min<std::uint64_t>(fact<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE), found.memory_size_bytes);
  found.alignment_bytes = std::max<std::uint64_t>(fact<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 64);
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) found.dtypes |= TENON_DTYPE_BIT(t);
  if (extensions.find("cl_khr_fp64") == std::string::npos) {
    found.dtypes &= ~(TENON_DTYPE_BIT(TENON_DTYPE_F64) | TENON_DTYPE_BIT(TENON_DTYPE_C128));
  }
  return found;
}

}  // namespace

std::vector<Listed> list_devices(std::string& out_reason) {
  constexpr const char* remedy =
      "install the OpenCL driver of the device's vendor, or PoCL (Debian: pocl-opencl-icd) for the CPU, and check what clinfo lists";
  std::vector<Listed> all;
  cl_uint platform_count = 0;
  const cl_int error = api().clGetPlatformIDs(0, nullptr, &platform_count);
  if (error != CL_SUCCESS || platform_count == 0) {
    out_reason = std::string("the OpenCL loader found no driver (") + name_of(error) + "): " + remedy;
    return all;
  }
  std::vector<cl_platform_id> platforms(platform_count);
  check(api().clGetPlatformIDs(platform_count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::string names;
  for (const cl_platform_id platform : platforms) {
    const std::string name = platform_name(platform);
    names += (names.empty() ? "" : ", ") + name;
    cl_uint count = 0;
    if (api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    std::vector<cl_device_id> ids(count);
    if (api().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_uint i = 0; i < count; ++i) {
      if (fact<cl_bool>(ids[i], CL_DEVICE_AVAILABLE) == CL_FALSE || fact<cl_bool>(ids[i], CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE)
        continue;
      all.push_back({platform, ids[i], describe(ids[i], name, i)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return (a.description.kind == TENON_DEVICE_GPU) > (b.description.kind == TENON_DEVICE_GPU);
  });
  if (all.empty()) out_reason = "the OpenCL platforms (" + names + ") have no device with a compiler: " + remedy;
  return all;
}

}  // namespace tenon::opencl
