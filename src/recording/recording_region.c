/*
 * From a region: who, its communicators, counts and links, and what is in flight. The ring stays where it is
 * until somebody walks the operations; live slots are copied now, so nothing falls in between.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list_grow.h"
#include "base/text.h"
#include "region/region_read.h"
#include "recording/recording_flights.h"
#include "recording/recording_load.h"

static void refuse(struct recording_process *process, const char *problem)
{
	if (problem == NULL)
		return;
	process->refused++;
	process->refused_why = problem;
}

static enum status load_comms(struct recording_process *process)
{
	uint32_t count = region_slots(process->region, REGION_COMMS);
	struct recording_comm *comm;
	struct region_comm found;
	const char *problem;

	for (uint32_t i = 0; i < count; i++) {
		if (!region_comm_at(process->region, i, &found, &problem)) {
			refuse(process, problem);
			continue;
		}
		comm = recording_load_comm(process, found.info.id);
		if (comm == NULL)
			return ERR_NO_SPACE;
		comm->info = found.info;
		comm->counts = found.counts;
		comm->has_counts = true;
	}
	recording_load_comms_end(process);
	return OK;
}

/* Retiring with open children: given up when its communicator ended. Its record was written then,
 * and its slot rests. */
static bool is_given_up(uint64_t word)
{
	return word & LIVE_RETIRING && LIVE_OPEN(word) != 0;
}

/* Per slot of the part: which of the copy it is, and which flight. */
struct from_slot {
	uint32_t copied;
	uint32_t flight; /* from 1; 0: none */
};

static enum status load_flights(struct recording_process *process, struct from_slot *of_slot)
{
	const struct region_copy *copy = &process->region->copies[REGION_LIVE];
	struct recording_flight *flight;
	struct region_live live;
	const char *problem;

	for (uint32_t i = 0; i < copy->count; i++) {
		if (!region_live_at(process->region, i, &live, &problem)) {
			refuse(process, problem);
			process->filling += region_live_is_filling(process->region, i);
			continue;
		}
		if (is_given_up(live.word))
			continue;
		if (process->totals != NULL &&
		    recording_totals_take(process, &live, region_copy_index(copy, i)))
			continue;
		if (!list_grow(&process->flights, process->flight_count, sizeof(*process->flights)))
			return ERR_NO_SPACE;
		flight = &process->flights[process->flight_count++];
		*flight = (struct recording_flight){ .op = live.op,
						     .open_children = LIVE_OPEN(live.word),
						     .is_retiring = live.word & LIVE_RETIRING };
		memcpy(flight->started, live.started, sizeof(flight->started));
		memcpy(flight->stopped, live.stopped, sizeof(flight->stopped));
		of_slot[region_copy_index(copy, i)] =
			(struct from_slot){ i, (uint32_t)process->flight_count };
	}
	return OK;
}

/* The flight that this proxy operation works for; NULL: none that we know. */
static struct recording_flight *flight_of(struct recording_process *process,
					  const struct region_proxy *proxy,
					  const struct from_slot *of_slot)
{
	struct region_live live;

	if (proxy->live >= process->region->header.parts[REGION_LIVE].count ||
	    of_slot[proxy->live].flight == 0 ||
	    !region_live_at(process->region, of_slot[proxy->live].copied, &live, NULL) ||
	    !region_proxy_is_of(proxy, proxy->live, &live))
		return NULL;
	return &process->flights[of_slot[proxy->live].flight - 1];
}

static enum status load_proxies(struct recording_process *process, const struct from_slot *of_slot)
{
	uint32_t count = region_slots(process->region, REGION_PROXIES);
	struct recording_proxy found;
	const char *problem;

	for (uint32_t i = 0; i < count; i++) {
		struct recording_flight *flight;
		struct recording_proxy **list = &process->proxies;
		size_t *list_count = &process->proxy_count;

		memset(&found, 0, sizeof(found));
		if (!region_proxy_at(process->region, i, &found.proxy, &problem)) {
			refuse(process, problem);
			continue;
		}
		found.step_count = region_steps(&found.proxy, found.steps);
		flight = flight_of(process, &found.proxy, of_slot);
		if (flight != NULL) {
			list = &flight->proxies;
			list_count = &flight->proxy_count;
		}
		if (!list_grow(list, *list_count, sizeof(**list)))
			return ERR_NO_SPACE;
		(*list)[(*list_count)++] = found;
	}
	return OK;
}

static enum status load_live(struct recording_process *process)
{
	uint32_t slots = process->region->header.parts[REGION_LIVE].count;
	struct from_slot *of_slot = calloc((size_t)slots + 1, sizeof(*of_slot));
	enum status status;

	if (of_slot == NULL)
		return ERR_NO_SPACE;
	status = load_flights(process, of_slot);
	if (status == OK)
		status = load_proxies(process, of_slot);
	free(of_slot);
	recording_flights_sort(process);
	return status;
}

/* The header knows some things better than the text: it is what the others go by. */
static void load_identity(struct recording_process *process)
{
	const struct region_header *header = &process->region->header;

	process->pid = header->pid <= INT32_MAX ? (int64_t)header->pid : -1;
	process->pid_namespace = header->pid_namespace;
	process->start_ticks = header->start_ticks;
	text_from_field(process->boot_id, sizeof(process->boot_id), header->boot_id,
			sizeof(header->boot_id) - 1);
	text_copy(process->mode, sizeof(process->mode), op_mode_name(header->mode));
	process->interface = header->interface;
}

static void load_header(struct recording_process *process)
{
	const struct region_header *header = &process->region->header;

	memcpy(process->lost, header->lost, sizeof(process->lost));
	memcpy(process->odd, header->odd, sizeof(process->odd));
	process->has_counts = true;
	process->is_final = true;
	process->is_moving = process->region->is_moving;
	process->recorded = header->ring_head & RING_BUSY ? 0 : header->ring_head;
	process->drained = header->drained;
	process->ended_ns = header->ended_ns;
	process->fresh_anchor = (struct clock_anchor){ 0, 0 };
	process->counts_ns = header->last_anchor.clock_ns;
	if (region_anchor(process->region, &process->fresh_anchor))
		process->counts_ns = process->fresh_anchor.clock_ns;
	for (unsigned int i = 0; i < OP_NAMES_INTERNED_MAX; i++)
		region_name(process->region, (uint8_t)(OP_NAME_INTERNED + i), process->names[i],
			    sizeof(process->names[i]));
}

enum status recording_region_state(struct recording_process *process)
{
	const struct region_header *header = &process->region->header;
	enum status status;

	load_header(process);
	status = recording_load_anchor(process, header->first_anchor);
	if (status == OK)
		status = recording_load_anchor(process, header->last_anchor);
	if (status == OK)
		status = load_comms(process);
	return status == OK ? load_live(process) : status;
}

static enum status load_region(struct recording_process *process)
{
	struct region *region = process->region;
	enum status status = recording_links_load(process);

	if (status == OK)
		status = region_copy(region, RECORDING_REGION_PARTS);
	if (status == OK)
		status = recording_load_info(process, region->info, region->info_bytes);
	if (status != OK)
		return status;
	load_identity(process);
	status = recording_region_state(process);
	region_copy_drop(region, REGION_COPY_STATE);
	return status;
}

static void note_refusal(struct recording *recording, const char *path, enum status status,
			 const struct region_problem *problem)
{
	if (status == ERR_VERSION)
		recording_load_trouble(recording, RECORDING_TOO_NEW, path, NULL,
				       "a region of format %u.%u, newer than the %u this program "
				       "reads: use a newer ringside",
				       problem->found_major, problem->found_minor, REGION_MAJOR);
	else if (status == ERR_SYSTEM)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL, "%s: %s",
				       problem->what, strerror(errno));
	else
		recording_load_trouble(recording,
				       status == ERR_TRUNCATED ? RECORDING_CUT : RECORDING_DAMAGE,
				       path, NULL, "%s", problem->what);
}

enum status recording_region_load(struct recording *recording, int fd, const char *path,
				  struct recording_process **process)
{
	struct region_problem problem = { .what = "it was cut while it was read" };
	struct recording_process *made = recording_process_new();
	struct region *region = calloc(1, sizeof(*region));
	enum status status = ERR_NO_SPACE;

	if (made == NULL || region == NULL) {
		free(region);
		goto out;
	}
	made->region = region;
	made->region_path = strdup(path);
	if (made->region_path == NULL)
		goto out;
	status = region_open_fd(region, fd, &problem);
	if (status == OK)
		status = load_region(made);
	if (status != OK && status != ERR_NO_SPACE)
		note_refusal(recording, path, status, &problem);
out:
	if (status == OK)
		*process = made;
	else
		recording_process_free(made);
	return status;
}
