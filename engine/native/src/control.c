/* Writing what leads a walk elsewhere than to the next instruction: guards, branches, jumps, and loops. */
#include <string.h>

#include "program.h"

static int wrong(const char *what)
{
    PyErr_Format(PyExc_ValueError, "an instruction %s", what);
    return -1;
}

/* Whether a byte is in the memory of its place. */
static int is_inside(const Memory *memory, npy_intp place, npy_intp offset)
{
    return place >= 0 && place < memory->places && offset >= 0 && offset < memory->sizes[place];
}

/* Whether a row stays in the memory of its base in all steps. */
static int row_stays_inside(const Row *row, npy_intp steps, const Memory *memory)
{
    if (row->place < memory->first_row || row->place >= memory->places || row->base < 0 ||
        row->base >= memory->places || row->base == row->place) {
        return 0;
    }
    const npy_intp size = memory->sizes[row->base];
    npy_intp first = row->offset, last = row->offset;
    return first >= 0 && first <= size && widen_range(&first, &last, steps, row->stride, size) &&
           memory->sizes[row->place] <= size - last;
}

static Row row_at(const npy_intp *words)
{
    return (Row){.place = words[0], .base = words[1], .offset = words[2], .stride = words[3]};
}

/* Takes note of the rows of a loop that begins: each begins in one place only. */
static int note_rows(Program *program, const npy_intp *words, npy_intp count, const Memory *memory)
{
    for (npy_intp i = 0; i < count; i++, words += WORDS_OF_ROW) {
        const Row row = row_at(words);
        if (program->n_rows >= memory->places - memory->first_row || !row_stays_inside(&row, 1, memory)) {
            return wrong("begins a row that leaves the memory of its place");
        }
        for (Py_ssize_t k = 0; k < program->n_rows; k++) {
            if (program->rows[k].place == row.place) {
                return wrong("begins a row that another one has begun");
            }
        }
        int is_known = row.base < memory->first_row; /* rows of rows need those first */
        for (Py_ssize_t k = 0; k < program->n_rows; k++) {
            is_known |= program->rows[k].place == row.base;
        }
        if (!is_known) {
            return wrong("begins a row of what has not begun");
        }
        program->rows[program->n_rows++] = row;
    }
    return 0;
}

/* The rows of a loop that goes on are those with which it began. */
static int check_rows(const Program *program, const npy_intp *words, npy_intp count, npy_intp steps,
                      const Memory *memory)
{
    for (npy_intp i = 0; i < count; i++, words += WORDS_OF_ROW) {
        const Row row = row_at(words);
        int is_known = 0;
        for (Py_ssize_t k = 0; k < program->n_rows; k++) {
            is_known |= memcmp(&program->rows[k], &row, sizeof(row)) == 0;
        }
        if (!is_known || !row_stays_inside(&row, steps, memory)) {
            return wrong("goes on with a row that leaves the memory of its place");
        }
    }
    return 0;
}

static const struct {
    const char *name;
    Kind kind;
    int words; /* before rows */
} CONTROLS[] = {{"guard", GUARD, 2}, {"branch", BRANCH, 3}, {"jump", JUMP, 1}, {"begin", BEGIN, 1}, {"again", AGAIN, 3}};

static int check_control(Program *program, const Instruction *in, npy_intp rows, const Memory *memory)
{
    const npy_intp *words = in->words;
    switch (in->kind) {
    case GUARD:
    case BRANCH:
        return is_inside(memory, words[0], words[1]) ? 0 : wrong("looks at memory outside of its place");
    case BEGIN:
    case AGAIN:
        if (words[0] < 0 || words[0] >= memory->counters) {
            return wrong("counts with a counter that is not there");
        }
        if (in->kind == BEGIN) {
            return note_rows(program, words + 1, rows, memory);
        }
        return words[1] < 1 ? wrong("repeats nothing") : check_rows(program, words + 3, rows, words[1], memory);
    default:
        return 0;
    }
}

int program_append_control(Program *program, PyObject *item, const Memory *memory)
{
    const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0));
    const Py_ssize_t given = PyTuple_GET_SIZE(item) - 1;
    size_t i = 0;
    while (name != NULL && i < sizeof(CONTROLS) / sizeof(CONTROLS[0]) && strcmp(CONTROLS[i].name, name) != 0) {
        i++;
    }
    if (name == NULL) {
        return -1;
    }
    if (i == sizeof(CONTROLS) / sizeof(CONTROLS[0])) {
        return wrong("has a name that tables do not know");
    }
    const Kind kind = CONTROLS[i].kind;
    const Py_ssize_t more = given - CONTROLS[i].words;
    if (more < 0 || more % WORDS_OF_ROW || (more && kind != BEGIN && kind != AGAIN)) {
        return wrong("has too few or too many words");
    }
    program->targets[program->items++] = (npy_intp)program->used;
    Instruction *in = program_reserve(program, kind, (size_t)given);
    if (in == NULL) {
        return -1;
    }
    for (Py_ssize_t k = 0; k < given; k++) {
        in->words[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(item, k + 1));
        if (in->words[k] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    program->count++;
    return check_control(program, in, more / WORDS_OF_ROW, memory);
}

/* Where an instruction holds its target; NULL for those that have none. */
static npy_intp *target_of(Instruction *in)
{
    switch (in->kind) {
    case BRANCH: return in->words + 2;
    case JUMP: return in->words;
    case AGAIN: return in->words + 2;
    default: return NULL;
    }
}

int program_end(Program *program, Py_ssize_t rows)
{
    if (program->n_rows != rows) {
        return wrong("is missing, with which a row begins");
    }
    for (Py_ssize_t i = 0; i < program->items; i++) {
        npy_intp *target = target_of((Instruction *)(program->memory + program->targets[i]));
        if (target == NULL) {
            continue;
        }
        if (*target < 0 || *target > program->items) {
            return wrong("leads to another one that is not there");
        }
        *target = *target == program->items ? (npy_intp)program->used : program->targets[*target];
    }
    PyMem_RawFree(program->targets);
    program->targets = NULL;
    return 0;
}
