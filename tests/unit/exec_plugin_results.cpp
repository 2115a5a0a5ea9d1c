// SPDX-License-Identifier: Apache-2.0
// What a plugin writes to its result parameters is checked: OK without a result is an error of that call, never a NULL that is used.
#include <tenon/stream.h>

#include <cstring>
#include <string>

#include "extra_device.h"
#include "testing.h"

namespace tenon::test {
namespace {

/// The reference backend, with one slot that returns OK and an impossible result.
struct Careless : WrappedBackend<Careless> {
  static constexpr const char* name = "careless";
  static inline std::string fault;
  static inline int destroyed = 0;  ///< packed parameters

  static tenon_status no_device(tenon_backend*, std::uint32_t, tenon_device**, tenon_error*) { return TENON_OK; }
  static tenon_status no_stream(tenon_device*, const tenon_stream_options*, tenon_stream**, tenon_error*) { return TENON_OK; }
  static tenon_status no_event(tenon_device*, const tenon_event_options*, tenon_event**, tenon_error*) { return TENON_OK; }
  static tenon_status no_plan(tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_plan**, tenon_error*) { return TENON_OK; }
  static tenon_status allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                               tenon_error* error) {
    if (fault == "no_memory") return TENON_OK;
    const tenon_status status = real->table().memory_allocate(device, request, out_result, error);
    std::uint64_t& address = out_result->address;
    if (fault == "no_address") address = 0;
    if (fault == "address_at_the_end") address = ~std::uint64_t{0} - 100;
    static std::uint64_t first = 0;
    if (fault == "same_address") first != 0 ? address = first : first = address;
    return status;
  }
  static tenon_status plan_info(tenon_plan* plan, tenon_plan_info* out_info, tenon_error* error) {
    const tenon_status status = real->table().plan_info(plan, out_info, error);
    if (fault == "endless_workspace") out_info->workspace_size_bytes = ~std::uint64_t{0};
    if (fault == "endless_packed") out_info->packed_size_bytes = ~std::uint64_t{0};
    if (fault == "strange_alignment") out_info->workspace_alignment_bytes = 48;
    if (fault == "large_alignment") out_info->workspace_alignment_bytes = 1u << 20;
    return status;
  }
  static tenon_status pack_describe(tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_packing* out_packings,
                                    std::uint32_t, tenon_error*) {
    for (const std::uint32_t v : {1u, 2u}) {
      out_packings[v].size_bytes = 64;
      std::memset(out_packings[v].key, 'k', fault == "endless_key" ? sizeof out_packings[v].key : 1);
    }
    return TENON_OK;
  }
  static tenon_status pack_create(tenon_device*, const tenon_graph*, const tenon_plan_options*, const std::uint32_t*, std::uint32_t count,
                                  tenon_packed** out_packed, tenon_error*) {
    if (fault == "no_packed") return TENON_OK;
    out_packed[count - 1] = reinterpret_cast<tenon_packed*>(&destroyed);  // never read
    return fault == "failing_pack" ? TENON_OUT_OF_MEMORY : TENON_OK;
  }

  static void alter(tenon_backend_table& table) {
    static constexpr tenon_pack_table pack{sizeof(tenon_pack_table), 0, pack_describe, pack_create, [](tenon_packed*) { ++destroyed; }};
    if (fault == "no_packed" || fault == "one_packed" || fault == "failing_pack" || fault == "endless_key") table.pack = &pack;
    if (fault == "no_device") table.device_open = no_device;
    if (fault == "no_stream") table.stream_create = no_stream;
    if (fault == "no_event") table.event_create = no_event;
    if (fault == "no_plan") table.plan_create = no_plan;
    table.memory_allocate = allocate;
    table.plan_info = plan_info;
  }
};

/// Uses every kind of object of a device.
void use(const Context& context) {
  const Device device = context.device("careless:0");
  const Tensor first = device.empty(DType::f32, {3u << 20});
  const Tensor second = device.empty(DType::f32, {3u << 20});
  const Event event(device);
  Graph graph;
  graph.output("y", ops::neg(ops::relu(graph.input("x", DType::f32, {4}))));
  Program(context, graph, {.device = "careless:0"}).run({Tensor::of<float>({1, 2, 3, 4}, {4})});
}

TEST_CASE("plugin results: OK without a result is an error that names the call and the device") {
  const struct {
    const char *fault, *text;
  } cases[] = {
      {"no_device", "device 'careless:0' cannot be opened: device_open returned OK without a result; report this to the plugin's vendor"},
      {"no_stream", "device 'careless:0' cannot create a stream: stream_create returned OK without a result"},
      {"no_event", "device 'careless:0' cannot create an event: event_create returned OK without a result"},
      {"no_plan", "device 'careless:0': a plan of 2 nodes: plan_create returned OK without a result"},
      {"no_memory", "bytes of device memory: memory_allocate returned OK without a result"},
      {"no_address", "bytes of device memory: memory_allocate returned OK without a result"},
      {"address_at_the_end", "bytes of device memory: memory_allocate returned OK without a result"},
      {"same_address", "memory_allocate returned memory that overlaps memory in use"},
      {"endless_workspace", "a plan of 2 nodes: expected at most 1152921504606846976 bytes of workspace, got 18446744073709551615"},
      {"endless_packed", "a plan of 2 nodes: expected at most 1152921504606846976 bytes of packed operands, got 18446744073709551615"},
      {"strange_alignment",
       "expected a workspace alignment that is a power of two up to 64 bytes, the alignment of the device's memory, got 48"},
      {"large_alignment",
       "expected a workspace alignment that is a power of two up to 64 bytes, the alignment of the device's memory, got 1048576"},
  };
  for (const auto& row : cases) {
    CAPTURE(row.fault);
    Careless::fault = row.fault;
    const Context context(test_config());
    Careless::add_to(context);
    CHECK_ERROR_CONTAINS(row.text, use(context));
  }
}

TEST_CASE("plugin results: the form of a packed parameter and its handle are checked") {
  const auto compile = [](const char* fault) {
    Careless::fault = fault;
    const Context context(test_config());
    Careless::add_to(context);
    Graph graph;
    const Value x = graph.input("x", DType::f32, {4, 4}), w = graph.parameter("w", DType::f32, {4, 4});
    graph.output("y", ops::gemm(x, w, graph.parameter("v", DType::f32, {4})));
    const Program program(context, graph, {.device = "careless:0"});
  };
  CHECK_ERROR_CONTAINS("device 'careless:0': 2 packed parameters: pack.create returned OK without a result", compile("no_packed"));
  CHECK(Careless::destroyed == 0);
  CHECK_ERROR_CONTAINS("device 'careless:0': 2 packed parameters: pack.create returned OK without a result", compile("one_packed"));
  CHECK(Careless::destroyed == 1);  // the one that there is
  CHECK_ERROR_CONTAINS("device 'careless:0': 2 packed parameters: OUT_OF_MEMORY", compile("failing_pack"));
  CHECK(Careless::destroyed == 1);  // a failure has made nothing
  CHECK_ERROR_CONTAINS("device 'careless:0': the packed forms of a graph: value 1: expected a key that ends in NUL",
                       compile("endless_key"));
}

}  // namespace
}  // namespace tenon::test
