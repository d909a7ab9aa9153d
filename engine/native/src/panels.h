/* Panels: matrices of few columns, one row behind the other, as tiles read them. */
#ifndef LIMELIGHT_PANELS_H
#define LIMELIGHT_PANELS_H

#include <stddef.h>

/* panel[k][j] = from[k * row + j * column] for k < length and j < n; zeros from n to `columns`. */
void lay_panel(
    const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t length, ptrdiff_t n, ptrdiff_t columns, float *panel
);

/* The same for more than `columns` columns, in panels that are `apart`. Where the numbers of a row lie side by side, they
 * are read as they lie: by panels, of wide rows each number comes from further than the second cache. */
void lay_panels(
    const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t length, ptrdiff_t n, ptrdiff_t columns, float *panel,
    ptrdiff_t apart
);

#endif
