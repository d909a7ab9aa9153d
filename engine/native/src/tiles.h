/* Tiles: the small products of matrices that convolutions are made of, for the processor that is there. */
#ifndef LIMELIGHT_TILES_H
#define LIMELIGHT_TILES_H

#include <stddef.h>

#define MOST_ROWS 8
#define MOST_COLUMNS 32
#define CACHE_LINE 64

/* Numbers of a row that are multiplied one after the other: from where, and how many. */
typedef struct {
    ptrdiff_t offset, length;
} Run;

/* Adds to ROWS rows of COLUMNS numbers the products of the numbers of `rows`, `step` apart along the runs, with the rows
 * of the panel, which lie one behind the other: out[i][j] (+)= sum over k of rows[i][k] * panel[k][j]. What is lost by
 * the rounding of `out` is kept in ROWS * COLUMNS numbers for the next time, zeros at first, or left alone for NULL. */
typedef void (*TileFunction)(
    const float *const *rows, ptrdiff_t step, const Run *runs, int n_runs, const float *panel, float *const *out, int add,
    float *lost
);

typedef struct {
    int rows, columns;
    TileFunction multiply;
} Tile;

/* NULL where the compiler knows no vectors. */
const Tile *tile_of_processor(void);

#endif
