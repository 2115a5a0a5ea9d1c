// SPDX-License-Identifier: Apache-2.0
#include "libraries/nvrtc.h"

#include <cuda_runtime_api.h>

#include <mutex>

namespace tenon::cuda {
namespace {

constexpr LibrarySpec spec{"NVRTC", "libnvrtc", CUDART_VERSION / 1000};

}  // namespace

Nvrtc::Nvrtc(const Search& search) : library_(spec, search) {
#define TENON_FUNCTION(name) name##_ = library_.function<decltype(&::name)>(#name);
  TENON_NVRTC_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
  int major = 0, minor = 0;
  nvrtcVersion_(&major, &minor);
  library_.check_version(major);
  version_ = std::to_string(major) + "." + std::to_string(minor);
}

std::string Nvrtc::compile(const std::string& source, const std::vector<Header>& headers, const std::string& architecture) const {
  const auto check = [&](nvrtcResult result, const char* call) {
    if (result == NVRTC_SUCCESS) return;
    throw sdk::Error(TENON_INTERNAL, std::string("NVRTC ") + call + ": " + nvrtcGetErrorString_(result));
  };
  std::vector<const char*> names, texts;
  for (const auto& [name, text] : headers) {
    names.push_back(name);
    texts.push_back(text);
  }
  struct Program {
    const Nvrtc& functions;
    nvrtcProgram handle = nullptr;
    ~Program() { functions.nvrtcDestroyProgram_(&handle); }
  } program{*this};
  check(nvrtcCreateProgram_(&program.handle, source.c_str(), "program.cu", static_cast<int>(headers.size()), texts.data(), names.data()),
        "CreateProgram");
  const std::string target = "--gpu-architecture=" + architecture;
  const char* const options[] = {target.c_str(), "--std=c++20", "--fmad=false"};
  const nvrtcResult compiled = nvrtcCompileProgram_(program.handle, static_cast<int>(std::size(options)), options);
  std::size_t size = 0;
  if (compiled != NVRTC_SUCCESS) {
    std::string log;
    if (nvrtcGetProgramLogSize_(program.handle, &size) == NVRTC_SUCCESS && size > 0) {
      log.resize(size);
      nvrtcGetProgramLog_(program.handle, log.data());
      log.resize(size - 1);  // without the NUL
    }
    throw sdk::Error(TENON_INTERNAL, std::string("NVRTC: ") + nvrtcGetErrorString_(compiled) + " for " + architecture + ":\n" + log);
  }
  check(nvrtcGetCUBINSize_(program.handle, &size), "GetCUBINSize");
  std::string code(size, '\0');
  check(nvrtcGetCUBIN_(program.handle, code.data()), "GetCUBIN");
  return code;
}

const Nvrtc& nvrtc(const sdk::Host& host) {
  // Never destroyed: other threads may still use it when the process exits.
  static constinit std::mutex mutex;
  static constinit const Nvrtc* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = new Nvrtc(search_here(host.option("libraries")));
  return *opened;
}

}  // namespace tenon::cuda
