/* Nodes whose pattern is known, one after the other. */
#include "templates.h"

static PyObject *parameters_with_types(PyObject *params);

/* Appends one parameter and its type, since 1 and True are equal; 0 where it cannot be compared. */
static int append_parameter(PyObject *head, PyObject *x)
{
    PyTypeObject *type = Py_TYPE(x);
    PyObject *value;
    if (type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type || x == Py_None ||
        PyArray_DescrCheck(x)) {
        value = Py_NewRef(x);
    } else if (type == &PyFloat_Type) { /* 0.0 and -0.0 are equal, too */
        value = PyTuple_Pack(2, x, signbit(PyFloat_AS_DOUBLE(x)) ? Py_True : Py_False);
    } else if (type == &PyTuple_Type) {
        value = parameters_with_types(x);
        if (value == Py_None) {
            Py_DECREF(value);
            return 0;
        }
    } else {
        return 0;
    }
    const int failed = value == NULL || PyList_Append(head, (PyObject *)type) < 0 || PyList_Append(head, value) < 0;
    Py_XDECREF(value);
    return failed ? -1 : 1;
}

/* Parameters with their types, as a tuple; None where there is one that cannot be compared. */
static PyObject *parameters_with_types(PyObject *params)
{
    if (PyTuple_GET_SIZE(params) == 0) {
        return Py_NewRef(params);
    }
    PyObject *head = PyList_New(0);
    int comparable = head != NULL && Py_EnterRecursiveCall(" in a parameter of a node") == 0 ? 1 : -1;
    if (comparable < 0) {
        Py_XDECREF(head);
        return NULL;
    }
    for (Py_ssize_t i = 0; comparable > 0 && i < PyTuple_GET_SIZE(params); i++) {
        comparable = append_parameter(head, PyTuple_GET_ITEM(params, i));
    }
    Py_LeaveRecursiveCall();
    PyObject *tuple = comparable < 0 ? NULL : comparable ? PyList_AsTuple(head) : Py_NewRef(Py_None);
    Py_DECREF(head);
    return tuple;
}

/* The number of the first operand that is a view of the same buffer as one of them. */
static Py_ssize_t first_of_buffer(PyObject *const *operands, Py_ssize_t number)
{
    Py_ssize_t i = 0;
    while (PyTuple_GET_ITEM(operands[i], 0) != PyTuple_GET_ITEM(operands[number], 0)) {
        i++;
    }
    return i;
}

/* The key: what is done, parameters, then shape, strides and dtype of each operand, before which stands for a second view of a
 * buffer which operand was the first, and how far from it. */
static PyObject *key_of(PyObject *what, PyObject *params, PyObject *const *operands, Py_ssize_t n)
{
    PyObject *head = parameters_with_types(params);
    if (head == NULL || head == Py_None) {
        return head;
    }
    Py_ssize_t again = 0;
    for (Py_ssize_t i = 1; i < n; i++) {
        again += first_of_buffer(operands, i) != i;
    }
    PyObject *key = PyTuple_New(2 + 3 * n + 2 * again);
    if (key == NULL) {
        Py_DECREF(head);
        return NULL;
    }
    PyTuple_SET_ITEM(key, 0, Py_NewRef(what));
    PyTuple_SET_ITEM(key, 1, head);
    for (Py_ssize_t i = 0, at = 2; i < n; i++) {
        const Py_ssize_t first = again ? first_of_buffer(operands, i) : i;
        if (first != i) {
            PyObject *number = PyLong_FromSsize_t(first);
            PyObject *distance =
                PyNumber_Subtract(PyTuple_GET_ITEM(operands[i], 1), PyTuple_GET_ITEM(operands[first], 1));
            PyTuple_SET_ITEM(key, at++, number);
            PyTuple_SET_ITEM(key, at++, distance);
            if (number == NULL || distance == NULL) {
                Py_DECREF(key);
                return NULL;
            }
        }
        for (int k = 2; k < 5; k++) {
            PyTuple_SET_ITEM(key, at++, Py_NewRef(PyTuple_GET_ITEM(operands[i], k)));
        }
    }
    return key;
}

PyObject *pattern_of(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *what, *params, *operands;
    if (!PyArg_ParseTuple(args, "OO!O!", &what, &PyTuple_Type, &params, &PyTuple_Type, &operands)) {
        return NULL;
    }
    PyObject *const *items = &PyTuple_GET_ITEM(operands, 0);
    const Py_ssize_t n = PyTuple_GET_SIZE(operands);
    if (!are_views(items, n)) {
        Py_RETURN_NONE;
    }
    return key_of(what, params, items, n);
}

/* What nodes are looked up and written with. */
typedef struct {
    PyObject *known;        /* templates by pattern */
    PyObject *views;        /* of values */
    PyObject *missing;      /* called for the view of a value that has none; or None */
    PyObject *here;         /* the device of nodes that say one */
    PyObject *instructions; /* a list, to which is appended */
} Lowering;

static PyObject *attribute_names[6];
enum { OP, DEVICE, INPUTS, PARAMS, OUTPUTS, SPEC };

static PyObject *attribute(PyObject *object, int which)
{
    return PyObject_GetAttr(object, attribute_names[which]);
}

static int name_attributes(void)
{
    static const char *names[] = {"op", "device", "inputs", "params", "outputs", "spec"};
    for (int i = 0; i < 6; i++) {
        if (attribute_names[i] == NULL && (attribute_names[i] = PyUnicode_InternFromString(names[i])) == NULL) {
            return -1;
        }
    }
    return 0;
}

/* The view of a value; NULL without an exception where there is none, or another thing that stands for the value. */
static PyObject *view_of(const Lowering *lowering, PyObject *value)
{
    PyObject *view = Py_XNewRef(PyDict_GetItemWithError(lowering->views, value));
    if (view == NULL && lowering->missing != Py_None && !PyErr_Occurred()) {
        view = PyObject_CallOneArg(lowering->missing, value);
    }
    if (view != NULL && !is_record(view, records.view)) {
        Py_CLEAR(view);
    }
    return view;
}

/* The views of a node's operands, as a tuple; NULL without an exception where one has none. */
static PyObject *operands_of(const Lowering *lowering, PyObject *node)
{
    PyObject *inputs = attribute(node, INPUTS);
    const Py_ssize_t n = inputs != NULL && PyTuple_Check(inputs) ? PyTuple_GET_SIZE(inputs) : -1;
    PyObject *operands = n < 0 ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; operands != NULL && i < n; i++) {
        PyObject *view = view_of(lowering, PyTuple_GET_ITEM(inputs, i));
        if (view == NULL) {
            Py_CLEAR(operands);
        } else {
            PyTuple_SET_ITEM(operands, i, view);
        }
    }
    Py_XDECREF(inputs);
    return operands;
}

/* Whether a value has the shape and the dtype of a result. -1 with an exception. */
static int is_of_type(PyObject *value, PyObject *type)
{
    static PyObject *shape_name = NULL, *dtype_name = NULL;
    if ((shape_name == NULL && (shape_name = PyUnicode_InternFromString("shape")) == NULL) ||
        (dtype_name == NULL && (dtype_name = PyUnicode_InternFromString("dtype")) == NULL)) {
        return -1;
    }
    PyObject *spec = attribute(value, SPEC);
    PyObject *shape = spec == NULL ? NULL : PyObject_GetAttr(spec, shape_name);
    PyObject *dtype = shape == NULL ? NULL : PyObject_GetAttr(spec, dtype_name);
    int is = -1;
    if (dtype != NULL) {
        is = dtype == PyTuple_GET_ITEM(type, 1) ? PyObject_RichCompareBool(shape, PyTuple_GET_ITEM(type, 0), Py_EQ) : 0;
    }
    Py_XDECREF(spec);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return is;
}

/* Whether the graph says of a node's results what the instructions make. -1 with an exception. */
static int fits(const Template *template, PyObject *outputs)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(template->types);
    int yes = PyTuple_GET_SIZE(outputs) == n;
    for (Py_ssize_t i = 0; yes > 0 && i < n; i++) {
        yes = is_of_type(PyTuple_GET_ITEM(outputs, i), PyTuple_GET_ITEM(template->types, i));
    }
    return yes;
}

/* The template of a node's pattern; NULL, perhaps with an exception, where there is none. */
static Template *template_of(const Lowering *lowering, PyObject *node, PyObject *operands)
{
    PyObject *op = attribute(node, OP), *params = op == NULL ? NULL : attribute(node, PARAMS), *key = NULL;
    PyObject *number = params == NULL ? NULL : PyLong_FromVoidPtr(op); /* `id(op)`, whose hash is quick */
    if (number != NULL && PyTuple_Check(params)) {
        key = key_of(number, params, &PyTuple_GET_ITEM(operands, 0), PyTuple_GET_SIZE(operands));
    }
    PyObject *template = key == NULL || key == Py_None ? NULL : PyDict_GetItemWithError(lowering->known, key);
    Py_XDECREF(op);
    Py_XDECREF(params);
    Py_XDECREF(number);
    Py_XDECREF(key);
    const int is = template != NULL && Py_IS_TYPE(template, &TemplateType) &&
                   ((Template *)template)->operands == PyTuple_GET_SIZE(operands);
    return is ? (Template *)Py_NewRef(template) : NULL;
}

/* Writes a node by its template: 1. 0 where it has none that fits, and nothing has happened; -1 with an exception. */
static int write_known(const Lowering *lowering, PyObject *node, PyObject *operands, PyObject *outputs)
{
    Template *template = template_of(lowering, node, operands);
    int done = template == NULL ? (PyErr_Occurred() ? -1 : 0) : fits(template, outputs);
    PyObject *results = NULL;
    if (done > 0) {
        results = template_applied(template, &PyTuple_GET_ITEM(operands, 0), lowering->instructions);
        done = results == NULL ? -1 : 1;
    }
    Py_XDECREF(template);
    for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(outputs); i++) {
        done = PyDict_SetItem(lowering->views, PyTuple_GET_ITEM(outputs, i), PyTuple_GET_ITEM(results, i)) < 0 ? -1 : 1;
    }
    Py_XDECREF(results);
    return done;
}

static int take(const Lowering *lowering, PyObject *node)
{
    PyObject *device = attribute(node, DEVICE);
    const int elsewhere = device != Py_None && device != lowering->here;
    Py_XDECREF(device);
    if (device == NULL || elsewhere) {
        return device == NULL ? -1 : 0;
    }
    PyObject *operands = operands_of(lowering, node), *outputs = operands == NULL ? NULL : attribute(node, OUTPUTS);
    int taken = PyErr_Occurred() ? -1 : 0;
    if (outputs != NULL && PyTuple_Check(outputs)) {
        taken = write_known(lowering, node, operands, outputs);
    }
    Py_XDECREF(operands);
    Py_XDECREF(outputs);
    return taken;
}

/* Notes how many instructions there are. */
static int note_end(PyObject *ends, PyObject *instructions)
{
    PyObject *end = PyLong_FromSsize_t(PyList_GET_SIZE(instructions));
    const int failed = end == NULL || PyList_Append(ends, end) < 0;
    Py_XDECREF(end);
    return failed ? -1 : 0;
}

PyObject *take_known(PyObject *Py_UNUSED(self), PyObject *args)
{
    Lowering lowering;
    PyObject *nodes, *ends;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(args, "O!nO!O!OOO!O!", &PyTuple_Type, &nodes, &at, &PyDict_Type, &lowering.known,
                          &PyDict_Type, &lowering.views, &lowering.missing, &lowering.here, &PyList_Type,
                          &lowering.instructions, &PyList_Type, &ends) ||
        name_attributes() < 0) {
        return NULL;
    }
    for (at = at < 0 ? 0 : at; at < PyTuple_GET_SIZE(nodes); at++) {
        const int taken = take(&lowering, PyTuple_GET_ITEM(nodes, at));
        if (taken < 0 || (taken > 0 && note_end(ends, lowering.instructions) < 0)) {
            return NULL;
        }
        if (taken == 0) {
            break;
        }
    }
    return PyLong_FromSsize_t(at);
}
