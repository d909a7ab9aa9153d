/* Templates: what the nodes of one pattern become, an op with its parameters and the layout of each operand.
 *
 * Graphs of thousands of nodes have few patterns. The first node of one is traced, in Python; those that follow are looked
 * up and written down here, in a fraction of a microsecond each. */
#ifndef LIMELIGHT_TEMPLATES_H
#define LIMELIGHT_TEMPLATES_H

#include "numpy_api.h"

typedef struct {
    PyObject_HEAD
    PyObject *kept; /* alive, since patterns know it by its address */
    Py_ssize_t operands;
    PyObject *buffers; /* the bytes of each new buffer */
    PyObject *views;   /* numbered behind the operands: those of constants; and others as (buffer, offset, shape, strides,
                          dtype), where the buffer is that of an operand, or behind these a new one */
    PyObject *calls;   /* (loop, numbers of views, dims, steps, axes); for a guard (number of a view,) */
    PyObject *results; /* numbers of views */
    PyObject *types;   /* (shape, dtype) of each result */
} Template;

extern PyTypeObject TemplateType;

/* The types that the engine writes tables with: tuples of five, and objects with `nbytes`. NULL before `use_records`. */
typedef struct {
    PyTypeObject *view;        /* (buffer, offset, shape, strides, dtype) */
    PyTypeObject *instruction; /* (loop, views, dims, steps, axes) */
    PyTypeObject *guard;       /* (view,) */
    PyTypeObject *buffer;
} Records;

extern Records records;

/* use_records(View, Instruction, Guard, Buffer) */
PyObject *use_records(PyObject *self, PyObject *args);

/* Whether an object is one of these tuples. */
int is_record(PyObject *object, PyTypeObject *type);

/* Whether objects are views. */
int are_views(PyObject *const *operands, Py_ssize_t n);

/* Appends the instructions of a template for as many operands as it has, which are views; returns the results. */
PyObject *template_applied(const Template *template, PyObject *const *operands, PyObject *instructions);

/* pattern(what, params, operands): the key of a template; None where equal parameters may mean something else. */
PyObject *pattern_of(PyObject *self, PyObject *args);

/* take_known(nodes, start, known, views, missing, here, instructions, ends): see the README. */
PyObject *take_known(PyObject *self, PyObject *args);

#endif
