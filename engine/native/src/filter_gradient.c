/* The gradient of the filters: for each place in the window, what it sees by the gradient of the convolution, tile by
 * tile. Both are brought into panels, the first with its margins: then each place sees the same runs, further on. Where
 * there are many blocks, what one adds to the sums of those before it is added with compensation: else errors would grow
 * with their number. */
#include "convolution.h"

#include <string.h>

#include "panels.h"
#include "workers.h"

#define WINDOWS_OF_BLOCK 256 /* about: a panel of the gradient is to stay in a core's first cache */
#define FEW_BLOCKS 64 /* whose sums have no larger errors than those of BLAS; compensation takes up to a fifth of the time */
#define MOST_LOST (1 << 18)  /* about: numbers of a task's compensation, which is to stay in the second one */
#define MOST_PANELS (1 << 23) /* about: numbers in all threads' panels of the gradient */

typedef struct {
    Windows at;
    npy_intp x_panels, y_panels;         /* all of them */
    npy_intp x_each, y_each, y_parts;    /* those of a task; how many tasks share out those of y */
    npy_intp places, windows, lines;     /* of a block, at most */
    npy_intp lost;                       /* numbers of a task's compensation; 0 where there is none */
} FilterGradient;

typedef struct {
    float *x, *y, *spare, *lost;
    Run *runs;
} Scratch;

static size_t bytes_of_scratch(const FilterGradient *work)
{
    const size_t rows = (size_t)work->at.tile->rows, columns = (size_t)work->at.tile->columns;
    const size_t x = (size_t)(work->x_each * work->places) * rows, y = (size_t)(work->y_each * work->windows) * columns;
    return (size_t)work->lines * sizeof(Run) + (x + y + rows * columns + (size_t)work->lost) * sizeof(float);
}

static Scratch scratch_in(const FilterGradient *work, char *memory)
{
    const Tile *tile = work->at.tile;
    Scratch scratch = {.runs = (Run *)memory};
    scratch.y = (float *)(scratch.runs + work->lines);
    scratch.x = scratch.y + work->y_each * work->windows * tile->columns;
    scratch.spare = scratch.x + work->x_each * work->places * tile->rows;
    scratch.lost = scratch.spare + tile->rows * tile->columns;
    return scratch;
}

static npy_intp least(npy_intp a, npy_intp b)
{
    return a < b ? a : b;
}

/* One panel of x: some channels of all that the block sees, its margins as zeros. */
static void lay_x(const Windows *at, const Block *block, npy_intp channel, float *panel)
{
    const Numbers *x = &at->x;
    const npy_intp rows = at->tile->rows, n = least(rows, x->size[4] - channel), line = block->extent[2];
    npy_intp low;
    const npy_intp real = real_places(block->start[2], line, x->size[3], &low);
    for (npy_intp image = block->image; image < block->image + block->images; image++) {
        for (npy_intp i = block->start[0]; i < block->start[0] + block->extent[0]; i++) {
            for (npy_intp j = block->start[1]; j < block->start[1] + block->extent[1]; j++, panel += line * rows) {
                if (real == 0 || i < 0 || i >= x->size[1] || j < 0 || j >= x->size[2]) {
                    memset(panel, 0, (size_t)(line * rows) * sizeof(float));
                    continue;
                }
                const float *from = x->data + image * x->step[0] + i * x->step[1] + j * x->step[2] +
                                    (block->start[2] + low) * x->step[3] + channel;
                memset(panel, 0, (size_t)(low * rows) * sizeof(float));
                lay_panel(from, x->step[3], 1, real, n, rows, panel + low * rows);
                memset(panel + (low + real) * rows, 0, (size_t)((line - low - real) * rows) * sizeof(float));
            }
        }
    }
}

static void lay_y(const Windows *at, const Block *block, npy_intp filter, float *panel)
{
    const Numbers *y = &at->y;
    const npy_intp columns = at->tile->columns, n = least(columns, y->size[4] - filter);
    for (npy_intp image = 0; image < block->images; image++) {
        for (npy_intp i = 0; i < block->count[0]; i++) {
            for (npy_intp j = 0; j < block->count[1]; j++, panel += block->count[2] * columns) {
                const float *from = y->data + (block->image + image) * y->step[0] + (block->first[0] + i) * y->step[1] +
                                    (block->first[1] + j) * y->step[2] + block->first[2] * y->step[3];
                lay_panel(from + filter, y->step[3], 1, block->count[2], n, columns, panel);
            }
        }
    }
}

/* Where the first place of the windows of a line is in a panel of x, line by line; returns how many runs that makes. */
static int runs_of_lines(const Windows *at, const Block *block, Run *runs)
{
    const npy_intp rows = at->tile->rows, line = block->extent[2] * rows, step = at->stride[2] * rows;
    int n = 0;
    for (npy_intp image = 0; image < block->images; image++) {
        for (npy_intp i = 0; i < block->count[0]; i++) {
            for (npy_intp j = 0; j < block->count[1]; j++) {
                const npy_intp plane = image * block->extent[0] + i * at->stride[0];
                const npy_intp offset = (plane * block->extent[1] + j * at->stride[1]) * line;
                if (n > 0 && runs[n - 1].offset + runs[n - 1].length * step == offset) {
                    runs[n - 1].length += block->count[2];
                }
                else {
                    runs[n++] = (Run){offset, block->count[2]};
                }
            }
        }
    }
    return n;
}

/* The tile of some channels and filters at one place of the window. */
static void multiply_place(
    const Windows *at, const Scratch *scratch, int n_runs, const float *x, const float *y, float *w, npy_intp n_rows,
    npy_intp n_columns, int add, float *lost
)
{
    const Tile *tile = at->tile;
    const float *rows[MOST_ROWS];
    float *out[MOST_ROWS];
    for (npy_intp i = 0; i < tile->rows; i++) {
        const int direct = i < n_rows && n_columns == tile->columns;
        rows[i] = x + i;
        out[i] = direct ? w + i * at->w.step[3] : scratch->spare + i * tile->columns;
        if (add && i < n_rows && !direct) {
            memcpy(out[i], w + i * at->w.step[3], (size_t)n_columns * sizeof(float));
        }
    }
    tile->multiply(rows, at->stride[2] * tile->rows, scratch->runs, n_runs, y, out, add, lost);
    for (npy_intp i = 0; n_columns < tile->columns && i < n_rows; i++) {
        memcpy(w + i * at->w.step[3], out[i], (size_t)n_columns * sizeof(float));
    }
}

/* All places of the window for one panel of x and one of y. */
static void multiply_panels(
    const Windows *at, const Block *block, const Scratch *scratch, int n_runs, const float *x, const float *y,
    npy_intp channel, npy_intp filter, int add, float *lost
)
{
    const Numbers *w = &at->w;
    const npy_intp rows = at->tile->rows, n_rows = least(rows, w->size[3] - channel);
    const npy_intp of_tile = rows * at->tile->columns;
    const npy_intp n_columns = least(at->tile->columns, w->size[4] - filter);
    for (npy_intp i = 0; i < w->size[0]; i++) {
        for (npy_intp j = 0; j < w->size[1]; j++) {
            for (npy_intp k = 0; k < w->size[2]; k++) {
                const npy_intp line = i * at->dilation[0] * block->extent[1] + j * at->dilation[1];
                const npy_intp place = line * block->extent[2] + k * at->dilation[2];
                float *to = w->data + i * w->step[0] + j * w->step[1] + k * w->step[2] + channel * w->step[3] + filter;
                multiply_place(at, scratch, n_runs, x + place * rows, y, to, n_rows, n_columns, add, lost);
                lost = lost == NULL ? NULL : lost + of_tile;
            }
        }
    }
}

static void add_up_filters(const void *given, ptrdiff_t task, char *memory, Worker *worker)
{
    const FilterGradient *work = given;
    const Windows *at = &work->at;
    const Scratch scratch = scratch_in(work, memory);
    const npy_intp first_x = task / work->y_parts * work->x_each, first_y = task % work->y_parts * work->y_each;
    const npy_intp x_panels = least(work->x_each, work->x_panels - first_x);
    const npy_intp y_panels = least(work->y_each, work->y_panels - first_y);
    const npy_intp rows = at->tile->rows, columns = at->tile->columns;
    const npy_intp of_panels = work->lost / work->x_each / work->y_each;
    memset(scratch.lost, 0, (size_t)work->lost * sizeof(float));
    for (npy_intp i = 0; i < at->blocks && !is_stopped(worker); i++) {
        const Block block = block_of_windows(at, i);
        const int n_runs = runs_of_lines(at, &block, scratch.runs);
        for (npy_intp q = 0; q < y_panels; q++) {
            lay_y(at, &block, (first_y + q) * columns, scratch.y + q * work->windows * columns);
        }
        for (npy_intp p = 0; p < x_panels && !is_stopped(worker); p++) {
            float *x = scratch.x + p * work->places * rows;
            const npy_intp channel = (first_x + p) * rows;
            lay_x(at, &block, channel, x);
            for (npy_intp q = 0; q < y_panels; q++) {
                const float *y = scratch.y + q * work->windows * columns;
                float *lost = work->lost > 0 && i > 0 ? scratch.lost + (p * y_panels + q) * of_panels : NULL;
                multiply_panels(at, &block, &scratch, n_runs, x, y, channel, (first_y + q) * columns, i > 0, lost);
            }
        }
    }
}

static npy_intp parts(npy_intp whole, npy_intp part)
{
    return (whole + part - 1) / part;
}

/* Shares out the panels to tasks: enough of them for all threads, none with more to keep than is good. 0 with an error
 * where it would be more than there is memory for. */
static int share_out(FilterGradient *work)
{
    const Windows *at = &work->at;
    const npy_intp rows = at->tile->rows, columns = at->tile->columns, threads = at->threads;
    work->x_panels = parts(at->x.size[4], rows);
    work->y_panels = parts(at->y.size[4], columns);
    work->y_each = work->y_panels;
    work->x_each = parts(work->x_panels, least(work->x_panels, threads > 1 ? 2 * threads : 1));
    if (parts(work->x_panels, work->x_each) < threads) {
        work->y_each = parts(work->y_panels, least(work->y_panels, threads));
    }
    const npy_intp most = MOST_PANELS / (threads * work->windows * columns);
    work->y_each = least(work->y_each, most > 1 ? most : 1);
    const double tiles = (double)(at->w.size[0] * at->w.size[1] * at->w.size[2]) * (double)work->y_each;
    const double lost = at->blocks > FEW_BLOCKS ? tiles * (double)(rows * columns) : 0; /* for one panel of x */
    if (lost > MOST_SEEN) {
        PyErr_NoMemory();
        return 0;
    }
    if (lost * (double)work->x_each > MOST_LOST) {
        work->x_each = lost > MOST_LOST ? 1 : MOST_LOST / (npy_intp)lost;
    }
    work->y_parts = parts(work->y_panels, work->y_each);
    work->lost = (npy_intp)lost * work->x_each;
    return 1;
}

PyObject *convolve_filters(PyObject *self, PyObject *args)
{
    (void)self;
    FilterGradient work;
    Windows *at = &work.at;
    if (!windows_of_arguments(args, 1, at) || !windows_cut(at, WINDOWS_OF_BLOCK)) {
        return NULL;
    }
    const Block block = block_of_windows(at, 0);
    work.windows = windows_of_block(&block);
    work.lines = work.windows / block.count[2];
    work.places = block.images * block.extent[0] * block.extent[1] * block.extent[2];
    if (!share_out(&work)) {
        return NULL;
    }
    const npy_intp tasks = parts(work.x_panels, work.x_each) * work.y_parts;
    return do_tasks(add_up_filters, &work, tasks, at->threads, bytes_of_scratch(&work)) ? Py_NewRef(Py_None) : NULL;
}
