/* Loops that NumPy has no ufunc for: copies, casts, and `where`.
 *
 * Casts from floating point to integers are missing on purpose: C leaves open what becomes of numbers out of range, and
 * NumPy's answer depends on how its compiler has vectorised the loop.
 */
#include <string.h>

#include "loop.h"

#define LOOP(name) static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *data)

#define COPY(bytes)                                                                      \
    LOOP(copy_##bytes)                                                                   \
    {                                                                                    \
        (void)data;                                                                      \
        const char *from = args[0];                                                      \
        char *to = args[1];                                                              \
        const npy_intp n = dims[0], step = steps[0], step_to = steps[1];                 \
        if (step == (bytes) && step_to == (bytes)) {                                     \
            memmove(to, from, (size_t)n * (bytes));                                      \
            return;                                                                      \
        }                                                                                \
        if (step_to == (bytes)) {                                                        \
            for (npy_intp i = 0; i < n; i++, from += step) {                             \
                memcpy(to + i * (bytes), from, (bytes));                                 \
            }                                                                            \
            return;                                                                      \
        }                                                                                \
        for (npy_intp i = 0; i < n; i++, from += step, to += step_to) {                  \
            memcpy(to, from, (bytes));                                                   \
        }                                                                                \
    }

/* A choice by bits, since half of all branches would be guessed wrong. */
#define CHOOSE(type, to, condition, x, y)                                                \
    {                                                                                    \
        type a, b;                                                                       \
        memcpy(&a, (x), sizeof(type));                                                   \
        memcpy(&b, (y), sizeof(type));                                                   \
        const type mask = (type)(0 - (type)(*(condition) != 0));                         \
        a = (type)((a & mask) | (b & (type)~mask));                                      \
        memcpy((to), &a, sizeof(type));                                                  \
    }

/* One element each, or one for all, of arrays in one piece: with constant strides compilers vectorise it. */
#define CHOOSE_ALL(type, step_x, step_y)                                                 \
    for (npy_intp i = 0; i < n; i++) {                                                   \
        CHOOSE(type, to + i * (npy_intp)sizeof(type), condition + i, x + i * (step_x), y + i * (step_y)) \
    }

#define WHERE(bytes, type)                                                               \
    LOOP(where_##bytes)                                                                  \
    {                                                                                    \
        (void)data;                                                                      \
        const char *condition = args[0], *x = args[1], *y = args[2];                     \
        char *to = args[3];                                                              \
        const npy_intp n = dims[0], step = steps[0], step_x = steps[1], step_y = steps[2], step_to = steps[3]; \
        if (step == 1 && step_to == (bytes) && step_x == (bytes) && step_y == (bytes)) { \
            CHOOSE_ALL(type, (bytes), (bytes))                                           \
        } else if (step == 1 && step_to == (bytes) && step_x == (bytes) && step_y == 0) { \
            CHOOSE_ALL(type, (bytes), 0)                                                 \
        } else if (step == 1 && step_to == (bytes) && step_x == 0 && step_y == (bytes)) { \
            CHOOSE_ALL(type, 0, (bytes))                                                 \
        } else {                                                                         \
            for (npy_intp i = 0; i < n; i++) {                                           \
                CHOOSE(type, to + i * step_to, condition + i * step, x + i * step_x, y + i * step_y) \
            }                                                                            \
        }                                                                                \
    }

LOOP(where_16)
{
    (void)data;
    const char *condition = args[0], *x = args[1], *y = args[2];
    char *to = args[3];
    for (npy_intp i = 0; i < dims[0]; i++) {
        memcpy(to, *condition ? x : y, 16);
        condition += steps[0], x += steps[1], y += steps[2], to += steps[3];
    }
}

COPY(1) COPY(2) COPY(4) COPY(8) COPY(16)
WHERE(1, npy_uint8) WHERE(2, npy_uint16) WHERE(4, npy_uint32) WHERE(8, npy_uint64)

#define CAST(from, source, to, target, expression)                                       \
    LOOP(cast_##from##_##to)                                                             \
    {                                                                                    \
        (void)data;                                                                      \
        const char *x = args[0];                                                         \
        char *y = args[1];                                                               \
        if (steps[0] == sizeof(source) && steps[1] == sizeof(target)) {                  \
            for (npy_intp i = 0; i < dims[0]; i++) {                                     \
                const source value = ((const source *)x)[i];                             \
                ((target *)y)[i] = (target)(expression);                                 \
            }                                                                            \
            return;                                                                      \
        }                                                                                \
        const npy_intp n = dims[0], step = steps[0], step_to = steps[1];                 \
        for (npy_intp i = 0; i < n; i++, x += step, y += step_to) {                      \
            const source value = *(const source *)x;                                     \
            *(target *)y = (target)(expression);                                         \
        }                                                                                \
    }

#define CASTS(X)                                                                         \
    X(BOOL, npy_bool, INT, npy_int, value != 0)                                          \
    X(BOOL, npy_bool, LONG, npy_long, value != 0)                                        \
    X(BOOL, npy_bool, LONGLONG, npy_longlong, value != 0)                                \
    X(BOOL, npy_bool, FLOAT, npy_float, value != 0)                                      \
    X(BOOL, npy_bool, DOUBLE, npy_double, value != 0)                                    \
    X(UBYTE, npy_ubyte, INT, npy_int, value)                                             \
    X(UBYTE, npy_ubyte, LONG, npy_long, value)                                           \
    X(UBYTE, npy_ubyte, FLOAT, npy_float, value)                                         \
    X(UBYTE, npy_ubyte, DOUBLE, npy_double, value)                                       \
    X(INT, npy_int, BOOL, npy_bool, value != 0)                                          \
    X(INT, npy_int, LONG, npy_long, value)                                               \
    X(INT, npy_int, LONGLONG, npy_longlong, value)                                       \
    X(INT, npy_int, FLOAT, npy_float, value)                                             \
    X(INT, npy_int, DOUBLE, npy_double, value)                                           \
    X(LONG, npy_long, BOOL, npy_bool, value != 0)                                        \
    X(LONG, npy_long, FLOAT, npy_float, value)                                           \
    X(LONG, npy_long, DOUBLE, npy_double, value)                                         \
    X(LONGLONG, npy_longlong, BOOL, npy_bool, value != 0)                                \
    X(LONGLONG, npy_longlong, FLOAT, npy_float, value)                                   \
    X(LONGLONG, npy_longlong, DOUBLE, npy_double, value)                                 \
    X(FLOAT, npy_float, BOOL, npy_bool, value != 0)                                      \
    X(FLOAT, npy_float, DOUBLE, npy_double, value)                                       \
    X(DOUBLE, npy_double, BOOL, npy_bool, value != 0)                                    \
    X(DOUBLE, npy_double, FLOAT, npy_float, value)

CASTS(CAST)

PyUFuncGenericFunction copy_loop(int from, int to, int itemsize)
{
    if (from == to) {
        switch (itemsize) {
        case 1: return copy_1;
        case 2: return copy_2;
        case 4: return copy_4;
        case 8: return copy_8;
        case 16: return copy_16;
        default: return NULL;
        }
    }
#define ENTRY(source_type, source, target_type, target, expression)                      \
    if (from == NPY_##source_type && to == NPY_##target_type) {                          \
        return cast_##source_type##_##target_type;                                       \
    }
    CASTS(ENTRY)
    return NULL;
}

PyUFuncGenericFunction where_loop(int itemsize)
{
    switch (itemsize) {
    case 1: return where_1;
    case 2: return where_2;
    case 4: return where_4;
    case 8: return where_8;
    case 16: return where_16;
    default: return NULL;
    }
}
