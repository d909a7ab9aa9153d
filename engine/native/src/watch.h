/* Signals during work that holds no GIL: Ctrl-C must end what takes long, and others must have their turn. */
#ifndef LIMELIGHT_WATCH_H
#define LIMELIGHT_WATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* first: it says which of the system's functions are declared */

#include <time.h>

#define BETWEEN_LOOKS 10000000 /* nanoseconds after which signals are looked for: Ctrl-C must work within 50 ms */

/* Whether the GIL is held, and when signals were looked for. */
typedef struct {
    PyThreadState *thread; /* NULL while it holds the GIL */
    struct timespec since;
} Watch;

static inline void let_gil_go(Watch *watch)
{
    if (watch->thread == NULL) {
        watch->thread = PyEval_SaveThread();
    }
}

/* Returns whether others could have it. */
static inline int take_gil_back(Watch *watch)
{
    if (watch->thread == NULL) {
        return 0;
    }
    PyEval_RestoreThread(watch->thread);
    watch->thread = NULL;
    return 1;
}

/* Given a Watch, by its thread: lets signal handlers run now and then, and others have the GIL. Not 0 where one raised. */
int look_for_signals(void *watch);

#endif
