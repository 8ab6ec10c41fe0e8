/*
 * From the tables to a recording. The recorder's clock of every process is Prometheus' own, so that one
 * anchor, at its last scrape, says all there is to say about it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/prom_parts.h"
#include "recording/recording.h"

enum { MASK_KERNEL_CHANNELS = 1 << 6 };
#define SIGNATURE_BITS ((UINT64_C(1) << 52) - 1)

/* ---- processes --------------------------------------------------------------------------------- */

static void take_life(struct recording_process *process, const char *state)
{
	static const enum recording_life lives[] = { RECORDING_ALIVE, RECORDING_ENDED,
						     RECORDING_KILLED };

	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(state, recording_life_name(lives[i])) == 0)
			process->life = lives[i];
	if (strcmp(state, "stopped") == 0) {
		process->life = RECORDING_ALIVE;
		process->process_state = 'T';
	}
}

static enum status add_process(const struct prom *prom, const struct prom_process *of,
			       struct recording *recording)
{
	struct recording_process *process = recording_process_new();
	uint64_t now_ns = of->scrape_ns ? of->scrape_ns : prom->wall_ns;
	enum status status;

	if (process == NULL)
		return ERR_NO_SPACE;
	text_copy(process->job, sizeof(process->job), prom_text_of(prom, of->job));
	text_copy(process->host, sizeof(process->host), prom_text_of(prom, of->host));
	text_copy(process->mode, sizeof(process->mode), prom_text_of(prom, of->mode));
	process->pid = of->pid;
	process->rank = of->rank;
	process->local_rank = of->local_rank;
	process->world_size = of->world_size;
	process->interface = of->interface;
	process->counts_ns = now_ns;
	process->has_counts = process->is_final = true;
	take_life(process, prom_text_of(prom, of->state));
	status = recording_load_anchor(process, (struct clock_anchor){ now_ns, now_ns });
	if (status != OK) {
		recording_process_free(process);
		return status;
	}
	return recording_load_keep(recording, process);
}

/* ---- members ----------------------------------------------------------------------------------- */

static bool has_number(const struct prom_member *member, enum prom_number number)
{
	return member->has_numbers >> number & 1;
}

static uint64_t before(uint64_t now_ns, uint64_t ns)
{
	return now_ns > ns ? now_ns - ns : 1;
}

static void take_counts(const struct prom_member *member, struct recording_comm *comm,
			uint64_t now_ns)
{
	const uint64_t *numbers = member->numbers;
	struct comm_counts *counts = &comm->counts;

	comm->has_counts = has_number(member, PROM_COLLECTIVES) &&
			   has_number(member, PROM_ISSUED) && has_number(member, PROM_SIGNATURE);
	if (!comm->has_counts)
		return;
	counts->issued = numbers[PROM_ISSUED];
	counts->collectives = numbers[PROM_COLLECTIVES];
	counts->replays = numbers[PROM_REPLAYS];
	counts->signature = numbers[PROM_SIGNATURE] & SIGNATURE_BITS;
	counts->last_done_number = counts->recorded = numbers[PROM_DONE];
	if (counts->issued == 0)
		return;
	/* When it last did anything is known, and not which of the two that was. */
	if (has_number(member, PROM_ACTIVITY))
		counts->last_issue_ns = before(now_ns, numbers[PROM_ACTIVITY]);
	else if (has_number(member, PROM_AGE) && numbers[PROM_AGE] > 0)
		counts->last_issue_ns = before(now_ns, numbers[PROM_AGE]);
	if (counts->last_done_number > 0)
		counts->last_done_ns = counts->last_issue_ns;
}

static enum status add_member(const struct prom *prom, const struct prom_member *member,
			      struct recording_process *process)
{
	const struct prom_comm *of = &prom->comms[member->comm];
	const struct prom_process *at = &prom->processes[member->process];
	struct recording_comm *comm =
		recording_load_comm(process, (uint32_t)process->comm_count + 1);
	struct comm_info *info;

	if (comm == NULL)
		return ERR_NO_SPACE;
	info = &comm->info;
	info->interface = process->interface;
	info->hash = of->hash;
	info->rank = member->rank;
	info->nranks = member->nranks;
	info->nnodes = member->nnodes;
	info->flags = of->flags;
	info->mask = MASK_KERNEL_CHANNELS;
	info->gpu = member->gpu;
	text_copy(info->name, sizeof(info->name), prom_text_of(prom, member->name));
	if (at->gpu == member->gpu)
		text_copy(info->gpu_uuid, sizeof(info->gpu_uuid), prom_text_of(prom, at->gpu_uuid));
	if (member->is_finalized) {
		info->flags |= COMM_FLAG_FINALIZED;
		info->finalize_ns = process->counts_ns;
	}
	take_counts(member, comm, process->counts_ns);
	return prom_add_flights(prom, member, process, comm);
}

/* Members by process, then communicator and rank: the same answer gives the same numbers. */
static int by_process(const void *left, const void *right)
{
	const struct prom_member *a = *(const struct prom_member *const *)left;
	const struct prom_member *b = *(const struct prom_member *const *)right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Members of which nobody says where they run are left out: they were gone when that was asked for. */
static enum status find_processes(struct prom *prom, const struct prom_member **sorted,
				  size_t *count)
{
	*count = 0;
	for (size_t i = 0; i < prom->member_count; i++) {
		struct prom_member *member = &prom->members[i];

		if (!member->has_info)
			continue;
		member->process = prom_process_of(prom, prom->comms[member->comm].job, member->host,
						  member->pid);
		if (member->process == UINT32_MAX)
			return ERR_NO_SPACE;
		if (prom->processes[member->process].rank < 0)
			prom->processes[member->process].rank = member->global_rank;
		sorted[(*count)++] = member;
	}
	if (*count > 1)
		qsort(sorted, *count, sizeof(*sorted), by_process);
	return OK;
}

static enum status add_all(struct prom *prom, struct recording *recording)
{
	const struct prom_member **sorted = calloc(prom->member_count + 1, sizeof(*sorted));
	enum status status;
	size_t count;

	if (sorted == NULL)
		return ERR_NO_SPACE;
	status = find_processes(prom, sorted, &count);
	for (size_t i = 0; i < prom->process_count && status == OK; i++)
		status = add_process(prom, &prom->processes[i], recording);
	for (size_t i = 0; i < count && status == OK; i++)
		status = add_member(prom, sorted[i], recording->processes[sorted[i]->process]);
	free(sorted);
	return status;
}

static int by_identity(const void *left, const void *right)
{
	return recording_load_order(*(struct recording_process *const *)left,
				    *(struct recording_process *const *)right);
}

enum status prom_finish(struct prom *prom, struct recording *recording)
{
	enum status status = prom->status;

	if (status == OK)
		status = add_all(prom, recording);
	for (size_t i = 0; i < recording->count; i++)
		recording_load_comms_end(recording->processes[i]);
	if (recording->count > 1)
		qsort(recording->processes, recording->count, sizeof(*recording->processes),
		      by_identity);
	if (status == OK)
		status = prom_make_sources(prom);
	if (status == OK)
		status = prom_make_sums(prom);
	return status;
}
