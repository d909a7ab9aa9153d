/* Standard scores of the columns of matrices of float32 numbers, and their gradient. */
#ifndef LIMELIGHT_COLUMNS_H
#define LIMELIGHT_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *normalise_columns(PyObject *self, PyObject *args);
PyObject *normalise_columns_gradient(PyObject *self, PyObject *args);

#endif
