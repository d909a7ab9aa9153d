/* Nests: elementwise arithmetic over a few short axes as loops of our own, where calls of NumPy's would take longer than
 * their work. Sums, differences, products and quotients are the numbers nearest to the true ones, so any loop finds the
 * same bits; what is added up is added in the order of the calls.
 */
#ifndef LIMELIGHT_NEST_H
#define LIMELIGHT_NEST_H

#include "numpy_api.h"

#define NEST_AXES 3
#define NEST_WORDS (NEST_AXES * 4)

/* The slowest axis first: its length, and the stride of each of three operands in bytes, the result last. */
typedef struct {
    npy_intp length;
    npy_intp strides[3];
} NestAxis;

typedef void (*NestFunction)(char *const args[], const NestAxis axes[]);

/* What may run instead of a ufunc's loop for one type number of all its operands: element by element, and where the
 * result is the first operand and stands still along the middle axis, along which the second one is taken into it. */
typedef struct {
    NestFunction map;
    NestFunction reduce;
} NestFunctions;

/* Those of a ufunc by its name; NULL where there are none. */
const NestFunctions *nest_functions(const char *ufunc, int type);

/* Puts axes in an order that a nest can have, `count` of them, of which the last is that of the loop's own dimension; and
 * says which function runs it. NULL where NumPy's loop is to be called. `itemsize` is that of all operands. */
NestFunction nest_arrange(const NestFunctions *functions, NestAxis axes[], int count, int in_place, npy_intp itemsize);

/* The same for a copy of elements of that many bytes from the first operand to the second one (the strides of a third
 * are nobody's): where one runs along the memory when the other one does not, it goes by tiles. */
NestFunction nest_of_copy(NestAxis axes[], int count, npy_intp itemsize);

#endif
