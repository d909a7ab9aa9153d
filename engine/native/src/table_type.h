/* What a table holds. */
#ifndef LIMELIGHT_TABLE_TYPE_H
#define LIMELIGHT_TABLE_TYPE_H

#include "numpy_api.h"
#include <structmember.h>

#include "frame.h"
#include "program.h"
#include "table.h"

#define MOST_AXES 16

/* An array that is taken or returned; axes of one element may have any stride. */
typedef struct {
    PyArray_Descr *descr;
    int rank;
    npy_intp extent;
    npy_intp shape[MOST_AXES];
    npy_intp strides[MOST_AXES];
} ArraySpec;

/* A result that becomes the value of a variable. */
typedef struct {
    Py_ssize_t input;
    Py_ssize_t result;
    int exchanges; /* only if the variable has the value still that the run has read */
} Write;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    ArraySpec *inputs;
    ArraySpec *results;
    Py_ssize_t n_inputs;
    Py_ssize_t n_results;
    Py_ssize_t places;   /* inputs, constants, results and arena; rows come behind */
    Py_ssize_t n_rows;
    Py_ssize_t n_writes;
    Write *writes;    /* in program order */
    char *is_storage; /* for each input, whether it is where a variable's value is */
    Py_ssize_t n_counters;
    Py_ssize_t arena;
    Py_ssize_t refused;
    Py_ssize_t released;
    PyObject *constants; /* a tuple of arrays, at whose memory instructions point */
    PyObject *loops;     /* which keeps the ufuncs alive */
    PyObject *otherwise; /* is called instead where the arrays are not those that the table was made for */
    Program program;
    Frame *frames;
} Table;

PyObject *table_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

#endif
