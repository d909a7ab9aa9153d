/* What batch normalisation does with its channels, which all cores share: the moments in two walks over memory, sums and
 * scores in one each. NumPy's functions would go over a piece in the cache for each of the operations. */
#include "columns.h"

#include <math.h>
#include <string.h>

#include "numpy_api.h"
#include "workers.h"

#define MOST_PARTS 16              /* of which each has sums of its own: so few are added up in the end */
#define NUMBERS_OF_PART (1 << 16)  /* about, at least */
#define ROWS_OF_PART 16            /* at least: the sums are to be less than what is summed */
#define ROWS_OF_BLOCK 256          /* added up by themselves, so that long sums lose no more than short ones */
#define NUMBERS_OF_TASK (1 << 15)  /* about: a few microseconds */
#define NUMBERS_OF_THREAD (1 << 16) /* that are worth one */

typedef struct {
    const float *x, *h, *centre, *slope, *level, *factor;
    float *out;
    float *sums; /* two rows for each part */
    npy_intp rows, width, parts;
    int threads;
} Columns;

/* Arrays that are read, in C order: those given, or copies. */
typedef struct {
    PyArrayObject *arrays[5];
    int count;
} Held;

static void release(Held *held)
{
    while (held->count > 0) {
        Py_DECREF(held->arrays[--held->count]);
    }
}

/* The numbers of a float32 array, of such a shape if one is given; NULL with an error where it is another. */
static const float *take(PyObject *given, const char *name, int ndim, const npy_intp *shape, Held *held)
{
    PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(given, NULL, 0, 0, NPY_ARRAY_CARRAY_RO, NULL);
    if (array == NULL) {
        return NULL;
    }
    held->arrays[held->count++] = array;
    if (PyArray_TYPE(array) != NPY_FLOAT32 || PyArray_ISBYTESWAPPED(array) || PyArray_NDIM(array) < 1 ||
        (shape != NULL &&
         (PyArray_NDIM(array) != ndim || !PyArray_CompareLists(PyArray_DIMS(array), shape, ndim)))) {
        PyErr_Format(PyExc_TypeError, "%s must be a float32 array whose shape agrees with the others", name);
        return NULL;
    }
    return PyArray_DATA(array);
}

/* All axes of `x` but the last are its rows. Returns 0 with an error. */
static int take_matrix(PyObject *given, Columns *columns, Held *held)
{
    columns->x = take(given, "x", 0, NULL, held);
    if (columns->x == NULL) {
        return 0;
    }
    PyArrayObject *array = held->arrays[0];
    columns->width = PyArray_DIM(array, PyArray_NDIM(array) - 1);
    const npy_intp size = PyArray_SIZE(array), most = size / NUMBERS_OF_THREAD;
    columns->rows = columns->width == 0 ? 0 : size / columns->width;
    columns->threads = most < columns->threads ? (int)most : columns->threads;
    return 1;
}

/* A number for each column, `into` as it is for None. Returns 0 with an error. */
static int take_vector(PyObject *given, const char *name, const Columns *columns, Held *held, const float **into)
{
    if (given == Py_None) {
        return 1;
    }
    *into = take(given, name, 1, &columns->width, held);
    return *into != NULL;
}

static npy_intp least(npy_intp a, npy_intp b)
{
    return a < b ? a : b;
}

/* Into how many parts sums are cut: by the shape alone, so that numbers do not depend on how many cores there are. */
static npy_intp parts_of_sums(npy_intp rows, npy_intp width)
{
    const npy_intp step = width < NUMBERS_OF_PART && width > 0 ? NUMBERS_OF_PART / width : 1;
    const npy_intp parts = least(least(MOST_PARTS, rows / ROWS_OF_PART), (rows + step - 1) / step);
    return parts < 1 ? 1 : parts;
}

/* Room for sums, and for so many vectors behind them; NULL with an error. */
static float *room_for(Columns *columns, npy_intp vectors, float **behind)
{
    columns->parts = parts_of_sums(columns->rows, columns->width);
    const npy_intp sums = 2 * columns->parts * columns->width;
    columns->sums = PyMem_Malloc((size_t)(sums + vectors * columns->width) * sizeof(float));
    if (columns->sums == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *behind = columns->sums + sums;
    return columns->sums;
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
    float *some = (float *)memory, *total = at->sums + part * 2 * width;
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

/* The sums of all parts, in the first one's place; 0 with an error. */
static int sum_columns(const Columns *columns)
{
    const npy_intp length = 2 * columns->width;
    if (!do_tasks(add_up, columns, columns->parts, columns->threads, (size_t)length * sizeof(float))) {
        return 0;
    }
    float *restrict sums = columns->sums;
    for (npy_intp part = 1; part < columns->parts; part++) {
        const float *restrict more = columns->sums + part * length;
        for (npy_intp j = 0; j < length; j++) {
            sums[j] += more[j];
        }
    }
    return 1;
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

static int score_columns(Columns *columns)
{
    const npy_intp wanted = columns->rows * columns->width / NUMBERS_OF_TASK + 1;
    columns->parts = least(wanted, columns->rows);
    return do_tasks(score_rows, columns, columns->parts, columns->threads, 0);
}

/* What Python calls */

/* New arrays: one as `x`, and two with a number for each column; 0 with an error. */
static int make_results(const Columns *columns, const Held *held, PyArrayObject *made[3])
{
    PyArrayObject *x = held->arrays[0];
    for (int i = 0; i < 3; i++) {
        made[i] = (PyArrayObject *)(i == 0 ? PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT32)
                                           : PyArray_SimpleNew(1, &columns->width, NPY_FLOAT32));
        if (made[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

/* A tuple of the arrays made, where all is done; it is given their references. */
static PyObject *results(PyArrayObject *made[3], int done)
{
    PyObject *tuple = done ? PyTuple_Pack(3, made[0], made[1], made[2]) : NULL;
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(made[i]);
    }
    return tuple;
}

static int normalise(Columns *columns, const float *scale, float epsilon, float *mean, float *variance)
{
    float *slope;
    if (room_for(columns, 2, &slope) == NULL) {
        return 0;
    }
    const float n = (float)columns->rows;
    float *zeros = slope + columns->width;
    if (!sum_columns(columns)) {
        return 0;
    }
    for (npy_intp j = 0; j < columns->width; j++) {
        mean[j] = columns->sums[j] / n;
    }
    columns->centre = mean;
    if (!sum_columns(columns)) {
        return 0;
    }
    for (npy_intp j = 0; j < columns->width; j++) {
        variance[j] = columns->sums[columns->width + j] / n;
        slope[j] = (scale == NULL ? 1.0f : scale[j]) / sqrtf(variance[j] + epsilon);
        zeros[j] = 0.0f;
    }
    columns->slope = slope;
    columns->level = columns->level == NULL ? zeros : columns->level;
    return score_columns(columns);
}

PyObject *normalise_columns(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *x, *scale, *offset;
    double epsilon;
    Columns columns = {0};
    Held held = {0};
    PyArrayObject *made[3] = {NULL, NULL, NULL};
    const float *factors = NULL;
    if (!PyArg_ParseTuple(args, "OOOdi", &x, &scale, &offset, &epsilon, &columns.threads)) {
        return NULL;
    }
    const int done = take_matrix(x, &columns, &held) &&
                     take_vector(scale, "scale", &columns, &held, &factors) &&
                     take_vector(offset, "offset", &columns, &held, &columns.level) &&
                     make_results(&columns, &held, made);
    if (done) {
        columns.out = PyArray_DATA(made[0]);
    }
    const int all =
        done && normalise(&columns, factors, (float)epsilon, PyArray_DATA(made[1]), PyArray_DATA(made[2]));
    PyMem_Free(columns.sums);
    release(&held);
    return results(made, all);
}

/* Where `variance` is NULL, `x` are the scores. */
static int differentiate(
    Columns *columns, const float *variance, const float *scale, float epsilon, float *to_scale, float *to_offset
)
{
    float *slope;
    if (room_for(columns, 4, &slope) == NULL) {
        return 0;
    }
    const float n = (float)columns->rows;
    const npy_intp width = columns->width;
    float *level = slope + width, *factor = level + width, *zeros = factor + width;
    memset(zeros, 0, (size_t)width * sizeof(float));
    columns->centre = columns->centre == NULL ? zeros : columns->centre;
    if (!sum_columns(columns)) {
        return 0;
    }
    for (npy_intp j = 0; j < width; j++) {
        const float root = variance == NULL ? 1.0f : 1.0f / sqrtf(variance[j] + epsilon);
        to_offset[j] = columns->sums[j];
        to_scale[j] = columns->sums[width + j] * root;
        slope[j] = root * to_scale[j] / n;
        level[j] = to_offset[j] / n;
        factor[j] = scale[j] * root;
    }
    columns->slope = slope;
    columns->level = level;
    columns->factor = factor;
    return score_columns(columns);
}

PyObject *normalise_columns_gradient(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *h, *x, *mean, *variance, *scale;
    double epsilon;
    Columns columns = {0};
    Held held = {0};
    PyArrayObject *made[3] = {NULL, NULL, NULL};
    const float *spread = NULL, *factors = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOdi", &h, &x, &mean, &variance, &scale, &epsilon, &columns.threads)) {
        return NULL;
    }
    if ((mean == Py_None) != (variance == Py_None) || scale == Py_None) {
        PyErr_SetString(PyExc_TypeError, "a scale is needed, and a mean and a variance go together");
        return NULL;
    }
    if (!take_matrix(x, &columns, &held)) {
        release(&held);
        return NULL;
    }
    PyArrayObject *matrix = held.arrays[0];
    columns.h = take(h, "h", PyArray_NDIM(matrix), PyArray_DIMS(matrix), &held);
    const int done = columns.h != NULL && take_vector(mean, "mean", &columns, &held, &columns.centre) &&
                     take_vector(variance, "variance", &columns, &held, &spread) &&
                     take_vector(scale, "scale", &columns, &held, &factors) && make_results(&columns, &held, made);
    if (done) {
        columns.out = PyArray_DATA(made[0]);
    }
    const int all = done && differentiate(
                                &columns, spread, factors, (float)epsilon, PyArray_DATA(made[1]), PyArray_DATA(made[2])
                            );
    PyMem_Free(columns.sums);
    release(&held);
    return results(made, all);
}
