/* Convolutions: windows by filters, tile by tile. The numbers under a window lie in a few runs, one behind the other, at
 * the same places from each window on; so no patches are laid out, and the filters alone are brought into panels. */
#include "convolution.h"

#include <stdlib.h>
#include <string.h>

#include "panels.h"
#include "workers.h"

#define ROWS_OF_BLOCK 384 /* about: what they see, and a panel, are to fit into a core's second cache */
#define TASKS_OF_THREAD 4 /* at least, so that all are done at about the same time */
#define MOST_TERMS 384    /* of a panel at a time, which is to stay in the first */
#define PANELS_AT_ONCE 4  /* that are laid before any is multiplied: they stay in the second */

typedef struct {
    Windows at;
    npy_intp terms;  /* numbers under a window */
    npy_intp chunks; /* parts of these */
    npy_intp groups; /* parts of the filters that go to several tasks */
    npy_intp panels; /* of the filters, in a group */
    npy_intp n_rows; /* of a block, at most */
    npy_intp band;   /* numbers that are copied for a block */
} Convolution;

/* The terms of a window one after the other: (*window, channels). Neighbours lie side by side, where windows of the last
 * axis have no gaps. */
static npy_intp run_length(const Windows *at, const Band *band)
{
    const npy_intp channels = at->x.size[4];
    return at->dilation[2] == 1 && band->step[3] == channels ? at->w.size[2] * channels : channels;
}

static npy_intp place_of_term(const Windows *at, const Band *band, npy_intp term)
{
    const npy_intp *window = at->w.size, channels = at->x.size[4], tap = term / channels;
    return tap / window[2] / window[1] * at->dilation[0] * band->step[1] +
           tap / window[2] % window[1] * at->dilation[1] * band->step[2] +
           tap % window[2] * at->dilation[2] * band->step[3] + term % channels;
}

/* The runs of the terms between two; returns how many. */
static int runs_of_terms(const Windows *at, const Band *band, npy_intp first, npy_intp last, Run *runs)
{
    const npy_intp longest = run_length(at, band);
    int n = 0;
    while (first < last) {
        const npy_intp rest = longest - first % longest, length = rest < last - first ? rest : last - first;
        runs[n++] = (Run){place_of_term(at, band, first), length};
        first += length;
    }
    return n;
}

/* Some filters from one on, for the terms between two, one term behind the other; zeros behind the last filter. */
static void lay_filters(
    const Windows *at, npy_intp first, npy_intp last, npy_intp filter, npy_intp n, float *panels, npy_intp apart
)
{
    const Numbers *w = &at->w;
    const npy_intp columns = at->tile->columns, channels = w->size[3];
    while (first < last) {
        const npy_intp tap = first / channels, channel = first % channels;
        const npy_intp rest = channels - channel, length = rest < last - first ? rest : last - first;
        const float *from = w->data + tap / w->size[2] / w->size[1] * w->step[0] +
                            tap / w->size[2] % w->size[1] * w->step[1] + tap % w->size[2] * w->step[2] +
                            channel * w->step[3] + filter * w->step[4];
        lay_panels(from, w->step[3], w->step[4], length, n, columns, panels, apart);
        panels += length * columns;
        first += length;
    }
}

/* Where the patches of a block's windows begin, and where their results go. */
static void find_rows(const Windows *at, const Block *block, const Band *band, const float **rows, float **out)
{
    const Numbers *y = &at->y;
    for (npy_intp n = 0; n < block->images; n++) {
        for (npy_intp i = 0; i < block->count[0]; i++) {
            for (npy_intp j = 0; j < block->count[1]; j++) {
                const float *from = band->data + n * band->step[0] + i * at->stride[0] * band->step[1] +
                                    j * at->stride[1] * band->step[2];
                float *to = y->data + (block->image + n) * y->step[0] + (block->first[0] + i) * y->step[1] +
                            (block->first[1] + j) * y->step[2] + block->first[2] * y->step[3];
                for (npy_intp k = 0; k < block->count[2]; k++) {
                    *rows++ = from + k * at->stride[2] * band->step[3];
                    *out++ = to + k * y->step[3];
                }
            }
        }
    }
}

typedef struct {
    const float **rows;
    float **out;
    float *panels, *spare, *room;
    Run *runs;
} Scratch;

static size_t bytes_of_scratch(const Convolution *work)
{
    const size_t columns = (size_t)work->at.tile->columns, n_rows = (size_t)work->n_rows;
    const size_t numbers = (size_t)work->band + (PANELS_AT_ONCE * MOST_TERMS + (size_t)work->at.tile->rows) * columns;
    return MOST_TERMS * sizeof(Run) + n_rows * (sizeof(float *) + sizeof(float *)) + numbers * sizeof(float);
}

static Scratch scratch_in(const Convolution *work, char *memory)
{
    const Tile *tile = work->at.tile;
    Scratch scratch = {.runs = (Run *)memory};
    scratch.rows = (const float **)(scratch.runs + MOST_TERMS);
    scratch.out = (float **)(scratch.rows + work->n_rows);
    scratch.panels = (float *)(scratch.out + work->n_rows);
    scratch.spare = scratch.panels + PANELS_AT_ONCE * MOST_TERMS * tile->columns;
    scratch.room = scratch.spare + tile->rows * tile->columns;
    return scratch;
}

/* All windows of a block by one panel. */
static void multiply_panel(
    const Windows *at, const Scratch *scratch, npy_intp n_rows, int n_runs, const float *panel, npy_intp filter, int add
)
{
    const Tile *tile = at->tile;
    const npy_intp rest = at->y.size[4] - filter, n = rest < tile->columns ? rest : tile->columns;
    for (npy_intp first = 0; first < n_rows; first += tile->rows) {
        const float *rows[MOST_ROWS];
        float *out[MOST_ROWS];
        for (npy_intp i = 0; i < tile->rows; i++) {
            const int real = first + i < n_rows;
            rows[i] = scratch->rows[real ? first + i : first];
            out[i] = real && n == tile->columns ? scratch->out[first + i] + filter : scratch->spare + i * tile->columns;
            if (add && real && n < tile->columns) {
                memcpy(out[i], scratch->out[first + i] + filter, (size_t)n * sizeof(float));
            }
        }
        tile->multiply(rows, 1, scratch->runs, n_runs, panel, out, add, NULL);
        for (npy_intp i = 0; n < tile->columns && i < tile->rows && first + i < n_rows; i++) {
            memcpy(scratch->out[first + i] + filter, out[i], (size_t)n * sizeof(float));
        }
    }
}

/* terms * chunk / chunks, whose product may wrap. */
static npy_intp begin_of_chunk(const Convolution *work, npy_intp chunk)
{
    return work->terms / work->chunks * chunk + work->terms % work->chunks * chunk / work->chunks;
}

static void convolve_block(const void *given, ptrdiff_t task, char *memory, Worker *worker)
{
    const Convolution *work = given;
    const Windows *at = &work->at;
    const Scratch scratch = scratch_in(work, memory);
    const Block block = block_of_windows(at, task / work->groups);
    const Band band = band_of_block(at, &block, scratch.room);
    find_rows(at, &block, &band, scratch.rows, scratch.out);
    const npy_intp columns = at->tile->columns, apart = MOST_TERMS * columns;
    const npy_intp begin = task % work->groups * work->panels * columns, wanted = begin + work->panels * columns;
    const npy_intp end = wanted < at->y.size[4] ? wanted : at->y.size[4];
    for (npy_intp chunk = 0; chunk < work->chunks && !is_stopped(worker); chunk++) {
        const npy_intp first = begin_of_chunk(work, chunk), last = begin_of_chunk(work, chunk + 1);
        const int n_runs = runs_of_terms(at, &band, first, last, scratch.runs);
        for (npy_intp filter = begin, next; filter < end; filter = next) {
            next = filter + PANELS_AT_ONCE * columns < end ? filter + PANELS_AT_ONCE * columns : end;
            lay_filters(at, first, last, filter, next - filter, scratch.panels, apart);
            const float *panel = scratch.panels;
            for (npy_intp one = filter; one < next; one += columns, panel += apart) {
                multiply_panel(at, &scratch, windows_of_block(&block), n_runs, panel, one, chunk > 0);
            }
        }
    }
}

PyObject *convolve(PyObject *self, PyObject *args)
{
    (void)self;
    Convolution work;
    Windows *at = &work.at;
    if (!windows_of_arguments(args, 0, at) || !windows_cut(at, ROWS_OF_BLOCK)) {
        return NULL;
    }
    const Block block = block_of_windows(at, 0);
    work.n_rows = windows_of_block(&block);
    work.band = band_numbers(at);
    work.terms = at->w.size[0] * at->w.size[1] * at->w.size[2] * at->w.size[3];
    work.chunks = (work.terms + MOST_TERMS - 1) / MOST_TERMS;
    const npy_intp panels = (at->y.size[4] + at->tile->columns - 1) / at->tile->columns;
    const npy_intp wanted = (TASKS_OF_THREAD * at->threads + at->blocks - 1) / at->blocks;
    work.panels = at->threads == 1 || wanted <= 1 ? panels : (panels + wanted - 1) / wanted;
    work.groups = (panels + work.panels - 1) / work.panels;
    const npy_intp tasks = at->blocks * work.groups, at_once = tasks < at->threads ? tasks : at->threads;
    float *padded = NULL;
    if ((double)at_once * (double)work.band > padded_numbers(at)) { /* in memory, and mostly in time, too */
        padded = windows_pad(at);
        work.band = 0;
        if (padded == NULL) {
            return NULL;
        }
    }
    const int done = do_tasks(convolve_block, &work, tasks, at->threads, bytes_of_scratch(&work));
    free(padded);
    return done ? Py_NewRef(Py_None) : NULL;
}
