/* SPDX-License-Identifier: Apache-2.0 */
/* A host in plain C: opens a plugin, runs one Relu through every mandatory step, and frees everything. In places it acts like a host built
 * with an earlier header, whose structs are smaller, or with a later one, whose array elements are longer: plugins must work with both.
 *
 *   drive PLUGIN
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/backend.h>

struct tenon_host_context {
  atomic_llong live_bytes; /* bytes that the plugin has allocated and not released */
};

static char text[512];
static tenon_error error = {sizeof error, TENON_OK, 0, text, sizeof text, 0};

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "expected: %s%s%s\n", what, text[0] ? "; the plugin says: " : "", text);
  exit(1);
}
#define OK(call) expect((call) == TENON_OK, #call " to succeed")

/* ------------------------------------------------------------------ the host's services */

static void host_log(tenon_host_context* context, uint32_t level, const char* line) {
  (void)context, (void)level;
  fprintf(stderr, "%s\n", line);
}
static void* host_allocate(tenon_host_context* context, uint64_t size_bytes, uint64_t alignment_bytes) {
  atomic_fetch_add(&context->live_bytes, (long long)size_bytes);
  return aligned_alloc(alignment_bytes, (size_bytes + alignment_bytes) / alignment_bytes * alignment_bytes);
}
static void host_release(tenon_host_context* context, void* memory, uint64_t size_bytes) {
  atomic_fetch_sub(&context->live_bytes, (long long)size_bytes);
  free(memory);
}
static void host_parallel_for(tenon_host_context* context, const tenon_run* run, int64_t count, int64_t grain,
                              void (*body)(void* argument, int64_t begin, int64_t end), void* argument) {
  (void)context, (void)run, (void)grain;
  body(argument, 0, count / 2);
  body(argument, count / 2, count);
}
static uint32_t host_thread_count(tenon_host_context* context, const tenon_run* run) {
  (void)context, (void)run;
  return 2;
}
static void host_trace_begin(tenon_host_context* context, const char* name, uint64_t correlation_id) {
  (void)context, (void)name, (void)correlation_id;
}
static void host_trace_end(tenon_host_context* context) {
  (void)context;
}
static const char* host_option(tenon_host_context* context, const char* option) {
  (void)context, (void)option;
  return NULL;
}
static const char* host_cache_directory(tenon_host_context* context) {
  (void)context;
  return NULL;
}
static uint32_t host_cancel_requested(tenon_host_context* context, const tenon_run* run) {
  (void)context, (void)run;
  return 0;
}
static uint64_t host_autotune_get(tenon_host_context* context, const char* key, void* out_value, uint64_t capacity_bytes) {
  (void)context, (void)key, (void)out_value, (void)capacity_bytes;
  return 0;
}
static void host_autotune_put(tenon_host_context* context, const char* key, const void* value, uint64_t size_bytes) {
  (void)context, (void)key, (void)value, (void)size_bytes;
}
static const void* host_extension(tenon_host_context* context, const char* name, uint32_t version) {
  (void)context, (void)name, (void)version;
  return NULL;
}

/* ------------------------------------------------------------------ use of a plugin */

/* Array elements of a later header: today's fields, then others that today's plugin must skip. */
typedef struct LaterValue {
  tenon_value value;
  uint64_t later;
} LaterValue;
typedef struct LaterNode {
  tenon_node node;
  uint64_t later[3];
} LaterNode;

static tenon_backend_info ask(tenon_backend_query_fn query) {
  const tenon_host_info host = {.struct_size = sizeof host,
                                .abi_major = TENON_ABI_MAJOR,
                                .abi_minor_lowest = TENON_ABI_MINOR,
                                .abi_minor_highest = TENON_ABI_MINOR + 7,
                                .build_id = "drive",
                                .platform = ""};
  /* A host that knows only the first fields: the plugin must not write past them. */
  tenon_backend_info small;
  memset(&small, 0x5a, sizeof small);
  small.struct_size = offsetof(tenon_backend_info, flags);
  OK(query(&host, &small));
  expect(small.struct_size == offsetof(tenon_backend_info, flags), "struct_size to say what was written");
  expect(small.flags == 0x5a5a5a5a, "the bytes past struct_size to be unchanged");

  tenon_backend_info info = {.struct_size = sizeof info}, again = info;
  OK(query(&host, &info));
  OK(query(&host, &again));
  expect(memcmp(&info, &again, sizeof info) == 0, "the query to give the same answer twice");
  expect(info.abi_major == TENON_ABI_MAJOR && info.abi_minor_lowest <= TENON_ABI_MINOR + 7, "compatible versions");

  const tenon_host_info other = {.struct_size = sizeof other, .abi_major = TENON_ABI_MAJOR + 1, .build_id = "drive", .platform = ""};
  tenon_backend_info refusal = {.struct_size = sizeof refusal};
  expect(query(&other, &refusal) == TENON_INCOMPATIBLE, "a host of another major version to be refused");
  expect(refusal.abi_major == TENON_ABI_MAJOR, "the plugin's own range in a refusal");
  return info;
}

static void run_relu(const tenon_backend_table* table, tenon_device* device) {
  enum { count = 6 };
  const float x[count] = {-2, -0.5f, 0, 0.25f, 1, 8}, expected[count] = {0, 0, 0, 0.25f, 1, 8};
  float y[count] = {0};
  const int64_t shape[2] = {2, 3};
  const tenon_tensor_desc desc = {shape, NULL, 2, TENON_DTYPE_F32};
  LaterValue values[2];
  memset(values, 0x5a, sizeof values);
  values[0].value = (tenon_value){desc, TENON_VALUE_INPUT, 0, NULL, 0, 0};
  values[1].value = (tenon_value){desc, TENON_VALUE_OUTPUT, 1, NULL, 0, 0};
  const uint32_t input = 0, output = 1;
  const tenon_attributes_none attributes = {sizeof attributes, 0};
  LaterNode nodes[1];
  memset(nodes, 0x5a, sizeof nodes);
  nodes[0].node = (tenon_node){TENON_OP_Relu, 14, &input, &output, 1, 1, &attributes, "relu", 1, 0, 0};
  const tenon_graph graph = {sizeof graph, 2, &values[0].value, sizeof values[0], 1, &nodes[0].node, sizeof nodes[0], 0, NULL, 2, 0};
  const tenon_plan_options options = {.struct_size = sizeof options, .deterministic = 1};

  tenon_answer answer;
  OK(table->supports(device, &graph, &options, &answer, sizeof answer, &error));
  expect(answer.supported == 1, "Relu-14 on f32 to be supported");
  tenon_plan* plan;
  OK(table->plan_create(device, &graph, &options, &plan, &error));
  memset(values, 0x5a, sizeof values); /* the graph was borrowed only for the call */
  memset(nodes, 0x5a, sizeof nodes);
  tenon_plan_info info = {.struct_size = sizeof info};
  OK(table->plan_info(plan, &info, &error));

  tenon_stream* stream;
  tenon_event* done;
  OK(table->stream_create(device, NULL, &stream, &error));
  OK(table->event_create(device, NULL, &done, &error));
  tenon_memory* memory[3];
  uint64_t address[3];
  for (int i = 0; i < 3; ++i) {
    const tenon_memory_request request = {
        .struct_size = sizeof request, .kind = TENON_MEMORY_DEVICE, .size_bytes = i < 2 ? sizeof x : info.workspace_size_bytes};
    tenon_memory_result result = {.struct_size = sizeof result};
    OK(table->memory_allocate(device, &request, &result, &error));
    memory[i] = result.memory;
    address[i] = result.address;
  }
  const tenon_copy in = {sizeof in, TENON_COPY_HOST_TO_DEVICE, address[0], (uint64_t)(uintptr_t)x, sizeof x, NULL};
  OK(table->copy(device, &in, stream, &error));
  const tenon_bindings bindings = {.struct_size = sizeof bindings, .address_count = 2, .addresses = address, .parameters_epoch = 1};
  OK(table->plan_execute(plan, &bindings, address[2], stream, &error));
  const tenon_copy out = {sizeof out, TENON_COPY_DEVICE_TO_HOST, (uint64_t)(uintptr_t)y, address[1], sizeof y, NULL};
  OK(table->copy(device, &out, stream, &error));
  OK(table->event_record(done, stream, &error));
  OK(table->event_synchronize(done, &error));
  expect(memcmp(y, expected, sizeof y) == 0, "relu(x)");

  OK(table->stream_synchronize(stream, &error));
  for (int i = 0; i < 3; ++i) table->memory_free(memory[i]);
  table->event_destroy(done);
  table->stream_destroy(stream);
  table->plan_destroy(plan);
  tenon_memory_stats stats = {.struct_size = sizeof stats};
  OK(table->memory_stats(device, &stats, &error));
  expect(stats.live_size_bytes == 0 && stats.allocation_count >= 2, "memory_stats to count the allocations, and all of them freed");
}

int main(int count, char** arguments) {
  expect(count == 2, "one argument, the plugin's path");
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  tenon_backend_query_fn query;
  void* symbol = dlsym(library, TENON_BACKEND_QUERY_SYMBOL);
  expect(symbol != NULL, "the symbol " TENON_BACKEND_QUERY_SYMBOL);
  memcpy(&query, &symbol, sizeof query);
  const tenon_backend_info info = ask(query);

  tenon_host_context context = {0};
  const tenon_host host = {.struct_size = sizeof host,
                           .abi_minor = TENON_ABI_MINOR,
                           .context = &context,
                           .log = host_log,
                           .allocate = host_allocate,
                           .release = host_release,
                           .parallel_for = host_parallel_for,
                           .thread_count = host_thread_count,
                           .trace_begin = host_trace_begin,
                           .trace_end = host_trace_end,
                           .option = host_option,
                           .cache_directory = host_cache_directory,
                           .cancel_requested = host_cancel_requested,
                           .autotune_get = host_autotune_get,
                           .autotune_put = host_autotune_put,
                           .extension = host_extension};
  tenon_backend* backend;
  const tenon_backend_table* table;
  OK(info.create(&host, &backend, &table, &error));
  expect(table->struct_size >= offsetof(tenon_backend_table, blas), "a table with every mandatory slot");
  uint32_t devices = 0;
  OK(table->device_count(backend, &devices, &error));
  expect(devices >= 1, "a device");
  tenon_device_info device_info = {.struct_size = sizeof device_info};
  OK(table->device_info(backend, 0, &device_info, &error));
  expect(table->device_info(backend, devices, &device_info, &error) == TENON_DEVICE_NOT_FOUND && text[0],
         "a device beyond the last to be refused");
  text[0] = '\0';
  char name[128]; /* the backend's string lives no longer than the backend */
  snprintf(name, sizeof name, "%s", device_info.name);
  tenon_device* device;
  OK(table->device_open(backend, 0, &device, &error));
  run_relu(table, device);
  table->device_close(device);
  table->shutdown(backend);
  table->shutdown(backend);
  table->destroy(backend);
  expect(context.live_bytes == 0, "all host memory released");
  printf("%s %s (%s): relu on %s\n", info.name, info.version, info.build_id, name);
  return 0;
}
