/*
 * A region once more. What is found goes into a process of its own first and changes places with what
 * was known when all of it could be read: who follows a process never sees half of a look.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "region/region_read.h"
#include "recording/recording_load.h"

#define SWAP(field)                                        \
	do {                                               \
		__typeof__(now->field) field = now->field; \
		now->field = before->field;                \
		before->field = field;                     \
	} while (0)

/* What is of the process for good (identity, files, region) stays where it is. */
static void change_places(struct recording_process *now, struct recording_process *before,
			  bool has_totals)
{
	SWAP(comms);
	SWAP(comm_count);
	SWAP(flights);
	SWAP(flight_count);
	SWAP(proxies);
	SWAP(proxy_count);
	SWAP(filling);
	SWAP(refused);
	SWAP(refused_why);
	/* Those of trace files reach further back. */
	if (now->file_count == 0) {
		SWAP(anchors);
		SWAP(anchor_count);
	}
	now->fresh_anchor = before->fresh_anchor;
	if (has_totals) {
		SWAP(totals);
		SWAP(total_count);
	}
	if (has_totals && recording_totals_has_links(now->follow)) {
		SWAP(links);
		SWAP(link_count);
	}
	memcpy(now->lost, before->lost, sizeof(now->lost));
	memcpy(now->odd, before->odd, sizeof(now->odd));
	memcpy(now->names, before->names, sizeof(now->names));
	now->has_counts = before->has_counts;
	now->is_final = before->is_final;
	now->is_moving = before->is_moving;
	now->recorded = before->recorded;
	now->drained = before->drained;
	now->ended_ns = before->ended_ns;
	now->counts_ns = before->counts_ns;
}

/* Operations that are over linger in their slots; they change nothing. */
static bool has_open_flights(const struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++)
		if (process->flights[i].op.state != OP_DONE || process->flights[i].open_children)
			return true;
	return process->proxy_count > 0 || process->filling > 0;
}

/* The counters of the header, but for the anchor: that is set anew by a thread of the recorder. */
static bool is_header_same(const struct region *region)
{
	size_t from = offsetof(struct region_header, ended_ns);
	struct region_header now;

	return region_pread(region, (char *)&now + from, sizeof(now) - from, from) == OK &&
	       memcmp((const char *)&now + from, (const char *)&region->header + from,
		      sizeof(now) - from) == 0;
}

static bool is_comm_same(const struct recording_process *process, const struct region_comm *found)
{
	const struct recording_comm *known = recording_comm(process, found->info.id);

	return known != NULL && known->info.finalize_ns == found->info.finalize_ns &&
	       memcmp(&known->counts, &found->counts, sizeof(found->counts)) == 0;
}

/* R5: whatever is issued is counted at its communicator first. Slots are given out from the first on, so
 * behind as many as there ever were none is used. */
static bool are_comms_same(const struct recording_process *process)
{
	const struct region *region = process->region;
	const struct region_part *part = &region->header.parts[REGION_COMMS];
	uint64_t made = region->header.comms_made;
	uint32_t count = made < part->count ? (uint32_t)made : part->count;
	struct region_copy copy;
	bool is_same = true;

	if (region_copy_slots(region, REGION_COMMS, 0, count, &copy) != OK)
		return false;
	for (uint32_t i = 0; i < count && is_same; i++) {
		const unsigned char *slot = region_copy_slot(&copy, i);
		struct region_comm found;

		is_same = slot != NULL;
		if (!is_same)
			break;
		memcpy(&found, slot, sizeof(found));
		if (found.word != 0 && found.info.id != 0)
			is_same = is_comm_same(process, &found);
	}
	region_copy_release(&copy);
	return is_same;
}

bool recording_stands_still(const struct recording_process *process)
{
	if (process->region == NULL || process->is_moving || has_open_flights(process) ||
	    recording_totals_is_behind(process->follow))
		return false;
	return is_header_same(process->region) && are_comms_same(process);
}

/* Totals before flights: see recording_totals.c. */
static enum status read_parts(struct recording_process *found, bool has_totals, bool is_full)
{
	enum status status = OK;

	if (has_totals)
		status = recording_totals_load(found, is_full);
	else
		found->region->hasty_count = found->region->known_count = 0;
	if (status == OK)
		status = region_copy(found->region, REGION_COPY_BRIEF | RECORDING_REGION_PARTS);
	if (status == OK)
		status = recording_region_state(found);
	region_copy_drop(found->region, RECORDING_REGION_PARTS);
	return status;
}

static enum status read_again(struct recording_process *process, bool has_totals, bool is_full)
{
	struct recording_process *found = recording_process_new();
	enum status status;

	if (found == NULL)
		return ERR_NO_SPACE;
	/* Lent. */
	found->region = process->region;
	found->follow = process->follow;
	status = read_parts(found, has_totals, is_full);
	process->follow = found->follow;
	if (status == OK && has_totals) {
		recording_totals_end(found, process);
		recording_totals_hasty(found, process);
	}
	found->region = NULL;
	found->follow = NULL;
	if (status == OK)
		change_places(process, found, has_totals);
	recording_process_free(found);
	return status;
}

enum status recording_refresh(struct recording_process *process, unsigned int flags)
{
	enum status status = OK;

	if (process->region == NULL)
		return ERR_GONE;
	if (!(flags & RECORDING_REFRESH_MOVED) || !recording_stands_still(process))
		status = read_again(process, flags & RECORDING_REFRESH_TOTALS,
				    !(flags & RECORDING_REFRESH_MOVED));
	if (!(flags & RECORDING_REFRESH_SAME_LIFE))
		recording_load_life(process);
	else if (process->ended_ns != 0)
		process->life = RECORDING_ENDED;
	return status;
}

enum status recording_add_again(struct recording *recording,
				const struct recording_process *process)
{
	struct recording_process *found = NULL;
	enum status status;

	if (process->region == NULL || process->region->fd <= 0)
		return ERR_GONE;
	status =
		recording_region_load(recording, process->region->fd, process->region_path, &found);
	if (status != OK)
		return status;
	/* Under the pid where it was found before; one that was not found is not searched for again: for that all
	 * processes of the machine are gone through. */
	found->life = found->ended_ns != 0 ? RECORDING_ENDED : process->life;
	found->pid_here = process->pid_here;
	if (found->pid_here > 0)
		recording_load_life(found);
	return recording_load_keep(recording, found);
}

void recording_rest(struct recording_process *process)
{
	struct region *region = process->region;

	if (region == NULL)
		return;
	if (region->fd > 0)
		close(region->fd);
	/* Nothing to read there any more; its header still knows the clock. */
	region->fd = -1;
	region->memory = NULL;
	region->file_bytes = 0;
}
