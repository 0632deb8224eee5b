/* shadow: the shadow tables of shared and global memory. The public header of this module. */
#ifndef CONSAN_SHADOW_MODULE_H
#define CONSAN_SHADOW_MODULE_H

#include "cell.h"
#include "global.h"
#include "table.h"

#endif
