/* Windows of a convolution over three spatial axes, and the blocks in which they are gone through. All steps are in
 * numbers (floats), not bytes; channels and filters lie side by side. */
#ifndef LIMELIGHT_WINDOWS_H
#define LIMELIGHT_WINDOWS_H

#include "numpy_api.h"
#include "tiles.h"

#define SPACE 3
#define MOST_SEEN 3e13 /* numbers: an address space of 47 bits holds no more */

typedef struct {
    float *data;
    npy_intp size[5], step[5];
} Numbers;

/* x: (images, *space, channels). w: (*window, channels, filters). y: (images, *windows, filters). */
typedef struct {
    Numbers x, w, y;
    npy_intp stride[SPACE], dilation[SPACE], pad[SPACE];
    npy_intp reach[SPACE]; /* how far a window stretches */
    int inside;            /* no window sees a margin */
    int threads;
    const Tile *tile;
    npy_intp cut;    /* the axis that is cut into blocks, for each place along the axes before it */
    npy_intp each;   /* so many windows of that axis, or images, are a block */
    npy_intp pieces; /* of that axis; 0 where a block is several images */
    npy_intp blocks;
} Windows;

/* Some of the windows: those of whole images, or of one image between two places of an axis. */
typedef struct {
    npy_intp image, images;
    npy_intp first[SPACE], count[SPACE]; /* windows */
    npy_intp start[SPACE], extent[SPACE]; /* what they see of the space, margins included */
} Block;

/* Numbers with their margins: the steps between images and along the space. */
typedef struct {
    const float *data;
    npy_intp step[SPACE + 1];
} Band;

/* Reads (x, w, y, stride, dilation, pads, threads), of which y is written, or w; 0 with an error. */
int windows_of_arguments(PyObject *args, int writes_w, Windows *at);

/* Cuts the windows into blocks of about so many; 0 with an error where a block sees more than there are addresses. */
int windows_cut(Windows *at, npy_intp about);

npy_intp windows_of_block(const Block *block);
Block block_of_windows(const Windows *at, npy_intp index);

/* The places of an axis that are in the space, of so many from `start` on: how many, and behind how many others. */
npy_intp real_places(npy_intp start, npy_intp extent, npy_intp size, npy_intp *low);

/* The numbers that the largest block sees; 0 where no margin makes it necessary to copy them. */
npy_intp band_numbers(const Windows *at);

/* What a block sees: x itself where there are no margins, else a copy in `room`. */
Band band_of_block(const Windows *at, const Block *block, float *room);

/* The numbers of x with all its margins. In floats, which do not wrap. */
double padded_numbers(const Windows *at);

/* Has x be a copy of itself with its margins, which is to be freed; NULL with an error. */
float *windows_pad(Windows *at);

#endif
