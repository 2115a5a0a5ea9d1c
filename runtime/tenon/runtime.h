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
 * TENON_RUNTIME_0. The header is plain C11 and C++. Dtypes, statuses, op numbers, attribute structs
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
 *   Growth      a struct that begins with struct_size may grow at its end: its sender sets it to
 *               sizeof, and what an older sender does not know is 0, which means "not given".
 *               Before 1.0 of Tenon it may change otherwise; from 1.0 on functions and fields are
 *               only added.
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

/* "0.1.0" */
TENON_API const char* tenon_version(void);

/* Adds a reference to an object of any kind. NULL is allowed. Threads: any. */
TENON_API void tenon_retain(const void* object);
/* Gives up a reference; the last one ends the object, which must not be used any more. NULL is
 * allowed. Threads: any. */
TENON_API void tenon_release(const void* object);
/* The number of objects that the process has, errors included. Threads: any. */
TENON_API uint64_t tenon_object_count(void);
/* Frees a text that a function returned. NULL is allowed. Threads: any. */
TENON_API void tenon_string_free(char* text);

/* ------------------------------------------------------------------ errors
 * Threads: any; an error does not change. */

/* An error for callbacks of the caller to return. NULL text: none. Never NULL. */
TENON_API TenonError* tenon_error_create(tenon_status status, const char* message);
/* TENON_OK for NULL. */
TENON_API tenon_status tenon_error_status(const TenonError* error);
/* One or more sentences: what failed, what was expected, what was given and, if there is one, the
 * remedy. "" for NULL. */
TENON_API const char* tenon_error_message(const TenonError* error);
/* "INVALID_ARGUMENT"; "?" for a number that is no status. */
TENON_API const char* tenon_status_name(tenon_status status);

/* ------------------------------------------------------------------ contexts
 * Loaded backends and their devices. There is no global one.
 * Threads: any, also at the same time. A child of fork() creates its own context. */

typedef struct TenonContextOptions {
  uint32_t struct_size;
  uint32_t reserved;
  const char* config;      /* the keys of a tenon.yaml; they go before environment and files */
  const char* config_file; /* a tenon.yaml; NULL: the one that TENON_CONFIG names, or none */
  const char* const*
      plugins; /* files and folders that are searched for backends before all others */
  uint64_t plugin_count;
} TenonContextOptions;

/* Loads backends as configured; NULL: by the environment and the defaults.
 * Errors  an invalid configuration, with line and key; a path of `plugins` that does not exist or is
 *         no usable file; no usable backend. */
TENON_API TenonError* tenon_context_create(const TenonContextOptions* options,
                                           TenonContext** out_context);
/* All keys as YAML, each with where its value comes from as a comment. */
TENON_API TenonError* tenon_context_config(const TenonContext* context, char** out_yaml);
/* {"records": [{path, name, origin, reached, status, healthy, shadowed, denied, text, remedy,
 * warnings, exposures, missing: [{name, needed_by, folders}], output, version, build_id, vendor,
 * description, requirements, priority, abi, devices, summary}], "places": [{path, origin, text}]}:
 * what became of each file that could be a backend. */
TENON_API TenonError* tenon_context_load_report(const TenonContext* context, char** out_json);
/* [{name, alias, backend, kind, product, identity, description, memory_size_bytes,
 * memory_free_bytes, compute, clock_khz, alignment_bytes, dtypes}], in the order of preference. */
TENON_API TenonError* tenon_context_devices(const TenonContext* context, char** out_json);

/* Opens a device by any name that docs/backends.md lists: "cpu", "cuda:1". NULL: the default device.
 * Errors  TENON_DEVICE_NOT_FOUND with the list of devices. */
TENON_API TenonError* tenon_device_open(const TenonContext* context, const char* name,
                                        TenonDevice** out_device);
/* The canonical name, "openblas:0"; "" for NULL. */
TENON_API const char* tenon_device_name(const TenonDevice* device);
/* The entry of tenon_context_devices, with `ops`, and the memory in use: live_size_bytes,
 * peak_size_bytes, reserved_size_bytes, limit_size_bytes. */
TENON_API TenonError* tenon_device_describe(const TenonDevice* device, char** out_json);
/* Returns when the work of programs on the device has finished. Errors: that work failed. */
TENON_API TenonError* tenon_device_synchronize(const TenonDevice* device);
/* Gives cached memory that is not in use back to the device. */
TENON_API TenonError* tenon_device_trim(const TenonDevice* device);

/* ------------------------------------------------------------------ tensors
 * Strided arrays of one dtype in host or device memory; a device of NULL is the host. At most
 * TENON_MAX_RANK dimensions, outermost first; `shape` may be NULL for rank 0.
 * Threads: a tensor does not change, its elements may: any number of threads may read them, or one
 * may write. */

/* Dense and uninitialised; the host's memory is aligned to 64 bytes.
 * Errors  TENON_OUT_OF_MEMORY with requested, live and peak bytes. */
TENON_API TenonError* tenon_tensor_empty(const TenonDevice* device, tenon_dtype dtype,
                                         uint32_t rank, const int64_t* shape,
                                         TenonTensor** out_tensor);
/* Dense, with `value` in every element. Errors also: a value that an integer dtype cannot hold. */
TENON_API TenonError* tenon_tensor_full(const TenonDevice* device, tenon_dtype dtype, uint32_t rank,
                                        const int64_t* shape, double value,
                                        TenonTensor** out_tensor);
/* A dense host tensor with a copy of these elements; strides of NULL: dense. */
TENON_API TenonError* tenon_tensor_copy_of(const void* data, tenon_dtype dtype, uint32_t rank,
                                           const int64_t* shape, const int64_t* strides,
                                           TenonTensor** out_tensor);
enum { TENON_TENSOR_READ_ONLY = 1u << 0 };
/* A tensor in the caller's memory. `data` is the address of element (0, ..., 0); strides may be
 * negative or 0. `release`, which may be NULL, is called with `user` when the last tensor that uses
 * the memory is released, on the thread that does so, and not after an error.
 * `flags`: TENON_TENSOR_READ_ONLY, or 0. */
TENON_API TenonError* tenon_tensor_borrow(void* data, tenon_dtype dtype, uint32_t rank,
                                          const int64_t* shape, const int64_t* strides,
                                          uint32_t flags, void (*release)(void* user), void* user,
                                          TenonTensor** out_tensor);

typedef struct TenonTensorInfo {
  uint32_t struct_size; /* set by the caller; fields within it are filled */
  tenon_dtype dtype;
  uint32_t rank;
  uint32_t flags;      /* TENON_TENSOR_READ_ONLY */
  uint32_t is_dense;   /* 1: contiguous in row-major order */
  uint32_t is_on_host; /* 1: the host can access the elements */
  uint64_t address;    /* of element (0, ..., 0): a pointer, or an address of the device */
  uint64_t element_count;
  uint64_t size_bytes; /* of a dense copy */
  int64_t shape[TENON_MAX_RANK];
  int64_t strides[TENON_MAX_RANK];
} TenonTensorInfo;
TENON_API TenonError* tenon_tensor_info(const TenonTensor* tensor, TenonTensorInfo* out_info);
/* The device of the memory; NULL in `out_device` for memory of the host alone. */
TENON_API TenonError* tenon_tensor_device(const TenonTensor* tensor, TenonDevice** out_device);
/* The address of element (0, ..., 0). Errors: memory that the host cannot access. */
TENON_API TenonError* tenon_tensor_data(const TenonTensor* tensor, const void** out_data);
/* The same to write to. Errors also: a read-only tensor. */
TENON_API TenonError* tenon_tensor_mutable_data(const TenonTensor* tensor, void** out_data);

/* Copies all elements to memory of the host, dense and row-major.
 * Errors  size_bytes other than that of the elements. */
TENON_API TenonError* tenon_tensor_read(const TenonTensor* tensor, void* out_data,
                                        uint64_t size_bytes);
/* Copies the elements of `source`, of the same dtype and shape, on any device; memory may overlap.
 * Errors  another dtype or shape; a read-only tensor; a view that repeats elements. */
TENON_API TenonError* tenon_tensor_assign(const TenonTensor* tensor, const TenonTensor* source);
/* Sets every element. Errors: those of tenon_tensor_full and tenon_tensor_assign. */
TENON_API TenonError* tenon_tensor_fill(const TenonTensor* tensor, double value);
/* A dense copy on the device, NULL: the host; the same tensor if it is there and dense already. */
TENON_API TenonError* tenon_tensor_to_device(const TenonTensor* tensor, const TenonDevice* device,
                                             TenonTensor** out_tensor);
/* A dense copy of that dtype in the same memory, or the same tensor if it has the dtype already.
 * From floating point to integers, values are truncated and saturated; NaN becomes 0. */
TENON_API TenonError* tenon_tensor_to_dtype(const TenonTensor* tensor, tenon_dtype dtype,
                                            TenonTensor** out_tensor);

/* Views share the elements. Negative axes count from the end. */

/* Another shape of the same count. Errors: a strided tensor; see tenon_tensor_contiguous. */
TENON_API TenonError* tenon_tensor_reshape(const TenonTensor* tensor, uint32_t rank,
                                           const int64_t* shape, TenonTensor** out_tensor);
/* Elements begin, begin + step, ... before `end`: 0 <= begin <= end <= size if step > 0; size >
 * begin >= end >= -1 if step < 0, where end = -1 includes element 0. */
TENON_API TenonError* tenon_tensor_slice(const TenonTensor* tensor, int64_t axis, int64_t begin,
                                         int64_t end, int64_t step, TenonTensor** out_tensor);
/* One element of an axis, which is removed; a negative index counts from the end. */
TENON_API TenonError* tenon_tensor_select(const TenonTensor* tensor, int64_t axis, int64_t index,
                                          TenonTensor** out_tensor);
/* Axis i of the result is axis permutation[i]; `rank` is that of the tensor. */
TENON_API TenonError* tenon_tensor_permute(const TenonTensor* tensor, uint32_t rank,
                                           const int64_t* permutation, TenonTensor** out_tensor);
/* Broadcasts axes of size 1, and new leading axes, with stride 0. */
TENON_API TenonError* tenon_tensor_expand(const TenonTensor* tensor, uint32_t rank,
                                          const int64_t* shape, TenonTensor** out_tensor);
/* Inserts an axis of size 1 before `axis`; -1 puts it last. */
TENON_API TenonError* tenon_tensor_unsqueeze(const TenonTensor* tensor, int64_t axis,
                                             TenonTensor** out_tensor);
/* The same tensor if it is dense, else a dense copy in the same memory. */
TENON_API TenonError* tenon_tensor_contiguous(const TenonTensor* tensor, TenonTensor** out_tensor);

/* The elements in NumPy's format, [[1, 2],\n [3, 4]]; an axis longer than 2 * edge + 1 shows its
 * first and last `edge` elements. */
TENON_API TenonError* tenon_tensor_text(const TenonTensor* tensor, int64_t edge, char** out_text);
/* 1 in `out_equal` for the same dtype, shape and bits, on any device. */
TENON_API TenonError* tenon_tensor_equal(const TenonTensor* a, const TenonTensor* b,
                                         uint32_t* out_equal);

/* DLPack. The structs are those of <dlpack/dlpack.h>; DLManagedTensorVersioned is that of DLPack
 * 1.x. An import takes ownership: the exporter's deleter is called when the last tensor of the
 * memory is released; on an error the caller keeps it. With a device of NULL the memory has to be
 * the host's; else memory of the device is used in place, and memory of the host where the device
 * can, or is copied. An exporter's pending work on a device has to be finished. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
TENON_API TenonError* tenon_tensor_from_dlpack(struct DLManagedTensor* managed,
                                               const TenonDevice* device, TenonTensor** out_tensor);
/* The flag READ_ONLY becomes TENON_TENSOR_READ_ONLY. Errors also: a version other than 1.x. */
TENON_API TenonError* tenon_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned* managed,
                                                         const TenonDevice* device,
                                                         TenonTensor** out_tensor);
/* The caller, or whom the caller gives it to, calls its deleter once, from any thread.
 * Errors  a read-only tensor, which the unversioned struct cannot mark; memory of a device that
 *         DLPack does not know. */
TENON_API TenonError* tenon_tensor_to_dlpack(const TenonTensor* tensor,
                                             struct DLManagedTensor** out_managed);
TENON_API TenonError* tenon_tensor_to_dlpack_versioned(
    const TenonTensor* tensor, struct DLManagedTensorVersioned** out_managed);
/* DLDeviceType and index of the tensor's memory: 1 is the CPU, 2 CUDA. */
TENON_API TenonError* tenon_tensor_dlpack_device(const TenonTensor* tensor, int32_t* out_type,
                                                 int32_t* out_id);

#ifdef __cplusplus
}
#endif
#endif /* TENON_RUNTIME_H */
