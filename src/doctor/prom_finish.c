/*
 * What a rank is in, and what it was in before, as its live slots would show it. The agent has already
 * determined that the oldest operation is open and what it waits for; this reconstructs the state that
 * those answers were derived from.
 */
#include "doctor/prom.h"
#include "doctor/prom_internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/status.h"
#include "common/text.h"
#include "recording/recording.h"

/* NCCL's numbers of a transfer's state, as in region_step.state. */
static const uint8_t step_states[] = {
	[FLIGHT_SEND_GPU] = 8,	[FLIGHT_SEND_PEER] = 20,  [FLIGHT_SEND_NET] = 9,
	[FLIGHT_RECV_NET] = 10, [FLIGHT_RECV_FLUSH] = 11, [FLIGHT_RECV_GPU] = 12
};
enum { CHANNELS_MAX = 256 };

/* The number of a name; an unknown name gets a number of this process. */
static uint8_t name_number(struct recording_process *process, enum op_name_table table,
			   const char *name)
{
	int is_known = 0;
	uint8_t number = op_name_find(table, name, &is_known);

	if (is_known || name[0] == '\0')
		return number;
	for (unsigned int i = 0; i < OP_NAMES_INTERNED_MAX; i++) {
		char *known = process->names[i];

		if (known[0] == '\0')
			text_copy(known, sizeof(process->names[i]), name);
		if (strncmp(known, name, sizeof(process->names[i]) - 1) == 0)
			return (uint8_t)(OP_NAME_INTERNED + i);
	}
	return 0;
}

static uint8_t state_number(const char *name)
{
	for (uint8_t state = OP_ISSUED; state < OP_STATES; state++)
		if (strcmp(op_state_name(state), name) == 0)
			return state;
	return OP_ISSUED;
}

static struct op_record op_of(const struct prom *prom, const struct prom_call *call,
			      struct recording_process *process, const struct recording_comm *comm)
{
	struct op_record op = {
		.comm = comm->info.id,
		.function =
			name_number(process, OP_NAMES_FUNCTION, prom_text_of(prom, call->function)),
		.datatype =
			name_number(process, OP_NAMES_DATATYPE, prom_text_of(prom, call->datatype)),
		.number = call->number,
		.match = call->match,
		.signature = call->signature,
		.count = call->count,
		.root = call->root,
		.peer = OP_NOBODY,
		.flags = call->is_replay ? OP_FLAG_REPLAY : 0,
		.state = state_number(prom_text_of(prom, call->state)),
	};

	if (!op_is_collective(op.function))
		op.peer = call->peer;
	op.bytes = op_message_bytes(op.function, op.count, op_datatype_bytes(op.datatype),
				    comm->info.nranks);
	return op;
}

/* "0-7,12" */
static unsigned int channel_bits(const char *text, uint64_t bits[static 4])
{
	const char *at = text;

	memset(bits, 0, 4 * sizeof(*bits));
	while (*at >= '0' && *at <= '9') {
		unsigned long from = strtoul(at, (char **)&at, 10), to = from;

		if (*at == '-')
			to = strtoul(at + 1, (char **)&at, 10);
		for (unsigned long c = from; c <= to && c < CHANNELS_MAX; c++)
			bits[c / 64] |= UINT64_C(1) << (c % 64);
		if (*at == ',')
			at++;
	}
	return (unsigned int)(__builtin_popcountll(bits[0]) + __builtin_popcountll(bits[1]) +
			      __builtin_popcountll(bits[2]) + __builtin_popcountll(bits[3]));
}

static bool reason_of(const char *name, enum flight_reason *reason)
{
	for (*reason = 0; *reason < FLIGHT_REASONS; ++*reason)
		if (strcmp(flight_reason_name(*reason), name) == 0)
			return true;
	return false;
}

static uint64_t before(uint64_t now_ns, uint64_t ns)
{
	return now_ns > ns ? now_ns - ns : 1;
}

static struct recording_proxy proxy_of(const struct prom_wait *wait, enum flight_reason reason,
				       const struct op_record *op, uint64_t now_ns)
{
	bool is_queued = reason == FLIGHT_SEND_QUEUED || reason == FLIGHT_RECV_QUEUED;
	bool is_send = reason <= FLIGHT_SEND_NET || reason == FLIGHT_SEND_QUEUED ||
		       reason == FLIGHT_SEND_STARTING;
	uint64_t since_ns = before(now_ns, wait->for_ns);
	struct recording_proxy of = { .proxy = { .comm = op->comm,
						 .number = op->number,
						 .peer = wait->peer,
						 .start_ns = since_ns,
						 .since_ns = since_ns } };

	of.proxy.flags =
		(uint8_t)((is_send ? PROXY_IS_SEND : 0) | (is_queued ? 0 : PROXY_IN_PROGRESS));
	if (reason <= FLIGHT_RECV_GPU) {
		unsigned int stage = is_send ? reason : reason - FLIGHT_RECV_NET;

		of.proxy.posted = 1;
		of.proxy.active_ns = since_ns;
		of.step_count = 1;
		of.steps[0].step_plus_1 = 1;
		of.steps[0].state = step_states[reason];
		of.steps[0].time_ns[stage] = since_ns;
	}
	return of;
}

static enum status add_proxies(const struct prom *prom, const struct prom_wait *wait,
			       struct recording_flight *flight, uint64_t now_ns)
{
	enum flight_reason reason;
	uint64_t bits[4];

	if (!reason_of(prom_text_of(prom, wait->waits_for), &reason))
		return OK;
	if (channel_bits(prom_text_of(prom, wait->channels), bits) == 0)
		bits[0] = 1; /* unknown: any value works */
	for (unsigned int c = 0; c < CHANNELS_MAX; c++) {
		struct recording_proxy proxy;

		if (!(bits[c / 64] >> (c % 64) & 1))
			continue;
		proxy = proxy_of(wait, reason, &flight->op, now_ns);
		proxy.proxy.channel = (uint8_t)c;
		if (!list_grow(&flight->proxies, flight->proxy_count, sizeof(proxy)))
			return ERR_NO_SPACE;
		flight->proxies[flight->proxy_count++] = proxy;
	}
	return OK;
}

static struct recording_flight *new_flight(struct recording_process *process)
{
	struct recording_flight *flight;

	if (!list_grow(&process->flights, process->flight_count, sizeof(*process->flights)))
		return NULL;
	flight = &process->flights[process->flight_count++];
	*flight = (struct recording_flight){ .op = { .sequence = 0 } };
	return flight;
}

/* The previous collective, as a slot that is not reused yet. */
static enum status add_last(const struct prom *prom, const struct prom_member *member,
			    struct recording_process *process, const struct recording_comm *comm)
{
	struct recording_flight *flight = new_flight(process);
	struct op_record *op;

	if (flight == NULL)
		return ERR_NO_SPACE;
	op = &flight->op;
	*op = op_of(prom, &prom->calls[member->last - 1], process, comm);
	op->state = OP_DONE;
	op->done_ns = comm->counts.last_done_ns;
	op->issue_ns = op->done_ns;
	if (op->match == 0) {
		/* Nothing was in flight: it was the last one of all, from the gauges. */
		op->number = comm->counts.issued;
		op->match = comm->counts.collectives;
		op->signature = comm->counts.signature;
	} else if (member->oldest != 0) {
		op->number = prom->calls[member->oldest - 1].number;
		op->number -= op->number > 0;
	} else {
		/* Of a process that is gone. */
		op->number = comm->counts.last_done_number;
	}
	if (op->number == 0 || op->match == 0)
		process->flight_count--;
	return OK;
}

static enum status add_oldest(const struct prom *prom, const struct prom_member *member,
			      struct recording_process *process, const struct recording_comm *comm)
{
	const struct prom_call *call = &prom->calls[member->oldest - 1];
	uint64_t now_ns = process->counts_ns;
	struct recording_flight *flight = new_flight(process);
	enum status status = OK;
	struct op_record *op;

	if (flight == NULL)
		return ERR_NO_SPACE;
	op = &flight->op;
	*op = op_of(prom, call, process, comm);
	op->issue_ns = before(now_ns, member->numbers[PROM_AGE]);
	if (op->state != OP_ISSUED)
		op->task_ns = op->launch_ns = op->issue_ns;
	if (op->state == OP_RUNNING)
		op->active_ns = op->issue_ns;
	op->kernels_started =
		(uint16_t)channel_bits(prom_text_of(prom, call->kernels_started), flight->started);
	op->kernels_stopped =
		(uint16_t)channel_bits(prom_text_of(prom, call->kernels_stopped), flight->stopped);
	for (uint32_t at = member->waits; at != 0 && status == OK; at = prom->waits[at - 1].next)
		status = add_proxies(prom, &prom->waits[at - 1], flight, now_ns);
	if (flight->proxy_count > 1)
		qsort(flight->proxies, flight->proxy_count, sizeof(*flight->proxies),
		      recording_compare_proxies);
	op->proxies_started = (uint16_t)flight->proxy_count;
	if (op->kernels_started > op->kernels_stopped)
		flight->open_children = (uint32_t)(op->kernels_started - op->kernels_stopped);
	flight->open_children += (uint32_t)flight->proxy_count;
	return status;
}

/* What a rank is in and was in, after the process's last flight. */
static enum status prom_add_flights(const struct prom *prom, const struct prom_member *member,
				    struct recording_process *process, struct recording_comm *comm)
{
	/* Without an age it is over by now, or another one. */
	bool is_in = member->oldest != 0 && member->numbers[PROM_AGE] > 0 &&
		     prom->calls[member->oldest - 1].number > 0;
	/* It came between two queries: the number of the previous one is unknown. */
	bool is_unplaced = is_in && member->last != 0 && prom->calls[member->last - 1].match == 0;
	enum status status = OK;

	if (member->last != 0 && comm->has_counts && !is_unplaced)
		status = add_last(prom, member, process, comm);
	if (status == OK && is_in)
		status = add_oldest(prom, member, process, comm);
	return status;
}

/* Totals for slowness, and agents that did not answer. */

/* ---- agents that are down ---------------------------------------------------------------------- */

enum { NAMED_MAX = 512 };

static int by_rank(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return ORDER(a, b);
}

/* "8-15,17" */
static void say_ranks(char *text, size_t size, const int64_t *ranks, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count && used + 48 < size; i++) {
		size_t from = i;

		while (i + 1 < count && ranks[i + 1] <= ranks[i] + 1)
			i++;
		text_format(text + used, size - used,
			    ranks[i] > ranks[from] ? "%s%" PRId64 "-%" PRId64 : "%s%" PRId64,
			    used ? "," : "", ranks[from], ranks[i]);
		used += strlen(text + used);
	}
}

static void say_down(const struct prom *prom, const struct prom_fact *down, int64_t *ranks,
		     char *text, size_t size)
{
	char list[200] = "";
	uint32_t job = 0;
	size_t count = 0;

	for (size_t i = 0; i < prom->unseen.count && count < NAMED_MAX; i++) {
		const struct prom_fact *unseen = &prom->unseen.list[i];

		if (unseen->instance != down->instance || unseen->rank < 0)
			continue;
		ranks[count++] = unseen->rank;
		job = unseen->job;
	}
	if (count == 0) {
		text_copy(text, size, "Prometheus cannot scrape it");
		return;
	}
	qsort(ranks, count, sizeof(*ranks), by_rank);
	say_ranks(list, sizeof(list), ranks, count);
	text_format(text, size, "Prometheus cannot scrape it; it had rank%s %s%s%.60s",
		    strpbrk(list, "-,") ? "s" : "", list, job ? " of job " : "",
		    prom_text_of(prom, job));
}

/* Sources and totals. */
static enum status prom_make_sources(struct prom *prom)
{
	int64_t *ranks = malloc(NAMED_MAX * sizeof(*ranks));
	enum status status = OK;

	prom->sources = calloc(prom->downs.count + 1, sizeof(*prom->sources));
	if (ranks == NULL || prom->sources == NULL)
		status = ERR_NO_SPACE;
	for (size_t i = 0; i < prom->downs.count && status == OK; i++) {
		const struct prom_fact *down = &prom->downs.list[i];
		const char *name = prom_text_of(prom, down->instance);
		char text[360];
		uint32_t problem;

		say_down(prom, down, ranks, text, sizeof(text));
		problem = prom_text(prom, (struct prom_slice){ text, strlen(text) });
		prom->sources[prom->source_count++] = (struct hang_source){
			.name = name, .is_silent = true, .problem = prom_text_of(prom, problem)
		};
		status = prom->status;
	}
	free(ranks);
	return status;
}

/* ---- totals ---------------------------------------------------------------------------------- */

static const char *comm_label(const struct prom *prom, const struct prom_member *member)
{
	if (member->name != 0)
		return prom_text_of(prom, member->name);
	return prom_text_of(prom, prom->comms[member->comm].comm);
}

static struct slow_member slow_member_of(const struct prom *prom, const struct prom_row *row)
{
	const struct prom_member *member = &prom->members[row->member];
	const struct prom_comm *comm = &prom->comms[member->comm];
	int is_known;

	return (struct slow_member){
		.job = prom_text_of(prom, comm->job),
		.comm = comm_label(prom, member),
		.comm_hash = comm->hash,
		.kind = job_comm_kind_of(member->nranks, member->nnodes),
		.nranks = member->nranks,
		.comm_rank = member->rank,
		.rank = member->global_rank,
		.host = prom_text_of(prom, member->host),
		.pid = member->pid,
		.gpu = member->gpu,
		.function = op_name_find(OP_NAMES_FUNCTION, prom_text_of(prom, row->function),
					 &is_known),
		.size = prom_text_of(prom, row->size),
		.operations = row->values[0],
		.timed = row->values[3],
		.seconds = row->values[1],
		.bus_bytes = row->values[2],
	};
}

static struct slow_edge slow_edge_of(const struct prom *prom, const struct prom_row *row)
{
	const struct prom_member *member = &prom->members[row->member];
	const struct prom_comm *comm = &prom->comms[member->comm];

	return (struct slow_edge){
		.job = prom_text_of(prom, comm->job),
		.comm = comm_label(prom, member),
		.comm_hash = comm->hash,
		.from = member->rank,
		.to = row->peer,
		.transfers = row->values[0],
		.wire_seconds = row->values[1],
		.bytes = row->values[2],
	};
}

/* A row with a missing value (its query failed) would be misleading. */
static bool is_whole(const struct prom *prom, const struct prom_row *row)
{
	return prom->members[row->member].has_info && row->values[0] > 0;
}

static bool are_taken(const struct prom *prom, enum prom_ask first)
{
	return prom->is_taken[first] && prom->is_taken[first + 1] && prom->is_taken[first + 2];
}

_Static_assert(offsetof(struct slow_member, job) == 0 && offsetof(struct slow_edge, job) == 0,
	       "both begin with their job");

static int by_job(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static enum status make_stretch(struct prom *prom, unsigned int stretch)
{
	static const enum prom_ask asks[PROM_ROWS_STRETCHES][2] = {
		{ PROM_SUMS_NOW, PROM_EDGES_NOW }, { PROM_SUMS_BEFORE, PROM_EDGES_BEFORE }
	};
	bool has_timed =
		prom->is_taken[stretch == PROM_ROWS_NOW ? PROM_TIMED_NOW : PROM_TIMED_BEFORE];
	const struct prom_rows *sums = &prom->sums[stretch], *edges = &prom->edges[stretch];
	struct slow_sums *slow = &prom->slow[stretch];
	struct slow_member *members = calloc(sums->index.count + 1, sizeof(*members));
	struct slow_edge *list = calloc(edges->index.count + 1, sizeof(*list));

	prom->slow_members[stretch] = members;
	prom->slow_edges[stretch] = list;
	if (members == NULL || list == NULL)
		return ERR_NO_SPACE;
	*slow = (struct slow_sums){ .members = members, .edges = list, .seconds = prom->window_s };
	for (size_t i = 0; has_timed && are_taken(prom, asks[stretch][0]) && i < sums->index.count;
	     i++)
		if (is_whole(prom, &sums->list[i]))
			members[slow->member_count++] = slow_member_of(prom, &sums->list[i]);
	for (size_t i = 0; are_taken(prom, asks[stretch][1]) && i < edges->index.count; i++)
		if (is_whole(prom, &edges->list[i]))
			list[slow->edge_count++] = slow_edge_of(prom, &edges->list[i]);
	qsort(members, slow->member_count, sizeof(*members), by_job);
	qsort(list, slow->edge_count, sizeof(*list), by_job);
	return OK;
}

static enum status prom_make_sums(struct prom *prom)
{
	for (unsigned int stretch = 0; stretch < PROM_ROWS_STRETCHES; stretch++) {
		enum status status = make_stretch(prom, stretch);

		if (status != OK)
			return status;
	}
	return OK;
}

/* ---- job by job -------------------------------------------------------------------------------- */

/* The part of one job in a list that is sorted by job. */
static const void *part_of(const void *list, size_t bytes, const char *job, size_t *count)
{
	const char *first = list;
	size_t left = *count;

	for (; left > 0 && by_job(first, &job) < 0; left--)
		first += bytes;
	for (*count = 0; *count < left && by_job(first + *count * bytes, &job) == 0;)
		++*count;
	return first;
}

static struct slow_sums of_job(const struct slow_sums *all, const char *job)
{
	struct slow_sums sums = *all;

	sums.members = part_of(all->members, sizeof(*all->members), job, &sums.member_count);
	sums.edges = part_of(all->edges, sizeof(*all->edges), job, &sums.edge_count);
	return sums;
}

/* The part of the time span in which the job ran. */
static double covered_s(const struct prom *prom, const char *job)
{
	double covered = prom->window_s;

	for (size_t i = 0; i < prom->since.count; i++) {
		uint64_t first_ns = prom->since.list[i].wall_ns;

		if (strcmp(prom_text_of(prom, prom->since.list[i].job), job) == 0 &&
		    first_ns != 0 && first_ns < prom->wall_ns)
			covered = (double)(prom->wall_ns - first_ns) / 1e9;
	}
	if (covered > prom->window_s)
		return prom->window_s;
	return covered < 1 ? 1 : covered;
}

enum status prom_slow(const struct prom *prom, struct verdicts *verdicts,
		      const struct slow_sums_options *options)
{
	const struct slow_sums *all = prom_now(prom);
	enum status status = OK;

	for (size_t i = 0; i < all->member_count && status == OK;) {
		const char *job = all->members[i].job;
		struct slow_sums now = of_job(all, job);
		struct slow_sums before = of_job(&prom->slow[PROM_ROWS_BEFORE], job);
		struct slow_sums_options these = *options;

		now.seconds = covered_s(prom, job);
		these.before = before.member_count > 0 || before.edge_count > 0 ? &before : NULL;
		these.now_wall_ns = prom->wall_ns;
		status = slow_find_sums(verdicts, &now, &these);
		i += now.member_count;
	}
	return status;
}

/*
 * From the tables to a recording. The recorder's clock of every process is Prometheus' own, so one anchor,
 * at its last scrape, is enough.
 */

enum { MASK_KERNEL_CHANNELS = 1 << 6 };

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

/* As a recorder writes it. */
static enum status take_limit(struct recording_process *process, const struct prom *prom,
			      uint32_t job)
{
	char info[48];

	for (size_t i = 0; i < prom->limits.count && process->info == NULL; i++) {
		if (prom->limits.list[i].job != job)
			continue;
		text_format(info, sizeof(info), "hang_after_s=%" PRIu64 "\n",
			    prom->limits.list[i].whole);
		process->info = strdup(info);
		process->info_bytes = strlen(info);
		if (process->info == NULL)
			return ERR_NO_SPACE;
	}
	return OK;
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
	status = take_limit(process, prom, of->job);
	if (status == OK)
		status = recording_load_anchor(process, (struct clock_anchor){ now_ns, now_ns });
	if (status != OK) {
		recording_process_free(process);
		return status;
	}
	return recording_load_keep(recording, process);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static bool has_number(const struct prom_member *member, enum prom_number number)
{
	return member->has_numbers >> number & 1;
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
	/* The time of its last activity is known, but not which of the two it was. */
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

/* Ranks by process, then communicator and rank: the same answer gives the same numbers. */
static int by_process(const void *left, const void *right)
{
	const struct prom_member *a = *(const struct prom_member *const *)left;
	const struct prom_member *b = *(const struct prom_member *const *)right;

	return ORDER(a->process, b->process) ?: ORDER(a->comm, b->comm) ?: ORDER(a->rank, b->rank);
}

/* Ranks without a known process are left out: they were gone when that was queried. */
static enum status find_processes(struct prom *prom, const struct prom_member **sorted,
				  size_t *count)
{
	*count = 0;
	for (size_t i = 0; i < prom->member_index.count; i++) {
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
	const struct prom_member **sorted = calloc(prom->member_index.count + 1, sizeof(*sorted));
	enum status status;
	size_t count;

	if (sorted == NULL)
		return ERR_NO_SPACE;
	status = find_processes(prom, sorted, &count);
	for (size_t i = 0; i < prom->process_index.count && status == OK; i++)
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
