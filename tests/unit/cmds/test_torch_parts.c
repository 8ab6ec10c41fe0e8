/*
 * Traces of torch.profiler, part by part: whose a trace is, the offset of clocks that most launches allow, names of
 * communicators, tracks and arguments. Clocks and operations are played; the file is included for that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define torch_traces_take torch_included_take
#define torch_traces_release torch_included_release
#define torch_trace_clock_text torch_included_clock_text
#define torch_traces_open torch_included_open
#define torch_traces_join torch_included_join
#define torch_traces_measure torch_included_measure
#define torch_traces_split torch_included_split
#define torch_traces_widen torch_included_widen
#define torch_traces_write torch_included_write
#include "cmds/torch_trace.h"

static bool play_wall(const struct recording_process *process, uint64_t clock_ns,
		      uint64_t *wall_ns);
static bool play_clock(const struct recording_process *process, uint64_t wall_ns,
		       uint64_t *clock_ns);
static uint64_t play_align(const struct align *align, size_t process, uint64_t clock_ns);
static uint64_t play_last(const struct recording_process *process);
static enum status play_each_op(const struct recording_process *process, recording_visit_op *visit,
				void *context, struct recording_walk *walk);

#define recording_wall_ns play_wall
#define recording_clock_ns play_clock
#define align_ns play_align
#define recording_last_ns play_last
#define recording_each_op play_each_op
#include "cmds/torch_trace.c"
#undef recording_wall_ns
#undef recording_clock_ns
#undef align_ns
#undef recording_last_ns
#undef recording_each_op

#include "tests/support/command_play.h"
#include "tests/tap.h"

#define US 1000
#define BASE (1000 * SECOND_NS)

/* ---- the stage -------------------------------------------------------------------------------- */

static struct sink happened;
static struct op_record ops[32];
static size_t op_count;
static struct recording_process processes[4], *list[4];
static struct recording recording = { .processes = list };

/* The wall clock is BASE ahead. A process without anchors has none. */
static bool play_wall(const struct recording_process *process, uint64_t clock_ns, uint64_t *wall_ns)
{
	*wall_ns = clock_ns + BASE;
	return process->anchor_count > 0;
}

static bool play_clock(const struct recording_process *process, uint64_t wall_ns,
		       uint64_t *clock_ns)
{
	*clock_ns = wall_ns - BASE;
	return process->anchor_count > 0;
}

static uint64_t play_align(const struct align *align, size_t process, uint64_t clock_ns)
{
	(void)align;
	return clock_ns + 7 * process;
}

static uint64_t play_last(const struct recording_process *process)
{
	return process->start_ticks;
}

static enum status play_each_op(const struct recording_process *process, recording_visit_op *visit,
				void *context, struct recording_walk *walk)
{
	(void)process, (void)walk;
	for (size_t i = 0; i < op_count && visit(&ops[i], RECORDING_IN_TRACE, context); i++)
		;
	return OK;
}

static void begin(const char *heading)
{
	sink_format(&happened, "=== %s\n", heading);
	op_count = 0;
	memset(processes, 0, sizeof(processes));
	for (size_t i = 0; i < ARRAY_LENGTH(processes); i++) {
		processes[i].rank = (int64_t)i;
		processes[i].pid = 100 + (int64_t)i;
		processes[i].anchor_count = 1;
		list[i] = &processes[i];
	}
	recording.count = ARRAY_LENGTH(processes);
}

static void add_op(uint32_t comm, uint64_t issue_ns, uint64_t launch_ns, uint64_t done_ns)
{
	ops[op_count++] = (struct op_record){
		.comm = comm, .issue_ns = issue_ns, .launch_ns = launch_ns, .done_ns = done_ns
	};
}

/* ---- whose it is ------------------------------------------------------------------------------ */

static void owners(void)
{
	static const struct {
		int64_t rank, pid;
		uint64_t first_ns, last_ns;
	} cases[] = {
		{ 1, 101, 0, 0 },   { 1, -1, 0, 0 },	{ -1, 102, 0, 0 },  { 1, 102, 0, 0 },
		{ 9, 101, 0, 0 },   { -1, 999, 0, 0 },	{ -1, -1, 0, 0 },   { 9, -1, 0, 0 },
		{ 0, 100, 0, 0 },   { 3, 103, 10, 20 }, { 3, 103, 60, 70 }, { 3, 103, 40, 55 },
		{ 3, 103, 50, 60 }, { 3, 103, 30, 50 }, { 0, -1, 0, 0 },    { -1, 0, 0, 0 },
	};

	begin("whose a trace is");
	/* Two runs with the same numbers: the first ends at 45, the second begins at 50. */
	processes[2].rank = 3;
	processes[2].pid = 103;
	processes[2].started_wall_ns = 5;
	processes[2].start_ticks = 45 - BASE;
	processes[3].started_wall_ns = 50;
	processes[3].start_ticks = 90 - BASE;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct torch_trace trace = { .path = "t",
					     .pid = cases[i].pid,
					     .about.rank = cases[i].rank,
					     .first_ns = cases[i].first_ns,
					     .last_ns = cases[i].last_ns };
		int code = find_process(&trace, &recording);

		sink_format(&happened, "rank %lld, pid %lld, %llu to %llu: %d, process %td, %d\n",
			    (long long)cases[i].rank, (long long)cases[i].pid,
			    (unsigned long long)cases[i].first_ns,
			    (unsigned long long)cases[i].last_ns, code,
			    trace.owner ? trace.owner - processes : -1, is_in(&trace, &recording));
	}
	processes[1].pid = 0;
	processes[0].rank = -1;
	for (int64_t rank = -1; rank < 2; rank++)
		for (int64_t pid = -1; pid < 102; pid += 101) {
			struct torch_trace trace = { .pid = pid, .about.rank = rank };

			sink_format(&happened, "rank %lld, pid %lld: %d %d\n", (long long)rank,
				    (long long)pid, is_of(&trace, &processes[0]),
				    is_of(&trace, &processes[1]));
		}
}

/* ---- clocks ----------------------------------------------------------------------------------- */

static void show_vote(struct vote *vote)
{
	int64_t from = -1, to = -1;
	size_t best = count_votes(vote, &from, &to);

	sink_format(&happened, "%zu of %zu: %lld to %lld\n", best, vote->samples, (long long)from,
		    (long long)to);
	free(vote->edges);
	*vote = (struct vote){ .edges = NULL };
}

static void votes(void)
{
	static const int64_t intervals[][2] = { { -30, -20 }, { 10, 50 }, { 40, 60 },
						{ -25, -22 }, { 5, 12 },  { 50, 70 } };
	struct span spans[5];
	struct windows_of_calls calls = { .list = spans, .count = 5 };
	struct vote vote = { .edges = NULL };
	struct span sample;

	begin("votes");
	show_vote(&vote);
	for (size_t i = 0; i < ARRAY_LENGTH(intervals); i++) {
		for (size_t j = 0; j <= i; j++, vote.samples++)
			add_interval(&vote, intervals[j][0], intervals[j][1]);
		show_vote(&vote);
	}
	sink_format(&happened, "distances %lld %lld %lld %lld %lld\n", (long long)distance(-1, 1),
		    (long long)distance(3, 9), (long long)distance(-9, -3),
		    (long long)distance(0, 5), (long long)distance(-5, 0));
	for (uint64_t i = 0; i < 5; i++)
		spans[i] = (struct span){ BASE + i * 100 * US, BASE + i * 100 * US + 20 * US };
	for (uint64_t ns = 0; ns <= 5; ns++)
		sink_format(&happened, "first from %llu: %zu %zu\n", (unsigned long long)ns,
			    first_from(&calls, BASE + ns * 100 * US),
			    first_from(&calls, BASE + ns * 100 * US + 1));
	/* Inside the third call: it allows offsets with which it lies in each of them. */
	sample = (struct span){ BASE + 205 * US, BASE + 210 * US };
	vote_for(&vote, &calls, &sample, false);
	sink_format(&happened, "%zu edges\n", vote.count);
	show_vote(&vote);
	/* Calls that overlap are one interval. */
	spans[3] = (struct span){ BASE + 210 * US, BASE + 300 * US };
	vote_for(&vote, &calls, &sample, false);
	sink_format(&happened, "%zu edges\n", vote.count);
	for (size_t i = 0; i < vote.count; i++)
		sink_format(&happened, "%lld %d\n", (long long)vote.edges[i].ns,
			    vote.edges[i].step);
	show_vote(&vote);
	sample = (struct span){ BASE + 195 * US, BASE + 230 * US };
	vote_for(&vote, &calls, &sample, true);
	for (size_t i = 0; i < vote.count; i++)
		sink_format(&happened, "around: %lld %d\n", (long long)vote.edges[i].ns,
			    vote.edges[i].step);
	show_vote(&vote);
	/* Too far away, and too short. */
	sample = (struct span){ BASE + 21 * 1000 * US, BASE + 21 * 1000 * US + 1 };
	vote_for(&vote, &calls, &sample, false);
	sink_format(&happened, "%zu edges, %zu sample\n", vote.count, vote.samples);
	sample = (struct span){ 5, 900 * US };
	vote_for(&vote, &calls, &sample, false);
	sink_format(&happened, "%zu edges, %zu samples\n", vote.count, vote.samples);
	show_vote(&vote);
}

/* Launches with this offset of their clock; every fifth is elsewhere if there are strays. */
static void join(const char *what, size_t count, int64_t shift_ns, size_t strays, bool has_launches)
{
	struct launch launches[16], comms[16];
	struct span spans[16];
	struct torch_trace trace = { .path = "t", .owner = &processes[0], .about.base_ns = BASE };
	struct torch_survey survey = {
		.trace = &trace, .launches = launches, .comms = comms, .calls = spans
	};
	char text[200] = "refused";
	int code;

	op_count = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t at = (i + 1) * 1000 * US + (i < strays ? 400 * US : 0);
		struct span span = { at + 2 * US + (uint64_t)shift_ns,
				     at + 6 * US + (uint64_t)shift_ns };

		add_op(1, (i + 1) * 1000 * US, (i + 1) * 1000 * US + 10 * US,
		       (i + 1) * 1000 * US + 90 * US);
		launches[i] = (struct launch){ 500 + i, span, 0 };
		comms[i] = (struct launch){ 500 + i, { span.start_ns + 9, span.end_ns + 9 }, 0 };
		spans[i] = (struct span){ span.start_ns - 5 * US, span.end_ns + 50 * US };
	}
	survey.launch_count = has_launches ? count : 0;
	survey.comm_count = has_launches ? count : 0;
	survey.call_count = count;
	trace.first_ns = BASE + 1000 * US + (uint64_t)shift_ns;
	trace.last_ns = BASE + 17000 * US + (uint64_t)shift_ns;
	code = join_clock(&trace, &survey);
	if (code == 0)
		torch_included_clock_text(&trace, text, sizeof(text));
	sink_format(&happened, "%s: %d, clock %d, %llu of %llu, offset %lld within %llu\n  %s\n",
		    what, code, trace.clock, (unsigned long long)trace.agreed,
		    (unsigned long long)trace.compared, (long long)trace.offset_ns,
		    (unsigned long long)trace.within_ns, text);
}

static void clocks(void)
{
	begin("clocks");
	join("together", 10, 0, 0, true);
	join("late", 10, 3000 * US + 7, 0, true);
	join("early", 10, -200 * US, 0, true);
	join("two of ten elsewhere", 10, 0, 2, true);
	join("three of ten", 10, 0, 3, true);
	join("three launches", 3, 0, 0, true);
	join("two launches, with calls", 2, 0, 0, true);
	join("calls only", 10, 0, 0, false);
	join("calls only, late", 10, 300 * US, 0, false);
	join("much later", 10, 19000 * US, 0, true);
	processes[0].anchor_count = 0;
	join("no wall clock", 5, 0, 0, true);
}

/* Which operations are windows for launches, and how wide. */
static void windows(void)
{
	static const struct op_record cases[] = {
		{ .issue_ns = 100, .launch_ns = 150, .done_ns = 400 },
		{ .issue_ns = 0, .launch_ns = 150, .done_ns = 400 },
		{ .issue_ns = 100, .launch_ns = 150, .done_ns = 400, .flags = OP_FLAG_REPLAY },
		{ .issue_ns = 1000000, .launch_ns = 0, .done_ns = 0 },
		{ .issue_ns = 1000000, .launch_ns = 999999, .done_ns = 1000000 },
		{ .issue_ns = 1000000, .launch_ns = 1000000, .done_ns = 1000001 },
		{ .issue_ns = 50, .launch_ns = 59, .done_ns = 900 },
		{ .issue_ns = 50, .launch_ns = 60, .done_ns = 900 },
		{ .issue_ns = 2000000, .launch_ns = 2000001, .done_ns = 3 },
		{ .issue_ns = 2000001, .launch_ns = 2000002, .done_ns = 3 },
	};

	begin("windows");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct windows_of_calls calls = { .process = &processes[0],
						  .first_ns = UINT64_MAX,
						  .from_ns = BASE + 60,
						  .to_ns = BASE + 2000000 };

		take_call(&cases[i], RECORDING_IN_TRACE, &calls);
		sink_format(&happened, "%zu: %lld to %lld%s", i, (long long)(calls.first_ns - BASE),
			    (long long)(calls.last_ns - BASE), calls.count ? "" : ", none\n");
		if (calls.count)
			sink_format(&happened, ", window %lld to %lld\n",
				    (long long)(calls.list[0].start_ns - BASE),
				    (long long)(calls.list[0].end_ns - BASE));
		free(calls.list);
	}
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Communicator 1 is of group pp, 2 of two groups, 3 has two launches only, 4 a name. */
static void names(void)
{
	static const uint32_t comms_of[] = { 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4 };
	static const uint32_t groups_of[] = { 2, 2, 2, 1, 1, 2, 1, 1, 1, 1, 1 };
	static char groups[2][KINETO_GROUP_NAME] = { "tp", "pp" };
	struct recording_comm comms[2][4] = { 0 };
	struct launch launches[11], kernels[11];
	struct torch_trace trace = { .owner = &processes[0],
				     .about.base_ns = BASE,
				     .offset_ns = 5 };
	struct torch_survey survey = { .trace = &trace,
				       .launches = launches,
				       .launch_count = 11,
				       .comms = kernels,
				       .comm_count = 11,
				       .groups = groups,
				       .group_count = 2 };

	begin("names");
	for (size_t i = 0; i < 11; i++) {
		uint64_t at = (i + 1) * 1000 * US;

		add_op(comms_of[i], at, at + 10 * US, at + 90 * US);
		launches[i] = (struct launch){ 500 + i, { at + 2 * US, at + 9 * US }, 0 };
		/* Kernels are in another order than their launches. */
		kernels[10 - i] =
			(struct launch){ 500 + i, { at + 20 * US, at + 30 * US }, groups_of[i] };
	}
	for (size_t p = 0; p < 2; p++) {
		for (size_t c = 0; c < 4; c++)
			comms[p][c].info =
				(struct comm_info){ .id = (uint32_t)c + 1, .hash = 70 + c };
		text_copy(comms[p][3].info.name, sizeof(comms[p][3].info.name), "own");
		processes[p].comms = comms[p];
		processes[p].comm_count = 4;
	}
	comms[1][1].info.hash = 70;
	name_comms(&trace, &survey, &recording);
	for (size_t p = 0; p < 2; p++)
		for (size_t c = 0; c < 4; c++)
			sink_format(&happened, "process %zu, communicator %zu: '%s'\n", p, c + 1,
				    comms[p][c].info.name);
	/* Launches that end too late, or before the call. */
	comms[0][0].info.name[0] = '\0';
	for (size_t i = 0; i < 3; i++)
		launches[i].span.end_ns += 6 * US;
	name_comms(&trace, &survey, &recording);
	sink_format(&happened, "late: '%s'\n", comms[0][0].info.name);
	for (size_t i = 0; i < 3; i++)
		launches[i].span.start_ns -= 3 * US;
	name_comms(&trace, &survey, &recording);
	sink_format(&happened, "early: '%s'\n", comms[0][0].info.name);
	survey.group_count = 0;
	name_comms(&trace, &survey, &recording);
}

/* ---- the survey ------------------------------------------------------------------------------- */

static void survey_events(void)
{
	static const struct kineto_event events[] = {
		{ .phase = KINETO_METADATA,
		  .name = "thread_name",
		  .has_place = true,
		  .pid = 1,
		  .tid = 2,
		  .label = "main" },
		{ .phase = KINETO_METADATA, .name = "thread_name", .pid = 1, .tid = 2 },
		{ .phase = KINETO_METADATA, .name = "process_name", .has_place = true },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_CPU_OP,
		  .name = "add",
		  .has_place = true,
		  .pid = 1,
		  .tid = 2,
		  .start_ns = 50,
		  .duration_ns = 5 },
		{ .phase = KINETO_SLICE, .kind = KINETO_CPU_OP, .name = "add", .pid = 1, .tid = 2 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_RUNTIME,
		  .name = "cudaLaunchKernelExC",
		  .has_place = true,
		  .pid = 9,
		  .tid = 2,
		  .start_ns = 40,
		  .duration_ns = 30,
		  .correlation = 8 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_RUNTIME,
		  .name = "cudaLaunchKernel",
		  .has_place = true,
		  .pid = 1,
		  .tid = 3,
		  .start_ns = 45,
		  .duration_ns = 3 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_RUNTIME,
		  .name = "cuLaunchKernelEx",
		  .has_place = true,
		  .pid = 1,
		  .tid = 3,
		  .start_ns = 44,
		  .duration_ns = 3,
		  .correlation = 4 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_RUNTIME,
		  .name = "cudaGraphLaunch",
		  .has_place = true,
		  .pid = 1,
		  .tid = 3,
		  .start_ns = 44,
		  .duration_ns = 3,
		  .correlation = 5 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_KERNEL,
		  .name = "nccl",
		  .has_place = true,
		  .pid = 0,
		  .tid = 7,
		  .start_ns = 60,
		  .duration_ns = 50,
		  .correlation = 8,
		  .is_nccl = true,
		  .group = "tp" },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_KERNEL,
		  .name = "nccl",
		  .has_place = true,
		  .pid = 0,
		  .tid = 7,
		  .start_ns = 130,
		  .duration_ns = 5,
		  .correlation = 4,
		  .is_nccl = true,
		  .group = "pp" },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_KERNEL,
		  .name = "nccl",
		  .has_place = true,
		  .pid = 0,
		  .tid = 7,
		  .start_ns = 140,
		  .duration_ns = 5,
		  .correlation = 3,
		  .is_nccl = true,
		  .group = "tp" },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_KERNEL,
		  .name = "nccl",
		  .has_place = true,
		  .pid = 0,
		  .tid = 7,
		  .start_ns = 150,
		  .duration_ns = 5,
		  .is_nccl = true },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_KERNEL,
		  .name = "gemm",
		  .has_place = true,
		  .pid = 0,
		  .tid = 8,
		  .start_ns = 30,
		  .duration_ns = 9 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_GPU_ANNOTATION,
		  .name = "step",
		  .has_place = true,
		  .pid = 0,
		  .tid = 8,
		  .start_ns = 31,
		  .duration_ns = 2 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_MEMCPY,
		  .name = "copy",
		  .has_place = true,
		  .pid = 0,
		  .tid = 8,
		  .start_ns = 33,
		  .duration_ns = 2 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_MEMSET,
		  .name = "set",
		  .has_place = true,
		  .pid = 0,
		  .tid = 9,
		  .start_ns = 33,
		  .duration_ns = 2 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_SYNC,
		  .name = "sync",
		  .has_place = true,
		  .pid = 0,
		  .tid = 9,
		  .start_ns = 36,
		  .duration_ns = 2 },
		{ .phase = KINETO_SLICE,
		  .kind = KINETO_CPU_OP,
		  .name = "record_param_comms",
		  .has_place = true,
		  .pid = 1,
		  .tid = 2,
		  .start_ns = 70,
		  .duration_ns = 6 },
	};
	struct torch_trace trace = {
		.pid = -1, .about = { .base_ns = BASE }, .owner = &processes[0], .process = 1
	};
	struct torch_survey survey = { .trace = &trace,
				       .first_ns = UINT64_MAX,
				       .host_first_ns = UINT64_MAX };
	struct torch_traces traces = { .list = &trace, .count = 1 };

	begin("a survey");
	for (size_t i = 0; i < ARRAY_LENGTH(events); i++)
		EXPECT(survey_event(&events[i], &survey));
	name_tracks(&survey);
	sink_format(&happened, "pid %lld, %llu to %llu, host %llu to %llu\n", (long long)trace.pid,
		    (unsigned long long)survey.first_ns, (unsigned long long)survey.last_ns,
		    (unsigned long long)survey.host_first_ns,
		    (unsigned long long)survey.host_last_ns);
	for (size_t i = 0; i < trace.track_count; i++)
		sink_format(&happened, "track %lld/%lld%s%s '%s'\n", (long long)trace.tracks[i].pid,
			    (long long)trace.tracks[i].tid, trace.tracks[i].is_gpu ? " GPU" : "",
			    trace.tracks[i].is_annotation ? " annotations" : "",
			    trace.tracks[i].label);
	qsort(survey.launches, survey.launch_count, sizeof(*survey.launches), by_correlation);
	for (size_t i = 0; i < survey.launch_count; i++)
		sink_format(&happened, "launch %llu: %llu to %llu\n",
			    (unsigned long long)survey.launches[i].correlation,
			    (unsigned long long)survey.launches[i].span.start_ns,
			    (unsigned long long)survey.launches[i].span.end_ns);
	for (size_t i = 0; i < survey.comm_count; i++)
		sink_format(&happened, "NCCL %llu: %llu to %llu, group %u\n",
			    (unsigned long long)survey.comms[i].correlation,
			    (unsigned long long)survey.comms[i].span.start_ns,
			    (unsigned long long)survey.comms[i].span.end_ns, survey.comms[i].group);
	sink_format(&happened, "%zu kernels, %zu calls, %zu groups\n", survey.compute_count,
		    survey.call_count, survey.group_count);
	/* On the common time of the ranks: 7 ns later. */
	keep_activity(&traces, &trace, &survey);
	sink_format(&happened, "activity %llu to %llu\n",
		    (unsigned long long)trace.activity.first_ns,
		    (unsigned long long)trace.activity.last_ns);
	for (size_t i = 0; i < trace.activity.compute_count; i++)
		sink_format(&happened, "compute %llu to %llu\n",
			    (unsigned long long)trace.activity.compute[i].start_ns,
			    (unsigned long long)trace.activity.compute[i].end_ns);
	for (size_t i = 0; i < trace.activity.comm_count; i++)
		sink_format(&happened, "comm called %llu, %llu to %llu\n",
			    (unsigned long long)trace.activity.comms[i].called_ns,
			    (unsigned long long)trace.activity.comms[i].span.start_ns,
			    (unsigned long long)trace.activity.comms[i].span.end_ns);
	exposed_release(&trace.activity);
	survey_release(&survey);
	free(trace.tracks);
}

/* A plan grows with the traces that are shown, unless it was cut. */
static void plans(void)
{
	struct viewer_source sources[3] = { { .is_shown = true },
					    { .is_shown = false },
					    { .is_shown = true } };
	struct torch_trace of[3] = {
		{ .owner = &processes[0], .process = 0, .about.base_ns = BASE },
		{ .owner = &processes[1], .process = 1, .about.base_ns = BASE },
		{ .owner = &processes[2], .process = SIZE_MAX, .about.base_ns = BASE },
	};
	struct torch_traces traces = { .list = of, .count = 3 };

	begin("plans");
	for (int turn = 0; turn < 4; turn++) {
		struct viewer_plan plan = { .sources = sources,
					    .origin_ns = 500,
					    .end_ns = 600,
					    .from_ns = turn == 1,
					    .to_ns = turn == 2 ? 9 : UINT64_MAX };

		for (size_t i = 0; i < 3; i++) {
			of[i].first_ns = BASE + (turn == 3 ? 520 : 400 - i);
			of[i].last_ns = BASE + (turn == 3 ? 580 : 700 + i);
		}
		torch_included_widen(&traces, &plan);
		sink_format(&happened, "%llu to %llu\n", (unsigned long long)plan.origin_ns,
			    (unsigned long long)plan.end_ns);
	}
}

static void texts(void)
{
	static struct writing writing;
	char long_text[ARGS_BYTES];
	const char *kept;

	memset(long_text, 'x', sizeof(long_text));
	kept = keep_text(&writing, "ab", 2);
	EXPECT(kept != NULL && strcmp(kept, "ab") == 0 && writing.used == 3);
	EXPECT_THAT("what does not fit is left out",
		    keep_text(&writing, long_text, ARGS_BYTES - 3) == NULL && writing.used == 3);
	kept = keep_text(&writing, long_text, ARGS_BYTES - 4);
	EXPECT(kept != NULL && strlen(kept) == ARGS_BYTES - 4 && writing.used == ARGS_BYTES);
	EXPECT(keep_text(&writing, "", 0) == NULL);
}

int main(void)
{
	int before = dup(STDERR_FILENO), fd;
	size_t length;
	char *errors;

	command_begin();
	sink_init_memory(&happened);
	fd = open(command_path("errors"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	owners();
	votes();
	clocks();
	windows();
	names();
	survey_events();
	plans();
	texts();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	errors = command_read(command_path("errors"), &length);
	sink_format(&happened, "=== errors\n%s", errors);
	free(errors);
	EXPECT_THAT("parts of merging",
		    expected_text(&happened, "tests/unit/cmds/expected/torch-parts"));
	return tap_done();
}
