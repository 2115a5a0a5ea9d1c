// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/backend.h - a backend in C++: a spec, a Backend with its devices, and kernels in files.
//
//   const sdk::BackendSpec& spec();   // in backend.cpp of namespace tenon::<name>; the build writes the rest
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include <tenon/backend.h>
#include <tenon/sdk/device.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/op_versions.h>

namespace tenon::sdk {

/// A created backend: lists devices and opens them.
class Backend {
 public:
  explicit Backend(Host services) : host(services) {}
  virtual ~Backend() = default;
  virtual std::uint32_t device_count() = 0;
  /// Why device_count() is 0, and what to do about it; empty otherwise.
  virtual std::string no_device_reason() { return {}; }
  /// Strings must live as long as the backend.
  virtual const DeviceDescription& describe(std::uint32_t index) = 0;
  virtual std::unique_ptr<Device> open(std::uint32_t index) = 0;
  /// Joins threads, drains streams. Called once, before destruction.
  virtual void shutdown() {}
  /// What the backend offers besides the ABI to applications that know it: a struct of this name
  /// and version that lives as long as the backend; NULL: it has none.
  /// Threads  any.
  virtual const void* extension([[maybe_unused]] const char* name, [[maybe_unused]] std::uint32_t version) { return nullptr; }
  /// The id of a new group. Called only if BackendSpec::combined_dtypes is set.
  /// Threads  any.
  virtual tenon_group_id make_group_id();

  const Host host;
};

/// The constant description of a backend.
struct BackendSpec {
  const char* name;
  const char* version;
  const char* vendor;
  const char* description;
  const char* requirements;  ///< vendor libraries and minimum driver version, or NULL
  std::int32_t priority;
  std::uint32_t flags;  ///< TENON_BACKEND_*
  std::span<const tenon_option> options;
  std::unique_ptr<Backend> (*create)(Host host);
  bool captures = false;  ///< some devices have streams that can be recorded: Stream::captures
  /// The set of TENON_DTYPE_BIT that ranks can combine; 0: the backend offers no collectives. Else
  /// Backend::make_group_id and Device::join are there.
  std::uint64_t combined_dtypes = 0;
};

/// A Backend of one CpuDevice named by `description`; flags are those of an inline,
/// host-addressable device. `fusion`: how it runs groups of elementwise nodes, for example
/// piecewise(), and lives as long as the backend; NULL: piece by piece.
std::unique_ptr<Backend> make_cpu_backend(Host host, std::string description, const struct ElementwiseFusion* fusion = nullptr);

namespace detail {
/// One backend's static tables. A program may contain several backends, so they share nothing.
struct Registration {
  const BackendSpec& spec;
  const KernelRow* rows;  ///< ends with a NULL kernel
  std::span<const tenon_capability> capabilities;
  std::span<const tenon_vendor_op> vendor_ops;
  tenon_backend_table table;
  tenon_status (*create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*);
};
/// One capability for each row, and for each older version of its op, which the newest one's kernel
/// handles. Returns the count.
std::size_t list_capabilities(const KernelRow* rows, bool captures, tenon_capability* out_list);
/// The vendor's ops among the rows. Returns the count.
std::size_t list_vendor_ops(const KernelRow* rows, tenon_vendor_op* out_list);
tenon_collectives_table make_collectives_table(std::uint64_t combined_dtypes);
/// `rows`: packed operands are offered if a kernel has Traits::pack_form. `collectives`: left out if
/// the backend offers none.
tenon_backend_table make_table(const BackendSpec& spec, const tenon_blas_table* blas, const tenon_collectives_table* collectives,
                               const KernelRow* rows);
tenon_status query(const Registration& registration, const tenon_host_info* host, tenon_backend_info* out_info);
tenon_status create(const Registration& registration, const tenon_host* host, tenon_backend** out_backend,
                    const tenon_backend_table** out_table, tenon_error* error);

template <auto Spec, const auto& Rows, const tenon_blas_table* (*Blas)()>
struct Plugin {
  static constexpr std::size_t row_count = std::size(Rows) - 1;  // without the NULL kernel at the end

  static const Registration& registration() {
    static std::array<tenon_capability, row_count + older_version_count> capabilities{};
    static const std::size_t count = list_capabilities(Rows, Spec().captures, capabilities.data());
    static std::array<tenon_vendor_op, row_count> vendor_ops{};
    static const std::size_t vendor_op_count = list_vendor_ops(Rows, vendor_ops.data());
    static const tenon_collectives_table collectives = make_collectives_table(Spec().combined_dtypes);
    static const Registration registration{Spec(),
                                           Rows,
                                           std::span(capabilities).first(count),
                                           std::span(vendor_ops).first(vendor_op_count),
                                           make_table(Spec(), Blas == nullptr ? nullptr : Blas(), &collectives, Rows),
                                           create};
    return registration;
  }
  static tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                             tenon_error* error) {
    return detail::create(registration(), host, out_backend, out_table, error);
  }
};
}  // namespace detail

/// The plugin's side of the query: negotiation, sizes, capabilities from the kernel rows. Pure.
/// Rows is an array of KernelRow that ends with a NULL kernel; Blas returns the BLAS table; NULL:
/// not offered.
template <auto Spec, const auto& Rows, const tenon_blas_table* (*Blas)() = nullptr>
tenon_status query(const tenon_host_info* host, tenon_backend_info* out_info) {
  return detail::query(detail::Plugin<Spec, Rows, Blas>::registration(), host, out_info);
}

}  // namespace tenon::sdk
