/* SPDX-License-Identifier: Apache-2.0 */
/* tenon/runtime.h - the runtime as a C API: for C, and for all languages that call C.
 *
 *   TenonContext* context = NULL;
 *   TenonError* error = tenon_context_create(NULL, &context);
 *   if (error != NULL) {
 *     fprintf(stderr, "%s\n", tenon_error_message(error));
 *     tenon_release(error);
 *   }
 *
 * libtenon exports these functions, whose names begin with tenon_, under the version node
 * TENON_RUNTIME_1. The header is plain C11 and C++. Dtypes, statuses, op numbers, attribute structs
 * and BLAS records are those of tenon/backend.h. docs/c-api.md has the life cycle and an example.
 *
 * Conventions, true for every function unless its comment says otherwise:
 *   Errors      a function that can fail returns a TenonError, which the caller releases, or NULL.
 *               On failure out-parameters are left untouched, and nothing has been acquired. No
 *               state of a thread is involved. No C++ exception crosses. A null or wrong object is
 *               TENON_INVALID_ARGUMENT, and the message names the argument.
 *   Objects     are opaque and counted. A function that returns one by an out-parameter gives its
 *               caller a reference, to be given up by tenon_release. Objects keep alive what they
 *               need: a tensor keeps its device, a program its context.
 *   Arguments   are borrowed for the length of the call. Texts are UTF-8 and end with a NUL.
 *   Results     of type char* belong to the caller, who frees them by tenon_string_free. Those of
 *               type const char* live as long as the object they come from.
 *   Definitions are YAML, of which JSON is a part; reports are JSON.
 *   Sizes       are in bytes and named so, or count elements. Strides are in elements.
 *   Threads     functions may be called from any thread. Objects of one kind may be used by several
 *               threads at the same time where the section says so; else by one at a time.
 *   Growth      a struct that begins with struct_size may grow at its end: its sender sets
 *               struct_size to sizeof and every field that it does not use, `reserved` too, to 0,
 *               which means "not given". A library that does not know a field which is not 0
 *               refuses the struct with TENON_UNSUPPORTED; an unknown flag or constant is an error.
 *               Since 1.0 of Tenon functions, fields and constants are only added.
 *   Callbacks   no exception leaves them. An error that they return is released by the runtime.
 */
#ifndef TENON_RUNTIME_H
#define TENON_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/api.h>
#include <tenon/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ objects */

typedef struct TenonError TenonError;
typedef struct TenonContext TenonContext;
typedef struct TenonDevice TenonDevice;
typedef struct TenonTensor TenonTensor;

/** "1.0.0" */
TENON_API const char* TENON_CALL tenon_version(void);

/** Adds a reference to an object of any kind. NULL is allowed. Threads: any. */
TENON_API void TENON_CALL tenon_retain(const void* object);
/** Gives up a reference; the last one ends the object, which must not be used any more. NULL is
 * allowed. Threads: any. */
TENON_API void TENON_CALL tenon_release(const void* object);
/** The number of objects that the process has, errors included. Threads: any. */
TENON_API uint64_t TENON_CALL tenon_object_count(void);
/** Frees a text that a function returned. NULL is allowed. Threads: any. */
TENON_API void TENON_CALL tenon_string_free(char* text);

/* ------------------------------------------------------------------ errors
 * Threads: any; an error does not change. */

/** An error for callbacks of the caller to return, which the runtime then releases. NULL text: none.
 * Never NULL. */
TENON_API TenonError* TENON_CALL tenon_error_create(tenon_status status, const char* message);
/** TENON_OK for NULL. */
TENON_API tenon_status TENON_CALL tenon_error_status(const TenonError* error);
/** One or more sentences: what failed, what was expected, what was given and, if there is one, the
 * remedy. "" for NULL. */
TENON_API const char* TENON_CALL tenon_error_message(const TenonError* error);
/** "INVALID_ARGUMENT"; "?" for a number that is no status. */
TENON_API const char* TENON_CALL tenon_status_name(tenon_status status);

/* ------------------------------------------------------------------ contexts
 * Loaded backends and their devices. There is no global one.
 * Threads: any, also at the same time. A child of fork() creates its own context. */

/** What tenon_context_create loads. */
typedef struct TenonContextOptions {
  uint32_t struct_size;
  uint32_t reserved;
  const char* config;         /**< the keys of a tenon.yaml; they go before environment and files */
  const char* config_file;    /**< a tenon.yaml; NULL: the one that TENON_CONFIG names, or none */
  const char* const* plugins; /**< files and folders that are searched for backends first */
  uint64_t plugin_count;
  /** NULL, or for each of `plugins` what the load report says about where its path comes from,
   * "package acme"; NULL: "API". With an origin, a path that cannot be used is a record of the
   * report, and no error. */
  const char* const* plugin_origins;
} TenonContextOptions;

/** Loads backends as configured; NULL: by the environment and the defaults. Programs that keep a
 * context in static storage of a DLL of Windows release it before that is unloaded: the context waits
 * for its threads, which the system has stopped by then.
 * Errors  an invalid configuration, with line and key; a path of `plugins` that does not exist or is
 *         no usable file; no usable backend. */
TENON_API TenonError* TENON_CALL tenon_context_create(const TenonContextOptions* options,
                                                      TenonContext** out_context);
/** All keys as YAML, each with where its value comes from as a comment. */
TENON_API TenonError* TENON_CALL tenon_context_config(const TenonContext* context, char** out_yaml);
/** {"records": [{path, name, origin, reached, status, healthy, shadowed, denied, text, remedy,
 * warnings, exposures, missing: [{name, needed_by, folders}], output, version, build_id, vendor,
 * description, requirements, priority, abi, devices, summary}], "places": [{path, origin, text}]}:
 * what became of each file that could be a backend. */
TENON_API TenonError* TENON_CALL tenon_context_load_report(const TenonContext* context,
                                                           char** out_json);
/** [{name, alias, backend, kind, product, identity, description, memory_size_bytes,
 * memory_free_bytes, compute, clock_khz, alignment_bytes, dtypes}], in the order of preference. */
TENON_API TenonError* TENON_CALL tenon_context_devices(const TenonContext* context,
                                                       char** out_json);

/** Opens a device by any name that docs/backends.md lists: "cpu", "cuda:1". NULL: the default device.
 * Errors  TENON_DEVICE_NOT_FOUND with the list of devices. */
TENON_API TenonError* TENON_CALL tenon_device_open(const TenonContext* context, const char* name,
                                                   TenonDevice** out_device);
/** The canonical name, "openblas:0"; "" for NULL. */
TENON_API const char* TENON_CALL tenon_device_name(const TenonDevice* device);
/** The entry of tenon_context_devices, with `ops`, and the memory in use: live_size_bytes,
 * peak_size_bytes, reserved_size_bytes, limit_size_bytes. */
TENON_API TenonError* TENON_CALL tenon_device_describe(const TenonDevice* device, char** out_json);
/** Returns when the work of programs on the device has finished. Errors: that work failed. */
TENON_API TenonError* TENON_CALL tenon_device_synchronize(const TenonDevice* device);
/** Gives cached memory that is not in use back to the device. */
TENON_API TenonError* TENON_CALL tenon_device_trim(const TenonDevice* device);

/* ------------------------------------------------------------------ tensors
 * Strided arrays of one dtype in host or device memory; a device of NULL is the host. At most
 * TENON_MAX_RANK dimensions, outermost first; `shape` may be NULL for rank 0.
 * Threads: a tensor does not change, its elements may: any number of threads may read them, or one
 * may write. */

/** Dense and uninitialised; the host's memory is aligned to 64 bytes.
 * Errors  TENON_OUT_OF_MEMORY with requested, live and peak bytes. */
TENON_API TenonError* TENON_CALL tenon_tensor_empty(const TenonDevice* device, tenon_dtype dtype,
                                                    uint32_t rank, const int64_t* shape,
                                                    TenonTensor** out_tensor);
/** Dense, with `value` in every element. Errors also: a value that an integer dtype cannot hold. */
TENON_API TenonError* TENON_CALL tenon_tensor_full(const TenonDevice* device, tenon_dtype dtype,
                                                   uint32_t rank, const int64_t* shape,
                                                   double value, TenonTensor** out_tensor);
/** A dense host tensor with a copy of these elements; strides of NULL: dense. */
TENON_API TenonError* TENON_CALL tenon_tensor_copy_of(const void* data, tenon_dtype dtype,
                                                      uint32_t rank, const int64_t* shape,
                                                      const int64_t* strides,
                                                      TenonTensor** out_tensor);
enum { TENON_TENSOR_READ_ONLY = 1u << 0 };
/** A tensor in the caller's memory. `data` is the address of element (0, ..., 0); strides may be
 * negative or 0. `release`, which may be NULL, is called with `user` when the last tensor that uses
 * the memory is released, on the thread that does so, and not after an error.
 * `flags`: TENON_TENSOR_READ_ONLY, or 0. */
TENON_API TenonError* TENON_CALL tenon_tensor_borrow(void* data, tenon_dtype dtype, uint32_t rank,
                                                     const int64_t* shape, const int64_t* strides,
                                                     uint32_t flags,
                                                     void(TENON_CALL* release)(void* user),
                                                     void* user, TenonTensor** out_tensor);

/** What a tensor is. */
typedef struct TenonTensorInfo {
  /** Set by the caller. The fields within it are filled, unknown ones with 0. */
  uint32_t struct_size;
  tenon_dtype dtype;
  uint32_t rank;
  uint32_t flags;      /**< TENON_TENSOR_READ_ONLY */
  uint32_t is_dense;   /**< 1: contiguous in row-major order */
  uint32_t is_on_host; /**< 1: the host can access the elements */
  uint64_t address;    /**< of element (0, ..., 0): a pointer, or an address of the device */
  uint64_t element_count;
  uint64_t size_bytes; /**< of a dense copy */
  int64_t shape[TENON_MAX_RANK];
  int64_t strides[TENON_MAX_RANK];
} TenonTensorInfo;
TENON_API TenonError* TENON_CALL tenon_tensor_info(const TenonTensor* tensor,
                                                   TenonTensorInfo* out_info);
/** The device of the memory; NULL in `out_device` for memory of the host alone. */
TENON_API TenonError* TENON_CALL tenon_tensor_device(const TenonTensor* tensor,
                                                     TenonDevice** out_device);
/** The address of element (0, ..., 0). Errors: memory that the host cannot access. */
TENON_API TenonError* TENON_CALL tenon_tensor_data(const TenonTensor* tensor,
                                                   const void** out_data);
/** The same to write to. Errors also: a read-only tensor. */
TENON_API TenonError* TENON_CALL tenon_tensor_mutable_data(const TenonTensor* tensor,
                                                           void** out_data);

/** Copies all elements to memory of the host, dense and row-major.
 * Errors  size_bytes other than that of the elements. */
TENON_API TenonError* TENON_CALL tenon_tensor_read(const TenonTensor* tensor, void* out_data,
                                                   uint64_t size_bytes);
/** Copies the elements of `source`, of the same dtype and shape, on any device; memory may overlap.
 * Errors  another dtype or shape; a read-only tensor; a view that repeats elements. */
TENON_API TenonError* TENON_CALL tenon_tensor_assign(const TenonTensor* tensor,
                                                     const TenonTensor* source);
/** Sets every element. Errors: those of tenon_tensor_full and tenon_tensor_assign. */
TENON_API TenonError* TENON_CALL tenon_tensor_fill(const TenonTensor* tensor, double value);
/** A dense copy on the device, NULL: the host; the same tensor if it is there and dense already. */
TENON_API TenonError* TENON_CALL tenon_tensor_to_device(const TenonTensor* tensor,
                                                        const TenonDevice* device,
                                                        TenonTensor** out_tensor);
/** A dense copy of that dtype in the same memory, or the same tensor if it has the dtype already.
 * From floating point to integers, values are truncated and saturated; NaN becomes 0. */
TENON_API TenonError* TENON_CALL tenon_tensor_to_dtype(const TenonTensor* tensor, tenon_dtype dtype,
                                                       TenonTensor** out_tensor);

/* Views share the elements. Negative axes count from the end. */

/** Another shape of the same count. Errors: a strided tensor; see tenon_tensor_contiguous. */
TENON_API TenonError* TENON_CALL tenon_tensor_reshape(const TenonTensor* tensor, uint32_t rank,
                                                      const int64_t* shape,
                                                      TenonTensor** out_tensor);
/** Elements begin, begin + step, ... before `end`: 0 <= begin <= end <= size if step > 0; size >
 * begin >= end >= -1 if step < 0, where end = -1 includes element 0. */
TENON_API TenonError* TENON_CALL tenon_tensor_slice(const TenonTensor* tensor, int64_t axis,
                                                    int64_t begin, int64_t end, int64_t step,
                                                    TenonTensor** out_tensor);
/** One element of an axis, which is removed; a negative index counts from the end. */
TENON_API TenonError* TENON_CALL tenon_tensor_select(const TenonTensor* tensor, int64_t axis,
                                                     int64_t index, TenonTensor** out_tensor);
/** Axis i of the result is axis permutation[i]; `rank` is that of the tensor. */
TENON_API TenonError* TENON_CALL tenon_tensor_permute(const TenonTensor* tensor, uint32_t rank,
                                                      const int64_t* permutation,
                                                      TenonTensor** out_tensor);
/** Broadcasts axes of size 1, and new leading axes, with stride 0. */
TENON_API TenonError* TENON_CALL tenon_tensor_expand(const TenonTensor* tensor, uint32_t rank,
                                                     const int64_t* shape,
                                                     TenonTensor** out_tensor);
/** Inserts an axis of size 1 before `axis`; -1 puts it last. */
TENON_API TenonError* TENON_CALL tenon_tensor_unsqueeze(const TenonTensor* tensor, int64_t axis,
                                                        TenonTensor** out_tensor);
/** The same tensor if it is dense, else a dense copy in the same memory. */
TENON_API TenonError* TENON_CALL tenon_tensor_contiguous(const TenonTensor* tensor,
                                                         TenonTensor** out_tensor);

/** The elements in NumPy's format, [[1, 2],\n [3, 4]]; an axis longer than 2 * edge + 1 shows its
 * first and last `edge` elements. */
TENON_API TenonError* TENON_CALL tenon_tensor_text(const TenonTensor* tensor, int64_t edge,
                                                   char** out_text);
/** 1 in `out_equal` for the same dtype, shape and bits, on any device. */
TENON_API TenonError* TENON_CALL tenon_tensor_equal(const TenonTensor* a, const TenonTensor* b,
                                                    uint32_t* out_equal);
/** The places of the elements that are not 0, as a host tensor i64 (rank, count): row i has their
 * indices along axis i, in row-major order of the elements. NaN is not 0. A scalar gives (0, 0) or
 * (0, 1). Errors: a complex dtype. */
TENON_API TenonError* TENON_CALL tenon_tensor_nonzero(const TenonTensor* tensor,
                                                      TenonTensor** out_places);

/** DLPack. The structs are those of <dlpack/dlpack.h>; DLManagedTensorVersioned is that of DLPack
 * 1.x. An import takes ownership: the exporter's deleter is called when the last tensor of the
 * memory is released; on an error the caller keeps it. With a device of NULL the memory has to be
 * the host's; else memory of the device is used in place, and memory of the host where the device
 * can, or is copied. An exporter's pending work on a device has to be finished. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
TENON_API TenonError* TENON_CALL tenon_tensor_from_dlpack(struct DLManagedTensor* managed,
                                                          const TenonDevice* device,
                                                          TenonTensor** out_tensor);
/** The flag READ_ONLY becomes TENON_TENSOR_READ_ONLY. Errors also: a version other than 1.x. */
TENON_API TenonError* TENON_CALL tenon_tensor_from_dlpack_versioned(
    struct DLManagedTensorVersioned* managed, const TenonDevice* device, TenonTensor** out_tensor);
/** The caller, or whom the caller gives it to, calls its deleter once, from any thread.
 * Errors  a read-only tensor, which the unversioned struct cannot mark; memory of a device that
 *         DLPack does not know. */
TENON_API TenonError* TENON_CALL tenon_tensor_to_dlpack(const TenonTensor* tensor,
                                                        struct DLManagedTensor** out_managed);
TENON_API TenonError* TENON_CALL tenon_tensor_to_dlpack_versioned(
    const TenonTensor* tensor, struct DLManagedTensorVersioned** out_managed);
/** DLDeviceType and index of the tensor's memory: 1 is the CPU, 2 CUDA. */
TENON_API TenonError* TENON_CALL tenon_tensor_dlpack_device(const TenonTensor* tensor,
                                                            int32_t* out_type, int32_t* out_id);

/* ------------------------------------------------------------------ runs and cancellation */

typedef struct TenonCancellation TenonCancellation;

/** Stops runs that were given it. Threads: any, also at the same time. */
TENON_API TenonError* TENON_CALL tenon_cancellation_create(TenonCancellation** out_cancellation);
/** Requests that the runs end, now and later: it is not reset. */
TENON_API TenonError* TENON_CALL tenon_cancel(const TenonCancellation* cancellation);
/** 1 in `out_requested` after tenon_cancel. */
TENON_API TenonError* TENON_CALL tenon_cancellation_requested(const TenonCancellation* cancellation,
                                                              uint32_t* out_requested);

/** Options of a run: of a program, a prediction, a whole fit. */
typedef struct TenonRunOptions {
  uint32_t struct_size;
  uint32_t threads; /**< the most threads of the host, the caller's included; 0: all */
  int32_t priority; /**< a hint for devices whose queues have priorities: higher goes first */
  uint32_t reserved;
  /** The run ends with TENON_CANCELLED before its next kernel; parameters are as before it. NULL: it
   * cannot be stopped. */
  const TenonCancellation* cancellation;
} TenonRunOptions;

/* ------------------------------------------------------------------ ops
 * By number (TENON_OP_*) with the attribute struct that the op's line in tenon/ops.def names, or by
 * name, "Softmax" or "com.example.SoftClip", with attributes as JSON: {"axis": 1}. There, flags are
 * 0, 1, true or false, enumerations and dtypes their names; `name`, `shape` and `sizes` are those of
 * TenonNodeOptions. Attributes that plugins/ops.md gives no default are required. */

/** The number of an op; a vendor's op has one for the process, from TENON_OP_VENDOR on. */
TENON_API TenonError* TENON_CALL tenon_op_by_name(const char* name, tenon_op* out_op);
/** [{id, name, version, stem, schema, attributes: [{name, kind, default, words}], doc}] of the ops of
 * tenon/ops.def; `default` is absent where the attribute is required. */
TENON_API TenonError* TENON_CALL tenon_ops(char** out_json);

/** Options of a node. */
typedef struct TenonNodeOptions {
  uint32_t struct_size;
  uint32_t has_shape;   /**< 1: `rank` and `shape` are given */
  const char* name;     /**< of a node in a graph; NULL: the op's */
  const int64_t* shape; /**< of the result of ops whose operands do not tell it: Reshape, Expand,
                         * Slice, Pad, OneHot, the Random ops */
  uint32_t rank;
  uint32_t size_count;
  const int64_t* sizes; /**< Split: the size of each result along the axis */
} TenonNodeOptions;

/** Runs one op at once. Operands are copied to the device if necessary, NULL: the default one; a NULL
 * operand is an absent one. The program is cached by op, attributes, dtypes and shapes.
 * `attributes` of NULL: those of an op without any. Results are new tensors, at most `capacity`.
 * Threads  any, also at the same time. */
TENON_API TenonError* TENON_CALL tenon_apply(const TenonContext* context, const TenonDevice* device,
                                             tenon_op op, const void* attributes,
                                             const TenonNodeOptions* options,
                                             const TenonTensor* const* inputs, uint64_t input_count,
                                             TenonTensor** out_results, uint64_t capacity,
                                             uint64_t* out_count);
/** The same by name. `attributes` of NULL: {}. */
TENON_API TenonError* TENON_CALL tenon_apply_named(const TenonContext* context,
                                                   const TenonDevice* device, const char* op,
                                                   const char* attributes,
                                                   const TenonTensor* const* inputs,
                                                   uint64_t input_count, TenonTensor** out_results,
                                                   uint64_t capacity, uint64_t* out_count);

/* ------------------------------------------------------------------ graphs
 * Computations that are built front to back. Shape and dtype of each value are known at once; wrong
 * operands are an error and leave the graph as it was. Threads: one at a time. */

typedef struct TenonGraph TenonGraph;
/** The index of a value in its graph; TENON_NO_INDEX: an absent optional operand. */
typedef uint32_t TenonValue;

TENON_API TenonError* TENON_CALL tenon_graph_create(TenonGraph** out_graph);
/** A value that is bound at each run, in the order of these calls. */
TENON_API TenonError* TENON_CALL tenon_graph_input(TenonGraph* graph, const char* name,
                                                   tenon_dtype dtype, uint32_t rank,
                                                   const int64_t* shape, TenonValue* out_value);
/** A value that is kept between runs, in TenonParameters. */
TENON_API TenonError* TENON_CALL tenon_graph_parameter(TenonGraph* graph, const char* name,
                                                       tenon_dtype dtype, uint32_t rank,
                                                       const int64_t* shape, TenonValue* out_value);
/** A copy of the tensor's elements. Name: NULL for none. */
TENON_API TenonError* TENON_CALL tenon_graph_constant(TenonGraph* graph, const TenonTensor* tensor,
                                                      const char* name, TenonValue* out_value);
/** Appends a node; as tenon_apply. */
TENON_API TenonError* TENON_CALL tenon_graph_apply(TenonGraph* graph, tenon_op op,
                                                   const void* attributes,
                                                   const TenonNodeOptions* options,
                                                   const TenonValue* inputs, uint64_t input_count,
                                                   TenonValue* out_values, uint64_t capacity,
                                                   uint64_t* out_count);
TENON_API TenonError* TENON_CALL tenon_graph_apply_named(
    TenonGraph* graph, const char* op, const char* attributes, const TenonValue* inputs,
    uint64_t input_count, TenonValue* out_values, uint64_t capacity, uint64_t* out_count);
/** Declares a result of each run, in the order of these calls. */
TENON_API TenonError* TENON_CALL tenon_graph_output(TenonGraph* graph, const char* name,
                                                    TenonValue value);
/** Sets the parameter to `value` after each run. */
TENON_API TenonError* TENON_CALL tenon_graph_update(TenonGraph* graph, TenonValue parameter,
                                                    TenonValue value);
/** Nodes appended from now on request this device; NULL: the program's. */
TENON_API TenonError* TENON_CALL tenon_graph_set_device(TenonGraph* graph, const char* device);
/** Nodes appended from now on are named "<scope>/..."; NULL: without. */
TENON_API TenonError* TENON_CALL tenon_graph_set_scope(TenonGraph* graph, const char* scope);

/** What a value of a graph is. */
typedef struct TenonValueInfo {
  /** Set by the caller. The fields within it are filled, unknown ones with 0. */
  uint32_t struct_size;
  tenon_dtype dtype;
  uint32_t rank;
  uint32_t kind; /**< TENON_VALUE_*; INTERNAL: a node computes it */
  int64_t shape[TENON_MAX_RANK];
} TenonValueInfo;
TENON_API TenonError* TENON_CALL tenon_graph_value_info(const TenonGraph* graph, TenonValue value,
                                                        TenonValueInfo* out_info);
/** Appends the gradients of a floating scalar with respect to these values, zeros where there is no
 * path. Errors: a path through an op without a gradient, by name. */
TENON_API TenonError* TENON_CALL tenon_graph_gradients(TenonGraph* graph, TenonValue loss,
                                                       const TenonValue* with_respect_to,
                                                       uint64_t count, TenonValue* out_gradients);
/** The same with `constants`, through which no gradient passes: a loss that depends on a value by way
 * of them alone does not depend on it. */
TENON_API TenonError* TENON_CALL tenon_graph_partial_gradients(
    TenonGraph* graph, TenonValue loss, const TenonValue* with_respect_to, uint64_t count,
    const TenonValue* constants, uint64_t constant_count, TenonValue* out_gradients);
/** {"values": [{id, name, kind, dtype, shape, bytes}], "nodes": [{id, name, op, version, attributes,
 * inputs, outputs, device, output_bytes}], "outputs": [{name, value}], "updates": [{parameter,
 * value}]} */
TENON_API TenonError* TENON_CALL tenon_graph_describe(const TenonGraph* graph, char** out_json);
/** A line for each input, parameter, node, output and update. */
TENON_API TenonError* TENON_CALL tenon_graph_text(const TenonGraph* graph, char** out_text);

/* ------------------------------------------------------------------ parameters and programs
 * Parameters are values that persist between runs, by name; programs with the same parameters share
 * them. A program is a compiled graph, with its shapes fixed.
 * Threads  one at a time; different programs that share no parameters at the same time. */

typedef struct TenonParameters TenonParameters;
typedef struct TenonProgram TenonProgram;

TENON_API TenonError* TENON_CALL tenon_parameters_create(TenonParameters** out_parameters);
/** [{name, dtype, shape, device, is_set}] */
TENON_API TenonError* TENON_CALL tenon_parameters_describe(const TenonParameters* parameters,
                                                           char** out_json);
/** A view of the parameter's memory, for reading: to write, use tenon_parameters_set.
 * Errors  an unknown name. */
TENON_API TenonError* TENON_CALL tenon_parameters_get(const TenonParameters* parameters,
                                                      const char* name, TenonTensor** out_tensor);
/** Copies the elements into the parameter's memory, which a program or a model has created.
 * Errors  an unknown name; another dtype or shape. */
TENON_API TenonError* TENON_CALL tenon_parameters_set(const TenonParameters* parameters,
                                                      const char* name, const TenonTensor* tensor);
/** Parameters that are the tensors of a .safetensors or .npz file, on the host.
 * Errors  a file that cannot be read or is damaged, by path and tensor. */
TENON_API TenonError* TENON_CALL tenon_parameters_load(const char* path,
                                                       TenonParameters** out_parameters);
/** Writes tensors by name to a .safetensors or .npz file, which holds its old content until it has all
 * of the new one.
 * Errors  a name that is empty or given twice; another extension; a file that cannot be written. */
TENON_API TenonError* TENON_CALL tenon_tensors_save(const char* path, const char* const* names,
                                                    const TenonTensor* const* tensors,
                                                    uint64_t count);

enum {
  TENON_PROGRAM_UNOPTIMIZED = 1u << 0, /**< keeps dead code and common subexpressions */
  TENON_PROGRAM_FREEZE = 1u << 1,      /**< parameters become constants with their present values */
  TENON_PROGRAM_UPDATES_LAST = 1u << 2 /* a run can be cancelled until all has been computed */
};
/** Options of a compilation. */
typedef struct TenonProgramOptions {
  uint32_t struct_size;
  uint32_t flags;        /**< TENON_PROGRAM_* */
  const char* device;    /**< for nodes that request none; NULL: the context's default */
  const char* precision; /**< as in tenon.yaml: "float32", "mixed_bfloat16"; NULL: the context's */
  const TenonParameters* parameters; /**< NULL: its own */
} TenonProgramOptions;

/** Compiles a graph, which may be changed or released afterwards.
 * Errors  an op that no allowed device supports, with the reason and where it could run. */
TENON_API TenonError* TENON_CALL tenon_program_create(const TenonContext* context,
                                                      const TenonGraph* graph,
                                                      const TenonProgramOptions* options,
                                                      TenonProgram** out_program);
/** {"inputs": [{name, dtype, shape}], "outputs": [{name, dtype, shape}], "memory": [{device,
 * parameters_size_bytes, own_size_bytes, peak_size_bytes}]} */
TENON_API TenonError* TENON_CALL tenon_program_describe(const TenonProgram* program,
                                                        char** out_json);
/** The placement report: the device, kernel and reason of each node, and the copies. */
TENON_API TenonError* TENON_CALL tenon_program_explain(const TenonProgram* program,
                                                       char** out_json);
TENON_API TenonError* TENON_CALL tenon_program_parameters(const TenonProgram* program,
                                                          TenonParameters** out_parameters);
/** Runs with all inputs and outputs in the order of the graph, and returns when the results may be
 * read. `outputs[i]` is a dense tensor that gets output i, on the device that computes it; or NULL:
 * then it becomes a new tensor, which the caller releases.
 * Errors  other counts, dtypes or shapes; a read-only output; those of devices. Parameters are then
 *         as before, unless the run had begun to update them. */
TENON_API TenonError* TENON_CALL tenon_program_run(TenonProgram* program,
                                                   const TenonTensor* const* inputs,
                                                   uint64_t input_count, TenonTensor** outputs,
                                                   uint64_t output_count,
                                                   const TenonRunOptions* options);
/** The same with inputs by name, in any order. */
TENON_API TenonError* TENON_CALL tenon_program_run_named(
    TenonProgram* program, const char* const* names, const TenonTensor* const* inputs,
    uint64_t input_count, TenonTensor** outputs, uint64_t output_count,
    const TenonRunOptions* options);
/** Binds a tensor to an input or output of all later calls of tenon_program_run_bound. */
TENON_API TenonError* TENON_CALL tenon_program_bind_input(TenonProgram* program, uint64_t index,
                                                          const TenonTensor* tensor);
/** NULL: a new tensor is made and bound, which tenon_program_bound_output returns. */
TENON_API TenonError* TENON_CALL tenon_program_bind_output(TenonProgram* program, uint64_t index,
                                                           const TenonTensor* tensor);
/** The tensor that is bound to an output. Errors: none is. */
TENON_API TenonError* TENON_CALL tenon_program_bound_output(const TenonProgram* program,
                                                            uint64_t index,
                                                            TenonTensor** out_tensor);
/** Runs with the bound tensors. Errors also: an input or output that is not bound. */
TENON_API TenonError* TENON_CALL tenon_program_run_bound(TenonProgram* program,
                                                         const TenonRunOptions* options);
/** 1: later runs measure the time of each kernel; 0: they do not. */
TENON_API TenonError* TENON_CALL tenon_program_enable_profile(TenonProgram* program,
                                                              uint32_t enabled);
/** [{node, op, device, algorithm, nodes, duration_ns, begin_ns, flops, size_bytes}] of the last run;
 * empty if it was not measured. */
TENON_API TenonError* TENON_CALL tenon_program_profile(const TenonProgram* program,
                                                       char** out_json);

/* ------------------------------------------------------------------ ONNX
 * Models in ONNX files, run for any shapes; programs are compiled as shapes come, and cached.
 * Threads: one at a time; different models at the same time. */

typedef struct TenonOnnx TenonOnnx;

/** device of NULL: the context's default.
 * Errors  the file cannot be read or is damaged; all that cannot be imported, in one message. */
TENON_API TenonError* TENON_CALL tenon_onnx_load(const TenonContext* context, const char* path,
                                                 const char* device, TenonOnnx** out_onnx);
/** The content of a file, which is copied. `folder` has its external data; NULL: there must be none. */
TENON_API TenonError* TENON_CALL tenon_onnx_from_memory(const TenonContext* context,
                                                        const void* data, uint64_t size_bytes,
                                                        const char* folder, const char* device,
                                                        TenonOnnx** out_onnx);
/** {"inputs": [{name, dtype, type, shape: [size, or null, or a symbol]}], "outputs": likewise,
 * "metadata": {graph, producer, producer_version, domain, description, model_version, ir_version,
 * opsets, properties}, "operators": [{domain, op, opset, count}]} */
TENON_API TenonError* TENON_CALL tenon_onnx_describe(const TenonOnnx* onnx, char** out_json);
/** The same of a file, whether it can be imported or not, without loading its weights; operators have
 * `reason`: why they cannot be imported, or "". */
TENON_API TenonError* TENON_CALL tenon_onnx_inspect(const char* path, char** out_json);
/** Runs with inputs by name. `outputs`, in the order of the file, `output_count` in all: outputs[i] is
 * a tensor that gets output i, which a program writes to in place if it is dense and on the device
 * that computes it; or NULL: then it becomes a new tensor, which the caller releases.
 * Errors  an input that is missing, unknown, or of another dtype or shape than the file states; an
 *         output of another dtype or shape than the result, or read-only. */
TENON_API TenonError* TENON_CALL tenon_onnx_run(TenonOnnx* onnx, const char* const* names,
                                                const TenonTensor* const* inputs,
                                                uint64_t input_count, TenonTensor** outputs,
                                                uint64_t output_count,
                                                const TenonRunOptions* options);
/** The placement report for inputs like these, also if some nodes cannot run: they have no device. */
TENON_API TenonError* TENON_CALL tenon_onnx_explain(TenonOnnx* onnx, const char* const* names,
                                                    const TenonTensor* const* inputs,
                                                    uint64_t input_count, char** out_json);
/** The graph for inputs like these, to be extended and compiled with these parameters.
 * Errors  shapes that depend on computed values. */
TENON_API TenonError* TENON_CALL tenon_onnx_graph(TenonOnnx* onnx, const char* const* names,
                                                  const TenonTensor* const* inputs,
                                                  uint64_t input_count, TenonGraph** out_graph,
                                                  TenonParameters** out_parameters);

/** Post-training quantisation: writes the model as an ONNX file whose products are computed with
 * integers of 8 bits, or whose weights are stored in 8 or 4 bits. The inputs are samples along their
 * first axes, on which the ranges of activations are observed. `options`, which may be NULL: the keys
 * calibration (minmax, percentile or entropy), percentile, activations (u8 or i8), weights_only_bits
 * (0, 8 or 4), block_size, exclude (globs of nodes), op_types, batch_size, fixed_batch, opset.
 * `out_json` may be NULL, or gets {"samples", "nodes": [{name, op, quantized, reason}],
 * "activations": [{name, low, high, scale, zero_point}]}.
 * Errors  those of tenon_onnx_run; a model without a node to quantise; a value that is not finite. */
TENON_API TenonError* TENON_CALL tenon_onnx_quantize(TenonOnnx* onnx, const char* const* names,
                                                     const TenonTensor* const* inputs,
                                                     uint64_t input_count, const char* path,
                                                     const char* options, char** out_json);
/** How far the outputs of a model are from those of another one with the same inputs, over samples
 * along the first axes of the inputs. `labels`, which may be NULL: i64 (samples). batch_size of 0: 32.
 * {"samples", "largest_difference", "rms_difference": relative to the finite expected elements, or
 * null if an element is NaN, or infinite in one of the models, "same_class", "expected_accuracy",
 * "accuracy": from 0 to 1, or null without classes or labels} */
TENON_API TenonError* TENON_CALL tenon_onnx_compare(TenonOnnx* expected, TenonOnnx* onnx,
                                                    const char* const* names,
                                                    const TenonTensor* const* inputs,
                                                    uint64_t input_count, const TenonTensor* labels,
                                                    int64_t batch_size, char** out_json);

/* ------------------------------------------------------------------ data
 * What models learn from: numbered samples, or whole batches one after the other. Sample types have
 * shapes without the batch axis. Threads: any, also at the same time, as far as the caller's
 * functions allow that; data of batches by one fit or evaluation at a time. */

typedef struct TenonData TenonData;

/** An input or a target of samples. Frozen. */
typedef struct TenonSampleType {
  const char* name;     /**< NULL, of an only one: "x" for an input, "y" for a target */
  const int64_t* shape; /**< without the batch axis */
  uint32_t rank;
  tenon_dtype dtype;
} TenonSampleType;

/** Samples in memory: tensors whose first axis counts them. They are shared, and copied only if they
 * are strided or not on the host; their elements must not change. Names may be NULL for one input,
 * "x", or one target, "y". `options`, which may be NULL: the keys name, scale and offset (of an only
 * input: x * scale + offset), targets (as_given, one_hot or soft_one_hot), num_classes.
 * `sample_weights`, which may be NULL: (count), numbers from 0.
 * Errors  different counts; a label out of range, by its index. */
TENON_API TenonError* TENON_CALL tenon_data_arrays(
    const char* const* input_names, const TenonTensor* const* inputs, uint64_t input_count,
    const char* const* target_names, const TenonTensor* const* targets, uint64_t target_count,
    const TenonTensor* sample_weights, const char* options, TenonData** out_data);

enum { TENON_DATA_TRAIN = 0, TENON_DATA_TEST = 1, TENON_DATA_VALIDATION = 2 };
/** A part of the data that the block `data` of a train.yaml names: {source: mnist, directory: ...}.
 * Relative paths start from the working directory.
 * Errors  those of the readers; a part that there is not. */
TENON_API TenonError* TENON_CALL tenon_data_load(const char* definition, uint32_t part,
                                                 TenonData** out_data);

/** Numbered samples that functions of the caller give. */
typedef struct TenonSampleSource {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /**< in messages */
  int64_t size;     /**< number of samples */
  const TenonSampleType* inputs;
  uint64_t input_count;
  const TenonSampleType* targets;
  uint64_t target_count;
  int64_t num_classes; /**< of a classification; 0: none */
  void* user;
  /** Writes samples indices[0], indices[1], ... to rows 0, 1, ... of dense memory for each input and
   * target. Called on threads of the runtime, also at the same time. An error ends the fit. */
  TenonError*(TENON_CALL* gather)(void* user, const int64_t* indices, uint64_t count,
                                  void* const* inputs, void* const* targets);
  /** Called when the data ends, and not after an error of tenon_data_samples; may be NULL. */
  void(TENON_CALL* release)(void* user);
} TenonSampleSource;
TENON_API TenonError* TENON_CALL tenon_data_samples(const TenonSampleSource* source,
                                                    TenonData** out_data);

/** Batches that functions of the caller give, on the thread of the fit or evaluation. */
typedef struct TenonBatchSource {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /**< in messages */
  const TenonSampleType* inputs;
  uint64_t input_count;
  const TenonSampleType* targets;
  uint64_t target_count;
  int64_t batches; /**< in an epoch; 0: not known before its end */
  void* user;
  TenonError*(TENON_CALL* start)(void* user, uint64_t epoch);
  /** Sets a tensor for each input and target, of one number of samples, and, or not, one of weights,
   * f32(n). All are NULL before the call; the runtime releases what was set, also with an error.
   * Sets *out_has_batch to 0 after the last batch. */
  TenonError*(TENON_CALL* next)(void* user, TenonTensor** out_inputs, TenonTensor** out_targets,
                                TenonTensor** out_sample_weights, uint32_t* out_has_batch);
  /** Called when the data ends, and not after an error of tenon_data_batches; may be NULL. */
  void(TENON_CALL* release)(void* user);
} TenonBatchSource;
TENON_API TenonError* TENON_CALL tenon_data_batches(const TenonBatchSource* source,
                                                    TenonData** out_data);

/** {"name", "size" (null for batches), "num_classes", "inputs": [{name, dtype, shape}], "targets"} */
TENON_API TenonError* TENON_CALL tenon_data_describe(const TenonData* data, char** out_json);
/** New tensors with these samples, one for each input and each target.
 * Errors  data of batches; an index out of range; other counts. */
TENON_API TenonError* TENON_CALL tenon_data_gather(const TenonData* data, const int64_t* indices,
                                                   uint64_t count, TenonTensor** out_inputs,
                                                   uint64_t input_count, TenonTensor** out_targets,
                                                   uint64_t target_count);

/* ------------------------------------------------------------------ models
 * Layers with their parameters and their training.
 * Threads: one at a time, except for tenon_cancel on what they run; in callbacks of a fit its model
 * may be used. */

typedef struct TenonModel TenonModel;

/** A model in the form of a model.yaml: "layers: [flatten, {dense: {units: 10}}]", or "onnx: FILE"
 * for the graph of an ONNX file with its weights.
 * Errors  with line and key. */
TENON_API TenonError* TENON_CALL tenon_model_create(const char* definition, TenonModel** out_model);
/** The model of a folder that tenon_model_save wrote, with its weights and the state of its training;
 * or of a model.yaml or train.yaml, with the weights of `checkpoint`: its YAML file, or a folder of
 * checkpoints; NULL: initial ones. It is compiled on the context. */
TENON_API TenonError* TENON_CALL tenon_model_load(const TenonContext* context, const char* path,
                                                  const char* checkpoint, TenonModel** out_model);
/** Writes model.yaml, compile.yaml and a checkpoint to a folder, which is created. */
TENON_API TenonError* TENON_CALL tenon_model_save(const TenonModel* model, const char* folder);
/** Checks one part of a definition: "layer", "initializer", "loss", "optimizer", "schedule" or
 * "callback". Errors: those of the whole definition. Threads: any. */
TENON_API TenonError* TENON_CALL tenon_definition_check(const char* kind, const char* definition);
/** The definition as YAML, which tenon_model_create reads. */
TENON_API TenonError* TENON_CALL tenon_model_yaml(const TenonModel* model, char** out_yaml);

/** Sets optimizer, loss and metrics: the keys optimizer, loss (or losses), metrics, trainable, frozen
 * and parallel of a train.yaml. NULL: for a model that predicts, and cannot be trained or evaluated
 * before it is compiled with a loss. */
TENON_API TenonError* TENON_CALL tenon_model_compile(TenonModel* model, const TenonContext* context,
                                                     const char* definition);
/** Creates the parameters for samples of this shape; fit, evaluate and predict do so themselves.
 * Errors  a model of several inputs. */
TENON_API TenonError* TENON_CALL tenon_model_build(TenonModel* model, uint32_t rank,
                                                   const int64_t* shape);
/** Replaces the layers after the one named `after` by those of a definition with the key layers. */
TENON_API TenonError* TENON_CALL tenon_model_replace_head(TenonModel* model, const char* after,
                                                          const char* definition);

/** What a fit tells after a batch. The arrays are valid during the call. */
typedef struct TenonBatchEnd {
  uint32_t struct_size;
  uint32_t step_taken;      /**< 0: gradients are accumulated, or mixed_float16 skipped the step */
  int64_t batch;            /**< from 0 */
  uint64_t count;           /**< of the values: the loss, then metrics */
  const char* const* names; /**< "loss", "accuracy" */
  const double* means;      /**< over the batches of the epoch so far */
  const double* values;     /**< of this batch */
  double weight;            /**< of this batch in means: its samples, or the sum of their weights */
} TenonBatchEnd;
/** Functions that a fit calls on its thread; each may be NULL. An error ends the fit, which returns
 * it; the model keeps the state after its last step. tenon_model_stop ends the fit after the step. */
typedef struct TenonFitCallbacks {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  /** `batches`: in an epoch, 0 if the data does not know it */
  TenonError*(TENON_CALL* train_begin)(void* user, int64_t epochs, int64_t batches);
  TenonError*(TENON_CALL* epoch_begin)(void* user, int64_t epoch);
  TenonError*(TENON_CALL* batch_end)(void* user, const TenonBatchEnd* batch);
  /** `json`: an entry of the history */
  TenonError*(TENON_CALL* epoch_end)(void* user, const char* json);
  TenonError*(TENON_CALL* train_end)(void* user);
  /** Not 0: batch_end uses nothing but its arguments, and may be called when the next step has been
   * submitted to a device that works by itself, such as a GPU, which then does not wait for the host.
   * The model may be one step further than its `batch`, and tenon_model_stop takes effect after that. */
  uint64_t late_batch_end;
} TenonFitCallbacks;

/** Trains. `options`, NULL for the defaults: the keys batch_size, epochs, initial_epoch, shuffle,
 * accumulate, steps_per_epoch, validation_split, callbacks (as in a train.yaml), workers, prefetch,
 * pinned, shuffle_buffer. As in Keras, epochs - initial_epoch epochs are trained, whatever the model
 * has been trained before, and counted from initial_epoch, which is 0 by default: to resume a
 * training of 10 epochs in all, give `epochs` of tenon_model_describe. `validation`, which may be
 * NULL, is evaluated after each epoch. A cancellation in `run` ends the fit without an error, at its
 * last complete step. `out_history` may be NULL, or gets {"epochs": [{epoch, logs: {loss, ...},
 * seconds, samples, learning_rate}], "end": "finished", "stopped" or "interrupted", "reason"}; a
 * number that is not finite is null.
 * Errors  a loss that is not finite; those of callbacks, data and devices. */
TENON_API TenonError* TENON_CALL tenon_model_fit(TenonModel* model, const TenonData* data,
                                                 const TenonData* validation, const char* options,
                                                 const TenonFitCallbacks* callbacks,
                                                 const TenonRunOptions* run, char** out_history);
/** Ends the running fit after its step, from a callback. */
TENON_API TenonError* TENON_CALL tenon_model_stop(TenonModel* model, const char* reason);
/** {loss, metrics}. batch_size of 0: 32. */
TENON_API TenonError* TENON_CALL tenon_model_evaluate(TenonModel* model, const TenonData* data,
                                                      int64_t batch_size,
                                                      const TenonRunOptions* run, char** out_json);
enum { TENON_PREDICT_PROBABILITIES = 1u << 0 };
/** The outputs for inputs (n, sample...), as new host tensors (n, output...), in the order of the
 * model. Names may be NULL for an only input. batch_size of 0: 32. TENON_PREDICT_PROBABILITIES turns
 * scores into probabilities as the loss does; such a prediction is not cancelled.
 * Errors  a model that is not compiled; TENON_CANCELLED. */
TENON_API TenonError* TENON_CALL tenon_model_predict(TenonModel* model, const char* const* names,
                                                     const TenonTensor* const* inputs,
                                                     uint64_t input_count, int64_t batch_size,
                                                     uint32_t flags, const TenonRunOptions* run,
                                                     TenonTensor** out_outputs,
                                                     uint64_t output_count);
/** One step, on one batch; {loss, metrics} of it. Names may be NULL for one input and one target.
 * `sample_weights`, which may be NULL: f32 or f64 (n). */
TENON_API TenonError* TENON_CALL tenon_model_train_batch(
    TenonModel* model, const char* const* input_names, const TenonTensor* const* inputs,
    uint64_t input_count, const char* const* target_names, const TenonTensor* const* targets,
    uint64_t target_count, const TenonTensor* sample_weights, const TenonRunOptions* run,
    char** out_json);
/** Loss and metrics of one batch, as evaluate sees them. */
TENON_API TenonError* TENON_CALL tenon_model_test_batch(
    TenonModel* model, const char* const* input_names, const TenonTensor* const* inputs,
    uint64_t input_count, const char* const* target_names, const TenonTensor* const* targets,
    uint64_t target_count, const TenonTensor* sample_weights, char** out_json);
/** i64 (classes, classes): [row, column] counts samples of class `row` predicted as `column`. */
TENON_API TenonError* TENON_CALL tenon_model_confusion_matrix(TenonModel* model,
                                                              const TenonData* data,
                                                              int64_t batch_size,
                                                              TenonTensor** out_matrix);

/** The layers as a table; batch_size > 0: with the memory that it needs. */
TENON_API TenonError* TENON_CALL tenon_model_summary(const TenonModel* model, int64_t batch_size,
                                                     char** out_text);
/** {"name", "built", "inputs": [{name, dtype, shape}], "outputs", "layers": [{name, type, output,
 * parameters, non_trainable, frozen, flops, device}], "step", "epochs", "learning_rate", "run"};
 * null for what is known only once the model is compiled and built. */
TENON_API TenonError* TENON_CALL tenon_model_describe(const TenonModel* model, char** out_json);
/** The placement report of a training step, or, without a loss, of a prediction. */
TENON_API TenonError* TENON_CALL tenon_model_explain(TenonModel* model, int64_t batch_size,
                                                     char** out_json);
/** The rate of the next steps. */
TENON_API TenonError* TENON_CALL tenon_model_set_learning_rate(TenonModel* model, double rate);
/** Weights "<layer>/kernel" and the like, with the state of the optimizer. */
TENON_API TenonError* TENON_CALL tenon_model_parameters(const TenonModel* model,
                                                        TenonParameters** out_parameters);
/** A program that predicts for batches of this size, with the present parameters as constants; it
 * outlives the model. */
TENON_API TenonError* TENON_CALL tenon_model_freeze(TenonModel* model, int64_t batch_size,
                                                    TenonProgram** out_program);

/** A checkpoint, <folder>/<name>.yaml and .safetensors: weights, optimizer state and position. */
TENON_API TenonError* TENON_CALL tenon_model_save_checkpoint(const TenonModel* model,
                                                             const char* folder, const char* name);
/** `checkpoint`: its YAML file, or a folder whose newest one is loaded. weights_only of 0: with all
 * that training needs. */
TENON_API TenonError* TENON_CALL tenon_model_load_checkpoint(TenonModel* model,
                                                             const char* checkpoint,
                                                             uint32_t weights_only);
enum {
  TENON_WEIGHTS_TRANSPOSE = 1u << 0, /**< the file has dense kernels as (out, in), as PyTorch */
  TENON_WEIGHTS_PARTIAL = 1u << 1    /* missing and left over names are no error */
};
/** Sets weights to those of a .safetensors or .npz file. `name_map`, which may be NULL: a file of
 * rules that pair names. `out_json` may be NULL, or gets {"matched": [[parameter, tensor]],
 * "missing", "left_over"}. */
TENON_API TenonError* TENON_CALL tenon_model_import_weights(TenonModel* model, const char* path,
                                                            const char* name_map, uint32_t flags,
                                                            char** out_json);
/** Writes weights to a .safetensors or .npz file. */
TENON_API TenonError* TENON_CALL tenon_model_export_weights(TenonModel* model, const char* path,
                                                            const char* name_map, uint32_t flags);
/** Writes what predict computes as an ONNX file. `options`, which may be NULL: the keys opset, batch
 * (0: any), inputs, outputs (names in the file), graph_name, metadata. */
TENON_API TenonError* TENON_CALL tenon_model_export_onnx(const TenonModel* model, const char* path,
                                                         const char* options);

/* ------------------------------------------------------------------ dynamic batching
 * Requests of many threads run together, as batches of one model, on a thread of the batcher.
 * Threads: any, also at the same time. */

typedef struct TenonBatcher TenonBatcher;
typedef struct TenonRequest TenonRequest;

/** A batcher of an ONNX model, which nothing else uses meanwhile. `options`, which may be NULL: the
 * keys max_batch (samples of requests in a batch; 8), max_delay_us (how long a request waits for
 * others; 1000), max_queue (requests that wait; 1024), batch_sizes (to which batches are padded; 1, 2,
 * 4, ... and max_batch), padding (last_row or zeros). Each run has the options `run`.
 * Errors  an input without a first axis of any size. */
TENON_API TenonError* TENON_CALL tenon_batcher_of_onnx(TenonOnnx* onnx, const char* options,
                                                       const TenonRunOptions* run,
                                                       TenonBatcher** out_batcher);
/** The same of a model of layers, with what tenon_model_predict computes. Errors: a model that is not
 * built. */
TENON_API TenonError* TENON_CALL tenon_batcher_of_model(TenonModel* model, const char* options,
                                                        const TenonRunOptions* run,
                                                        TenonBatcher** out_batcher);

enum { TENON_REQUEST_DO_NOT_WAIT = 1u << 0 /**< a full queue is an error, TENON_NOT_READY */ };
/** Options of a request. */
typedef struct TenonRequestOptions {
  uint32_t struct_size;
  uint32_t flags; /**< TENON_REQUEST_* */
  /** A request whose batch has not started by then is not run; its error is TENON_NOT_READY. 0: it
   * waits as long as necessary. */
  int64_t timeout_us;
  const TenonCancellation*
      cancellation; /**< before its batch starts; NULL: it cannot be cancelled */
} TenonRequestOptions;

/** Adds a request, whose inputs have their samples along the first axis; waits while the queue is
 * full. The elements must not change before the request is ready. Names may be NULL for an only
 * input.
 * Errors  no samples, or more than max_batch; TENON_CANCELLED: a batcher that was closed. */
TENON_API TenonError* TENON_CALL tenon_batcher_submit(
    const TenonBatcher* batcher, const char* const* names, const TenonTensor* const* inputs,
    uint64_t input_count, const TenonRequestOptions* options, TenonRequest** out_request);
/** 1 in `out_ready` once the request has results or an error; waits that long for it at most, below 0:
 * as long as necessary. */
TENON_API TenonError* TENON_CALL tenon_request_wait(const TenonRequest* request, int64_t timeout_us,
                                                    uint32_t* out_ready);
/** The outputs of the request in the order of the model, as new host tensors; waits for them.
 * Errors  that of the request: of its run, TENON_NOT_READY after its timeout, TENON_CANCELLED. */
TENON_API TenonError* TENON_CALL tenon_request_results(const TenonRequest* request,
                                                       TenonTensor** out_outputs,
                                                       uint64_t output_count);
/** Submits and waits for the outputs. Errors: those of both. */
TENON_API TenonError* TENON_CALL tenon_batcher_run(
    const TenonBatcher* batcher, const char* const* names, const TenonTensor* const* inputs,
    uint64_t input_count, const TenonRequestOptions* options, TenonTensor** out_outputs,
    uint64_t output_count);
/** Accepts no further requests, runs those that wait, and returns when they are done. Without it, the
 * last release cancels what waits. */
TENON_API TenonError* TENON_CALL tenon_batcher_close(const TenonBatcher* batcher);
/** {"max_batch", "max_delay_us", "max_queue", "batch_sizes", "outputs": [name], "requests",
 * "completed", "failed", "rejected", "expired", "cancelled", "batches", "samples", "padding",
 * "split_batches", "queued", "mean_batch", "wait_p50_us", "wait_p90_us", "wait_p99_us",
 * "wait_max_us"}: its options, and what it has done so far. */
TENON_API TenonError* TENON_CALL tenon_batcher_describe(const TenonBatcher* batcher,
                                                        char** out_json);

/* ------------------------------------------------------------------ traces
 * What a context does: kernels, copies, plans, waits and memory. While a trace records, programs
 * measure each kernel, and runs may be slower. Threads: any. */

typedef struct TenonTrace TenonTrace;

/** Records until tenon_trace_stop or the last release. Errors: the context is being traced. */
TENON_API TenonError* TENON_CALL tenon_trace_start(const TenonContext* context,
                                                   TenonTrace** out_trace);
/** Ends the recording. What was recorded is kept until the context's next trace starts. */
TENON_API TenonError* TENON_CALL tenon_trace_stop(TenonTrace* trace);
/** The Chrome trace format, for Perfetto or chrome://tracing. */
TENON_API TenonError* TENON_CALL tenon_trace_json(const TenonTrace* trace, char** out_json);
/** Writes it to a file. */
TENON_API TenonError* TENON_CALL tenon_trace_write(const TenonTrace* trace, const char* path);
/** {"kernels": [{node, op, device, algorithm, node_id, runs, duration_ns, best_ns, flops, size_bytes,
 * nodes}], "events", "dropped"}: the runs of each kernel together, flops and bytes of one run; how many
 * events were recorded, and how many more were not, as there is a limit. */
TENON_API TenonError* TENON_CALL tenon_trace_report(const TenonTrace* trace, char** out_json);
/** Begins a span of the caller's own work in the trace of the context, if one records. Spans nest; each
 * is ended on its thread. */
TENON_API TenonError* TENON_CALL tenon_trace_begin_span(const TenonContext* context,
                                                        const char* name);
/** Ends the span of this thread that began last. */
TENON_API TenonError* TENON_CALL tenon_trace_end_span(const TenonContext* context);

/* ------------------------------------------------------------------ BLAS
 * Levels 1 to 3 on devices whose backend offers them. Results in memory of a device may be read
 * after tenon_device_synchronize, or by later calls on the device.
 * Threads: one call at a time for a device; on a CPU any number. */

/** The routines of tenon/blas.def by number: TENON_BLAS_gemm. */
enum {
#define TENON_BLAS(id, routine, level, signature, dtypes) TENON_BLAS_##routine = id,
#include <tenon/blas.def>
#undef TENON_BLAS
  TENON_BLAS_NONE = 0
};
/** [{id, name, signature, dtypes, arguments, formula, fields: of the record after struct_size, [{name,
 * kind: the macro of tenon/blas_args.def}], real: scalars that are real for complex operands, result:
 * the dtype of the number that it gives, "call", "real", "f64", "i64" or null}] */
TENON_API TenonError* TENON_CALL tenon_blas_routines(char** out_json);
/** Calls a routine with the record of its signature, tenon_blas_<signature>_args: addresses are those
 * of tenon_tensor_info for tensors on the device; flags of 0 are row-major, not transposed, upper,
 * left and not a unit diagonal; a scalar of address 0 has its usual value.
 * Errors  by the rules of the reference BLAS, with the argument's position and name;
 *         TENON_UNSUPPORTED for a routine or dtype that the backend does not offer. */
TENON_API TenonError* TENON_CALL tenon_blas(const TenonDevice* device, uint32_t routine,
                                            tenon_dtype dtype, const void* arguments,
                                            const TenonRunOptions* options);

/* On tensors of the device: vectors of rank 1 with any stride, matrices of rank 2 with contiguous
 * rows or columns, of one dtype. Transposition is TENON_NO_TRANS (or 0), TENON_TRANS,
 * TENON_CONJ_TRANS or TENON_CONJ_NO_TRANS. Results of rank 0 are new tensors on the device. */

/** c = alpha op(a) op(b) + beta c */
TENON_API TenonError* TENON_CALL tenon_gemm(const TenonDevice* device, double alpha,
                                            const TenonTensor* a, uint32_t trans_a,
                                            const TenonTensor* b, uint32_t trans_b, double beta,
                                            const TenonTensor* c);
/** y = alpha op(a) x + beta y */
TENON_API TenonError* TENON_CALL tenon_gemv(const TenonDevice* device, double alpha,
                                            const TenonTensor* a, uint32_t trans_a,
                                            const TenonTensor* x, double beta,
                                            const TenonTensor* y);
/** y = alpha x + y */
TENON_API TenonError* TENON_CALL tenon_axpy(const TenonDevice* device, double alpha,
                                            const TenonTensor* x, const TenonTensor* y);
/** x = alpha x */
TENON_API TenonError* TENON_CALL tenon_scal(const TenonDevice* device, double alpha,
                                            const TenonTensor* x);
/** x' y */
TENON_API TenonError* TENON_CALL tenon_dot(const TenonDevice* device, const TenonTensor* x,
                                           const TenonTensor* y, TenonTensor** out_result);
/** sqrt(sum |x|^2) */
TENON_API TenonError* TENON_CALL tenon_nrm2(const TenonDevice* device, const TenonTensor* x,
                                            TenonTensor** out_result);

/* ------------------------------------------------------------------ log
 * One for the process. Threads: any. */

/** A level above all others, next to the TENON_LOG_* of tenon/backend.h. */
enum { TENON_LOG_OFF = 255 };
/** Sends the log to a function, NULL: to stderr or the file of `logging.file`. It is called on any
 * thread, one call at a time, with a line without its line break, and must not call this API.
 * TENON_LOG_OFF: text that a configuration key asked for, such as log_device_placement. When this
 * returns, no call of the previous function is in progress. */
TENON_API TenonError* TENON_CALL tenon_log_set_sink(
    void(TENON_CALL* sink)(void* user, uint32_t level, const char* text), void* user);
/** Logs lines of this TENON_LOG_* and above; a context that is created later sets its logging.level. */
TENON_API TenonError* TENON_CALL tenon_log_set_level(uint32_t level);

#ifdef __cplusplus
}
#endif
#endif /* TENON_RUNTIME_H */
