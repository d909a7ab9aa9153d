/* Loops of nests, and when they are taken. */
#include <string.h>

#include "nest.h"

#define MOST_WORK 65536  /* elements: a nest is not interrupted */
#define LONG_ENOUGH 64   /* elements in a row for which NumPy's loop is the quicker one */
#define WIDEST 4         /* accumulators beside one another */
#define FEW 256          /* elements that are in the cache, in whatever order they come */

#define AT(type, x) (*(type *)(x))

/* The axis along which all lie: strides are constants, so that compilers unroll and vectorise it. */
#define INNER(type, op, n, step_x, step_y)                                                                   \
    for (npy_intp k = 0; k < (n); k++) {                                                                     \
        AT(type, out + k * (npy_intp)sizeof(type)) = AT(type, x + k * (step_x)) op AT(type, y + k * (step_y)); \
    }

#define OVER_OUTER(body)                                                                                     \
    for (npy_intp i = 0; i < axes[0].length; i++) {                                                          \
        for (npy_intp j = 0; j < axes[1].length; j++) {                                                      \
            const char *x = args[0] + i * axes[0].strides[0] + j * axes[1].strides[0];                       \
            const char *y = args[1] + i * axes[0].strides[1] + j * axes[1].strides[1];                       \
            char *out = args[2] + i * axes[0].strides[2] + j * axes[1].strides[2];                           \
            body                                                                                             \
        }                                                                                                    \
    }

#define LENGTHS(type, op, n, step_x, step_y)                                                                 \
    if ((n) == 3) {                                                                                          \
        OVER_OUTER(INNER(type, op, 3, step_x, step_y))                                                       \
    } else if ((n) == 2) {                                                                                   \
        OVER_OUTER(INNER(type, op, 2, step_x, step_y))                                                       \
    } else if ((n) == 4) {                                                                                   \
        OVER_OUTER(INNER(type, op, 4, step_x, step_y))                                                       \
    } else {                                                                                                 \
        OVER_OUTER(INNER(type, op, n, step_x, step_y))                                                       \
    }

#define MAP(name, type, op)                                                                                  \
    static void name(char *const args[], const NestAxis axes[])                                              \
    {                                                                                                        \
        const npy_intp n = axes[2].length, item = sizeof(type);                                              \
        const npy_intp *step = axes[2].strides;                                                              \
        if (step[2] == item && step[0] == item && step[1] == item) {                                         \
            LENGTHS(type, op, n, (npy_intp)sizeof(type), (npy_intp)sizeof(type))                             \
        } else if (step[2] == item && step[0] == item && step[1] == 0) {                                     \
            LENGTHS(type, op, n, (npy_intp)sizeof(type), 0)                                                  \
        } else if (step[2] == item && step[0] == 0 && step[1] == item) {                                     \
            LENGTHS(type, op, n, 0, (npy_intp)sizeof(type))                                                  \
        } else {                                                                                             \
            OVER_OUTER(for (npy_intp k = 0; k < n; k++) {                                                    \
                AT(type, out + k * step[2]) = AT(type, x + k * step[0]) op AT(type, y + k * step[1]);        \
            })                                                                                               \
        }                                                                                                    \
    }

/* Takes `count` rows of `width` elements into as many accumulators. */
#define TAKE_IN(type, op, width)                                                                             \
    for (npy_intp i = 0; i < axes[0].length; i++) {                                                          \
        const char *y = args[1] + i * axes[0].strides[1];                                                    \
        type *out = (type *)(args[2] + i * axes[0].strides[2]);                                              \
        type sum[width];                                                                                     \
        for (int k = 0; k < (width); k++) {                                                                  \
            sum[k] = out[k];                                                                                 \
        }                                                                                                    \
        for (npy_intp j = 0; j < axes[1].length; j++, y += axes[1].strides[1]) {                             \
            for (int k = 0; k < (width); k++) {                                                              \
                sum[k] = sum[k] op AT(type, y + k * step);                                                   \
            }                                                                                                \
        }                                                                                                    \
        for (int k = 0; k < (width); k++) {                                                                  \
            out[k] = sum[k];                                                                                 \
        }                                                                                                    \
    }

#define REDUCE(name, type, op)                                                                               \
    static void name(char *const args[], const NestAxis axes[])                                              \
    {                                                                                                        \
        const npy_intp step = axes[2].strides[1];                                                            \
        switch (axes[2].length) {                                                                            \
        case 1: TAKE_IN(type, op, 1) break;                                                                  \
        case 2: TAKE_IN(type, op, 2) break;                                                                  \
        case 3: TAKE_IN(type, op, 3) break;                                                                  \
        default: TAKE_IN(type, op, 4) break;                                                                 \
        }                                                                                                    \
    }

#define OF_TYPE(suffix, type)                                                                                \
    MAP(add_##suffix, type, +)                                                                               \
    MAP(subtract_##suffix, type, -)                                                                          \
    MAP(multiply_##suffix, type, *)                                                                          \
    MAP(divide_##suffix, type, /)                                                                            \
    REDUCE(sum_##suffix, type, +)                                                                            \
    REDUCE(product_##suffix, type, *)

OF_TYPE(float, npy_float)
OF_TYPE(double, npy_double)

static const struct {
    const char *name;
    NestFunctions of_float, of_double;
} FUNCTIONS[] = {
    {"add", {add_float, sum_float}, {add_double, sum_double}},
    {"subtract", {subtract_float, NULL}, {subtract_double, NULL}},
    {"multiply", {multiply_float, product_float}, {multiply_double, product_double}},
    {"divide", {divide_float, NULL}, {divide_double, NULL}},
};

const NestFunctions *nest_functions(const char *ufunc, int type)
{
    for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]); i++) {
        if (strcmp(FUNCTIONS[i].name, ufunc) == 0) {
            return type == NPY_FLOAT ? &FUNCTIONS[i].of_float : type == NPY_DOUBLE ? &FUNCTIONS[i].of_double : NULL;
        }
    }
    return NULL;
}

/* Sorts by the strides of the result, the largest first; a stable sort of three. */
static void sort_by_result(NestAxis axes[], int count)
{
    for (int i = 1; i < count; i++) {
        for (int k = i; k > 0 && axes[k - 1].strides[2] < axes[k].strides[2]; k--) {
            const NestAxis other = axes[k];
            axes[k] = axes[k - 1];
            axes[k - 1] = other;
        }
    }
}

static void insert_axis_of_one(NestAxis axes[], int count, int at)
{
    memmove(axes + at + 1, axes + at, (size_t)(count - at) * sizeof(NestAxis));
    axes[at] = (NestAxis){1, {0, 0, 0}};
}

/* As many as take part; 0 where an axis runs backwards, or there is too much to do. */
static int longer_than_one(NestAxis axes[], int count)
{
    npy_intp work = 1;
    int left = 0;
    for (int i = 0; i < count; i++) {
        const npy_intp *step = axes[i].strides;
        if (step[0] < 0 || step[1] < 0 || step[2] < 0) {
            return 0;
        }
        work *= axes[i].length;
        if (axes[i].length != 1) {
            axes[left++] = axes[i];
        }
    }
    return work > MOST_WORK ? 0 : left;
}

NestFunction nest_arrange(const NestFunctions *functions, NestAxis axes[], int count, int in_place, npy_intp itemsize)
{
    const NestAxis inner = axes[count - 1];
    count = longer_than_one(axes, count);
    if (count == 0 || count > NEST_AXES || (inner.length > 1 && inner.strides[2] == 0)) { /* which adds in pairs */
        return NULL;
    }
    sort_by_result(axes, count);
    if (axes[count - 1].strides[2] != 0) {
        const npy_intp *step = axes[count - 1].strides;
        if (axes[count - 1].length >= LONG_ENOUGH && step[2] == itemsize) {
            return NULL;
        }
        while (count < NEST_AXES) {
            insert_axis_of_one(axes, count++, 0);
        }
        return functions->map;
    }
    for (int i = 0; i < count; i++) { /* the first operand is the result */
        in_place = in_place && axes[i].strides[0] == axes[i].strides[2];
    }
    if (!in_place || functions->reduce == NULL || (count > 1 && axes[count - 2].strides[2] == 0)) {
        return NULL;
    }
    const NestAxis along = axes[count - 1];
    const int has_width = count > 1 && axes[count - 2].strides[2] == itemsize && axes[count - 2].length <= WIDEST;
    if (count - 1 - has_width > 1) {
        return NULL;
    }
    const NestAxis width = has_width ? axes[count - 2] : (NestAxis){1, {0, 0, 0}};
    const NestAxis rows = count - 1 - has_width ? axes[0] : (NestAxis){1, {0, 0, 0}};
    if (rows.strides[1] < along.strides[1] && rows.length * along.length * width.length > FEW) {
        return NULL; /* NumPy's loop goes along the memory */
    }
    axes[0] = rows;
    axes[1] = along;
    axes[2] = width;
    return functions->reduce;
}

/* Two lines of the cache hold the elements of a row or column of a tile. */
#define TILE 16
#define MOST_COPIED (1 << 20) /* elements, which take a millisecond or two */
#define FEWEST_COPIED 1024

static npy_intp smaller(npy_intp a, npy_intp b)
{
    return a < b ? a : b;
}

#define TRANSPOSE(name, type)                                                                                \
    static void name(char *const args[], const NestAxis axes[])                                              \
    {                                                                                                        \
        const npy_intp m = axes[1].length, n = axes[2].length;                                               \
        const npy_intp step = axes[1].strides[0], step_to = axes[1].strides[1], across = axes[2].strides[0]; \
        for (npy_intp i = 0; i < axes[0].length; i++) {                                                      \
            const char *from = args[0] + i * axes[0].strides[0];                                             \
            char *to = args[1] + i * axes[0].strides[1];                                                     \
            for (npy_intp row = 0; row < m; row += TILE) {                                                   \
                for (npy_intp column = 0; column < n; column += TILE) {                                      \
                    const npy_intp last_row = smaller(row + TILE, m), last = smaller(column + TILE, n);      \
                    for (npy_intp j = row; j < last_row; j++) {                                              \
                        type *const out = (type *)(to + j * step_to);                                        \
                        for (npy_intp k = column; k < last; k++) {                                           \
                            memcpy(out + k, from + j * step + k * across, sizeof(type));                     \
                        }                                                                                    \
                    }                                                                                        \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

TRANSPOSE(transpose_4, npy_uint32)
TRANSPOSE(transpose_8, npy_uint64)

/* Rows that lie in one piece in both. */
#define COPY_ROWS(name, type)                                                                                \
    static void name(char *const args[], const NestAxis axes[])                                              \
    {                                                                                                        \
        const npy_intp n = axes[2].length;                                                                   \
        for (npy_intp i = 0; i < axes[0].length; i++) {                                                      \
            for (npy_intp j = 0; j < axes[1].length; j++) {                                                  \
                const char *from = args[0] + i * axes[0].strides[0] + j * axes[1].strides[0];                \
                type *to = (type *)(args[1] + i * axes[0].strides[1] + j * axes[1].strides[1]);              \
                for (npy_intp k = 0; k < n; k++) {                                                           \
                    memcpy(to + k, from + k * (npy_intp)sizeof(type), sizeof(type));                         \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

COPY_ROWS(rows_4, npy_uint32)
COPY_ROWS(rows_8, npy_uint64)

/* Puts the axis along which the elements of an operand lie one after the other at a place; 0 where there is none. */
static int put_dense(NestAxis axes[], int count, int at, int operand, npy_intp itemsize)
{
    for (int i = 0; i < count; i++) {
        if (axes[i].strides[operand] == itemsize && axes[i].length > 1) {
            const NestAxis other = axes[i];
            axes[i] = axes[at];
            axes[at] = other;
            return 1;
        }
    }
    return 0;
}

NestFunction nest_of_copy(NestAxis axes[], int count, npy_intp itemsize)
{
    npy_intp work = 1;
    for (int i = 0; i < count; i++) {
        work *= axes[i].length;
        if (axes[i].strides[0] < 0 || axes[i].strides[1] <= 0) {
            return NULL;
        }
    }
    if (count < 2 || count > NEST_AXES || work > MOST_COPIED ||
        (itemsize != 4 && itemsize != 8)) {
        return NULL;
    }
    const int small = itemsize == 4;
    if (!put_dense(axes, count, count - 1, 1, itemsize)) {
        return NULL;
    }
    const int is_rows = axes[count - 1].strides[0] == itemsize;
    if (!is_rows && (work < FEWEST_COPIED || !put_dense(axes, count - 1, count - 2, 0, itemsize))) {
        return NULL;
    }
    while (count < NEST_AXES) {
        insert_axis_of_one(axes, count++, 0);
    }
    if (is_rows) {
        return small ? rows_4 : rows_8;
    }
    return small ? transpose_4 : transpose_8;
}
