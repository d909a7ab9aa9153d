/* Variables: objects that hold an array in a slot, which a run reads at its begin and replaces at its end. */
#ifndef LIMELIGHT_STORAGE_H
#define LIMELIGHT_STORAGE_H

#include "frame.h"
#include "table_type.h"

/* use_storage(type, told): instances of exactly this type have their array in a slot called `array`. After assignments
 * `_tell(array)` of each is called where the list `told` is not empty. */
PyObject *use_storage(PyObject *self, PyObject *args);

/* The array of a variable, borrowed; NULL without an exception where the object is none that this package knows. */
PyObject *storage_array(PyObject *storage);

/* Makes results the values of variables, all or none: 0 where another thread has assigned one meanwhile. -1 with an
 * exception that a listener has raised. */
int storage_commit(const Table *table, const Frame *frame, PyObject *const *args, PyObject *results);

#endif
