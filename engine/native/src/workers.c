/* Threads are made for each piece of work: that takes 20 us, where the least piece that is shared out takes 500, and so
 * there is nothing that waits busily, outlives a fork, or has to be shut down. */
#include "workers.h"

#include <stdint.h>
#include <stdlib.h>

#define ALIGNMENT 64
#define MOST_THREADS 64

typedef struct {
    TaskFunction function;
    const void *work;
    ptrdiff_t count;
    size_t bytes;
    char *scratch;
#if !defined(_WIN32)
    ptrdiff_t next;
#endif
} Work;

#if defined(_WIN32)

static void do_all(Work *work, int threads)
{
    (void)threads;
    for (ptrdiff_t i = 0; i < work->count; i++) {
        work->function(work->work, i, work->scratch);
    }
}

#else

#include <pthread.h>

typedef struct {
    Work *work;
    char *scratch;
} Worker;

static void *do_some(void *given)
{
    const Worker *worker = given;
    Work *work = worker->work;
    for (;;) {
        const ptrdiff_t task = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);
        if (task >= work->count) {
            return NULL;
        }
        work->function(work->work, task, worker->scratch);
    }
}

static void do_all(Work *work, int threads)
{
    Worker workers[MOST_THREADS];
    pthread_t others[MOST_THREADS];
    int started = 0;
    for (int i = 0; i < threads; i++) {
        workers[i] = (Worker){work, work->scratch + (size_t)i * work->bytes};
    }
    while (started < threads - 1 && pthread_create(&others[started], NULL, do_some, &workers[started + 1]) == 0) {
        started++;
    }
    do_some(&workers[0]);
    for (int i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
}

#endif

int do_tasks(TaskFunction function, const void *work, ptrdiff_t count, int threads, size_t bytes)
{
    if (threads > MOST_THREADS) {
        threads = MOST_THREADS;
    }
    if (threads > count) {
        threads = (int)count;
    }
    if (threads < 1) {
        threads = 1;
    }
    if (bytes > SIZE_MAX / 2 / MOST_THREADS) { /* more than there is, and what is asked for below would wrap */
        return 0;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *memory = malloc((size_t)threads * bytes + ALIGNMENT);
    if (memory == NULL) {
        return 0;
    }
    char *scratch = (char *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    Work all = {.function = function, .work = work, .count = count, .bytes = bytes, .scratch = scratch};
    do_all(&all, threads);
    free(memory);
    return 1;
}
