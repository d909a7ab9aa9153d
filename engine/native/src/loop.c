/* The type Loop: a function that instructions of a table call, and what they must know of it. */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "loop.h"

static Loop *new_loop(PyUFuncGenericFunction function, void *data, int operands, int inputs)
{
    Loop *loop = PyObject_New(Loop, &LoopType);
    if (loop == NULL) {
        return NULL;
    }
    loop->function = function;
    loop->data = data;
    loop->ufunc = NULL;
    loop->operands = operands;
    loop->inputs = inputs;
    loop->dims = 1;
    loop->nests = NULL;
    loop->shares = 0;
    loop->copies = 0;
    loop->rows_of = -1;
    return loop;
}

int number_size(int type)
{
    if (type < 0 || type > NPY_CLONGDOUBLE) {
        return type == NPY_HALF ? 2 : 0;
    }
    PyArray_Descr *descr = PyArray_DescrFromType(type);
    const int size = (int)PyDataType_ELSIZE(descr);
    Py_DECREF(descr);
    return size;
}

int loop_core_dims(const Loop *loop, int operand, int which[])
{
    if (operand == loop->rows_of) {
        which[0] = 1;
        return 1;
    }
    if (loop->ufunc == NULL || !loop->ufunc->core_enabled) {
        return 0;
    }
    const int count = loop->ufunc->core_num_dims[operand];
    for (int i = 0; i < count; i++) {
        which[i] = 1 + loop->ufunc->core_dim_ixs[loop->ufunc->core_offsets[operand] + i];
    }
    return count;
}

static int is_small_enough(const PyUFuncObject *ufunc)
{
    int steps = ufunc->nargs;
    if (ufunc->core_enabled) {
        for (int i = 0; i < ufunc->nargs; i++) {
            steps += ufunc->core_num_dims[i];
        }
    }
    const int dims = 1 + (ufunc->core_enabled ? ufunc->core_num_dim_ix : 0);
    return ufunc->nargs <= MOST_OPERANDS && dims <= MOST_DIMS && steps <= MOST_STEPS;
}

/* Whether it is NumPy's own of its name: others may be called `add`, too. */
static int is_of_numpy(const PyUFuncObject *ufunc)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *own = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, ufunc->name);
    const int found = own == (const PyObject *)ufunc;
    Py_XDECREF(numpy);
    Py_XDECREF(own);
    PyErr_Clear();
    return found;
}

/* Whether all are booleans and plain floats: NumPy's loops for some integers set Python errors. */
static int are_plain(const char *types, int count)
{
    for (int i = 0; i < count; i++) {
        if (types[i] != NPY_BOOL && types[i] != NPY_FLOAT && types[i] != NPY_DOUBLE) {
            return 0;
        }
    }
    return 1;
}

PyObject *loop_of_ufunc(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyUFuncObject *ufunc;
    const char *types;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "O!y#", &PyUFunc_Type, &ufunc, &types, &count)) {
        return NULL;
    }
    if (count != ufunc->nargs || !is_small_enough(ufunc)) {
        Py_RETURN_NONE;
    }
    for (int i = 0; i < ufunc->ntypes; i++) {
        if (memcmp(ufunc->types + (size_t)i * (size_t)count, types, (size_t)count) != 0) {
            continue;
        }
        Loop *loop = new_loop(ufunc->functions[i], ufunc->data ? (void *)ufunc->data[i] : NULL, (int)count, ufunc->nin);
        if (loop == NULL) {
            return NULL;
        }
        loop->ufunc = (PyUFuncObject *)Py_NewRef((PyObject *)ufunc);
        loop->shares = are_plain(types, (int)count) && is_of_numpy(ufunc);
        loop->dims = 1 + (ufunc->core_enabled ? ufunc->core_num_dim_ix : 0);
        for (int k = 0; k < count; k++) {
            loop->itemsizes[k] = number_size(types[k]);
            if (loop->itemsizes[k] == 0) {
                Py_DECREF(loop);
                Py_RETURN_NONE;
            }
        }
        const int alike = count == 3 && types[0] == types[1] && types[1] == types[2];
        loop->nests = alike && !ufunc->core_enabled ? nest_functions(ufunc->name, types[0]) : NULL;
        if (loop->nests != NULL && !is_of_numpy(ufunc)) {
            loop->nests = NULL;
        }
        return (PyObject *)loop;
    }
    Py_RETURN_NONE;
}

PyObject *loop_of_copy(PyObject *Py_UNUSED(self), PyObject *args)
{
    int from, to;
    if (!PyArg_ParseTuple(args, "ii", &from, &to)) {
        return NULL;
    }
    PyUFuncGenericFunction function = copy_loop(from, to, number_size(from));
    if (function == NULL) {
        Py_RETURN_NONE;
    }
    Loop *loop = new_loop(function, NULL, 2, 1);
    if (loop != NULL) {
        loop->shares = 1;
        loop->copies = from == to;
        loop->itemsizes[0] = number_size(from);
        loop->itemsizes[1] = number_size(to);
    }
    return (PyObject *)loop;
}

PyObject *loop_of_where(PyObject *Py_UNUSED(self), PyObject *args)
{
    int type;
    if (!PyArg_ParseTuple(args, "i", &type)) {
        return NULL;
    }
    const int itemsize = number_size(type);
    PyUFuncGenericFunction function = where_loop(itemsize);
    if (function == NULL) {
        Py_RETURN_NONE;
    }
    Loop *loop = new_loop(function, NULL, 4, 3);
    if (loop != NULL) {
        loop->shares = 1;
        loop->itemsizes[0] = 1;
        loop->itemsizes[1] = loop->itemsizes[2] = loop->itemsizes[3] = itemsize;
    }
    return (PyObject *)loop;
}

PyObject *loop_of_rows(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    int type;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "sin", &name, &type, &bytes)) {
        return NULL;
    }
    if (bytes < 1 || bytes > INT_MAX || number_size(type) == 0 || bytes % number_size(type)) {
        PyErr_SetString(PyExc_ValueError, "a row has a positive number of bytes, of whole numbers");
        return NULL;
    }
    npy_intp width = 0;
    PyUFuncGenericFunction function = row_loop(name, type, bytes, &width);
    if (function == NULL) {
        Py_RETURN_NONE;
    }
    Loop *loop = new_loop(function, (void *)(uintptr_t)width, 4, 3);
    if (loop != NULL) {
        loop->dims = 2;
        loop->rows_of = strcmp(name, "gather") == 0 ? 0 : 3;
        loop->itemsizes[0] = loop->itemsizes[3] = (int)bytes;
        loop->itemsizes[1] = (int)sizeof(npy_int64);
        loop->itemsizes[2] = 1;
    }
    return (PyObject *)loop;
}

PyObject *loop_of_places(PyObject *Py_UNUSED(self), PyObject *args)
{
    int from_end;
    if (!PyArg_ParseTuple(args, "p", &from_end)) {
        return NULL;
    }
    Loop *loop = new_loop(place_loop(), from_end ? (void *)&LoopType : NULL, 3, 2);
    if (loop != NULL) {
        loop->dims = 2;
        loop->itemsizes[0] = loop->itemsizes[2] = (int)sizeof(npy_int64);
        loop->itemsizes[1] = 1;
    }
    return (PyObject *)loop;
}

static void loop_dealloc(PyObject *self)
{
    Py_XDECREF(((Loop *)self)->ufunc);
    PyObject_Free(self);
}

PyTypeObject LoopType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "limelight_native.Loop",
    .tp_basicsize = sizeof(Loop),
    .tp_dealloc = loop_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A function over strided memory, made by the functions of this module.",
};
