/* The pool: threads that help whoever asks. They are made when they are asked for first, wait a moment for the next
 * request, and are gone when there was none for a second. */
#ifndef LIMELIGHT_POOL_H
#define LIMELIGHT_POOL_H

#include <fenv.h>

/* What the pool is asked for. It belongs to the caller, and must last until all threads have left. */
typedef struct Request {
    void (*help)(void *work, int number); /* what a thread does; threads are numbered from 1 on */
    void *work;
    fenv_t environment; /* the caller's: threads round as it does */
    int wanted;         /* threads that may still come */
    int joined;         /* that have come */
    unsigned present;   /* that have not left */
    int lost;           /* whether some were present when the process was forked: the child has them not */
    int flags;          /* floating-point errors that any of them has flagged */
    struct Request *next;
} Request;

/* Asks for at most so many threads. They come when they can: the caller does what nobody has begun. */
void ask_for_help(Request *request, int threads);

/* No thread comes any more. Waits until all have left, but not for long: returns 0 where some have not. To be called
 * until it says so. */
int have_left(Request *request);

#endif
