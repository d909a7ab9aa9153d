/* Workers: threads that share out the tasks of one piece of work, and are gone when it is done. */
#ifndef LIMELIGHT_WORKERS_H
#define LIMELIGHT_WORKERS_H

#include <stddef.h>

typedef struct Worker Worker;

/* Does one task. Tasks write where no other does, so that the numbers are the same for any number of workers. */
typedef void (*TaskFunction)(const void *work, ptrdiff_t task, char *scratch, Worker *worker);

/* Whether the work is to end, as a signal handler raised: to be asked within a task about each millisecond. */
int is_stopped(Worker *worker);

/* Does the tasks 0 to count - 1 on so many threads at most, each with `bytes` of its own, aligned to a cache line; on
 * fewer where that would be much memory. Called with the GIL, which others have meanwhile. Returns 0 with an error where
 * there is no memory, or a signal handler raised: not all is done then. */
int do_tasks(TaskFunction function, const void *work, ptrdiff_t count, int threads, size_t bytes);

#endif
