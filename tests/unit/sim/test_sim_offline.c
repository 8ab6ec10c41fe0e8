/* What `ringside sim --offline` writes: complete, deterministic, and consistent with its faults. */
#include "tests/tap.h"

#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "tests/unit/sim/sim_files.h"

static struct sim_options options_of(int nodes, int gpus, enum sim_workload workload,
				     int iterations)
{
	struct sim_options options;

	sim_options_init(&options);
	options.nodes = nodes;
	options.gpus = gpus;
	options.workload = workload;
	options.iterations = (uint64_t)iterations;
	options.seed = 7;
	options.times = SIM_TIMES_KERNEL;
	return options;
}

/* Its duration; false if unknown, or if the times are invalid. */
static bool duration_of(const struct op_record *op, uint64_t *ns)
{
	*ns = op_span_ns(op);
	return op->time_source != OP_TIME_NONE && *ns < UINT64_C(1) << 40;
}

static bool is_in_flight(const struct op_record *op)
{
	return op->state == OP_RUNNING || (op->state == OP_LAUNCHED && op->done_ns == 0);
}

static const struct op_record *find(const struct sim_read *read, uint32_t comm, uint8_t function,
				    uint64_t match)
{
	for (size_t i = 0; i < read->count; i++)
		if (read->ops[i].comm == comm && read->ops[i].match == match &&
		    (function == OP_FUNCTION_UNKNOWN || read->ops[i].function == function))
			return &read->ops[i];
	return NULL;
}

/* ---- the same twice -------------------------------------------------------------------------- */

static void test_same_bytes(void)
{
	static const char *const faults[] = { "slow-rank:rank=3,at=1s", NULL };
	struct sim_options options = options_of(2, 4, SIM_MOE, 3), again = options, other = options;
	struct sim_run first, second, third;

	other.seed = 8;
	sim_run_start(&first, &options, faults);
	sim_run_start(&second, &again, faults);
	sim_run_start(&third, &other, faults);
	EXPECT_THAT("the same seed gives the same bytes",
		    first.hash != 0 && first.hash == second.hash);
	EXPECT_THAT("another seed gives other bytes", first.hash != third.hash);
	sim_run_end(&first);
	sim_run_end(&second);
	sim_run_end(&third);
}

/* ---- complete -------------------------------------------------------------------------------- */

/* Numbers from 1 without gaps or duplicates, sequences in order. */
static bool is_numbered(const struct sim_run *run, int rank)
{
	const struct sim_read *read = &run->reads[rank];
	uint64_t counts[SIM_ROLES + 1] = { 0 }, sums[SIM_ROLES + 1] = { 0 };

	for (size_t i = 0; i < read->count; i++) {
		const struct op_record *op = &read->ops[i];

		if (op->comm > SIM_ROLES || op->sequence != i + 1)
			return false;
		counts[op->comm]++;
		sums[op->comm] += op->number;
	}
	for (uint32_t id = 1; id <= SIM_ROLES; id++)
		if (sums[id] != counts[id] * (counts[id] + 1) / 2)
			return false;
	return true;
}

/* Issued by the simulator, counted in the file, found as records. */
static bool is_counted(const struct sim_run *run, int rank)
{
	const struct sim_read *read = &run->reads[rank];
	uint32_t id = 0;

	for (int role = 0; role < SIM_ROLES; role++) {
		uint64_t found = 0;

		if (run->job.members[rank][role].comm == -1)
			continue;
		id++;
		for (size_t i = 0; i < read->count; i++)
			found += read->ops[i].comm == id;
		if (found != run->result.ranks[rank].issued[role] ||
		    found != read->comm_counts[id].issued ||
		    found != read->comm_counts[id].recorded)
			return false;
	}
	return read->counts.trace_records == read->count && read->counts.ring_head == read->count;
}

/* All ranks of a communicator have the same n-th collective. */
static bool is_matched(const struct sim_run *run, int rank)
{
	const struct sim_read *read = &run->reads[rank], *first = &run->reads[0];

	for (size_t i = 0; i < read->count; i++) {
		const struct op_record *op = &read->ops[i], *other;

		if (op->comm != 1 || op->function == OP_SEND || op->function == OP_RECV)
			continue;
		other = find(first, 1, op->function, op->match);
		if (other == NULL || other->signature != op->signature || other->bytes != op->bytes)
			return false;
	}
	return true;
}

static bool is_in_time(const struct op_record *op)
{
	uint64_t ns;

	if (op->issue_ns > op->launch_ns || op->launch_ns > op->task_ns)
		return false;
	if (op->done_ns != 0 && op->done_ns < op->task_ns)
		return false;
	return op->time_source == OP_TIME_NONE || duration_of(op, &ns);
}

static void test_complete(void)
{
	struct sim_options options = options_of(2, 4, SIM_TP_PP, 4);
	bool is_all_numbered = true, is_all_counted = true, is_all_matched = true,
	     is_all_closed = true;
	bool is_all_in_time = true, has_one_hash = true;
	struct sim_run run;

	EXPECT(sim_run_start(&run, &options, NULL));
	for (int rank = 0; rank < run.job.world; rank++) {
		const struct sim_read *read = &run.reads[rank];

		is_all_numbered = is_all_numbered && is_numbered(&run, rank);
		is_all_counted = is_all_counted && is_counted(&run, rank);
		is_all_matched = is_all_matched && is_matched(&run, rank);
		is_all_closed = is_all_closed && read->is_closed && read->problems == 0;
		has_one_hash = has_one_hash && read->comms[1].hash == run.job.comms[0].hash &&
			       read->comms[1].rank == rank && read->comms[1].nranks == 8 &&
			       read->comms[1].nnodes == 2;
		for (size_t i = 0; i < read->count; i++)
			is_all_in_time = is_all_in_time && is_in_time(&read->ops[i]);
	}
	EXPECT_THAT("operations are numbered without gaps", is_all_numbered);
	EXPECT_THAT("issued, counted and recorded are the same", is_all_counted);
	EXPECT_THAT("ranks agree on the n-th collective", is_all_matched);
	EXPECT_THAT("files are complete and closed", is_all_closed);
	EXPECT_THAT("times are in order", is_all_in_time);
	EXPECT_THAT("the communicator has one hash and the right ranks", has_one_hash);
	EXPECT_EQUAL(run.result.end, SIM_RESULT_FINISHED);
	EXPECT_EQUAL(run.reads[0].comms[2].nranks, 4);
	EXPECT_EQUAL(run.reads[0].comms[3].nranks, 2);
	EXPECT_THAT("stages of a pipeline are in one communicator",
		    run.reads[0].comms[3].hash == run.reads[4].comms[3].hash);
	EXPECT_THAT("tensor groups are not",
		    run.reads[0].comms[2].hash != run.reads[4].comms[2].hash);
	sim_run_end(&run);
}

/* ---- slow ones ------------------------------------------------------------------------------- */

/* The rank with the shortest duration of the n-th collective; -1 if one is missing. */
static int last_to_arrive(const struct sim_run *run, uint64_t match)
{
	uint64_t shortest = UINT64_MAX, ns;
	int last = -1;

	for (int rank = 0; rank < run->job.world; rank++) {
		const struct op_record *op = find(&run->reads[rank], 1, OP_FUNCTION_UNKNOWN, match);

		if (op == NULL || !duration_of(op, &ns))
			return -1;
		if (ns < shortest) {
			shortest = ns;
			last = rank;
		}
	}
	return last;
}

static void test_slow_rank(void)
{
	static const char *const faults[] = { "slow-rank:rank=5,factor=1.3,at=2s", NULL };
	struct sim_options options = options_of(2, 4, SIM_FSDP, 5);
	unsigned int before = 0, after = 0, wrong = 0;
	struct sim_run run;

	EXPECT(sim_run_start(&run, &options, faults));
	for (size_t i = 0; i < run.reads[5].count; i++) {
		const struct op_record *op = &run.reads[5].ops[i];
		uint64_t at_ns = run.reads[5].comms[1].init_ns + UINT64_C(2000000000);

		/* The first one after each compute: later ones are enqueued together. */
		if (op->function != OP_REDUCE_SCATTER)
			continue;
		if (op->issue_ns < at_ns - 200000000)
			before += last_to_arrive(&run, op->match) == 5;
		else if (op->issue_ns > at_ns + 200000000)
			last_to_arrive(&run, op->match) == 5 ? after++ : wrong++;
	}
	EXPECT_THAT("before the fault the rank is one of many", before < 16);
	EXPECT_THAT("after it all wait for that rank", after > 20 && wrong == 0);
	sim_run_end(&run);
}

static uint64_t median_of(const struct sim_run *run, int rank, uint8_t function)
{
	uint64_t sum = 0, count = 0, ns;

	for (size_t i = 0; i < run->reads[rank].count; i++) {
		const struct op_record *op = &run->reads[rank].ops[i];

		if (op->function == function && op->bytes > 1 << 20 && duration_of(op, &ns)) {
			sum += ns;
			count++;
		}
	}
	return count ? sum / count : 0;
}

static uint64_t waits_of(const struct sim_run *run, int rank, enum op_wait wait)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->reads[rank].count; i++)
		sum += run->reads[rank].ops[i].wait_ns[wait];
	return sum;
}

static void test_slow_link(void)
{
	static const char *const faults[] = { "slow-link:from=3,to=4,factor=8", NULL };
	struct sim_options options = options_of(2, 4, SIM_FSDP, 2), good = options;
	uint64_t most_net = 0, most_data = 0;
	int sender = -1, receiver = -1;
	struct sim_run run, run_good;

	EXPECT(sim_run_start(&run, &options, faults));
	EXPECT(sim_run_start(&run_good, &good, NULL));
	EXPECT_THAT("a slow link slows all ranks of a ring",
		    median_of(&run, 6, OP_ALL_GATHER) > 4 * median_of(&run_good, 6, OP_ALL_GATHER));
	for (int rank = 0; rank < run.job.world; rank++) {
		uint64_t net = waits_of(&run, rank, OP_WAIT_SEND_NET);
		uint64_t data = waits_of(&run, rank, OP_WAIT_RECV_NET);

		sender = net > most_net ? rank : sender;
		most_net = net > most_net ? net : most_net;
		receiver = data > most_data ? rank : receiver;
		most_data = data > most_data ? data : most_data;
	}
	EXPECT_THAT("its sender's transfers spend the most time on the wire", sender == 3);
	EXPECT_THAT("no other sender comes close",
		    waits_of(&run, 7, OP_WAIT_SEND_NET) * 3 < most_net);
	sim_run_end(&run);
	sim_run_end(&run_good);
}

static void test_slow_receiver(void)
{
	static const char *const credits[] = { "slow-receiver:rank=4,factor=8", NULL };
	static const char *const wire[] = { "slow-receiver:rank=4,what=wire,factor=8", NULL };
	static const char *const starved[] = { "starved:rank=4", NULL };
	struct sim_options options = options_of(2, 4, SIM_FSDP, 2), again = options,
			   third = options;
	struct sim_run by_credits, by_wire, run;

	EXPECT(sim_run_start(&by_credits, &options, credits));
	EXPECT(sim_run_start(&by_wire, &again, wire));
	EXPECT(sim_run_start(&run, &third, starved));
	EXPECT_THAT("its sender waits until it is ready",
		    waits_of(&by_credits, 3, OP_WAIT_SEND_PEER) >
			    3 * waits_of(&by_credits, 3, OP_WAIT_SEND_NET));
	EXPECT_THAT("or on the wire", waits_of(&by_wire, 3, OP_WAIT_SEND_NET) >
					      3 * waits_of(&by_wire, 3, OP_WAIT_SEND_PEER));
	EXPECT_THAT("and it has what came", waits_of(&by_credits, 4, OP_WAIT_RECV_GPU) >
						    3 * waits_of(&by_wire, 4, OP_WAIT_RECV_GPU));
	EXPECT_THAT("a starved rank sends slowly too",
		    waits_of(&run, 4, OP_WAIT_SEND_NET) > 3 * waits_of(&run, 5, OP_WAIT_SEND_NET));
	sim_run_end(&by_credits);
	sim_run_end(&by_wire);
	sim_run_end(&run);
}

/* A rank that goes on, a watchdog, and a second start. */
static void test_ends(void)
{
	static const char *const paused[] = { "never-arrives:rank=1,at=1s,until=5s", NULL };
	static const char *const hung[] = { "never-arrives:rank=1,at=1s", NULL };
	struct sim_options options = options_of(2, 2, SIM_DDP, 10), aborted = options,
			   next = options;
	struct sim_run run;

	EXPECT(sim_run_start(&run, &options, paused));
	EXPECT_EQUAL(run.result.end, SIM_RESULT_FINISHED);
	EXPECT(run.result.ns > UINT64_C(5000000000) && run.result.ns < UINT64_C(9000000000));
	sim_run_end(&run);

	aborted.watchdog_ns = UINT64_C(600000000000);
	EXPECT(sim_run_start(&run, &aborted, hung));
	EXPECT_EQUAL(run.result.end, SIM_RESULT_HUNG);
	EXPECT_EQUAL(run.result.ns, run.result.still_ns + aborted.watchdog_ns);
	sim_run_end(&run);

	next.attempt = 2;
	next.begin_ns = UINT64_C(700000000000);
	EXPECT(sim_run_start(&run, &next, NULL));
	EXPECT_THAT("its ranks are on other nodes",
		    strstr(run.reads[0].info, "host=node0001\n") &&
			    strstr(run.reads[2].info, "host=node0000\n"));
	sim_run_end(&run);
}

static void test_degraded_network(void)
{
	static const char *const faults[] = { "degraded-network:factor=3", NULL };
	struct sim_options options = options_of(2, 4, SIM_TP_PP, 2), good = options;
	struct sim_run run, run_good;

	EXPECT(sim_run_start(&run, &options, faults));
	EXPECT(sim_run_start(&run_good, &good, NULL));
	EXPECT_THAT("operations inside a node are as fast as before",
		    median_of(&run, 1, OP_ALL_REDUCE) <
			    median_of(&run_good, 1, OP_ALL_REDUCE) * 11 / 10);
	EXPECT_THAT("those over the network are slower",
		    waits_of(&run, 1, OP_WAIT_SEND_NET) >
			    2 * waits_of(&run_good, 1, OP_WAIT_SEND_NET));
	sim_run_end(&run);
	sim_run_end(&run_good);
}

/* ---- hangs ----------------------------------------------------------------------------------- */

/* The rank's oldest operation in flight on a communicator. */
static const struct op_record *oldest_open(const struct sim_run *run, int rank, uint32_t comm)
{
	const struct op_record *oldest = NULL;

	for (size_t i = 0; i < run->reads[rank].count; i++) {
		const struct op_record *op = &run->reads[rank].ops[i];

		if (op->comm == comm && is_in_flight(op) &&
		    (oldest == NULL || op->number < oldest->number))
			oldest = op;
	}
	return oldest;
}

static unsigned int open_count(const struct sim_run *run, int rank)
{
	unsigned int count = 0;

	for (size_t i = 0; i < run->reads[rank].count; i++)
		count += is_in_flight(&run->reads[rank].ops[i]);
	return count;
}

/* How many open transfers of an operation are in that state: 0, 1, 2 in order. */
static unsigned int open_steps(const struct sim_run *run, int rank, uint32_t comm, uint64_t number,
			       bool is_send, unsigned int state)
{
	unsigned int count = 0;

	for (size_t i = 0; i < run->reads[rank].detail_count; i++) {
		const struct op_detail *detail = &run->reads[rank].details[i];
		unsigned int found = 0;

		if (detail->kind != OP_DETAIL_STEP || detail->comm != comm ||
		    detail->number != number || detail->time_ns[3] != 0 ||
		    !!(detail->flags & OP_DETAIL_IS_SEND) != is_send)
			continue;
		while (found < 2 && detail->time_ns[found + 1] != 0)
			found++;
		count += found == state;
	}
	return count;
}

static void test_stuck_send(void)
{
	static const char *const faults[] = { "stuck-send:rank=3,at=2s", NULL };
	struct sim_options options = options_of(2, 4, SIM_FSDP, 0);
	bool is_one_match = true, is_running = true, is_only_one = true, is_queued_behind = true;
	const struct op_record *first;
	struct sim_run run;

	EXPECT(sim_run_start(&run, &options, faults));
	EXPECT_EQUAL(run.result.end, SIM_RESULT_HUNG);
	first = oldest_open(&run, 3, 1);
	for (int rank = 0; rank < run.job.world && first; rank++) {
		const struct op_record *open = oldest_open(&run, rank, 1);
		const struct sim_read *read = &run.reads[rank];

		is_one_match = is_one_match && open && open->match == first->match &&
			       open->signature == first->signature;
		is_running = is_running && open && open->state == OP_RUNNING &&
			     open->kernels_started == open->channels &&
			     open->kernels_stopped < open->channels && open->done_ns == 0 &&
			     !read->is_closed;
		is_only_one = is_only_one && (open_steps(&run, rank, 1, open ? open->number : 0,
							 true, 2) > 0) == (rank == 3);
		for (size_t i = 0; i < read->count && open; i++)
			if (is_in_flight(&read->ops[i]) && &read->ops[i] != open)
				is_queued_behind = is_queued_behind &&
						   read->ops[i].kernels_started == 0 &&
						   read->ops[i].state == OP_LAUNCHED;
		is_queued_behind = is_queued_behind && open_count(&run, rank) >= 1 &&
				   open_count(&run, rank) <= 4;
	}
	EXPECT_THAT("all ranks hang in the same operation", first && is_one_match);
	EXPECT_THAT("its kernels run, some channels have finished", is_running);
	EXPECT_THAT("only the stuck rank's sends are on the wire", is_only_one);
	EXPECT_THAT("its neighbour waits for data",
		    first && open_steps(&run, 4, 1, oldest_open(&run, 4, 1)->number, false, 0) > 0);
	EXPECT_THAT("other operations in flight have not reached the GPU", is_queued_behind);
	EXPECT_THAT("the wait is recorded",
		    first && first->wait_ns[OP_WAIT_SEND_NET] > UINT64_C(7000000000));
	sim_run_end(&run);
}

/* Small messages go over trees. */
static void test_stuck_tree(void)
{
	static const char *const faults[] = { "stuck-send:rank=5,at=1s", NULL };
	struct sim_options options = options_of(8, 2, SIM_DDP, 0);
	bool is_tree = true, is_only_one = true, is_above_waiting;
	struct sim_run run;

	options.sizes[options.size_count++] = 256 << 10;
	EXPECT(sim_run_start(&run, &options, faults));
	for (int rank = 0; rank < run.job.world; rank++) {
		const struct op_record *open = oldest_open(&run, rank, 1);

		is_tree =
			is_tree && open && open->algorithm == OP_TREE && open->state == OP_RUNNING;
		is_only_one = is_only_one && open &&
			      (open_steps(&run, rank, 1, open->number, true, 2) > 0) == (rank == 5);
	}
	/* Rank 5 represents node 2, which is below node 0, in odd channels: rank 1 there. */
	is_above_waiting = oldest_open(&run, 1, 1) &&
			   open_steps(&run, 1, 1, oldest_open(&run, 1, 1)->number, false, 0) > 0;
	EXPECT_THAT("all ranks hang in a tree", is_tree);
	EXPECT_THAT("only the stuck rank's sends are on the wire there, too", is_only_one);
	EXPECT_THAT("the rank above it waits for data", is_above_waiting);
	sim_run_end(&run);
}

static void test_never_arrives(void)
{
	static const char *const faults[] = { "never-arrives:rank=2,at=1s", NULL };
	struct sim_options options = options_of(2, 4, SIM_DDP, 0);
	bool is_waiting = true;
	struct sim_run run;
	uint64_t made;

	EXPECT(sim_run_start(&run, &options, faults));
	made = run.reads[2].comm_counts[1].collectives;
	EXPECT_EQUAL(open_count(&run, 2), 0);
	EXPECT_EQUAL(run.result.ranks[2].end, SIM_RESULT_STOPPED);
	for (int rank = 0; rank < run.job.world; rank++) {
		const struct op_record *open = oldest_open(&run, rank, 1);

		if (rank != 2)
			is_waiting = is_waiting && open && open->match == made + 1 &&
				     open->state == OP_RUNNING && open->kernels_stopped == 0;
	}
	EXPECT_THAT("all others wait in the call that it did not make", is_waiting);
	sim_run_end(&run);
}

static void test_mismatch(void)
{
	static const char *const functions[] = { "mismatch:rank=6,what=function,at=1s", NULL };
	static const char *const counts[] = { "mismatch:rank=6,at=1s", NULL };
	struct sim_options options = options_of(2, 4, SIM_FSDP, 0), more = options;
	const struct op_record *odd, *usual;
	struct sim_run run;

	EXPECT(sim_run_start(&run, &options, functions));
	odd = oldest_open(&run, 6, 1);
	usual = oldest_open(&run, 0, 1);
	EXPECT_THAT("with another function all hang in the same call",
		    odd && usual && odd->match == usual->match &&
			    odd->function != usual->function && odd->signature != usual->signature);
	sim_run_end(&run);
	EXPECT(sim_run_start(&run, &more, counts));
	odd = oldest_open(&run, 6, 1);
	usual = oldest_open(&run, 0, 1);
	EXPECT_THAT("with half the count the rank hangs one call later",
		    odd && usual && odd->match == usual->match + 1);
	odd = usual ? find(&run.reads[6], 1, usual->function, usual->match) : NULL;
	EXPECT_THAT("and has finished half of the message",
		    odd && odd->state == OP_DONE && odd->count * 2 == usual->count &&
			    odd->signature != usual->signature);
	sim_run_end(&run);
}

static void test_kill(void)
{
	static const char *const faults[] = { "kill:rank=1,at=1500ms", NULL };
	struct sim_options options = options_of(2, 4, SIM_DDP, 0);
	struct sim_run run;
	const struct op_record *open;

	EXPECT(sim_run_start(&run, &options, faults));
	EXPECT_EQUAL(run.result.ranks[1].end, SIM_RESULT_KILLED);
	EXPECT_THAT("the killed rank's file is not closed", !run.reads[1].is_closed);
	EXPECT_THAT("and has nothing from later",
		    run.reads[1].counts.clock_ns < run.reads[1].comms[1].init_ns + 1500000000);
	open = oldest_open(&run, 0, 1);
	EXPECT_THAT("the others wait for it", open && open->state == OP_RUNNING);
	EXPECT_THAT("in a call that it may have made",
		    open && open->match > run.reads[1].comm_counts[1].last_done_number);
	sim_run_end(&run);
}

/* ---- everything with everything -------------------------------------------------------------- */

static bool is_sound(const struct sim_run *run)
{
	for (int rank = 0; rank < run->job.world; rank++) {
		const struct sim_read *read = &run->reads[rank];
		bool is_killed = run->result.ranks[rank].end == SIM_RESULT_KILLED;

		if (read->problems != 0 || read->count == 0 ||
		    strstr(read->info, "job=sim-7\n") == NULL)
			return false;
		if (!is_killed && (!is_counted(run, rank) || !is_numbered(run, rank)))
			return false;
		if (read->is_closed != (run->result.ranks[rank].end == SIM_RESULT_FINISHED))
			return false;
	}
	return true;
}

static void test_all_faults(void)
{
	static const char *const faults[] = { "none",
					      "slow-rank:rank=1",
					      "slow-link:from=0,to=1",
					      "degraded-network",
					      "slow-rail:rail=1",
					      "slow-uplink:node=1",
					      "slow-receiver:rank=1",
					      "starved:rank=1",
					      "power-cap",
					      "never-arrives:rank=1",
					      "stuck-send:rank=1",
					      "mismatch:rank=1",
					      "mismatch:rank=0,what=function",
					      "kill:rank=1" };
	char sentence[128];

	for (int workload = 0; workload < SIM_WORKLOADS; workload++)
		for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
			struct sim_options options =
				options_of(4, 2, (enum sim_workload)workload, 2);
			const char *const one[] = { faults[i], NULL };
			struct sim_run run;

			options.at_ns = 900000000;
			options.is_full = i % 2 == 0;
			snprintf(sentence, sizeof(sentence), "%s with %s",
				 sim_workload_page((enum sim_workload)workload)->name, faults[i]);
			EXPECT_THAT(sentence, sim_run_start(&run, &options, one) && is_sound(&run));
			sim_run_end(&run);
		}
}

static void test_releases(void)
{
	static const int releases[] = { 22304, 22403, 22602, 22707, 22809, 23007, 23102 };
	char sentence[128];

	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		struct sim_options options = options_of(2, 4, SIM_MOE, 2);
		struct sim_run run;

		options.release = releases[i];
		if (i % 2 == 0)
			options.times = SIM_TIMES_AUTO;
		snprintf(sentence, sizeof(sentence), "release %d", releases[i]);
		EXPECT_THAT(sentence, sim_run_start(&run, &options, NULL) && is_sound(&run));
		EXPECT_EQUAL(run.reads[0].comms[1].interface, i + 1);
		sim_run_end(&run);
	}
}

static void test_no_kernel(void)
{
	struct sim_options options = options_of(2, 4, SIM_MOE, 2);
	bool has_gpu_times = false, has_proxy_times = false;
	struct sim_run run;

	options.times = SIM_TIMES_OFF;
	EXPECT(sim_run_start(&run, &options, NULL));
	for (size_t i = 0; i < run.reads[0].count; i++) {
		has_gpu_times = has_gpu_times || run.reads[0].ops[i].gpu_start_ns != 0;
		has_proxy_times =
			has_proxy_times || run.reads[0].ops[i].time_source == OP_TIME_PROXY;
	}
	EXPECT_THAT("without times there are none of the GPU", !has_gpu_times);
	EXPECT_THAT("except those of the network", has_proxy_times);
	sim_run_end(&run);
}

/* ---- CUDA events ----------------------------------------------------------------------------- */

/* A time from CUDA events has its place on the recorder's clock, and says nothing about channels. */
static bool is_cuda_time(const struct op_record *op)
{
	return op->flags & OP_FLAG_CUDA_EVENT && !(op->flags & OP_FLAG_NOT_SAMPLED) &&
	       op->time_source == OP_TIME_KERNEL_GPU && op->state == OP_DONE &&
	       op->kernels_started == 0 && op->kernels_stopped == 0 &&
	       op->gpu_start_ns >= op->launch_ns && op->gpu_stop_ns > op->gpu_start_ns &&
	       op->active_ns >= op->launch_ns && op->done_ns == op->gpu_stop_ns;
}

static bool is_untimed(const struct op_record *op)
{
	return op->flags & OP_FLAG_NOT_SAMPLED && !(op->flags & OP_FLAG_CUDA_EVENT) &&
	       (op->time_source == OP_TIME_NONE || op->time_source == OP_TIME_HOST) &&
	       op->gpu_start_ns == 0 && op->kernels_started == 0;
}

/* How many are timed; SIZE_MAX: one is neither timed as it should be nor untimed. */
static size_t cuda_times(const struct sim_read *read)
{
	size_t timed = 0;

	for (size_t i = 0; i < read->count; i++) {
		if (is_cuda_time(&read->ops[i]))
			timed++;
		else if (!is_untimed(&read->ops[i]))
			return SIZE_MAX;
	}
	return timed;
}

/* Ranks measure their own pace, so at its edges one may time a little more than another. */
static size_t timed_elsewhere(const struct sim_run *run)
{
	size_t differ = 0;

	for (int rank = 1; rank < run->job.world; rank++)
		for (size_t i = 0; i < run->reads[0].count; i++) {
			const struct op_record *mine = &run->reads[0].ops[i];
			const struct op_record *other =
				find(&run->reads[rank], mine->comm, mine->function, mine->match);

			differ += other == NULL ||
				  ((mine->flags ^ other->flags) & OP_FLAG_CUDA_EVENT) != 0;
		}
	return differ;
}

static void test_cuda_times(void)
{
	/* 1 KiB in quick succession. */
	struct sim_options options = options_of(1, 4, SIM_LOOP, 4000);
	struct sim_run run;
	size_t timed, calls, kinds[OP_FUNCTIONS] = { 0 };
	const struct comm_info *comm;

	options.release = HOST_NCCL_2_30;
	options.times = SIM_TIMES_AUTO;
	options.sizes[0] = 1024;
	options.size_count = 1;
	options.period_ns = 100000;
	EXPECT(sim_run_start(&run, &options, NULL));
	comm = &run.reads[0].comms[1];
	timed = cuda_times(&run.reads[0]);
	calls = run.reads[0].count;
	EXPECT_THAT("small operations in quick succession are timed rarely",
		    timed > calls / 200 && timed < calls / 4);
	EXPECT_THAT("the same ones on all ranks", timed_elsewhere(&run) < timed / 8);
	for (size_t i = 0; i < calls && run.reads[0].ops[i].match <= 1 + 3 * 8; i++)
		kinds[run.reads[0].ops[i].function] += is_cuda_time(&run.reads[0].ops[i]);
	EXPECT_THAT("of each function at least the second to the eighth",
		    kinds[OP_ALL_REDUCE] >= 7 && kinds[OP_ALL_GATHER] >= 7 &&
			    kinds[OP_REDUCE_SCATTER] >= 7);
	EXPECT_THAT("on the recorder's clock, and how exactly",
		    comm->gpu_offset_ns == 0 && comm->gpu_offset_at_ns != 0 &&
			    comm->place_error_ns == SIM_PLACE_ERROR_NS);
	EXPECT_THAT("NCCL's kernel events are not requested", (comm->mask & 0x40) == 0);
	EXPECT(strstr(run.reads[0].info, "\ntimes=auto\n") != NULL);
	sim_run_end(&run);

	options.times = SIM_TIMES_ALL;
	EXPECT(sim_run_start(&run, &options, NULL));
	EXPECT_EQUAL(cuda_times(&run.reads[3]), run.reads[3].count);
	sim_run_end(&run);
}

/* All large and rare ones, as soon as the pace is known: after a second. */
static void test_large_times(void)
{
	struct sim_options options = options_of(2, 4, SIM_FSDP, 6);
	size_t late = 0, timed = 0;
	struct sim_run run;

	options.times = SIM_TIMES_AUTO;
	EXPECT(sim_run_start(&run, &options, NULL));
	for (size_t i = 0; i < run.reads[5].count; i++) {
		late += run.reads[5].ops[i].match > 100;
		timed += run.reads[5].ops[i].match > 100 && is_cuda_time(&run.reads[5].ops[i]);
	}
	EXPECT_EQUAL(late, 201);
	EXPECT_EQUAL(timed, late);
	EXPECT(cuda_times(&run.reads[5]) < run.reads[5].count);
	sim_run_end(&run);
}

/* The operations of a launch share one time; a Broadcast of 2.29 and later has no launch. */
static void test_shared_times(void)
{
	struct sim_options options = options_of(1, 4, SIM_MOE, 3), broadcasts;
	const struct op_record *first = NULL;
	size_t shared = 0, alone = 0, same = 0;
	struct sim_run run;

	options.times = SIM_TIMES_ALL;
	broadcasts = options;
	EXPECT(sim_run_start(&run, &options, NULL));
	EXPECT_EQUAL(cuda_times(&run.reads[0]), run.reads[0].count);
	for (size_t i = 0; i < run.reads[0].count; i++) {
		const struct op_record *op = &run.reads[0].ops[i];

		alone += !(op->flags & OP_FLAG_SHARED_TIME) && op_is_collective(op->function);
		if (op_is_collective(op->function) || op->number % 8 == 0)
			continue;
		shared += (op->flags & OP_FLAG_SHARED_TIME) != 0;
		if (first != NULL && first->launch_ns == op->launch_ns)
			same += first->gpu_start_ns == op->gpu_start_ns &&
				first->gpu_stop_ns == op->gpu_stop_ns;
		first = op;
	}
	EXPECT_THAT("Sends and Recvs of an all-to-all share one time, also with itself",
		    shared > 0 && same > shared / 2);
	EXPECT_THAT("collectives have their own", alone > 0);
	sim_run_end(&run);

	broadcasts.workload = SIM_DDP;
	broadcasts.release = HOST_NCCL_2_30;
	EXPECT(sim_run_start(&run, &broadcasts, NULL));
	EXPECT(run.reads[0].ops[0].function == OP_BROADCAST);
	EXPECT(run.reads[0].ops[0].flags == (OP_FLAG_API_ONLY | OP_FLAG_NOT_SAMPLED));
	sim_run_end(&run);
}

static const struct op_record *open_of(const struct sim_run *run, int rank)
{
	for (size_t i = 0; i < run->reads[rank].count; i++)
		if (run->reads[rank].ops[i].done_ns == 0 &&
		    !(run->reads[rank].ops[i].flags & OP_FLAG_NOT_SAMPLED))
			return &run->reads[rank].ops[i];
	return NULL;
}

/* In a hang the recorder has seen how far the GPU came. */
static void test_open_times(void)
{
	static const char *const not_started[] = { "gpu-stuck:rank=2,at=1s", NULL };
	struct sim_options options = options_of(1, 4, SIM_FSDP, 0), early;
	const struct op_record *stuck, *waiting;
	struct sim_run run;

	options.times = SIM_TIMES_ALL;
	options.seconds_ns = 10 * SECOND_NS;
	early = options;
	EXPECT(sim_run_start(&run, &options, not_started));
	stuck = open_of(&run, 2);
	waiting = open_of(&run, 0);
	EXPECT_THAT("the GPU has not reached its launch",
		    stuck && stuck->flags == (OP_FLAG_CUDA_EVENT | OP_FLAG_SEEN_OPEN) &&
			    stuck->state == OP_LAUNCHED && stuck->active_ns == 0 &&
			    stuck->gpu_start_ns == 0 && stuck->time_source == OP_TIME_NONE);
	EXPECT_THAT("the others are inside",
		    waiting && waiting->match == stuck->match &&
			    waiting->flags == (OP_FLAG_CUDA_EVENT | OP_FLAG_SEEN_OPEN) &&
			    waiting->state == OP_RUNNING && waiting->active_ns != 0 &&
			    waiting->gpu_start_ns == 0);
	sim_run_end(&run);

	/* 300 ms after the others stopped is too early to say. */
	early.seconds_ns = 1300 * MS_NS;
	EXPECT(sim_run_start(&run, &early, not_started));
	waiting = open_of(&run, 0);
	EXPECT_THAT("not before a second has passed",
		    waiting && waiting->flags == OP_FLAG_CUDA_EVENT &&
			    waiting->state == OP_LAUNCHED && waiting->active_ns == 0);
	sim_run_end(&run);
}

static void test_defaults(void)
{
	static const int releases[] = { 22403, 22602, 22707, 22809, 23007, 23102 };
	static const bool has_kernels[] = { false, true, true, true, true, true };
	static const bool has_launches[] = { false, false, false, true, true, true };

	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		struct sim_options options = options_of(2, 4, SIM_FSDP, 2);
		char why[256];

		options.release = releases[i];
		EXPECT_EQUAL(sim_options_times(&options),
			     has_kernels[i] ? SIM_TIMES_KERNEL : SIM_TIMES_OFF);
		options.times = SIM_TIMES_AUTO;
		EXPECT_EQUAL(sim_options_times(&options),
			     has_launches[i] ? SIM_TIMES_AUTO : SIM_TIMES_OFF);
		options.times = SIM_TIMES_ALL;
		EXPECT_EQUAL(sim_options_finish(&options, why, sizeof(why)),
			     has_launches[i] ? OK : ERR_RANGE);
	}
}

/* Sends to itself invalidate the timestamps of a channel (2.26 to 2.30). */
static void test_drift(void)
{
	struct sim_options options = options_of(2, 4, SIM_MOE, 2);
	unsigned int self = 0, spoiled = 0, stale = 0, believed = 0;
	struct sim_run run;

	EXPECT(sim_run_start(&run, &options, NULL));
	for (size_t i = 0; i < run.reads[0].count; i++) {
		const struct op_record *op = &run.reads[0].ops[i];

		self += (op->flags & OP_FLAG_SELF) != 0;
		spoiled += (op->flags & OP_STAMPS_UNTRUSTED) != 0;
		stale += (op->flags & OP_FLAG_STAMP_STALE) != 0;
		believed += (op->flags & OP_STAMPS_UNTRUSTED) != 0 &&
			    op->time_source == OP_TIME_KERNEL_GPU;
	}
	EXPECT_EQUAL(self, 2 * 2 * 16);
	EXPECT_THAT("timestamps after a send to itself are marked",
		    spoiled > 0 && stale == spoiled);
	EXPECT_EQUAL(believed, 0);
	sim_run_end(&run);
}

int main(void)
{
	test_same_bytes();
	test_complete();
	test_slow_rank();
	test_slow_link();
	test_slow_receiver();
	test_ends();
	test_degraded_network();
	test_stuck_send();
	test_stuck_tree();
	test_never_arrives();
	test_mismatch();
	test_kill();
	test_all_faults();
	test_releases();
	test_no_kernel();
	test_cuda_times();
	test_large_times();
	test_shared_times();
	test_open_times();
	test_defaults();
	test_drift();
	return tap_done();
}
