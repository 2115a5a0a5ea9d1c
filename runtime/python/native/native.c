// SPDX-License-Identifier: Apache-2.0
// tenon._native: the calls that programs of Python make most, which take a microsecond more by ctypes. The package works without it.
//
// It uses the limited API of Python 3.9, so that one file serves all later versions, and is not linked to libtenon: bind() gets the
// addresses of its functions from the library that the package has opened. Objects of the library are integers here, too.
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#include <tenon/runtime.h>

enum { MAX_OPERANDS = 64 };

typedef TenonError* (*ApplyFunction)(const TenonContext*, const TenonDevice*, tenon_op, const void*, const TenonNodeOptions*,
                                     const TenonTensor* const*, uint64_t, TenonTensor**, uint64_t, uint64_t*);
typedef TenonError* (*ApplyNamedFunction)(const TenonContext*, const TenonDevice*, const char*, const char*, const TenonTensor* const*,
                                          uint64_t, TenonTensor**, uint64_t, uint64_t*);
typedef TenonError* (*RunFunction)(TenonProgram*, const TenonTensor* const*, uint64_t, TenonTensor**, uint64_t, const TenonRunOptions*);
typedef TenonError* (*RunOnnxFunction)(TenonOnnx*, const char* const*, const TenonTensor* const*, uint64_t, TenonTensor**, uint64_t,
                                       const TenonRunOptions*);
typedef void (*ReleaseFunction)(const void*);

static ApplyFunction apply_function;
static ApplyNamedFunction apply_named_function;
static RunFunction run_function;
static RunOnnxFunction run_onnx_function;
static ReleaseFunction release_function;

/// Sets `out_pointer` to the address that an integer is, 0 for None.
static int address_of(PyObject* value, void** out_pointer) {
  *out_pointer = value == Py_None ? NULL : PyLong_AsVoidPtr(value);
  return *out_pointer != NULL || PyErr_Occurred() == NULL;
}

/// Copies the addresses of a tuple. Returns their number, or -1.
static Py_ssize_t addresses_of(PyObject* tuple, void** out_pointers) {
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of addresses");
    return -1;
  }
  const Py_ssize_t count = PyTuple_Size(tuple);
  if (count > MAX_OPERANDS) {
    PyErr_SetString(PyExc_ValueError, "expected at most 64 addresses");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!address_of(PyTuple_GetItem(tuple, i), &out_pointers[i])) return -1;
  }
  return count;
}

/// The error as an integer, or the results as a list of them.
static PyObject* outcome_of(TenonError* error, void* const* results, uint64_t count) {
  if (error != NULL) return PyLong_FromVoidPtr(error);
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (uint64_t i = 0; list != NULL && i < count; ++i) {
    PyObject* handle = PyLong_FromVoidPtr(results[i]);
    if (handle == NULL || PyList_SetItem(list, (Py_ssize_t)i, handle) != 0) Py_CLEAR(list);
  }
  if (list == NULL) {  // nobody learns of the results
    for (uint64_t i = 0; i < count; ++i) release_function(results[i]);
  }
  return list;
}

/// apply(context, device, number, name, attributes, operands): the op of that number, or, with attributes, of that name. Texts are bytes.
static PyObject* apply(PyObject* module, PyObject* arguments) {
  (void)module;
  PyObject *of_context, *of_device, *of_name, *of_attributes, *of_operands;
  unsigned int number;
  if (!PyArg_ParseTuple(arguments, "OOIOOO", &of_context, &of_device, &number, &of_name, &of_attributes, &of_operands)) return NULL;
  const char* const name = PyBytes_AsString(of_name);
  const char* const attributes = of_attributes == Py_None ? NULL : PyBytes_AsString(of_attributes);
  if (name == NULL || (attributes == NULL && of_attributes != Py_None)) return NULL;
  void *context, *device, *operands[MAX_OPERANDS], *results[MAX_OPERANDS];
  if (!address_of(of_context, &context) || !address_of(of_device, &device)) return NULL;
  const Py_ssize_t count = addresses_of(of_operands, operands);
  if (count < 0) return NULL;
  uint64_t made = 0;
  TenonError* error;
  const TenonTensor* const* inputs = (const TenonTensor* const*)operands;
  Py_BEGIN_ALLOW_THREADS;
  if (attributes == NULL) {
    error = apply_function(context, device, number, NULL, NULL, inputs, (uint64_t)count, (TenonTensor**)results, MAX_OPERANDS, &made);
  } else {
    error = apply_named_function(context, device, name, attributes, inputs, (uint64_t)count, (TenonTensor**)results, MAX_OPERANDS, &made);
  }
  Py_END_ALLOW_THREADS;
  return outcome_of(error, results, made);
}

/// run(program, inputs, count): the results as new tensors.
static PyObject* run(PyObject* module, PyObject* arguments) {
  (void)module;
  PyObject *of_program, *of_inputs;
  unsigned int count;
  if (!PyArg_ParseTuple(arguments, "OOI", &of_program, &of_inputs, &count)) return NULL;
  void *program, *inputs[MAX_OPERANDS], *results[MAX_OPERANDS] = {NULL};
  if (!address_of(of_program, &program)) return NULL;
  const Py_ssize_t given = addresses_of(of_inputs, inputs);
  if (given < 0) return NULL;
  if (count > MAX_OPERANDS) {
    PyErr_SetString(PyExc_ValueError, "expected at most 64 results");
    return NULL;
  }
  TenonError* error;
  Py_BEGIN_ALLOW_THREADS;
  error = run_function(program, (const TenonTensor* const*)inputs, (uint64_t)given, (TenonTensor**)results, count, NULL);
  Py_END_ALLOW_THREADS;
  return outcome_of(error, results, count);
}

/// run_onnx(model, names, inputs, input_count, output_count): the results as new tensors; names and inputs are addresses of arrays.
static PyObject* run_onnx(PyObject* module, PyObject* arguments) {
  (void)module;
  PyObject *of_model, *of_names, *of_inputs;
  unsigned int input_count, count;
  if (!PyArg_ParseTuple(arguments, "OOOII", &of_model, &of_names, &of_inputs, &input_count, &count)) return NULL;
  void *model, *names, *inputs, *results[MAX_OPERANDS] = {NULL};
  if (!address_of(of_model, &model) || !address_of(of_names, &names) || !address_of(of_inputs, &inputs)) return NULL;
  if (count > MAX_OPERANDS) {
    PyErr_SetString(PyExc_ValueError, "expected at most 64 results");
    return NULL;
  }
  TenonError* error;
  Py_BEGIN_ALLOW_THREADS;
  error = run_onnx_function(model, names, inputs, input_count, (TenonTensor**)results, count, NULL);
  Py_END_ALLOW_THREADS;
  return outcome_of(error, results, count);
}

/// release(handle)
static PyObject* release(PyObject* module, PyObject* handle) {
  (void)module;
  void* object;
  if (!address_of(handle, &object)) return NULL;
  // The last reference may call back into Python, which takes the GIL again; memory that is freed needs none.
  Py_BEGIN_ALLOW_THREADS;
  release_function(object);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

/// bind(apply, apply_named, run, run_onnx, release): the addresses of the library's functions.
static PyObject* bind(PyObject* module, PyObject* arguments) {
  (void)module;
  void* functions[MAX_OPERANDS];
  const Py_ssize_t count = addresses_of(arguments, functions);
  if (count < 0) return NULL;
  if (count != 5) {
    PyErr_SetString(PyExc_TypeError, "bind: expected 5 addresses");
    return NULL;
  }
  // An object pointer becomes a function pointer as POSIX defines it for dlsym.
  *(void**)&apply_function = functions[0];
  *(void**)&apply_named_function = functions[1];
  *(void**)&run_function = functions[2];
  *(void**)&run_onnx_function = functions[3];
  *(void**)&release_function = functions[4];
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"apply", apply, METH_VARARGS, NULL},       {"run", run, METH_VARARGS, NULL},
                                {"run_onnx", run_onnx, METH_VARARGS, NULL}, {"release", release, METH_O, NULL},
                                {"bind", bind, METH_VARARGS, NULL},         {NULL, NULL, 0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tenon._native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
  return PyModule_Create(&definition);
}
