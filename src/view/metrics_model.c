/*
 * Seats and processes become claims: a claim has what its labels will be. Sorted, a run of equal claims
 * is one member. Everything is sorted arrays; a look at a node costs a few of them.
 */
#include "view/metrics_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"
#include "view/metrics_member.h"

struct claim {
	enum metrics_member_kind kind;
	uint64_t job;  /* hash of its name as it is shown */
	uint64_t hash; /* METRICS_UNKNOWN: the process's own number */
	int64_t rank;  /* METRICS_HASHED: in the communicator; else global */
	int64_t pid;   /* 0 where it is no part of the labels */
	uint32_t process;
	uint32_t seat;
};

bool metrics_is_living(const struct recording_process *process)
{
	return process->life != RECORDING_ENDED && process->life != RECORDING_KILLED;
}

int64_t metrics_global_rank(const struct metrics_model *model, size_t process)
{
	const struct job *job = model->job;

	if (job->process_rank[process] >= job->rank_count)
		return model->recording->processes[process]->rank;
	return job->ranks[job->process_rank[process]].rank;
}

void metrics_comm_text(const struct metrics_model *model, uint32_t seat,
		       char to[static METRICS_COMM_TEXT])
{
	const struct comm_info *info = metrics_seat_info(model, seat);
	const struct recording_process *process =
		model->recording->processes[model->job->seats[seat].process];

	if (info->hash != 0)
		text_format(to, METRICS_COMM_TEXT, "%016" PRIx64, info->hash);
	else
		text_format(to, METRICS_COMM_TEXT, "%.95s#%" PRId64 ".%u", info->name, process->pid,
			    info->id);
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *metrics_name_text(const struct metrics_model *model, enum op_name_table table,
			      uint8_t number)
{
	return number == METRICS_NAME_OTHER ? "other" : job_name(model->job, table, number);
}

uint8_t metrics_name_number(const struct metrics_model *model, size_t process,
			    enum op_name_table table, uint8_t number)
{
	return model->name_map[table][job_name_number(model->job, process, number)];
}

/* Two numbers whose names look the same once they are clean are shown as one. */
static enum status map_names(struct metrics_model *model, enum op_name_table table)
{
	uint64_t seen[256];
	struct sink clean;
	enum status status;

	sink_init_memory(&clean);
	for (unsigned int n = 0; n < 256; n++) {
		uint8_t *to = &model->name_map[table][n];
		bool is_there = n < OP_NAME_INTERNED
					? op_name(table, (uint8_t)n) != NULL
					: n - OP_NAME_INTERNED < model->job->name_count;

		*to = METRICS_NAME_OTHER;
		seen[n] = 0;
		if (!is_there)
			continue;
		clean.used = 0;
		metrics_clean_text(&clean, job_name(model->job, table, (uint8_t)n));
		if (clean.used == 0 || (clean.used == 5 && memcmp(clean.bytes, "other", 5) == 0))
			continue;
		seen[n] = hash_bytes(clean.bytes, clean.used) | 1;
		*to = (uint8_t)n;
		for (unsigned int i = 0; i < n; i++)
			if (seen[i] == seen[n])
				*to = model->name_map[table][i];
	}
	status = clean.status;
	sink_release(&clean);
	return status;
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define COMPARE(field)                                       \
	do {                                                 \
		if (a->field != b->field)                    \
			return a->field < b->field ? -1 : 1; \
	} while (0)

static int by_labels(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	COMPARE(kind);
	COMPARE(job);
	COMPARE(hash);
	COMPARE(rank);
	COMPARE(pid);
	COMPARE(process);
	COMPARE(seat);
	return 0;
}

static bool is_same_member(const struct claim *a, const struct claim *b)
{
	return a->kind == b->kind && a->job == b->job && a->hash == b->hash && a->rank == b->rank &&
	       a->pid == b->pid;
}

static void claim_process(const struct metrics_model *model, uint32_t p, uint64_t job,
			  struct claim *claims, size_t *count)
{
	const struct recording_process *process = model->recording->processes[p];
	int64_t rank = metrics_global_rank(model, p);
	uint32_t first = model->job->first_seat[p];

	claims[(*count)++] = (struct claim){ .kind = METRICS_PROCESS,
					     .job = job,
					     .rank = rank,
					     .pid = process->pid,
					     .process = p,
					     .seat = METRICS_NOBODY };
	claims[(*count)++] = (struct claim){ .kind = METRICS_OTHER,
					     .job = job,
					     .rank = rank,
					     .pid = rank < 0 ? process->pid : 0,
					     .process = p,
					     .seat = METRICS_NOBODY };
	for (uint32_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;
		bool is_hashed = info->hash != 0;

		claims[(*count)++] =
			(struct claim){ .kind = is_hashed ? METRICS_HASHED : METRICS_UNKNOWN,
					.job = job,
					.hash = is_hashed ? info->hash : info->id,
					.rank = info->rank < 0 ? -1 : info->rank,
					.pid = is_hashed ? 0 : process->pid,
					.process = p,
					.seat = first + i };
	}
}

static enum status make_claims(const struct metrics_model *model, struct claim **claims,
			       size_t *count)
{
	const struct recording *recording = model->recording;
	size_t room = 2 * recording->count + model->job->seat_count;
	enum status status;
	struct sink clean;

	*count = 0;
	*claims = calloc(room + 1, sizeof(**claims));
	if (*claims == NULL)
		return ERR_NO_SPACE;
	sink_init_memory(&clean);
	for (uint32_t p = 0; p < recording->count; p++) {
		clean.used = 0;
		metrics_clean_text(&clean, recording->processes[p]->job);
		claim_process(model, p, hash_bytes(clean.used ? clean.bytes : "", clean.used),
			      *claims, count);
	}
	status = clean.status;
	sink_release(&clean);
	qsort(*claims, *count, sizeof(**claims), by_labels);
	return status;
}

/* ---- members --------------------------------------------------------------------------------- */

/* One member of a run of claims. */
static void make_member(struct metrics_model *model, const struct claim *claims, size_t count)
{
	uint32_t index = (uint32_t)model->member_count++;
	struct metrics_member *member = &model->members[index];
	uint32_t last = METRICS_NOBODY;
	bool has_living = false;
	size_t taken = 0;

	for (size_t i = 0; i < count; i++)
		if (metrics_is_living(model->recording->processes[claims[i].process]))
			has_living = true;
	*member = (struct metrics_member){ .kind = claims->kind,
					   .seat = METRICS_NOBODY,
					   .oldest = METRICS_NOBODY };
	for (size_t i = 0; i < count; i++) {
		const struct claim *claim = &claims[i];

		if (has_living && !metrics_is_living(model->recording->processes[claim->process]))
			continue;
		if (taken++ == 0) {
			member->process = claim->process;
			member->gpu = model->job->process_rank[claim->process];
		}
		if (claim->kind == METRICS_PROCESS) {
			member->is_used = true;
			if (taken > 1)
				model->next_process[last] = claim->process;
			last = claim->process;
		} else if (claim->kind == METRICS_OTHER) {
			model->other_member[claim->process] = index;
		} else {
			model->seat_member[claim->seat] = index;
			metrics_member_add(model, member, claim->seat);
		}
	}
	if (claims->kind != METRICS_OTHER)
		model->merged += count - 1;
}

/* ---- the budget ------------------------------------------------------------------------------ */

static int by_use(const void *left, const void *right)
{
	const struct metrics_candidate *a = left, *b = right;

	COMPARE(group);
	if (a->use != b->use)
		return a->use > b->use ? -1 : 1;
	COMPARE(index);
	return 0;
}

static int by_staying(const void *left, const void *right)
{
	const struct metrics_candidate *a = left, *b = right;

	if (a->is_beyond != b->is_beyond)
		return a->is_beyond ? -1 : 1;
	COMPARE(index);
	return 0;
}

size_t metrics_choose(struct metrics_candidate *candidates, size_t count, size_t limit)
{
	size_t in_group = 0, beyond = 0;

	qsort(candidates, count, sizeof(*candidates), by_use);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || candidates[i].group != candidates[i - 1].group)
			in_group = 0;
		candidates[i].is_beyond = in_group++ >= limit;
		beyond += candidates[i].is_beyond;
	}
	if (beyond > 0)
		qsort(candidates, count, sizeof(*candidates), by_staying);
	return beyond;
}

/* Communicators that are in use come before those that are over, however much these were used. */
static uint64_t use_of(const struct metrics_model *model, const struct metrics_member *member)
{
	uint64_t in_use = UINT64_C(1) << 63;

	return (member->issued & ~in_use) |
	       (metrics_seat_is_over(model, member->seat) ? 0 : in_use);
}

static enum status fold_members(struct metrics_model *model)
{
	struct metrics_candidate *candidates = calloc(model->member_count + 1, sizeof(*candidates));
	size_t count = 0, beyond;

	if (candidates == NULL)
		return ERR_NO_SPACE;
	for (uint32_t i = 0; i < model->member_count; i++)
		if (model->members[i].kind <= METRICS_UNKNOWN)
			candidates[count++] =
				(struct metrics_candidate){ .group = model->members[i].gpu,
							    .use = use_of(model,
									  &model->members[i]),
							    .index = i };
	beyond = metrics_choose(candidates, count, METRICS_COMMS_PER_GPU);
	for (size_t i = 0; i < beyond; i++)
		model->members[candidates[i].index].is_folded = true;
	model->folded_comms = beyond;
	free(candidates);
	return OK;
}

/* Is there something in the process's totals or links that no communicator of it claims? */
static bool has_others(const struct metrics_model *model, uint32_t p)
{
	const struct recording_process *process = model->recording->processes[p];

	for (size_t i = 0; i < process->total_count; i++)
		if (process->totals[i].count > 0 &&
		    job_seat(model->job, p, (uint32_t)(process->totals[i].key >> 40)) == NULL)
			return true;
	for (size_t i = 0; i < process->link_count; i++)
		if (process->links[i].proxies > 0 &&
		    job_seat(model->job, p, (uint32_t)(process->links[i].key >> 34)) == NULL)
			return true;
	return false;
}

/* What is folded goes to the others of each process, and others are shown where they have something. */
static void fill_others(struct metrics_model *model)
{
	for (uint32_t s = 0; s < model->job->seat_count; s++) {
		uint32_t *member = &model->seat_member[s];

		if (*member == METRICS_NOBODY || !model->members[*member].is_folded)
			continue;
		*member = model->other_member[model->job->seats[s].process];
		if (*member != METRICS_NOBODY)
			metrics_member_add(model, &model->members[*member], s);
	}
	for (uint32_t p = 0; p < model->recording->count; p++) {
		uint32_t other = model->other_member[p];

		if (other != METRICS_NOBODY && !model->members[other].is_used)
			model->members[other].is_used = has_others(model, p);
	}
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void label_member(const struct metrics_model *model, struct metrics_member *member,
			 struct metrics_out *out)
{
	const struct recording_process *process = model->recording->processes[member->process];
	int64_t rank = metrics_global_rank(model, member->process);
	char comm[METRICS_COMM_TEXT], other_rank[METRICS_NUMBER];

	metrics_labels_begin(out, &member->labels);
	metrics_label(out, "nccl_job", process->job);
	if (member->kind == METRICS_PROCESS) {
		if (rank >= 0)
			metrics_label_number(out, "global_rank", rank);
		metrics_label_number(out, "pid", process->pid);
	} else if (member->kind == METRICS_OTHER) {
		text_format(other_rank, sizeof(other_rank), rank >= 0 ? "%" PRId64 : "pid%" PRId64,
			    rank >= 0 ? rank : process->pid);
		metrics_label(out, "comm", "other");
		metrics_label(out, "rank", other_rank);
	} else {
		metrics_comm_text(model, member->seat, comm);
		metrics_label(out, "comm", comm);
		if (model->job->seats[member->seat].comm_rank >= 0)
			metrics_label_number(out, "rank",
					     model->job->seats[member->seat].comm_rank);
	}
	metrics_labels_end(out, &member->labels);
}

/* ---------------------------------------------------------------------------------------------- */

static enum status reserve(struct metrics_model *model)
{
	size_t seats = model->job->seat_count, processes = model->recording->count;

	model->members = calloc(seats + 2 * processes + 1, sizeof(*model->members));
	model->seat_member = malloc((seats + 1) * sizeof(*model->seat_member));
	model->next_process = malloc((processes + 1) * sizeof(*model->next_process));
	model->other_member = malloc((processes + 1) * sizeof(*model->other_member));
	if (model->members == NULL || model->seat_member == NULL || model->next_process == NULL ||
	    model->other_member == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < seats; i++)
		model->seat_member[i] = METRICS_NOBODY;
	for (size_t i = 0; i < processes; i++)
		model->next_process[i] = model->other_member[i] = METRICS_NOBODY;
	return OK;
}

enum status metrics_model_make(struct metrics_model *model, const struct live *live,
			       struct metrics_out *out)
{
	static const struct recording nobody;
	struct claim *claims = NULL;
	enum status status;
	size_t count, next;

	*model = (struct metrics_model){ .live = live,
					 .job = &live->job,
					 .recording = live->job.recording };
	/* Before the first look there is no recording. */
	if (model->recording == NULL)
		model->recording = &nobody;
	status = reserve(model);
	for (int table = 0; table < OP_NAME_TABLES && status == OK; table++)
		status = map_names(model, (enum op_name_table)table);
	if (status == OK)
		status = make_claims(model, &claims, &count);
	if (status != OK)
		goto out;
	for (size_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && is_same_member(&claims[i], &claims[next]);)
			next++;
		make_member(model, &claims[i], next - i);
	}
	status = fold_members(model);
	if (status != OK)
		goto out;
	fill_others(model);
	for (size_t i = 0; i < model->member_count; i++)
		if (model->members[i].is_used && !model->members[i].is_folded)
			label_member(model, &model->members[i], out);
out:
	free(claims);
	return status;
}

void metrics_model_release(struct metrics_model *model)
{
	free(model->members);
	free(model->seat_member);
	free(model->next_process);
	free(model->other_member);
	*model = (struct metrics_model){ 0 };
}
