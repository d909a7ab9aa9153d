/* NumPy's C API, imported once, in module.c, and shared by all files. */
#ifndef LIMELIGHT_NUMPY_API_H
#define LIMELIGHT_NUMPY_API_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL limelight_native_array_api
#define PY_UFUNC_UNIQUE_SYMBOL limelight_native_ufunc_api
#ifndef LIMELIGHT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#endif
