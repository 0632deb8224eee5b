/* ptx: PTX text to IR, fatbins, descriptors and the operand rules that the executor and
 * GPU mode share. The public header of this module. */
#ifndef CONSAN_PTX_MODULE_H
#define CONSAN_PTX_MODULE_H

#include "constant.h"
#include "cubin.h"
#include "fatbin.h"
#include "flag.h"
#include "ir.h"
#include "link.h"
#include "loaded.h"
#include "order.h"
#include "ptx_site.h"
#include "refuse.h"
#include "tc_desc.h"
#include "tc_op.h"
#include "tc_shape.h"
#include "tmem_form.h"
#include "tmem_regs.h"
#include "unread.h"
#include "wg_desc.h"
#include "wgmma_regs.h"
#include "wmma.h"

#endif
