/* A sample of an answer, into the tables. */
#include <string.h>

#include "doctor/prom_parts.h"

#define SIGNATURE_BITS ((UINT64_C(1) << 52) - 1)
#define SECOND_NS 1e9

/* Seconds within a hundred years, as ns. */
static uint64_t to_ns(double seconds)
{
	if (!(seconds > 0))
		return 0;
	return seconds < 3.2e9 ? (uint64_t)(seconds * SECOND_NS) : 0;
}

/* Times since 1970 as text have milliseconds; a double of them has no whole nanoseconds. */
static uint64_t wall_ns(double seconds)
{
	if (!(seconds > 0) || seconds > 1.8e10)
		return 0;
	return (uint64_t)(seconds * 1e3 + 0.5) * 1000000;
}

static uint32_t label_text(struct prom *prom, const struct prom_sample *sample,
			   enum prom_label label)
{
	return prom_text(prom, sample->labels[label]);
}

static int32_t label_int(const struct prom_sample *sample, enum prom_label label, int32_t otherwise)
{
	return (int32_t)prom_label_number(sample, label, 0, INT32_MAX - 1, otherwise);
}

static void take_process(struct prom *prom, const struct prom_sample *sample)
{
	uint32_t at = prom_process_of(prom, label_text(prom, sample, PROM_LABEL_NCCL_JOB),
				      label_text(prom, sample, PROM_LABEL_HOST),
				      prom_label_number(sample, PROM_LABEL_PID, 0, INT32_MAX, -1));
	uint64_t scrape_ns = wall_ns(sample->value), now_ns = wall_ns(sample->at);
	struct prom_process *process;

	if (at == UINT32_MAX)
		return;
	process = &prom->processes[at];
	/* Of two that claim to be the same the one that was scraped last: its state has changed. */
	if (process->scrape_ns > scrape_ns)
		return;
	process->scrape_ns = scrape_ns;
	process->rank = prom_label_number(sample, PROM_LABEL_GLOBAL_RANK, 0, INT32_MAX, -1);
	process->local_rank = prom_label_number(sample, PROM_LABEL_LOCAL_RANK, 0, INT32_MAX, -1);
	process->world_size = prom_label_number(sample, PROM_LABEL_WORLD_SIZE, 1, INT32_MAX, -1);
	process->gpu = label_int(sample, PROM_LABEL_GPU, -1);
	process->gpu_uuid = label_text(prom, sample, PROM_LABEL_GPU_UUID);
	process->mode = label_text(prom, sample, PROM_LABEL_MODE);
	process->interface = (uint32_t)prom_label_number(sample, PROM_LABEL_INTERFACE, 0, 1000, 0);
	process->state = label_text(prom, sample, PROM_LABEL_STATE);
	if (now_ns > scrape_ns && now_ns - scrape_ns > prom->scrape_age_ns)
		prom->scrape_age_ns = now_ns - scrape_ns;
}

static void take_member(struct prom *prom, struct prom_member *member,
			const struct prom_sample *sample)
{
	member->has_info = true;
	member->is_finalized = prom_label_is(sample, PROM_LABEL_FINALIZED, "true");
	member->name = label_text(prom, sample, PROM_LABEL_COMM_NAME);
	member->host = label_text(prom, sample, PROM_LABEL_HOST);
	member->pid = prom_label_number(sample, PROM_LABEL_PID, 0, INT32_MAX, -1);
	member->global_rank = prom_label_number(sample, PROM_LABEL_GLOBAL_RANK, 0, INT32_MAX, -1);
	member->nranks = label_int(sample, PROM_LABEL_NRANKS, 0);
	member->nnodes = label_int(sample, PROM_LABEL_NNODES, 0);
	member->gpu = label_int(sample, PROM_LABEL_GPU, -1);
}

static void take_number(struct prom_member *member, const struct prom_sample *sample)
{
	static const char *const names[PROM_NUMBER_COUNT] = {
		[PROM_COLLECTIVES] = "nccl_collective_number_issued",
		[PROM_REPLAYS] = "nccl_collective_number_replayed",
		[PROM_ISSUED] = "nccl_operation_number_issued",
		[PROM_DONE] = "nccl_operation_number_done",
		[PROM_SIGNATURE] = "nccl_collective_signature",
		[PROM_AGE] = "nccl_oldest_operation_age_seconds",
		[PROM_ACTIVITY] = "nccl_last_activity_age_seconds",
	};

	for (enum prom_number number = 0; number < PROM_NUMBER_COUNT; number++) {
		if (!prom_label_is(sample, PROM_LABEL_NAME, names[number]))
			continue;
		if (number == PROM_AGE || number == PROM_ACTIVITY)
			member->numbers[number] = to_ns(sample->value);
		else if (sample->is_whole)
			member->numbers[number] = sample->whole;
		else
			return;
		member->has_numbers |= 1u << number;
		return;
	}
}

static uint32_t take_call(struct prom *prom, const struct prom_sample *sample)
{
	struct prom_call call = {
		.function = label_text(prom, sample, PROM_LABEL_FUNCTION),
		.datatype = label_text(prom, sample, PROM_LABEL_DATATYPE),
		.count = prom_label_unsigned(sample, PROM_LABEL_COUNT),
		.root = label_int(sample, PROM_LABEL_ROOT, OP_NOBODY),
		.peer = label_int(sample, PROM_LABEL_PEER, OP_NOBODY),
		.number = prom_label_unsigned(sample, PROM_LABEL_NUMBER),
		.match = prom_label_unsigned(sample, PROM_LABEL_MATCH),
		.signature = prom_label_unsigned(sample, PROM_LABEL_SIGNATURE) & SIGNATURE_BITS,
		.state = label_text(prom, sample, PROM_LABEL_STATE),
		.kernels_started = label_text(prom, sample, PROM_LABEL_KERNELS_STARTED),
		.kernels_stopped = label_text(prom, sample, PROM_LABEL_KERNELS_STOPPED),
		.has_kernels = sample->labels[PROM_LABEL_KERNELS_STARTED].text != NULL,
		.is_replay = prom_label_is(sample, PROM_LABEL_REPLAY, "true"),
	};

	if (!prom_grow(&prom->calls, prom->call_count, sizeof(*prom->calls))) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	prom->calls[prom->call_count] = call;
	return (uint32_t)++prom->call_count;
}

static void take_oldest(struct prom *prom, struct prom_member *member,
			const struct prom_sample *sample)
{
	uint32_t call = take_call(prom, sample);

	/* Of two the later: what is in a series that ended within this scrape is over. */
	if (call == 0 || (member->oldest != 0 &&
			  prom->calls[member->oldest - 1].number > prom->calls[call - 1].number))
		return;
	member->oldest = call;
	if (prom->calls[call - 1].has_kernels)
		prom->comms[member->comm].flags |= COMM_FLAG_SEES_KERNELS;
}

static void take_wait(struct prom *prom, struct prom_member *member,
		      const struct prom_sample *sample)
{
	struct prom_wait wait = { .next = member->waits,
				  .waits_for = label_text(prom, sample, PROM_LABEL_WAITS_FOR),
				  .channels = label_text(prom, sample, PROM_LABEL_CHANNELS),
				  .peer = label_int(sample, PROM_LABEL_PEER, OP_NOBODY),
				  .for_ns = to_ns(sample->value) };

	if (!prom_grow(&prom->waits, prom->wait_count, sizeof(*prom->waits))) {
		prom->status = ERR_NO_SPACE;
		return;
	}
	prom->waits[prom->wait_count] = wait;
	member->waits = (uint32_t)++prom->wait_count;
	prom->comms[member->comm].flags |= COMM_FLAG_SEES_PROXIES;
}

static void take_down(struct prom *prom, const struct prom_sample *sample)
{
	if (!prom_grow(&prom->downs, prom->down_count, sizeof(*prom->downs))) {
		prom->status = ERR_NO_SPACE;
		return;
	}
	prom->downs[prom->down_count++] = (struct prom_down){
		.instance = label_text(prom, sample, PROM_LABEL_INSTANCE),
		.node = label_text(prom, sample, PROM_LABEL_NODE),
	};
}

static void take_unseen(struct prom *prom, const struct prom_sample *sample)
{
	if (!prom_grow(&prom->unseen, prom->unseen_count, sizeof(*prom->unseen))) {
		prom->status = ERR_NO_SPACE;
		return;
	}
	prom->unseen[prom->unseen_count++] = (struct prom_unseen){
		.instance = label_text(prom, sample, PROM_LABEL_INSTANCE),
		.job = label_text(prom, sample, PROM_LABEL_NCCL_JOB),
		.rank = prom_label_number(sample, PROM_LABEL_GLOBAL_RANK, 0, INT32_MAX, -1),
	};
}

static void take_since(struct prom *prom, const struct prom_sample *sample)
{
	if (!prom_grow(&prom->since, prom->since_count, sizeof(*prom->since))) {
		prom->status = ERR_NO_SPACE;
		return;
	}
	prom->since[prom->since_count++] = (struct prom_since){
		.job = label_text(prom, sample, PROM_LABEL_NCCL_JOB),
		.first_ns = wall_ns(sample->value),
	};
}

static void take_row(struct prom *prom, enum prom_ask ask, uint32_t member,
		     const struct prom_sample *sample)
{
	bool is_edge = ask >= PROM_EDGES_NOW;
	bool is_before = is_edge ? ask >= PROM_EDGES_BEFORE : ask >= PROM_SUMS_BEFORE;
	unsigned int which = (unsigned int)(ask - PROM_SUMS_NOW) % 3;
	struct prom_rows *rows = is_edge ? prom->edges : prom->sums;
	struct prom_row key = { .member = member, .peer = OP_NOBODY }, *row;

	_Static_assert((PROM_EDGES_NOW - PROM_SUMS_NOW) % 3 == 0, "three figures of each");
	if (is_edge) {
		key.peer = label_int(sample, PROM_LABEL_PEER, OP_NOBODY);
	} else {
		key.function = label_text(prom, sample, PROM_LABEL_FUNCTION);
		key.size = label_text(prom, sample, PROM_LABEL_SIZE);
	}
	row = prom_row_of(prom, &rows[is_before ? PROM_ROWS_BEFORE : PROM_ROWS_NOW], key);
	if (row != NULL && sample->value > 0)
		row->values[which] += sample->value;
}

static void take_of_member(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample)
{
	uint32_t at = prom_member_of(prom, sample);
	struct prom_member *member;

	if (at == UINT32_MAX) {
		prom->odd += prom->status == OK;
		return;
	}
	member = &prom->members[at];
	if (ask == PROM_MEMBERS)
		take_member(prom, member, sample);
	else if (ask == PROM_NUMBERS)
		take_number(member, sample);
	else if (ask == PROM_OLDEST)
		take_oldest(prom, member, sample);
	else if (ask == PROM_WAITS)
		take_wait(prom, member, sample);
	else if (ask == PROM_LAST)
		member->last = take_call(prom, sample);
	else
		take_row(prom, ask, at, sample);
}

bool prom_take_sample(struct prom *prom, enum prom_ask ask, const struct prom_sample *sample)
{
	uint64_t at_ns = wall_ns(sample->at);

	if (at_ns > prom->wall_ns)
		prom->wall_ns = at_ns;
	if (ask == PROM_PROCESSES)
		take_process(prom, sample);
	else if (ask == PROM_DOWN)
		take_down(prom, sample);
	else if (ask == PROM_UNSEEN)
		take_unseen(prom, sample);
	else if (ask == PROM_SINCE)
		take_since(prom, sample);
	else
		take_of_member(prom, ask, sample);
	return prom->status == OK;
}
