/* Running a table: operands are looked at, results allocated, the program walked. */
#include "float_errors.h"
#include "storage.h"
#include "watch.h"

/* Where the numbers of an operand are; NULL where it is not what the table was made for. */
static char *data_of(PyObject *x, const ArraySpec *want, char *scalar)
{
    if (!PyArray_CheckExact(x)) {
        if (want->rank != 0 || Py_TYPE(x) != want->descr->typeobj) {
            return NULL;
        }
        PyArray_ScalarAsCtype(x, scalar); /* NumPy's numbers, which its functions return instead of 0-d arrays */
        return scalar;
    }
    PyArrayObject *array = (PyArrayObject *)x;
    if (PyArray_TYPE(array) != want->descr->type_num || PyArray_NDIM(array) != want->rank ||
        !PyArray_ISALIGNED(array) || PyArray_ISBYTESWAPPED(array)) {
        return NULL;
    }
    const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    for (int i = 0; i < want->rank; i++) {
        if (shape[i] != want->shape[i] || (strides[i] != want->strides[i] && shape[i] != 1)) {
            return NULL;
        }
    }
    return PyArray_BYTES(array);
}

static int take_inputs(const Table *table, Frame *frame, PyObject *const *args)
{
    for (Py_ssize_t i = 0; i < table->n_inputs; i++) {
        PyObject *array = args[i];
        char *scalar = frame->scalars + i * SCALAR;
        if (table->is_storage[i]) {
            array = storage_array(array);
            if (array == NULL) {
                return 0;
            }
            frame->held[i] = Py_NewRef(array); /* while the run reads it, another thread may assign */
            if (table->inputs[i].descr == NULL) {
                frame->slots[i] = scalar;
                continue;
            }
        }
        frame->slots[i] = data_of(array, &table->inputs[i], scalar);
        if (frame->slots[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

static void let_go(const Table *table, Frame *frame)
{
    for (Py_ssize_t i = 0; i < table->n_inputs; i++) {
        Py_CLEAR(frame->held[i]);
    }
}

/* A tuple with new arrays; results without axes are written to the frame, and become NumPy's numbers afterwards. */
static PyObject *new_results(const Table *table, Frame *frame)
{
    PyObject *results = PyTuple_New(table->n_results);
    const Py_ssize_t first = table->places - 1 - table->n_results;
    for (Py_ssize_t i = 0; results != NULL && i < table->n_results; i++) {
        ArraySpec *spec = &table->results[i];
        if (spec->rank == 0) {
            frame->slots[first + i] = frame->scalars + (table->n_inputs + i) * SCALAR;
            continue;
        }
        Py_INCREF(spec->descr); /* which the next function takes over */
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, spec->descr, spec->rank, spec->shape, spec->strides, NULL,
                                               0, NULL);
        if (array == NULL) {
            Py_CLEAR(results);
            break;
        }
        PyTuple_SET_ITEM(results, i, array);
        frame->slots[first + i] = PyArray_BYTES((PyArrayObject *)array);
    }
    return results;
}

static int finish_results(const Table *table, const Frame *frame, PyObject *results)
{
    const Py_ssize_t first = table->places - 1 - table->n_results;
    for (Py_ssize_t i = 0; i < table->n_results; i++) {
        if (table->results[i].rank == 0) {
            PyObject *number = PyArray_Scalar(frame->slots[first + i], table->results[i].descr, NULL);
            if (number == NULL) {
                return -1;
            }
            PyTuple_SET_ITEM(results, i, number);
        }
    }
    return 0;
}

/* How the walk ended; interrupted also where a loop has raised. */
static ProgramEnd walk(Table *table, Frame *frame)
{
    float_errors_clear();
    Watch watch = {.thread = NULL, .since = {0, 0}};
    const ProgramEnd end = program_run(&table->program, frame->slots, frame->counters, &watch);
    table->released += take_gil_back(&watch);
    return PyErr_Occurred() ? PROGRAM_INTERRUPTED : end;
}

/* The results of a run; NULL with an exception; or `otherwise` is to be called, which `elsewhere` says. */
static PyObject *run(Table *table, Frame *frame, PyObject *const *args, int *elsewhere)
{
    if (!take_inputs(table, frame, args)) {
        *elsewhere = 1;
        return NULL;
    }
    const Py_ssize_t n_constants = PyTuple_GET_SIZE(table->constants);
    for (Py_ssize_t i = 0; i < n_constants; i++) {
        frame->slots[table->n_inputs + i] = PyArray_BYTES((PyArrayObject *)PyTuple_GET_ITEM(table->constants, i));
    }
    frame->slots[table->places - 1] = frame->arena;
    PyObject *results = new_results(table, frame);
    if (results == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < table->program.n_rows; i++) { /* so that each place has memory from the first step on */
        const Row *row = &table->program.rows[i];
        frame->slots[row->place] = frame->slots[row->base] + row->offset;
    }
    const ProgramEnd end = walk(table, frame);
    if (end != PROGRAM_INTERRUPTED) {
        *elsewhere = end == PROGRAM_GUARDED ? 1 : float_errors_matter();
    }
    if (end != PROGRAM_DONE || *elsewhere != 0 || finish_results(table, frame, results) < 0) {
        Py_CLEAR(results);
    }
    if (results != NULL && table->n_writes) {
        const int made = storage_commit(table, frame, args, results);
        *elsewhere = made == 0;
        if (made <= 0) {
            Py_CLEAR(results);
        }
    }
    return results;
}

PyObject *table_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Table *table = (Table *)self;
    if (PyVectorcall_NARGS(nargsf) != table->n_inputs || names != NULL) {
        PyErr_Format(PyExc_TypeError, "this table takes %zd arrays by position", table->n_inputs);
        return NULL;
    }
    Frame *frame = frame_take(&table->frames, (size_t)(table->places + table->n_rows), (size_t)table->n_counters,
                              (size_t)table->n_inputs, (size_t)table->n_results, (size_t)table->arena);
    if (frame == NULL) {
        return NULL;
    }
    int elsewhere = 0;
    PyObject *results = run(table, frame, args, &elsewhere);
    let_go(table, frame);
    frame_give_back(&table->frames, frame);
    if (elsewhere > 0) {
        table->refused++;
        return PyObject_Vectorcall(table->otherwise, args, (size_t)table->n_inputs, NULL);
    }
    return results;
}
