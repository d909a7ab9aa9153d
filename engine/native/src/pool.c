/* The pool of threads. To make a thread takes 40 us, and until one that slept is at work another 100 to 300 pass on a
 * virtual machine: a sixth of a step of ResNet-50, which shares out 350 pieces of 1 ms. So a thread looks for the next
 * request for a moment before it sleeps, and gives its core away at each look to whoever wants it. */
#include "watch.h" /* first, as Python's headers are to be */

#include "pool.h"

#if !defined(_WIN32)

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#define FLAGS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)
#define MOMENT 200000     /* nanoseconds for which is looked rather than slept */
#define IDLE 1000000000LL /* after which a thread ends */

/* Of all that follows, and of what requests count. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked, left; /* for requests, and for threads that have left one */
static Request *requests; /* until all have left */
static unsigned posted;   /* how many there have been */
static int threads, asleep;

#if defined(__APPLE__) /* whose threads sleep by the wall clock alone */
#define CLOCK CLOCK_REALTIME
#else
#define CLOCK CLOCK_MONOTONIC
#endif

static void make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t kind;
    pthread_condattr_init(&kind);
#if !defined(__APPLE__)
    pthread_condattr_setclock(&kind, CLOCK);
#endif
    pthread_cond_init(condition, &kind);
    pthread_condattr_destroy(&kind);
}

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(pthread_cond_t *condition, int64_t time)
{
    const struct timespec until = {(time_t)(time / 1000000000), (long)(time % 1000000000)};
    pthread_cond_timedwait(condition, &mutex, &until);
}

/* Looks for a moment whether a number is no longer what it was. */
static void look_for_change(const unsigned *number, unsigned before)
{
    const int64_t began = nanoseconds_now();
    int64_t passed = 0;
    while (__atomic_load_n(number, __ATOMIC_ACQUIRE) == before && passed >= 0 && passed < MOMENT) {
        sched_yield();
        passed = nanoseconds_now() - began; /* below 0 where somebody has set the clock */
    }
}

static Request *request_in_need(void)
{
    Request *request = requests;
    while (request != NULL && request->wanted == 0) {
        request = request->next;
    }
    return request;
}

/* Called with the mutex, which others have meanwhile. Nothing of the request is touched once it was left. */
static void help_with(Request *request)
{
    request->wanted--;
    request->present++;
    const int number = ++request->joined;
    pthread_mutex_unlock(&mutex);
    fesetenv(&request->environment);
    feclearexcept(FLAGS);
    request->help(request->work, number);
    const int flags = fetestexcept(FLAGS);
    pthread_mutex_lock(&mutex);
    request->flags |= flags;
    __atomic_store_n(&request->present, request->present - 1, __ATOMIC_RELEASE);
    if (request->present == 0) {
        pthread_cond_broadcast(&left);
    }
}

/* Called with the mutex, which others have meanwhile. Returns 0 where nothing was asked for within a second. */
static int is_asked_again(void)
{
    const unsigned before = posted;
    pthread_mutex_unlock(&mutex);
    look_for_change(&posted, before);
    pthread_mutex_lock(&mutex);
    const int64_t end = nanoseconds_now() + IDLE;
    asleep++;
    while (posted == before && nanoseconds_now() < end) {
        sleep_until(&asked, end);
    }
    asleep--;
    return posted != before;
}

static void *run_thread(void *nothing)
{
    pthread_mutex_lock(&mutex);
    do {
        for (Request *request; (request = request_in_need()) != NULL;) {
            help_with(request);
        }
    } while (is_asked_again());
    threads--;
    pthread_mutex_unlock(&mutex);
    return nothing;
}

/* Signals are for the threads that Python knows. */
static void start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run_thread, NULL) == 0) {
        pthread_detach(thread);
        threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void lock_for_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

/* In the child, which has one thread alone. */
static void forget_after_fork(void)
{
    pthread_mutex_init(&mutex, NULL);
    make_condition(&asked);
    make_condition(&left);
    for (; requests != NULL; requests = requests->next) {
        requests->lost = requests->present > 0;
        requests->present = 0;
    }
    threads = asleep = 0;
}

static void prepare(void)
{
    make_condition(&asked);
    make_condition(&left);
    pthread_atfork(lock_for_fork, unlock_after_fork, forget_after_fork);
}

void ask_for_help(Request *request, int wanted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    fegetenv(&request->environment);
    pthread_mutex_lock(&mutex);
    request->wanted = wanted;
    request->next = requests;
    requests = request;
    __atomic_store_n(&posted, posted + 1, __ATOMIC_RELEASE);
    for (int missing = wanted - threads; missing > 0; missing--) {
        start_thread();
    }
    if (asleep > 0) {
        pthread_cond_broadcast(&asked);
    }
    pthread_mutex_unlock(&mutex);
}

static void take_away(const Request *request)
{
    Request **place = &requests;
    while (*place != NULL && *place != request) {
        place = &(*place)->next;
    }
    if (*place != NULL) { /* else this is the child of a fork */
        *place = request->next;
    }
}

int have_left(Request *request)
{
    pthread_mutex_lock(&mutex);
    request->wanted = 0;
    const unsigned present = request->present;
    pthread_mutex_unlock(&mutex);
    if (present > 0) {
        look_for_change(&request->present, present);
    }
    pthread_mutex_lock(&mutex);
    if (request->present > 0) {
        sleep_until(&left, nanoseconds_now() + BETWEEN_LOOKS);
    }
    const int nobody = request->present == 0;
    if (nobody) {
        take_away(request);
    }
    pthread_mutex_unlock(&mutex);
    return nobody;
}

#endif
