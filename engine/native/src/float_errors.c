/* Limelight says nothing of overflows and the like, but a user who has asked NumPy to raise is to get the error. */
#include <fenv.h>

#include "float_errors.h"

#define FLAGS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

void float_errors_clear(void)
{
    if (fetestexcept(FLAGS)) { /* which takes a tenth of the time of clearing */
        feclearexcept(FLAGS);
    }
}

static int asks_for_more(PyObject *settings)
{
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(settings, &at, &name, &value);) {
        if (PyUnicode_CompareWithASCIIString(value, "warn") != 0 &&
            PyUnicode_CompareWithASCIIString(value, "ignore") != 0) {
            return 1;
        }
    }
    return 0;
}

int float_errors_matter(void)
{
    if (!fetestexcept(FLAGS)) {
        return 0;
    }
    feclearexcept(FLAGS);
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *settings = numpy == NULL ? NULL : PyObject_CallMethod(numpy, "geterr", NULL);
    Py_XDECREF(numpy);
    if (settings == NULL) {
        return -1;
    }
    const int found = PyDict_Check(settings) && asks_for_more(settings);
    Py_DECREF(settings);
    return found;
}
