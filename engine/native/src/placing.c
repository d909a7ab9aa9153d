/* Lifetimes of buffers, and instructions with the places of their operands. */
#include "placing.h"
#include "templates.h"

/* The views of an item, as a tuple: an instruction has them in its second place, what is none as an attribute. */
static PyObject *views_of(PyObject *item)
{
    PyObject *views = is_record(item, records.instruction) ? Py_NewRef(PyTuple_GET_ITEM(item, 1))
                                                           : PyObject_GetAttrString(item, "operands");
    PyObject *tuple = views == NULL ? NULL : PySequence_Tuple(views);
    Py_XDECREF(views);
    for (Py_ssize_t i = 0; tuple != NULL && i < PyTuple_GET_SIZE(tuple); i++) {
        if (!is_record(PyTuple_GET_ITEM(tuple, i), records.view)) {
            PyErr_SetString(PyExc_TypeError, "an operand of an instruction is a view");
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

static int note_uses(PyObject *last, PyObject *item, Py_ssize_t number)
{
    PyObject *views = views_of(item), *at = views == NULL ? NULL : PyLong_FromSsize_t(number);
    int failed = at == NULL;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(views); i++) {
        failed = PyDict_SetItem(last, PyTuple_GET_ITEM(PyTuple_GET_ITEM(views, i), 0), at) < 0;
    }
    Py_XDECREF(views);
    Py_XDECREF(at);
    return failed ? -1 : 0;
}

static int has_records(void)
{
    if (records.view == NULL) {
        PyErr_SetString(PyExc_TypeError, "use_records has not been called");
    }
    return records.view != NULL;
}

PyObject *last_uses(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *items;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &items) || !has_records()) {
        return NULL;
    }
    PyObject *last = PyDict_New();
    for (Py_ssize_t i = 0; last != NULL && i < PyList_GET_SIZE(items); i++) {
        if (note_uses(last, PyList_GET_ITEM(items, i), i) < 0) {
            Py_CLEAR(last);
        }
    }
    return last;
}

static int note_ending(PyObject *ending, PyObject *number, PyObject *buffer)
{
    const Py_ssize_t i = PyLong_AsSsize_t(number);
    if (i == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (i < 0 || i >= PyList_GET_SIZE(ending)) {
        PyErr_SetString(PyExc_ValueError, "a buffer is used by an item that is not there");
        return -1;
    }
    PyObject *here = PyList_GET_ITEM(ending, i);
    if (here != Py_None) {
        return PyList_Append(here, buffer);
    }
    PyObject *list = PyList_New(1);
    if (list == NULL) {
        return -1;
    }
    PyList_SET_ITEM(list, 0, Py_NewRef(buffer));
    return PyList_SetItem(ending, i, list);
}

PyObject *endings(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *last, *where, *buffer, *number;
    Py_ssize_t count, at = 0;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyDict_Type, &last, &PyDict_Type, &where, &count)) {
        return NULL;
    }
    PyObject *ending = PyList_New(count < 0 ? 0 : count);
    for (Py_ssize_t i = 0; ending != NULL && i < count; i++) {
        PyList_SET_ITEM(ending, i, Py_NewRef(Py_None));
    }
    while (ending != NULL && PyDict_Next(last, &at, &buffer, &number)) {
        const int placed = PyDict_Contains(where, buffer);
        if (placed < 0 || (placed == 0 && note_ending(ending, number, buffer) < 0)) {
            Py_CLEAR(ending);
        }
    }
    return ending;
}

/* What calls are written with. */
typedef struct {
    PyObject *items;
    PyObject *where;     /* (place, offset) by buffer */
    PyObject *ending;    /* for each item the buffers that end there, as a list, or None */
    PyObject *free;      /* lists of offsets that are free in the arena, by the bytes of a buffer */
    PyObject *place;     /* the number of the arena */
    Py_ssize_t large;    /* bytes from which on a buffer is not in these lists */
    Py_ssize_t long_;    /* elements from which on an instruction is not written here */
    PyObject *new;       /* called for the place of a buffer where the lists have none */
    PyObject *give_back; /* called with a buffer that ends, where it is in no list */
    PyObject *written;   /* a list, to which is appended */
} Placing;

/* The list of free offsets for a buffer, borrowed; NULL, perhaps with an exception, where there is none. */
static PyObject *free_offsets(const Placing *placing, PyObject *buffer)
{
    static PyObject *name = NULL;
    if (name == NULL && (name = PyUnicode_InternFromString("nbytes")) == NULL) {
        return NULL;
    }
    PyObject *nbytes = PyObject_GetAttr(buffer, name), *list = NULL;
    const Py_ssize_t n = nbytes == NULL ? -1 : PyLong_AsSsize_t(nbytes);
    if (n >= 0 && n < placing->large) {
        list = PyDict_GetItemWithError(placing->free, nbytes);
    }
    Py_XDECREF(nbytes);
    return list != NULL && PyList_CheckExact(list) ? list : NULL;
}

/* A place for a buffer that has none: what was freed last is taken first. */
static PyObject *new_place(const Placing *placing, PyObject *buffer)
{
    PyObject *list = free_offsets(placing, buffer);
    const Py_ssize_t n = list == NULL ? 0 : PyList_GET_SIZE(list);
    if (n == 0) {
        return PyErr_Occurred() ? NULL : PyObject_CallOneArg(placing->new, buffer);
    }
    PyObject *at = PyTuple_Pack(2, placing->place, PyList_GET_ITEM(list, n - 1));
    if (at != NULL && (PyList_SetSlice(list, n - 1, n, NULL) < 0 || PyDict_SetItem(placing->where, buffer, at) < 0)) {
        Py_CLEAR(at);
    }
    return at;
}

static PyObject *place_of(const Placing *placing, PyObject *buffer)
{
    PyObject *at = Py_XNewRef(PyDict_GetItemWithError(placing->where, buffer));
    if (at == NULL && !PyErr_Occurred()) {
        at = new_place(placing, buffer);
    }
    if (at != NULL && (!PyTuple_Check(at) || PyTuple_GET_SIZE(at) != 2)) {
        PyErr_SetString(PyExc_TypeError, "a buffer is at a place and an offset");
        Py_CLEAR(at);
    }
    return at;
}

/* Place and offset of each operand, one after the other. */
static PyObject *words_of(const Placing *placing, PyObject *views)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(views);
    PyObject *words = PyTuple_New(2 * n);
    for (Py_ssize_t i = 0; words != NULL && i < n; i++) {
        PyObject *view = PyTuple_GET_ITEM(views, i), *at = place_of(placing, PyTuple_GET_ITEM(view, 0));
        PyObject *offset = at == NULL ? NULL : PyNumber_Add(PyTuple_GET_ITEM(at, 1), PyTuple_GET_ITEM(view, 1));
        if (offset == NULL) {
            Py_CLEAR(words);
        } else {
            PyTuple_SET_ITEM(words, 2 * i, Py_NewRef(PyTuple_GET_ITEM(at, 0)));
            PyTuple_SET_ITEM(words, 2 * i + 1, offset);
        }
        Py_XDECREF(at);
    }
    return words;
}

static int write_call(const Placing *placing, PyObject *item)
{
    PyObject *views = views_of(item), *words = views == NULL ? NULL : words_of(placing, views);
    PyObject *call = words == NULL ? NULL
                                   : PyTuple_Pack(5, PyTuple_GET_ITEM(item, 0), words, PyTuple_GET_ITEM(item, 2),
                                                  PyTuple_GET_ITEM(item, 3), PyTuple_GET_ITEM(item, 4));
    const int failed = call == NULL || PyList_Append(placing->written, call) < 0;
    Py_XDECREF(views);
    Py_XDECREF(words);
    Py_XDECREF(call);
    return failed ? -1 : 0;
}

/* Gives back the place of a buffer that ends. */
static int end_buffer(const Placing *placing, PyObject *buffer)
{
    PyObject *at = PyDict_GetItemWithError(placing->where, buffer);
    const int here = at != NULL && PyTuple_Check(at) && PyTuple_GET_SIZE(at) == 2 &&
                     PyTuple_GET_ITEM(at, 0) == placing->place;
    PyObject *list = here ? free_offsets(placing, buffer) : NULL;
    if (list != NULL) {
        return PyList_Append(list, PyTuple_GET_ITEM(at, 1));
    }
    PyObject *done = PyErr_Occurred() ? NULL : PyObject_CallOneArg(placing->give_back, buffer);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int end_buffers(const Placing *placing, PyObject *buffers)
{
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && PyList_Check(buffers) && i < PyList_GET_SIZE(buffers); i++) {
        failed = end_buffer(placing, PyList_GET_ITEM(buffers, i)) < 0;
    }
    return failed ? -1 : 0;
}

/* Whether an item is an instruction over few elements. */
static int is_short(const Placing *placing, PyObject *item)
{
    if (!is_record(item, records.instruction)) {
        return 0;
    }
    PyObject *dims = PyTuple_GET_ITEM(item, 2);
    return PyTuple_Check(dims) && PyTuple_GET_SIZE(dims) > 0 &&
           PyLong_AsSsize_t(PyTuple_GET_ITEM(dims, 0)) < placing->long_ && !PyErr_Occurred();
}

PyObject *write_calls(PyObject *Py_UNUSED(self), PyObject *args)
{
    Placing placing;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(args, "O!nO!O!O!O!nnOOO!", &PyList_Type, &placing.items, &at, &PyDict_Type, &placing.where,
                          &PyList_Type, &placing.ending, &PyDict_Type, &placing.free, &PyLong_Type, &placing.place,
                          &placing.large, &placing.long_, &placing.new, &placing.give_back, &PyList_Type,
                          &placing.written) ||
        !has_records()) {
        return NULL;
    }
    for (at = at < 0 ? 0 : at; at < PyList_GET_SIZE(placing.items) && at < PyList_GET_SIZE(placing.ending); at++) {
        PyObject *item = PyList_GET_ITEM(placing.items, at);
        if (!is_short(&placing, item)) {
            break;
        }
        Py_INCREF(item);
        PyObject *ending = Py_NewRef(PyList_GET_ITEM(placing.ending, at));
        const int failed = write_call(&placing, item) < 0 || end_buffers(&placing, ending) < 0;
        Py_DECREF(item);
        Py_DECREF(ending);
        if (failed) {
            return NULL;
        }
    }
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(at);
}
