/* SPDX-License-Identifier: Apache-2.0 */
/* tenon/backend.h - the plugin ABI: everything that passes between the Tenon core and a backend.
 *
 * A backend is one shared library that exports one function, tenon_backend_query. Everything else is reached through tables of function
 * pointers: the core's (tenon_host) handed to the backend, the backend's (tenon_backend_table) handed to the core. This header is plain
 * C11 (and valid C++20), depends only on <stddef.h> and <stdint.h>, and is the whole contract together with plugins/abi/README.md, which
 * explains it step by step.
 *
 * Conventions, true for every function unless its comment says otherwise:
 *   Sizes       are in bytes and named so, or count elements. Strides are in elements.
 *   Integers    have fixed widths. Flags and enumerations are uint32_t with named constants that are never reused.
 *   Texts       are UTF-8 and end with a NUL, on every platform, paths too. One that was cut to its buffer may end within a character.
 *   NULL        an array without elements may be NULL, and the shape of rank 0. Other pointers are never NULL unless their comment says so.
 *   Ownership   arguments are borrowed for the length of the call. Whoever creates an object destroys it through the matching slot,
 *               once; nothing is freed across the boundary in another way.
 *   Errors      a fallible slot returns a tenon_status and describes failure in the host-owned tenon_error (may be NULL), always with a
 *               text, except for TENON_NOT_READY. On failure out-parameters are left untouched and nothing has been acquired.
 *   Threads     slots may be called from any thread. Calls on one stream, one event or one memory object are not made at the same
 *               time by the core, but for stream_synchronize: another thread may submit to the stream meanwhile. Calls on different
 *               ones may be. So may calls on one device or backend, and plan_execute, plan_info and profile.read of one plan. No other
 *               call is made on an object while it is closed, shut down or destroyed.
 *   Growth      a struct that begins with struct_size may grow at its end. Its sender sets struct_size to what it
 *               knows; a receiver reads a field only if struct_size covers its end (TENON_HAS). Zero or NULL means "not given". Of a
 *               struct that the callee fills, the caller sets struct_size to what it has and the rest to 0; the callee writes no more
 *               than that, and leaves in struct_size what it wrote. `reserved` is sent as 0 and not read. An array's stride is a
 *               multiple of 4, and of 8 for elements with 8-byte fields, at most 1024.
 *   Needs       bytes that a receiver does not know may be ignored, except for set bits of `needs`: to ignore one changes the
 *               result. A receiver that does not know a set bit refuses before the call has any effect. `supports` says no, for
 *               TENON_REASON_NEEDS, to the nodes that the bit touches: a node's own, those that read or write a value, all of a
 *               graph or its options. Any other slot returns TENON_UNSUPPORTED. No bit has a meaning yet.
 *   Values      numbers that an enumeration does not list are reserved. A backend that is sent one refuses as for `needs`: a no from
 *               `supports`, TENON_UNSUPPORTED from other slots. A new value of a BLAS argument comes with a bit of `needs`. Unknown bits of
 *               `flags` and `features` are ignored. An unknown number from a backend is treated as follows: a status as a failure, a
 *               reason as a no, a kind of device as an accelerator, the type of an option as a string, a log level as TENON_LOG_ERROR.
 *               Only ids of ops have a range for vendors.
 *   Calls       functions have the calling convention TENON_CALL. Structs have the alignment that the platform's C compiler gives them,
 *               8 bytes at most. Processors are 64-bit and little-endian.
 *   Exceptions  no exception, signal, longjmp, exit or abort crosses the boundary, in either direction.
 */
#ifndef TENON_BACKEND_H
#define TENON_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != 0xffffffffffffffffu
#error "tenon/backend.h: expected a 64-bit target"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tenon/backend.h: expected a little-endian target"
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma pack(push, 8)

/* ------------------------------------------------------------------------------------------------ version */

/* Frozen since 1.0: it only grows, as CHANGELOG.md beside this folder promises. */
#define TENON_ABI_MAJOR 1u
#define TENON_ABI_MINOR 0u
#define TENON_ABI_MINOR_LOWEST 0u /* code for this header works from this minor on, reading newer fields by TENON_HAS */

/* True if the sender's struct covers `field` entirely. */
#define TENON_HAS(object, type, field) ((object)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))

/* The bit of `needs` that never gets a meaning: conformance kits set it and expect a refusal. */
#define TENON_NEEDS_TEST 0x80000000u

#if defined(_WIN32)
#define TENON_EXPORT __declspec(dllexport)
#define TENON_CALL __cdecl
#else
#define TENON_EXPORT __attribute__((visibility("default")))
#define TENON_CALL
#endif

/* ------------------------------------------------------------------------------------------------ small types */

typedef uint32_t tenon_status;
enum {
  TENON_OK = 0,
  TENON_INVALID_ARGUMENT = 1, /* the caller's mistake; the text names the argument, what was expected and what was given */
  TENON_UNSUPPORTED = 2,      /* this backend does not offer it */
  TENON_OUT_OF_MEMORY = 3,    /* requested, free and peak bytes are in the text where they are known */
  TENON_DEVICE_NOT_FOUND = 4,
  TENON_DEVICE_LOST = 5,  /* sticky: every later call on the device returns it until the device is closed */
  TENON_INCOMPATIBLE = 6, /* ABI, driver or vendor library version */
  TENON_NOT_READY = 7,    /* event_query only: work is still pending */
  TENON_CANCELLED = 8,    /* the host's cancel_requested said so: see tenon_run */
  TENON_VENDOR_ERROR = 9, /* a vendor library failed; the text names the call and its code */
  TENON_INTERNAL = 10,    /* a bug in the backend */
  TENON_FORKED = 11       /* the object belongs to a parent process */
};

/* Ids never exceed 63, since 64 bits hold a set of them. From 16 on the format is defined, and no op uses it yet. Elements of less
 * than a byte are packed: of a row-major tensor, which begins at a whole byte, element 0 is in the lowest bits of byte 0, and what the
 * last byte has left is 0. Such a tensor is dense; its strides, in elements as always, are NULL or say so. */
typedef uint32_t tenon_dtype;
enum {
  TENON_DTYPE_NONE = 0,
  TENON_DTYPE_F16 = 1,  /* IEEE binary16 */
  TENON_DTYPE_BF16 = 2, /* the upper half of an f32 */
  TENON_DTYPE_F32 = 3,
  TENON_DTYPE_F64 = 4,
  TENON_DTYPE_C64 = 5,  /* two f32: real, imaginary */
  TENON_DTYPE_C128 = 6, /* two f64 */
  TENON_DTYPE_I8 = 7,
  TENON_DTYPE_I16 = 8,
  TENON_DTYPE_I32 = 9,
  TENON_DTYPE_I64 = 10,
  TENON_DTYPE_U8 = 11,
  TENON_DTYPE_U16 = 12,
  TENON_DTYPE_U32 = 13,
  TENON_DTYPE_U64 = 14,
  TENON_DTYPE_BOOL = 15,       /* one byte, 0 or 1 */
  TENON_DTYPE_F8E4M3FN = 16,   /* bias 7, no infinity; NaN is S.1111.111 */
  TENON_DTYPE_F8E5M2 = 17,     /* IEEE: bias 15, with infinities and NaN */
  TENON_DTYPE_I4 = 18,         /* 4 bits, two's complement */
  TENON_DTYPE_U4 = 19,         /* 4 bits */
  TENON_DTYPE_F8E4M3FNUZ = 20, /* bias 8, no infinity and no -0; NaN is 0x80 */
  TENON_DTYPE_F8E5M2FNUZ = 21, /* bias 16, likewise */
  TENON_DTYPE_F4E2M1 = 22,     /* 4 bits: bias 1, neither infinity nor NaN */
  TENON_DTYPE_F8E8M0 = 23,     /* a scale: 2^(x - 127); NaN is 0xFF */
  TENON_DTYPE_I2 = 24,         /* 2 bits, two's complement */
  TENON_DTYPE_U2 = 25,         /* 2 bits */
  TENON_DTYPE_COUNT = 26       /* not a dtype: the highest id plus one; it rises in later headers */
};
/* A set of dtypes, as in tenon_capability.dtypes. */
#define TENON_DTYPE_BIT(dtype) ((uint64_t)1 << (dtype))

#define TENON_MAX_RANK 8u
#define TENON_MAX_SPATIAL 3u /* dimensions of an image */
#define TENON_NO_INDEX 0xffffffffu

typedef struct tenon_backend tenon_backend;
typedef struct tenon_device tenon_device;
typedef struct tenon_memory tenon_memory;
typedef struct tenon_stream tenon_stream;
typedef struct tenon_event tenon_event;
typedef struct tenon_plan tenon_plan;
typedef struct tenon_capture tenon_capture;
typedef struct tenon_packed tenon_packed;
typedef struct tenon_group tenon_group;
typedef struct tenon_host_context tenon_host_context;
typedef struct tenon_host_run tenon_host_run;

/* Where a failure is described. Owned by the caller; the callee writes at most `text_capacity`
 * bytes, NUL included. */
typedef struct tenon_error {
  uint32_t struct_size;
  tenon_status status;    /* the status that was returned, or that a later synchronise found */
  uint64_t node_id;       /* tenon_node.id of the node that failed, whichever plan of the stream it is in; 0: none, or unknown */
  char* text;             /* one sentence: what failed, what was expected, what was given, what to do */
  uint32_t text_capacity; /* size of the buffer `text` in bytes */
  uint32_t reserved;
} tenon_error;

/* ------------------------------------------------------------------------------------------------ ops */

/* Every op has an id that never changes. tenon/ops.def lists them. Ids from TENON_OP_VENDOR on mean what the tenon_vendor_op of the
 * backend says that has them: see there. */
typedef uint32_t tenon_op;
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) TENON_OP_##name = id,
enum {
  TENON_OP_NONE = 0,
#include "ops.def"
  TENON_OP_VENDOR = 0x40000000
};
#undef TENON_OP

/* Attributes: one closed struct per (op, version), named by the op's line in ops.def; a new
 * attribute is a new version. */
typedef struct tenon_attributes_none {
  uint32_t struct_size;
  uint32_t reserved;
} tenon_attributes_none;

typedef struct tenon_attributes_axis {
  uint32_t struct_size;
  uint32_t keepdims; /* ArgMax, ArgMin: 1 keeps the reduced axis with size 1 */
  int64_t axis;      /* 0 <= axis < rank, of Flatten <= rank: the core has resolved negative values */
} tenon_attributes_axis;

typedef struct tenon_attributes_axes {
  uint32_t struct_size;
  uint32_t keepdims; /* reductions: 1 keeps reduced axes with size 1 */
  uint32_t count;    /* entries used in `axes` */
  uint32_t reserved;
  int64_t axes[TENON_MAX_RANK]; /* reductions: ascending, each in [0, rank). Transpose: output axis i reads input axis axes[i] */
} tenon_attributes_axes;

typedef struct tenon_attributes_gemm {
  uint32_t struct_size;
  uint32_t trans_a; /* 0 or 1 */
  uint32_t trans_b; /* 0 or 1 */
  uint32_t reserved;
  double alpha;
  double beta; /* 0: C, if given at all, is not read */
} tenon_attributes_gemm;

typedef struct tenon_attributes_cast {
  uint32_t struct_size;
  tenon_dtype to;
} tenon_attributes_cast;

typedef struct tenon_attributes_clip {
  uint32_t struct_size;
  uint32_t reserved;
  double low; /* -inf, +inf: no bound. Integers: a bound beyond the dtype's range is none. low > high gives high */
  double high;
} tenon_attributes_clip;

typedef struct tenon_attributes_alpha {
  uint32_t struct_size;
  uint32_t reserved;
  double alpha; /* LeakyRelu: slope below 0. Elu: -alpha is the limit at minus infinity */
} tenon_attributes_alpha;

typedef struct tenon_attributes_gelu {
  uint32_t struct_size;
  uint32_t approximate_tanh; /* 0: x Phi(x) with erf. 1: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
} tenon_attributes_gelu;

/* y[i...] = x[starts + i * steps...]: one entry per dimension of x */
typedef struct tenon_attributes_slice {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t starts[TENON_MAX_RANK]; /* in [0, dim) for every result that is not empty */
  int64_t steps[TENON_MAX_RANK];  /* not 0; a negative step goes backwards */
} tenon_attributes_slice;

enum { TENON_PAD_CONSTANT = 0, TENON_PAD_REFLECT = 1, TENON_PAD_EDGE = 2 };
typedef struct tenon_attributes_pad {
  uint32_t struct_size;
  uint32_t mode;                  /* TENON_PAD_*; REFLECT does not repeat the edge and pads less than the dimension */
  double value;                   /* CONSTANT: the padding value */
  int64_t before[TENON_MAX_RANK]; /* elements added before each dimension, 0 or more; the result's shape says how many come after */
} tenon_attributes_pad;

enum { TENON_SCATTER_NONE = 0, TENON_SCATTER_ADD = 1, TENON_SCATTER_MUL = 2, TENON_SCATTER_MAX = 3, TENON_SCATTER_MIN = 4 };
typedef struct tenon_attributes_scatter {
  uint32_t struct_size;
  uint32_t reduction; /* TENON_SCATTER_*; NONE: of several updates of one element the last wins. MAX, MIN: NaN wins */
  int64_t axis;       /* 0 <= axis < rank */
} tenon_attributes_scatter;

typedef struct tenon_attributes_one_hot {
  uint32_t struct_size;
  tenon_dtype dtype; /* of y */
  int64_t axis; /* the axis of y that counts the classes; its size is the depth. An index outside [-depth, depth) gives a row of `off` */
  double off;
  double on;
} tenon_attributes_one_hot;

/* One entry per spatial dimension, outermost first; unused entries are 1 in strides and dilations, 0 in pads. Cross-correlation:
 * y[n, o, i...] = b[o] + sum over c, k... of x[n, c, i * strides + k * dilations - pads_before] w[o, c, k...], zeros outside of x.
 * Conv w (O, C / groups, k...). ConvTranspose is ConvInputGrad with b added: w (C, O / groups, k...). */
typedef struct tenon_attributes_conv {
  uint32_t struct_size;
  uint32_t groups;                      /* >= 1; divides C and O */
  int64_t strides[TENON_MAX_SPATIAL];   /* >= 1 */
  int64_t dilations[TENON_MAX_SPATIAL]; /* >= 1 */
  int64_t pads_before[TENON_MAX_SPATIAL];
  int64_t pads_after[TENON_MAX_SPATIAL];
} tenon_attributes_conv;

/* A window that slides over each spatial dimension. Im2Col: x (N, C, d...) -> (N, C * product of kernel, windows), channels outermost, then
 * the kernel's dimensions. MaxPool: indices count from the start of x, row-major, whatever the memory's order; ties: the first; NaN wins.
 */
typedef struct tenon_attributes_window {
  uint32_t struct_size;
  uint32_t ceil_mode;         /* pools: 1 keeps a truncated last window if it starts within x or the padding before it */
  uint32_t count_include_pad; /* AveragePool: 1 divides by the window's size within the padded input, 0 by its size within x */
  uint32_t reserved;
  int64_t kernel[TENON_MAX_SPATIAL];
  int64_t strides[TENON_MAX_SPATIAL];
  int64_t dilations[TENON_MAX_SPATIAL];   /* AveragePool: 1 */
  int64_t pads_before[TENON_MAX_SPATIAL]; /* pools: less than the kernel */
  int64_t pads_after[TENON_MAX_SPATIAL];
} tenon_attributes_window;

enum { TENON_RESIZE_NEAREST = 0, TENON_RESIZE_LINEAR = 1 };
enum {
  TENON_COORDINATES_HALF_PIXEL = 0,
  TENON_COORDINATES_ASYMMETRIC = 1,
  TENON_COORDINATES_ALIGN_CORNERS = 2,
  TENON_COORDINATES_PYTORCH_HALF_PIXEL = 3
};
enum { TENON_ROUND_PREFER_FLOOR = 0, TENON_ROUND_PREFER_CEIL = 1, TENON_ROUND_FLOOR = 2, TENON_ROUND_CEIL = 3 };
typedef struct tenon_attributes_resize {
  uint32_t struct_size;
  uint32_t mode;                 /* TENON_RESIZE_* */
  uint32_t coordinates;          /* TENON_COORDINATES_*: ONNX's coordinate_transformation_mode */
  uint32_t rounding;             /* TENON_ROUND_*: ONNX's nearest_mode */
  double scales[TENON_MAX_RANK]; /* > 0, one per dimension of x; dimensions of scale 1 and equal size are not touched */
} tenon_attributes_resize;

typedef struct tenon_attributes_batch_norm {
  uint32_t struct_size;
  uint32_t biased; /* BatchNormTrain: 1 averages the biased variance (Keras) */
  int64_t axis;    /* of the channels; operands other than x have shape (C) */
  double epsilon;
  double momentum; /* running = (1 - momentum) running + momentum batch */
} tenon_attributes_batch_norm;

typedef struct tenon_attributes_layer_norm {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t axis; /* first normalised dimension; scale and bias have the shape from here on, statistics have 1 in its place */
  double epsilon;
} tenon_attributes_layer_norm;

/* y = x / (bias + alpha / size * sum of x^2 over the channels c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2))^beta */
typedef struct tenon_attributes_lrn {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t size;
  double alpha;
  double beta;
  double bias;
} tenon_attributes_lrn;

enum { TENON_DIRECTION_FORWARD = 0, TENON_DIRECTION_REVERSE = 1, TENON_DIRECTION_BOTH = 2 };
enum { TENON_RNN_TANH = 0, TENON_RNN_RELU = 1 };
typedef struct tenon_attributes_recurrent {
  uint32_t struct_size;
  uint32_t direction;           /* TENON_DIRECTION_* */
  uint32_t activation;          /* RNN: TENON_RNN_* */
  uint32_t linear_before_reset; /* GRU: 1 applies the reset gate after the product with r (PyTorch, cuDNN) */
} tenon_attributes_recurrent;

typedef struct tenon_attributes_attention {
  uint32_t struct_size;
  uint32_t causal; /* 1: query s sees only keys l <= s */
  double scale;    /* of q k' */
} tenon_attributes_attention;

typedef struct tenon_attributes_top_k {
  uint32_t struct_size;
  uint32_t largest; /* 0: the smallest */
  uint32_t sorted;  /* 1: best first; 0: any order. Ties: the smaller index first */
  uint32_t reserved;
  int64_t axis;
  int64_t k; /* 0 <= k <= size of axis */
} tenon_attributes_top_k;

typedef struct tenon_attributes_cum_sum {
  uint32_t struct_size;
  uint32_t exclusive; /* 1: without the element itself */
  uint32_t reverse;   /* 1: from the end */
  uint32_t reserved;
  int64_t axis;
} tenon_attributes_cum_sum;

/* Random ops and Dropout. Bits come from Philox4x32-10 as plugins/abi/README.md specifies. */
typedef struct tenon_attributes_random {
  uint32_t struct_size;
  uint32_t stream;   /* separates the consumers of one key: an id that is unique in the model */
  double a;          /* RandomUniform: low. RandomNormal: mean. RandomBernoulli: probability of a one. Dropout: of dropping, in [0, 1) */
  double b;          /* RandomUniform: high. RandomNormal: standard deviation. Others: 0 */
  tenon_dtype dtype; /* of the output; Dropout: that of x */
  uint32_t reserved;
} tenon_attributes_random;

enum { TENON_REDUCTION_NONE = 0, TENON_REDUCTION_MEAN = 1, TENON_REDUCTION_SUM = 2 };
typedef struct tenon_attributes_cross_entropy {
  uint32_t struct_size;
  uint32_t reduction;        /* TENON_REDUCTION_* */
  uint32_t has_ignore_index; /* 1: labels equal to ignore_index contribute nothing and are not counted */
  uint32_t reserved;
  int64_t ignore_index;
} tenon_attributes_cross_entropy;

typedef struct tenon_attributes_sgd {
  uint32_t struct_size;
  uint32_t nesterov;   /* 0 or 1 */
  double momentum;     /* 0: there is no velocity operand */
  double weight_decay; /* L2: g + weight_decay * w takes the place of g */
} tenon_attributes_sgd;

typedef struct tenon_attributes_adam {
  uint32_t struct_size;
  uint32_t reserved;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay; /* decoupled (AdamW): w -= lr * weight_decay * w */
} tenon_attributes_adam;

typedef struct tenon_attributes_adagrad {
  uint32_t struct_size;
  uint32_t reserved;
  double epsilon;      /* w -= lr g / (sqrt(sum) + epsilon) */
  double weight_decay; /* L2: g + weight_decay * w takes the place of g */
} tenon_attributes_adagrad;

typedef struct tenon_attributes_adadelta {
  uint32_t struct_size;
  uint32_t reserved;
  double rho;
  double epsilon;      /* d = g sqrt(delta + epsilon) / sqrt(v + epsilon); w -= lr d */
  double weight_decay; /* L2, as in Adagrad */
} tenon_attributes_adadelta;

typedef struct tenon_attributes_rmsprop {
  uint32_t struct_size;
  uint32_t epsilon_outside; /* 0: g / sqrt(v + epsilon). 1: g / (sqrt(v) + epsilon) */
  double rho;
  double epsilon;
} tenon_attributes_rmsprop;

/* Weights of `bits` bits in blocks: block i of a row has the elements [i block_size, (i + 1) block_size), the last one fewer. */
typedef struct tenon_attributes_nbits {
  uint32_t struct_size;
  uint32_t bits;      /* 4 or 8 */
  int64_t block_size; /* a power of two of 16 or more */
} tenon_attributes_nbits;

enum {
  TENON_ATTRIBUTE_INTEGER = 1,  /* one int64_t */
  TENON_ATTRIBUTE_FLOAT = 2,    /* one double */
  TENON_ATTRIBUTE_STRING = 3,   /* `count` bytes of UTF-8 and a NUL that is not counted */
  TENON_ATTRIBUTE_INTEGERS = 4, /* `count` int64_t */
  TENON_ATTRIBUTE_FLOATS = 5    /* `count` double */
};
/* An attribute of a vendor's op. Frozen. */
typedef struct tenon_attribute {
  const char* name;
  const void* data; /* NULL if `count` is 0 */
  uint32_t type;    /* TENON_ATTRIBUTE_* */
  uint32_t count;
} tenon_attribute;

/* The attributes of a node of a vendor's op: all that its schema names, in that order, with the schema's defaults for those that were not
 * given. Borrowed for the length of the call, like the node. */
typedef struct tenon_attributes_vendor {
  uint32_t struct_size;
  uint32_t count;
  const tenon_attribute* attributes;
} tenon_attributes_vendor;

/* Schema digest of one (op, version). FNV-1a 64 of "Name-version: schema" in ops.def; see
 * tenon/op_digests.h. Frozen. */
typedef struct tenon_op_digest {
  tenon_op op;
  uint32_t version;
  uint64_t digest;
} tenon_op_digest;

/* ------------------------------------------------------------------------------------------------ graphs */

/* Shape, strides and dtype of a value of a graph; its memory is bound at execution. Frozen: it never gains a field.
 *   Shape    shape[0..rank), outermost dimension first; rank 0 is a scalar; a dimension may be 0. Negative dimensions are reserved
 *            for symbols, whose size is known at execution: whoever does not know them refuses the nodes that they touch.
 *   Strides  in elements, one per dimension; 0 repeats an element, negative runs backwards, NULL means dense row-major.
 *            The bound address is that of element (0, ..., 0). Only inputs and parameters may be other than dense.
 *   Owner    the caller, for the length of the call. */
typedef struct tenon_tensor_desc {
  const int64_t* shape;
  const int64_t* strides;
  uint32_t rank;
  tenon_dtype dtype;
} tenon_tensor_desc;

enum {
  TENON_VALUE_INTERNAL = 0,  /* made and consumed inside the graph; the backend places it in the workspace */
  TENON_VALUE_INPUT = 1,     /* bound at each execution */
  TENON_VALUE_OUTPUT = 2,    /* bound at each execution; written by exactly one node, may be read by others; always dense */
  TENON_VALUE_PARAMETER = 3, /* bound at each execution; its bytes change only when bindings.parameters_epoch does */
  TENON_VALUE_CONSTANT = 4   /* bytes known now: `data`, in host memory, dense, borrowed for the length of the call */
};

/* A value in SSA form: written once. Arrays of it carry an element stride. */
typedef struct tenon_value {
  tenon_tensor_desc desc;
  uint32_t kind;    /* TENON_VALUE_* */
  uint32_t binding; /* inputs, outputs, parameters: index into tenon_bindings.addresses; else TENON_NO_INDEX */
  const void* data; /* constants only, aligned to an element */
  /* parameters and constants, for plan_create: the value as pack->create packed it, which the plan reads instead of packing it itself;
   * NULL: none. The plan keeps a reference of its own. */
  tenon_packed* packed;
  uint32_t needs; /* bits that must be understood: else the nodes that read or write the value are refused */
  uint32_t reserved;
} tenon_value;

/* One op applied to values. Arrays of it carry an element stride. */
typedef struct tenon_node {
  tenon_op op;
  uint32_t version;
  const uint32_t* inputs;  /* indices into graph.values; TENON_NO_INDEX for an optional input that is absent */
  const uint32_t* outputs; /* likewise for outputs that are not needed */
  uint32_t input_count;
  uint32_t output_count;
  const void* attributes; /* the struct that the op's line in ops.def names; never NULL */
  const char* name;       /* for messages and profiles, UTF-8, may be NULL */
  uint64_t id;            /* stable for the life of the program and unique in its process, for errors and profiles; 0: none */
  uint32_t needs;         /* bits that must be understood: else the node is refused */
  uint32_t reserved;
} tenon_node;

/* Input i and output j (indices into graph.values) will be bound to the same address: the output is
 * written in place, after every read of the input. The core declares one for each output in memory
 * that outlives the execution, also if no node reads the input. Other bindings do not overlap an
 * output. Frozen. */
typedef struct tenon_donation {
  uint32_t input;
  uint32_t output;
} tenon_donation;

/* A graph of one or more nodes, in a valid order of execution. */
typedef struct tenon_graph {
  uint32_t struct_size;
  uint32_t value_count;
  const tenon_value* values;
  uint32_t value_stride; /* bytes from one tenon_value to the next */
  uint32_t node_count;
  const tenon_node* nodes;
  uint32_t node_stride; /* bytes from one tenon_node to the next */
  uint32_t donation_count;
  const tenon_donation* donations;
  uint32_t binding_count; /* entries that tenon_bindings.addresses will have */
  uint32_t needs;         /* bits that must be understood: else every node is refused */
} tenon_graph;

/* ------------------------------------------------------------------------------------------------ plans */

enum {
  TENON_MATH_STRICT = 0, /* arithmetic of the operands' width; any algorithm that meets the bound stated for the op */
  TENON_MATH_TF32 = 1,   /* f32 products may round their operands to 10 mantissa bits */
  TENON_MATH_BF16 = 2    /* f32 products may round their operands to bf16 */
};
enum {
  TENON_FUSION_FULL = 0,        /* whatever the backend can fuse */
  TENON_FUSION_ELEMENTWISE = 1, /* chains of elementwise ops only */
  TENON_FUSION_OFF = 2          /* one kernel per node */
};

/* What a call may use of the process, and whether its result is still wanted. It travels with
 * plan_create, plan_execute and BLAS calls; NULL means the defaults, which are all 0. The backend
 * passes it to the host's parallel_for, thread_count and cancel_requested.
 *   Owner         the caller, for the length of the call: work that runs later must not use it.
 *   Cancellation  a call may ask cancel_requested and then return TENON_CANCELLED, at points where that
 *                 takes effect within milliseconds. On a device with TENON_DEVICE_INLINE_STREAMS,
 *                 plan_execute asks between its kernels, up to the first one that writes a donated
 *                 output; from there on it does not stop. A cancelled execution has written no donated
 *                 output, the other outputs are undefined, work that was submitted before runs to its
 *                 end, and plan, device and stream stay usable. */
typedef struct tenon_run {
  uint32_t struct_size;
  uint32_t threads; /* the most threads of parallel_for, the caller's included; 0, or more than the host has: all of them */
  int32_t priority; /* a hint for queues that have priorities: higher goes first, 0 is normal */
  uint32_t reserved;
  tenon_host_run* context; /* the host's */
} tenon_run;

typedef struct tenon_plan_options {
  uint32_t struct_size;
  uint32_t math;          /* TENON_MATH_*: honoured or refused, never silently changed */
  uint32_t deterministic; /* 1: the same bits in every run on the same device, whatever the thread count */
  uint32_t fusion;        /* TENON_FUSION_* */
  uint32_t needs;         /* bits that must be understood: else every node is refused */
  uint32_t reserved;
  const tenon_run* run; /* of plan_create; NULL: the defaults */
} tenon_plan_options;

/* The alignment is a power of two up to device_info.alignment_bytes; 0 or 1: none. */
typedef struct tenon_plan_info {
  uint32_t struct_size;
  uint32_t kernel_count;         /* kernels one execution launches, after fusion */
  uint64_t workspace_size_bytes; /* device memory each concurrent execution needs */
  uint64_t workspace_alignment_bytes;
  uint64_t packed_size_bytes; /* memory the plan itself owns: constants and packed operands, without tenon_value.packed */
} tenon_plan_info;

/* The addresses that one execution uses. Shapes and strides are in the plan. */
typedef struct tenon_bindings {
  uint32_t struct_size;
  uint32_t address_count;
  const uint64_t* addresses; /* by tenon_value.binding; an address of a value without elements may be 0 */
  uint64_t parameters_epoch; /* a plan that packs parameters packs them again when this differs from the last execution */
  uint32_t needs;            /* bits that must be understood: else plan_execute returns TENON_UNSUPPORTED */
  uint32_t reserved;
  const tenon_run* run;  /* NULL: the defaults, as always while the stream is recorded */
  uint64_t execution_id; /* the name of this execution in the profile block; 0: it is not profiled */
} tenon_bindings;

enum {
  TENON_REASON_NONE = 0,
  TENON_REASON_OP = 1,         /* the op, or this version of it, is not implemented */
  TENON_REASON_DTYPE = 2,      /* the op is implemented, but not for this dtype */
  TENON_REASON_SHAPE = 3,      /* this rank, size or axis is not supported */
  TENON_REASON_STRIDES = 4,    /* not with these strides: the core makes dense copies of the node's operands and asks again */
  TENON_REASON_ATTRIBUTES = 5, /* an attribute's value is not supported */
  TENON_REASON_OPTIONS = 6,    /* math or deterministic cannot be honoured */
  TENON_REASON_GRAPH = 7,      /* supported in a graph of its own, but not in this one (single-node backends) */
  TENON_REASON_ALIGNMENT = 8,  /* these strides put rows off the alignment that the node needs: answered as STRIDES is */
  TENON_REASON_NEEDS = 9       /* a set bit of `needs` that is not known here */
};

/* One node's answer from `supports`, an element of an array that grows by its stride.
 *   Yes      is binding: a plan of supported nodes may fail only for lack of resources.
 *   Groups   nodes with the same group other than 0 are planned together or not at all: their yes holds in plans that have all of
 *            them, and the whole group gets the same yes or no. The numbers mean nothing outside of this array. */
typedef struct tenon_answer {
  uint32_t supported; /* 1: yes, 0: no */
  uint32_t reason;    /* TENON_REASON_* of a no */
  uint32_t group;     /* 0: the node may be in any plan */
  uint32_t reserved;
  char text[240]; /* one sentence for a no, NUL-terminated */
} tenon_answer;

/* ------------------------------------------------------------------------------------------------ host services */

enum { TENON_LOG_DEBUG = 0, TENON_LOG_INFO = 1, TENON_LOG_WARNING = 2, TENON_LOG_ERROR = 3 };

/* Everything a backend may ask of its process. Passed to `create`, valid until the backend is
 * destroyed; every function may be called from any thread. Functions up to `extension` are never
 * NULL; later ones may be. A backend reads no environment variable and changes no process state. */
typedef struct tenon_host {
  uint32_t struct_size;
  uint32_t abi_minor; /* the minor version both sides use */
  tenon_host_context* context;
  /* Writes one line. */
  void(TENON_CALL* log)(tenon_host_context*, uint32_t level, const char* text);
  /* Host memory, aligned to `alignment_bytes` (a power of two). NULL when there is none. */
  void*(TENON_CALL* allocate)(tenon_host_context*, uint64_t size_bytes, uint64_t alignment_bytes);
  void(TENON_CALL* release)(tenon_host_context*, void* memory, uint64_t size_bytes);
  /* Calls body(argument, begin, end) so that the ranges cover [0, count) exactly once, on the
   * host's threads and the caller's, each range at least `grain` long but for the last; returns
   * when all are done. May be called from inside a body: it then runs inline. The body must not
   * throw. How the range is split depends only on count, grain and the thread budget. `run` is that
   * of the call that the loop is a part of. */
  void(TENON_CALL* parallel_for)(tenon_host_context*, const tenon_run* run, int64_t count, int64_t grain,
                                 void(TENON_CALL* body)(void* argument, int64_t begin, int64_t end), void* argument);
  /* The thread budget of parallel_for in this run, the caller's thread included; >= 1. */
  uint32_t(TENON_CALL* thread_count)(tenon_host_context*, const tenon_run* run);
  /* A span in the host's trace, nested per thread. `name` is copied. */
  void(TENON_CALL* trace_begin)(tenon_host_context*, const char* name, uint64_t correlation_id);
  void(TENON_CALL* trace_end)(tenon_host_context*);
  /* The user's value for this option of the backend, or its declared default; NULL if it was not
   * declared. A boolean is "true" or "false", an integer decimal, a choice one of its words. Lives as
   * long as the host. */
  const char*(TENON_CALL* option)(tenon_host_context*, const char* option);
  /* A directory this backend may keep files in; created on the first call; NULL if there is none.
   * Lives as long as the host. */
  const char*(TENON_CALL* cache_directory)(tenon_host_context*);
  /* 1 if the result of this run is not wanted any more. Costs nanoseconds. */
  uint32_t(TENON_CALL* cancel_requested)(tenon_host_context*, const tenon_run* run);
  /* Measured choices, kept by the host between runs of one build of the backend, in a file with a
   * checksum. A key is UTF-8 and names what the choice depends on: problem, device, versions of
   * libraries. get copies at most `capacity` bytes and returns the stored size, 0 if absent. */
  uint64_t(TENON_CALL* autotune_get)(tenon_host_context*, const char* key, void* out_value, uint64_t capacity_bytes);
  void(TENON_CALL* autotune_put)(tenon_host_context*, const char* key, const void* value, uint64_t size_bytes);
  /* What the application offers to backends besides this table: a struct of this name and version that both know, or NULL. Lives as
   * long as the host. */
  const void*(TENON_CALL* extension)(tenon_host_context*, const char* name, uint32_t version);
} tenon_host;

/* ------------------------------------------------------------------------------------------------ devices and memory */

enum { TENON_DEVICE_CPU = 1, TENON_DEVICE_GPU = 2, TENON_DEVICE_ACCELERATOR = 3 };
enum {
  TENON_DEVICE_HOST_ADDRESSABLE = 1u << 0, /* any host pointer is a device address and the reverse: no copies, no import needed */
  TENON_DEVICE_INLINE_STREAMS = 1u << 1,   /* work is finished when the submitting call returns */
  TENON_DEVICE_SINGLE_NODE_PLANS = 1u << 2 /* plan_create takes graphs of one node only */
};

/* One device, as device_info describes it without opening it. Strings live as long as the backend.
 *
 * Alignment  the first byte of an operand, the lowest that its strides reach, is at a multiple of
 *            operand_alignment_bytes and of its element's size (of the real part's, if complex).
 *            Operands are the values that tenon_bindings binds, and the vectors and matrices of
 *            BLAS. The core copies what starts elsewhere, such as a slice of a tensor, and refuses
 *            it in BLAS. `copy` and `fill` take any address, in bytes; so do scalars of BLAS. */
typedef struct tenon_device_info {
  uint32_t struct_size;
  uint32_t kind;          /* TENON_DEVICE_CPU ... */
  uint32_t flags;         /* TENON_DEVICE_HOST_ADDRESSABLE ... */
  uint32_t compute_major; /* GPUs: compute capability; else 0 */
  uint32_t compute_minor;
  uint32_t clock_khz; /* 0: unknown */
  const char* name;   /* "NVIDIA H200", "AMD EPYC ..." */
  /* Stable across runs, never empty; users select devices by it ("cuda:uuid=GPU-0123"). Pairs of a
   * key and a value without spaces, separated by one space: "uuid=GPU-0123 pci=0000:41:00.0"; a
   * device without such numbers has one name: "host" for the CPU. */
  const char* identity;
  const char* description;    /* libraries, instruction set, whatever a report should say */
  uint64_t memory_size_bytes; /* 0: unknown */
  uint64_t memory_free_bytes; /* at the time of the call */
  uint64_t alignment_bytes;   /* of allocations: a power of two */
  uint64_t dtypes;            /* set of TENON_DTYPE_BIT that the device computes with; the core sends it no value of another one. 0: all */
  uint64_t operand_alignment_bytes;   /* of operands: a power of two that divides alignment_bytes; 0 or 1: an element's size */
  uint64_t max_allocation_size_bytes; /* of one memory_allocate: the core asks for no more; 0: memory_size_bytes */
} tenon_device_info;

enum {
  TENON_MEMORY_DEVICE = 0, /* operands of plans and of BLAS are in it */
  TENON_MEMORY_HOST = 1,   /* memory of the process, for copies only, unless the device is TENON_DEVICE_HOST_ADDRESSABLE */
  TENON_MEMORY_PINNED = 2  /* the same, and the device copies from it without staging */
};
enum {
  TENON_IMPORT_COPY = 0,             /* the bytes are copied before the call returns */
  TENON_IMPORT_HOLD = 1,             /* the device may read them until memory_free; their owner does not change them before */
  TENON_IMPORT_BORROW_READ_ONLY = 2, /* the device reads them in place and sees later changes */
  TENON_IMPORT_BORROW_READ_WRITE = 3 /* the device reads and writes them in place */
};
enum { TENON_COPY_HOST_TO_DEVICE = 0, TENON_COPY_DEVICE_TO_HOST = 1, TENON_COPY_DEVICE_TO_DEVICE = 2 };

/* Memory to allocate. */
typedef struct tenon_memory_request {
  uint32_t struct_size;
  uint32_t kind;            /* TENON_MEMORY_* */
  uint64_t size_bytes;      /* 0 is allowed */
  uint64_t alignment_bytes; /* a power of two; 0, or up to device_info.alignment_bytes: that one. A larger one may be TENON_UNSUPPORTED */
  uint32_t needs;           /* bits that must be understood: else memory_allocate returns TENON_UNSUPPORTED */
  uint32_t reserved;
} tenon_memory_request;

/* Host memory to make usable by the device. */
typedef struct tenon_memory_import {
  uint32_t struct_size;
  uint32_t terms; /* TENON_IMPORT_* */
  void* host;
  uint64_t size_bytes; /* 0 is allowed */
  uint32_t needs;      /* bits that must be understood: else memory_import returns TENON_UNSUPPORTED */
  uint32_t reserved;
} tenon_memory_import;

/* Memory as the backend made it. */
typedef struct tenon_memory_result {
  uint32_t struct_size;
  uint32_t reserved;
  tenon_memory* memory; /* given back to memory_free */
  /* Of the first byte, for tenon_bindings, tenon_copy, `fill` and BLAS; arithmetic on it is allowed within the size. 0 only if the size
   * is 0. What a device allocated does not overlap while it lives. */
  uint64_t address;
  void* host; /* the same byte for the host, to read and write when no submitted work uses it; NULL: the host cannot. Never NULL for HOST
               * and PINNED, whose `address` is this pointer */
} tenon_memory_result;

/* One dense copy. Ranges must not overlap. */
typedef struct tenon_copy {
  uint32_t struct_size;
  uint32_t direction;   /* TENON_COPY_* */
  uint64_t destination; /* device address, or host pointer as an integer */
  uint64_t source;      /* likewise */
  uint64_t size_bytes;
  tenon_device* peer; /* device-to-device: the source's device when it is another one of this backend; else NULL */
  uint32_t needs;     /* bits that must be understood: else `copy` returns TENON_UNSUPPORTED */
  uint32_t reserved;
} tenon_copy;

/* How a stream or an event is wanted; NULL: the defaults, which are all 0. What a backend does not know of it may be ignored, but for
 * `needs`. */
typedef struct tenon_stream_options {
  uint32_t struct_size;
  uint32_t needs;   /* bits that must be understood: else stream_create returns TENON_UNSUPPORTED */
  int32_t priority; /* a hint: streams of higher priority go first where the device has priorities; 0 is normal */
  uint32_t reserved;
} tenon_stream_options;

enum {
  TENON_EVENT_NO_TIMING = 1u << 0 /* event_elapsed will not be asked about it, and may be TENON_INVALID_ARGUMENT: cheaper for some */
};
typedef struct tenon_event_options {
  uint32_t struct_size;
  uint32_t needs; /* bits that must be understood: else event_create returns TENON_UNSUPPORTED */
  uint32_t flags; /* TENON_EVENT_* */
  uint32_t reserved;
} tenon_event_options;

typedef struct tenon_memory_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t live_size_bytes;
  uint64_t peak_size_bytes;
  uint64_t allocation_count; /* ever made */
} tenon_memory_stats;

/* ------------------------------------------------------------------------------------------------ BLAS */

enum { TENON_LAYOUT_ROW_MAJOR = 101, TENON_LAYOUT_COLUMN_MAJOR = 102 };
enum { TENON_NO_TRANS = 111, TENON_TRANS = 112, TENON_CONJ_TRANS = 113, TENON_CONJ_NO_TRANS = 114 };
enum { TENON_UPPER = 121, TENON_LOWER = 122 };
enum { TENON_NON_UNIT = 131, TENON_UNIT = 132 };
enum { TENON_LEFT = 141, TENON_RIGHT = 142 };

/* A scalar argument or result of the call's dtype (or the real dtype where the routine says so).
 * Frozen. */
typedef struct tenon_scalar {
  uint64_t address;   /* host pointer as an integer, or device address */
  uint32_t on_device; /* 0: host, read or written before the call returns; 1: device, in stream order */
  uint32_t reserved;
} tenon_scalar;

/* What a BLAS call states besides its arguments. */
typedef struct tenon_blas_call {
  uint32_t struct_size;
  uint32_t needs;         /* bits that must be understood: else the routine returns TENON_UNSUPPORTED */
  tenon_dtype dtype;      /* of the operands: one of the slot's dtypes */
  uint32_t math;          /* TENON_MATH_* for the f32 and c64 products of level 3; other routines are strict under any */
  uint32_t deterministic; /* 1: the same bits at every call on the same device, whatever the thread count */
  uint32_t reserved;
  tenon_device* device;
  tenon_stream* stream;
  const tenon_run* run; /* NULL: the defaults */
} tenon_blas_call;

/* Each routine of tenon/blas.def is one slot; its arguments are the record of its signature class, whose fields tenon/blas_args.def lists.
 *   Operands   vectors are an address and an increment in elements: element i sits at i * increment, and for a negative increment the
 *              address is that of the array's first byte, as in the reference BLAS. Matrices are an address and a leading dimension in
 *              elements. Index results count from 0. The core has checked all arguments before it calls.
 *   Order      work is in stream order. The call, the record and the arrays it points to are borrowed until the slot returns.
 *   Refusals   TENON_UNSUPPORTED, before anything is read or written, for a dtype outside the slot's set, a bit of `needs`, a value of
 *              `math` or of `deterministic` that the slot does not know or cannot honour: none is ever silently changed.
 *   Growth     a new argument is a field at the end of its record that is 0 in old senders' records, and a bit of `needs` if ignoring it
 *              would give another result. A new routine is a slot at the end of the table. */
#define TENON_BLAS_ARGS(signature, fields)       \
  typedef struct tenon_blas_##signature##_args { \
    uint32_t struct_size;                        \
    fields                                       \
  } tenon_blas_##signature##_args;               \
  typedef tenon_status(TENON_CALL* tenon_blas_##signature##_fn)(const tenon_blas_call*, const tenon_blas_##signature##_args*, tenon_error*);
#define TENON_FLAG(name) uint32_t name;
#define TENON_SIZE(name) int64_t name;
#define TENON_IN(name) uint64_t name;
#define TENON_OUT(name) uint64_t name;
#define TENON_LIST(name) const uint64_t* name;
#define TENON_SCALAR(name) tenon_scalar name;
#define TENON_REAL_SCALAR(name) tenon_scalar name;
#define TENON_NUMBERS(name) tenon_scalar name;
#define TENON_REAL_NUMBER(name) tenon_scalar name;
#define TENON_RESULT(name) tenon_scalar name;
#define TENON_RESERVED uint32_t reserved;
#include "blas_args.def"

/* Each routine with the set of TENON_DTYPE_BIT that it takes: at least the dtypes of its line. A routine that is not offered has an
 * empty slot and no dtypes, never a stub. */
typedef struct tenon_blas_table {
  uint32_t struct_size;
  uint32_t reserved;
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  tenon_blas_##signature##_fn routine;                    \
  uint64_t routine##_dtypes;
#include "blas.def"
#undef TENON_BLAS
} tenon_blas_table;

/* ------------------------------------------------------------------------------------------------ optional blocks */

/* Records the work submitted to a stream and replays it as one launch. Recording executes nothing.
 * Bindings recorded by plan_execute are fixed: a replay reads and writes the same addresses. Other
 * streams, also of this thread, execute during a recording. A replay may go to any stream of the
 * device, and needs neither the stream it was recorded on nor the bindings' arrays; replays of one
 * capture that are pending at the same time are on one stream. Recorded plans and memory outlive the
 * capture. A plan that packs parameters refuses (TENON_UNSUPPORTED) to be
 * recorded with a parameters_epoch other than that of its last execution; if it accepts, the
 * recording is valid for every epoch. After a refusal the core calls `end`, destroys the resulting
 * capture, and executes the plan. A recording whose bindings had an execution_id measures its
 * kernels: `execution_id` names the replay in the profiles of these plans; 0: it is not profiled. */
typedef struct tenon_capture_table {
  uint32_t struct_size;
  uint32_t reserved;
  tenon_status(TENON_CALL* begin)(tenon_stream*, tenon_error*);
  tenon_status(TENON_CALL* end)(tenon_stream*, tenon_capture** out_capture, tenon_error*);
  tenon_status(TENON_CALL* replay)(tenon_capture*, tenon_stream*, uint64_t execution_id, tenon_error*);
  void(TENON_CALL* destroy)(tenon_capture*);
} tenon_capture_table;

/* The form in which the plans of a graph read a value that they pack. Arrays of it carry an element stride. */
typedef struct tenon_packing {
  uint64_t size_bytes; /* device memory of the packed copies */
  char key[240];       /* NUL-terminated: equal keys on one device are the same form, which any bytes may be packed in; empty: none */
} tenon_packing;

/* Packed operands that several plans share: weights of one model in programs of several batch sizes, for instance. Graph and options are
 * those of the plan_create to come.
 *   Sharing   what `create` made of a value serves every plan in whose graph `describe` gives a value the same key; plan_create refuses it
 *             elsewhere (TENON_INVALID_ARGUMENT).
 *   Contents  a constant is packed by `create`. A parameter is packed by the first execution of any of the plans whose bindings have
 *             another parameters_epoch than the last one that packed it: all of these plans count the same epochs and are bound to the
 *             same bytes.
 *   Threads   plans that share a value may be executed at the same time; the backend sees to it that none reads what another packs. */
typedef struct tenon_pack_table {
  uint32_t struct_size;
  uint32_t reserved;
  /* Describes all values of the graph: value v's form begins v * packing_stride bytes after out_packings. The caller has zeroed them, and
   * those of values that the plan reads as they are, or packs for itself alone, stay so. */
  tenon_status(TENON_CALL* describe)(tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_packing* out_packings,
                                     uint32_t packing_stride, tenon_error*);
  /* Creates the packed operands of these values, parameters and constants by their index in graph.values: all of them or none. A value
   * that `describe` gives no key is TENON_INVALID_ARGUMENT. */
  tenon_status(TENON_CALL* create)(tenon_device*, const tenon_graph*, const tenon_plan_options*, const uint32_t* values,
                                   uint32_t value_count, tenon_packed** out_packed, tenon_error*);
  void(TENON_CALL* destroy)(tenon_packed*); /* the memory lives as long as a plan has it */
} tenon_pack_table;

/* One kernel of a profiled execution. Arrays of it carry an element stride. */
typedef struct tenon_profile_record {
  uint64_t id;       /* tenon_node.id of the first node that the kernel computes */
  uint64_t begin_ns; /* since the execution began, device time */
  uint64_t duration_ns;
  uint32_t node;        /* index in the plan's graph */
  uint32_t fused_count; /* nodes that the kernel computes, >= 1 */
  char algorithm[48];   /* kernel or algorithm name, NUL-terminated */
} tenon_profile_record;

/* Times per kernel of the executions that have an execution_id; these may be slower, their results do
 * not change. Ids are unique among the executions of a plan that overlap or are kept. */
typedef struct tenon_profile_table {
  uint32_t struct_size;
  uint32_t kept; /* >= 1: the executions of a plan, the latest ones, that `read` knows; of the replays of a recording, the last */
  /* Writes at most `capacity` records of this execution, which has been waited for, each `record_stride`
   * bytes after the one before; out_count is how many there are. TENON_INVALID_ARGUMENT for an id
   * that is not kept. Id 0 lists the kernels of the plan with times of 0, or nothing if they are not
   * known before an execution. */
  tenon_status(TENON_CALL* read)(tenon_plan*, uint64_t execution_id, tenon_profile_record* out_records, uint32_t record_stride,
                                 uint32_t capacity, uint32_t* out_count, tenon_error*);
} tenon_profile_table;

/* What ranks do together. An operand is `source` or `destination`, an address of the rank's device at a multiple of the element size;
 * `count` elements, unless the line says more. Where the two have the same address, a collective is in place; else they do not overlap. */
enum {
  TENON_COLLECTIVE_ALL_REDUCE = 1, /* destination: the sources of all ranks, combined; the same bits on every rank */
  /* source: size * count elements; destination: part `rank` of their combination. In place: destination is that part of source. */
  TENON_COLLECTIVE_REDUCE_SCATTER = 2,
  /* destination: size * count elements, the sources in the order of the ranks. In place: source is part `rank` of destination. */
  TENON_COLLECTIVE_ALL_GATHER = 3,
  TENON_COLLECTIVE_BROADCAST = 4, /* destination: the source of rank `peer`, which alone is read */
  TENON_COLLECTIVE_SEND = 5,      /* source goes to rank `peer`, which is not this one; its next RECEIVE from this rank takes it */
  TENON_COLLECTIVE_RECEIVE = 6    /* destination: what rank `peer` sends */
};

/* How elements are combined. AVG: the sum divided by the number of ranks, of floating dtypes. NaN: the result is NaN or another rank's
 * element for MAX and MIN, else NaN. */
enum { TENON_REDUCE_SUM = 1, TENON_REDUCE_MAX = 2, TENON_REDUCE_MIN = 3, TENON_REDUCE_PROD = 4, TENON_REDUCE_AVG = 5 };

/* One collective of a rank. Arrays of it carry an element stride. */
typedef struct tenon_collective {
  uint32_t kind; /* TENON_COLLECTIVE_* */
  tenon_dtype dtype;
  uint32_t operation; /* ALL_REDUCE, REDUCE_SCATTER: TENON_REDUCE_*; else 0 */
  uint32_t peer;      /* BROADCAST, SEND, RECEIVE: a rank; else 0 */
  uint64_t count;     /* elements; 0 is valid */
  uint64_t source;
  uint64_t destination;
  uint32_t needs; /* bits that must be understood: else submit returns TENON_UNSUPPORTED, as for an unknown kind, dtype or operation */
  uint32_t reserved;
} tenon_collective;

/* Names a group that is about to be created: one rank makes it, and its bytes go to the others in any way. Frozen. */
typedef struct tenon_group_id {
  uint8_t bytes[128];
} tenon_group_id;

/* How a device joins a group. */
typedef struct tenon_group_request {
  uint32_t struct_size;
  uint32_t needs;         /* bits that must be understood: else TENON_UNSUPPORTED */
  uint32_t rank;          /* of this device, below `size` and different on each rank */
  uint32_t size;          /* ranks of the group, at least 1 */
  uint32_t timeout_ms;    /* group_create fails if not all ranks have joined within this time; 0: no limit */
  uint32_t deterministic; /* 1: the same bits whenever a group on the same devices combines the same elements */
  tenon_group_id id;
} tenon_group_request;

/* Collectives of devices of this backend, in one process or in several. Every rank submits the same collectives of a group in the same
 * order, with the same kinds, dtypes, counts, operations and roots; SEND and RECEIVE are in the same order for each pair of ranks.
 *   Threads   ranks of one process have threads of their own: group_create and submit may wait for other ranks. Calls on one group are not
 *             made at the same time, group_query and group_abort excepted.
 *   Failures  a rank that fails leaves the others waiting until their groups are aborted; whoever runs the ranks sees to that. */
typedef struct tenon_collectives_table {
  uint32_t struct_size;
  uint32_t reserved;
  /* The set of TENON_DTYPE_BIT that can be combined. Elements of every dtype of whole bytes that the backend knows can be moved. */
  uint64_t dtypes;
  /* Makes the id of one group. */
  tenon_status(TENON_CALL* group_id)(tenon_backend*, tenon_group_id* out_id, tenon_error*);
  /* Returns when all ranks have joined. Several ranks on one device may be TENON_UNSUPPORTED. */
  tenon_status(TENON_CALL* group_create)(tenon_device*, const tenon_group_request*, tenon_group** out_group, tenon_error*);
  /* Every rank destroys its group, after it has waited for the work that it submitted or aborted the group. */
  void(TENON_CALL* group_destroy)(tenon_group*);
  /* Submits collectives in stream order, together: those of one call make progress at the same time, so that a pair of ranks may send to
   * each other in one call. Nothing has been submitted after a failure. A stream that is being recorded records them, or the call is
   * TENON_UNSUPPORTED. */
  tenon_status(TENON_CALL* submit)(tenon_group*, const tenon_collective* collectives, uint32_t collective_stride, uint32_t collective_count,
                                   tenon_stream*, tenon_error*);
  /* TENON_OK, or the failure of a connection or of another rank that has been noticed so far; it is sticky, and a stream with work of the
   * group may stay busy until the group is aborted. TENON_CANCELLED after group_abort. Any thread. */
  tenon_status(TENON_CALL* group_query)(tenon_group*, tenon_error*);
  /* Work of this rank that was submitted ends soon, with undefined results; a `submit` in progress and later ones return TENON_CANCELLED.
   * Idempotent. Any thread. */
  void(TENON_CALL* group_abort)(tenon_group*);
} tenon_collectives_table;

/* ------------------------------------------------------------------------------------------------ the backend's table */

/* The functions of a backend, returned by its `create`. Lives as long as the library. Slots up to
 * `plan_execute` are mandatory. */
typedef struct tenon_backend_table {
  uint32_t struct_size;
  uint32_t reserved;
  /* since 1.0 */

  /* Joins threads, drains streams, closes what is open. Idempotent; afterwards only `destroy` may
   * be called. */
  void(TENON_CALL* shutdown)(tenon_backend*);
  /* Frees the backend; shuts it down first if `shutdown` was not called. */
  void(TENON_CALL* destroy)(tenon_backend*);

  /* Counts the devices without opening them. Zero is valid: `error` then says why and what to do,
   * and the status stays TENON_OK. */
  tenon_status(TENON_CALL* device_count)(tenon_backend*, uint32_t* out_count, tenon_error*);
  tenon_status(TENON_CALL* device_info)(tenon_backend*, uint32_t index, tenon_device_info* out_info, tenon_error*);
  /* An index names the same device as long as the backend lives. Opening a device that is open already may fail with
   * TENON_UNSUPPORTED. */
  tenon_status(TENON_CALL* device_open)(tenon_backend*, uint32_t index, tenon_device** out_device, tenon_error*);
  /* The core has destroyed all objects of the device before. */
  void(TENON_CALL* device_close)(tenon_device*);

  tenon_status(TENON_CALL* memory_allocate)(tenon_device*, const tenon_memory_request*, tenon_memory_result* out_result, tenon_error*);
  /* Makes host memory usable by the device, under one of the four TENON_IMPORT_* terms. All but COPY may be TENON_UNSUPPORTED. */
  tenon_status(TENON_CALL* memory_import)(tenon_device*, const tenon_memory_import*, tenon_memory_result* out_result, tenon_error*);
  /* The caller makes sure that no work uses the memory any more. */
  void(TENON_CALL* memory_free)(tenon_memory*);
  tenon_status(TENON_CALL* memory_stats)(tenon_device*, tenon_memory_stats* out_stats, tenon_error*);
  /* Asynchronous, in stream order. With host memory that is not pinned it may be synchronous. */
  tenon_status(TENON_CALL* copy)(tenon_device*, const tenon_copy*, tenon_stream*, tenon_error*);
  /* Sets bytes, in stream order. */
  tenon_status(TENON_CALL* fill)(tenon_device*, uint64_t address, uint64_t size_bytes, uint8_t value, tenon_stream*, tenon_error*);

  /* Work that was submitted to a stream makes progress by itself, without another call. */
  tenon_status(TENON_CALL* stream_create)(tenon_device*, const tenon_stream_options*, tenon_stream** out_stream, tenon_error*);
  /* Pending work runs to its end, before or after the call returns. */
  void(TENON_CALL* stream_destroy)(tenon_stream*);
  /* Returns when all work submitted to the stream before the call is done; reports the first
   * asynchronous failure since the last report, with its node's id. Other threads may submit to the
   * stream, replay recordings on it and wait for it at the same time. */
  tenon_status(TENON_CALL* stream_synchronize)(tenon_stream*, tenon_error*);

  tenon_status(TENON_CALL* event_create)(tenon_device*, const tenon_event_options*, tenon_event** out_event, tenon_error*);
  void(TENON_CALL* event_destroy)(tenon_event*);
  /* Marks the work submitted to the stream so far; may be recorded again. */
  tenon_status(TENON_CALL* event_record)(tenon_event*, tenon_stream*, tenon_error*);
  /* Later work of the stream, which is of the event's device, waits for the event; the caller does
   * not. An event never recorded is done. */
  tenon_status(TENON_CALL* event_wait)(tenon_event*, tenon_stream*, tenon_error*);
  /* TENON_OK: done. TENON_NOT_READY: not yet. Else the failure of the work before it. Whether
   * stream_synchronize reports it again is not stated. The same holds for event_synchronize. */
  tenon_status(TENON_CALL* event_query)(tenon_event*, tenon_error*);
  tenon_status(TENON_CALL* event_synchronize)(tenon_event*, tenon_error*);
  /* Device time between two recorded, finished events, in nanoseconds. */
  tenon_status(TENON_CALL* event_elapsed)(tenon_event* begin, tenon_event* end, uint64_t* out_ns, tenon_error*);

  /* Answers for every node of the graph: node i's begins i * answer_stride bytes after out_answers. The caller has zeroed them; of
   * each the backend writes what both know, no more than answer_stride bytes. An op, version, dtype, kind, rank, dimension,
   * attribute struct, option or bit of `needs` that it does not know is a no for the nodes that it touches. Fails only for arrays
   * that cannot be read: NULL, a stride that is too small, an index out of range, a value that is read before it is written. */
  tenon_status(TENON_CALL* supports)(tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_answer* out_answers,
                                     uint32_t answer_stride, tenon_error*);
  /* Creates an immutable plan. Copies what it needs of the graph, constants included. A node that `supports` refuses fails it, with
   * the node's id. */
  tenon_status(TENON_CALL* plan_create)(tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_plan** out_plan, tenon_error*);
  void(TENON_CALL* plan_destroy)(tenon_plan*);
  tenon_status(TENON_CALL* plan_info)(tenon_plan*, tenon_plan_info* out_info, tenon_error*);
  /* Submits the plan's work to the stream. `workspace` has plan_info.workspace_size_bytes;
   * concurrent calls use separate workspaces. No host synchronisation, no logging, and no
   * allocation unless more executions overlap than ever before. After a failure the outputs are
   * undefined; tenon_bindings says what holds after TENON_CANCELLED. */
  tenon_status(TENON_CALL* plan_execute)(tenon_plan*, const tenon_bindings*, uint64_t workspace, tenon_stream*, tenon_error*);

  /* Optional blocks: NULL means "not offered". */
  const tenon_blas_table* blas;
  const tenon_capture_table* capture;
  const tenon_pack_table* pack;
  const tenon_profile_table* profile;
  /* What the backend offers besides this table, to applications that know it: a struct of this name and version, or NULL. Lives as long
   * as the backend. The slot is NULL if there is nothing. */
  const void*(TENON_CALL* extension)(tenon_backend*, const char* name, uint32_t version);
  const tenon_collectives_table* collectives; /* optional */
} tenon_backend_table;

/* ------------------------------------------------------------------------------------------------ the query */

enum { TENON_SANITIZER_NONE = 0, TENON_SANITIZER_ADDRESS = 1, TENON_SANITIZER_THREAD = 2, TENON_SANITIZER_MEMORY = 3 };

/* struct_size and the three fields after it have this place and meaning in every major version, here and in tenon_backend_info. */
typedef struct tenon_host_info {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor_lowest; /* the range of minors the core supports */
  uint32_t abi_minor_highest;
  uint32_t sanitizer; /* TENON_SANITIZER_* the core was built with */
  uint32_t reserved;
  const char* build_id; /* "tenon 1.0.0 gcc-12.2.0" */
  const char* platform; /* "linux-x86_64" */
} tenon_host_info;

/* Support that can be stated without a device. The element types of these arrays grow like structs,
 * by their stride. */
enum {
  TENON_FEATURE_STRIDED = 1u << 0,      /* takes operands with any strides without a copy */
  TENON_FEATURE_IN_PLACE = 1u << 1,     /* may write over its first input */
  TENON_FEATURE_CAPTURE_SAFE = 1u << 2, /* may be recorded by the capture block */
  TENON_FEATURE_EPILOGUE = 1u << 3      /* a following bias and activation are fused */
};
typedef struct tenon_capability {
  tenon_op op;
  uint32_t version;
  uint64_t dtypes;   /* set of TENON_DTYPE_BIT for the op's type operand */
  uint32_t features; /* TENON_FEATURE_* */
  uint32_t reserved;
} tenon_capability;

/* Dtype and shape of one result of a vendor's op. Frozen. */
typedef struct tenon_vendor_result {
  tenon_dtype dtype;
  uint32_t rank;
  int64_t shape[TENON_MAX_RANK];
} tenon_vendor_result;

/* An op of the backend's vendor, which graphs reach by "<domain>.<name>". Arrays of it carry an element stride.
 *   Id       TENON_OP_VENDOR or more, unique in the backend: its nodes have it. Another backend that has the op may give it another one.
 *   Version  1 or more. It never changes: another schema, or another result, is another version, with an id of its own.
 *   Schema   as in ops.def, with a type for each attribute (int, float, string, ints, floats), and a default if it may be left out:
 *            "x:T bias:T? -> y:T; limit:float axes:ints=[] mode:string=soft". A trailing ? is an operand that may be absent. There are
 *            no repeated groups, and types of operands are for readers: `infer` checks them.
 *   infer    the dtypes and shapes of all results from those of all operands of the schema (dtype TENON_DTYPE_NONE: absent; strides are
 *            NULL). Pure, and called before any device is open. A failure's text says what was expected and what was given.
 *   Meaning  elsewhere nothing is known of the op: it has no gradient, and it is computed in the dtypes of its operands. */
typedef struct tenon_vendor_op {
  tenon_op id;
  uint32_t version;
  const char* domain; /* [a-z][a-z0-9_]*, also several of them joined by dots: "com.example" */
  const char* name;   /* [A-Za-z][A-Za-z0-9_]* */
  const char* schema;
  tenon_status(TENON_CALL* infer)(const tenon_tensor_desc* inputs, uint32_t input_count, const tenon_attributes_vendor*,
                                  tenon_vendor_result* out_results, uint32_t result_count, tenon_error*);
} tenon_vendor_op;

enum { TENON_OPTION_STRING = 0, TENON_OPTION_INTEGER = 1, TENON_OPTION_CHOICE = 2, TENON_OPTION_BOOLEAN = 3 };
/* An option the user may set under backends.options.<name> in YAML. The core checks values against
 * it. */
typedef struct tenon_option {
  const char* name;
  uint32_t type; /* TENON_OPTION_* */
  uint32_t reserved;
  const char* default_value; /* as text */
  const char* choices;       /* TENON_OPTION_CHOICE: "tuned|naive" */
  int64_t lowest;            /* TENON_OPTION_INTEGER */
  int64_t highest;
  const char* help; /* one line */
} tenon_option;

enum {
  TENON_BACKEND_ORACLE = 1u << 0,    /* computes every op in higher precision from its definition: other backends are compared with it */
  TENON_BACKEND_UNLOADABLE = 1u << 1 /* the library may be closed after `destroy`; others stay mapped */
};

/* The description of a backend. Strings and arrays live as long as the library. */
typedef struct tenon_backend_info {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor_lowest; /* the range of minors the plugin supports: the core takes the highest that both support */
  uint32_t abi_minor_highest;
  uint32_t flags;     /* TENON_BACKEND_* */
  uint32_t sanitizer; /* TENON_SANITIZER_* the plugin was built with */
  int32_t priority;   /* higher comes first in the default order; embedded CPU backends use 50, the oracle 0, GPUs 100 */
  uint32_t digest_count;
  const char* name;     /* [a-z][a-z0-9_]*: the part before ':' in device names */
  const char* version;  /* of the backend */
  const char* build_id; /* compiler and header version */
  const char* platform; /* "linux-x86_64" */
  const char* vendor;
  const char* description;
  const char* requirements; /* vendor libraries and minimum driver version, for reports; may be NULL */
  const tenon_op_digest* digests;
  const tenon_capability* capabilities;
  uint32_t capability_count;
  uint32_t capability_stride;
  const tenon_option* options;
  uint32_t option_count;
  uint32_t option_stride;
  const tenon_vendor_op* vendor_ops; /* `capabilities` may list them too */
  uint32_t vendor_op_count;
  uint32_t vendor_op_stride;
  /* Starts the backend. `host` outlives it. May start threads and look for devices; opens none of
   * them. May be called several times, on several threads: backends are independent of each other, and
   * each uses its own host. */
  tenon_status(TENON_CALL* create)(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                                   tenon_error*);
} tenon_backend_info;

/* The one symbol a plugin exports. Pure: starts no thread, opens no device, allocates nothing, may
 * be called any number of times, before and after anything else. Returns TENON_INCOMPATIBLE, with
 * its own range filled in, if it does not work with this host. */
TENON_EXPORT tenon_status TENON_CALL tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info);
typedef tenon_status(TENON_CALL* tenon_backend_query_fn)(const tenon_host_info* host, tenon_backend_info* out_info);
#define TENON_BACKEND_QUERY_SYMBOL "tenon_backend_query"

#pragma pack(pop)
#ifdef __cplusplus
}
#endif
#endif /* TENON_BACKEND_H */
