/* Placing: where each buffer of a table lies, and its instructions with these places.
 *
 * Only what nearly all instructions need is here; the others are written in Python (`executors/loops/program.py`). */
#ifndef LIMELIGHT_PLACING_H
#define LIMELIGHT_PLACING_H

#include "numpy_api.h"

/* last_uses(items): the number of the last item that each buffer is in, as a dict in the order of their first ones. */
PyObject *last_uses(PyObject *self, PyObject *args);

/* endings(last, where, count): for each item a list of the buffers that end there and have no place yet; or None. */
PyObject *endings(PyObject *self, PyObject *args);

/* write_calls(items, start, where, ending, free, place, large, long, new, give_back, written): see the README. */
PyObject *write_calls(PyObject *self, PyObject *args);

#endif
