/* Workers: threads that share out the tasks of one piece of work, and are gone when it is done. */
#ifndef LIMELIGHT_WORKERS_H
#define LIMELIGHT_WORKERS_H

#include <stddef.h>

/* Does one task. Tasks write where no other does, so that the numbers are the same for any number of workers. */
typedef void (*TaskFunction)(const void *work, ptrdiff_t task, char *scratch);

/* Does the tasks 0 to count - 1 on so many threads at most, each with `bytes` of its own, aligned to a cache line. Called
 * without the GIL. Returns 0 where there is no memory: nothing is done then. */
int do_tasks(TaskFunction function, const void *work, ptrdiff_t count, int threads, size_t bytes);

#endif
