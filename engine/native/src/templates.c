/* The type Template: the instructions of a pattern, which become those of a node with its own operands. */
#include "templates.h"
#include "loop.h"

Records records = {NULL, NULL, NULL, NULL};

static int is_tuple_type(PyObject *type)
{
    return PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type);
}

PyObject *use_records(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *view, *instruction, *guard, *buffer;
    if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyType_Type, &view, &PyType_Type, &instruction, &PyType_Type, &guard,
                          &PyType_Type, &buffer)) {
        return NULL;
    }
    if (!is_tuple_type(view) || !is_tuple_type(instruction) || !is_tuple_type(guard) ||
        ((PyTypeObject *)buffer)->tp_new == NULL) {
        PyErr_SetString(PyExc_TypeError, "views, instructions and guards are tuples, and buffers can be made");
        return NULL;
    }
    Py_XSETREF(records.view, (PyTypeObject *)Py_NewRef(view));
    Py_XSETREF(records.instruction, (PyTypeObject *)Py_NewRef(instruction));
    Py_XSETREF(records.guard, (PyTypeObject *)Py_NewRef(guard));
    Py_XSETREF(records.buffer, (PyTypeObject *)Py_NewRef(buffer));
    Py_RETURN_NONE;
}

int is_record(PyObject *object, PyTypeObject *type)
{
    return Py_IS_TYPE(object, type) && PyTuple_GET_SIZE(object) == 5;
}

/* A tuple of one of these types, of references that it takes over; on failure, or where one is NULL, none is kept. */
static PyObject *new_record(PyTypeObject *type, PyObject *const items[], int n)
{
    int whole = 1;
    for (int i = 0; i < n; i++) {
        whole = whole && items[i] != NULL;
    }
    PyObject *record = whole ? type->tp_alloc(type, n) : NULL;
    for (int i = 0; i < n; i++) {
        if (record == NULL) {
            Py_XDECREF(items[i]);
        } else {
            PyTuple_SET_ITEM(record, i, items[i]);
        }
    }
    return record;
}

static int wrong(const char *what)
{
    PyErr_Format(PyExc_ValueError, "a template needs %s", what);
    return -1;
}

/* Whether all of a tuple are numbers from 0 up to a bound; a bound below 0 is none. */
static int check_numbers(PyObject *tuple, Py_ssize_t bound)
{
    if (!PyTuple_Check(tuple)) {
        return wrong("tuples of numbers");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        const Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (n == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (n < 0 || (bound >= 0 && n >= bound)) {
            return wrong("numbers of views and buffers that it has");
        }
    }
    return 0;
}

static int check_views(const Template *template)
{
    const Py_ssize_t buffers = template->operands + PyTuple_GET_SIZE(template->buffers);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(template->views); i++) {
        PyObject *view = PyTuple_GET_ITEM(template->views, i);
        if (is_record(view, records.view)) {
            continue;
        }
        if (!PyTuple_CheckExact(view) || PyTuple_GET_SIZE(view) != 5 || !PyLong_Check(PyTuple_GET_ITEM(view, 1))) {
            return wrong("views, or tuples of five that describe some");
        }
        const Py_ssize_t buffer = PyLong_AsSsize_t(PyTuple_GET_ITEM(view, 0));
        if (buffer == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (buffer < 0 || buffer >= buffers) {
            return wrong("numbers of views and buffers that it has");
        }
    }
    return 0;
}

static int check_calls(const Template *template, Py_ssize_t views)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(template->calls); i++) {
        PyObject *call = PyTuple_GET_ITEM(template->calls, i);
        const Py_ssize_t n = PyTuple_Check(call) ? PyTuple_GET_SIZE(call) : 0;
        if (n != 1 && (n != 5 || !Py_IS_TYPE(PyTuple_GET_ITEM(call, 0), &LoopType))) {
            return wrong("calls of loops, each a tuple of five, and guards, of one");
        }
        if (check_numbers(n == 1 ? call : PyTuple_GET_ITEM(call, 1), views) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_template(const Template *template)
{
    const Py_ssize_t views = template->operands + PyTuple_GET_SIZE(template->views);
    if (template->operands < 0) {
        return wrong("a number of operands");
    }
    if (check_numbers(template->buffers, -1) < 0 || check_views(template) < 0 || check_calls(template, views) < 0 ||
        check_numbers(template->results, views) < 0) {
        return -1;
    }
    if (PyTuple_GET_SIZE(template->types) != PyTuple_GET_SIZE(template->results)) {
        return wrong("a type for each result");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(template->types); i++) {
        PyObject *type = PyTuple_GET_ITEM(template->types, i);
        if (!PyTuple_Check(type) || PyTuple_GET_SIZE(type) != 2) {
            return wrong("a shape and a dtype for each result");
        }
    }
    return 0;
}

static PyObject *template_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    Py_ssize_t operands;
    PyObject *kept, *buffers, *views, *calls, *results, *types;
    if (records.view == NULL) {
        PyErr_SetString(PyExc_TypeError, "use_records has not been called");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OnO!O!O!O!O!", &kept, &operands, &PyTuple_Type, &buffers, &PyTuple_Type, &views,
                          &PyTuple_Type, &calls, &PyTuple_Type, &results, &PyTuple_Type, &types)) {
        return NULL;
    }
    Template *template = (Template *)type->tp_alloc(type, 0);
    if (template == NULL) {
        return NULL;
    }
    template->kept = Py_NewRef(kept);
    template->operands = operands;
    template->buffers = Py_NewRef(buffers);
    template->views = Py_NewRef(views);
    template->calls = Py_NewRef(calls);
    template->results = Py_NewRef(results);
    template->types = Py_NewRef(types);
    if (check_template(template) < 0) {
        Py_CLEAR(template);
    }
    return (PyObject *)template;
}

static void template_dealloc(PyObject *self)
{
    Template *template = (Template *)self;
    Py_XDECREF(template->kept);
    Py_XDECREF(template->buffers);
    Py_XDECREF(template->views);
    Py_XDECREF(template->calls);
    Py_XDECREF(template->results);
    Py_XDECREF(template->types);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *new_buffer(PyObject *nbytes)
{
    static PyObject *size = NULL, *same = NULL, *nothing = NULL;
    if ((size == NULL && (size = PyUnicode_InternFromString("nbytes")) == NULL) ||
        (same == NULL && (same = PyUnicode_InternFromString("same")) == NULL) ||
        (nothing == NULL && (nothing = PyTuple_New(0)) == NULL)) {
        return NULL;
    }
    PyObject *buffer = records.buffer->tp_new(records.buffer, nothing, NULL);
    if (buffer != NULL && (PyObject_SetAttr(buffer, size, nbytes) < 0 || PyObject_SetAttr(buffer, same, Py_None) < 0)) {
        Py_CLEAR(buffer);
    }
    return buffer;
}

static PyObject *new_buffers(const Template *template)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(template->buffers);
    PyObject *buffers = PyTuple_New(n);
    for (Py_ssize_t i = 0; buffers != NULL && i < n; i++) {
        PyObject *buffer = new_buffer(PyTuple_GET_ITEM(template->buffers, i));
        if (buffer == NULL) {
            Py_CLEAR(buffers);
        } else {
            PyTuple_SET_ITEM(buffers, i, buffer);
        }
    }
    return buffers;
}

/* A view as a template describes it: of a constant, of an operand's buffer from the operand on, or of a new buffer. */
static PyObject *new_view(PyObject *described, PyObject *const *operands, Py_ssize_t n, PyObject *buffers)
{
    if (!PyTuple_CheckExact(described)) { /* a constant, of the type that views had when the template was made */
        return Py_NewRef(described);
    }
    const Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(described, 0));
    PyObject *offset = PyTuple_GET_ITEM(described, 1);
    PyObject *items[5];
    if (number < n) {
        items[0] = Py_NewRef(PyTuple_GET_ITEM(operands[number], 0));
        items[1] = PyNumber_Add(PyTuple_GET_ITEM(operands[number], 1), offset);
    } else {
        items[0] = Py_NewRef(PyTuple_GET_ITEM(buffers, number - n));
        items[1] = Py_NewRef(offset);
    }
    for (int i = 2; i < 5; i++) {
        items[i] = Py_NewRef(PyTuple_GET_ITEM(described, i));
    }
    return new_record(records.view, items, 5);
}

/* The operands, and behind them the views that the template adds. */
static PyObject *all_views(const Template *template, PyObject *const *operands)
{
    const Py_ssize_t n = template->operands, more = PyTuple_GET_SIZE(template->views);
    PyObject *buffers = new_buffers(template), *views = buffers == NULL ? NULL : PyTuple_New(n + more);
    for (Py_ssize_t i = 0; views != NULL && i < n + more; i++) {
        PyObject *view = i < n ? Py_NewRef(operands[i])
                               : new_view(PyTuple_GET_ITEM(template->views, i - n), operands, n, buffers);
        if (view == NULL) {
            Py_CLEAR(views);
        } else {
            PyTuple_SET_ITEM(views, i, view);
        }
    }
    Py_XDECREF(buffers);
    return views;
}

/* Those of a tuple's items that are numbered in another one. */
static PyObject *picked(PyObject *items, PyObject *numbers)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(numbers);
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++) {
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(PyTuple_GET_ITEM(items, PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i)))));
    }
    return tuple;
}

/* The instruction of a call, or the guard. */
static PyObject *new_instruction(PyObject *call, PyObject *views)
{
    PyObject *items[5];
    if (PyTuple_GET_SIZE(call) == 1) {
        items[0] = Py_NewRef(PyTuple_GET_ITEM(views, PyLong_AsSsize_t(PyTuple_GET_ITEM(call, 0))));
        return new_record(records.guard, items, 1);
    }
    for (int i = 0; i < 5; i++) {
        PyObject *item = PyTuple_GET_ITEM(call, i);
        items[i] = i == 1 ? picked(views, item) : Py_NewRef(item);
    }
    return new_record(records.instruction, items, 5);
}

PyObject *template_applied(const Template *template, PyObject *const *operands, PyObject *instructions)
{
    PyObject *views = all_views(template, operands);
    int failed = views == NULL;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(template->calls); i++) {
        PyObject *instruction = new_instruction(PyTuple_GET_ITEM(template->calls, i), views);
        failed = instruction == NULL || PyList_Append(instructions, instruction) < 0;
        Py_XDECREF(instruction);
    }
    PyObject *results = failed ? NULL : picked(views, template->results);
    Py_XDECREF(views);
    return results;
}

int are_views(PyObject *const *operands, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!is_record(operands[i], records.view)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *applied(PyObject *self, PyObject *args)
{
    PyObject *operands, *instructions;
    const Template *template = (Template *)self;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &operands, &PyList_Type, &instructions)) {
        return NULL;
    }
    PyObject *const *views = &PyTuple_GET_ITEM(operands, 0);
    if (PyTuple_GET_SIZE(operands) != template->operands || !are_views(views, template->operands)) {
        PyErr_SetString(PyExc_ValueError, "a template is applied to as many views as it has operands");
        return NULL;
    }
    return template_applied(template, views, instructions);
}

static PyMethodDef methods[] = {
    {"applied", applied, METH_VARARGS,
     "applied(operands, instructions): appends its instructions for these views; returns the results."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject TemplateType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "limelight_native.Template",
    .tp_basicsize = sizeof(Template),
    .tp_dealloc = template_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = template_new,
    .tp_methods = methods,
    .tp_doc = "Template(kept, operands, buffers, views, calls, results, types): see the README of limelight-native.",
};
