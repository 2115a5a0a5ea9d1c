/* template.c - a whole backend in one plain C11 file: one CPU device that runs Relu and Add on dense f32 and refuses everything else
 * with a reason. Copy it, rename it, replace the kernels; README.md says in which order. It needs <tenon/backend.h> and the C library. */
/* clang-format off */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <tenon/backend.h>
#include <tenon/backend_helpers.h>
#pragma GCC diagnostic ignored "-Wunused-parameter" /* the ABI sets the slots' parameters, used here or not */

#define ALIGNMENT 64u
#define SMALLEST_SHARE 16384 /* elements below which another thread costs more than it saves */

/* ------------------------------------------------------------------ kernels: y may be a or b */
typedef struct Work {
  const float *a, *b;
  float* y;
} Work;
static void relu(void* argument, int64_t begin, int64_t end) {
  const Work* w = argument;
  for (int64_t i = begin; i < end; ++i) w->y[i] = w->a[i] < 0 ? 0 : w->a[i]; /* a NaN stays one */
}
static void add(void* argument, int64_t begin, int64_t end) {
  const Work* w = argument;
  for (int64_t i = begin; i < end; ++i) w->y[i] = w->a[i] + w->b[i];
}

/* The ops, one a line: name, version, its digest (a line of tenon/op_digests.h), number of inputs, kernel. */
#define OPS(OP)                              \
  OP(Add, 14, 0x0ac45bf52f7b52f5ull, 2, add) \
  OP(Relu, 14, 0xeb83914624541289ull, 1, relu)

typedef struct Op {
  tenon_op op;
  uint32_t version, inputs;
  void (*kernel)(void* work, int64_t begin, int64_t end);
} Op;
#define ROW(name, version, digest, inputs, kernel) {TENON_OP_##name, version, inputs, kernel},
#define DIGEST(name, version, digest, ...) {TENON_OP_##name, version, digest},
#define CAPABILITY(name, version, ...) {TENON_OP_##name, version, TENON_DTYPE_BIT(TENON_DTYPE_F32), TENON_FEATURE_IN_PLACE, 0},
#define LISTED(name, version, ...) " " #name "-" #version
static const Op ops[] = {OPS(ROW)};
static const tenon_op_digest digests[] = {OPS(DIGEST)};
static const tenon_capability capabilities[] = {OPS(CAPABILITY)};
enum { OP_COUNT = sizeof ops / sizeof ops[0] };

/* ------------------------------------------------------------------ objects whose pointers the host holds */
struct tenon_device { /* also its streams: they have no state, because work is done when the submitting call returns */
  const tenon_host* host;
  atomic_ullong live_bytes, peak_bytes, allocations; /* slots may be called from any thread */
};
struct tenon_backend { struct tenon_device device; };
struct tenon_memory { tenon_device* device; uint64_t size_bytes; }; /* the bytes follow at an offset of ALIGNMENT */
struct tenon_event { tenon_device* device; uint64_t recorded_ns; };
struct tenon_plan {
  tenon_device* device;
  const Op* op;
  uint32_t output, inputs[2], bindings; /* indices into the bindings, and how many an execution must pass */
  const float* constants[2];            /* NULL: the input is bound at each execution; else a copy, stored after the plan */
  int64_t elements;
  uint64_t size_bytes;
};

/* All memory comes from the host. */
static void* allocate(const tenon_host* host, uint64_t size_bytes, tenon_error* error) {
  void* memory = host->allocate(host->context, size_bytes, ALIGNMENT);
  if (!memory) tenon_fail(error, TENON_OUT_OF_MEMORY, "template: no host memory for %llu bytes", (unsigned long long)size_bytes);
  return memory;
}
static void release(const tenon_host* host, void* memory, uint64_t size_bytes) { host->release(host->context, memory, size_bytes); }

/* ------------------------------------------------------------------ plans */
static const Op* find_op(const tenon_node* node) {
  for (uint32_t i = 0; i < OP_COUNT; ++i)
    if (ops[i].op == node->op && ops[i].version == node->version) return &ops[i];
  return NULL;
}

#define REFUSE(why, ...) (snprintf(out->text, sizeof out->text, __VA_ARGS__), out->reason = (why), NULL)
/* The op that computes a node, or NULL with the reason in *out. A yes is binding: plan_create may then fail only for lack of memory.
 * Known options change nothing: every math mode allows exact f32, and the same loop gives the same bits. */
static const Op* judge(const tenon_graph* graph, const tenon_node* node, const tenon_plan_options* options, tenon_answer* out) {
  const Op* op = find_op(node);
  const uint32_t needs = tenon_unknown_needs(graph, options, node);
  *out = (tenon_answer){.supported = 0};
  if (needs) return REFUSE(TENON_REASON_NEEDS, "expected no bits in `needs`, got 0x%x: this backend knows none", needs);
  if (options && (options->math > TENON_MATH_BF16 || options->deterministic > 1 || options->fusion > TENON_FUSION_OFF))
    return REFUSE(TENON_REASON_OPTIONS, "math %u, deterministic %u or fusion %u is unknown here", options->math, options->deterministic,
                  options->fusion);
  if (!op)
    return REFUSE(TENON_REASON_OP, "op '%s' version %u is not implemented: this backend has" OPS(LISTED), tenon_op_name(node->op),
                  node->version);
  if (tenon_attributes_size(node) != sizeof(tenon_attributes_none))
    return REFUSE(TENON_REASON_ATTRIBUTES, "expected the 8 bytes of no attributes, got %u", tenon_attributes_size(node));
  if (node->input_count != op->inputs || node->output_count != 1)
    return REFUSE(TENON_REASON_OP, "expected inputs: %u, outputs: 1, got %u and %u", op->inputs, node->input_count, node->output_count);
  for (uint32_t i = 0; i <= op->inputs; ++i) { /* the output, then the inputs */
    const uint32_t index = i == 0 ? node->outputs[0] : node->inputs[i - 1];
    if (index == TENON_NO_INDEX) return REFUSE(TENON_REASON_OP, "operand %u is absent, but none is optional", i);
    if (index >= graph->value_count) return REFUSE(TENON_REASON_OP, "operand %u is value %u of %u", i, index, graph->value_count);
    if (i > 0 && index == node->outputs[0]) return REFUSE(TENON_REASON_OP, "operand %u is the node's own result", i);
    const tenon_value *value = tenon_value_at(graph, index), *y = tenon_value_at(graph, node->outputs[0]);
    const tenon_tensor_desc* desc = &value->desc;
    const int internal = value->kind == TENON_VALUE_INTERNAL, constant = value->kind == TENON_VALUE_CONSTANT;
    if (value->kind > TENON_VALUE_CONSTANT || (i == 0 && value->kind != TENON_VALUE_OUTPUT && !internal))
      return REFUSE(TENON_REASON_SHAPE, "operand %u is a value of kind %u, which is not possible here", i, value->kind);
    if (internal ? graph->node_count == 1 : !constant && value->binding >= graph->binding_count)
      return REFUSE(TENON_REASON_SHAPE, "operand %u is neither bound nor the result of another node", i);
    if (tenon_element_count(desc) < 0 || (constant && !value->data && tenon_element_count(desc) > 0))
      return REFUSE(TENON_REASON_SHAPE, "operand %u has an invalid shape, or is a constant without bytes", i);
    if (desc->dtype != TENON_DTYPE_F32) return REFUSE(TENON_REASON_DTYPE, "operand %u has dtype %u: only f32 is supported", i, desc->dtype);
    if (desc->rank != y->desc.rank || (desc->rank && memcmp(desc->shape, y->desc.shape, desc->rank * sizeof(int64_t)) != 0))
      return REFUSE(TENON_REASON_SHAPE, "input %u has another shape than the output: broadcasting is not supported", i);
    if (!tenon_is_dense(desc)) return REFUSE(TENON_REASON_STRIDES, "operand %u is not dense row-major", i);
  }
  out->supported = 1;
  return op;
}
static tenon_status supports(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_answer* out_answers,
                             uint32_t answer_stride, tenon_error* error) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    tenon_answer answer;
    judge(graph, tenon_node_at(graph, i), options, &answer), tenon_set_answer(out_answers, answer_stride, i, &answer);
  }
  return TENON_OK;
}

static tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options,
                                tenon_plan** out_plan, tenon_error* error) {
  if (graph->node_count != 1) return tenon_fail(error, TENON_UNSUPPORTED, "template: expected 1 node, got %u", graph->node_count);
  const tenon_node* node = tenon_node_at(graph, 0);
  tenon_answer answer;
  const Op* op = judge(graph, node, options, &answer);
  if (!op) return tenon_refuse_node(error, node, answer.text);
  const tenon_value* y = tenon_value_at(graph, node->outputs[0]);
  const int64_t elements = tenon_element_count(&y->desc);
  const uint64_t bytes = (uint64_t)elements * sizeof(float);
  uint64_t size_bytes = sizeof(tenon_plan);
  for (uint32_t i = 0; i < op->inputs; ++i) size_bytes += tenon_value_at(graph, node->inputs[i])->kind == TENON_VALUE_CONSTANT ? bytes : 0;
  tenon_plan* plan = allocate(device->host, size_bytes, error);
  if (!plan) return TENON_OUT_OF_MEMORY;
  *plan = (tenon_plan){.device = device, .op = op, .output = y->binding, .bindings = graph->binding_count, .elements = elements,
                       .size_bytes = size_bytes};
  char* storage = (char*)(plan + 1);
  for (uint32_t i = 0; i < op->inputs; ++i) {
    const tenon_value* x = tenon_value_at(graph, node->inputs[i]);
    plan->inputs[i] = x->binding;
    if (x->kind != TENON_VALUE_CONSTANT || elements == 0) continue;
    plan->constants[i] = memcpy(storage, x->data, bytes); /* borrowed for the length of this call: copied */
    storage += bytes;
  }
  *out_plan = plan;
  return TENON_OK;
}
static void plan_destroy(tenon_plan* plan) { release(plan->device->host, plan, plan->size_bytes); }
static tenon_status plan_info(tenon_plan* plan, tenon_plan_info* out_info, tenon_error* error) {
  const tenon_plan_info own = {sizeof own, 1, 0, 1, plan->size_bytes};
  tenon_answer_with(out_info, &own, sizeof own);
  return TENON_OK;
}
static tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, uint64_t workspace, tenon_stream* stream,
                                 tenon_error* error) {
  const tenon_host* host = plan->device->host;
  const float* inputs[2] = {NULL, NULL};
  if (bindings->needs) return tenon_fail(error, TENON_UNSUPPORTED, "template: plan_execute needs 0x%x, unknown here", bindings->needs);
  if (bindings->address_count < plan->bindings)
    return tenon_fail(error, TENON_INVALID_ARGUMENT, "template: expected %u addresses, got %u", plan->bindings, bindings->address_count);
  if (plan->elements == 0) return TENON_OK;
  for (uint32_t i = 0; i < plan->op->inputs; ++i)
    inputs[i] = plan->constants[i] ? plan->constants[i] : (const float*)(uintptr_t)bindings->addresses[plan->inputs[i]];
  Work work = {inputs[0], inputs[1], (float*)(uintptr_t)bindings->addresses[plan->output]};
  host->parallel_for(host->context, bindings->run, plan->elements, SMALLEST_SHARE, plan->op->kernel, &work);
  return TENON_OK;
}

/* ------------------------------------------------------------------ memory: every host pointer is an address of this device */
static tenon_status give_memory(tenon_memory* memory, void* bytes, tenon_memory_result* out_result) {
  const tenon_memory_result own = {.struct_size = sizeof own, .memory = memory, .address = (uint64_t)(uintptr_t)bytes, .host = bytes};
  tenon_answer_with(out_result, &own, sizeof own);
  return TENON_OK;
}
static tenon_status memory_allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                                    tenon_error* error) {
  const uint64_t size_bytes = request->size_bytes;
  if (request->needs || request->alignment_bytes > ALIGNMENT)
    return tenon_fail(error, TENON_UNSUPPORTED, "template: expected an alignment of at most %u and no bits in needs, got %llu and 0x%x",
                      ALIGNMENT, (unsigned long long)request->alignment_bytes, request->needs);
  if (request->kind > TENON_MEMORY_PINNED)
    return tenon_fail(error, TENON_UNSUPPORTED, "template: memory kind %u is unknown", request->kind);
  tenon_memory* memory = size_bytes <= INT64_MAX ? allocate(device->host, ALIGNMENT + size_bytes, error) : NULL;
  if (!memory) return tenon_fail(error, TENON_OUT_OF_MEMORY, "template: no memory for %llu bytes", (unsigned long long)size_bytes);
  *memory = (tenon_memory){device, size_bytes};
  const unsigned long long live = atomic_fetch_add(&device->live_bytes, size_bytes) + size_bytes;
  unsigned long long peak = atomic_load(&device->peak_bytes);
  while (peak < live && !atomic_compare_exchange_weak(&device->peak_bytes, &peak, live)) continue;
  atomic_fetch_add(&device->allocations, 1);
  return give_memory(memory, (char*)memory + ALIGNMENT, out_result);
}
static tenon_status memory_import(tenon_device* device, const tenon_memory_import* given, tenon_memory_result* out_result,
                                  tenon_error* error) {
  if (given->needs) return tenon_fail(error, TENON_UNSUPPORTED, "template: import needs 0x%x, which is unknown here", given->needs);
  if (given->terms > TENON_IMPORT_BORROW_READ_WRITE)
    return tenon_fail(error, TENON_UNSUPPORTED, "template: unknown import terms %u", given->terms);
  const int copies = given->terms == TENON_IMPORT_COPY; /* under the other terms the bytes stay where they are */
  const tenon_memory_request request = {.struct_size = sizeof request, .kind = TENON_MEMORY_HOST,
                                        .size_bytes = copies ? given->size_bytes : 0};
  tenon_memory_result own = {.struct_size = sizeof own};
  const tenon_status status = memory_allocate(device, &request, &own, error);
  if (status) return status;
  if (copies && given->size_bytes) memcpy(own.host, given->host, given->size_bytes);
  return give_memory(own.memory, copies ? own.host : given->host, out_result);
}
static void memory_free(tenon_memory* memory) {
  atomic_fetch_sub(&memory->device->live_bytes, memory->size_bytes);
  release(memory->device->host, memory, ALIGNMENT + memory->size_bytes);
}
static tenon_status memory_stats(tenon_device* device, tenon_memory_stats* out_stats, tenon_error* error) {
  const tenon_memory_stats own = {sizeof own, 0, device->live_bytes, device->peak_bytes, device->allocations};
  tenon_answer_with(out_stats, &own, sizeof own);
  return TENON_OK;
}
static tenon_status check_range(uint64_t address, uint64_t bytes, tenon_error* error) {
  if (address + bytes >= address) return TENON_OK;
  return tenon_fail(error, TENON_INVALID_ARGUMENT, "template: a range of %llu bytes exceeds the address space", (unsigned long long)bytes);
}
static tenon_status copy(tenon_device* device, const tenon_copy* what, tenon_stream* stream, tenon_error* error) {
  if (what->needs) return tenon_fail(error, TENON_UNSUPPORTED, "template: copy needs 0x%x, which is unknown here", what->needs);
  if (what->direction > TENON_COPY_DEVICE_TO_DEVICE)
    return tenon_fail(error, TENON_UNSUPPORTED, "template: copy direction %u is unknown", what->direction);
  if (check_range(what->destination, what->size_bytes, error) || check_range(what->source, what->size_bytes, error))
    return TENON_INVALID_ARGUMENT;
  if (what->size_bytes) memcpy((void*)(uintptr_t)what->destination, (const void*)(uintptr_t)what->source, what->size_bytes);
  return TENON_OK;
}
static tenon_status fill(tenon_device* device, uint64_t address, uint64_t size_bytes, uint8_t byte, tenon_stream* stream, tenon_error* e) {
  if (check_range(address, size_bytes, e)) return TENON_INVALID_ARGUMENT;
  if (size_bytes) memset((void*)(uintptr_t)address, byte, size_bytes);
  return TENON_OK;
}

/* ------------------------------------------------------------------ streams and events: submitted work is done already */
static tenon_status stream_create(tenon_device* device, const tenon_stream_options* options, tenon_stream** out_stream,
                                  tenon_error* error) {
  if (options && options->needs)
    return tenon_fail(error, TENON_UNSUPPORTED, "template: a stream needs 0x%x, which is unknown here", options->needs);
  return *out_stream = (tenon_stream*)device, TENON_OK;
}
static void stream_destroy(tenon_stream* stream) {}
static tenon_status stream_synchronize(tenon_stream* stream, tenon_error* error) { return TENON_OK; }
static tenon_status event_create(tenon_device* device, const tenon_event_options* options, tenon_event** out_event, tenon_error* error) {
  if (options && options->needs)
    return tenon_fail(error, TENON_UNSUPPORTED, "template: an event needs 0x%x, which is unknown here", options->needs);
  tenon_event* event = allocate(device->host, sizeof *event, error);
  if (!event) return TENON_OUT_OF_MEMORY;
  *event = (tenon_event){device, 0};
  return *out_event = event, TENON_OK;
}
static void event_destroy(tenon_event* event) { release(event->device->host, event, sizeof *event); }
static tenon_status event_record(tenon_event* event, tenon_stream* stream, tenon_error* error) {
  struct timespec now;
#ifdef TIME_UTC
  timespec_get(&now, TIME_UTC);
#else /* MinGW with a C library older than C11 */
  clock_gettime(CLOCK_REALTIME, &now);
#endif
  event->recorded_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  return TENON_OK;
}
static tenon_status event_wait(tenon_event* event, tenon_stream* stream, tenon_error* error) { return TENON_OK; }
static tenon_status event_done(tenon_event* event, tenon_error* error) { return TENON_OK; } /* query and synchronize */
static tenon_status event_elapsed(tenon_event* begin, tenon_event* end, uint64_t* out_ns, tenon_error* error) {
  *out_ns = end->recorded_ns > begin->recorded_ns ? end->recorded_ns - begin->recorded_ns : 0; /* the clock may be set back */
  return TENON_OK;
}

/* ------------------------------------------------------------------ the backend and its one device */
static tenon_status device_count(tenon_backend* backend, uint32_t* out_count, tenon_error* error) { return *out_count = 1, TENON_OK; }
static tenon_status device_info(tenon_backend* backend, uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  const tenon_device_info own = {
      .struct_size = sizeof own, .kind = TENON_DEVICE_CPU, .alignment_bytes = ALIGNMENT, .dtypes = TENON_DTYPE_BIT(TENON_DTYPE_F32),
      .flags = TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS | TENON_DEVICE_SINGLE_NODE_PLANS,
      .name = "template CPU", .identity = "host", .description = "plain C loops"};
  if (index != 0) return tenon_fail(error, TENON_DEVICE_NOT_FOUND, "template:%u does not exist: the only device is template:0", index);
  tenon_answer_with(out_info, &own, sizeof own);
  return TENON_OK;
}
static tenon_status device_open(tenon_backend* backend, uint32_t index, tenon_device** out_device, tenon_error* error) {
  if (index != 0) return tenon_fail(error, TENON_DEVICE_NOT_FOUND, "template:%u does not exist: the only device is template:0", index);
  return *out_device = &backend->device, TENON_OK;
}
static void device_close(tenon_device* device) {}
static void shutdown(tenon_backend* backend) {} /* no threads to join, no streams to drain */
static void destroy(tenon_backend* backend) { release(backend->device.host, backend, sizeof *backend); }
static const tenon_backend_table table = { /* every slot down to plan_execute is mandatory; what follows is not offered */
    sizeof table, 0, shutdown, destroy, device_count, device_info, device_open, device_close, memory_allocate, memory_import, memory_free,
    memory_stats, copy, fill, stream_create, stream_destroy, stream_synchronize, event_create, event_destroy, event_record, event_wait,
    event_done, event_done, event_elapsed, supports, plan_create, plan_destroy, plan_info, plan_execute, NULL, NULL, NULL, NULL, NULL, NULL
};
static tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* e) {
  tenon_backend* backend = allocate(host, sizeof *backend, e);
  if (!backend) return TENON_OUT_OF_MEMORY;
  memset(backend, 0, sizeof *backend);
  backend->device.host = host;
  *out_backend = backend;
  return *out_table = &table, TENON_OK;
}

/* The one exported symbol. */
TENON_EXPORT tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  static const tenon_backend_info own = {
      .struct_size = sizeof own, .abi_major = TENON_ABI_MAJOR, .abi_minor_lowest = TENON_ABI_MINOR_LOWEST,
      .abi_minor_highest = TENON_ABI_MINOR, .priority = 10, .name = "template", .version = "0.1.0",
      .build_id = "template 0.1.0 " __VERSION__, .vendor = "Tenon", .description = "the backend that authors copy", .digest_count = OP_COUNT,
      .digests = digests, .capabilities = capabilities, .capability_count = OP_COUNT, .capability_stride = sizeof capabilities[0],
      .create = create};
  tenon_answer_with(out_info, &own, sizeof own);
  return tenon_versions_meet(host, &own) ? TENON_OK : TENON_INCOMPATIBLE;
}
