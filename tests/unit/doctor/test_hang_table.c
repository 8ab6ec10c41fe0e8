/*
 * What the doctor says about two ranks of a small job, whatever each of them does: all combinations in one table, a line
 * of it each. The same with and without kernel events.
 */
#include "common/attributes.h"
#include "common/text.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

static struct hang_stage stage;
static bool is_culprit_open; /* several ranks could be named with equal right */

static void tell(const char *what)
{
	stage.is_alone = true;
	for (size_t i = 0; i < stage.recording.count; i++)
		qsort(stage_rank(&stage, (int)i)->flights, stage_rank(&stage, (int)i)->flight_count,
		      sizeof(struct recording_flight), stage_by_comm);
	poison_processes(&stage.recording);
	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	poison_job(&stage.job);
	if (hang_find(&stage.verdicts, &stage.job, &stage.options) != OK)
		abort();
	verdicts_sort(&stage.verdicts);
	unpoison_processes(&stage.recording);
	expected_put(&stage_text, "%s%s\n", what, stage.verdicts.count == 0 ? ": -" : "");
	for (size_t i = 0; i < stage.verdicts.count; i++) {
		const struct verdict *verdict = &stage.verdicts.list[i];

		expected_put(&stage_text, "\t%s %.3f: %s [%u, %zu %zu %zu]",
			     verdict_class_name(verdict->class), verdict->confidence,
			     verdict->title, verdict->victims, verdict->evidence.count,
			     verdict->missing.count, verdict->advice.count);
		if (!is_culprit_open)
			expected_put(&stage_text, " %lld %lld", (long long)verdict->rank,
				     (long long)verdict->peer);
		expected_put(&stage_text, "\n");
	}
	stage_end(&stage);
}

static void hide_kernels(int ranks)
{
	for (int i = 0; i < ranks; i++)
		for (size_t c = 0; c < stage_rank(&stage, i)->comm_count; c++)
			stage_rank(&stage, i)->comms[c].info.flags = 0;
}

/* ---- a Send and its Recv --------------------------------------------------------------------------------- */

enum half {
	ABSENT,
	ISSUED,
	LAUNCHED,
	RUNNING,
	BY_GPU,
	BY_NETWORK,
	BY_PEER,
	DONE,
	STOPPED,
	KILLED,
	HALVES
};

static const char *const half_names[HALVES] = {
	[ABSENT] = "not called",
	[ISSUED] = "called",
	[LAUNCHED] = "launched",
	[RUNNING] = "runs",
	[BY_GPU] = "waits for its GPU",
	[BY_NETWORK] = "waits for the network",
	[BY_PEER] = "waits for the peer",
	[DONE] = "done",
	[STOPPED] = "stopped",
	[KILLED] = "killed",
};

static void play_half(int rank, bool is_send, enum half half, uint64_t ago_ns)
{
	static const uint8_t states[HALVES] = {
		[ISSUED] = OP_ISSUED,  [LAUNCHED] = OP_LAUNCHED,  [RUNNING] = OP_RUNNING,
		[BY_GPU] = OP_RUNNING, [BY_NETWORK] = OP_RUNNING, [BY_PEER] = OP_RUNNING,
		[DONE] = OP_DONE,      [STOPPED] = OP_RUNNING,	  [KILLED] = OP_RUNNING
	};
	static const int waits[HALVES][2] = { [BY_GPU] = { STEP_RECV_GPU, STEP_SEND_GPU },
					      [BY_NETWORK] = { STEP_RECV_NET, STEP_SEND_NET },
					      [BY_PEER] = { STEP_RECV_NET, STEP_SEND_PEER } };
	struct recording_flight *flight;

	if (half == STOPPED)
		stage_rank(&stage, rank)->process_state = 'T';
	if (half == KILLED)
		stage_rank(&stage, rank)->life = RECORDING_KILLED;
	if (half == ABSENT)
		return;
	flight = stage_call(&stage, rank, 1, is_send ? OP_SEND : OP_RECV, 3, states[half], ago_ns);
	flight->op.peer = 1 - rank;
	if (waits[half][is_send] != 0)
		stage_proxy(flight, is_send, 1 - rank, 2, waits[half][is_send], ago_ns - SECOND);
}

static void test_pairs(void)
{
	for (int kernels = 1; kernels >= 0; kernels--)
		for (int send = 0; send < HALVES; send++)
			for (int recv = 0; recv < HALVES; recv++) {
				char what[160] = "";

				if (recv == BY_PEER)
					continue;
				stage_begin(&stage, 3, 1);
				play_half(0, true, (enum half)send, 60 * SECOND);
				play_half(1, false, (enum half)recv, 61 * SECOND);
				if (!kernels)
					hide_kernels(3);
				stage.options.has_unjudged = true;
				text_append(what, sizeof(what), "Send %s, Recv %s%s",
					    half_names[send], half_names[recv],
					    kernels ? "" : "; no kernel events");
				tell(what);
			}
}

/* The same after an AllReduce of another communicator that both have called and one has not finished. */
static void test_pairs_after(void)
{
	static const enum half some[] = { ABSENT, LAUNCHED, RUNNING, BY_GPU, BY_NETWORK };

	for (int first = 0; first < 2; first++)
		for (size_t send = 0; send < ARRAY_LENGTH(some); send++)
			for (size_t recv = 0; recv < ARRAY_LENGTH(some); recv++) {
				char what[160] = "";
				int tp;

				stage_begin(&stage, 3, 1);
				tp = stage_comm(&stage, 0x200, "tp", 0, 3, 1, 3);
				for (int i = 0; i < 3; i++)
					stage_call(&stage, i, tp, OP_ALL_REDUCE, 1,
						   i == first ? OP_LAUNCHED : OP_RUNNING,
						   62 * SECOND);
				play_half(0, true, some[send], 60 * SECOND);
				play_half(1, false, some[recv], 61 * SECOND);
				hide_kernels(3);
				stage.options.has_unjudged = true;
				text_append(what, sizeof(what),
					    "AllReduce launched on %d; Send %s, Recv %s", first,
					    half_names[some[send]], half_names[some[recv]]);
				tell(what);
			}
}

/* ---- a collective --------------------------------------------------------------------------------------- */

enum part {
	PART_ABSENT,
	PART_ISSUED,
	PART_LAUNCHED,
	PART_RUNNING,
	PART_DONE,
	PART_LATER,
	PART_ELSEWHERE,
	PART_QUEUED,
	PART_STOPPED,
	PART_KILLED,
	PART_ENDED,
	PART_CLOSED,
	PARTS
};

static const char *const part_names[PARTS] = {
	[PART_ABSENT] = "has not called it", [PART_ISSUED] = "called it",
	[PART_LAUNCHED] = "launched it",     [PART_RUNNING] = "is in it",
	[PART_DONE] = "has finished it",     [PART_LATER] = "is in the next one",
	[PART_ELSEWHERE] = "is in tp",	     [PART_QUEUED] = "is in tp and called it",
	[PART_STOPPED] = "is stopped",	     [PART_KILLED] = "is dead",
	[PART_ENDED] = "has ended",	     [PART_CLOSED] = "has closed world",
};

static void play_part(int rank, int tp, enum part part)
{
	struct recording_process *process = stage_rank(&stage, rank);
	static const uint8_t states[PARTS] = {
		[PART_ISSUED] = OP_ISSUED,   [PART_LAUNCHED] = OP_LAUNCHED,
		[PART_RUNNING] = OP_RUNNING, [PART_DONE] = OP_DONE,
		[PART_LATER] = OP_DONE,	     [PART_QUEUED] = OP_LAUNCHED,
	};

	if (part == PART_ELSEWHERE || part == PART_QUEUED)
		stage_call(&stage, rank, tp, OP_ALL_GATHER, 1, OP_RUNNING, 61 * SECOND);
	if (states[part] != 0)
		stage_call(&stage, rank, 1, OP_ALL_REDUCE, 2, states[part], 60 * SECOND);
	if (part == PART_LATER)
		stage_call(&stage, rank, 1, OP_ALL_REDUCE, 3, OP_RUNNING, 59 * SECOND);
	if (part == PART_STOPPED)
		process->process_state = 'T';
	if (part == PART_KILLED)
		process->life = RECORDING_KILLED;
	if (part == PART_ENDED || part == PART_CLOSED)
		process->life = RECORDING_ENDED;
	if (part == PART_CLOSED)
		process->comms[0].info.flags |= COMM_FLAG_FINALIZED;
}

static void test_collectives(void)
{
	for (int kernels = 1; kernels >= 0; kernels--)
		for (int one = 0; one < PARTS; one++)
			for (int other = one; other < PARTS; other++) {
				char what[160] = "";
				int tp;

				stage_begin(&stage, 4, 2);
				tp = stage_comm(&stage, 0x200, "tp", 2, 2, 1, 2);
				for (int i = 0; i < 4; i++)
					stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE,
						   70 * SECOND);
				for (int i = 0; i < 2; i++)
					stage_call(&stage, i, 1, OP_ALL_REDUCE, 2,
						   kernels ? OP_RUNNING : OP_LAUNCHED, 60 * SECOND);
				if (!kernels)
					hide_kernels(4);
				play_part(2, tp, (enum part)one);
				play_part(3, tp, (enum part)other);
				stage.options.has_unjudged = true;
				text_append(what, sizeof(what), "rank 2 %s, rank 3 %s%s",
					    part_names[one], part_names[other],
					    kernels ? "" : "; no kernel events");
				tell(what);
			}
}

/* ---- transfers of a ring ----------------------------------------------------------------------------------- */

/* Four ranks send around a ring and wait for their data; only what rank 1 sends and what rank 2 receives varies. */
static void test_transfers(void)
{
	static const struct {
		const char *name;
		int state; /* 0: all of it is done; -1: no connection */
	} sends[] = { { "no connection", -1 },
		      { "done", 0 },
		      { "waits for its GPU", STEP_SEND_GPU },
		      { "waits for the peer", STEP_SEND_PEER },
		      { "waits for the network", STEP_SEND_NET } },
	  receives[] = { { "no connection", -1 },
			 { "done", 0 },
			 { "waits for the network", STEP_RECV_NET },
			 { "waits for its GPU", STEP_RECV_GPU } };

	for (int kernels = 1; kernels >= 0; kernels--)
		for (size_t s = 0; s < ARRAY_LENGTH(sends); s++)
			for (size_t r = 0; r < ARRAY_LENGTH(receives); r++) {
				char what[160] = "";

				stage_begin(&stage, 4, 1);
				for (int i = 0; i < 4; i++) {
					struct recording_flight *flight =
						stage_call(&stage, i, 1, OP_ALL_REDUCE, 1,
							   OP_RUNNING, 60 * SECOND);
					int send = i == 1 ? sends[s].state : 0;
					int receive = i == 2 ? receives[r].state : STEP_RECV_NET;

					flight->op.algorithm = OP_RING;
					if (send >= 0)
						stage_proxy(flight, true, (i + 1) % 4, 3, send,
							    55 * SECOND);
					if (receive >= 0)
						stage_proxy(flight, false, (i + 3) % 4, 3, receive,
							    56 * SECOND);
				}
				if (!kernels)
					hide_kernels(4);
				stage.options.has_unjudged = true;
				text_append(what, sizeof(what),
					    "rank 1 sends: %s, rank 2 receives: %s%s",
					    sends[s].name, receives[r].name,
					    kernels ? "" : "; no kernel events");
				tell(what);
			}
}

/* ---- the order of two communicators ---------------------------------------------------------------------- */

static void test_orders(void)
{
	static const char *const names[] = { "A", "B", "AB", "BA" };

	for (int kernels = 1; kernels >= 0; kernels--)
		for (int all = 0; all < 64; all++) {
			char what[160] = "";
			int orders[] = { all & 3, all >> 2 & 3, all >> 4 & 3 }, b;

			is_culprit_open = ((orders[0] ^ orders[1]) | (orders[0] ^ orders[2])) & 2;
			stage_begin(&stage, 3, 1);
			b = stage_comm(&stage, 0x200, "B", 0, 3, 1, 3);
			for (int rank = 0; rank < 3; rank++) {
				int order = orders[rank];
				bool is_b_first = order == 1 || order == 3;

				text_append(what, sizeof(what), "%s rank %d %s",
					    rank == 0 ? "called by" : ",", rank, names[order]);
				stage_call(&stage, rank, is_b_first ? b : 1,
					   is_b_first ? OP_ALL_GATHER : OP_ALL_REDUCE, 1,
					   kernels ? OP_RUNNING : OP_LAUNCHED, 60 * SECOND);
				if (order >= 2)
					stage_call(&stage, rank, is_b_first ? 1 : b,
						   is_b_first ? OP_ALL_REDUCE : OP_ALL_GATHER, 1,
						   OP_LAUNCHED, 59 * SECOND);
			}
			if (!kernels)
				hide_kernels(3);
			stage.options.has_unjudged = true;
			text_append(what, sizeof(what), "%s", kernels ? "" : "; no kernel events");
			tell(what);
		}
}

int main(void)
{
	test_pairs();
	test_pairs_after();
	test_collectives();
	test_transfers();
	test_orders();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_table.txt");
	return tap_done();
}
