/* Programs: instructions one after the other in one piece of memory, checked when they are written. */
#ifndef LIMELIGHT_PROGRAM_H
#define LIMELIGHT_PROGRAM_H

#include "loop.h"
#include "watch.h"

/* What an instruction does, and what its `words` hold, one after the other.
 *
 * CALL: calls a loop, or as often as its outer axes have positions. Place and offset of each operand; the loop's dims;
 * its steps; and for each outer axis its length and a stride for each operand.
 *
 * NEST: a call over axes by a loop of our own (see nest.h). Place and offset of each operand; three axes.
 *
 * RUN: the instructions behind it go block by block through their elements, so that what one writes is in the cache for
 * the next. The elements of a block, those of all, the number of instructions, and the threads that share out blocks. Each
 * instruction has, in place of axes, what its operands advance by for each element: 0 where there is memory for one block
 * only, or one element for all; and then how far apart that memory is from one thread to the next.
 *
 * GUARD: where a byte is 0, the run ends. Its place and offset.
 *
 * BRANCH: where a byte is 0, the walk goes on elsewhere. Its place and offset, and the target.
 *
 * JUMP: the walk goes on elsewhere. The target.
 *
 * BEGIN: the first step of a counted loop: its counter is 0. The counter, and the rows (see `Row`).
 *
 * AGAIN: counts a step, and while there are more, goes back. The counter, the steps, the target, and the rows.
 *
 * Targets are the numbers of instructions while a program is written, and bytes from its begin afterwards.
 */
typedef enum { CALL, NEST, RUN, GUARD, BRANCH, JUMP, BEGIN, AGAIN } Kind;

/* A place that is another part of memory in each step: `base` is the place of the whole, from whose `offset` on steps are
 * `stride` bytes apart. */
typedef struct {
    npy_intp place;
    npy_intp base;
    npy_intp offset;
    npy_intp stride;
} Row;

#define WORDS_OF_ROW 4

typedef struct {
    union {
        PyUFuncGenericFunction function;
        NestFunction nest;
    };
    void *data;
    npy_intp work;                   /* about how many elements it touches */
    unsigned int words_used;
    unsigned char kind;
    unsigned char operands;
    unsigned char dims;
    unsigned char steps;
    unsigned char axes;
    npy_intp words[];
} Instruction;

typedef struct {
    char *memory;
    size_t used;
    size_t room;
    Py_ssize_t count;
    npy_intp *targets; /* while it is written: where each item begins, in bytes */
    Py_ssize_t items;
    Row *rows;         /* as their loops begin, in the order of these */
    Py_ssize_t n_rows;
} Program;

/* The memory that programs are written for: the bytes of each place, those of rows behind the others; and counters. */
typedef struct {
    const npy_intp *sizes;
    int places;
    int first_row;
    int counters;
} Memory;

#define MOST_WORK ((npy_intp)1 << (8 * sizeof(npy_intp) - 3)) /* what is added to it does not wrap */

/* Moves one end of a range of offsets by what an axis spans. 0 where it leaves the memory of so many bytes: whatever the
 * numbers are, nothing wraps. */
int widen_range(npy_intp *first, npy_intp *last, npy_intp length, npy_intp stride, npy_intp size);

/* The product of two positive numbers, or MOST_WORK where that is less. */
npy_intp bounded_product(npy_intp work, npy_intp more);

void program_clear(Program *program);

/* Makes room for the program of so many items, of which `n_rows` places are rows. */
int program_begin(Program *program, Py_ssize_t items, Py_ssize_t n_rows);

/* Appends what a Python tuple says (see the README). -1 with an exception where it is wrong. */
int program_append(Program *program, PyObject *item, const Memory *memory);

/* Appends (block, total, instructions). */
int program_append_run(Program *program, PyObject *item, const Memory *memory);

/* Appends (name, ...): a guard, or what leads the walk elsewhere. */
int program_append_control(Program *program, PyObject *item, const Memory *memory);

/* Checks what can only be seen at the end: that targets and rows are there. */
int program_end(Program *program, Py_ssize_t rows);

/* Room for an instruction, all zero but for its kind; NULL with MemoryError. */
Instruction *program_reserve(Program *program, Kind kind, size_t words);

typedef enum { PROGRAM_DONE, PROGRAM_INTERRUPTED, PROGRAM_GUARDED } ProgramEnd;

/* Runs all, without the GIL from where it takes more than some microseconds. Signals are looked for every now and then;
 * where a handler raises, the run ends there. */
ProgramEnd program_run(const Program *program, char *slots[], npy_intp counters[], Watch *watch);

#endif
