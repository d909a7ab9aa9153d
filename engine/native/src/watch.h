/* Signals during work that holds no GIL: Ctrl-C must end what takes long, and others must have their turn. */
#ifndef LIMELIGHT_WATCH_H
#define LIMELIGHT_WATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* first: it says which of the system's functions are declared */

#include <time.h>

#define BETWEEN_LOOKS 10000000 /* nanoseconds after which signals are looked for: Ctrl-C must work within 50 ms */

/* Begins as {.thread = PyEval_SaveThread()}, and ends with PyEval_RestoreThread(thread). */
typedef struct {
    PyThreadState *thread;
    struct timespec since;
} Watch;

/* Given a Watch, by its thread: lets signal handlers run now and then, and others have the GIL. Not 0 where one raised. */
int look_for_signals(void *watch);

#endif
