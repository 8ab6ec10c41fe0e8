/* One job of a comparison: a directory of its own, a plugin's variables, ranks that are started and waited for. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_read.h"
#include "cmds/cli.h"
#include "cmds/cli_output.h"
#include "common/text.h"
#include "programs/bench/bench_launch.h"
#include "programs/cli/profilers_session.h"
#include "view/bench_json.h"

enum { RESULTS_BYTES_MAX = 1 << 30, LOGS_TOLD = 2, SIGNAL_CODE = 128 };

/* File names are for people, too; a plugin's label may have anything in it. */
static void directory_name(const struct session_job *job, char *name, size_t size)
{
	text_format(name, size, "run%u-%s-%s", job->run + 1,
		    job->kind == SESSION_TRAINING ? "training" : bench_mode_name(job->kind),
		    job->variant->label);
	for (char *at = name; *at != '\0'; at++)
		if (*at <= ' ' || *at == '/' || *at == ':' || *at == 0x7f)
			*at = '-';
}

int session_job_open(struct profilers_session *session, struct session_job *job)
{
	char name[200];

	text_format(job->name, sizeof(job->name), "run %u, %s, %s", job->run + 1,
		    job->kind == SESSION_TRAINING ? "training" : bench_mode_name(job->kind),
		    job->variant->label);
	job->problem[0] = '\0';
	directory_name(job, name, sizeof(name));
	if (profilers_work_make(session->work.disk, name, job->directory, sizeof(job->directory)) ||
	    profilers_work_make(job->directory, "output", job->place.output,
				sizeof(job->place.output)) ||
	    profilers_work_make(session->work.memory, name, job->place.regions,
				sizeof(job->place.regions)))
		return CLI_EXIT_TROUBLE;
	profilers_variant_variables(job->variant, &job->place, &job->variables);
	return 0;
}

void session_job_close(struct profilers_session *session, struct session_job *job)
{
	if (!session->work.is_kept)
		bench_remove_tree(job->directory);
	else if (!profilers_copy_files(job->place.regions, job->place.output))
		cli_error("%s: not all regions could be kept in '%s'", job->name,
			  job->place.output);
	bench_remove_tree(job->place.regions);
}

/* ---- running ---------------------------------------------------------------------------------- */

static void tell_logs(const struct profilers_session *session, const struct session_job *job)
{
	char path[WORK_PATH_BYTES + 300], indent[64];
	size_t files;
	uint64_t bytes;
	int told = 0;

	for (int rank = 0; rank < session->ranks && told < LOGS_TOLD; rank++) {
		text_format(path, sizeof(path), "%s/rank-%d.log", job->directory, rank);
		profilers_count_files(path, &files, &bytes);
		if (bytes == 0)
			continue;
		text_format(indent, sizeof(indent), "  rank %d: ", rank);
		profilers_tell_tail(path, indent);
		told++;
	}
}

/* A rank that ended with an error of its own said why in its log, if anywhere. */
static void problem_from_logs(const struct profilers_session *session, struct session_job *job)
{
	char path[WORK_PATH_BYTES + 300], line[160];

	for (int rank = 0; rank < session->ranks; rank++) {
		text_format(path, sizeof(path), "%s/rank-%d.log", job->directory, rank);
		if (!profilers_last_line(path, line, sizeof(line)))
			continue;
		text_format(job->problem, sizeof(job->problem), "rank %d failed: %s", rank, line);
		return;
	}
	text_format(job->problem, sizeof(job->problem), "the job failed and did not say why");
}

static int launch_once(struct profilers_session *session, struct session_job *job,
		       bench_rank_fn body, void *context)
{
	char log[WORK_PATH_BYTES + 300];
	struct bench_launch launch = {
		.ranks = session->ranks,
		.gpus = session->gpus,
		.is_mps_wanted = session->request->how.is_mps_wanted,
		.results_fd = -1,
		.variables = job->variables.list,
		.log = log,
		.problem = job->problem,
		.problem_size = sizeof(job->problem),
		.limit_s = job->limit_s,
	};
	int code;

	text_format(log, sizeof(log), "%s/rank-%%r.log", job->directory);
	code = bench_launch(&launch, body, context);
	if (code == 0 || code > SIGNAL_CODE)
		return code;
	if (job->problem[0] == '\0')
		problem_from_logs(session, job);
	cli_error("%s: %s", job->name, job->problem);
	tell_logs(session, job);
	return 1;
}

/* A client that died may leave MPS broken for all that come after it. */
static void renew_mps(struct profilers_session *session)
{
	if (!session->mps.is_ours)
		return;
	bench_mps_stop(&session->mps);
	bench_mps_start(&session->mps);
	bench_mps_environment(&session->mps);
}

static void empty(const char *directory)
{
	bench_remove_tree(directory);
	/* Whoever needs it finds that it is not there. */
	(void)mkdir(directory, 0755);
}

/* It failed right after a job of another plugin did: that may be the other's fault. */
static int launch_again(struct profilers_session *session, struct session_job *job,
			bench_rank_fn body, void *context)
{
	char counts[WORK_PATH_BYTES + 300];

	profilers_note(session->profilers,
		       "%s failed right after a job with %s did, and was run "
		       "once more: %s",
		       job->name, session->failed->label, job->problem);
	cli_error("%s: once more, because the job before failed, too", job->name);
	renew_mps(session);
	empty(job->place.output);
	empty(job->place.regions);
	text_format(counts, sizeof(counts), "%s/counts", job->directory);
	if (access(counts, F_OK) == 0)
		empty(counts);
	return launch_once(session, job, body, context);
}

int session_job_launch(struct profilers_session *session, struct session_job *job,
		       bench_rank_fn body, void *context)
{
	int code;

	if (job->variables.is_full)
		return cli_error("%s: too many variables", job->name);
	code = launch_once(session, job, body, context);
	if (code == 1 && session->failed && session->failed != job->variant)
		code = launch_again(session, job, body, context);
	session->failed = code == 1 ? job->variant : NULL;
	if (code == 1)
		renew_mps(session);
	return code;
}

void session_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- measuring -------------------------------------------------------------------------------- */

struct measure {
	const struct profilers_request *request;
	const struct session_job *job;
	struct bench_plan plan;
	char results[WORK_PATH_BYTES + 300];
};

static int results_write(const char *path, const struct bench_run *run)
{
	struct cli_output output;

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_TROUBLE;
	if (bench_json_write(&output.sink, run) != OK) {
		cli_output_discard(&output);
		return cli_error("cannot write '%s'", path);
	}
	return cli_output_commit(&output, CLI_EXIT_DONE);
}

/* On every rank, in a process of its own. */
static int body(const struct bench_place *place, void *context)
{
	struct measure *measure = context;
	int code = CLI_EXIT_DONE;
	struct bench_team team;

	session_unblock_signals();
	if (chdir(measure->job->place.output) == -1) {
		bench_tell(place, "cannot go to the job's directory");
		return CLI_EXIT_TROUBLE;
	}
	if (bench_team_open(&team, place, &measure->request->how, &measure->plan) != 0)
		return CLI_EXIT_TROUBLE;
	if (bench_job_connect(team.job, NULL, NULL) != 0 ||
	    bench_job_measure_all(team.job, NULL, NULL) != 0)
		return bench_team_fail(&team);
	if (bench_team_finish(&team) != 0)
		return CLI_EXIT_TROUBLE;
	if (place->rank == 0)
		code = results_write(measure->results, &team.run);
	bench_team_release(&team);
	return code;
}

static int results_read(struct session_job *job, const char *path, struct bench_run *run)
{
	struct bench_read_problem problem;
	size_t length = 0;
	char *text = profilers_read_file(path, RESULTS_BYTES_MAX, &length);
	enum status status;

	if (text == NULL) {
		text_format(job->problem, sizeof(job->problem), "no results: %s", strerror(errno));
		return -1;
	}
	status = bench_read(run, text, length, &problem);
	free(text);
	if (status == OK)
		return 0;
	text_format(job->problem, sizeof(job->problem), "results are damaged in line %llu: %s",
		    (unsigned long long)problem.line, problem.text);
	return -1;
}

/* Sizes are rounded down to whole elements of all ranks: the one that was meant. */
static size_t size_meant(const struct bench_plan *plan, uint64_t bytes)
{
	size_t meant = 0;
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i < plan->size_count; i++) {
		uint64_t far =
			plan->sizes[i] > bytes ? plan->sizes[i] - bytes : bytes - plan->sizes[i];

		if (far < best) {
			best = far;
			meant = i;
		}
	}
	return meant;
}

static void note_cuts(struct profilers_session *session, const struct session_job *job,
		      const struct bench_run *run)
{
	const struct bench_plan *plan = &session->request->plan;

	for (size_t i = 0; i < run->cell_count; i++) {
		const struct bench_cell *cell = &run->cells[i];
		struct session_cut *cut = &session->cuts[job->kind][size_meant(plan, cell->bytes)];

		if (cell->calls >= plan->calls)
			continue;
		if (cut->least == 0 || cell->calls < cut->least)
			cut->least = cell->calls;
		if (cell->calls > cut->most)
			cut->most = cell->calls;
	}
}

static int hand_over(struct profilers_session *session, struct session_job *job,
		     const struct bench_run *run, const struct session_output *output)
{
	struct profilers_trial trial = {
		.plugin = job->variant->number,
		.run = job->run,
		.mode = (uint8_t)job->kind,
		.output = output->output,
		.bench = run,
		.recording = output->recording,
		.profiles = output->profiles,
		.profile_count = output->profile_count,
		.problem = job->problem[0] ? job->problem : NULL,
	};
	enum status status = profilers_trial(session->profilers, &trial);

	return status == OK ? 0 : cli_error("%s: %s", job->name, status_text(status));
}

int session_measure(struct profilers_session *session, struct session_job *job)
{
	struct session_output output = { .output = PROFILERS_FAILED };
	struct measure measure;
	struct bench_run run;
	int failed;

	measure.request = session->request;
	measure.job = job;
	measure.plan = session->request->plan;
	measure.plan.modes[0] = (uint8_t)job->kind;
	measure.plan.mode_count = 1;
	text_format(measure.results, sizeof(measure.results), "%s/results.json", job->directory);
	failed = session_job_launch(session, job, body, &measure);
	if (failed > 1)
		return failed;
	bench_run_init(&run);
	if (!failed && results_read(job, measure.results, &run) != 0) {
		failed = 1;
		cli_error("%s: %s", job->name, job->problem);
	}
	if (failed && job->variant->kind == PROFILERS_NONE && session->done == 0)
		return cli_error(
			"without a plugin the job fails, too: there is nothing to compare");
	if (failed) {
		failed = hand_over(session, job, NULL, &output);
	} else {
		note_cuts(session, job, &run);
		failed = session_output_read(&output, job);
		if (!failed)
			failed = hand_over(session, job, &run, &output);
		session_output_release(&output);
	}
	bench_run_release(&run);
	return failed;
}
