/* Programs: instructions one after the other in one piece of memory, checked when they are written. */
#ifndef LIMELIGHT_PROGRAM_H
#define LIMELIGHT_PROGRAM_H

#include "loop.h"

/* One call of a loop, or as many as its outer axes have positions.
 *
 * `words` holds, one after the other: place and offset of each operand; the loop's dims; its steps; and for each outer
 * axis its length and a stride for each operand.
 *
 * Without a function it begins a run of instructions that go block by block through their elements, so that what one
 * writes is in the cache for the next. Its words are then the elements of a block, those of all, and the number of
 * instructions. Each of these has, in place of axes, what its operands advance by for each element: 0 where there is
 * memory for one block only, or one element for all.
 *
 * With two words, place and offset, it is a guard: where the byte there is 0, the run ends.
 */
typedef struct {
    PyUFuncGenericFunction function;
    void *data;
    npy_intp work;                   /* about how many elements it touches */
    unsigned int words_used;
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
} Program;

void program_clear(Program *program);

/* Appends what a Python tuple says; the bytes of each place are in `sizes`. -1 with an exception where it is wrong. */
int program_append(Program *program, PyObject *item, const npy_intp sizes[], int places);

/* Appends (block, total, instructions): see `Instruction`. */
int program_append_run(Program *program, PyObject *item, const npy_intp sizes[], int places);

/* Appends (place, offset): a guard. */
int program_append_guard(Program *program, PyObject *item, const npy_intp sizes[], int places);

typedef enum { PROGRAM_DONE, PROGRAM_INTERRUPTED, PROGRAM_GUARDED } ProgramEnd;

/* Runs all, without the GIL. `elapsed` is called every now and then; when it returns nonzero, the run ends there. */
ProgramEnd program_run(const Program *program, char *const slots[], int (*elapsed)(void *), void *context);

#endif
