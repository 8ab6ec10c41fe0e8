/*
 * For NCCL_INSPECTOR_DUMP_VERBOSE: what each channel of an operation did, kept from when its detail comes by
 * until its record does. Bounded: when there is no room all are forgotten, and lines have fewer channels.
 */
#ifndef INSPECTOR_EVENTS_H
#define INSPECTOR_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "inspector/inspector_line.h"
#include "op/op_layout.h"

struct inspector_events_pool;

/* The region has details. NULL: no memory. */
struct inspector_events_pool *inspector_events_new(void);

/* Everything that is in the ring of details by now. */
void inspector_events_read(struct inspector_events_pool *pool, uint64_t now_ns);

/* The channels of this operation, by number, on the recorder's clock; how many. */
size_t inspector_events_of(const struct inspector_events_pool *pool, const struct op_record *op,
			   struct inspector_channel channels[static INSPECTOR_CHANNELS]);

void inspector_events_forget(struct inspector_events_pool *pool, const struct op_record *op);

#endif
