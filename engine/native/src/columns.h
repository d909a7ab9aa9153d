/* Columns of matrices of float32 numbers: sums over the rows, and what is computed of a number and its column. */
#ifndef LIMELIGHT_COLUMNS_H
#define LIMELIGHT_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *column_sums(PyObject *self, PyObject *args);
PyObject *column_scores(PyObject *self, PyObject *args);

#endif
