/*
 * Agents: each provides snapshots of its processes (docs/AGENT.md, /api/v1/snapshot), which are merged into one job.
 * An agent that does not answer is reported, not a failure.
 */
#include "cmds/doctor_case.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "common/file.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "doctor/prom.h"
#include "format/region_read.h"
#include "import/ras.h"

/* ---- parts: read into look->input.recording and look->log ------------------------------------ */

static void doctor_note_failure(struct doctor_case *look, const char *what, const char *why,
				size_t length);

static void doctor_source_problem(struct doctor_case *look, size_t source, const char *text,
				  size_t length);

/*
 * Finished operations per process, to find stragglers: 128 per communicator are needed that all ranks have, and the
 * snapshots of agents may be a second apart. About 36 bytes each; fewer for more than 64 agents, so that 512 agents
 * with eight processes each send about 80 MB in total. Of few agents all that they give: what became slower is found only
 * while the time before is still there.
 */
enum {
	OPERATIONS_OF_FEW = 20000,
	OPERATIONS_MOST = 4096,
	OPERATIONS_LEAST = 512,
	OPERATIONS_OF_ALL = 1 << 18
};
/* Of the time before: as much as all agents together can send in some seconds. */
enum { PAST_MOST = 16384, PAST_LEAST = 1024, PAST_OF_ALL = 1 << 20 };
enum { SNAPSHOT_BYTES_MOST = 256 << 20, PATH_MOST = 512 };

enum { JOB_NAME_SIZE = sizeof(((struct recording_process *)NULL)->job) };

struct agents {
	struct doctor_case *look;
	struct cli_progress progress;
	size_t answered;
};

/* Describes an HTTP status; NULL: success. */
static const char *status_problem(int status, char text[static 80])
{
	switch (status) {
	case 200:
		return NULL;
	case 401:
	case 403:
		text_format(text, 80, "password or token required (HTTP %d): use --auth FILE",
			    status);
		return text;
	case 404:
		return "no snapshots (HTTP 404): not an agent, or an older version";
	case 503:
		return "too busy (HTTP 503): try again";
	default:
		text_format(text, 80, "HTTP %d", status);
		return text;
	}
}

/*
 * An answer that cannot be read counts as no answer and is reported with its agent. Other problems are all reported,
 * like those of files.
 */
static void take_troubles(struct doctor_case *look, size_t source, size_t before, size_t files)
{
	struct recording *recording = &look->input.recording;
	const char *what;

	if (recording->trouble_count == before || recording->files_read > files)
		return;
	what = recording->troubles[before].what;
	doctor_source_problem(look, source, what, strlen(what));
	while (recording->trouble_count > before) {
		const struct recording_trouble *last =
			&recording->troubles[--recording->trouble_count];

		recording->cut_count -= last->kind == RECORDING_CUT;
		free(last->path);
	}
}

static void take_agent_answer(void *context, size_t index, int status, const char *bytes,
			      size_t length)
{
	struct agents *agents = context;
	struct doctor_case *look = agents->look;
	struct recording *recording = &look->input.recording;
	size_t before = recording->trouble_count, files = recording->files_read;
	const char *problem;
	char text[80];

	cli_progress_at(&agents->progress, ++agents->answered);
	if (status == 0) {
		doctor_source_problem(look, index, bytes, length);
		return;
	}
	problem = status_problem(status, text);
	if (problem) {
		doctor_source_problem(look, index, problem, strlen(problem));
		return;
	}
	if (recording_add_memory(recording, look->sources[index].name, bytes, length, 0) != OK)
		cli_no_memory();
	take_troubles(look, index, before, files);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void make_sources(struct doctor_case *look, const struct fetch_targets *targets)
{
	look->asked = "agents";
	look->sources = cli_realloc(NULL, (targets->count + 1) * sizeof(*look->sources));
	look->problems = cli_realloc(NULL, (targets->count + 1) * sizeof(*look->problems));
	look->source_count = targets->count;
	for (size_t i = 0; i < targets->count; i++) {
		look->sources[i] = (struct hang_source){ .name = targets->list[i].name };
		look->problems[i] = NULL;
	}
	if (targets->count == 1)
		text_format(look->from, sizeof(look->from), "the agent %s", targets->list[0].name);
	else
		text_format(look->from, sizeof(look->from), "%zu agents", targets->count);
}

static size_t operations_wanted(size_t agents)
{
	size_t share = OPERATIONS_OF_ALL / (agents > 0 ? agents : 1), wanted = OPERATIONS_MOST;

	if (share >= OPERATIONS_OF_FEW)
		return OPERATIONS_OF_FEW;
	/* A multiple of the agent's step size: it rounds other values up. */
	while (wanted > share && wanted > OPERATIONS_LEAST)
		wanted /= 2;
	return wanted;
}

static size_t past_wanted(size_t agents)
{
	size_t wanted = PAST_MOST;

	while (wanted > PAST_LEAST && wanted * agents > PAST_OF_ALL)
		wanted /= 4;
	return wanted;
}

/* Older agents ignore the job and send all, and have no past. */
static struct cli_fetch_request *make_agent_requests(const struct fetch_targets *targets,
						     const char *job)
{
	struct cli_fetch_request *requests = cli_realloc(NULL, targets->count * sizeof(*requests));
	size_t operations = operations_wanted(targets->count);
	size_t past = past_wanted(targets->count);

	for (size_t i = 0; i < targets->count; i++) {
		const struct fetch_target *target = &targets->list[i];
		size_t size = strlen(target->url) + PATH_MOST;
		char *url = cli_realloc(NULL, size);

		text_format(url, size, "%s/api/v1/snapshot?operations=%zu&past=%zu%s", target->url,
			    operations, past, job ? "&job=" : "");
		if (job)
			fetch_url_append(url, size, job);
		requests[i] = (struct cli_fetch_request){ url, target->socket };
	}
	return requests;
}

/* Agents without authentication do not send environment variables. */
static void note_hidden(struct doctor_case *look)
{
	const struct recording *recording = &look->input.recording;
	struct verdict *verdict;
	size_t hidden = 0;

	for (size_t i = 0; i < recording->count; i++)
		hidden +=
			info_get_number(recording->processes[i]->info,
					recording->processes[i]->info_bytes, "env_hidden", 0) == 1;
	if (hidden == 0)
		return;
	verdict = verdicts_add(&look->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	text_copy(verdict->rule, sizeof(verdict->rule), "environment");
	verdict_title(verdict, "environment variables of %zu processes not available", hidden);
	verdict_evidence(verdict, "agents without a password do not send them");
	verdict_missing(verdict, "NCCL settings that are wrong or differ between ranks");
	verdict_advice(verdict, "let agents ask for a password (--web-config), and give it with "
				"--auth FILE");
}

/* Return values are those of doctor_case_make(). `job` NULL: all jobs. */
static int fetch_snapshots(struct doctor_case *look, const char *job)
{
	const struct doctor_options *options = look->options;
	const struct fetch_targets *targets = &options->targets;
	struct cli_fetch_request *requests = make_agent_requests(targets, job);
	struct agents agents = { .look = look };
	struct cli_fetch how = {
		.parallel = options->parallel,
		.timeout_ns = options->timeout_ns,
		.limit_bytes = SNAPSHOT_BYTES_MOST,
		.auth = options->auth,
		.ca_file = options->ca_file,
		.is_insecure = options->is_insecure,
		.stop_fd = look->stop_fd,
	};
	int code;

	cli_progress_start(&agents.progress, "doctor", "agents", targets->count);
	code = cli_fetch(&how, requests, targets->count, take_agent_answer, &agents);
	cli_progress_end(&agents.progress);
	for (size_t i = 0; i < targets->count; i++)
		free((char *)requests[i].url);
	free(requests);
	return code;
}

static int doctor_read_agents(struct doctor_case *look)
{
	const char *job = look->options->chosen.job;
	enum status status;
	int code;

	make_sources(look, &look->options->targets);
	/* No name is longer: then there is no such job. */
	code = fetch_snapshots(look, job && strlen(job) < JOB_NAME_SIZE ? job : NULL);
	/* Nothing of this job: the names of the others are needed to say so. */
	if (code == 0 && job && look->input.recording.count == 0)
		code = fetch_snapshots(look, NULL);
	if (code != 0)
		return code;
	status = recording_finish(&look->input.recording);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	note_hidden(look);
	return status == OK
		       ? 0
		       : cli_error("cannot merge the agents' snapshots: %s", status_text(status));
}

/* Prometheus: a fixed list of queries (doctor/prom.h), sent through ringside-fetch. */

enum { QUERIES_MOST = 256, PARALLEL_MOST = 4, FAILURES_TOLD = 8 };

struct queries {
	struct doctor_case *look;
	char *urls[QUERIES_MOST];
	struct cli_fetch_request requests[QUERIES_MOST];
	size_t count;
	bool is_needed_missing;
	size_t failures;
};

static void query_fail(struct queries *queries, size_t index, const char *why, size_t length)
{
	const char *name = prom_name(queries->look->prom, index);
	bool is_needed = index < PROM_NEEDED;

	/* The first required query reports why there is no answer; the others would repeat it. */
	if (is_needed && !queries->is_needed_missing)
		cli_error("%s: %s: %.*s", queries->look->options->prometheus, name, (int)length,
			  why);
	queries->is_needed_missing |= is_needed;
	if (!is_needed && queries->failures++ < FAILURES_TOLD)
		doctor_note_failure(queries->look, name, why, length);
}

static void take_query_answer(void *context, size_t index, int status, const char *bytes,
			      size_t length)
{
	struct queries *queries = context;
	char why[PROM_WHY_SIZE] = "";

	if (status == 0) {
		query_fail(queries, index, bytes, length);
		return;
	}
	if (status == 401 || status == 403) {
		text_format(why, sizeof(why),
			    "password or token required (HTTP %d): use --auth FILE", status);
		query_fail(queries, index, why, strlen(why));
		return;
	}
	if (prom_take(queries->look->prom, index, bytes, length, why, sizeof(why)) != OK)
		query_fail(queries, index, why, strlen(why));
}

static void make_query_requests(struct queries *queries)
{
	const char *base = queries->look->options->prometheus, *path;
	size_t length = strlen(base);

	while (length > 0 && base[length - 1] == '/')
		length--;
	while (queries->count < QUERIES_MOST &&
	       (path = prom_path(queries->look->prom, queries->count)) != NULL) {
		size_t size = length + strlen(path) + 1;
		char *url = cli_realloc(NULL, size);

		text_format(url, size, "%.*s%s", (int)length, base, path);
		queries->urls[queries->count] = url;
		queries->requests[queries->count++] = (struct cli_fetch_request){ .url = url };
	}
}

static void copy_sources(struct doctor_case *look)
{
	const struct hang_source *sources = prom_sources(look->prom, &look->source_count);

	look->asked = "agents that Prometheus scrapes";
	look->sources = cli_realloc(NULL, (look->source_count + 1) * sizeof(*look->sources));
	if (look->source_count > 0)
		memcpy(look->sources, sources, look->source_count * sizeof(*look->sources));
}

static int ask_prometheus(struct doctor_case *look, struct queries *queries)
{
	const struct doctor_options *options = look->options;
	struct cli_fetch how = {
		.parallel = options->parallel < PARALLEL_MOST ? options->parallel : PARALLEL_MOST,
		/* A query covers all ranks and may take longer than an agent. */
		.timeout_ns = options->timeout_ns * 6,
		.limit_bytes = PROM_ANSWER_MAX,
		.auth = options->auth,
		.ca_file = options->ca_file,
		.is_insecure = options->is_insecure,
		.stop_fd = look->stop_fd,
	};
	int code;

	make_query_requests(queries);
	code = cli_fetch(&how, queries->requests, queries->count, take_query_answer, queries);
	for (size_t i = 0; i < queries->count; i++)
		free(queries->urls[i]);
	return code;
}

static int doctor_read_prometheus(struct doctor_case *look)
{
	const struct prom_options options = {
		.job = look->options->chosen.job,
		.hang_ns = look->options->hang_ns,
		.window_s = (unsigned int)(look->options->window_ns / 1000000000),
		.past_s = (unsigned int)(look->options->past_ns / 1000000000),
	};
	struct queries *queries = cli_realloc(NULL, sizeof(*queries));
	bool is_answered;
	int code;

	*queries = (struct queries){ .look = look };
	text_format(look->from, sizeof(look->from), "Prometheus at %s", look->options->prometheus);
	look->prom = prom_new(&options);
	if (look->prom == NULL)
		cli_no_memory();
	code = ask_prometheus(look, queries);
	is_answered = !queries->is_needed_missing;
	free(queries);
	if (code != 0)
		return code;
	if (!is_answered)
		return CLI_EXIT_UNKNOWN;
	if (prom_finish(look->prom, &look->input.recording) != OK)
		cli_no_memory();
	copy_sources(look);
	return 0;
}

/* NCCL's logs: files, and directories with all files below them. */

enum { DEPTH_MOST = 8, FILES_MOST = 65536, PATH_BYTES = 4096 };

struct reading {
	struct doctor_case *look;
	size_t files; /* in all directories */
	bool is_over; /* there were more */
	bool is_deep; /* there were directories below DEPTH_MOST */
};

static int read_file(struct reading *reading, const char *path)
{
	/* O_NONBLOCK, so that a pipe without a writer does not block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum status status;

	/* Block again for pipes that have a writer. */
	if (fd == -1 || fcntl(fd, F_SETFL, 0) == -1) {
		cli_error("%s: %s", path, strerror(errno));
		if (fd != -1)
			close(fd);
		return CLI_EXIT_UNKNOWN;
	}
	reading->files++;
	status = nccl_log_add_fd(&reading->look->log, path, fd);
	if (status == ERR_SYSTEM)
		cli_error("%s: %s", path, strerror(errno));
	close(fd);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return status == OK ? 0 : CLI_EXIT_UNKNOWN;
}

static int by_name(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Sorted by name, so that the output is reproducible. */
static char **names_in(struct reading *reading, const char *path, size_t *count)
{
	DIR *directory = file_list(path);
	struct dirent *entry;
	char **names = NULL;

	*count = 0;
	if (directory == NULL) {
		cli_error("%s: %s", path, strerror(errno));
		return NULL;
	}
	while (!reading->is_over && (entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		reading->is_over = *count == FILES_MOST;
		if (reading->is_over)
			break;
		names = cli_realloc(names, (*count + 1) * sizeof(*names));
		names[*count] = strdup(entry->d_name);
		if (names[(*count)++] == NULL)
			cli_no_memory();
	}
	closedir(directory);
	if (*count > 1)
		qsort(names, *count, sizeof(*names), by_name);
	return names;
}

/*
 * Symbolic links are followed only on the command line. Inside a directory they lead to files that are read anyway,
 * or form loops.
 */
static int read_path(struct reading *reading, const char *path, unsigned int depth)
{
	char below[PATH_BYTES];
	char **names;
	struct stat st;
	size_t count;
	int code = 0;

	if (depth == 0 ? !file_examine(-1, path, &st) : lstat(path, &st) == -1)
		return cli_error("%s: %s", path, file_error_text(errno));
	if (depth > 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	reading->is_over |= reading->files == FILES_MOST;
	reading->is_deep |= S_ISDIR(st.st_mode) && depth == DEPTH_MOST;
	if (reading->is_over || (S_ISDIR(st.st_mode) && depth == DEPTH_MOST))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return read_file(reading, path);
	names = names_in(reading, path, &count);
	for (size_t i = 0; i < count; i++) {
		if (text_format(below, sizeof(below), "%s/%s", path, names[i]))
			code |= read_path(reading, below, depth + 1);
		free(names[i]);
	}
	free(names);
	return code;
}

/* Reports that some of the logs were not read. */
static void tell_rest(struct reading *reading)
{
	char why[120];

	if (reading->is_over)
		text_format(why, sizeof(why), "more than %d files: pass only those that matter",
			    FILES_MOST);
	else
		text_format(why, sizeof(why),
			    "directories nested more than %d levels: pass the lower ones",
			    DEPTH_MOST);
	doctor_note_failure(reading->look, "the rest of the logs", why, strlen(why));
}

/* Without this check, the log of another program would look healthy. A watched log may still be empty. */
static int check_lines(const struct doctor_case *look)
{
	if (look->log.nccl_lines > 0 || look->log.report_count > 0 || look->options->is_watch)
		return 0;
	return cli_error("%s%s: no lines of NCCL found; run the job with NCCL_DEBUG=INFO",
			 look->options->logs[0],
			 look->options->log_count > 1 ? " and the other logs" : "");
}

static int doctor_read_logs(struct doctor_case *look)
{
	struct reading reading = { .look = look };
	int code = 0;

	nccl_log_init(&look->log);
	look->has_log = true;
	/* A missing file is an error, like a wrong option. */
	for (size_t i = 0; i < look->options->log_count; i++)
		code |= read_path(&reading, look->options->logs[i], 0);
	if (reading.is_over || reading.is_deep)
		tell_rest(&reading);
	return code == 0 ? check_lines(look) : code;
}

static void must_succeed(enum status status)
{
	if (status == ERR_NO_SPACE)
		cli_no_memory();
}

/* ---- slowness -------------------------------------------------------------------------------- */

static enum status make_report(struct doctor_case *look, struct timeline_report *report)
{
	struct timeline_options wanted = TIMELINE_OPTIONS_INIT;
	struct filter filter = { .comm_count = 0 };
	struct cli_progress progress;
	enum status status;

	cli_progress_start(&progress, "doctor", "operations",
			   cli_input_operations(&look->asked_for));
	wanted.custom_by[wanted.custom_count++] = BASELINE_BY;
	wanted.progress = cli_progress_fraction;
	wanted.progress_context = &progress;
	/* Ranks are compared with each other, so only the time limits of the filter apply. */
	filter.since = look->options->chosen.filter.since;
	filter.until = look->options->chosen.filter.until;
	status = timeline_report_make(report, &look->asked_for, &filter, &wanted);
	cli_progress_end(&progress);
	return status;
}

/* The time that the calls of all ranks cover, and the time since the first of these. */
static void take_compared(struct doctor_case *look, const struct timeline_report *report)
{
	const struct timeline_rank *least = NULL;

	for (size_t i = 0; i < report->job.rank_count; i++)
		if (report->ranks[i].span_ns > 0 &&
		    (least == NULL || report->ranks[i].span_ns < least->span_ns))
			least = &report->ranks[i];
	if (least == NULL)
		return;
	look->examined_ns = look->compared_ns = least->span_ns;
	if (report->recording->shown != NULL && report->has_wall &&
	    least->last_ns > least->first_ns)
		look->compared_ns = recording_past_wall(report->recording, least->last_ns) -
				    recording_past_wall(report->recording, least->first_ns);
}

static void judge_slowness(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	const struct slow_options slow = {
		.baseline = look->yardstick->has_baseline ? &look->yardstick->baseline : NULL,
		.expected = look->yardstick->has_expected ? &look->yardstick->expected : NULL,
		.peak_nvlink = options->peak_nvlink,
		.peak_network = options->peak_network,
		.gpu_hour_price = options->gpu_hour_price,
	};
	struct timeline_report report;
	enum status status;
	const char *why;

	must_succeed(recording_show_past(&look->asked_for));
	status = make_report(look, &report);
	must_succeed(status);
	if (status != OK) {
		recording_hide_past(&look->asked_for);
		why = status_reason(status);
		doctor_note_failure(look, "recorded operations", why, strlen(why));
		return;
	}
	must_succeed(slow_find(&look->verdicts, &report, &slow));
	look->has_speed = true;
	take_compared(look, &report);
	look->has_iterations = slow_sees_iterations(&report);
	timeline_report_release(&report);
	recording_hide_past(&look->asked_for);
}

static void judge_sums(struct doctor_case *look)
{
	const struct slow_sums_options slow = { .gpu_hour_price = look->options->gpu_hour_price };
	const char *warning = prom_warning(look->prom);
	size_t odd = prom_odd_series(look->prom);

	must_succeed(prom_slow(look->prom, &look->verdicts, &slow));
	if (warning[0] != '\0')
		doctor_note_failure(look, "Prometheus", warning, strlen(warning));
	if (odd > 0) {
		struct verdict *verdict =
			verdicts_add(&look->verdicts, VERDICT_BLIND, VERDICT_NOTE);

		text_copy(verdict->rule, sizeof(verdict->rule), "Prometheus");
		verdict_title(verdict, "%zu series of Prometheus cannot be used", odd);
		verdict_evidence(verdict, "labels of the agents are missing or cannot be read; "
					  "rules of the scrape may drop them");
		verdict_missing(verdict, "ranks that these series are about");
	}
}

/* ---- hangs ----------------------------------------------------------------------------------- */

static void put_price(struct doctor_case *look)
{
	for (size_t i = 0; i < look->verdicts.count; i++) {
		struct verdict *verdict = &look->verdicts.list[i];

		if (verdict->gpu_hours == 0)
			verdict->gpu_hours = verdict_hours_hung(verdict);
		if (verdict->money == 0)
			verdict->money = verdict->gpu_hours * look->options->gpu_hour_price;
	}
}

static bool is_in_stuck_job(const struct recording_process *process, void *context)
{
	const struct verdicts *verdicts = context;

	for (size_t i = 0; i < verdicts->count; i++)
		if (verdict_is_hang(verdicts->list[i].class) &&
		    strcmp(verdicts->list[i].job, process->job) == 0)
			return true;
	return false;
}

/* Where the ranks of hung jobs are in their program, if they run on this host. */
static void take_stacks(struct doctor_case *look, size_t first)
{
	const struct stacks_options options = { .may_stop = look->options->has_native,
						.any_user = look->options->has_any_user };
	bool is_hung = false;

	for (size_t i = first; i < look->verdicts.count; i++)
		is_hung |= verdict_is_hang(look->verdicts.list[i].class) &&
			   look->verdicts.list[i].severity == VERDICT_ERROR;
	if (!is_hung || look->options->has_no_stacks || stacks_are_off())
		return;
	if (stacks_of_recording(&look->asked_for, is_in_stuck_job, &look->verdicts, &options) > 0)
		hang_say_stacks(&look->verdicts, first, &look->job, NULL);
}

static void judge_job(struct doctor_case *look)
{
	const struct hang_options hang = {
		.hang_ns = look->options->hang_ns,
		.has_job_limits = !look->options->is_hang_fixed,
		.has_unjudged = true,
		.is_one_moment = look->options->has_agents || look->notes.agent_count > 0,
		.sources = look->sources,
		.source_count = look->source_count,
	};
	size_t first = look->verdicts.count;

	must_succeed(job_make(&look->job, &look->asked_for));
	look->has_job = true;
	must_succeed(scene_make(&look->scene, &look->job, NULL, look->options->hang_ns));
	must_succeed(hang_find(&look->verdicts, &look->job, &hang));
	take_stacks(look, first);
	if (look->prom)
		judge_sums(look);
	else
		judge_slowness(look);
}

/* ---- NCCL's RAS ------------------------------------------------------------------------------ */

/* OK: it was about a job, this one or another. */
static enum status read_ras(struct doctor_case *look, const char *from, const char *text,
			    size_t length)
{
	struct ras_status ras;
	enum status status;

	ras_status_init(&ras);
	status = ras_status_read(&ras, text, length);
	if (status == OK)
		status = ras_find(&look->verdicts, &look->asked_for, &ras, from);
	ras_status_release(&ras);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return status;
}

/* A watch asks only when something hangs. */
static bool is_ras_needed(const struct doctor_case *look)
{
	bool has_hang = false;

	for (size_t i = 0; i < look->verdicts.count; i++)
		has_hang |= verdict_is_hang(look->verdicts.list[i].class);
	return look->options->ras != NULL && (has_hang || !look->options->is_watch);
}

static void ask_ras(struct doctor_case *look)
{
	bool is_local = strcmp(look->options->ras, "local") == 0;
	struct ras_answer answer;
	enum status status;
	char from[400];

	status = cli_ras_ask(&answer, is_local ? NULL : look->options->ras, RAS_JSON);
	if (status == OK) {
		text_format(from, sizeof(from), "RAS at %s", answer.address);
		status = read_ras(look, from, answer.text, answer.length);
		if (status != OK)
			text_copy(answer.why, sizeof(answer.why), "its answer cannot be read");
	}
	if (status != OK)
		doctor_note_failure(look, "NCCL's RAS", answer.why, strlen(answer.why));
	free(answer.text);
}

/* Answers in bundles. JSON has more than text: the text counts if there is none, or it cannot be read. */
static void judge_ras(struct doctor_case *look)
{
	static const char *const kinds[] = { "/ras/status.json", "/ras/status.txt" };
	const struct recording *recording = &look->input.recording;
	size_t read = 0;

	for (size_t kind = 0; kind < ARRAY_LENGTH(kinds) && read == 0; kind++)
		for (size_t i = 0; i < recording->note_count; i++)
			if (text_ends_with(recording->notes[i].path, kinds[kind]))
				read += read_ras(look, recording->notes[i].path,
						 recording->notes[i].text,
						 recording->notes[i].length) == OK;
	if (is_ras_needed(look))
		ask_ras(look);
}

/* Slowness that began well before a hang is a problem of its own. */
#define BEFORE_HANG_NS (UINT64_C(5) * SECOND_NS)

static bool is_before(const struct verdict *slow, const struct verdict *hang)
{
	return slow->since_wall_ns > 0 && hang->since_wall_ns > 0 &&
	       slow->since_wall_ns + BEFORE_HANG_NS < hang->since_wall_ns;
}

/* A hang looks slow, too: report it only as a hang. */
static void temper_slowness(struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		struct verdict *slow = &verdicts->list[i];

		for (size_t j = 0; j < verdicts->count && verdict_is_slow(slow->class); j++) {
			const struct verdict *hang = &verdicts->list[j];

			if (verdict_is_hang(hang->class) && hang->severity == VERDICT_ERROR &&
			    hang->rank >= 0 && !is_before(slow, hang) &&
			    (hang->rank == slow->rank || hang->rank == slow->peer) &&
			    strcmp(hang->job, slow->job) == 0)
				slow->severity = VERDICT_NOTE;
		}
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool is_trouble(const struct recording_trouble *trouble, void *context)
{
	const struct doctor_case *look = context;

	/* Traces without an end are reported as such; a snapshot has no end. */
	if (trouble->kind == RECORDING_CUT &&
	    (trouble->process == NULL || !trouble->process->is_snapshot))
		return false;
	return cli_input_is_trouble(&look->input, trouble);
}

/* ---- facts of hosts --------------------------------------------------------------------------- */

/* Counters need two readings. */
#define HOST_READINGS_APART_NS SECOND_NS

static bool has_verdict_here(const struct doctor_case *look)
{
	for (size_t i = 0; i < look->verdicts.count; i++) {
		const struct verdict *verdict = &look->verdicts.list[i];

		if ((verdict_is_hang(verdict->class) || verdict_is_slow(verdict->class)) &&
		    strcmp(verdict->host, look->yardstick->host->facts.host) == 0)
			return true;
	}
	return false;
}

static void read_host(struct doctor_case *look)
{
	struct cli_host_watch *host = look->yardstick->host;

	cli_host_watch_read(host, &look->asked_for, true, clock_system_ns(CLOCK_MONOTONIC));
	cli_host_wait(&host->reading, &host->facts);
}

/* Facts only support verdicts: without one about this host, one reading is enough. */
static void support_verdicts(struct doctor_case *look)
{
	struct cli_host_watch *host = look->yardstick->host;
	uint64_t first_ns = clock_system_ns(CLOCK_MONOTONIC), now_ns;

	if (host != NULL) {
		bool is_first = host->facts.begin_ns == 0;

		read_host(look);
		now_ns = clock_system_ns(CLOCK_MONOTONIC);
		if (is_first && has_verdict_here(look)) {
			if (now_ns < first_ns + HOST_READINGS_APART_NS)
				poll(NULL, 0,
				     (int)((first_ns + HOST_READINGS_APART_NS - now_ns) / MS_NS) +
					     1);
			read_host(look);
		}
	}
	host_support(&look->verdicts, &look->job, host ? &host->facts : NULL, true);
}

/* Adds all verdicts and sorts them. */
static void doctor_judge(struct doctor_case *look)
{
	const struct blind_options blind = {
		.sources = look->sources,
		.source_count = look->source_count,
		.asked = look->asked,
		.is_trouble = is_trouble,
		.context = look,
		.notes = &look->notes,
		.is_whole = look->source_count > 0 || look->prom != NULL,
		.wall_ns = clock_system_ns(CLOCK_REALTIME),
		.hang_ns = look->options->hang_ns,
	};

	if (look->asked_for.count > 0) {
		judge_job(look);
		judge_ras(look);
		support_verdicts(look);
	}
	must_succeed(
		setup_find(&look->verdicts, look->has_log ? &look->log : NULL, &look->asked_for));
	blind_find(&look->verdicts, &look->asked_for, look->has_job ? &look->scene : NULL, &blind);
	put_price(look);
	temper_slowness(&look->verdicts);
	verdicts_sort(&look->verdicts);
}

/* An input could not be used; the diagnosis continues without it. */
static void doctor_note_failure(struct doctor_case *look, const char *what, const char *why,
				size_t length)
{
	struct verdict *verdict = verdicts_add(&look->verdicts, VERDICT_BLIND, VERDICT_NOTE);

	text_copy(verdict->rule, sizeof(verdict->rule), what);
	verdict_title(verdict, "%s cannot be used", what);
	verdict_evidence(verdict, "%.*s", (int)(length < 900 ? length : 900), why);
	verdict_missing(verdict, "problems that it would have shown");
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_files(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	unsigned int flags = options->path_count > 0 ? RECORDING_WITH_TRACES : 0;

	for (size_t i = 0; i < options->path_count; i++)
		cli_input_path(&look->input, options->paths[i]);
	if (options->path_count == 0)
		text_copy(look->from, sizeof(look->from), "the regions of this machine");
	else if (options->path_count == 1)
		text_copy(look->from, sizeof(look->from), options->paths[0]);
	else
		text_format(look->from, sizeof(look->from), "%s and %zu more", options->paths[0],
			    options->path_count - 1);
	return cli_input_read(&look->input, flags);
}

static bool has_ranks(const struct doctor_options *options)
{
	return options->path_count > 0 || options->has_agents || options->prometheus != NULL ||
	       options->log_count == 0;
}

static int read_all(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	int code = 0;

	if (options->log_count > 0)
		code = doctor_read_logs(look);
	if (code != 0 || !has_ranks(options))
		return code;
	if (options->has_agents)
		return doctor_read_agents(look);
	return options->prometheus ? doctor_read_prometheus(look) : read_files(look);
}

/* If nothing is recorded and nothing else is wrong: one line and no verdict. */
static int check_emptiness(const struct doctor_case *look)
{
	const struct recording *recording = &look->input.recording;
	const char *job = look->options->chosen.job;

	if (recording->count > 0 || !has_ranks(look->options) || look->source_count > 0)
		return 0;
	/* Recordings may still appear. */
	if (look->options->is_watch)
		return 0;
	if (look->has_log && look->options->path_count == 0)
		return 0;
	if (look->prom != NULL)
		return cli_error("%s: no series of %s%s; check that agents run, and that this "
				 "Prometheus scrapes them",
				 look->options->prometheus, job ? "job " : "Ringside's agents",
				 job ? job : "");
	return cli_input_complain(&look->input, false) | CLI_EXIT_UNKNOWN;
}

/* A bundle made through agents lists those that did not answer. */
static void read_notes(struct doctor_case *look)
{
	size_t count;

	if (agent_notes_read(&look->notes, &look->input.recording) != OK)
		cli_no_memory();
	count = look->notes.agent_count;
	if (look->source_count > 0 || count == 0)
		return;
	look->asked = "agents";
	look->sources = cli_realloc(look->sources, count * sizeof(*look->sources));
	look->problems = cli_realloc(look->problems, count * sizeof(*look->problems));
	look->source_count = count;
	for (size_t i = 0; i < count; i++) {
		const struct agent_asked *agent = &look->notes.agents[i];
		bool is_silent = agent->problem[0] != '\0';

		look->sources[i] = (struct hang_source){ agent->name, is_silent,
							 is_silent ? agent->problem : NULL };
		look->problems[i] = NULL;
	}
}

/* Reads operations in flight at the end of trace files, for processes without a region. */
static int find_flights(struct doctor_case *look)
{
	enum status status = recording_find_flights(&look->input.recording);

	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status == OK)
		return 0;
	return cli_error("cannot read operations in flight: %s", status_reason(status));
}

/* ---- the job asked for ----------------------------------------------------------------------- */

/* Processes of one job are adjacent, see recording_finish(). */
static size_t end_of_job(const struct recording *recording, size_t first)
{
	size_t end = first;

	while (end < recording->count &&
	       strcmp(recording->processes[end]->job, recording->processes[first]->job) == 0)
		end++;
	return end;
}

static bool goes_on(const struct recording *recording, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (recording->processes[i]->life == RECORDING_ALIVE ||
		    recording->processes[i]->life == RECORDING_UNKNOWN)
			return true;
	return false;
}

/*
 * Leaves out ended jobs, whose regions may still exist, if any job is running. If none is, the ended ones are
 * diagnosed.
 */
static void leave_out_dead_jobs(struct doctor_case *look)
{
	struct recording *chosen = &look->asked_for;
	size_t kept = 0, used = strlen(look->from), before = chosen->count;

	if (look->options->path_count > 0 || !goes_on(chosen, 0, chosen->count))
		return;
	for (size_t i = 0, end; i < chosen->count; i = end) {
		bool is_kept;

		end = end_of_job(chosen, i);
		is_kept = goes_on(chosen, i, end);
		/* The write index never exceeds the read index. */
		for (size_t j = i; j < end && is_kept; j++)
			chosen->processes[kept++] = chosen->processes[j];
	}
	chosen->count = kept;
	if (kept < before)
		text_format(look->from + used, sizeof(look->from) - used,
			    ", without %zu processes of ended jobs", before - kept);
}

/* Of a job that was started several times, the last run counts. */
static int choose_run(struct doctor_case *look)
{
	struct recording *chosen = &look->asked_for;
	uint32_t run = look->options->chosen.run;
	char text[160] = "";
	size_t kept = 0;

	if (run == 0)
		cli_run_say_earlier(text, sizeof(text), chosen);
	for (size_t i = 0; i < chosen->count; i++)
		if (cli_run_has(run, chosen->processes[i]))
			chosen->processes[kept++] = chosen->processes[i];
	if (kept == 0 && chosen->count > 0 && !look->options->is_watch)
		return cli_error("no run %u: 'ringside ls' lists the runs of each job", run);
	chosen->count = kept;
	if (text[0] != '\0')
		text_append(look->from, sizeof(look->from), "%s%s", look->from[0] ? ", " : "",
			    text);
	return 0;
}

static int choose_job(struct doctor_case *look)
{
	const struct recording *all = &look->input.recording;
	const char *name = look->options->chosen.job;
	struct recording *chosen = &look->asked_for;

	*chosen = *all;
	chosen->processes =
		cli_realloc(NULL, (all->count + 1) * sizeof(struct recording_process *));
	chosen->count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (name == NULL || recording_is_job(all->processes[i], name))
			chosen->processes[chosen->count++] = all->processes[i];
	if (chosen->count == 0 && all->count > 0 && !look->options->is_watch)
		return cli_job_check(all, name);
	leave_out_dead_jobs(look);
	return choose_run(look);
}

/*
 * Time of the diagnosis for files: now if a process still runs here, the time of the newest snapshot, or 0 for the
 * past.
 */
static uint64_t moment_of_files(const struct recording *recording)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (process->snapshot_wall_ns > newest)
			newest = process->snapshot_wall_ns;
		/* With a snapshot and no region, the time of the snapshot counts, even if the process still runs. */
		if (process->life == RECORDING_ALIVE &&
		    (process->region != NULL || process->snapshot_wall_ns == 0))
			return clock_system_ns(CLOCK_REALTIME);
	}
	return newest;
}

static uint64_t moment_of(const struct doctor_case *look)
{
	if (look->prom && prom_wall_ns(look->prom) > 0)
		return prom_wall_ns(look->prom);
	if (!has_ranks(look->options))
		return 0;
	return look->options->path_count > 0 ? moment_of_files(&look->asked_for)
					     : clock_system_ns(CLOCK_REALTIME);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* ---- the verdicts asked for ------------------------------------------------------------------- */

/* A verdict about all ranks includes the selected ones. */
static bool is_asked_for(const struct doctor_case *look, const struct verdict *verdict)
{
	const struct filter *filter = &look->options->chosen.filter;
	bool has_comm = filter->comm_count == 0 || verdict->comm[0] == '\0';

	for (size_t c = 0; c < look->job.comm_count && !has_comm; c++)
		has_comm = strcmp(look->job.comms[c].label, verdict->comm) == 0 &&
			   filter_has_comm(filter, &look->job.comms[c]);
	return has_comm && (verdict->rank < 0 || filter_has_rank(filter, verdict->rank) ||
			    (verdict->peer >= 0 && filter_has_rank(filter, verdict->peer)));
}

/* Verdicts are based on all ranks; --rank and --comm only select which are shown. */
static int choose_verdicts(struct doctor_case *look)
{
	struct verdicts *verdicts = &look->verdicts;
	struct report_filter chosen = look->options->chosen;
	size_t kept = 0;
	int code;

	if (!look->has_job || chosen.filter.comm_count + chosen.filter.range_count == 0)
		return 0;
	chosen.job = NULL;
	chosen.run = 0;
	code = cli_input_choose(&look->input, &chosen, NULL);
	if (code != 0)
		return look->options->is_watch ? 0 : code;
	for (size_t i = 0; i < verdicts->count; i++) {
		struct verdict verdict = verdicts->list[i];

		if (!is_asked_for(look, &verdict))
			continue;
		verdicts->list[i] = verdicts->list[kept];
		verdicts->list[kept++] = verdict;
	}
	look->hidden += verdicts->count - kept;
	verdicts->count = kept;
	return 0;
}

int doctor_case_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd)
{
	int code;

	*look = (struct doctor_case){
		.options = options,
		.yardstick = yardstick,
		.stop_fd = stop_fd,
	};
	cli_input_init(&look->input);
	look->input.has_logs = true;
	verdicts_init(&look->verdicts);
	code = read_all(look);
	if (code == 0)
		read_notes(look);
	if (code == 0)
		code = check_emptiness(look);
	if (code == 0 && look->prom == NULL)
		code = find_flights(look);
	if (code == 0)
		code = choose_job(look);
	if (code != 0)
		return code;
	look->wall_ns = moment_of(look);
	doctor_judge(look);
	return choose_verdicts(look);
}

void doctor_case_release(struct doctor_case *look)
{
	look->verdicts.count += look->hidden;
	verdicts_release(&look->verdicts);
	if (look->has_job) {
		scene_release(&look->scene);
		job_release(&look->job);
	}
	prom_free(look->prom);
	for (size_t i = 0; i < look->source_count && look->problems; i++)
		free(look->problems[i]);
	free(look->problems);
	agent_notes_release(&look->notes);
	free(look->sources);
	free(look->asked_for.processes);
	if (look->has_log)
		nccl_log_release(&look->log);
	cli_input_release(&look->input);
}

/* Copies the problem of a source. */
static void doctor_source_problem(struct doctor_case *look, size_t source, const char *text,
				  size_t length)
{
	char *problem = strndup(text, length);

	if (problem == NULL)
		cli_no_memory();
	free(look->problems[source]);
	look->problems[source] = problem;
	look->sources[source].is_silent = true;
	look->sources[source].problem = problem;
}

struct verdict_look doctor_case_look(const struct doctor_case *look)
{
	struct verdict_look shown = {
		.source = look->from[0] ? look->from : NULL,
		.scene = look->has_job ? &look->scene : NULL,
		.job = look->has_job ? &look->job : NULL,
		.wall_ns = look->wall_ns,
		.hang_ns = look->options->hang_ns,
		.sources = look->source_count,
		.has_speed = look->has_speed,
		.compared_ns = look->compared_ns,
		.examined_ns = look->examined_ns,
		.has_iterations = look->has_iterations,
		.has_speed_reference =
			look->yardstick != NULL &&
			(look->yardstick->has_baseline || look->yardstick->has_expected ||
			 look->options->peak_nvlink > 0 || look->options->peak_network > 0),
	};

	for (size_t i = 0; i < look->source_count; i++)
		shown.silent += look->sources[i].is_silent;
	for (size_t i = 0; look->has_log && i < look->log.file_count; i++)
		shown.log_lines += look->log.files[i].lines;
	if (look->has_log)
		shown.log_files = look->log.file_count;
	return shown;
}
