/* Assignments of a table. They come together at its end: an interrupted run has assigned nothing, and a run that must be
 * made again by the plan has not either. No other thread runs between, since nothing here calls into Python before all
 * are made. */
#include "storage.h"

static PyTypeObject *storage_type = NULL;
static Py_ssize_t array_offset = 0;
static PyObject *told = NULL;

PyObject *use_storage(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *type, *list;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &type, &PyList_Type, &list)) {
        return NULL;
    }
    PyObject *slot = PyObject_GetAttrString(type, "array");
    if (slot == NULL) {
        return NULL;
    }
    if (!Py_IS_TYPE(slot, &PyMemberDescr_Type) || ((PyMemberDescrObject *)slot)->d_member->type != T_OBJECT_EX) {
        Py_DECREF(slot);
        PyErr_SetString(PyExc_TypeError, "the array of a variable must be a slot");
        return NULL;
    }
    array_offset = ((PyMemberDescrObject *)slot)->d_member->offset;
    Py_DECREF(slot);
    Py_XSETREF(storage_type, (PyTypeObject *)Py_NewRef(type));
    Py_XSETREF(told, Py_NewRef(list));
    Py_RETURN_NONE;
}

static PyObject **slot_of(PyObject *storage)
{
    return (PyObject **)((char *)storage + array_offset);
}

PyObject *storage_array(PyObject *storage)
{
    return storage_type != NULL && Py_IS_TYPE(storage, storage_type) ? *slot_of(storage) : NULL;
}

static int tell_listeners(const Table *table, PyObject *const *args, PyObject *results)
{
    for (Py_ssize_t i = 0; i < table->n_writes; i++) {
        const Write *write = &table->writes[i];
        PyObject *done =
            PyObject_CallMethod(args[write->input], "_tell", "O", PyTuple_GET_ITEM(results, write->result));
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    return 1;
}

int storage_commit(const Table *table, const Frame *frame, PyObject *const *args, PyObject *results)
{
    for (Py_ssize_t i = 0; i < table->n_writes; i++) {
        const Write *write = &table->writes[i];
        if (write->exchanges && *slot_of(args[write->input]) != frame->held[write->input]) {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; i < table->n_writes; i++) {
        const Write *write = &table->writes[i];
        PyObject **slot = slot_of(args[write->input]), *old = *slot;
        *slot = Py_NewRef(PyTuple_GET_ITEM(results, write->result));
        Py_XDECREF(old); /* an array, whose end runs no code: the frame holds the first one besides */
    }
    return PyList_GET_SIZE(told) ? tell_listeners(table, args, results) : 1;
}
