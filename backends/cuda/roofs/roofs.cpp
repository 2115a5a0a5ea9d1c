// SPDX-License-Identifier: Apache-2.0
// tenon_cuda_roofs - a GPU's performance without Tenon: copies, the bus, products by direct cuBLAS calls, launches of an empty graph, and
// what it costs to wait for all blocks or for those of a group. `tenon bench` reports device measurements relative to these, taken in the
// same run. Prints one JSON object to stdout; a text instead of the costs of such a wait says why the GPU does not launch that kernel.
//
// Times are medians of rounds, measured by CUDA events; launches by the host clock.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "libraries/library.h"
#include "roofs/chains.cuh"

namespace {

using namespace tenon::cuda;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}
void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": status " + std::to_string(static_cast<int>(status)));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Seconds that `work` takes on the stream: the median of rounds of `repeats`.
double device_seconds(cudaStream_t stream, int repeats, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> rounds;
  for (int round = 0; round < 13; ++round) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    for (int i = 0; i < repeats; ++i) work();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (round >= 2) rounds.push_back(static_cast<double>(milliseconds) / 1e3 / repeats);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  return median(rounds);
}

/// Seconds of the host for one launch and the wait for it.
double launch_seconds(cudaStream_t stream, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rounds;
  for (int round = 0; round < 220; ++round) {
    const auto begin = Clock::now();
    work();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (round >= 20) rounds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(rounds);
}

/// The graph of what `work` enqueues. It lives until the program ends.
cudaGraphExec_t recorded(cudaStream_t stream, const std::function<void()>& work) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  work();
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  return executable;
}

void print(const char* key, double value) {
  std::printf(",\n  \"%s\": %.6g", key, value);
}
void print(const char* key, const std::string& text) {
  std::printf(",\n  \"%s\": \"%s\"", key, text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "tenon_cuda_roofs: there is no GPU here\n");
    return 77;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  std::printf("{\n  \"device\": \"%s\"", properties.name);

  constexpr std::size_t bytes = std::size_t{256} << 20;
  void *a, *b, *host;
  check(cudaMalloc(&a, bytes), "cudaMalloc");
  check(cudaMalloc(&b, bytes), "cudaMalloc");
  check(cudaHostAlloc(&host, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  // Values between 1/2 and 2 of either sign, as bf16 and as f32: zeros would save power and distort the results.
  std::uint32_t random = 1;
  for (std::size_t i = 0; i < bytes / 2; ++i) {
    random = random * 1664525u + 1013904223u;
    static_cast<std::uint16_t*>(host)[i] = static_cast<std::uint16_t>(0x3f00u | (random >> 24 & 0xffu) | (random >> 16 & 0x8000u));
  }
  for (void* operand : {a, b}) check(cudaMemcpy(operand, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return device_seconds(stream, 4, [&] { check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync"); });
  };
  print("device_copy_gb_s", 2 * bytes / copy(b, a, cudaMemcpyDeviceToDevice) / 1e9);  // read and written
  print("host_to_device_pinned_gb_s", bytes / copy(a, host, cudaMemcpyHostToDevice) / 1e9);
  print("device_to_host_pinned_gb_s", bytes / copy(host, a, cudaMemcpyDeviceToHost) / 1e9);

  const cudaGraphExec_t empty = recorded(stream, [] {});
  print("empty_graph_launch_us", 1e6 * launch_seconds(stream, [&] { check(cudaGraphLaunch(empty, stream), "cudaGraphLaunch"); }));

  // What a small net pays for each of its kernels, and would pay in a kernel that computed all of a step.
  constexpr int chain = 100;
  const int blocks = properties.multiProcessorCount;
  const int groups = blocks / group_blocks;
  unsigned* counters = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&counters), static_cast<std::size_t>(blocks) * sizeof(unsigned)), "cudaMalloc");
  check(cudaMemset(counters, 0, static_cast<std::size_t>(blocks) * sizeof(unsigned)), "cudaMemset");
  for (const bool early : {false, true}) {
    if (early && properties.major < 9) continue;
    const cudaGraphExec_t kernels = recorded(stream, [&] { check(enqueue_chain(stream, blocks, chain, early), "cudaLaunchKernelEx"); });
    const double seconds = device_seconds(stream, 4, [&] { check(cudaGraphLaunch(kernels, stream), "cudaGraphLaunch"); });
    print(early ? "kernel_in_graph_launched_early_us" : "kernel_in_graph_us", 1e6 * seconds / chain);
  }
  const Library library({"cuBLAS", "libcublas", CUBLAS_VER_MAJOR}, search_here(argc > 1 ? argv[1] : nullptr));
  const auto create = library.function<decltype(&cublasCreate)>("cublasCreate_v2");
  const auto set_stream = library.function<decltype(&cublasSetStream)>("cublasSetStream_v2");
  const auto set_math = library.function<decltype(&cublasSetMathMode)>("cublasSetMathMode");
  using GemmEx =
      cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*, cudaDataType, int,
                         const void*, cudaDataType, int, const void*, void*, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
  const auto gemm = library.function<GemmEx>("cublasGemmEx");
  cublasHandle_t handle;
  check(create(&handle), "cublasCreate");
  check(set_stream(handle, stream), "cublasSetStream");
  constexpr int n = 4096;
  const float one = 1, zero = 0;
  void* const c = static_cast<char*>(b) + bytes / 2;  // after the factors, which take at most 64 MiB
  const auto product = [&](cudaDataType_t type, cublasComputeType_t compute, cublasMath_t math) {
    check(set_math(handle, math), "cublasSetMathMode");
    const double seconds = device_seconds(stream, 4, [&] {
      check(gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, type, n, b, type, n, &zero, c, type, n, compute, CUBLAS_GEMM_DEFAULT),
            "cublasGemmEx");
    });
    return 2.0 * n * n * n / seconds / 1e12;
  };
  print("gemm_4096_f32_tflop_s", product(CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_PEDANTIC_MATH));
  print("gemm_4096_tf32_tflop_s", product(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_DEFAULT_MATH));
  print("gemm_4096_bf16_tflop_s", product(CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH));

  // The kernels whose blocks wait for each other come last, since they may be refused, or stop the GPU, where all else works.
  std::fflush(stdout);
  const auto print_barrier = [&](const char* key, const std::function<cudaError_t(int)>& enqueue) {
    const auto seconds = [&](int times) { return device_seconds(stream, 4, [&] { check(enqueue(times), "cudaLaunchKernelEx"); }); };
    try {
      print(key, 1e6 * (seconds(2 * chain) - seconds(chain)) / chain);
    } catch (const std::exception& e) {
      print(key, e.what());
    }
  };
  int cooperative = 0;
  if (cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0) == cudaSuccess && cooperative != 0) {
    print_barrier("grid_barrier_us", [&](int times) { return enqueue_barriers(stream, blocks, times); });
    if (groups > 0) print_barrier("group_barrier_us", [&](int times) { return enqueue_group_barriers(stream, counters, groups, times); });
  }
  std::printf("\n}\n");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "tenon_cuda_roofs: %s\n", e.what());
  return 1;
}
