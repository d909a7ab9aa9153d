/* Windows: what the functions for convolutions are given, checked, and cut into blocks. */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "workers.h"

#define LEAST_WORK 4e6 /* multiplications that are worth a thread: a tenth of a millisecond */
#define LEAST_COPIED (1 << 18) /* numbers that are worth a thread */
#define MOST_UNDER_WINDOW 1e12 /* so that the product of two counts of its chunks stays below 2^63 */

static const char *const OUT_OF_RANGE = "a stride, dilation or margin is out of range";

static int take(PyObject *given, const char *name, int writes, Numbers *into)
{
    PyArrayObject *array = (PyArrayObject *)given;
    if (!PyArray_Check(given) || PyArray_TYPE(array) != NPY_FLOAT32 || PyArray_NDIM(array) != 5 ||
        !PyArray_ISALIGNED(array) || PyArray_ISBYTESWAPPED(array) || (writes && !PyArray_ISWRITEABLE(array))) {
        PyErr_Format(PyExc_TypeError, "%s must be an aligned float32 array of 5 axes%s", name,
                     writes ? " that can be written to" : "");
        return 0;
    }
    into->data = (float *)PyArray_DATA(array);
    for (int i = 0; i < 5; i++) {
        const npy_intp step = PyArray_STRIDE(array, i);
        if (PyArray_DIM(array, i) < 1 || step % (npy_intp)sizeof(float)) {
            PyErr_Format(PyExc_ValueError, "%s must not be empty, and its strides multiples of a number's size", name);
            return 0;
        }
        into->size[i] = PyArray_DIM(array, i);
        into->step[i] = step / (npy_intp)sizeof(float);
    }
    return 1;
}

static int side_by_side(const Numbers *numbers)
{
    return numbers->step[4] == 1 || numbers->size[4] == 1;
}

/* Whether sizes agree, and no setting is so large that places could not be counted. */
static const char *misfit(Windows *at, int writes_w)
{
    const Numbers *x = &at->x, *w = &at->w, *y = &at->y;
    if (x->size[0] != y->size[0] || x->size[4] != w->size[3] || y->size[4] != w->size[4]) {
        return "images, channels or filters do not agree";
    }
    if (!side_by_side(x) || !side_by_side(y) || (writes_w && !side_by_side(w))) {
        return "channels and filters must lie side by side";
    }
    at->inside = 1;
    for (int i = 0; i < SPACE; i++) {
        const npy_intp most = (npy_intp)1 << 31, window = w->size[i], out = y->size[i + 1];
        if (at->stride[i] < 1 || at->dilation[i] < 1 || at->stride[i] > most || at->dilation[i] > most ||
            at->pad[i] > most || at->pad[i] < -most || window > most || out > most) {
            return OUT_OF_RANGE;
        }
        at->reach[i] = (window - 1) * at->dilation[i] + 1;
        if (at->pad[i] > 0 || (out - 1) * at->stride[i] - at->pad[i] + at->reach[i] > x->size[i + 1]) {
            at->inside = 0;
        }
    }
    return NULL;
}

static int threads_for(const Windows *at)
{
    double work = 1;
    for (int i = 0; i < 5; i++) {
        work *= (double)at->w.size[i] * (i < 4 ? (double)at->y.size[i] : 1);
    }
    return work / LEAST_WORK < at->threads ? (int)(work / LEAST_WORK) + 1 : at->threads;
}

int windows_of_arguments(PyObject *args, int writes_w, Windows *at)
{
    PyObject *x, *w, *y;
    if (!PyArg_ParseTuple(args, "OOO(nnn)(nnn)(nnn)i", &x, &w, &y, &at->stride[0], &at->stride[1], &at->stride[2],
                          &at->dilation[0], &at->dilation[1], &at->dilation[2], &at->pad[0], &at->pad[1], &at->pad[2],
                          &at->threads)) {
        return 0;
    }
    if (!take(x, "x", 0, &at->x) || !take(w, "w", writes_w, &at->w) || !take(y, "y", !writes_w, &at->y)) {
        return 0;
    }
    const char *wrong = misfit(at, writes_w);
    at->tile = tile_of_processor();
    if (wrong != NULL || at->tile == NULL) {
        PyErr_SetString(PyExc_ValueError, wrong != NULL ? wrong : "this build has no convolutions");
        return 0;
    }
    at->threads = threads_for(at);
    return 1;
}

static npy_intp parts(npy_intp whole, npy_intp part)
{
    return (whole + part - 1) / part;
}

static void cut_into_blocks(Windows *at, npy_intp about)
{
    const npy_intp *out = at->y.size + 1;
    const npy_intp all = out[0] * out[1] * out[2];
    if (all < about) {
        at->pieces = 0;
        at->each = parts(at->x.size[0], parts(at->x.size[0], about / all));
        at->blocks = parts(at->x.size[0], at->each);
        return;
    }
    npy_intp before = 1, behind = all / out[0]; /* windows along the other axes */
    for (at->cut = 0; at->cut < SPACE - 1 && behind > 2 * about; at->cut++) {
        before *= out[at->cut];
        behind /= out[at->cut + 1];
    }
    const npy_intp few = about / behind > 0 ? about / behind : 1;
    at->each = parts(out[at->cut], parts(out[at->cut], few)); /* blocks of about one size, the first as large as any */
    at->pieces = parts(out[at->cut], at->each);
    at->blocks = at->x.size[0] * before * at->pieces;
}

Block block_of_windows(const Windows *at, npy_intp index)
{
    Block block = {.image = index * at->each, .images = at->each};
    for (int i = 0; i < SPACE; i++) {
        block.count[i] = at->y.size[i + 1];
    }
    if (at->pieces) {
        const npy_intp rest = block.count[at->cut] - index % at->pieces * at->each;
        block.first[at->cut] = index % at->pieces * at->each;
        block.count[at->cut] = rest < at->each ? rest : at->each;
        index /= at->pieces;
        for (npy_intp i = at->cut - 1; i >= 0; i--) {
            block.first[i] = index % at->y.size[i + 1];
            block.count[i] = 1;
            index /= at->y.size[i + 1];
        }
        block.image = index;
        block.images = 1;
    }
    else if (block.images > at->x.size[0] - block.image) {
        block.images = at->x.size[0] - block.image;
    }
    for (int i = 0; i < SPACE; i++) {
        block.start[i] = block.first[i] * at->stride[i] - at->pad[i];
        block.extent[i] = (block.count[i] - 1) * at->stride[i] + at->reach[i];
    }
    return block;
}

/* Whether all that a block sees, laid out in panels, can be counted and has addresses: margins are as wide as somebody
 * asks for, while the arrays are small. In floats, which do not wrap. */
static int countable(const Windows *at)
{
    const Block block = block_of_windows(at, 0); /* no other is larger */
    double numbers = (double)(at->x.size[4] + MOST_ROWS) * (double)block.images, terms = (double)at->w.size[3];
    for (int i = 0; i < SPACE; i++) {
        numbers *= (double)block.extent[i];
        terms *= (double)at->w.size[i];
    }
    return numbers < MOST_SEEN && terms < MOST_UNDER_WINDOW;
}

int windows_cut(Windows *at, npy_intp about)
{
    cut_into_blocks(at, about);
    if (!countable(at)) {
        PyErr_SetString(PyExc_ValueError, OUT_OF_RANGE);
        return 0;
    }
    return 1;
}

npy_intp windows_of_block(const Block *block)
{
    return block->images * block->count[0] * block->count[1] * block->count[2];
}

npy_intp band_numbers(const Windows *at)
{
    const Block block = block_of_windows(at, 0); /* no other is larger */
    return at->inside ? 0 : block.images * block.extent[0] * block.extent[1] * block.extent[2] * at->x.size[4];
}

npy_intp real_places(npy_intp start, npy_intp extent, npy_intp size, npy_intp *low)
{
    *low = start < 0 ? -start : 0;
    const npy_intp high = start + extent > size ? size - start : extent;
    return high > *low ? high - *low : 0;
}

/* One line of the last spatial axis, with its margins. */
static void copy_line(const Windows *at, const Block *block, const float *from, float *to)
{
    const npy_intp channels = at->x.size[4], step = at->x.step[3];
    npy_intp low;
    const npy_intp real = real_places(block->start[2], block->extent[2], at->x.size[3], &low);
    if (from == NULL || real == 0) {
        memset(to, 0, (size_t)(block->extent[2] * channels) * sizeof(float));
        return;
    }
    memset(to, 0, (size_t)(low * channels) * sizeof(float));
    from += (block->start[2] + low) * step;
    to += low * channels;
    if (step == channels) {
        memcpy(to, from, (size_t)(real * channels) * sizeof(float));
    }
    else {
        for (npy_intp i = 0; i < real; i++) {
            memcpy(to + i * channels, from + i * step, (size_t)channels * sizeof(float));
        }
    }
    memset(to + real * channels, 0, (size_t)((block->extent[2] - low - real) * channels) * sizeof(float));
}

Band band_of_block(const Windows *at, const Block *block, float *room)
{
    const Numbers *x = &at->x;
    const float *from = x->data + block->image * x->step[0];
    if (at->inside) {
        for (int i = 0; i < SPACE; i++) {
            from += block->start[i] * x->step[i + 1];
        }
        return (Band){from, {x->step[0], x->step[1], x->step[2], x->step[3]}};
    }
    const npy_intp line = block->extent[2] * x->size[4], plane = block->extent[1] * line;
    float *to = room;
    for (npy_intp n = 0; n < block->images; n++, from += x->step[0]) {
        for (npy_intp i = block->start[0]; i < block->start[0] + block->extent[0]; i++) {
            for (npy_intp j = block->start[1]; j < block->start[1] + block->extent[1]; j++, to += line) {
                const int real = i >= 0 && i < x->size[1] && j >= 0 && j < x->size[2];
                copy_line(at, block, real ? from + i * x->step[1] + j * x->step[2] : NULL, to);
            }
        }
    }
    return (Band){room, {block->extent[0] * plane, plane, line, x->size[4]}};
}

/* All that windows see. */
static Block whole_block(const Windows *at)
{
    Block block = {.images = at->x.size[0]};
    for (int i = 0; i < SPACE; i++) {
        block.count[i] = at->y.size[i + 1];
        block.start[i] = -at->pad[i];
        block.extent[i] = (block.count[i] - 1) * at->stride[i] + at->reach[i];
    }
    return block;
}

double padded_numbers(const Windows *at)
{
    const Block block = whole_block(at);
    return (double)block.images * (double)block.extent[0] * (double)block.extent[1] * (double)block.extent[2] *
           (double)at->x.size[4];
}

typedef struct {
    const Windows *at;
    Block block;
    float *room;
} Padding;

static void pad_line(const void *given, ptrdiff_t task, char *scratch, Worker *worker)
{
    (void)scratch, (void)worker;
    const Padding *work = given;
    const Numbers *x = &work->at->x;
    const npy_intp *start = work->block.start, *extent = work->block.extent, plane = task / extent[1];
    const npy_intp i = start[0] + plane % extent[0], j = start[1] + task % extent[1];
    const int real = i >= 0 && i < x->size[1] && j >= 0 && j < x->size[2];
    const float *from = x->data + plane / extent[0] * x->step[0];
    float *to = work->room + task * extent[2] * x->size[4];
    copy_line(work->at, &work->block, real ? from + i * x->step[1] + j * x->step[2] : NULL, to);
}

float *windows_pad(Windows *at)
{
    Padding work = {.at = at, .block = whole_block(at)};
    const npy_intp *extent = work.block.extent;
    const double numbers = padded_numbers(at);
    work.room = numbers < MOST_SEEN ? malloc((size_t)numbers * sizeof(float)) : NULL;
    if (work.room == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!do_tasks(pad_line, &work, at->x.size[0] * extent[0] * extent[1], numbers < LEAST_COPIED ? 1 : at->threads, 0)) {
        free(work.room);
        return NULL;
    }
    at->x.data = work.room;
    at->x.step[4] = 1;
    for (int i = SPACE - 1; i >= -1; i--) {
        at->x.step[i + 1] = at->x.step[i + 2] * at->x.size[i + 2];
        if (i >= 0) {
            at->x.size[i + 1] = extent[i];
            at->pad[i] = 0;
        }
    }
    at->inside = 1;
    return work.room;
}
