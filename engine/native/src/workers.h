/* Workers: the caller and threads of the pool, which share out the tasks of one piece of work. */
#ifndef LIMELIGHT_WORKERS_H
#define LIMELIGHT_WORKERS_H

#include <stddef.h>

#include "watch.h"

typedef struct Worker Worker;

/* Does one task. Tasks write where no other does, so that the numbers are the same for any number of workers. */
typedef void (*TaskFunction)(const void *work, ptrdiff_t task, char *scratch, Worker *worker);

/* Whether the work is to end, as a signal handler raised: to be asked within a task about each millisecond. */
int is_stopped(Worker *worker);

/* Which of the workers it is, from 0 on, the caller. */
int number_of_worker(const Worker *worker);

#define MOST_THREADS 64

/* Does the tasks 0 to count - 1 on so many threads at most, without scratch. Called without the GIL. What the tasks have
 * flagged of floating-point errors is flagged on the caller's thread afterwards. Returns 0 where a signal handler raised:
 * not all is done then. */
int do_tasks_without_gil(TaskFunction function, const void *work, ptrdiff_t count, int threads, Watch *watch);

/* Does the tasks 0 to count - 1 on so many threads at most, each with `bytes` of its own, aligned to a cache line; on
 * fewer where that would be much memory. Called with the GIL, which others have meanwhile. Returns 0 with an error where
 * there is no memory, or a signal handler raised: not all is done then. */
int do_tasks(TaskFunction function, const void *work, ptrdiff_t count, int threads, size_t bytes);

#endif
