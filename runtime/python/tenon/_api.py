# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from tenon/runtime.h; a test checks that it is up to date.
"""The functions, structs and constants of tenon/runtime.h for ctypes. Addresses are integers; None is NULL."""
from ctypes import CFUNCTYPE, Structure, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Tuple

MAX_RANK = 8
STATUSES: Dict[str, int] = {'OK': 0, 'INVALID_ARGUMENT': 1, 'UNSUPPORTED': 2, 'OUT_OF_MEMORY': 3, 'DEVICE_NOT_FOUND': 4, 'DEVICE_LOST': 5, 'INCOMPATIBLE': 6, 'NOT_READY': 7, 'CANCELLED': 8, 'VENDOR_ERROR': 9, 'INTERNAL': 10, 'FORKED': 11}
DTYPES: Dict[str, int] = {'f16': 1, 'bf16': 2, 'f32': 3, 'f64': 4, 'c64': 5, 'c128': 6, 'i8': 7, 'i16': 8, 'i32': 9, 'i64': 10, 'u8': 11, 'u16': 12, 'u32': 13, 'u64': 14, 'bool': 15, 'f8e4m3fn': 16, 'f8e5m2': 17, 'i4': 18, 'u4': 19, 'f8e4m3fnuz': 20, 'f8e5m2fnuz': 21, 'f4e2m1': 22, 'f8e8m0': 23, 'i2': 24, 'u2': 25}

TENSOR_READ_ONLY = 1
PROGRAM_UNOPTIMIZED = 1
PROGRAM_FREEZE = 2
PROGRAM_UPDATES_LAST = 4
DATA_TRAIN = 0
DATA_TEST = 1
DATA_VALIDATION = 2
PREDICT_PROBABILITIES = 1
WEIGHTS_TRANSPOSE = 1
WEIGHTS_PARTIAL = 2
REQUEST_DO_NOT_WAIT = 1
BLAS_NONE = 0
LOG_OFF = 255


class TenonContextOptions(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("config", c_char_p),
        ("config_file", c_char_p),
        ("plugins", c_void_p),
        ("plugin_count", c_uint64),
        ("plugin_origins", c_void_p),
    ]


class TenonTensorInfo(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("rank", c_uint32),
        ("flags", c_uint32),
        ("is_dense", c_uint32),
        ("is_on_host", c_uint32),
        ("address", c_uint64),
        ("element_count", c_uint64),
        ("size_bytes", c_uint64),
        ("shape", c_int64 * 8),
        ("strides", c_int64 * 8),
    ]


class TenonRunOptions(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("threads", c_uint32),
        ("priority", c_int32),
        ("reserved", c_uint32),
        ("cancellation", c_void_p),
    ]


class TenonNodeOptions(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("has_shape", c_uint32),
        ("name", c_char_p),
        ("shape", c_void_p),
        ("rank", c_uint32),
        ("size_count", c_uint32),
        ("sizes", c_void_p),
    ]


class TenonValueInfo(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("rank", c_uint32),
        ("kind", c_uint32),
        ("shape", c_int64 * 8),
    ]


class TenonProgramOptions(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("device", c_char_p),
        ("precision", c_char_p),
        ("parameters", c_void_p),
    ]


class TenonSampleType(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("shape", c_void_p),
        ("rank", c_uint32),
        ("dtype", c_uint32),
    ]


class TenonSampleSource(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("size", c_int64),
        ("inputs", c_void_p),
        ("input_count", c_uint64),
        ("targets", c_void_p),
        ("target_count", c_uint64),
        ("num_classes", c_int64),
        ("user", c_void_p),
        ("gather", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    ]


class TenonBatchSource(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("inputs", c_void_p),
        ("input_count", c_uint64),
        ("targets", c_void_p),
        ("target_count", c_uint64),
        ("batches", c_int64),
        ("user", c_void_p),
        ("start", CFUNCTYPE(c_void_p, c_void_p, c_uint64)),
        ("next", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    ]


class TenonBatchEnd(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("step_taken", c_uint32),
        ("batch", c_int64),
        ("count", c_uint64),
        ("names", c_void_p),
        ("means", c_void_p),
        ("values", c_void_p),
        ("weight", c_double),
    ]


class TenonFitCallbacks(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("train_begin", CFUNCTYPE(c_void_p, c_void_p, c_int64, c_int64)),
        ("epoch_begin", CFUNCTYPE(c_void_p, c_void_p, c_int64)),
        ("batch_end", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("epoch_end", CFUNCTYPE(c_void_p, c_void_p, c_char_p)),
        ("train_end", CFUNCTYPE(c_void_p, c_void_p)),
        ("late_batch_end", c_uint64),
    ]


class TenonRequestOptions(Structure):  # struct_size is set by _library.sized()
    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("timeout_us", c_int64),
        ("cancellation", c_void_p),
    ]


# name -> result, arguments
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "tenon_version": (c_char_p, []),
    "tenon_retain": (None, [c_void_p]),
    "tenon_release": (None, [c_void_p]),
    "tenon_object_count": (c_uint64, []),
    "tenon_string_free": (None, [c_void_p]),
    "tenon_error_create": (c_void_p, [c_uint32, c_char_p]),
    "tenon_error_status": (c_uint32, [c_void_p]),
    "tenon_error_message": (c_char_p, [c_void_p]),
    "tenon_status_name": (c_char_p, [c_uint32]),
    "tenon_context_create": (c_void_p, [c_void_p, c_void_p]),
    "tenon_context_config": (c_void_p, [c_void_p, c_void_p]),
    "tenon_context_load_report": (c_void_p, [c_void_p, c_void_p]),
    "tenon_context_devices": (c_void_p, [c_void_p, c_void_p]),
    "tenon_device_open": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "tenon_device_name": (c_char_p, [c_void_p]),
    "tenon_device_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_device_synchronize": (c_void_p, [c_void_p]),
    "tenon_device_trim": (c_void_p, [c_void_p]),
    "tenon_tensor_empty": (c_void_p, [c_void_p, c_uint32, c_uint32, c_void_p, c_void_p]),
    "tenon_tensor_full": (c_void_p, [c_void_p, c_uint32, c_uint32, c_void_p, c_double, c_void_p]),
    "tenon_tensor_copy_of": (c_void_p, [c_void_p, c_uint32, c_uint32, c_void_p, c_void_p, c_void_p]),
    "tenon_tensor_borrow": (c_void_p, [c_void_p, c_uint32, c_uint32, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p]),
    "tenon_tensor_info": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_device": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_data": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_mutable_data": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_read": (c_void_p, [c_void_p, c_void_p, c_uint64]),
    "tenon_tensor_assign": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_fill": (c_void_p, [c_void_p, c_double]),
    "tenon_tensor_to_device": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tenon_tensor_to_dtype": (c_void_p, [c_void_p, c_uint32, c_void_p]),
    "tenon_tensor_reshape": (c_void_p, [c_void_p, c_uint32, c_void_p, c_void_p]),
    "tenon_tensor_slice": (c_void_p, [c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p]),
    "tenon_tensor_select": (c_void_p, [c_void_p, c_int64, c_int64, c_void_p]),
    "tenon_tensor_permute": (c_void_p, [c_void_p, c_uint32, c_void_p, c_void_p]),
    "tenon_tensor_expand": (c_void_p, [c_void_p, c_uint32, c_void_p, c_void_p]),
    "tenon_tensor_unsqueeze": (c_void_p, [c_void_p, c_int64, c_void_p]),
    "tenon_tensor_contiguous": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_text": (c_void_p, [c_void_p, c_int64, c_void_p]),
    "tenon_tensor_equal": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tenon_tensor_nonzero": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_from_dlpack": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tenon_tensor_from_dlpack_versioned": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tenon_tensor_to_dlpack": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_to_dlpack_versioned": (c_void_p, [c_void_p, c_void_p]),
    "tenon_tensor_dlpack_device": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tenon_cancellation_create": (c_void_p, [c_void_p]),
    "tenon_cancel": (c_void_p, [c_void_p]),
    "tenon_cancellation_requested": (c_void_p, [c_void_p, c_void_p]),
    "tenon_op_by_name": (c_void_p, [c_char_p, c_void_p]),
    "tenon_ops": (c_void_p, [c_void_p]),
    "tenon_apply": (c_void_p, [c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_apply_named": (c_void_p, [c_void_p, c_void_p, c_char_p, c_char_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_graph_create": (c_void_p, [c_void_p]),
    "tenon_graph_input": (c_void_p, [c_void_p, c_char_p, c_uint32, c_uint32, c_void_p, c_void_p]),
    "tenon_graph_parameter": (c_void_p, [c_void_p, c_char_p, c_uint32, c_uint32, c_void_p, c_void_p]),
    "tenon_graph_constant": (c_void_p, [c_void_p, c_void_p, c_char_p, c_void_p]),
    "tenon_graph_apply": (c_void_p, [c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_graph_apply_named": (c_void_p, [c_void_p, c_char_p, c_char_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_graph_output": (c_void_p, [c_void_p, c_char_p, c_uint32]),
    "tenon_graph_update": (c_void_p, [c_void_p, c_uint32, c_uint32]),
    "tenon_graph_set_device": (c_void_p, [c_void_p, c_char_p]),
    "tenon_graph_set_scope": (c_void_p, [c_void_p, c_char_p]),
    "tenon_graph_value_info": (c_void_p, [c_void_p, c_uint32, c_void_p]),
    "tenon_graph_gradients": (c_void_p, [c_void_p, c_uint32, c_void_p, c_uint64, c_void_p]),
    "tenon_graph_partial_gradients": (c_void_p, [c_void_p, c_uint32, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_graph_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_graph_text": (c_void_p, [c_void_p, c_void_p]),
    "tenon_parameters_create": (c_void_p, [c_void_p]),
    "tenon_parameters_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_parameters_get": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "tenon_parameters_set": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "tenon_parameters_load": (c_void_p, [c_char_p, c_void_p]),
    "tenon_tensors_save": (c_void_p, [c_char_p, c_void_p, c_void_p, c_uint64]),
    "tenon_program_create": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "tenon_program_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_program_explain": (c_void_p, [c_void_p, c_void_p]),
    "tenon_program_parameters": (c_void_p, [c_void_p, c_void_p]),
    "tenon_program_run": (c_void_p, [c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_program_run_named": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_program_bind_input": (c_void_p, [c_void_p, c_uint64, c_void_p]),
    "tenon_program_bind_output": (c_void_p, [c_void_p, c_uint64, c_void_p]),
    "tenon_program_bound_output": (c_void_p, [c_void_p, c_uint64, c_void_p]),
    "tenon_program_run_bound": (c_void_p, [c_void_p, c_void_p]),
    "tenon_program_enable_profile": (c_void_p, [c_void_p, c_uint32]),
    "tenon_program_profile": (c_void_p, [c_void_p, c_void_p]),
    "tenon_onnx_load": (c_void_p, [c_void_p, c_char_p, c_char_p, c_void_p]),
    "tenon_onnx_from_memory": (c_void_p, [c_void_p, c_void_p, c_uint64, c_char_p, c_char_p, c_void_p]),
    "tenon_onnx_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_onnx_inspect": (c_void_p, [c_char_p, c_void_p]),
    "tenon_onnx_run": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p]),
    "tenon_onnx_explain": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p]),
    "tenon_onnx_graph": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]),
    "tenon_onnx_quantize": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_char_p, c_char_p, c_void_p]),
    "tenon_onnx_compare": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_int64, c_void_p]),
    "tenon_data_arrays": (c_void_p, [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, c_void_p, c_char_p, c_void_p]),
    "tenon_data_load": (c_void_p, [c_char_p, c_uint32, c_void_p]),
    "tenon_data_samples": (c_void_p, [c_void_p, c_void_p]),
    "tenon_data_batches": (c_void_p, [c_void_p, c_void_p]),
    "tenon_data_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_data_gather": (c_void_p, [c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_uint64]),
    "tenon_model_create": (c_void_p, [c_char_p, c_void_p]),
    "tenon_model_load": (c_void_p, [c_void_p, c_char_p, c_char_p, c_void_p]),
    "tenon_model_save": (c_void_p, [c_void_p, c_char_p]),
    "tenon_definition_check": (c_void_p, [c_char_p, c_char_p]),
    "tenon_model_yaml": (c_void_p, [c_void_p, c_void_p]),
    "tenon_model_compile": (c_void_p, [c_void_p, c_void_p, c_char_p]),
    "tenon_model_build": (c_void_p, [c_void_p, c_uint32, c_void_p]),
    "tenon_model_replace_head": (c_void_p, [c_void_p, c_char_p, c_char_p]),
    "tenon_model_fit": (c_void_p, [c_void_p, c_void_p, c_void_p, c_char_p, c_void_p, c_void_p, c_void_p]),
    "tenon_model_stop": (c_void_p, [c_void_p, c_char_p]),
    "tenon_model_evaluate": (c_void_p, [c_void_p, c_void_p, c_int64, c_void_p, c_void_p]),
    "tenon_model_predict": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_int64, c_uint32, c_void_p, c_void_p, c_uint64]),
    "tenon_model_train_batch": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_void_p]),
    "tenon_model_test_batch": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]),
    "tenon_model_confusion_matrix": (c_void_p, [c_void_p, c_void_p, c_int64, c_void_p]),
    "tenon_model_summary": (c_void_p, [c_void_p, c_int64, c_void_p]),
    "tenon_model_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_model_explain": (c_void_p, [c_void_p, c_int64, c_void_p]),
    "tenon_model_set_learning_rate": (c_void_p, [c_void_p, c_double]),
    "tenon_model_parameters": (c_void_p, [c_void_p, c_void_p]),
    "tenon_model_freeze": (c_void_p, [c_void_p, c_int64, c_void_p]),
    "tenon_model_save_checkpoint": (c_void_p, [c_void_p, c_char_p, c_char_p]),
    "tenon_model_load_checkpoint": (c_void_p, [c_void_p, c_char_p, c_uint32]),
    "tenon_model_import_weights": (c_void_p, [c_void_p, c_char_p, c_char_p, c_uint32, c_void_p]),
    "tenon_model_export_weights": (c_void_p, [c_void_p, c_char_p, c_char_p, c_uint32]),
    "tenon_model_export_onnx": (c_void_p, [c_void_p, c_char_p, c_char_p]),
    "tenon_batcher_of_onnx": (c_void_p, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "tenon_batcher_of_model": (c_void_p, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "tenon_batcher_submit": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]),
    "tenon_request_wait": (c_void_p, [c_void_p, c_int64, c_void_p]),
    "tenon_request_results": (c_void_p, [c_void_p, c_void_p, c_uint64]),
    "tenon_batcher_run": (c_void_p, [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64]),
    "tenon_batcher_close": (c_void_p, [c_void_p]),
    "tenon_batcher_describe": (c_void_p, [c_void_p, c_void_p]),
    "tenon_trace_start": (c_void_p, [c_void_p, c_void_p]),
    "tenon_trace_stop": (c_void_p, [c_void_p]),
    "tenon_trace_json": (c_void_p, [c_void_p, c_void_p]),
    "tenon_trace_write": (c_void_p, [c_void_p, c_char_p]),
    "tenon_trace_report": (c_void_p, [c_void_p, c_void_p]),
    "tenon_trace_begin_span": (c_void_p, [c_void_p, c_char_p]),
    "tenon_trace_end_span": (c_void_p, [c_void_p]),
    "tenon_blas_routines": (c_void_p, [c_void_p]),
    "tenon_blas": (c_void_p, [c_void_p, c_uint32, c_uint32, c_void_p, c_void_p]),
    "tenon_gemm": (c_void_p, [c_void_p, c_double, c_void_p, c_uint32, c_void_p, c_uint32, c_double, c_void_p]),
    "tenon_gemv": (c_void_p, [c_void_p, c_double, c_void_p, c_uint32, c_void_p, c_double, c_void_p]),
    "tenon_axpy": (c_void_p, [c_void_p, c_double, c_void_p, c_void_p]),
    "tenon_scal": (c_void_p, [c_void_p, c_double, c_void_p]),
    "tenon_dot": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "tenon_nrm2": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tenon_log_set_sink": (c_void_p, [c_void_p, c_void_p]),
    "tenon_log_set_level": (c_void_p, [c_uint32]),
}
