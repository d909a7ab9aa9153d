/* Pools of float32 numbers: the gradient of the largest of each window. */
#ifndef LIMELIGHT_POOLING_H
#define LIMELIGHT_POOLING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *max_pool_gradient(PyObject *self, PyObject *args);

#endif
