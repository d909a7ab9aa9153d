/* Tiles for each kind of processor. A product is added without being rounded where the processor has that as one step:
 * this file alone is compiled so, since tables promise NumPy's bits. */
#include "tiles.h"

#if defined(__GNUC__)

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

#define NAME multiply_plain
#define TARGET
#define ROWS 6
#define WIDTH 4
#include "tile.inc"

static const Tile plain = {6, 8, multiply_plain};

#if defined(__x86_64__)

#define NAME multiply_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define ROWS 6
#define WIDTH 8
#include "tile.inc"

#define NAME multiply_avx512
#define TARGET __attribute__((target("avx512f")))
#define ROWS 8
#define WIDTH 16
#include "tile.inc"

static const Tile avx2 = {6, 16, multiply_avx2}, avx512 = {8, 32, multiply_avx512};

const Tile *tile_of_processor(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        return &avx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2 : &plain;
}

#else

const Tile *tile_of_processor(void)
{
    return &plain;
}

#endif

#else

const Tile *tile_of_processor(void)
{
    return NULL;
}

#endif
