/* Between who writes a snapshot and who reads it; commands use recording.h. docs/SNAPSHOT.md has the rules. */
#ifndef RECORDING_SNAPSHOT_H
#define RECORDING_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "recording/recording.h"
#include "trace/trace_read.h"

/* op_record.reserved of what sits in a live slot. A record that is finished has 0 there. */
#define SNAPSHOT_OPEN UINT64_C(0x7fffffff)     /* open children */
#define SNAPSHOT_RETIRING UINT64_C(0x80000000) /* over, being moved to the ring */
#define SNAPSHOT_LIVE (UINT64_C(1) << 32)
#define SNAPSHOT_RECORDED (UINT64_C(1) << 33) /* the counts have it among the finished ones */

/* What makes a snapshot of a trace file whose blocks were read, info and counts among them: nothing when its
 * info does not say that it is one. `reader` is moved. ERR_NO_SPACE. */
enum status recording_snapshot_load(struct recording_process *process, struct recording_file *file,
				    struct trace_reader *reader);

#endif
