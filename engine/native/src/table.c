/* Making a table: what it takes, what it holds, what it returns, and its program. Running it is in run.c. */
#include "table_type.h"

static void clear_arrays(ArraySpec *specs, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; specs != NULL && i < count; i++) {
        Py_XDECREF(specs[i].descr);
    }
    PyMem_Free(specs);
}

/* Reads (type number, shape, strides); the bytes that the array spans from its first element on are in `extent`. For
 * None, a variable that is only assigned, there are none. */
static int read_spec(PyObject *item, ArraySpec *spec)
{
    PyObject *shape, *strides;
    int type;
    if (item == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "an array of a table is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "iO!O!", &type, &PyTuple_Type, &shape, &PyTuple_Type, &strides)) {
        return -1;
    }
    const Py_ssize_t rank = PyTuple_GET_SIZE(shape);
    if (rank > MOST_AXES || PyTuple_GET_SIZE(strides) != rank || number_size(type) == 0) {
        PyErr_SetString(PyExc_ValueError, "an array of a table is a number type, a shape, and a stride for each axis");
        return -1;
    }
    spec->descr = PyArray_DescrFromType(type);
    if (spec->descr == NULL) {
        return -1;
    }
    spec->rank = (int)rank;
    spec->extent = number_size(type);
    for (Py_ssize_t i = 0; i < rank; i++) {
        spec->shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        spec->strides[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
        if (PyErr_Occurred()) {
            return -1;
        }
        if (spec->shape[i] < 1 || spec->strides[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "an array of a table has no elements, or runs backwards");
            return -1;
        }
        npy_intp first = 0, last = spec->extent;
        if (!widen_range(&first, &last, spec->shape[i], spec->strides[i], MOST_WORK)) {
            PyErr_SetString(PyExc_ValueError, "an array of a table is larger than memory");
            return -1;
        }
        spec->extent = last;
    }
    return 0;
}

static ArraySpec *read_specs(PyObject *tuple, Py_ssize_t count)
{
    ArraySpec *specs = PyMem_Calloc((size_t)count + 1, sizeof(ArraySpec));
    if (specs == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_spec(PyTuple_GET_ITEM(tuple, i), &specs[i]) < 0) {
            clear_arrays(specs, count);
            return NULL;
        }
    }
    return specs;
}

/* The bytes that each place has: inputs, constants, results, the arena, then rows. */
static npy_intp *place_sizes(const Table *table, PyObject *rows)
{
    npy_intp *sizes = PyMem_Calloc((size_t)(table->places + table->n_rows), sizeof(npy_intp)), *at = sizes;
    if (sizes == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < table->n_inputs; i++) {
        *at++ = table->inputs[i].extent;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(table->constants); i++) {
        *at++ = PyArray_NBYTES((PyArrayObject *)PyTuple_GET_ITEM(table->constants, i));
    }
    for (Py_ssize_t i = 0; i < table->n_results; i++) {
        *at++ = table->results[i].extent;
    }
    *at++ = table->arena;
    for (Py_ssize_t i = 0; i < table->n_rows; i++) {
        *at = PyLong_AsSsize_t(PyTuple_GET_ITEM(rows, i));
        if (*at < 1 || *at++ > MOST_WORK) {
            PyErr_SetString(PyExc_ValueError, "a row of a table has no bytes, or more than there are");
            PyMem_Free(sizes);
            return NULL;
        }
    }
    return sizes;
}

/* Whether a result stays in the memory that NumPy gives it, which is that of its elements. */
static int check_results(const Table *table)
{
    for (Py_ssize_t i = 0; i < table->n_results; i++) {
        const ArraySpec *spec = &table->results[i];
        npy_intp bytes = spec->descr == NULL ? 0 : PyDataType_ELSIZE(spec->descr);
        for (int k = 0; bytes && k < spec->rank; k++) {
            bytes = bounded_product(bytes, spec->shape[k]);
        }
        if (bytes == 0 || spec->extent > bytes) {
            PyErr_SetString(PyExc_ValueError, "a result of a table has no type, or gaps between its elements");
            return -1;
        }
    }
    return 0;
}

static int check_constants(PyObject *constants)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *x = PyTuple_GET_ITEM(constants, i);
        if (!PyArray_CheckExact(x) || !PyArray_ISCARRAY_RO((PyArrayObject *)x)) {
            PyErr_SetString(PyExc_ValueError, "a constant of a table is no contiguous array in native byte order");
            return -1;
        }
    }
    return 0;
}

/* Keeps the loops of an instruction, or of all in a run, alive. */
static int keep_loops(Table *table, PyObject *item)
{
    PyObject *first = PyTuple_GET_ITEM(item, 0);
    if (Py_TYPE(first) == &LoopType) {
        return PyList_Append(table->loops, first);
    }
    if (PyUnicode_Check(first)) {
        return 0;
    }
    PyObject *members = PyTuple_GET_ITEM(item, 2);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(members); i++) {
        if (keep_loops(table, PyTuple_GET_ITEM(PyTuple_GET_ITEM(members, i), 0)) < 0) {
            return -1;
        }
    }
    return 0;
}

static int append_item(Table *table, PyObject *item, const Memory *memory)
{
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) == 0) {
        PyErr_SetString(PyExc_TypeError, "an instruction of a table is a tuple");
        return -1;
    }
    PyObject *first = PyTuple_GET_ITEM(item, 0);
    int (*append)(Program *, PyObject *, const Memory *) = PyLong_Check(first)      ? program_append_run
                                                           : PyUnicode_Check(first) ? program_append_control
                                                                                    : program_append;
    return append(&table->program, item, memory) < 0 ? -1 : keep_loops(table, item);
}

static int write_program(Table *table, PyObject *instructions, PyObject *rows)
{
    npy_intp *sizes = place_sizes(table, rows);
    if (sizes == NULL) {
        return -1;
    }
    const Memory memory = {sizes, (int)(table->places + table->n_rows), (int)table->places, (int)table->n_counters};
    int failed = program_begin(&table->program, PyList_GET_SIZE(instructions), table->n_rows) < 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(instructions); i++) {
        failed = append_item(table, PyList_GET_ITEM(instructions, i), &memory) < 0;
    }
    failed = failed || program_end(&table->program, table->n_rows) < 0;
    PyMem_Free(sizes);
    return failed ? -1 : 0;
}

/* Reads ((input, result, exchanges), ...): results that become the values of variables, which are these inputs. */
static int read_writes(Table *table, PyObject *writes, PyObject *storages)
{
    table->n_writes = PyTuple_GET_SIZE(writes);
    table->writes = PyMem_Calloc((size_t)table->n_writes + 1, sizeof(Write));
    table->is_storage = PyMem_Calloc((size_t)table->n_inputs + 1, 1);
    if (table->writes == NULL || table->is_storage == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(storages); i++) {
        const Py_ssize_t input = PyLong_AsSsize_t(PyTuple_GET_ITEM(storages, i));
        if (input < 0 || input >= table->n_inputs) {
            PyErr_SetString(PyExc_ValueError, "a variable of a table is none of its inputs");
            return -1;
        }
        table->is_storage[input] = 1;
    }
    for (Py_ssize_t i = 0; i < table->n_inputs; i++) {
        if (table->inputs[i].descr == NULL && !table->is_storage[i]) {
            PyErr_SetString(PyExc_ValueError, "an input of a table that is no variable has no type");
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < table->n_writes; i++) {
        Write *write = &table->writes[i];
        if (!PyTuple_Check(PyTuple_GET_ITEM(writes, i))) {
            PyErr_SetString(PyExc_TypeError, "what a table assigns is a tuple");
            return -1;
        }
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(writes, i), "nnp", &write->input, &write->result, &write->exchanges)) {
            return -1;
        }
        if (write->input < 0 || write->input >= table->n_inputs || !table->is_storage[write->input] ||
            write->result < 0 || write->result >= table->n_results) {
            PyErr_SetString(PyExc_ValueError, "a table assigns what is no result of it, or to what is no variable");
            return -1;
        }
    }
    return 0;
}

static void read_counts(Table *table, PyObject *inputs, PyObject *constants, PyObject *results, PyObject *rows)
{
    table->n_inputs = PyTuple_GET_SIZE(inputs);
    table->n_results = PyTuple_GET_SIZE(results);
    table->places = table->n_inputs + PyTuple_GET_SIZE(constants) + table->n_results + 1;
    table->n_rows = rows == NULL ? 0 : PyTuple_GET_SIZE(rows);
}

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",    "constants", "results",  "arena",    "instructions",
                            "otherwise", "rows",      "counters", "storages", "writes",       NULL};
    PyObject *inputs, *constants, *results, *instructions, *otherwise, *rows = NULL, *storages = NULL, *writes = NULL;
    Py_ssize_t arena, counters = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!nO!O|O!nO!O!", names, &PyTuple_Type, &inputs, &PyTuple_Type,
                                     &constants, &PyTuple_Type, &results, &arena, &PyList_Type, &instructions,
                                     &otherwise, &PyTuple_Type, &rows, &counters, &PyTuple_Type, &storages,
                                     &PyTuple_Type, &writes) ||
        check_constants(constants) < 0) {
        return NULL;
    }
    if (arena > MOST_WORK || counters > PyList_GET_SIZE(instructions)) {
        PyErr_SetString(PyExc_ValueError, "a table has more memory than there is, or more counters than instructions");
        return NULL;
    }
    Table *table = (Table *)type->tp_alloc(type, 0);
    PyObject *nothing = PyTuple_New(0);
    if (table == NULL || nothing == NULL) {
        Py_XDECREF(table);
        Py_XDECREF(nothing);
        return NULL;
    }
    table->call = table_call;
    table->arena = arena < 0 ? 0 : arena;
    table->n_counters = counters < 0 ? 0 : counters;
    table->constants = Py_NewRef(constants);
    table->otherwise = Py_NewRef(otherwise);
    read_counts(table, inputs, constants, results, rows);
    table->loops = PyList_New(0);
    const int failed = table->loops == NULL || (table->inputs = read_specs(inputs, table->n_inputs)) == NULL ||
                       (table->results = read_specs(results, table->n_results)) == NULL || check_results(table) < 0 ||
                       read_writes(table, writes ? writes : nothing, storages ? storages : nothing) < 0 ||
                       write_program(table, instructions, rows) < 0;
    Py_DECREF(nothing);
    if (failed) {
        Py_CLEAR(table);
    }
    return (PyObject *)table;
}

static int table_traverse(PyObject *self, visitproc visit, void *arg)
{
    Table *table = (Table *)self;
    Py_VISIT(table->constants);
    Py_VISIT(table->otherwise);
    Py_VISIT(table->loops);
    return 0;
}

static int table_clear(PyObject *self)
{
    Py_CLEAR(((Table *)self)->otherwise);
    return 0;
}

static void table_dealloc(PyObject *self)
{
    Table *table = (Table *)self;
    PyObject_GC_UnTrack(self);
    frame_free_all(&table->frames);
    program_clear(&table->program);
    clear_arrays(table->inputs, table->n_inputs);
    clear_arrays(table->results, table->n_results);
    PyMem_Free(table->writes);
    PyMem_Free(table->is_storage);
    Py_XDECREF(table->constants);
    Py_XDECREF(table->otherwise);
    Py_XDECREF(table->loops);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef members[] = {
    {"arena", T_PYSSIZET, offsetof(Table, arena), READONLY, "Bytes of memory for intermediates."},
    {"instructions", T_PYSSIZET, offsetof(Table, program.count), READONLY, "How many instructions there are."},
    {"released", T_PYSSIZET, offsetof(Table, released), READONLY, "How many calls let others have the GIL meanwhile."},
    {"refused", T_PYSSIZET, offsetof(Table, refused), READONLY, "How many calls went to `otherwise`."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject TableType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "limelight_native.Table",
    .tp_basicsize = sizeof(Table),
    .tp_dealloc = table_dealloc,
    .tp_vectorcall_offset = offsetof(Table, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_traverse = table_traverse,
    .tp_clear = table_clear,
    .tp_members = members,
    .tp_new = table_new,
    .tp_doc = "Table(inputs, constants, results, arena, instructions, otherwise): see the README of limelight-native.",
};
