/* Panels are written once for some hundred reads, and yet are a tenth of a convolution's time when each number is moved
 * by itself. */
#include "panels.h"

#include <string.h>

#if defined(__GNUC__)
#define SOON_READ(place) __builtin_prefetch(place)
#else
#define SOON_READ(place) ((void)(place))
#endif
#define ROWS_AHEAD 8

/* Rows whose numbers lie side by side, of `count` panels; inlined with a constant, so that a row is moved by a few wide
 * instructions. */
static inline void rows_of(
    const float *from, ptrdiff_t row, ptrdiff_t length, size_t columns, ptrdiff_t count, ptrdiff_t apart, float *panel
)
{
    for (ptrdiff_t k = 0; k < length; k++, from += row, panel += columns) {
        const ptrdiff_t ahead = k + ROWS_AHEAD < length ? ROWS_AHEAD * row : 0;
        for (ptrdiff_t p = 0; p < count; p++) {
            SOON_READ(from + ahead + (size_t)p * columns);
            memcpy(panel + p * apart, from + (size_t)p * columns, columns * sizeof(float));
        }
    }
}

static void whole_rows(
    const float *from, ptrdiff_t row, ptrdiff_t length, ptrdiff_t columns, ptrdiff_t count, ptrdiff_t apart, float *panel
)
{
    switch (columns) {
    case 6:
        rows_of(from, row, length, 6, count, apart, panel);
        break;
    case 8:
        rows_of(from, row, length, 8, count, apart, panel);
        break;
    case 16:
        rows_of(from, row, length, 16, count, apart, panel);
        break;
    case 32:
        rows_of(from, row, length, 32, count, apart, panel);
        break;
    default:
        rows_of(from, row, length, (size_t)columns, count, apart, panel);
    }
}

/* Columns whose numbers lie side by side: four by four, so that both sides are moved by whole vectors. Returns how many
 * rows that makes: a multiple of four. */
#if defined(__GNUC__)

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

static inline Four interleaved(Four a, Four b, int high)
{
#if defined(__clang__)
    return high ? __builtin_shufflevector(a, b, 2, 6, 3, 7) : __builtin_shufflevector(a, b, 0, 4, 1, 5);
#else
    typedef int Places __attribute__((vector_size(16)));
    return high ? __builtin_shuffle(a, b, (Places){2, 6, 3, 7}) : __builtin_shuffle(a, b, (Places){0, 4, 1, 5});
#endif
}

static ptrdiff_t whole_columns(const float *from, ptrdiff_t column, ptrdiff_t length, ptrdiff_t columns, float *panel)
{
    ptrdiff_t k = 0;
    for (; k + 4 <= length; k += 4, panel += 4 * columns) {
        for (ptrdiff_t j = 0; j + 4 <= columns; j += 4) {
            const float *at = from + j * column + k;
            const Four a = *(const Four *)at, b = *(const Four *)(at + column);
            const Four c = *(const Four *)(at + 2 * column), d = *(const Four *)(at + 3 * column);
            const Four ac = interleaved(a, c, 0), bd = interleaved(b, d, 0);
            const Four ac2 = interleaved(a, c, 1), bd2 = interleaved(b, d, 1);
            *(Four *)(panel + j) = interleaved(ac, bd, 0);
            *(Four *)(panel + columns + j) = interleaved(ac, bd, 1);
            *(Four *)(panel + 2 * columns + j) = interleaved(ac2, bd2, 0);
            *(Four *)(panel + 3 * columns + j) = interleaved(ac2, bd2, 1);
        }
    }
    return k;
}

#else

static ptrdiff_t whole_columns(const float *from, ptrdiff_t column, ptrdiff_t length, ptrdiff_t columns, float *panel)
{
    (void)from, (void)column, (void)length, (void)columns, (void)panel;
    return 0;
}

#endif

void lay_panel(
    const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t length, ptrdiff_t n, ptrdiff_t columns, float *panel
)
{
    if (n == columns && column == 1) {
        whole_rows(from, row, length, columns, 1, 0, panel);
        return;
    }
    const ptrdiff_t turned = n == columns && columns % 4 == 0 && row == 1;
    for (ptrdiff_t k = turned ? whole_columns(from, column, length, columns, panel) : 0; k < length; k++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            panel[k * columns + j] = from[k * row + j * column];
        }
        memset(panel + k * columns + n, 0, (size_t)(columns - n) * sizeof(float));
    }
}

void lay_panels(
    const float *from, ptrdiff_t row, ptrdiff_t column, ptrdiff_t length, ptrdiff_t n, ptrdiff_t columns, float *panel,
    ptrdiff_t apart
)
{
    const ptrdiff_t whole = column == 1 ? n / columns : 0;
    whole_rows(from, row, length, columns, whole, apart, panel);
    for (ptrdiff_t p = whole, begin = whole * columns; begin < n; p++, begin += columns) {
        const ptrdiff_t rest = n - begin;
        lay_panel(from + begin * column, row, column, length, rest < columns ? rest : columns, columns, panel + p * apart);
    }
}
