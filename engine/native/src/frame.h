/* Frames: the memory of one run of a table. Runs at the same time, of several threads or nested, have one each. */
#ifndef LIMELIGHT_FRAME_H
#define LIMELIGHT_FRAME_H

#include "numpy_api.h"

#define SCALAR 32 /* bytes for a number: the largest, a complex of long doubles, has 32 */

typedef struct Frame {
    struct Frame *next;
    size_t bytes;
    char *arena;    /* aligned to 64 bytes */
    npy_intp *counters;
    PyObject **held; /* for each input that is a variable the value that it had, which stays alive */
    char *scalars;  /* SCALAR bytes for each input and result */
    char *slots[];  /* where each place of the table begins */
} Frame;

/* Takes a frame from the list, or makes one; NULL with MemoryError. The GIL guards the list. */
Frame *frame_take(Frame **list, size_t places, size_t counters, size_t inputs, size_t results, size_t arena);

/* Puts a frame back on the list for the next run, or frees it where frames hold enough memory already. */
void frame_give_back(Frame **list, Frame *frame);

void frame_free_all(Frame **list);

#endif
