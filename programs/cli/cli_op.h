/* One operation as JSON: the fields of docs/DUMP.md, which a test compares with these. */
#ifndef CLI_OP_H
#define CLI_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "recording/recording.h"
#include "view/json.h"

/* Into the object that is open: who, where, what, when. */
void cli_op_json(struct json *json, const struct recording_process *process,
		 const struct op_record *op);
void cli_detail_json(struct json *json, const struct recording_process *process,
		     const struct op_detail *detail);

/* False when the record has no duration, or times that contradict each other. */
bool cli_op_duration(const struct op_record *op, uint64_t *ns);

#endif
