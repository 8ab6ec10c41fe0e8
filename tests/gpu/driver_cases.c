/*
 * The cases: each family of kinds gets new communicators for each style, named FAMILY-STYLE, so that the effect of
 * one case on NCCL's counters stays local. Two more cases disturb those counters on purpose, with pauses long
 * enough that the timestamp of another operation is noticed.
 */
#include "driver.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

enum { VALUES = 256 };

static int is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	if (strcmp(list, "all") == 0)
		return 1;
	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == ','))
			return 1;
	}
	return 0;
}

static int is_wanted(const struct job *job, const struct kind *kind, const char *family)
{
	return strcmp(kind->family, family) == 0 && is_listed(job->options.kinds, kind->name);
}

static int is_family_wanted(const struct job *job, const char *family)
{
	for (size_t i = 0; i < kind_count; i++)
		if (is_wanted(job, &kinds[i], family))
			return 1;
	return 0;
}

static void shape_run(struct job *job, const struct kind *kind, const struct shape *shape,
		      int divisor)
{
	const struct options *options = &job->options;
	int is_large = shape->bytes > 64 << 10;
	int burst = options->burst / (is_large ? 4 : 1) / divisor / (kind->is_heavy ? 4 : 1);
	int captured = kind->is_heavy ? (options->captured + 1) / 2 : options->captured;
	int calls = options->calls / divisor;
	cudaGraphExec_t graph;
	size_t first, count;

	if (strcmp(job->style, "sync") == 0) {
		style_sync(job, kind, shape, calls > 2 ? calls : 2, 0);
	} else if (strcmp(job->style, "burst") == 0) {
		style_burst(job, kind, shape, burst > 2 ? burst : 2);
	} else if (divisor == 1) {
		job->phase = "warm-up";
		style_sync(job, kind, shape, 1, 0);
		job->phase = "";
		graph = style_capture(job, kind, shape, captured, &first, &count);
		style_replay(job, graph, first, count, options->replays, 1, 0);
		style_replay(job, graph, first, count, options->replays, 0, 0);
		must_cuda(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
	}
}

static void kind_run(struct job *job, const struct kind *kind)
{
	job->kind = kind->name;
	say("case %s %s", kind->name, job->style);
	for (int i = 0; i < job->options.size_count; i++) {
		for (int is_uint8 = 0; is_uint8 < 2; is_uint8++) {
			struct shape shape = shape_of(job->options.sizes[i], is_uint8);

			shape_run(job, kind, &shape, 1);
		}
	}
	if (kind->is_tried_big && job->options.big_bytes) {
		struct shape shape = shape_of(job->options.big_bytes, 0);

		shape_run(job, kind, &shape, 4);
	}
	log_write(job);
}

/* The plugin must not change NCCL's results. */
static void values_check(struct job *job)
{
	float values[VALUES], wanted = (float)(job->main->ranks * (job->main->ranks + 1)) / 2;
	struct shape shape = shape_of(sizeof(values), 0);

	job->kind = "allreduce";
	job->phase = "values";
	for (int i = 0; i < VALUES; i++)
		values[i] = (float)(job->main->rank + 1);
	must_cuda(cudaMemcpy(job->send, values, sizeof(values), cudaMemcpyHostToDevice), "copy");
	must_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	style_sync(job, kind_find("allreduce"), &shape, 1, 0);
	must_cuda(cudaMemcpy(values, job->recv, sizeof(values), cudaMemcpyDeviceToHost), "copy");
	for (int i = 0; i < VALUES; i++)
		if (fabsf(values[i] - wanted) > 0.001f)
			die("AllReduce gave %f at %d, wanted %f", (double)values[i], i,
			    (double)wanted);
	must_cuda(cudaMemset(job->send, 0, sizeof(values)), "cudaMemset");
	job->phase = "";
	log_write(job);
}

static void family_run(struct job *job, const char *family, const char *style)
{
	char name[COMM_NAME_BYTES], second[COMM_NAME_BYTES + 8];

	if (!is_family_wanted(job, family))
		return;
	job->style = style;
	snprintf(name, sizeof(name), "%s-%s", family, style);
	snprintf(second, sizeof(second), "%s-2", name);
	job->main = job_communicator(job, name);
	if (strcmp(family, "twocomms") == 0)
		job->other = job_communicator(job, second);
	if (strcmp(family, "split") == 0)
		job->child = job_split(job, job->main, second);
	for (size_t i = 0; i < kind_count; i++)
		if (is_wanted(job, &kinds[i], family))
			kind_run(job, &kinds[i]);
	if (strcmp(name, "collectives-sync") == 0 && is_listed(job->options.kinds, "allreduce"))
		values_check(job);
	job_destroy(job, &job->child);
	job_destroy(job, &job->other);
	job_destroy(job, &job->main);
}

/* AllReduce, then sends to itself, then AllReduce again: small, and over several channels. */
static void drift_self(struct job *job)
{
	const struct kind *all_reduce = kind_find("allreduce");
	struct shape small = shape_of(1 << 10, 0), large = shape_of(1 << 20, 0);
	int gap_ms = job->options.gap_ms;

	job->kind = "drift-self";
	job->style = "sync";
	job->main = job_communicator(job, "drift-self");
	say("case drift-self");
	job->phase = "before";
	style_sync(job, all_reduce, &small, 5, gap_ms);
	style_sync(job, all_reduce, &large, 3, gap_ms);
	job->phase = "self";
	style_sync(job, kind_find("alltoall"), &small, 3, gap_ms);
	job->phase = "after";
	style_sync(job, all_reduce, &small, 6, gap_ms);
	style_sync(job, all_reduce, &large, 6, gap_ms);
	job->phase = "";
	log_write(job);
	job_destroy(job, &job->main);
}

/* Replays of a graph between eager calls on one communicator. */
static void drift_graph(struct job *job)
{
	const struct kind *all_reduce = kind_find("allreduce");
	struct shape shape = shape_of(1 << 10, 0);
	int gap_ms = job->options.gap_ms;
	cudaGraphExec_t graph;
	size_t first, count;

	job->kind = "drift-graph";
	job->style = "sync";
	job->main = job_communicator(job, "drift-graph");
	say("case drift-graph");
	job->phase = "before";
	style_sync(job, all_reduce, &shape, 4, gap_ms);
	graph = style_capture(job, all_reduce, &shape, 2, &first, &count);
	style_replay(job, graph, first, count, 4, 1, gap_ms);
	job->phase = "after";
	style_sync(job, all_reduce, &shape, 4, gap_ms);
	style_replay(job, graph, first, count, 4, 1, gap_ms);
	style_sync(job, all_reduce, &shape, 4, gap_ms);
	must_cuda(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
	job->phase = "";
	log_write(job);
	job_destroy(job, &job->main);
}

/* Like a job killed by the scheduler: finished operations, no teardown. */
static void killed_end(struct job *job)
{
	struct shape shape = shape_of(1 << 10, 0);

	job->kind = "killed";
	job->style = "sync";
	job->main = job_communicator(job, "killed");
	say("case killed");
	style_sync(job, kind_find("allreduce"), &shape, 20, 0);
	style_burst(job, kind_find("allreduce"), &shape, 20);
	log_close(job);
	say("killing myself");
	raise(SIGKILL);
}

int cases_run(const struct options *options)
{
	static const char *const styles[] = { "sync", "burst", "graph" };
	static const char *const families[] = { "collectives", "sendrecv", "alltoall", "twocomms",
						"split" };
	struct job job;

	job_open(&job, options);
	for (size_t style = 0; style < sizeof(styles) / sizeof(*styles); style++) {
		if (!is_listed(options->styles, styles[style]))
			continue;
		for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
			family_run(&job, families[i], styles[style]);
	}
	if (is_listed(options->kinds, "drift-self"))
		drift_self(&job);
	if (is_listed(options->kinds, "drift-graph"))
		drift_graph(&job);
	if (options->is_killed_at_end)
		killed_end(&job);
	job_close(&job);
	return 0;
}
