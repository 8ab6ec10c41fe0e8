/* Offline jobs whose iterations are replays of CUDA graphs: what each release shows of them, and their times. */
#include "tests/tap.h"

#include <inttypes.h>

#include "tests/unit/sim/sim_files.h"

static bool says(bool is_true, const char *what)
{
	if (!is_true)
		printf("# false: %s\n", what);
	return is_true;
}

#define SAYS(condition) says(!!(condition), #condition)

enum { WARM_UP = 3, ITERATIONS = 20, REPLAYS = ITERATIONS - WARM_UP - 1 };

static const struct sim_options usual = { .nodes = 1, .gpus = 2, .workload = SIM_LOOP };

/* Of these fields the job is made; the others have their defaults. */
static bool start(struct sim_run *run, const struct sim_options *of, const char *const *faults)
{
	struct sim_options options;

	sim_options_init(&options);
	options.has_graphs = true;
	options.nodes = of->nodes ? of->nodes : 1;
	options.gpus = of->gpus ? of->gpus : 2;
	options.workload = of->workload;
	options.release = of->release ? of->release : options.release;
	options.times = of->times;
	options.graph_times = of->graph_times;
	options.warm_up = of->warm_up ? of->warm_up : WARM_UP;
	options.size_count = of->size_count;
	options.at_ns = of->at_ns;
	memcpy(options.sizes, of->sizes, sizeof(options.sizes));
	memcpy(options.noises, of->noises, sizeof(options.noises));
	options.iterations = ITERATIONS;
	return sim_run_start(run, &options, faults);
}

/* How many records of a rank have all of these flags and none of those. */
static uint64_t count(const struct sim_read *read, uint32_t all, uint32_t none)
{
	uint64_t found = 0;

	for (size_t i = 0; i < read->count; i++)
		found += (read->ops[i].flags & all) == all && !(read->ops[i].flags & none);
	return found;
}

static uint64_t count_state(const struct sim_read *read, uint8_t state)
{
	uint64_t found = 0;

	for (size_t i = 0; i < read->count; i++)
		found += read->ops[i].state == state;
	return found;
}

static const struct op_record *by_number(const struct sim_read *read, uint32_t comm,
					 uint64_t number)
{
	for (size_t i = 0; i < read->count; i++)
		if (read->ops[i].comm == comm && read->ops[i].number == number)
			return &read->ops[i];
	return NULL;
}

/* Each number once, and the counters of a communicator say how many there are of each kind. */
static bool is_complete(const struct sim_read *read)
{
	bool is_good = SAYS(read->problems == 0);

	for (uint32_t comm = 1; comm <= SIM_ROLES && is_good; comm++) {
		const struct comm_counts *counts = &read->comm_counts[comm];
		uint64_t captured = 0, replayed = 0, shown = 0, matched = 0;

		for (uint64_t number = 1; number <= counts->issued; number++) {
			const struct op_record *op = by_number(read, comm, number);

			if (!SAYS(op != NULL))
				return false;
			captured += op->state == OP_CAPTURED;
			replayed += (op->flags & OP_FLAG_REPLAY) != 0;
			if (!(op->flags & OP_FLAG_REPLAY) || op->flags & OP_FLAG_REPLAY_READ ||
			    !op_is_collective(op->function))
				continue;
			shown++;
			matched += op->match != 0;
		}
		is_good = SAYS(counts->recorded == counts->issued) &&
			  SAYS(counts->captured == captured) &&
			  SAYS(counts->replayed == replayed) && SAYS(counts->replays == shown) &&
			  SAYS(matched == 0 || matched == shown);
	}
	return is_good;
}

static bool all_are_complete(const struct sim_run *run)
{
	bool is_good = true;

	for (int rank = 0; rank < run->job.world; rank++)
		is_good = is_good && is_complete(&run->reads[rank]);
	return is_good;
}

/* A replay is of a captured call, and agrees with it. */
static bool replays_fit(const struct sim_read *read)
{
	for (size_t i = 0; i < read->count; i++) {
		const struct op_record *op = &read->ops[i], *call;

		if (!(op->flags & OP_FLAG_REPLAY))
			continue;
		call = by_number(read, op->comm, op->captured_number);
		if (!SAYS(call != NULL && call->state == OP_CAPTURED) ||
		    !SAYS(call->function == op->function && call->bytes == op->bytes) ||
		    !SAYS(op->signature == 0 && op->issue_ns > call->issue_ns) ||
		    !SAYS(op->match == 0 || !(op->flags & OP_FLAG_REPLAY_READ)))
			return false;
		if ((op->flags & OP_FLAG_CUDA_EVENT) &&
		    (!SAYS(op->time_source == OP_TIME_KERNEL_GPU) ||
		     !SAYS(op_duration_ns(op) > 0) || !SAYS(op->done_ns >= op->gpu_stop_ns)))
			return false;
	}
	return true;
}

/* ---- what is shown ----------------------------------------------------------------------------- */

static bool one_node(int release)
{
	struct sim_options options = usual;
	struct sim_run run;
	bool is_good;

	options.release = release;
	is_good =
		SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		replays_fit(&run.reads[0]) && SAYS(count_state(&run.reads[0], OP_CAPTURED) == 9) &&
		/* The budget allows one of three with 64 MiB; it is asked every 10 ms, and runs every 20. */
		SAYS(count(&run.reads[0], OP_FLAG_REPLAY_READ | OP_FLAG_CUDA_EVENT, 0) >
		     REPLAYS / 2) &&
		SAYS(count(&run.reads[0], OP_FLAG_REPLAY, OP_FLAG_REPLAY_READ) == 0) &&
		SAYS(run.result.ranks[0].issued[0] == 1 + 9 * (WARM_UP + 1)) &&
		SAYS(run.result.ranks[0].hidden[0] == 0);
	sim_run_end(&run);
	return is_good;
}

static bool two_nodes(int release)
{
	struct sim_options options = { .nodes = 2, .size_count = 1, .sizes = { 64 << 20 } };
	uint64_t shown = 3 * REPLAYS;
	struct sim_run run;
	bool is_good;

	options.release = release;
	options.workload = SIM_LOOP;
	is_good =
		SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		replays_fit(&run.reads[3]) &&
		SAYS(count(&run.reads[3], OP_FLAG_REPLAY, OP_FLAG_REPLAY_READ) == shown) &&
		SAYS(count(&run.reads[3], OP_FLAG_REPLAY_READ, 0) == 0) &&
		SAYS(count(&run.reads[3], OP_FLAG_REPLAY | OP_FLAG_CUDA_EVENT, 0) > REPLAYS / 2) &&
		SAYS(run.reads[3].comm_counts[1].replays == shown) &&
		SAYS(run.result.ranks[3].issued[0] == 1 + 3 * (WARM_UP + 1) + shown);
	sim_run_end(&run);
	return is_good;
}

static bool has_matched_replays(const struct sim_read *read)
{
	for (size_t i = 0; i < read->count; i++)
		if (read->ops[i].flags & OP_FLAG_REPLAY && read->ops[i].match != 0)
			return true;
	return false;
}

/* A rank that sends nothing over the network has no host node in the graph, so it shows no replay. */
static bool ranks_show_different_replays(void)
{
	struct sim_options options = { .nodes = 2, .gpus = 4, .size_count = 1, .sizes = { 1024 } };
	struct sim_run run;
	bool is_good;

	options.workload = SIM_LOOP;
	is_good = SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		  SAYS(run.reads[0].comm_counts[1].replays > 0) &&
		  SAYS(!has_matched_replays(&run.reads[0])) &&
		  SAYS(run.reads[1].comm_counts[1].replays == 0) &&
		  SAYS(run.reads[1].comm_counts[1].captured == 3);
	sim_run_end(&run);
	return is_good;
}

/* With one rank per node all ranks show the same replays, so that they can be matched. */
static bool replays_are_matched(void)
{
	struct sim_options options = {
		.nodes = 3, .gpus = 1, .size_count = 1, .sizes = { 64 << 20 }
	};
	struct sim_run run;
	bool is_good;

	options.workload = SIM_LOOP;
	is_good = SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		  replays_fit(&run.reads[0]) && SAYS(has_matched_replays(&run.reads[0])) &&
		  SAYS(run.reads[0].comm_counts[1].replays == run.reads[2].comm_counts[1].replays);
	sim_run_end(&run);
	return is_good;
}

/* Before 2.28 nothing tells a capture or a replay from a call. */
static bool early(int release, int nodes, uint64_t at_capture, uint64_t per_replay)
{
	struct sim_options options = { .size_count = 1, .sizes = { 64 << 20 } };
	uint64_t wanted = 1 + 3 * WARM_UP + at_capture + per_replay * REPLAYS;
	struct sim_run run;
	bool is_good;

	options.workload = SIM_LOOP;
	options.nodes = nodes;
	options.release = release;
	is_good = SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		  SAYS(run.reads[0].count == wanted) &&
		  SAYS(count(&run.reads[0], OP_FLAG_REPLAY, 0) == 0) &&
		  SAYS(run.reads[0].comm_counts[1].collectives == wanted) &&
		  SAYS(run.result.ranks[0].hidden[0] == 3 - at_capture);
	sim_run_end(&run);
	return is_good;
}

static bool what_releases_show(void)
{
	return early(22304, 1, 0, 0) && early(22602, 1, 0, 0) && early(22304, 2, 0, 3) &&
	       early(22602, 2, 0, 3) && early(22707, 1, 3, 0) && early(22707, 2, 0, 3);
}

/* ---- times ------------------------------------------------------------------------------------- */

static bool settings_choose_launches(void)
{
	struct sim_options options = usual;
	uint64_t found[3];
	struct sim_run run;

	for (int i = 0; i < 3; i++) {
		options.graph_times = (enum sim_graph_times)i;
		if (!SAYS(start(&run, &options, NULL)) || !all_are_complete(&run))
			return false;
		found[i] = count(&run.reads[0], OP_FLAG_REPLAY_READ, 0);
		sim_run_end(&run);
	}
	return SAYS(found[SIM_GRAPH_TIMES_ALL] > 2 * found[SIM_GRAPH_TIMES_SOME]) &&
	       SAYS(found[SIM_GRAPH_TIMES_NONE] == 0);
}

static bool switched_off_nothing_is_read(void)
{
	struct sim_options options = usual;
	struct sim_run run;
	bool is_good;

	options.times = SIM_TIMES_OFF;
	options.graph_times = SIM_GRAPH_TIMES_ALL;
	is_good = SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		  SAYS(count(&run.reads[0], OP_FLAG_REPLAY, 0) == 0) &&
		  SAYS(count(&run.reads[0], OP_FLAG_NOT_SAMPLED, 0) == 0);
	sim_run_end(&run);
	return is_good;
}

/* With NCCL's kernel events each launch has a host node. */
static bool kernel_events_show_every_replay(void)
{
	struct sim_options options = usual;
	struct sim_run run;
	bool is_good;

	options.times = SIM_TIMES_KERNEL;
	is_good = SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		  replays_fit(&run.reads[1]) &&
		  SAYS(count(&run.reads[1], OP_FLAG_REPLAY, 0) == 9 * REPLAYS) &&
		  SAYS(run.reads[1].comm_counts[1].timed == 1 + 9 * (WARM_UP + REPLAYS));
	sim_run_end(&run);
	return is_good;
}

/* An evaluation is not in the graph. */
static bool other_iterations_are_called(void)
{
	struct sim_options options = { .nodes = 2 };
	struct sim_run run;
	bool is_good;

	options.workload = SIM_DDP;
	options.noises[SIM_NOISE_EVALUATION] = (struct sim_noise){ .is_on = true,
								   .every_ns = UINT64_C(2000000000),
								   .duration_ns = 600000000 };
	is_good = SAYS(start(&run, &options, NULL)) && all_are_complete(&run) &&
		  replays_fit(&run.reads[0]) &&
		  SAYS(count_state(&run.reads[0], OP_CAPTURED) == 17) &&
		  SAYS(run.reads[0].comm_counts[1].replays < 17 * REPLAYS) &&
		  SAYS(run.reads[0].comm_counts[1].collectives > 5 + 17 * (WARM_UP + 1));
	sim_run_end(&run);
	return is_good;
}

/* ---- faults ------------------------------------------------------------------------------------ */

static bool a_hang_in_a_replay_is_open(void)
{
	static const char *const faults[] = { "stuck-send:rank=1", NULL };
	struct sim_options options = {
		.nodes = 2, .size_count = 1, .sizes = { 64 << 20 }, .at_ns = 450000000
	};
	struct sim_run run;
	uint64_t open = 0;
	bool is_good;

	options.workload = SIM_LOOP;
	is_good = SAYS(start(&run, &options, faults)) && SAYS(run.result.end == SIM_RESULT_HUNG);
	for (size_t i = 0; is_good && i < run.reads[1].count; i++) {
		const struct op_record *op = &run.reads[1].ops[i];

		open += op->done_ns == 0 && (op->flags & OP_FLAG_REPLAY) &&
			op->state != OP_CAPTURED;
	}
	/* The graph has shown all of its operations before its first kernel. */
	is_good = is_good && SAYS(open == run.result.ranks[1].in_flight[0]) && SAYS(open > 0) &&
		  SAYS(run.reads[1].comm_counts[1].replays % 3 == 0);
	sim_run_end(&run);
	return is_good;
}

static bool is_refused(const struct sim_options *wanted, const char *fault, const char *words)
{
	struct sim_options options = *wanted;
	char why[256] = "";

	options.has_graphs = true;
	if (fault != NULL &&
	    sim_fault_parse(&options.faults[options.fault_count++], fault, why, sizeof(why)) != OK)
		return false;
	return SAYS(sim_options_finish(&options, why, sizeof(why)) != OK) &&
	       SAYS(strstr(why, words) != NULL) && SAYS(strchr(why, '\n') == NULL);
}

static bool what_makes_no_sense_is_refused(void)
{
	struct sim_options moe, kernel, plain, evaluation;

	sim_options_init(&plain);
	moe = kernel = evaluation = plain;
	moe.workload = SIM_MOE;
	kernel.times = SIM_TIMES_KERNEL;
	kernel.release = 22602;
	evaluation.times = SIM_TIMES_KERNEL;
	evaluation.noises[SIM_NOISE_EVALUATION].is_on = true;
	return is_refused(&moe, NULL, "moe") && is_refused(&kernel, NULL, "2.26.2") &&
	       is_refused(&evaluation, NULL, "evaluation") &&
	       is_refused(&plain, "mismatch:rank=1", "mismatch") &&
	       is_refused(&plain, "mismatch:rank=1,what=order", "mismatch");
}

int main(void)
{
	EXPECT_THAT("2.28, one node: the recorder reads replays", one_node(22809));
	EXPECT_THAT("2.30, one node: the recorder reads replays", one_node(23007));
	EXPECT_THAT("2.31, one node: the recorder reads replays", one_node(23102));
	EXPECT_THAT("2.28, two nodes: NCCL shows replays", two_nodes(22809));
	EXPECT_THAT("2.30, two nodes: NCCL shows replays", two_nodes(23007));
	EXPECT_THAT("2.31, two nodes: NCCL shows replays", two_nodes(23102));
	EXPECT(ranks_show_different_replays());
	EXPECT(replays_are_matched());
	EXPECT(what_releases_show());
	EXPECT(settings_choose_launches());
	EXPECT(switched_off_nothing_is_read());
	EXPECT(kernel_events_show_every_replay());
	EXPECT(other_iterations_are_called());
	EXPECT(a_hang_in_a_replay_is_open());
	EXPECT(what_makes_no_sense_is_refused());
	return tap_done();
}
