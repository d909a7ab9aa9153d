/* Frames are kept between runs: a page that is mapped anew costs more than what a small table computes in it. */
#include <stdint.h>
#include <string.h>

#include "frame.h"

#define ALIGNMENT 64
#define MOST_KEPT ((size_t)256 << 20) /* bytes that all frames hold which no run is using */

static size_t kept = 0;

static char *aligned(char *memory)
{
    return (char *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

Frame *frame_take(Frame **list, size_t places, size_t counters, size_t inputs, size_t results, size_t arena)
{
    Frame *frame = *list;
    if (frame != NULL) {
        *list = frame->next;
        kept -= frame->bytes;
        return frame;
    }
    const size_t slots = sizeof(Frame) + places * sizeof(char *), counted = slots + counters * sizeof(npy_intp);
    const size_t head = counted + inputs * sizeof(PyObject *), scalars = inputs + results;
    const size_t bytes = head + scalars * SCALAR + arena + 2 * ALIGNMENT;
    frame = PyMem_RawMalloc(bytes);
    if (frame == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    frame->next = NULL;
    frame->bytes = bytes;
    frame->counters = (npy_intp *)((char *)frame + slots);
    frame->held = (PyObject **)((char *)frame + counted);
    memset(frame->counters, 0, head - slots);
    frame->scalars = aligned((char *)frame + head);
    frame->arena = aligned(frame->scalars + scalars * SCALAR);
    return frame;
}

void frame_give_back(Frame **list, Frame *frame)
{
    if (kept + frame->bytes > MOST_KEPT) {
        PyMem_RawFree(frame);
        return;
    }
    kept += frame->bytes;
    frame->next = *list;
    *list = frame;
}

void frame_free_all(Frame **list)
{
    while (*list != NULL) {
        Frame *frame = *list;
        *list = frame->next;
        kept -= frame->bytes;
        PyMem_RawFree(frame);
    }
}
