/* Convolutions of float32 numbers. */
#ifndef LIMELIGHT_CONVOLUTION_H
#define LIMELIGHT_CONVOLUTION_H

#include "windows.h"

PyObject *convolve(PyObject *self, PyObject *args);
PyObject *convolve_filters(PyObject *self, PyObject *args);

#endif
