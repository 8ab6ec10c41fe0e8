#include "programs/bench/bench_job.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "programs/bench/bench_inside.h"
#include "programs/bench/bench_watch.h"

enum { LOOK_MS = 20, CAUSE_MS = 1000 };

uint64_t job_now(void)
{
	return clock_system_ns(CLOCK_MONOTONIC);
}

uint64_t job_wall(void)
{
	return clock_system_ns(CLOCK_REALTIME);
}

int job_fail(struct bench_job *job, const char *format, ...)
{
	char problem[HUB_PROBLEM_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, sizeof(problem), format, arguments);
	va_end(arguments);
	/* What another rank met before may be why this one fails: then that is told. And where rank 0 is gone
	 * another one has to know it, to tell anything. */
	(void)hub_look(job->hub);
	hub_fail(job->hub, problem);
	return -1;
}

int job_cuda(struct bench_job *job, cuda_result result, const char *what)
{
	char problem[HUB_PROBLEM_BYTES];

	return job_fail(job, "%s",
			cuda_explain(&job->cuda, result, what, problem, sizeof(problem)));
}

/* NCCL may notice that a peer is gone before the hub does. Causes are told, not what follows from them: they have a
 * moment to come. */
static void wait_for_cause(struct bench_job *job)
{
	for (int waited = 0; waited < CAUSE_MS && hub_look(job->hub) == 0; waited += LOOK_MS)
		poll(NULL, 0, LOOK_MS);
}

int job_nccl(struct bench_job *job, nccl_result result, const char *what)
{
	char problem[HUB_PROBLEM_BYTES];

	wait_for_cause(job);
	return job_fail(job, "%s",
			nccl_explain(&job->nccl, result, what, problem, sizeof(problem)));
}

void job_note(struct bench_job *job, const char *format, ...)
{
	char note[BENCH_TEXT_BYTES];
	va_list arguments;

	if (job->run == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	bench_run_note(job->run, "%s", note);
}

static int variable_keep(struct bench_job *job, struct job_variable *variable, const char *name)
{
	const char *value = getenv(name);

	variable->is_set = value != NULL;
	if (value && !text_copy(variable->value, sizeof(variable->value), value))
		return job_fail(job, "%s is longer than %zu bytes", name, sizeof(variable->value));
	return 0;
}

static void run_describe(struct bench_job *job)
{
	struct bench_run *run = job->run;
	const char *plugin = getenv("NCCL_PROFILER_PLUGIN");
	int version = 0;

	if (job->cuda.driver_version(&version) == 0)
		run->cuda_version = version;
	run->nccl_version = job->nccl.version;
	run->nranks = job->place->nranks;
	run->started_ns = job_wall();
	text_copy(run->launcher, sizeof(run->launcher), job->place->launcher);
	text_copy(run->plugin, sizeof(run->plugin), plugin);
	text_copy(run->nccl_path, sizeof(run->nccl_path), job->nccl.path);
}

static int libraries_open(struct bench_job *job)
{
	char problem[HUB_PROBLEM_BYTES];
	const char *path = job->plan->nccl_path;

	if (cuda_open(&job->cuda, problem, sizeof(problem)) < 0) {
		job->cuda.library = NULL;
		return job_fail(job, "%s", problem);
	}
	if (nccl_open(&job->nccl, path[0] ? path : NULL, problem, sizeof(problem)) < 0)
		return job_fail(job, "%s", problem);
	return 0;
}

int bench_job_open(struct bench_job **job, const struct bench_place *place, struct bench_hub *hub,
		   const struct bench_plan *plan, struct bench_run *run)
{
	struct bench_job *new = calloc(1, sizeof(*new));

	*job = NULL;
	if (new == NULL) {
		hub_fail(hub, "out of memory");
		return -1;
	}
	new->place = place;
	new->hub = hub;
	new->plan = plan;
	new->run = place->rank == 0 ? run : NULL;
	if (variable_keep(new, &new->algorithm, "NCCL_ALGO") < 0 ||
	    variable_keep(new, &new->protocol, "NCCL_PROTO") < 0 || libraries_open(new) < 0 ||
	    ranks_count(new) < 0 || device_open(new) < 0 || ranks_meet(new) < 0 ||
	    device_memory_open(new) < 0) {
		bench_job_close(new);
		return -1;
	}
	if (new->run)
		run_describe(new);
	*job = new;
	return 0;
}

static void comm_close(struct bench_job *job)
{
	if (job->comm)
		(void)job->nccl.comm_destroy(job->comm);
	job->comm = NULL;
}

void bench_job_close(struct bench_job *job)
{
	bool has_failed;

	if (job == NULL)
		return;
	/* A job that failed may have calls on the GPU that never end. An abort ends them, mostly; freeing their
	 * memory would wait for them, so that is left to the end of the process. */
	has_failed = hub_problem(job->hub)[0] != '\0';
	if (has_failed && job->comm) {
		(void)job->nccl.comm_abort(job->comm);
		job->comm = NULL;
	}
	comm_close(job);
	if (job->cuda.library && !has_failed)
		device_close(job);
	free(job->events);
	free(job->pattern);
	/* The libraries stay: both have threads and handlers of their own. */
	free(job);
}

static void variable_set(struct bench_job *job, const char *name, const char *value,
			 const struct job_variable *before)
{
	if (value)
		setenv(name, value, 1);
	else if (before->is_set) {
		setenv(name, before->value, 1);
		job_note(job, "%s=%s was set when this ran", name, before->value);
	} else
		unsetenv(name);
}

int job_agree(struct bench_job *job, int32_t state)
{
	int32_t *states = NULL, others = 0;

	if (job->place->rank == 0) {
		states = calloc((size_t)job->place->nranks, sizeof(*states));
		if (states == NULL)
			return job_fail(job, "out of memory");
	}
	if (hub_gather(job->hub, &state, sizeof(state), states) < 0) {
		free(states);
		return -1;
	}
	for (int i = 0; states && i < job->place->nranks; i++)
		others += states[i] != 0;
	free(states);
	return hub_share(job->hub, &others, sizeof(others)) < 0 ? -1 : others;
}

/* An algorithm that cannot do a function here is refused by its first call, not by this: bench_job_measure()
 * tells. */
static int comm_new(struct bench_job *job)
{
	struct nccl_unique_id id = { { 0 } };
	const char *what = "ncclGetUniqueId";
	struct bench_watch watch;
	nccl_result result = 0;
	int refused;

	if (job->place->rank == 0) {
		result = job->nccl.get_unique_id(&id);
		if (result)
			return job_nccl(job, result, what);
	}
	if (hub_share(job->hub, &id, sizeof(id)) < 0)
		return -1;
	what = "ncclCommInitRank";
	bench_watch_begin(&watch, job, what);
	result = job->nccl.comm_init(&job->comm, job->place->nranks, id, job->place->rank);
	bench_watch_end(&watch);
	if (result)
		job->comm = NULL;
	if (result && !job->is_forced)
		return job_nccl(job, result, what);
	refused = job_agree(job, (int32_t)result);
	if (refused > 0 && job->comm) {
		(void)job->nccl.comm_abort(job->comm);
		job->comm = NULL;
	}
	if (refused > 0 && !job->is_forced)
		return -1;
	return refused > 0 ? 1 : refused;
}

int bench_job_connect(struct bench_job *job, const char *algorithm, const char *protocol)
{
	comm_close(job);
	job->is_forced = algorithm || protocol;
	job->first_cell = job->run ? job->run->cell_count : 0;
	variable_set(job, "NCCL_ALGO", algorithm, &job->algorithm);
	variable_set(job, "NCCL_PROTO", protocol, &job->protocol);
	return comm_new(job);
}
