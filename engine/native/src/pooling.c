/* The gradient of the largest of each window: 9 comparisons and additions for windows of 3 x 3, each of which NumPy's
 * functions would walk over memory for. */
#include "pooling.h"

#include <string.h>

#include "numpy_api.h"
#include "workers.h"

#define AXES 3
#define NUMBERS_OF_TASK (1 << 15)   /* about: some 20 microseconds */
#define NUMBERS_OF_THREAD (1 << 16) /* that are worth one */

typedef struct {
    const float *g, *x, *y;
    float *out;
    npy_intp space[AXES], windows[AXES], channels;
    npy_intp size[AXES], stride[AXES], before[AXES]; /* of a window; from one to the next; the margin before */
    int cut;                                         /* the axis whose rows are shared out: those before have one each */
    npy_intp rows, tasks_of_image;                   /* of a task; how many */
} Pool;

static npy_intp least(npy_intp a, npy_intp b)
{
    return a < b ? a : b;
}

static npy_intp most(npy_intp a, npy_intp b)
{
    return a > b ? a : b;
}

/* The places of a window at which it sees elements rather than a margin, along one axis. */
static void real_places(const Pool *pool, int axis, npy_intp window, npy_intp *first, npy_intp *last)
{
    const npy_intp begin = window * pool->stride[axis] - pool->before[axis];
    *first = most(0, -begin);
    *last = least(pool->size[axis], pool->space[axis] - begin);
}

typedef struct {
    const float *x, *y; /* of the image; of the window */
    float *out;         /* of the image */
    npy_intp low, high; /* the rows that are written */
    float *share;       /* of each channel */
} Task;

static void count_equal(const float *restrict x, const float *restrict y, npy_intp n, float *restrict count)
{
    for (npy_intp c = 0; c < n; c++) {
        count[c] += x[c] == y[c] ? 1.0f : 0.0f;
    }
}

static void add_share(
    const float *restrict x, const float *restrict y, const float *restrict share, npy_intp n, float *restrict out
)
{
    for (npy_intp c = 0; c < n; c++) {
        out[c] += (x[c] == y[c] ? 1.0f : 0.0f) * share[c];
    }
}

/* Counts the largest elements of a window, or adds the shares to those in the task's rows. */
static void visit(const Pool *pool, const Task *task, const npy_intp *window, int adds)
{
    npy_intp first[AXES], last[AXES], begin[AXES];
    for (int i = 0; i < AXES; i++) {
        real_places(pool, i, window[i], &first[i], &last[i]);
        begin[i] = window[i] * pool->stride[i] - pool->before[i];
    }
    if (adds) {
        first[pool->cut] = most(first[pool->cut], task->low - begin[pool->cut]);
        last[pool->cut] = least(last[pool->cut], task->high - begin[pool->cut]);
    }
    for (npy_intp i = first[0]; i < last[0]; i++) {
        for (npy_intp j = first[1]; j < last[1]; j++) {
            const npy_intp row = ((begin[0] + i) * pool->space[1] + begin[1] + j) * pool->space[2];
            for (npy_intp k = first[2]; k < last[2]; k++) {
                const npy_intp at = (row + begin[2] + k) * pool->channels;
                if (adds) {
                    add_share(task->x + at, task->y, task->share, pool->channels, task->out + at);
                }
                else {
                    count_equal(task->x + at, task->y, pool->channels, task->share);
                }
            }
        }
    }
}

/* Windows are gone through from the last to the first: what is added to an element is in the order of the places that it
 * has in them, as NumPy's functions would add. */
static void spread_rows(const void *given, ptrdiff_t number, char *memory, Worker *worker)
{
    const Pool *pool = given;
    const npy_intp image = number / pool->tasks_of_image, part = number % pool->tasks_of_image, n = pool->channels;
    const npy_intp *space = pool->space, *windows = pool->windows, cut = pool->cut;
    const npy_intp elements = space[0] * space[1] * space[2] * n, in_row = elements / space[cut];
    Task task = {.x = pool->x + image * elements, .out = pool->out + image * elements, .share = (float *)memory};
    task.low = part * pool->rows;
    task.high = least(task.low + pool->rows, space[cut]);
    memset(task.out + task.low * in_row, 0, (size_t)((task.high - task.low) * in_row) * sizeof(float));
    npy_intp first[AXES] = {0, 0, 0}, last[AXES] = {windows[0], windows[1], windows[2]}, at[AXES];
    const npy_intp reach = task.low + pool->before[cut] - pool->size[cut] + 1; /* where the first one begins */
    first[cut] = reach <= 0 ? 0 : (reach + pool->stride[cut] - 1) / pool->stride[cut];
    last[cut] = least(last[cut], (task.high - 1 + pool->before[cut]) / pool->stride[cut] + 1);
    for (at[0] = last[0] - 1; at[0] >= first[0]; at[0]--) {
        for (at[1] = last[1] - 1; at[1] >= first[1] && !is_stopped(worker); at[1]--) {
            for (at[2] = last[2] - 1; at[2] >= first[2]; at[2]--) {
                const npy_intp window = ((image * windows[0] + at[0]) * windows[1] + at[1]) * windows[2] + at[2];
                const float *g = pool->g + window * n;
                task.y = pool->y + window * n;
                memset(task.share, 0, (size_t)n * sizeof(float));
                visit(pool, &task, at, 0);
                for (npy_intp c = 0; c < n; c++) {
                    task.share[c] = g[c] / task.share[c];
                }
                visit(pool, &task, at, 1);
            }
        }
    }
}

/* A float32 array of five axes in C order, a copy if need be; NULL with an error. */
static PyArrayObject *take(PyObject *given, const char *name)
{
    PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(given, NULL, 0, 0, NPY_ARRAY_CARRAY_RO, NULL);
    if (array != NULL && (PyArray_TYPE(array) != NPY_FLOAT32 || PyArray_ISBYTESWAPPED(array) ||
                          PyArray_NDIM(array) != AXES + 2 || PyArray_SIZE(array) == 0)) {
        PyErr_Format(PyExc_TypeError, "%s must be a float32 array (images, *space, channels) with elements", name);
        Py_CLEAR(array);
    }
    return array;
}

/* Whether every window sees an element, and `g` and `y` have a number for each; else 0 with an error. */
static int fits(const Pool *pool, PyArrayObject *g, PyArrayObject *x, PyArrayObject *y)
{
    int good = PyArray_SAMESHAPE(g, y) && PyArray_DIM(x, 0) == PyArray_DIM(y, 0) &&
               PyArray_DIM(x, AXES + 1) == PyArray_DIM(y, AXES + 1);
    for (int i = 0; good && i < AXES; i++) {
        npy_intp first, last;
        const npy_intp bound = NPY_MAX_INTP / 4;
        good = pool->size[i] > 0 && pool->stride[i] > 0 && pool->before[i] >= 0 && pool->before[i] < pool->size[i] &&
               pool->size[i] < bound && pool->windows[i] - 1 <= (pool->space[i] + pool->before[i]) / pool->stride[i];
        if (good) {
            real_places(pool, i, pool->windows[i] - 1, &first, &last);
            good = first < last;
        }
    }
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "g and y must have a number for each window, and each must see an element");
    }
    return good;
}

static PyObject *spread(Pool *pool, PyArrayObject *g, PyArrayObject *x, PyArrayObject *y, int threads)
{
    for (int i = 0; i < AXES; i++) {
        pool->space[i] = PyArray_DIM(x, i + 1);
        pool->windows[i] = PyArray_DIM(y, i + 1);
    }
    pool->channels = PyArray_DIM(x, AXES + 1);
    if (!fits(pool, g, x, y)) {
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)PyArray_SimpleNew(AXES + 2, PyArray_DIMS(x), NPY_FLOAT32);
    if (out == NULL) {
        return NULL;
    }
    pool->g = PyArray_DATA(g);
    pool->x = PyArray_DATA(x);
    pool->y = PyArray_DATA(y);
    pool->out = PyArray_DATA(out);
    while (pool->cut < AXES - 1 && pool->space[pool->cut] == 1) {
        pool->cut++;
    }
    const npy_intp rows = pool->space[pool->cut], images = PyArray_DIM(x, 0), size = PyArray_SIZE(x);
    pool->rows = most(1, NUMBERS_OF_TASK / (size / images / rows));
    pool->tasks_of_image = (rows + pool->rows - 1) / pool->rows;
    threads = (int)least(threads, size / NUMBERS_OF_THREAD);
    const size_t bytes = (size_t)pool->channels * sizeof(float);
    if (!do_tasks(spread_rows, pool, images * pool->tasks_of_image, threads, bytes)) {
        Py_CLEAR(out);
    }
    return (PyObject *)out;
}

PyObject *max_pool_gradient(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given[3], *made = NULL;
    PyArrayObject *g = NULL, *x = NULL, *y = NULL;
    Pool pool = {0};
    int threads;
    if (PyArg_ParseTuple(
            args, "OOO(nnn)(nnn)(nnn)i", &given[0], &given[1], &given[2], &pool.size[0], &pool.size[1], &pool.size[2],
            &pool.stride[0], &pool.stride[1], &pool.stride[2], &pool.before[0], &pool.before[1], &pool.before[2], &threads
        ) &&
        (g = take(given[0], "g")) != NULL && (x = take(given[1], "x")) != NULL && (y = take(given[2], "y")) != NULL) {
        made = spread(&pool, g, x, y, threads);
    }
    Py_XDECREF(g);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return made;
}
