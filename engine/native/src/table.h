/* The type Table: a program with its constants, called like a function of arrays. */
#ifndef LIMELIGHT_TABLE_H
#define LIMELIGHT_TABLE_H

#include "numpy_api.h"

extern PyTypeObject TableType;

#endif
