// SPDX-License-Identifier: Apache-2.0
// The cuda backend: which devices it opens.
#include <doctest/doctest.h>
#include <tenon/sdk/backend.h>

#include "control.h"
#include "cuda_host.h"
#include "cuda_testing.h"

namespace tenon::cuda {

const sdk::BackendSpec& spec();  // of backend.cpp

namespace {

TEST_CASE("cuda backend: a GPU for which the build has no code is refused when it is opened, with the remedy") {
  TestHost host;
  const auto backend = spec().create(sdk::Host(&host.table));
  REQUIRE(backend->device_count() > 0);
  const auto error_with = [&](cudaError_t error) {
    emulation::fail_next("cudaFuncGetAttributes", error);
    return error_of([&] { backend->open(0); });
  };
  const sdk::Error without_code = error_with(cudaErrorNoKernelImageForDevice);
  CHECK(without_code.status() == TENON_INCOMPATIBLE);
  CHECK(contains(without_code.what(), "the GPU has compute capability 9.0, for which this build has no code"));
  CHECK(contains(without_code.what(), "build it with -DTENON_CUDA_ARCHITECTURES=90"));
  const sdk::Error old_driver = error_with(cudaErrorUnsupportedPtxVersion);
  CHECK(old_driver.status() == TENON_INCOMPATIBLE);
  CHECK(contains(old_driver.what(), "only PTX, which the driver does not compile"));
  CHECK(contains(old_driver.what(), "update the driver"));
  CHECK(error_with(cudaErrorUnknown).status() == TENON_VENDOR_ERROR);
  CHECK_NOTHROW(backend->open(0));
}

}  // namespace
}  // namespace tenon::cuda
