/* Writing programs: each instruction is checked against the memory that its operands have. */
#include <string.h>

#include "program.h"
#include "workers.h"

void program_clear(Program *program)
{
    PyMem_RawFree(program->memory);
    PyMem_RawFree(program->targets);
    PyMem_RawFree(program->rows);
    memset(program, 0, sizeof(*program));
}

int program_begin(Program *program, Py_ssize_t items, Py_ssize_t n_rows)
{
    program->targets = PyMem_RawCalloc((size_t)items + 1, sizeof(npy_intp));
    program->rows = PyMem_RawCalloc((size_t)n_rows + 1, sizeof(Row));
    if (program->targets == NULL || program->rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

Instruction *program_reserve(Program *program, Kind kind, size_t words)
{
    const size_t bytes = sizeof(Instruction) + words * sizeof(npy_intp);
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
    instruction->kind = (unsigned char)kind;
    instruction->words_used = (unsigned int)words;
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

int widen_range(npy_intp *first, npy_intp *last, npy_intp length, npy_intp stride, npy_intp size)
{
    if (length > 1 && (stride > size / (length - 1) || stride < -(size / (length - 1)))) {
        return 0;
    }
    if (stride < 0) {
        *first += (length - 1) * stride;
    } else {
        *last += (length - 1) * stride;
    }
    return *first >= 0 && *last <= size;
}

npy_intp bounded_product(npy_intp work, npy_intp more)
{
    return work > MOST_WORK / more ? MOST_WORK : work * more;
}

/* Whether an operand stays in the memory of its place, for `count` elements. Lengths are at least 1. */
static int stays_inside(const Instruction *in, const Loop *loop, int operand, npy_intp count, const Memory *memory)
{
    const npy_intp *dims = in->words + 2 * in->operands, *steps = dims + in->dims, *axes = steps + in->steps;
    const npy_intp place = in->words[2 * operand];
    if (place < 0 || place >= memory->places) {
        return 0;
    }
    const npy_intp size = memory->sizes[place];
    npy_intp first = in->words[2 * operand + 1], last = first;
    int inside = first >= 0 && first <= size && widen_range(&first, &last, count, steps[operand], size);
    int core = in->operands;
    for (int other = 0; other <= operand; other++) {
        int which[MOST_DIMS];
        const int n = loop_core_dims(loop, other, which);
        for (int i = 0; i < n; i++, core++) {
            if (other == operand) {
                inside = inside && widen_range(&first, &last, dims[which[i]], steps[core], size);
            }
        }
    }
    for (int i = 0; i < in->axes; i++, axes += 1 + in->operands) {
        inside = inside && widen_range(&first, &last, axes[0], axes[1 + operand], size);
    }
    return inside && loop->itemsizes[operand] <= size - last;
}

static int leaves(int operand)
{
    PyErr_Format(PyExc_ValueError, "operand %d of an instruction leaves the memory of its place", operand);
    return -1;
}

/* For how many elements of plain arithmetic one counts: rows by their bytes; sixteen where it may be slow, as sines of long
 * doubles and functions of other packages are. */
static npy_intp work_of_element(const Loop *loop)
{
    if (loop->rows_of >= 0) {
        return 1 + loop->itemsizes[loop->rows_of] / 8;
    }
    return loop->ufunc == NULL || loop->shares ? 1 : 16;
}

static int check(Instruction *in, const Loop *loop, const Memory *memory)
{
    const npy_intp *dims = in->words + 2 * in->operands, *axes = dims + in->dims + in->steps;
    npy_intp work = 1;
    for (int i = 0; i < in->dims; i++) {
        if (dims[i] < 1) {
            PyErr_SetString(PyExc_ValueError, "a loop of an instruction runs over nothing");
            return -1;
        }
        work = bounded_product(work, i == 1 && loop->ufunc == NULL ? 1 : dims[i]); /* of rows that are picked from, most are left alone */
    }
    for (int i = 0; i < in->axes; i++) {
        const npy_intp length = axes[(npy_intp)i * (1 + in->operands)];
        if (length < 1) {
            PyErr_SetString(PyExc_ValueError, "an axis of an instruction has no positions");
            return -1;
        }
        work = bounded_product(work, length);
    }
    in->work = bounded_product(work, work_of_element(loop));
    for (int k = 0; k < in->operands; k++) {
        if (!stays_inside(in, loop, k, dims[0], memory)) {
            return leaves(k);
        }
    }
    return 0;
}

/* Appends an instruction with room for `more` words behind those that the item has; NULL with an exception. */
static Instruction *append(Program *program, PyObject *item, int more, Loop **loop)
{
    PyObject *operands, *dims, *steps, *axes;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "O!OOOO!", &LoopType, loop, &operands, &dims, &steps,
                                                  &PyTuple_Type, &axes)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "an instruction of a table is a tuple");
        }
        return NULL;
    }
    const int n = (*loop)->operands;
    int n_steps = n;
    for (int k = 0, which[MOST_DIMS]; k < n; k++) {
        n_steps += loop_core_dims(*loop, k, which);
    }
    const Py_ssize_t n_axes = PyTuple_GET_SIZE(axes) / (1 + n);
    const Py_ssize_t words = 2 * n + (*loop)->dims + n_steps + n_axes * (1 + n) + more * n;
    if (n_axes > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "an instruction has more axes than an array");
        return NULL;
    }
    Instruction *in = program_reserve(program, CALL, (size_t)words);
    if (in == NULL) {
        return NULL;
    }
    in->function = (*loop)->function;
    in->data = (*loop)->data;
    in->operands = (unsigned char)n;
    in->dims = (unsigned char)(*loop)->dims;
    in->steps = (unsigned char)n_steps;
    in->axes = (unsigned char)n_axes;
    npy_intp *at = in->words;
    if (read_words(operands, at, 2 * n) < 0 || read_words(dims, at += 2 * n, in->dims) < 0 ||
        read_words(steps, at += in->dims, n_steps) < 0 || read_words(axes, at + n_steps, n_axes * (1 + n)) < 0) {
        return NULL;
    }
    program->count++;
    return in;
}

#define MOST_NESTED ((npy_intp)1 << 30) /* elements, so that nests can count theirs */

/* Makes of a call that has been checked a nest, where that is quicker. */
static int become_nest(Program *program, Instruction *in, const Loop *loop)
{
    if ((loop->nests == NULL && !loop->copies) || in->axes == 0 || in->axes > NEST_AXES || in->work > MOST_NESTED) {
        return 0;
    }
    const int n = in->operands;
    const npy_intp *dims = in->words + 2 * n, *steps = dims + 1, *outer = steps + n, work = in->work;
    npy_intp words[6] = {0};
    NestAxis axes[NEST_AXES + 1] = {{0, {0, 0, 0}}};
    memcpy(words, in->words, 2 * (size_t)n * sizeof(npy_intp));
    for (int i = 0; i < in->axes; i++, outer += 1 + n) {
        axes[i].length = outer[0];
        memcpy(axes[i].strides, outer + 1, (size_t)n * sizeof(npy_intp));
    }
    axes[in->axes].length = dims[0];
    memcpy(axes[in->axes].strides, steps, (size_t)n * sizeof(npy_intp));
    const int in_place = words[0] == words[4] && words[1] == words[5];
    const NestFunction nest = n == 2 ? nest_of_copy(axes, in->axes + 1, loop->itemsizes[0])
                                     : nest_arrange(loop->nests, axes, in->axes + 1, in_place, loop->itemsizes[0]);
    if (nest == NULL) {
        return 0;
    }
    if (n == 2) { /* a nest has three operands */
        words[4] = words[2];
        words[5] = words[3];
    }
    program->used = (size_t)((char *)in - program->memory);
    in = program_reserve(program, NEST, 6 + NEST_WORDS);
    if (in == NULL) {
        return -1;
    }
    in->nest = nest;
    in->work = work;
    in->operands = 3;
    memcpy(in->words, words, sizeof(words));
    memcpy(in->words + 6, axes, NEST_WORDS * sizeof(npy_intp));
    return 0;
}

static void note_item(Program *program)
{
    program->targets[program->items++] = (npy_intp)program->used;
}

int program_append(Program *program, PyObject *item, const Memory *memory)
{
    Loop *loop;
    note_item(program);
    Instruction *in = append(program, item, 0, &loop);
    return in == NULL || check(in, loop, memory) < 0 ? -1 : become_nest(program, in, loop);
}

/* Whether an operand of which there is a block for each thread stays in its memory. */
static int lanes_stay_inside(Instruction *in, const Loop *loop, int operand, npy_intp lane, npy_intp threads,
                             const Memory *memory)
{
    npy_intp *offset = in->words + 2 * operand + 1;
    const npy_intp first = *offset;
    if (lane < 0 || lane > MOST_WORK / threads) {
        return 0;
    }
    *offset = first + (threads - 1) * lane;
    const int inside = stays_inside(in, loop, operand, in->words[2 * in->operands], memory);
    *offset = first;
    return inside;
}

/* Reads for each operand of an instruction of a run what it advances by, and how far it is from thread to thread. */
static int read_advances(Instruction *in, const Loop *loop, PyObject *advances, PyObject *lanes, const npy_intp run[],
                         const Memory *memory)
{
    const npy_intp *steps = in->words + 2 * in->operands + in->dims;
    npy_intp *lane = in->words + in->words_used - in->operands, *advance = lane - in->operands;
    if (read_words(advances, advance, in->operands) < 0 ||
        (lanes != NULL && read_words(lanes, lane, in->operands) < 0)) {
        return -1;
    }
    for (int k = 0; k < in->operands; k++) {
        if ((advance[k] != 0 && (advance[k] != steps[k] || !stays_inside(in, loop, k, run[1], memory))) ||
            (lane[k] != 0 && (advance[k] != 0 || !lanes_stay_inside(in, loop, k, lane[k], run[3], memory)))) {
            return leaves(k);
        }
        if (run[3] > 1 && k >= loop->inputs && advance[k] == 0 && lane[k] == 0) {
            PyErr_SetString(PyExc_ValueError, "an instruction of a run that is shared writes to one memory on all threads");
            return -1;
        }
    }
    return 0;
}

/* Appends one instruction of a run: (instruction, advances), with what is between the memory of threads if it is shared. */
static int append_member(Program *program, PyObject *item, npy_intp run[], const Memory *memory)
{
    PyObject *instruction, *advances, *lanes = NULL;
    Loop *loop;
    if (!PyArg_ParseTuple(item, "O!O!|O!", &PyTuple_Type, &instruction, &PyTuple_Type, &advances, &PyTuple_Type,
                          &lanes)) {
        return -1;
    }
    Instruction *in = append(program, instruction, 2, &loop);
    if (in == NULL || check(in, loop, memory) < 0) {
        return -1;
    }
    if (in->axes != 0 || in->dims != 1 || in->words[2 * in->operands] != run[0]) {
        PyErr_SetString(PyExc_ValueError, "an instruction of a run has axes, or the length of no block");
        return -1;
    }
    if (!loop->shares) {
        run[3] = 1;
    }
    return read_advances(in, loop, advances, lanes, run, memory);
}

int program_append_run(Program *program, PyObject *item, const Memory *memory)
{
    PyObject *members;
    Py_ssize_t block, total, threads = 1;
    if (!PyArg_ParseTuple(item, "nnO!|n", &block, &total, &PyTuple_Type, &members, &threads)) {
        return -1;
    }
    if (threads < 1 || threads > MOST_THREADS) {
        PyErr_Format(PyExc_ValueError, "a run is shared by 1 to %d threads", MOST_THREADS);
        return -1;
    }
    if (block < 1 || total < block || total > MOST_WORK) {
        PyErr_SetString(PyExc_ValueError, "a run has fewer elements than a block, or more than can be counted");
        return -1;
    }
    note_item(program);
    npy_intp run[] = {block, total, PyTuple_GET_SIZE(members), threads};
    const size_t head = program->used;
    if (program_reserve(program, RUN, 4) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(members); i++) {
        PyObject *member = PyTuple_GET_ITEM(members, i);
        if (!PyTuple_Check(member) || append_member(program, member, run, memory) < 0) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "an instruction of a run is a tuple");
            }
            return -1;
        }
    }
    memcpy(((Instruction *)(program->memory + head))->words, run, sizeof(run)); /* memory may have moved meanwhile */
    return 0;
}
