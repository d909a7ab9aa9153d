/* Walking a program: no allocation, no call into Python, nothing but loops over memory. */
#include <string.h>

#include "program.h"

/* Work after which the clock is looked at: about 30 microseconds of additions. */
#define LOOK 65536

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

int program_run(const Program *program, char *const slots[], int (*elapsed)(void *), void *context)
{
    const char *at = program->memory, *end = at + program->used;
    npy_intp work = 0;
    while (at < end) {
        const Instruction *in = (const Instruction *)at;
        call(in, slots);
        at += sizeof(Instruction) + in->words_used * sizeof(npy_intp);
        work += in->work + 64; /* the call itself counts as well */
        if (work > LOOK) {
            work = 0;
            if (elapsed(context)) {
                return 1;
            }
        }
    }
    return 0;
}
