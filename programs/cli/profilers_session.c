/* Which job comes next, and whether there is still time for it. */
#include "programs/cli/profilers_session.h"

#include <signal.h>
#include <stdio.h>

#include "cmds/cli.h"
#include "common/clock.h"
#include "common/text.h"
#include "programs/bench/bench_launch.h"

/* A job without a plugin may take its time; others hang when they take ten times as long. */
enum { LIMIT_FIRST_S = 3600, LIMIT_LEAST_S = 60, LIMIT_TIMES = 10 };
/* Crashes are quick and are counted in all runs; whoever waits for a third hang learns nothing. */
enum { HANGS_MAX = 2 };
#define SECOND_NS UINT64_C(1000000000)

static uint64_t passed_ns(const struct profilers_session *session)
{
	return clock_system_ns(CLOCK_MONOTONIC) - session->began_ns;
}

static const char *kind_name(unsigned int kind)
{
	return kind == SESSION_TRAINING ? "training" : bench_mode_name(kind);
}

static uint32_t runs_of(const struct profilers_session *session, unsigned int kind)
{
	return kind == SESSION_TRAINING ? session->request->train_runs : session->request->runs;
}

static int limit_of(const struct profilers_session *session, unsigned int kind)
{
	uint64_t usual_s = session->last_ns[kind][0] / SECOND_NS + 1;

	if (session->request->job_seconds > 0)
		return session->request->job_seconds;
	if (session->last_ns[kind][0] == 0 || usual_s > LIMIT_FIRST_S / LIMIT_TIMES)
		return LIMIT_FIRST_S;
	return usual_s * LIMIT_TIMES < LIMIT_LEAST_S ? LIMIT_LEAST_S : (int)usual_s * LIMIT_TIMES;
}

/* A line for each job: who runs this in a batch wants to see it, too. */
static void tell_progress(const struct profilers_session *session, const struct session_job *job)
{
	uint64_t passed = passed_ns(session);
	char elapsed[UNITS_TEXT], left[UNITS_TEXT];

	units_duration(elapsed, passed);
	if (session->done == 0) {
		fprintf(stderr, "ringside: job 1 of %u: %s\n", session->jobs, job->name);
		return;
	}
	units_duration(left, passed / session->done * (session->jobs - session->done));
	fprintf(stderr, "ringside: job %u of %u: %s (%s passed, about %s left)\n",
		session->done + 1, session->jobs, job->name, elapsed, left);
}

static int run_job(struct profilers_session *session, uint32_t run, unsigned int kind,
		   size_t variant)
{
	struct session_job job = {
		.variant = &session->request->variants[variant],
		.run = run,
		.kind = kind,
		.limit_s = limit_of(session, kind),
	};
	uint64_t began = clock_system_ns(CLOCK_MONOTONIC);
	int failed = session_job_open(session, &job);

	if (failed)
		return failed;
	tell_progress(session, &job);
	failed = kind == SESSION_TRAINING ? session_train(session, &job)
					  : session_measure(session, &job);
	session_job_close(session, &job);
	session->last_ns[kind][variant] = clock_system_ns(CLOCK_MONOTONIC) - began;
	session->hangs[kind][variant] +=
		session->last_ns[kind][variant] >= (uint64_t)job.limit_s * SECOND_NS;
	session->done++;
	return failed;
}

/* Told once, when the first one is left out. */
static bool is_hanging(struct profilers_session *session, uint32_t run, unsigned int kind,
		       size_t variant)
{
	const char *label = session->request->variants[variant].label;

	if (session->hangs[kind][variant] < HANGS_MAX)
		return false;
	if (session->hangs[kind][variant]++ == HANGS_MAX) {
		profilers_not_run(session->profilers,
				  "%s with %s from run %u on: the job hung in %d runs",
				  kind_name(kind), label, run + 1, HANGS_MAX);
		cli_error("%s with %s is left out from run %u on: the job hung in %d runs",
			  kind_name(kind), label, run + 1, HANGS_MAX);
	}
	session->last_ns[kind][variant] = 0;
	session->jobs--;
	return true;
}

/* Will the jobs of all variants fit? Half a round is of no use: they are held against each other. */
static bool is_time_left(const struct profilers_session *session, unsigned int kind)
{
	const struct profilers_request *request = session->request;
	uint64_t needed = 0;

	if (request->seconds <= 0)
		return true;
	for (size_t i = 0; i < request->variant_count; i++)
		needed += session->last_ns[kind][i];
	return (double)(passed_ns(session) + needed) < request->seconds * SECOND_NS;
}

/* Runs that were left out, for the reader. */
static void tell_left_out(struct profilers_session *session, unsigned int kind, uint32_t first)
{
	const struct profilers_request *request = session->request;
	uint32_t count = runs_of(session, kind) - first;
	char runs[64];

	if (count == 1)
		text_format(runs, sizeof(runs), "run %u", first + 1);
	else
		text_format(runs, sizeof(runs), "runs %u to %u", first + 1, runs_of(session, kind));
	profilers_not_run(session->profilers, "%s of %s: no time was left of --seconds %g", runs,
			  kind_name(kind), request->seconds);
	cli_error("%s of %s %s left out: no time was left of --seconds %g", runs, kind_name(kind),
		  text_which(count, "is", "are"), request->seconds);
}

/* ^C between two jobs waits: what was started has to be ended. */
static void hold_signals(sigset_t *before)
{
	sigset_t held;

	bench_launch_signals(&held);
	sigprocmask(SIG_BLOCK, &held, before);
}

static int signal_waiting(void)
{
	static const int held[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < ARRAY_LENGTH(held); i++)
		if (sigismember(&pending, held[i]) == 1)
			return 128 + held[i];
	return 0;
}

static int run_round(struct profilers_session *session, uint32_t run, unsigned int kind)
{
	size_t count = session->request->variant_count;
	int failed = 0;

	for (size_t i = 0; i < count && failed == 0; i++) {
		size_t variant = (run + i) % count;

		if (!is_hanging(session, run, kind, variant))
			failed = run_job(session, run, kind, variant);
		if (failed == 0)
			failed = signal_waiting();
	}
	return failed;
}

static size_t kinds_of(const struct profilers_session *session, unsigned int *kinds)
{
	const struct profilers_request *request = session->request;
	size_t count = 0;

	for (size_t i = 0; i < request->plan.mode_count && request->is_measured; i++)
		kinds[count++] = request->plan.modes[i];
	if (request->is_trained && !session->is_training_out)
		kinds[count++] = SESSION_TRAINING;
	return count;
}

static void note_cuts(struct profilers_session *session)
{
	const struct bench_plan *plan = &session->request->plan;
	char size[UNITS_TEXT], calls[48];

	for (unsigned int mode = 0; mode < BENCH_MODES; mode++) {
		for (size_t i = 0; i < plan->size_count; i++) {
			const struct session_cut *cut = &session->cuts[mode][i];

			if (cut->least == 0)
				continue;
			text_format(calls, sizeof(calls),
				    cut->least == cut->most ? "%u" : "%u to %u", cut->least,
				    cut->most);
			profilers_note(session->profilers,
				       "%s, %s: %s calls instead of %u (--seconds-per-cell %g)",
				       bench_mode_name(mode), units_bytes(size, plan->sizes[i]),
				       calls, plan->calls, plan->seconds);
		}
	}
}

/* Ranks of all jobs, and whether there are GPUs for them. */
static int find_ranks(struct profilers_session *session)
{
	char problem[512] = "";

	session->gpus = bench_launch_gpus(problem, sizeof(problem));
	if (session->gpus < 1)
		return cli_error("%s", problem[0] ? problem : "there is no GPU");
	session->ranks = session->request->how.ranks;
	/* One rank alone has nobody to talk to. */
	if (session->ranks == 0)
		session->ranks = session->gpus > 1 ? session->gpus : 2;
	return 0;
}

static int run_all(struct profilers_session *session, const unsigned int *kinds, size_t count)
{
	bool is_out[SESSION_KINDS] = { false };
	int failed = 0;

	for (uint32_t run = 0; run < PROFILERS_RUNS_MAX && failed == 0; run++) {
		for (size_t i = 0; i < count && failed == 0; i++) {
			if (is_out[kinds[i]] || run >= runs_of(session, kinds[i]))
				continue;
			if (is_time_left(session, kinds[i])) {
				failed = run_round(session, run, kinds[i]);
				continue;
			}
			is_out[kinds[i]] = true;
			tell_left_out(session, kinds[i], run);
			session->jobs -= (runs_of(session, kinds[i]) - run) *
					 (uint32_t)session->request->variant_count;
		}
	}
	return failed;
}

int profilers_session_run(struct profilers_session *session)
{
	const struct profilers_request *request = session->request;
	unsigned int kinds[SESSION_KINDS];
	sigset_t before;
	size_t count;
	int failed;

	session->began_ns = clock_system_ns(CLOCK_MONOTONIC);
	failed = find_ranks(session);
	if (failed)
		return failed;
	if (request->is_trained)
		session->is_training_out = !session_train_is_possible(session);
	count = kinds_of(session, kinds);
	for (size_t i = 0; i < count; i++)
		session->jobs += runs_of(session, kinds[i]) * (uint32_t)request->variant_count;
	hold_signals(&before);
	if (session->ranks > session->gpus && request->how.is_mps_wanted) {
		bench_mps_start(&session->mps);
		/* Whoever starts ranks finds it there. */
		bench_mps_environment(&session->mps);
	}
	failed = run_all(session, kinds, count);
	bench_mps_stop(&session->mps);
	sigprocmask(SIG_SETMASK, &before, NULL);
	note_cuts(session);
	return failed;
}
