/* Loops: functions over strided memory, with the signature of the inner loops of NumPy's ufuncs.
 *
 * A loop takes pointers to its operands, results last; a count, then the sizes of its core dimensions; a stride in bytes
 * for each operand, then those of the core dimensions, operand by operand.
 */
#ifndef LIMELIGHT_LOOP_H
#define LIMELIGHT_LOOP_H

#include "nest.h"
#include "numpy_api.h"

#define MOST_OPERANDS 4
#define MOST_DIMS 4   /* the count and three core dimensions */
#define MOST_STEPS 12 /* one for each operand, two more for each of matmul's three */

typedef struct {
    PyObject_HEAD
    PyUFuncGenericFunction function;
    void *data;
    PyUFuncObject *ufunc; /* NULL for loops of this package */
    int operands;
    int inputs;
    int dims;            /* 1 + core dimensions */
    int itemsizes[MOST_OPERANDS];
    const NestFunctions *nests; /* NULL for most */
    int shares;                 /* it may run on any thread: it sets no Python error, and calls nothing of Python */
    int copies;                 /* elements as they are */
    int rows_of;                /* of which operand dims[1] counts rows; -1 for none: loops of this package alone */
} Loop;

extern PyTypeObject LoopType;

/* The bytes of a number of a built-in type; 0 for other types, objects among them, which loops must not be given. */
int number_size(int type);

/* The core dimensions of an operand: how many, and which of `dims` each is. */
int loop_core_dims(const Loop *loop, int operand, int which[]);

PyObject *loop_of_ufunc(PyObject *self, PyObject *args);
PyObject *loop_of_copy(PyObject *self, PyObject *args);
PyObject *loop_of_where(PyObject *self, PyObject *args);
PyObject *loop_of_rows(PyObject *self, PyObject *args);
PyObject *loop_of_places(PyObject *self, PyObject *args);

/* copies.c: NULL where there is none. */
PyUFuncGenericFunction copy_loop(int from, int to, int itemsize);
PyUFuncGenericFunction where_loop(int itemsize);

/* rows.c: by the name, for rows of numbers of a type, of so many bytes; `width` is what the loop gets as its data. NULL
 * where there is none. */
PyUFuncGenericFunction row_loop(const char *name, int type, npy_intp bytes, npy_intp *width);
PyUFuncGenericFunction place_loop(void);

#endif
