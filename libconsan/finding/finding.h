/* finding: rules, findings, their history and suppressions, and result files. The public
 * header of this module. */
#ifndef CONSAN_FINDING_H
#define CONSAN_FINDING_H

#include "banks.h"
#include "edit.h"
#include "group.h"
#include "history.h"
#include "ptx_rules.h"
#include "recorder.h"
#include "rule_example.h"
#include "suppress.h"
#include "types.h"
#include "results/json.h"
#include "results/results.h"

#endif
