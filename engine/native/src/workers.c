/* Tasks are taken one by one, by the caller and by whoever of the pool comes to help. */
#include "workers.h"

#include <stdint.h>
#include <stdlib.h>

#include "pool.h"
#if !defined(_WIN32)
#include <pthread.h>
#endif

#define ALIGNMENT 64
#define MOST_SCRATCH ((size_t)1 << 28) /* bytes of all threads together, where more than one is at work */

typedef struct {
    TaskFunction function;
    const void *work;
    ptrdiff_t count;
    size_t bytes;
    char *scratch;
    int stopped;
    ptrdiff_t next;
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

static void help(void *given, int number)
{
    Work *work = given;
    Worker worker = {work, work->scratch + (size_t)number * work->bytes, number, NULL};
    do_some(&worker);
}

/* Python ends a daemon thread where it asks for the GIL while the process exits: nobody may then be at its work. */
static void abandon(void *given)
{
    Request *request = given;
    Work *work = request->work;
    __atomic_store_n(&work->stopped, 1, __ATOMIC_RELAXED);
    while (!have_left(request)) {
    }
}

/* In the child of a signal handler that forked: tasks that the parent's threads had begun are done there alone. */
static void refuse(Work *work, Watch *watch)
{
    if (watch != NULL && !work->stopped) {
        take_gil_back(watch);
        PyErr_SetString(PyExc_RuntimeError, "this process was forked in the middle of a computation, whose results it has "
                                            "not: fork between computations, or run a new process in the handler");
        let_gil_go(watch);
    }
    work->stopped = 1;
}

static void do_all(Work *work, int threads, Watch *watch)
{
    Worker caller = {work, work->scratch, 0, watch};
    if (threads == 1) {
        do_some(&caller);
        return;
    }
    Request request = {.help = help, .work = work};
    ask_for_help(&request, threads - 1);
    pthread_cleanup_push(abandon, &request);
    do_some(&caller);
    while (!have_left(&request)) { /* their tasks may be long, and so the caller goes on to look for signals */
        is_stopped(&caller);
    }
    pthread_cleanup_pop(0);
    if (request.flags) {
        feraiseexcept(request.flags);
    }
    if (request.lost) {
        refuse(work, watch);
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
