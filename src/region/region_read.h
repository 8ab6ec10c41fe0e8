/*
 * What a region holds, slot by slot, from a private copy: checked, and never torn.
 *
 *	region_open(&region, path, 0, &problem);
 *	region_copy(&region, REGION_COPY_STATE);
 *	for (i = 0; i < region_slots(&region, REGION_LIVE); i++)
 *		if (region_live_at(&region, i, &live, &problem)) ...
 *
 * and then the ring, see region_ring.h. In this order nothing is missed: an operation that finishes
 * in between is in both, (comm, number) tells; one that is in neither does not exist.
 */
#ifndef REGION_READ_H
#define REGION_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "region/region_copy.h"
#include "region/region_layout.h"
#include "region/region_open.h"

/* Slots of a part that were copied; 0 when it was not. */
uint32_t region_slots(const struct region *region, enum region_part_index part);

/*
 * Slot by slot, by index. False: free, unstable while copied, or not acceptable; *problem (may be
 * NULL) then says what is not acceptable, NULL when nothing is. Texts come back terminated and
 * without control bytes.
 */
bool region_comm_at(const struct region *region, uint32_t index, struct region_comm *comm,
		    const char **problem);
bool region_live_at(const struct region *region, uint32_t index, struct region_live *live,
		    const char **problem);
bool region_proxy_at(const struct region *region, uint32_t index, struct region_proxy *proxy,
		     const char **problem);
bool region_total_at(const struct region *region, uint32_t index, struct region_total *total);
/* Is it one of a peer that moved something? */
bool region_link_is_used(const struct region_link *link);
bool region_link_at(const struct region *region, uint32_t index, struct region_link *link);

/* Was that live slot just being filled? Its operation is issued and cannot be read yet. */
bool region_live_is_filling(const struct region *region, uint32_t index);

/* Does this proxy operation belong to the live operation in slot `index`? */
bool region_proxy_is_of(const struct region_proxy *proxy, uint32_t index,
			const struct region_live *live);

/* The open transfers of a proxy operation: how many were put into steps, sorted by step. */
unsigned int region_steps(const struct region_proxy *proxy, struct region_step steps[WINDOW_STEPS]);

/* The text of an interned name; false when there is none. Also for ids below OP_NAME_INTERNED. */
bool region_name(const struct region *region, uint8_t id, char *text, size_t size);

/* The recorder's clock now; false when this is not its machine and boot, or the clock is not one.
 */
bool region_now(const struct region *region, uint64_t *now_ns);

/* The recorder's clock and wall time now; false under the same conditions. */
bool region_anchor(const struct region *region, struct clock_anchor *anchor);

/* Make the texts of a communicator terminated and free of control bytes. */
void region_clean_comm(struct comm_info *info);

/* A value of the info text, see info_text.h. */
bool region_info(const struct region *region, const char *key, char *value, size_t size);

#endif
