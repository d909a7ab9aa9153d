/* Loops over rows at places that are numbers of a run: picking rows of an array, writing or adding to them.
 *
 * A place below 0 counts from the end. One that is not there clears a flag, and nothing is read or written for it: the
 * program looks at the flag behind the loop. So no number of a run leads outside of the memory that was checked.
 */
#include <stdint.h>
#include <string.h>

#include "loop.h"

#define LOOP(name) static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *data)

/* The row that a place is; -1 where there is none. */
static inline npy_intp row_at(const char *place, npy_intp size, char *flag)
{
    npy_int64 row;
    memcpy(&row, place, sizeof(row));
    if (row < 0) {
        row += size;
    }
    if (row < 0 || row >= size) {
        *flag = 0;
        return -1;
    }
    return (npy_intp)row;
}

/* Operands: rows, places, flag, result. Dims: how many are picked, and of how many. */
#define GATHER(name, copy)                                                               \
    LOOP(name)                                                                           \
    {                                                                                    \
        const size_t width = (size_t)(uintptr_t)data;                                    \
        const char *from = args[0], *place = args[1];                                    \
        char *to = args[3];                                                              \
        (void)width;                                                                     \
        for (npy_intp i = 0; i < dims[0]; i++) {                                         \
            const npy_intp row = row_at(place, dims[1], args[2]);                        \
            if (row >= 0) {                                                              \
                const char *source = from + row * steps[4];                              \
                copy;                                                                    \
            }                                                                            \
            from += steps[0], place += steps[1], to += steps[3];                         \
        }                                                                                \
    }

/* Operands: rows, places, flag, the array whose rows are written. Dims: how many rows are given, and how many it has. */
#define PUT(name, copy)                                                                  \
    LOOP(name)                                                                           \
    {                                                                                    \
        const size_t width = (size_t)(uintptr_t)data;                                    \
        const char *source = args[0], *place = args[1];                                  \
        char *array = args[3];                                                           \
        (void)width;                                                                     \
        for (npy_intp i = 0; i < dims[0]; i++) {                                         \
            const npy_intp row = row_at(place, dims[1], args[2]);                        \
            if (row >= 0) {                                                              \
                char *to = array + row * steps[4];                                       \
                copy;                                                                    \
            }                                                                            \
            source += steps[0], place += steps[1], array += steps[3];                    \
        }                                                                                \
    }

#define COPY_WORD(type)                                                                  \
    type word;                                                                           \
    memcpy(&word, source, sizeof(word));                                                 \
    memcpy(to, &word, sizeof(word))

GATHER(gather_4, COPY_WORD(npy_uint32))
GATHER(gather_8, COPY_WORD(npy_uint64))
GATHER(gather_any, memmove(to, source, width))
PUT(put_4, COPY_WORD(npy_uint32))
PUT(put_8, COPY_WORD(npy_uint64))
PUT(put_any, memmove(to, source, width))

/* As PUT, but adds: in the order in which rows are given, as `numpy.add.at` does. */
#define ADD(name, type)                                                                  \
    LOOP(name)                                                                           \
    {                                                                                    \
        const npy_intp width = (npy_intp)(uintptr_t)data;                                \
        const char *source = args[0], *place = args[1];                                  \
        char *array = args[3];                                                           \
        for (npy_intp i = 0; i < dims[0]; i++) {                                         \
            const npy_intp row = row_at(place, dims[1], args[2]);                        \
            if (row >= 0) {                                                              \
                const type *x = (const type *)source;                                    \
                type *out = (type *)(array + row * steps[4]);                            \
                for (npy_intp k = 0; k < width; k++) {                                   \
                    out[k] += x[k];                                                      \
                }                                                                        \
            }                                                                            \
            source += steps[0], place += steps[1], array += steps[3];                    \
        }                                                                                \
    }

ADD(add_float, npy_float)
ADD(add_double, npy_double)
ADD(add_32, npy_uint32) /* integers wrap around, as NumPy's do */
ADD(add_64, npy_uint64)

/* Operands: places, flag, the same places counted from the front. Dims: how many, and of how many rows. `data` says
 * whether places below 0 are there. */
LOOP(count_from_front)
{
    const char *place = args[0];
    char *to = args[2];
    for (npy_intp i = 0; i < dims[0]; i++, place += steps[0], to += steps[2]) {
        npy_int64 given;
        memcpy(&given, place, sizeof(given));
        npy_int64 row = row_at(place, dims[1], args[1]);
        if (given < 0 && data == NULL) {
            *args[1] = 0;
        }
        if (row < 0) {
            row = 0;
        }
        memcpy(to, &row, sizeof(row));
    }
}

PyUFuncGenericFunction row_loop(const char *name, int type, npy_intp bytes, npy_intp *width)
{
    *width = bytes;
    if (strcmp(name, "gather") == 0) {
        return bytes == 4 ? gather_4 : bytes == 8 ? gather_8 : gather_any;
    }
    if (strcmp(name, "put") == 0) {
        return bytes == 4 ? put_4 : bytes == 8 ? put_8 : put_any;
    }
    if (strcmp(name, "add") != 0) {
        return NULL;
    }
    switch (type) {
    case NPY_FLOAT:
    case NPY_CFLOAT: *width = bytes / 4; return add_float;
    case NPY_DOUBLE:
    case NPY_CDOUBLE: *width = bytes / 8; return add_double;
    case NPY_INT: *width = bytes / 4; return add_32;
    case NPY_LONG:
    case NPY_LONGLONG: *width = bytes / number_size(type); return number_size(type) == 4 ? add_32 : add_64;
    default: return NULL;
    }
}

PyUFuncGenericFunction place_loop(void)
{
    return count_from_front;
}
