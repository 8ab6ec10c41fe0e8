/* Builds members from seats: totals, maxima, and values of the main seat. */
#include "output/metrics.h"
#include "output/metrics_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tally.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"

/* Durations in the buckets of common/op.h. Buckets are limited to METRICS_COUNT_MAX: a server that finds a
 * sum beyond 64 bits rejects everything, and counts come from memory that other processes can write. */
#define METRICS_COUNT_MAX (UINT64_C(1) << 53)

enum { METRICS_NAME_OTHER = 255 };

/* Whether the process is alive or its state is unknown. */
static bool metrics_is_living(const struct recording_process *process)
{
	return process->life != RECORDING_ENDED && process->life != RECORDING_KILLED;
}

/*
 * Keeps the `limit` most used candidates of each group, the lower index on a tie. Sorts the candidates:
 * those that do not stay come first. Returns their number.
 */
struct metrics_candidate {
	uint64_t group;
	uint64_t use;
	uint32_t index;
	bool is_beyond;
};

/* Sizes: the classes of region totals, with those below 256 bytes merged, and those above 8 GiB. */
enum { METRICS_SIZE_UNKNOWN = 0, METRICS_SIZE_ZERO = 1, METRICS_SIZE_OTHER = METRICS_SIZES - 1 };

/* (function, size): operations, bytes, timed bytes, nanoseconds, timed operations; bus bytes. */
#define METRICS_SIZE_KEY(function, size) ((uint64_t)(function) << 8 | (size))

/* (function, algorithm, protocol): operations, nanoseconds in ROW_TIME, ROW_TIMED. */
#define METRICS_CHOICE_KEY(function, algorithm, protocol) \
	((uint64_t)(function) << 16 | (uint64_t)(algorithm) << 8 | (protocol))

/* (direction, peer): bytes, transfers, and wait times by cause. A link "other" has no direction; its wait time
 * is in the first of the three. */
enum metrics_direction { METRICS_SEND = 0, METRICS_RECV = 1, METRICS_EITHER = 2 };
#define METRICS_LINK_KEY(direction, peer) ((uint64_t)(direction) << 32 | (uint32_t)(peer))

/* Seats as parts of members. */

const struct recording_comm *metrics_seat_comm(const struct metrics_model *model, uint32_t seat)
{
	const struct job *job = model->job;
	uint32_t process = job->seats[seat].process;

	return &model->recording->processes[process]->comms[seat - job->first_seat[process]];
}

/* Whether its communicator or its process has ended. */
static bool metrics_seat_is_over(const struct metrics_model *model, uint32_t seat)
{
	const struct comm_info *info = &metrics_seat_comm(model, seat)->info;

	return info->finalize_ns != 0 || info->flags & COMM_FLAG_FINALIZED ||
	       !metrics_is_living(model->recording->processes[model->job->seats[seat].process]);
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Whether this seat should be the main seat of the member: alive before ended, then the newest. */
static bool tells_more(const struct metrics_model *model, uint32_t seat, uint32_t than)
{
	const struct job_seat *seats = model->job->seats;

	if (than == METRICS_NOBODY)
		return true;
	if (metrics_seat_is_over(model, seat) != metrics_seat_is_over(model, than))
		return metrics_seat_is_over(model, than);
	return seats[seat].process == seats[than].process &&
	       seats[seat].comm_id > seats[than].comm_id;
}

static void add_position(struct metrics_member *member, const struct comm_counts *counts)
{
	member->collectives = larger_of(member->collectives, counts->collectives);
	member->replays = larger_of(member->replays, counts->replays);
	member->number_issued = larger_of(member->number_issued, counts->issued);
	member->number_done = larger_of(member->number_done, counts->last_done_number);
}

/* Adds a seat to a member. */
static void metrics_member_add(const struct metrics_model *model, struct metrics_member *member,
			       uint32_t seat)
{
	const struct live_seat *live = &model->live->seats[seat];
	const struct comm_counts *counts = &metrics_seat_comm(model, seat)->counts;

	member->is_used = true;
	member->issued += counts->issued;
	member->finished += counts->recorded;
	member->untrusted += counts->untrusted;
	member->wait_ns += live->wait_ns;
	member->knows_wait |= live->knows_wait;
	member->in_flight = member->kind == METRICS_OTHER
				    ? member->in_flight + live->in_flight
				    : larger_of(member->in_flight, live->in_flight);
	if (live->oldest != NULL && live->oldest_age_ns >= member->oldest_age_ns) {
		member->oldest_age_ns = live->oldest_age_ns;
		member->oldest = seat;
	}
	if (member->kind == METRICS_OTHER)
		return;
	if (member->seat == METRICS_NOBODY || tells_more(model, seat, member->seat)) {
		bool gives_way = member->seat != METRICS_NOBODY &&
				 metrics_seat_is_over(model, member->seat) &&
				 !metrics_seat_is_over(model, seat);

		if (gives_way)
			member->collectives = member->replays = member->number_issued =
				member->number_done = 0;
		member->seat = seat;
		member->process = model->job->seats[seat].process;
		member->gpu = model->job->seats[seat].rank;
		member->signature = counts->signature & METRICS_SIGNATURE_BITS;
		member->still_ns = live->still_ns;
		member->is_ended =
			model->recording->processes[member->process]->life == RECORDING_ENDED;
	}
	if (metrics_seat_is_over(model, seat) == metrics_seat_is_over(model, member->seat))
		add_position(member, counts);
}

/*
 * Seats and processes become claims: a claim contains its future labels. In sorted order, a run of equal
 * claims is one member.
 */

struct claim {
	enum metrics_member_kind kind;
	uint64_t job;  /* hash of its exported name */
	uint64_t hash; /* METRICS_UNKNOWN: number of the process */
	int64_t rank;  /* METRICS_HASHED: in the communicator; else global */
	int64_t pid;   /* 0 if it is not among the labels */
	uint32_t process;
	uint32_t seat;
};

/* The global rank of a process, -1 unknown. */
static int64_t metrics_global_rank(const struct metrics_model *model, size_t process)
{
	const struct job *job = model->job;

	if (job->process_rank[process] >= job->rank_count)
		return model->recording->processes[process]->rank;
	return job->ranks[job->process_rank[process]].rank;
}

void metrics_comm_text(const struct metrics_model *model, uint32_t seat,
		       char to[static METRICS_COMM_TEXT])
{
	const struct comm_info *info = &metrics_seat_comm(model, seat)->info;
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

/* Names that are equal after cleaning are merged. */
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

static int by_labels(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	return ORDER(a->kind, b->kind) ?:
	       ORDER(a->job, b->job) ?:
	       ORDER(a->hash, b->hash) ?:
	       ORDER(a->rank, b->rank) ?:
	       ORDER(a->pid, b->pid) ?:
	       ORDER(a->process, b->process) ?:
	       ORDER(a->seat, b->seat);
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

/* Makes one member from a run of claims. */
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

	return ORDER(a->group, b->group) ?: ORDER(b->use, a->use) ?: ORDER(a->index, b->index);
}

static int by_staying(const void *left, const void *right)
{
	const struct metrics_candidate *a = left, *b = right;

	return ORDER(b->is_beyond, a->is_beyond) ?: ORDER(a->index, b->index);
}

static size_t metrics_choose(struct metrics_candidate *candidates, size_t count, size_t limit)
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

/* Communicators in use take precedence over ended ones, however much these were used. */
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

/* Whether the process has totals or links that belong to none of its communicators. */
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

/* Folded members are added to METRICS_OTHER of their process, which is exported if it has values. */
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

static enum status model_reserve(struct metrics_model *model)
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
	/* Before the first scan there is no recording. */
	if (model->recording == NULL)
		model->recording = &nobody;
	status = model_reserve(model);
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

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Class 2 + n begins at 2^n bytes; those from 2^8 to 2^33 are exported individually. */
enum { LEAST_POWER = 8, MOST_POWER = 33, SIZE_SMALL = 2 };

static unsigned int metrics_size(unsigned int size_class)
{
	unsigned int power = size_class - 2;

	if (size_class < 2)
		return size_class == 0 ? METRICS_SIZE_UNKNOWN : METRICS_SIZE_ZERO;
	if (power < LEAST_POWER)
		return SIZE_SMALL;
	return SIZE_SMALL + 1 + (power < MOST_POWER ? power : MOST_POWER) - LEAST_POWER;
}

const char *metrics_size_text(unsigned int size)
{
	static const char *const texts[METRICS_SIZES] = {
		"unknown", "0",	    "1B",    "256B",  "512B",	"1KiB",	  "2KiB",   "4KiB",
		"8KiB",	   "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB",
		"2MiB",	   "4MiB",  "8MiB",  "16MiB", "32MiB",	"64MiB",  "128MiB", "256MiB",
		"512MiB",  "1GiB",  "2GiB",  "4GiB",  "8GiB",	"other",
	};

	return texts[size < METRICS_SIZES ? size : METRICS_SIZE_OTHER];
}

/* ---- adding up ------------------------------------------------------------------------------- */

static int by_member_and_what(const void *left, const void *right)
{
	const struct metrics_row *a = left, *b = right;

	return ORDER(a->member, b->member) ?: ORDER(a->what, b->what);
}

static void add_up(struct metrics_rows *rows)
{
	size_t kept = 0;

	qsort(rows->rows, rows->count, sizeof(*rows->rows), by_member_and_what);
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];
		struct metrics_row *last = &rows->rows[kept - (kept > 0)];

		if (kept == 0 || by_member_and_what(last, row) != 0) {
			rows->rows[kept++] = *row;
			continue;
		}
		for (size_t v = 0; v < METRICS_ROW_VALUES; v++)
			last->values[v] += row->values[v];
		last->bus_bytes += row->bus_bytes;
	}
	rows->count = kept;
}

enum budget { BUDGET_OF_GPU, BUDGET_OF_DIRECTION };

/* Rows beyond the limit become `other`, except for the bits of `keep`. Rows of `other` do not count. */
static enum status rows_fold(struct metrics_rows *rows, const struct metrics_model *model,
			     enum budget budget, size_t limit, uint64_t other, uint64_t keep)
{
	struct metrics_candidate *candidates = calloc(rows->count + 1, sizeof(*candidates));
	size_t count = 0, beyond;

	if (candidates == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < rows->count; i++) {
		const struct metrics_row *row = &rows->rows[i];

		if ((row->what & ~keep) == other)
			continue;
		candidates[count++] = (struct metrics_candidate){
			.group = budget == BUDGET_OF_GPU
					 ? model->members[row->member].gpu
					 : (uint64_t)row->member << 2 | row->what >> 32,
			.use = row->values[0],
			.index = (uint32_t)i,
		};
	}
	beyond = metrics_choose(candidates, count, limit);
	for (size_t i = 0; i < beyond; i++) {
		struct metrics_row *row = &rows->rows[candidates[i].index];

		row->what = (row->what & keep) | other;
	}
	free(candidates);
	rows->folded += beyond;
	if (beyond > 0)
		add_up(rows);
	return OK;
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* The exported form of a total's key. */
struct total_key {
	uint32_t member; /* METRICS_NOBODY: not exported */
	uint8_t function;
	uint8_t algorithm;
	uint8_t protocol;
	uint8_t size;
	double bus_factor;
};

static const struct total_key other_key = { .function = METRICS_NAME_OTHER,
					    .algorithm = METRICS_NAME_OTHER,
					    .protocol = METRICS_NAME_OTHER,
					    .size = METRICS_SIZE_OTHER };

static void key_of_names(struct total_key *to, const struct metrics_model *model, size_t process,
			 uint64_t key)
{
	to->function = metrics_name_number(model, process, OP_NAMES_FUNCTION, (uint8_t)(key >> 32));
	to->algorithm =
		metrics_name_number(model, process, OP_NAMES_ALGORITHM, (uint8_t)(key >> 16));
	to->protocol = metrics_name_number(model, process, OP_NAMES_PROTOCOL, (uint8_t)(key >> 8));
	to->size = (uint8_t)metrics_size((uint8_t)key);
}

/* The same for totals of communicators that the process does not list: they belong to METRICS_OTHER. */
static struct total_key read_key(const struct metrics_model *model, size_t process, size_t index)
{
	const struct recording_process *of = model->recording->processes[process];
	uint64_t key = of->totals[index].key;
	uint32_t comm = (uint32_t)(key >> 40);
	const struct job_seat *seat = comm ? job_seat(model->job, process, comm) : NULL;
	struct total_key to = other_key;
	int nranks = 0;

	to.member = model->other_member[process];
	if ((index > 0 && key <= SLOT_FORGOTTEN) || of->totals[index].count == 0) {
		to.member = METRICS_NOBODY;
		return to;
	}
	if (seat != NULL) {
		uint32_t number = (uint32_t)(seat - model->job->seats);

		to.member = model->seat_member[number];
		nranks = metrics_seat_comm(model, number)->info.nranks;
	}
	if (key != 0) {
		key_of_names(&to, model, process, key);
		to.bus_factor = op_bus_factor((uint8_t)(key >> 32), nranks);
	}
	return to;
}

static size_t count_totals(const struct metrics_model *model)
{
	size_t count = 0;

	for (size_t p = 0; p < model->recording->count; p++)
		count += model->recording->processes[p]->total_count;
	return count;
}

static uint64_t what_of(const struct total_key *key, enum metrics_rows_of of)
{
	switch (of) {
	case METRICS_ROWS_SIZES:
		return METRICS_SIZE_KEY(key->function, key->size);
	case METRICS_ROWS_CHOICES:
		return METRICS_CHOICE_KEY(key->function, key->algorithm, key->protocol);
	default:
		return key->function;
	}
}

static enum status make_totals(struct metrics_rows *rows, const struct metrics_model *model,
			       enum metrics_rows_of of)
{
	static const size_t limits[] = {
		[METRICS_ROWS_SIZES] = METRICS_SIZE_ROWS,
		[METRICS_ROWS_CHOICES] = METRICS_CHOICE_ROWS,
		[METRICS_ROWS_FUNCTIONS] = METRICS_FUNCTION_ROWS,
	};

	rows->rows = calloc(count_totals(model) + 1, sizeof(*rows->rows));
	if (rows->rows == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < model->recording->count; p++) {
		const struct recording_process *process = model->recording->processes[p];

		for (size_t i = 0; i < process->total_count; i++) {
			const struct region_total *total = &process->totals[i];
			struct total_key key = read_key(model, p, i);

			if (key.member == METRICS_NOBODY ||
			    (of == METRICS_ROWS_FUNCTIONS && !total->timed))
				continue;
			rows->rows[rows->count++] = (struct metrics_row){
				.member = key.member,
				.what = what_of(&key, of),
				.values = { total->count, total->bytes, total->timed_bytes,
					    total->sum_ns, total->timed, total->shared,
					    total->shared_ns },
				.bus_bytes = (double)total->timed_bytes * key.bus_factor,
			};
		}
	}
	add_up(rows);
	return rows_fold(rows, model, BUDGET_OF_GPU, limits[of], what_of(&other_key, of), 0);
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* A total and its row. */
struct reference {
	size_t row;
	const struct region_total *total;
};

static int by_row(const void *left, const void *right)
{
	const struct reference *a = left, *b = right;

	return ORDER(a->row, b->row);
}

/* The row of a total, or of the function "other" if its own row was folded. */
static const struct metrics_row *row_of(const struct metrics_rows *rows, uint32_t member,
					uint64_t what)
{
	struct metrics_row key = { .member = member, .what = what };
	const struct metrics_row *row =
		bsearch(&key, rows->rows, rows->count, sizeof(*rows->rows), by_member_and_what);

	if (row != NULL || what == METRICS_NAME_OTHER)
		return row;
	return row_of(rows, member, METRICS_NAME_OTHER);
}

static size_t make_references(struct reference *references, const struct metrics_rows *rows,
			      const struct metrics_model *model)
{
	size_t count = 0;

	for (size_t p = 0; p < model->recording->count; p++) {
		const struct recording_process *process = model->recording->processes[p];

		for (size_t i = 0; i < process->total_count; i++) {
			struct total_key key = read_key(model, p, i);
			const struct metrics_row *row = NULL;

			if (key.member != METRICS_NOBODY && process->totals[i].timed > 0)
				row = row_of(rows, key.member, key.function);
			if (row != NULL)
				references[count++] =
					(struct reference){ (size_t)(row - rows->rows),
							    &process->totals[i] };
		}
	}
	qsort(references, count, sizeof(*references), by_row);
	return count;
}

static void add_total(struct metrics_histogram *histogram, const struct region_total *total)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t room = METRICS_COUNT_MAX - histogram->buckets[i];

		/* Most buckets are empty. */
		if (total->buckets[i] != 0)
			histogram->buckets[i] +=
				total->buckets[i] < room ? total->buckets[i] : room;
	}
	histogram->sum_ns += total->sum_ns;
}

enum status metrics_rows_histograms(const struct metrics_rows *functions,
				    const struct metrics_model *model,
				    metrics_visit_histogram *visit, void *context)
{
	struct reference *references = calloc(count_totals(model) + 1, sizeof(*references));
	struct metrics_histogram histogram;
	size_t count, next;

	if (references == NULL)
		return ERR_NO_SPACE;
	count = make_references(references, functions, model);
	for (size_t i = 0; i < count; i = next) {
		memset(&histogram, 0, sizeof(histogram));
		for (next = i; next < count && references[next].row == references[i].row; next++)
			add_total(&histogram, references[next].total);
		visit(&functions->rows[references[i].row], &histogram, context);
	}
	free(references);
	return OK;
}

/* ---- links ----------------------------------------------------------------------------------- */

static void add_link(struct metrics_rows *rows, const struct metrics_model *model, size_t process,
		     size_t index)
{
	const struct region_link *link = &model->recording->processes[process]->links[index];
	const struct job_seat *seat = job_seat(model->job, process, (uint32_t)(link->key >> 34));
	uint32_t member = model->other_member[process];
	uint64_t direction = link->key >> 32 & 1 ? METRICS_RECV : METRICS_SEND;
	struct metrics_row *row = &rows->rows[rows->count];

	if ((index > 0 && link->key <= SLOT_FORGOTTEN) || link->proxies == 0)
		return;
	if (seat != NULL)
		member = model->seat_member[seat - model->job->seats];
	if (member == METRICS_NOBODY)
		return;
	*row = (struct metrics_row){ .member = member,
				     .what = METRICS_LINK_KEY(direction, link->key - 1),
				     .values = { link->bytes, link->steps, link->wait_ns[0],
						 link->wait_ns[1], link->wait_ns[2], 0, 0 } };
	if (link->key != 0 && link->wire_ns != 0 && !(link->wire_ns & LINK_WIRE_PARTIAL)) {
		row->values[ROW_WIRE_BYTES] = link->bytes;
		row->values[ROW_WIRE] = link->wire_ns;
	}
	if (link->key == 0) {
		row->what = METRICS_LINK_KEY(METRICS_EITHER, METRICS_PEER_OTHER);
		row->values[ROW_WAITS] += link->wait_ns[1] + link->wait_ns[2];
		row->values[ROW_WAITS + 1] = row->values[ROW_WAITS + 2] = 0;
	}
	rows->count++;
}

static enum status make_links(struct metrics_rows *rows, const struct metrics_model *model)
{
	const uint64_t directions = UINT64_C(3) << 32;
	enum status status;
	size_t count = 0;

	for (size_t p = 0; p < model->recording->count; p++)
		count += model->recording->processes[p]->link_count;
	rows->rows = calloc(count + 1, sizeof(*rows->rows));
	if (rows->rows == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < model->recording->count; p++)
		for (size_t i = 0; i < model->recording->processes[p]->link_count; i++)
			add_link(rows, model, p, i);
	add_up(rows);
	status = rows_fold(rows, model, BUDGET_OF_DIRECTION, METRICS_PEERS_PER_COMM,
			   METRICS_PEER_OTHER, directions);
	if (status != OK)
		return status;
	return rows_fold(rows, model, BUDGET_OF_GPU, METRICS_LINK_ROWS, METRICS_PEER_OTHER,
			 directions);
}

/* ---------------------------------------------------------------------------------------------- */

enum status metrics_rows_make(struct metrics_rows *rows, const struct metrics_model *model,
			      enum metrics_rows_of of)
{
	return of == METRICS_ROWS_LINKS ? make_links(rows, model) : make_totals(rows, model, of);
}

void metrics_rows_release(struct metrics_rows *rows)
{
	free(rows->rows);
	*rows = (struct metrics_rows){ 0 };
}
