/* Threads are made for each piece of work: that takes 20 us, where the least piece that is shared out takes 100, and so
 * there is nothing that waits busily, outlives a fork, or has to be shut down. */
#include "workers.h"

#include <fenv.h>
#include <stdint.h>
#include <stdlib.h>
#if !defined(_WIN32)
#include <pthread.h>
#endif

#define ALIGNMENT 64
#define FLAGS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)
#define MOST_SCRATCH ((size_t)1 << 28) /* bytes of all threads together, where more than one is at work */

typedef struct {
    TaskFunction function;
    const void *work;
    ptrdiff_t count;
    size_t bytes;
    char *scratch;
    int stopped;
#if !defined(_WIN32)
    ptrdiff_t next;
    pthread_mutex_t mutex; /* of `finished`, the workers beside the caller that are done */
    pthread_cond_t one_more;
    int finished;
    int flags; /* that any of them has raised */
#endif
} Work;

struct Worker {
    Work *work;
    char *scratch;
    int number;
    Watch *watch; /* of the thread that called, which alone looks for signals */
};

int number_of_worker(const Worker *worker)
{
    return worker->number;
}

#if defined(_WIN32)

int is_stopped(Worker *worker)
{
    Work *work = worker->work;
    if (!work->stopped && look_for_signals(worker->watch)) {
        work->stopped = 1;
    }
    return work->stopped;
}

static void do_all(Work *work, int threads, Watch *watch)
{
    (void)threads;
    Worker worker = {work, work->scratch, 0, watch};
    for (ptrdiff_t i = 0; i < work->count && !is_stopped(&worker); i++) {
        work->function(work->work, i, work->scratch, &worker);
    }
}

#else

int is_stopped(Worker *worker)
{
    int *stopped = &worker->work->stopped;
    if (worker->watch != NULL && !__atomic_load_n(stopped, __ATOMIC_RELAXED) && look_for_signals(worker->watch)) {
        __atomic_store_n(stopped, 1, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(stopped, __ATOMIC_RELAXED);
}

static void do_some(Worker *worker)
{
    Work *work = worker->work;
    while (!is_stopped(worker)) {
        const ptrdiff_t task = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);
        if (task >= work->count) {
            return;
        }
        work->function(work->work, task, worker->scratch, worker);
    }
}

static void *run_thread(void *given)
{
    Worker *worker = given;
    do_some(worker);
    pthread_mutex_lock(&worker->work->mutex);
    worker->work->finished++;
    worker->work->flags |= fetestexcept(FLAGS);
    pthread_cond_signal(&worker->work->one_more);
    pthread_mutex_unlock(&worker->work->mutex);
    return NULL;
}

/* Until so many workers are done. Their tasks may be long, and so the caller goes on to look for signals. */
static void wait_for_others(Worker *caller, int count)
{
    Work *work = caller->work;
    pthread_mutex_lock(&work->mutex);
    while (work->finished < count) {
        struct timespec until;
        timespec_get(&until, TIME_UTC);
        until.tv_nsec += BETWEEN_LOOKS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&work->one_more, &work->mutex, &until);
        pthread_mutex_unlock(&work->mutex); /* a handler may do anything, and take its time */
        is_stopped(caller);
        pthread_mutex_lock(&work->mutex);
    }
    pthread_mutex_unlock(&work->mutex);
}

static void do_all(Work *work, int threads, Watch *watch)
{
    pthread_mutex_init(&work->mutex, NULL);
    pthread_cond_init(&work->one_more, NULL);
    Worker workers[MOST_THREADS];
    pthread_t others[MOST_THREADS];
    int started = 0;
    for (int i = 0; i < threads; i++) {
        workers[i] = (Worker){work, work->scratch + (size_t)i * work->bytes, i, i == 0 ? watch : NULL};
    }
    while (started < threads - 1 && pthread_create(&others[started], NULL, run_thread, &workers[started + 1]) == 0) {
        started++;
    }
    do_some(&workers[0]);
    wait_for_others(&workers[0], started);
    for (int i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
    pthread_cond_destroy(&work->one_more);
    pthread_mutex_destroy(&work->mutex);
    if (work->flags) {
        feraiseexcept(work->flags);
    }
}

#endif

static int at_most(ptrdiff_t count, int threads)
{
    if (threads > MOST_THREADS) {
        threads = MOST_THREADS;
    }
    if (threads > count) {
        threads = (int)count;
    }
    return threads < 1 ? 1 : threads;
}

int do_tasks_without_gil(TaskFunction function, const void *work, ptrdiff_t count, int threads, Watch *watch)
{
    char nothing[1];
    Work all = {.function = function, .work = work, .count = count, .scratch = nothing};
    do_all(&all, at_most(count, threads), watch);
    return !all.stopped;
}

int do_tasks(TaskFunction function, const void *work, ptrdiff_t count, int threads, size_t bytes)
{
    threads = at_most(count, threads);
    if (bytes > SIZE_MAX / 2 / MOST_THREADS) { /* more than there is, and what is asked for below would wrap */
        PyErr_NoMemory();
        return 0;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes > MOST_SCRATCH / (size_t)threads) {
        threads = bytes > MOST_SCRATCH ? 1 : (int)(MOST_SCRATCH / bytes);
    }
    char *memory = malloc((size_t)threads * bytes + ALIGNMENT);
    if (memory == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    char *scratch = (char *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    Work all = {.function = function, .work = work, .count = count, .bytes = bytes, .scratch = scratch};
    Watch watch = {.thread = PyEval_SaveThread()};
    do_all(&all, threads, &watch);
    PyEval_RestoreThread(watch.thread);
    free(memory);
    return !all.stopped;
}
