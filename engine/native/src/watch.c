/* Signals during work that holds no GIL. */
#include "watch.h"

static int64_t nanoseconds_since(const struct timespec *before, const struct timespec *now)
{
    return (int64_t)(now->tv_sec - before->tv_sec) * 1000000000 + (now->tv_nsec - before->tv_nsec);
}

int look_for_signals(void *context)
{
    Watch *watch = context;
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    if (watch->since.tv_sec == 0) {
        watch->since = now;
        return 0;
    }
    const int64_t elapsed = nanoseconds_since(&watch->since, &now);
    if (elapsed >= 0 && elapsed < BETWEEN_LOOKS) { /* below 0 where somebody has set the clock */
        return 0;
    }
    watch->since = now;
    take_gil_back(watch);
    const int interrupted = PyErr_CheckSignals();
    let_gil_go(watch);
    return interrupted;
}
