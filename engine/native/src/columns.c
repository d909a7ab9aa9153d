/* What batch normalisation does with its channels, each in one walk over memory, which all cores share. NumPy's functions
 * would go over a piece in the cache for each of the operations. */
#include "columns.h"

#include <string.h>

#include "numpy_api.h"
#include "workers.h"

#define ROWS_OF_BLOCK 256          /* added up by themselves, so that long sums lose no more than short ones */
#define NUMBERS_OF_TASK (1 << 15)  /* about: a few microseconds */
#define NUMBERS_OF_THREAD (1 << 16) /* that are worth one */

typedef struct {
    const float *x, *h, *centre, *slope, *level, *factor;
    float *out;
    npy_intp rows, width, parts;
    int threads;
} Columns;

/* The numbers of an array of such a shape, NULL for None; 0 where it is another. */
static int take(PyObject *given, const char *name, int ndim, const npy_intp *size, int writes, float **into)
{
    *into = NULL;
    if (given == Py_None && !writes) {
        return 1;
    }
    PyArrayObject *array = (PyArrayObject *)given;
    int fits = PyArray_Check(given) && PyArray_TYPE(array) == NPY_FLOAT32 && PyArray_NDIM(array) == ndim &&
               PyArray_ISCARRAY_RO(array) && (!writes || PyArray_ISWRITEABLE(array));
    for (int i = 0; fits && i < ndim; i++) {
        fits = size[i] < 0 || PyArray_DIM(array, i) == size[i];
    }
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "%s must be a float32 array in C order that agrees with the others", name);
        return 0;
    }
    *into = (float *)PyArray_DATA(array);
    return 1;
}

static int take_matrix(PyObject *given, Columns *columns)
{
    const npy_intp any[2] = {-1, -1};
    float *x;
    if (!take(given, "x", 2, any, 0, &x)) {
        return 0;
    }
    if (x == NULL) {
        PyErr_SetString(PyExc_TypeError, "x must be an array");
        return 0;
    }
    columns->x = x;
    columns->rows = PyArray_DIM((PyArrayObject *)given, 0);
    columns->width = PyArray_DIM((PyArrayObject *)given, 1);
    const npy_intp most = columns->rows * columns->width / NUMBERS_OF_THREAD;
    columns->threads = most < columns->threads ? (int)most : columns->threads;
    return 1;
}

static int take_shared(PyObject *h, PyObject *centre, Columns *columns)
{
    const npy_intp whole[2] = {columns->rows, columns->width};
    float *numbers[2];
    if (!take(h, "h", 2, whole, 0, &numbers[0]) || !take(centre, "centre", 1, &columns->width, 0, &numbers[1])) {
        return 0;
    }
    columns->h = numbers[0];
    columns->centre = numbers[1];
    return 1;
}

/* rows * part / parts, whose product may wrap. */
static npy_intp begin_of_part(npy_intp rows, npy_intp part, npy_intp parts)
{
    return rows / parts * part + rows % parts * part / parts;
}

/* Sums. Of four rows at a time, so that the sums are read and written once for these. */

static void add_numbers(const float *restrict x, npy_intp rows, npy_intp width, float *restrict sum)
{
    npy_intp i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * width) {
        for (npy_intp j = 0; j < width; j++) {
            sum[j] += (x[j] + x[j + width]) + (x[j + 2 * width] + x[j + 3 * width]);
        }
    }
    for (; i < rows; i++, x += width) {
        for (npy_intp j = 0; j < width; j++) {
            sum[j] += x[j];
        }
    }
}

static void add_squares(
    const float *restrict x, const float *restrict centre, npy_intp rows, npy_intp width, float *restrict sum
)
{
    npy_intp i = 0;
    for (; i + 2 <= rows; i += 2, x += 2 * width) {
        for (npy_intp j = 0; j < width; j++) {
            const float a = x[j] - centre[j], b = x[j + width] - centre[j];
            sum[j] += a * a + b * b;
        }
    }
    for (; i < rows; i++, x += width) {
        for (npy_intp j = 0; j < width; j++) {
            sum[j] += (x[j] - centre[j]) * (x[j] - centre[j]);
        }
    }
}

static void add_products(
    const float *restrict x, const float *restrict h, const float *restrict centre, npy_intp rows, npy_intp width,
    float *restrict sum, float *restrict product
)
{
    npy_intp i = 0;
    for (; i + 2 <= rows; i += 2, x += 2 * width, h += 2 * width) {
        for (npy_intp j = 0; j < width; j++) {
            const float a = h[j], b = h[j + width];
            sum[j] += a + b;
            product[j] += a * (x[j] - centre[j]) + b * (x[j + width] - centre[j]);
        }
    }
    for (; i < rows; i++, x += width, h += width) {
        for (npy_intp j = 0; j < width; j++) {
            sum[j] += h[j];
            product[j] += h[j] * (x[j] - centre[j]);
        }
    }
}

static void add_up(const void *given, ptrdiff_t part, char *memory, Worker *worker)
{
    const Columns *at = given;
    const npy_intp width = at->width, last = begin_of_part(at->rows, part + 1, at->parts);
    float *some = (float *)memory, *total = at->out + part * 2 * width;
    memset(total, 0, 2 * (size_t)width * sizeof(float));
    for (npy_intp i = begin_of_part(at->rows, part, at->parts); i < last && !is_stopped(worker); i += ROWS_OF_BLOCK) {
        const npy_intp rows = last - i < ROWS_OF_BLOCK ? last - i : ROWS_OF_BLOCK;
        memset(some, 0, 2 * (size_t)width * sizeof(float));
        if (at->h != NULL) {
            add_products(at->x + i * width, at->h + i * width, at->centre, rows, width, some, some + width);
        }
        else if (at->centre != NULL) {
            add_squares(at->x + i * width, at->centre, rows, width, some + width);
        }
        else {
            add_numbers(at->x + i * width, rows, width, some);
        }
        for (npy_intp j = 0; j < 2 * width; j++) {
            total[j] += some[j];
        }
    }
}

PyObject *column_sums(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *x, *h, *centre, *out;
    Columns columns = {0};
    if (!PyArg_ParseTuple(args, "OOOOi", &x, &h, &centre, &out, &columns.threads) || !take_matrix(x, &columns) ||
        !take_shared(h, centre, &columns)) {
        return NULL;
    }
    const npy_intp parts[3] = {-1, 2, columns.width};
    if (!take(out, "out", 3, parts, 1, &columns.out)) {
        return NULL;
    }
    if (columns.h != NULL && columns.centre == NULL) {
        PyErr_SetString(PyExc_TypeError, "sums of products need a centre");
        return NULL;
    }
    columns.parts = PyArray_DIM((PyArrayObject *)out, 0);
    const size_t bytes = 2 * (size_t)columns.width * sizeof(float);
    return do_tasks(add_up, &columns, columns.parts, columns.threads, bytes) ? Py_NewRef(Py_None) : NULL;
}

/* Scores */

static void score(
    const float *restrict x, const float *restrict centre, const float *restrict slope, const float *restrict level,
    npy_intp rows, npy_intp width, float *restrict out
)
{
    for (npy_intp i = 0; i < rows; i++, x += width, out += width) {
        for (npy_intp j = 0; j < width; j++) {
            out[j] = (x[j] - centre[j]) * slope[j] + level[j];
        }
    }
}

static void score_apart(
    const float *restrict x, const float *restrict h, const Columns *at, npy_intp rows, float *restrict out
)
{
    const npy_intp width = at->width;
    const float *restrict centre = at->centre, *restrict slope = at->slope, *restrict level = at->level;
    const float *restrict factor = at->factor;
    for (npy_intp i = 0; i < rows; i++, x += width, h += width, out += width) {
        for (npy_intp j = 0; j < width; j++) {
            out[j] = (h[j] - ((x[j] - centre[j]) * slope[j] + level[j])) * factor[j];
        }
    }
}

static void score_rows(const void *given, ptrdiff_t part, char *memory, Worker *worker)
{
    (void)memory;
    (void)worker;
    const Columns *at = given;
    const npy_intp begin = begin_of_part(at->rows, part, at->parts), end = begin_of_part(at->rows, part + 1, at->parts);
    const float *x = at->x + begin * at->width;
    float *out = at->out + begin * at->width;
    if (at->h != NULL) {
        score_apart(x, at->h + begin * at->width, at, end - begin, out);
    }
    else {
        score(x, at->centre, at->slope, at->level, end - begin, at->width, out);
    }
}

PyObject *column_scores(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *x, *h, *centre, *slope, *level, *factor, *out;
    Columns columns = {0};
    if (!PyArg_ParseTuple(args, "OOOOOOOi", &x, &h, &centre, &slope, &level, &factor, &out, &columns.threads) ||
        !take_matrix(x, &columns) || !take_shared(h, centre, &columns)) {
        return NULL;
    }
    const npy_intp whole[2] = {columns.rows, columns.width}, *width = &columns.width;
    float *numbers[3];
    if (!take(slope, "slope", 1, width, 0, &numbers[0]) || !take(level, "level", 1, width, 0, &numbers[1]) ||
        !take(factor, "factor", 1, width, 0, &numbers[2]) || !take(out, "out", 2, whole, 1, &columns.out)) {
        return NULL;
    }
    columns.slope = numbers[0];
    columns.level = numbers[1];
    columns.factor = numbers[2];
    if (columns.centre == NULL || columns.slope == NULL || columns.level == NULL ||
        (columns.h == NULL) != (columns.factor == NULL)) {
        PyErr_SetString(PyExc_TypeError, "scores need a centre, a slope and a level; h and a factor go together");
        return NULL;
    }
    const npy_intp wanted = columns.rows * columns.width / NUMBERS_OF_TASK + 1;
    columns.parts = wanted < columns.rows ? wanted : columns.rows;
    const int done = do_tasks(score_rows, &columns, columns.parts, columns.threads, 0);
    return done ? Py_NewRef(Py_None) : NULL;
}
