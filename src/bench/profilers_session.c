/* Runs the jobs of `bench profilers`: alternating jobs, their output, the training. */
#include "bench/profilers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_job.h"
#include "cli/cli.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "import/foreign.h"
#include "recording/recording.h"

/* One job: its variant, number and directories. */
struct session_job {
	const struct profilers_variant *variant;
	uint32_t run;
	unsigned int kind; /* enum bench_mode, or SESSION_TRAINING */
	char name[128];	   /* "run 2, graph, inspector", for display */
	char directory[WORK_PATH_BYTES + 200];
	struct profilers_place place;
	struct profilers_variables variables;
	int limit_s;
	char problem
		[PROFILERS_TEXT_BYTES]; /* why it failed, or what is wrong with its output; "": nothing */
};

/* The plugin's output, of a trial or a training. */
struct session_output {
	uint8_t output; /* enum profilers_output */
	struct recording *recording;
	struct ncclsee_profile *profiles;
	size_t profile_count;
};

enum { TAIL_BYTES = 4096, COPY_BYTES = 1 << 16 };

static FTS *walk_open(const char *path)
{
	char *const paths[] = { (char *)path, NULL };

	return path[0] == '\0' ? NULL : fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

/* Number of regular files in the tree, and their bytes. */
static void profilers_count_files(const char *path, size_t *files, uint64_t *bytes)
{
	FTS *walk = walk_open(path);
	FTSENT *at;

	*files = 0;
	*bytes = 0;
	while (walk && (at = fts_read(walk)) != NULL) {
		if (at->fts_info != FTS_F)
			continue;
		*files += 1;
		*bytes += (uint64_t)at->fts_statp->st_size;
	}
	if (walk)
		fts_close(walk);
}

static bool copy_bytes(int from, int to)
{
	char bytes[COPY_BYTES];
	ssize_t got;

	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)got) != got)
			return false;
	return got == 0;
}

static bool copy_file(const char *path, const char *target)
{
	int from = file_open(AT_FDCWD, path, false);
	int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	bool is_whole = from != -1 && to != -1 && copy_bytes(from, to);

	if (from != -1)
		close(from);
	if (to != -1 && close(to) == -1)
		is_whole = false;
	return is_whole;
}

/* Copies regular files below `from` by name into `to`. False: not all. */
static bool profilers_copy_files(const char *from, const char *to)
{
	FTS *walk = walk_open(from);
	bool is_whole = walk != NULL;
	char target[4096];
	FTSENT *at;

	while (walk && (at = fts_read(walk)) != NULL) {
		if (at->fts_info != FTS_F)
			continue;
		text_format(target, sizeof(target), "%s/%s", to, at->fts_name);
		is_whole &= copy_file(at->fts_path, target);
	}
	if (walk)
		fts_close(walk);
	return is_whole;
}

char *profilers_read_file(const char *path, size_t most, size_t *length)
{
	int fd = file_open(AT_FDCWD, path, true);
	char *text = fd != -1 ? file_read_whole(fd, most, length) : NULL;

	if (fd != -1)
		close(fd);
	return text;
}

/* Start of the last lines. */
static char *last_lines(char *text, size_t length, unsigned int wanted)
{
	unsigned int lines = 0;
	char *at = text + length;

	while (at > text && lines < wanted) {
		at--;
		lines += *at == '\n' && at + 1 < text + length;
	}
	return *at == '\n' ? at + 1 : at;
}

/* Reads the end of a file, made safe for a terminal; returns its length. */
static size_t read_tail(const char *path, char *text, size_t size)
{
	int fd = file_open(AT_FDCWD, path, false);
	size_t length = 0;
	struct stat st;
	uint64_t from;

	if (fd != -1 && fstat(fd, &st) == 0) {
		from = (uint64_t)st.st_size >= size ? (uint64_t)st.st_size - size + 1 : 0;
		if (file_pread_some(fd, text, size - 1, from, &length) != OK)
			length = 0;
	}
	if (fd != -1)
		close(fd);
	while (length > 0 && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	for (char *at = text; at < text + length; at++)
		if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
			*at = '?';
	return length;
}

/* The last nonempty line without control bytes; false: none. */
static bool profilers_last_line(const char *path, char *line, size_t size)
{
	char text[TAIL_BYTES];
	size_t length = read_tail(path, text, sizeof(text));

	if (length > 0)
		text_copy(line, size, last_lines(text, length, 1));
	return length > 0;
}

/* Prints the last lines of a log on stderr, indented by `indent`. */
static void profilers_tell_tail(const char *path, const char *indent)
{
	char text[TAIL_BYTES], *line;
	size_t length = read_tail(path, text, sizeof(text));

	for (line = last_lines(text, length, WORK_TAIL_LINES); *line != '\0';) {
		char *end = strchrnul(line, '\n');

		fprintf(stderr, "%s%.*s\n", indent, (int)(end - line), line);
		line = *end ? end + 1 : end;
	}
}

static bool is_empty(const char *path)
{
	DIR *list = opendir(path);
	struct dirent *entry;
	bool is_any = false;

	while (list && !is_any && (entry = readdir(list)) != NULL)
		is_any = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (list)
		closedir(list);
	return list && !is_any;
}

static int keep_open(struct profilers_work *work, const char *keep)
{
	char whole[4096];

	if (mkdir(keep, 0777) == -1 && errno != EEXIST)
		return cli_error("cannot create '%s': %s", keep, strerror(errno));
	if (!is_empty(keep))
		return cli_error("'%s' is not empty; --keep needs a new directory", keep);
	/* Jobs have their own working directories. */
	if (realpath(keep, whole) == NULL || !text_copy(work->disk, sizeof(work->disk), whole))
		return cli_error("cannot use '%s': %s", keep, strerror(errno));
	return 0;
}

static int make_temporary(char *path, size_t size, const char *parent)
{
	if (!text_format(path, size, "%s/ringside-profilers-XXXXXX", parent) ||
	    mkdtemp(path) == NULL)
		return cli_error("cannot create a directory in '%s': %s", parent, strerror(errno));
	return 0;
}

static void work_sweep(const void *context)
{
	const struct profilers_work *work = context;

	bench_remove_tree(work->memory);
	if (!work->is_kept)
		bench_remove_tree(work->disk);
}

int profilers_work_open(struct profilers_work *work, const char *keep)
{
	const char *parent = getenv("TMPDIR");
	int failed;

	memset(work, 0, sizeof(*work));
	work->is_kept = keep != NULL;
	parent = parent && parent[0] == '/' ? parent : "/tmp";
	failed = keep ? keep_open(work, keep)
		      : make_temporary(work->disk, sizeof(work->disk), parent);
	if (failed)
		return failed;
	failed = make_temporary(work->memory, sizeof(work->memory),
				access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : parent);
	if (failed && !keep)
		bench_remove_tree(work->disk);
	/* Without a keeper it is only removed at a normal exit. */
	if (!failed)
		(void)bench_cleaner_start(&work->cleaner, work_sweep, work);
	return failed;
}

void profilers_work_close(struct profilers_work *work)
{
	if (!bench_cleaner_end(&work->cleaner))
		work_sweep(work);
}

/*
 * Creates a directory below the one on disk or in memory and returns its path. 0, or CLI_EXIT_UNKNOWN after a
 * message.
 */
static int profilers_work_make(const char *parent, const char *name, char *path, size_t size)
{
	if (!text_format(path, size, "%s/%s", parent, name))
		return cli_error("the path '%s/%s' is too long", parent, name);
	if (mkdir(path, 0755) == -1 && errno != EEXIST)
		return cli_error("cannot create '%s': %s", path, strerror(errno));
	return 0;
}

/* Reads a plugin's output from its job's directories, in the format of its kind. */

/* Our own files are where the mode leaves them: the ring of a region, or the trace. */
static const char *output_where(const struct session_job *job)
{
	bool is_region = job->variant->kind == PROFILERS_RINGSIDE &&
			 strcmp(job->variant->setting, "flight") == 0;

	return is_region ? job->place.regions : job->place.output;
}

static void output_unreadable(struct session_output *output, struct session_job *job,
			      const char *path, const char *why)
{
	output->output = PROFILERS_UNREADABLE;
	text_format(job->problem, sizeof(job->problem), "%s: %s", path, why);
}

/* A path relative to the job's directory, which is removed before anybody reads the message. */
static const char *short_path(const struct session_job *job, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strncmp(path, job->place.output, strlen(job->place.output)) == 0 &&
	    path[strlen(job->place.output)] == '/')
		return path + strlen(job->place.output) + 1;
	return slash ? slash + 1 : path;
}

static int read_recording(struct session_output *output, struct session_job *job)
{
	const struct recording_trouble *trouble;
	struct recording *recording = cli_realloc(NULL, sizeof(*recording));
	enum status status;

	recording_init(recording);
	output->recording = recording;
	recording->directory = job->place.regions;
	status = recording_add(recording, output_where(job), 0);
	if (status == OK)
		status = recording_finish(recording);
	if (status != OK)
		return cli_error("%s: cannot read the recording: %s", job->name,
				 status_text(status));
	output->output = PROFILERS_READ;
	trouble = recording->trouble_count ? &recording->troubles[0] : NULL;
	if (trouble)
		text_format(job->problem, sizeof(job->problem), "%s: %s",
			    short_path(job, trouble->path), trouble->what);
	if (recording->count == 0)
		output->output = PROFILERS_UNREADABLE;
	return 0;
}

static bool is_profile(const FTSENT *at)
{
	const char *dot = strrchr(at->fts_name, '.');

	return at->fts_info == FTS_F && dot && strcmp(dot, ".csv") == 0;
}

static void read_profiles(struct session_output *output, struct session_job *job)
{
	char *const paths[] = { job->place.output, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	struct ncclsee_profile profile;
	FTSENT *at;

	output->output = PROFILERS_SILENT;
	while (walk && (at = fts_read(walk)) != NULL) {
		enum status status;

		if (!is_profile(at))
			continue;
		status = ncclsee_read(&profile, at->fts_path);
		if (status != OK) {
			output_unreadable(output, job, at->fts_name,
					  profile.problem ? profile.problem : status_text(status));
			break;
		}
		output->profiles = cli_realloc(output->profiles, (output->profile_count + 1) *
									 sizeof(*output->profiles));
		output->profiles[output->profile_count++] = profile;
		output->output = PROFILERS_READ;
	}
	if (walk)
		fts_close(walk);
}

/* 0, or CLI_EXIT_UNKNOWN (out of memory). Release in every case. */
static int session_output_read(struct session_output *output, struct session_job *job)
{
	uint64_t bytes;
	size_t files;

	*output = (struct session_output){ .output = PROFILERS_SILENT };
	profilers_count_files(output_where(job), &files, &bytes);
	switch (job->variant->kind) {
	case PROFILERS_RINGSIDE:
	case PROFILERS_INSPECTOR:
	case PROFILERS_COMMA:
		/* Files that were created but never written are not output. */
		return bytes > 0 ? read_recording(output, job) : 0;
	case PROFILERS_NCCLSEE:
		read_profiles(output, job);
		return 0;
	case PROFILERS_UNKNOWN:
		output_unreadable(output, job, job->variant->label,
				  "unknown output format: only its overhead is compared");
		return 0;
	default: /* without a plugin */
		output->output = PROFILERS_READ;
		return 0;
	}
}

static void session_output_release(struct session_output *output)
{
	if (output->recording)
		recording_release(output->recording);
	free(output->recording);
	free(output->profiles);
	*output = (struct session_output){ .output = PROFILERS_FAILED };
}

/* One job of a comparison: its own directory, the plugin's variables, starting the ranks and waiting for them. */

enum { RESULTS_BYTES_MAX = 1 << 30, LOGS_TOLD = 2, SIGNAL_CODE = 128 };

/* Readable file names; a plugin's label can contain any character. */
static void directory_name(const struct session_job *job, char *name, size_t size)
{
	text_format(name, size, "run%u-%s-%s", job->run + 1,
		    job->kind == SESSION_TRAINING ? "training" : bench_mode_name(job->kind),
		    job->variant->label);
	for (char *at = name; *at != '\0'; at++)
		if (*at <= ' ' || *at == '/' || *at == ':' || *at == 0x7f)
			*at = '-';
}

/* Sets up directories and variables. 0, or CLI_EXIT_UNKNOWN. */
static int session_job_open(struct profilers_session *session, struct session_job *job)
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
		return CLI_EXIT_UNKNOWN;
	profilers_variant_variables(job->variant, &job->place, &job->variables);
	return 0;
}

/* Removes its files, unless they are kept. */
static void session_job_close(struct profilers_session *session, struct session_job *job)
{
	if (!session->work.is_kept)
		bench_remove_tree(job->directory);
	else if (!profilers_copy_files(job->place.regions, job->place.output))
		cli_error("%s: not all regions could be copied to '%s'", job->name,
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

/* A rank that failed with its own error has the reason in its log, if anywhere. */
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
	text_format(job->problem, sizeof(job->problem), "the job failed without giving a reason");
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

/* A client that died can leave MPS broken for all later ones. */
static void renew_mps(struct profilers_session *session)
{
	if (!session->mps.is_ours)
		return;
	bench_mps_stop(&session->mps);
	bench_mps_start(&session->mps);
	bench_mps_environment(&session->mps);
}

static void empty_directory(const char *directory)
{
	bench_remove_tree(directory);
	/* Users of it will notice if it does not exist. */
	(void)mkdir(directory, 0755);
}

/* It failed right after a job of another plugin: that may be the other plugin's fault. */
static int launch_again(struct profilers_session *session, struct session_job *job,
			bench_rank_fn body, void *context)
{
	char counts[WORK_PATH_BYTES + 300];

	profilers_note(session->profilers,
		       "%s failed right after a job with %s failed, and was repeated: %s",
		       job->name, session->failed->label, job->problem);
	cli_error("repeating %s because the previous job failed, too", job->name);
	renew_mps(session);
	empty_directory(job->place.output);
	empty_directory(job->place.regions);
	text_format(counts, sizeof(counts), "%s/counts", job->directory);
	if (access(counts, F_OK) == 0)
		empty_directory(counts);
	return launch_once(session, job, body, context);
}

/*
 * Runs `body` on all ranks. 0: success; 1: failure, with the reason in job->problem; otherwise 128 + n: signal n
 * ended the command.
 */
static int session_job_launch(struct profilers_session *session, struct session_job *job,
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

/* Called first in every rank: the command blocks signals between jobs. */
static void session_unblock_signals(void)
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
		return CLI_EXIT_UNKNOWN;
	if (bench_json_write(&output.sink, run) != OK) {
		cli_output_discard(&output);
		return cli_error("cannot write '%s'", path);
	}
	return cli_output_commit(&output, CLI_EXIT_DONE);
}

/* On every rank, in its own process. */
static int body(const struct bench_place *place, void *context)
{
	struct measure *measure = context;
	int code = CLI_EXIT_DONE;
	struct bench_team team;

	session_unblock_signals();
	if (chdir(measure->job->place.output) == -1) {
		bench_tell(place, "cannot change to the job's directory");
		return CLI_EXIT_UNKNOWN;
	}
	if (bench_team_open(&team, place, &measure->request->how, &measure->plan) != 0)
		return CLI_EXIT_UNKNOWN;
	if (bench_job_connect(team.job, NULL, NULL) != 0 ||
	    bench_job_measure_all(team.job, NULL, NULL) != 0)
		return bench_team_fail(&team);
	if (bench_team_finish(&team) != 0)
		return CLI_EXIT_UNKNOWN;
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
	text_format(job->problem, sizeof(job->problem), "results are damaged at line %llu: %s",
		    (unsigned long long)problem.line, problem.text);
	return -1;
}

/* Sizes are rounded down to whole elements of all ranks: finds the requested one. */
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

static void job_note_cuts(struct profilers_session *session, const struct session_job *job,
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

/* Measures, reads and adds the results. 0, or the exit code. */
static int session_measure(struct profilers_session *session, struct session_job *job)
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
		return cli_error("the job fails without a plugin, too: nothing to compare with");
	if (failed) {
		failed = hand_over(session, job, NULL, &output);
	} else {
		job_note_cuts(session, job, &run);
		failed = session_output_read(&output, job);
		if (!failed)
			failed = hand_over(session, job, &run, &output);
		session_output_release(&output);
	}
	bench_run_release(&run);
	return failed;
}

/*
 * A training job: src/bench/densenet.py, one python3 per rank, started like every other job. libringside-count.so
 * counts its NCCL calls; what the plugin recorded is in its output.
 */

#define COUNT_LIBRARY "libringside-count.so"
enum { TORCH_SECONDS = 180, TORCH_BYTES = 4096, RESULT_BYTES = 1 << 20 };

/* ---- is everything there? --------------------------------------------------------------------- */

/* Whether training can run here. False: reported once. */
static bool session_train_is_possible(struct profilers_session *session)
{
	static const char *const words[] = {
		"python3", "-c",
		"import torch, torch.distributed as d; "
		"print('no NCCL' if not d.is_nccl_available() else "
		"'no GPU' if not torch.cuda.is_available() else 'fine')",
		NULL
	};
	struct cli_capture capture = { .bytes = NULL };
	enum status status = cli_capture(&capture, words, -1, TORCH_SECONDS, TORCH_BYTES);
	char why[PROFILERS_TEXT_BYTES] = "";

	if (status != OK)
		text_format(why, sizeof(why), "cannot run python3: %s", capture.why);
	else if (capture.exit_code != 0)
		text_format(why, sizeof(why), "python3 cannot load torch");
	else if (strncmp(capture.bytes, "fine", 4) != 0)
		text_format(why, sizeof(why), "this torch has %.*s",
			    (int)strcspn(capture.bytes, "\n"), capture.bytes);
	free(capture.bytes);
	if (why[0] == '\0')
		return true;
	profilers_not_run(session->profilers, "training: %s", why);
	cli_error("training skipped: %s", why);
	return false;
}

/* ---- running it -------------------------------------------------------------------------------- */

struct training {
	const struct profilers_request *request;
	const struct session_job *job;
	char script[WORK_PATH_BYTES + 300];
	char port[16];
};

/* One that was free a moment ago. */
static int free_port(char *text, size_t size)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed = fd == -1 || bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 ||
		     getsockname(fd, (struct sockaddr *)&address, &length) == -1;

	if (failed)
		cli_error("cannot find a free port: %s", strerror(errno));
	else
		text_format(text, size, "%u", ntohs(address.sin_port));
	if (fd != -1)
		close(fd);
	return failed ? CLI_EXIT_UNKNOWN : 0;
}

static int script_write(const char *path)
{
	struct cli_output output;
	size_t length;
	const char *script = densenet_script(&length);

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_UNKNOWN;
	sink_write(&output.sink, script, length);
	return cli_output_commit(&output, CLI_EXIT_DONE);
}

/* On every rank, in its own process: becomes python3. RANK etc. are set as torchrun does. */
static int train_rank(const struct bench_place *place, void *context)
{
	const struct training *training = context;
	const struct profilers_request *request = training->request;
	char epochs[16], steps[16], batch[16], image[16];
	const char *words[] = {
		"python3", training->script, "--out", "..",	"--epochs", epochs, "--steps",
		steps,	   "--batch",	     batch,   "--size", image,	    NULL
	};

	text_format(epochs, sizeof(epochs), "%u", request->train_epochs);
	text_format(steps, sizeof(steps), "%u", request->train_steps);
	text_format(batch, sizeof(batch), "%u", request->train_batch);
	text_format(image, sizeof(image), "%u", request->train_image);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", training->port, 1);
	session_unblock_signals();
	if (chdir(training->job->place.output) == 0)
		execvp(words[0], (char *const *)words);
	bench_tell(place, "cannot run python3");
	return CLI_EXIT_UNKNOWN;
}

/* LD_PRELOAD separates its paths by spaces and colons: a path with one becomes that of a link. */
static bool make_preloadable(const char *directory, char path[VARIANT_PATH_BYTES])
{
	char link[VARIANT_PATH_BYTES];

	if (strpbrk(path, " :") == NULL)
		return true;
	if (!text_format(link, sizeof(link), "%s/" COUNT_LIBRARY, directory) ||
	    strpbrk(link, " :") != NULL || (symlink(path, link) == -1 && errno != EEXIST))
		return false;
	text_copy(path, VARIANT_PATH_BYTES, link);
	return true;
}

/* Counts calls if our library is found; the job runs without it, too. */
static void add_counter(struct profilers_session *session, struct session_job *job, char *counts,
			size_t size)
{
	char plugin[VARIANT_PATH_BYTES], looked[VARIANT_PATH_BYTES], value[2 * VARIANT_PATH_BYTES];
	const char *before = getenv("LD_PRELOAD");
	char *slash;

	counts[0] = '\0';
	if (!cli_plugin_find(plugin, sizeof(plugin), looked, sizeof(looked)) ||
	    (slash = strrchr(plugin, '/')) == NULL)
		return;
	text_format(slash + 1, sizeof(plugin) - (size_t)(slash + 1 - plugin), "%s", COUNT_LIBRARY);
	if (access(plugin, R_OK) == -1) {
		profilers_note(session->profilers,
			       "%s is not in the plugin's directory: calls of the training were "
			       "not counted",
			       COUNT_LIBRARY);
		return;
	}
	if (!make_preloadable(job->directory, plugin)) {
		profilers_note(session->profilers,
			       "LD_PRELOAD cannot name %s: calls of the training were not counted",
			       plugin);
		return;
	}
	if (profilers_work_make(job->directory, "counts", counts, size) != 0)
		return;
	text_format(value, sizeof(value), "%s%s%s", plugin, before && before[0] ? ":" : "",
		    before ? before : "");
	profilers_variables_add(&job->variables, "LD_PRELOAD", value);
	profilers_variables_add(&job->variables, "RINGSIDE_COUNT_DIR", counts);
}

/* ---- what came of it --------------------------------------------------------------------------- */

/* "2.28.9" as 22809; 0: not a version. */
static int32_t version_number(const char *text)
{
	unsigned int major, minor, patch;

	if (sscanf(text, "%3u.%3u.%3u", &major, &minor, &patch) != 3 || minor > 99 || patch > 99)
		return 0;
	return (int32_t)(major * 10000 + minor * 100 + patch);
}

/* For a comparison of trainings only: where they ran. */
static void tell_place(struct profilers_session *session, const struct train_result *result)
{
	struct bench_run run;

	bench_run_init(&run);
	if (bench_run_set_ranks(&run, session->ranks) == OK) {
		run.nodes = 1;
		run.nccl_version = version_number(result->nccl);
		run.is_gpu_shared = session->ranks > session->gpus;
		run.is_mps = session->mps.is_on;
		run.started_ns = result->epochs[0].begin_ns;
		text_copy(run.ranks[0].host, sizeof(run.ranks[0].host), result->host);
		text_copy(run.ranks[0].gpu_name, sizeof(run.ranks[0].gpu_name), result->gpu);
		profilers_place(session->profilers, &run);
	}
	bench_run_release(&run);
}

/*
 * Ends of epochs are synchronized, so ranks nearly agree: an epoch starts with the first rank and takes as long as
 * the slowest.
 */
static int read_results(struct profilers_session *session, struct session_job *job,
			struct profilers_training *training)
{
	struct train_result result;
	char path[WORK_PATH_BYTES + 300], *text;
	enum status status;
	size_t length = 0;

	for (int32_t rank = 0; rank < training->ranks; rank++) {
		text_format(path, sizeof(path), "%s/train-%d.json", job->directory, rank);
		text = profilers_read_file(path, RESULT_BYTES, &length);
		status = text ? train_read(&result, text, length) : ERR_SYSTEM;
		free(text);
		if (status != OK || (rank > 0 && result.epoch_count != training->epochs)) {
			text_format(job->problem, sizeof(job->problem), "cannot read train-%d.json",
				    rank);
			return -1;
		}
		training->epochs = result.epoch_count;
		if (rank == 0)
			tell_place(session, &result);
		for (uint32_t i = 0; i < result.epoch_count; i++) {
			const struct train_epoch *epoch = &result.epochs[i];

			if (rank == 0 || epoch->begin_ns < training->epoch_begin_ns[i])
				training->epoch_begin_ns[i] = epoch->begin_ns;
			if (epoch->ns > training->epoch_ns[i])
				training->epoch_ns[i] = epoch->ns;
		}
	}
	return 0;
}

static void read_counts(struct profilers_session *session, const char *directory,
			struct profilers_training *training)
{
	struct count_sum sum;
	uint64_t calls = 0;

	if (directory[0] == '\0' || count_sum_directory(&sum, directory) != OK)
		return;
	for (unsigned int i = 0; i < COUNT_FUNCTIONS; i++) {
		unsigned int function = count_op_function(i);

		if (function != OP_FUNCTION_UNKNOWN) {
			training->issued[function] += sum.entries[i].calls;
			calls += sum.entries[i].calls;
		}
	}
	training->is_counted = calls > 0;
	if (calls == 0)
		profilers_note(session->profilers, "%s",
			       COUNT_LIBRARY " counted no calls of the training: this torch does "
					     "not call NCCL through the dynamic linker");
}

static int read_output(struct session_job *job, struct profilers_training *training)
{
	struct session_output output;
	int failed = session_output_read(&output, job);
	enum status status = OK;

	training->output = output.output;
	if (!failed && output.recording)
		status = profilers_training_take(training, output.recording);
	if (!failed && output.profile_count > 0)
		profilers_training_take_ncclsee(training, output.profiles, output.profile_count);
	session_output_release(&output);
	if (status != OK)
		return cli_error("%s: %s", job->name, status_text(status));
	return failed;
}

static int session_train(struct profilers_session *session, struct session_job *job)
{
	struct training context = { .request = session->request, .job = job };
	struct profilers_training training = {
		.plugin = job->variant->number,
		.run = job->run,
		.output = PROFILERS_FAILED,
		.ranks = session->ranks,
	};
	char counts[WORK_PATH_BYTES + 300];
	enum status status;
	int failed;

	text_format(context.script, sizeof(context.script), "%s/densenet.py", job->directory);
	if (script_write(context.script) != 0 || free_port(context.port, sizeof(context.port)) != 0)
		return CLI_EXIT_UNKNOWN;
	add_counter(session, job, counts, sizeof(counts));
	profilers_variables_add(&job->variables, "OMP_NUM_THREADS", "1");
	failed = session_job_launch(session, job, train_rank, &context);
	if (failed > 1)
		return failed;
	if (!failed && read_results(session, job, &training) != 0)
		failed = cli_error("%s: %s", job->name, job->problem);
	if (!failed) {
		read_counts(session, counts, &training);
		failed = read_output(job, &training);
		if (failed)
			return failed;
	}
	training.problem = job->problem[0] ? job->problem : NULL;
	status = profilers_training(session->profilers, &training);
	return status == OK ? 0 : cli_error("%s: %s", job->name, status_text(status));
}

/* Chooses the next job, if there is time for it. */

/* A job without a plugin has a long limit; others count as hung after ten times as long. */
enum { LIMIT_FIRST_S = 3600, LIMIT_LEAST_S = 60, LIMIT_TIMES = 10 };
/* Crashes are quick and counted in all runs; waiting for a third hang shows nothing new. */
enum { HANGS_MAX = 2 };

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

/* One line per job, useful in batch logs, too. */
static void tell_progress(const struct profilers_session *session, const struct session_job *job)
{
	uint64_t passed = passed_ns(session);
	char elapsed[UNITS_TEXT], left[UNITS_TEXT];

	units_duration(elapsed, passed);
	if (session->done == 0) {
		cli_note("job 1 of %u: %s", session->jobs, job->name);
		return;
	}
	units_duration(left, passed / session->done * (session->jobs - session->done));
	fprintf(stderr, "ringside: job %u of %u: %s (%s elapsed, about %s left)\n",
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

/* Reported once, when the first one is skipped. */
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
		cli_error("skipping %s with %s from run %u on: the job hung in %d runs",
			  kind_name(kind), label, run + 1, HANGS_MAX);
	}
	session->last_ns[kind][variant] = 0;
	session->jobs--;
	return true;
}

/*
 * Whether the jobs of all variants fit. An incomplete round is of no use, because they are compared with each
 * other.
 */
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

/* Reports the runs that were skipped. */
static void tell_left_out(struct profilers_session *session, unsigned int kind, uint32_t first)
{
	const struct profilers_request *request = session->request;
	uint32_t count = runs_of(session, kind) - first;
	char runs[64];

	if (count == 1)
		text_format(runs, sizeof(runs), "run %u", first + 1);
	else
		text_format(runs, sizeof(runs), "runs %u to %u", first + 1, runs_of(session, kind));
	profilers_not_run(session->profilers, "%s of %s: no time left (--seconds %g)", runs,
			  kind_name(kind), request->seconds);
	cli_error("%s of %s %s skipped: no time left (--seconds %g)", runs, kind_name(kind),
		  text_which(count, "is", "are"), request->seconds);
}

/* Ctrl-C between two jobs waits, so that what was started is ended properly. */
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

static void session_note_cuts(struct profilers_session *session)
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

/* Number of ranks of all jobs, and whether there are GPUs for them. */
static int find_ranks(struct profilers_session *session)
{
	char problem[512] = "";

	session->gpus = bench_launch_gpus(problem, sizeof(problem));
	if (session->gpus < 1)
		return cli_error("%s", problem[0] ? problem : "no GPU found");
	session->ranks = session->request->how.ranks;
	/* A single rank does not communicate. */
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
		/* Inherited by the ranks. */
		bench_mps_environment(&session->mps);
	}
	failed = run_all(session, kinds, count);
	bench_mps_stop(&session->mps);
	sigprocmask(SIG_SETMASK, &before, NULL);
	session_note_cuts(session);
	return failed;
}
