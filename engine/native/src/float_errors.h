/* Floating-point errors of a run: the flags of this thread, and whether the user asked NumPy for more than warnings. */
#ifndef LIMELIGHT_FLOAT_ERRORS_H
#define LIMELIGHT_FLOAT_ERRORS_H

#include "numpy_api.h"

/* Forgets what is flagged. */
void float_errors_clear(void);

/* Whether something is flagged, and the user's `numpy.errstate` raises, calls, prints or logs then; -1 with an error. */
int float_errors_matter(void);

#endif
