/* Writing programs: each instruction is checked against the memory that its operands have. */
#include <string.h>

#include "program.h"

void program_clear(Program *program)
{
    PyMem_RawFree(program->memory);
    memset(program, 0, sizeof(*program));
}

static Instruction *reserve(Program *program, size_t bytes)
{
    if (program->used + bytes > program->room) {
        const size_t room = 2 * (program->used + bytes);
        char *memory = PyMem_RawRealloc(program->memory, room);
        if (memory == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        program->memory = memory;
        program->room = room;
    }
    Instruction *instruction = (Instruction *)(program->memory + program->used);
    memset(instruction, 0, bytes);
    program->used += bytes;
    return instruction;
}

/* Reads a tuple of integers of the given length. */
static int read_words(PyObject *tuple, npy_intp *words, Py_ssize_t count)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "an instruction needs a tuple of %zd integers here, got %R", count, tuple);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        words[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (words[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

/* Moves one end of a range of offsets by what an axis spans. */
static void widen(npy_intp *first, npy_intp *last, npy_intp length, npy_intp stride)
{
    if (stride < 0) {
        *first += (length - 1) * stride;
    } else {
        *last += (length - 1) * stride;
    }
}

/* Whether an operand stays in the memory of its place. Lengths are at least 1. */
static int stays_inside(const Instruction *in, const Loop *loop, int operand, const npy_intp sizes[], int places)
{
    const npy_intp *dims = in->words + 2 * in->operands, *steps = dims + in->dims, *axes = steps + in->steps;
    const npy_intp place = in->words[2 * operand];
    if (place < 0 || place >= places) {
        return 0;
    }
    npy_intp first = in->words[2 * operand + 1], last = first;
    widen(&first, &last, dims[0], steps[operand]);
    int core = in->operands;
    for (int other = 0; other <= operand; other++) {
        int which[MOST_DIMS];
        const int count = loop_core_dims(loop, other, which);
        for (int i = 0; i < count; i++, core++) {
            if (other == operand) {
                widen(&first, &last, dims[which[i]], steps[core]);
            }
        }
    }
    for (int i = 0; i < in->axes; i++, axes += 1 + in->operands) {
        widen(&first, &last, axes[0], axes[1 + operand]);
    }
    return first >= 0 && last + loop->itemsizes[operand] <= sizes[place];
}

static int check(Instruction *in, const Loop *loop, const npy_intp sizes[], int places)
{
    const npy_intp *dims = in->words + 2 * in->operands, *axes = dims + in->dims + in->steps;
    npy_intp work = 1;
    for (int i = 0; i < in->dims; i++) {
        if (dims[i] < 1) {
            PyErr_SetString(PyExc_ValueError, "a loop of an instruction runs over nothing");
            return -1;
        }
        work *= dims[i];
    }
    for (int i = 0; i < in->axes; i++) {
        const npy_intp length = axes[(npy_intp)i * (1 + in->operands)];
        if (length < 1) {
            PyErr_SetString(PyExc_ValueError, "an axis of an instruction has no positions");
            return -1;
        }
        work *= length;
    }
    in->work = work;
    for (int k = 0; k < in->operands; k++) {
        if (!stays_inside(in, loop, k, sizes, places)) {
            PyErr_Format(PyExc_ValueError, "operand %d of an instruction leaves the memory of its place", k);
            return -1;
        }
    }
    return 0;
}

int program_append(Program *program, PyObject *item, const npy_intp sizes[], int places)
{
    Loop *loop;
    PyObject *operands, *dims, *steps, *axes;
    if (!PyArg_ParseTuple(item, "O!O!OOO!", &LoopType, &loop, &PyTuple_Type, &operands, &dims, &steps, &PyTuple_Type,
                          &axes)) {
        return -1;
    }
    int n_steps = loop->operands;
    for (int k = 0, which[MOST_DIMS]; k < loop->operands; k++) {
        n_steps += loop_core_dims(loop, k, which);
    }
    const Py_ssize_t per_axis = 1 + loop->operands, n_axes = PyTuple_GET_SIZE(axes) / per_axis;
    const Py_ssize_t words = 2 * loop->operands + loop->dims + n_steps + n_axes * per_axis;
    if (n_axes > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "an instruction has more axes than an array");
        return -1;
    }
    Instruction *in = reserve(program, sizeof(Instruction) + (size_t)words * sizeof(npy_intp));
    if (in == NULL) {
        return -1;
    }
    in->function = loop->function;
    in->data = loop->data;
    in->words_used = (unsigned int)words;
    in->operands = (unsigned char)loop->operands;
    in->dims = (unsigned char)loop->dims;
    in->steps = (unsigned char)n_steps;
    in->axes = (unsigned char)n_axes;
    npy_intp *at = in->words;
    if (read_words(operands, at, 2 * loop->operands) < 0) {
        return -1;
    }
    if (read_words(dims, at += 2 * loop->operands, loop->dims) < 0) {
        return -1;
    }
    if (read_words(steps, at += loop->dims, n_steps) < 0) {
        return -1;
    }
    if (read_words(axes, at += n_steps, n_axes * per_axis) < 0) {
        return -1;
    }
    program->count++;
    return check(in, loop, sizes, places);
}
