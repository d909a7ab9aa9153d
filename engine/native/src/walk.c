/* Walking a program: no allocation, no call into Python, nothing but loops over memory. */
#include <string.h>

#include "program.h"
#include "workers.h"

/* Work after which the clock is looked at: about 30 microseconds of additions. */
#define LOOK 65536

/* Work up to which the GIL is kept: 1 to 5 microseconds of arithmetic, 0.1 ms of powers. To wake a thread that waits for it
 * takes 7 to 15 microseconds, after which it is taken again. Who keeps it waits for no other thread, so that there is no
 * deadlock: blocks, which the pool may share, let it go, and BLAS, whose threads never ask for it, shares out no product as
 * small as this (OpenBLAS from 9216 multiplications on). */
#define SHORT 8192

/* Blocks that a worker takes at a time. */
#define BLOCKS_OF_TASK 16

static void call_over_axes(const Instruction *in, char *args[], const npy_intp *dims, const npy_intp *steps)
{
    const npy_intp *axes = steps + in->steps;
    const int n = in->operands, per_axis = 1 + n;
    npy_intp position[NPY_MAXDIMS] = {0};
    for (;;) {
        char *now[MOST_OPERANDS];
        memcpy(now, args, sizeof(now));
        in->function(now, dims, steps, in->data);
        int axis = in->axes - 1;
        for (; axis >= 0; axis--) {
            const npy_intp *here = axes + (npy_intp)axis * per_axis;
            if (++position[axis] < here[0]) {
                for (int k = 0; k < n; k++) {
                    args[k] += here[1 + k];
                }
                break;
            }
            position[axis] = 0;
            for (int k = 0; k < n; k++) {
                args[k] -= (here[0] - 1) * here[1 + k];
            }
        }
        if (axis < 0) {
            return;
        }
    }
}

static void call(const Instruction *in, char *const slots[])
{
    char *args[MOST_OPERANDS] = {NULL};
    const npy_intp *word = in->words;
    for (int k = 0; k < in->operands; k++, word += 2) {
        args[k] = slots[word[0]] + word[1];
    }
    const npy_intp *steps = word + in->dims;
    if (in->axes == 0) {
        in->function(args, word, steps, in->data);
    } else {
        call_over_axes(in, args, word, steps);
    }
}

static void call_nest(const Instruction *in, char *const slots[])
{
    const npy_intp *word = in->words;
    char *args[3] = {slots[word[0]] + word[1], slots[word[2]] + word[3], slots[word[4]] + word[5]};
    in->nest(args, (const NestAxis *)(word + 6));
}

static const Instruction *following(const Instruction *in)
{
    return (const Instruction *)((const char *)(in->words + in->words_used));
}

typedef struct {
    Watch *watch;
    npy_intp work;
} Pace;

/* Before work is done. */
static void let_gil_go_if_long(const Pace *pace, npy_intp work)
{
    if (pace->work + work > SHORT) {
        let_gil_go(pace->watch);
    }
}

/* Counts work; nonzero where the run is to end. The call of a loop counts as well. */
static int is_over(Pace *pace, npy_intp work)
{
    pace->work += work + 64;
    if (pace->work <= LOOK) {
        return 0;
    }
    pace->work = 0;
    return look_for_signals(pace->watch);
}

/* Runs the instructions behind `head` for the block that begins at an element, in the memory of a thread; returns the
 * first one behind them. */
static const Instruction *run_block(const Instruction *head, char *const slots[], npy_intp start, int thread)
{
    const npy_intp rest = head->words[1] - start, count = rest < head->words[0] ? rest : head->words[0];
    const Instruction *in = following(head);
    for (npy_intp i = 0; i < head->words[2]; i++, in = following(in)) {
        const npy_intp *word = in->words, *lane = word + in->words_used - in->operands, *advance = lane - in->operands;
        char *args[MOST_OPERANDS];
        for (int k = 0; k < in->operands; k++, word += 2) {
            args[k] = slots[word[0]] + word[1] + start * advance[k] + thread * lane[k];
        }
        in->function(args, &count, word + 1, in->data);
    }
    return in;
}

typedef struct {
    const Instruction *head;
    char *const *slots;
} SharedRun;

static void run_task(const void *given, ptrdiff_t task, char *scratch, Worker *worker)
{
    (void)scratch;
    const SharedRun *run = given;
    const npy_intp block = run->head->words[0], total = run->head->words[1];
    npy_intp start = task * BLOCKS_OF_TASK * block;
    for (int i = 0; i < BLOCKS_OF_TASK && start < total && !is_stopped(worker); i++, start += block) {
        run_block(run->head, run->slots, start, number_of_worker(worker));
    }
}

/* Runs the instructions behind `head` block by block; the first one behind them, or NULL where the run is over. */
static const Instruction *run_blocks(const Instruction *head, char *const slots[], Pace *pace)
{
    const npy_intp block = head->words[0], total = head->words[1], members = head->words[2];
    const int threads = (int)head->words[3];
    let_gil_go(pace->watch);
    if (threads > 1) {
        const SharedRun run = {head, slots};
        const npy_intp blocks = (total - 1) / block + 1;
        pace->work = 0;
        if (!do_tasks_without_gil(run_task, &run, (blocks - 1) / BLOCKS_OF_TASK + 1, threads, pace->watch)) {
            return NULL;
        }
        const Instruction *in = following(head);
        for (npy_intp i = 0; i < members; i++) {
            in = following(in);
        }
        return in;
    }
    const Instruction *in = NULL;
    for (npy_intp start = 0; start < total; start += block) {
        in = run_block(head, slots, start, 0);
        if (is_over(pace, members * block)) {
            return NULL;
        }
    }
    return in;
}

/* Points the places of rows to where they are in a step. */
static void place_rows(const npy_intp *words, const npy_intp *end, npy_intp step, char *slots[])
{
    for (; words < end; words += WORDS_OF_ROW) {
        slots[words[0]] = slots[words[1]] + words[2] + step * words[3];
    }
}

ProgramEnd program_run(const Program *program, char *slots[], npy_intp counters[], Watch *watch)
{
    const Instruction *in = (const Instruction *)program->memory;
    const Instruction *end = (const Instruction *)(program->memory + program->used);
    Pace pace = {watch, 0};
    while (in < end) {
        const npy_intp *words = in->words, *behind = words + in->words_used;
        npy_intp target = -1;
        let_gil_go_if_long(&pace, in->work);
        switch (in->kind) {
        case CALL:
            call(in, slots);
            break;
        case NEST:
            call_nest(in, slots);
            break;
        case RUN:
            in = run_blocks(in, slots, &pace);
            if (in == NULL) {
                return PROGRAM_INTERRUPTED;
            }
            continue;
        case GUARD:
            if (!slots[words[0]][words[1]]) {
                return PROGRAM_GUARDED;
            }
            break;
        case BRANCH:
            if (!slots[words[0]][words[1]]) {
                target = words[2];
            }
            break;
        case JUMP:
            target = words[0];
            break;
        case BEGIN:
            counters[words[0]] = 0;
            place_rows(words + 1, behind, 0, slots);
            break;
        case AGAIN:
            if (counters[words[0]] + 1 < words[1]) {
                place_rows(words + 3, behind, ++counters[words[0]], slots);
                target = words[2];
            }
            break;
        }
        if (is_over(&pace, in->work)) {
            return PROGRAM_INTERRUPTED;
        }
        in = target < 0 ? following(in) : (const Instruction *)(program->memory + target);
    }
    return PROGRAM_DONE;
}
