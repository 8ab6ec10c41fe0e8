/* `ringside doctor`: options, the nodes of a Slurm job, one answer or one per scan. */
#include "cmds/doctor_case.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"
#include "fetch/fetch.h"
#include "output/json.h"
#include "output/verdict_show.h"

enum { DOCTOR_AGENT_PORT = 9749 };

/* How verdicts are shown in text. */
static struct verdict_text_options doctor_text_options(const struct doctor_options *options)
{
	return (struct verdict_text_options){
		.width = cli_width(),
		.has_colour = cli_has_color(),
		.has_all = options->has_all,
	};
}

enum { LIST_FILE_MOST = (4 << 20) - 1 };

enum { SLURM_ID_MAX = 21, SLURM_SECONDS = 30, SLURM_BYTES = 4 << 20 };
#define DIGITS "0123456789"

/* ---- values ---------------------------------------------------------------------------------- */

/* "nvlink=450,net=50", GB/s. */
static int take_peak(const struct cli_said *said)
{
	struct doctor_options *options = said->target;
	const char *at = said->value;

	while (*at != '\0') {
		size_t name = strcspn(at, "=");
		char *end = NULL;
		double value = at[name] == '=' ? strtod(at + name + 1, &end) : 0;
		double *to = NULL;

		if (name == 6 && strncmp(at, "nvlink", 6) == 0)
			to = &options->peak_nvlink;
		else if (name == 3 && strncmp(at, "net", 3) == 0)
			to = &options->peak_network;
		if (to == NULL || !(value > 0) || value > 1e6 || (*end != ',' && *end != '\0'))
			return cli_usage(said->page,
					 "--peak '%s' is not like nvlink=450,net=50 (GB/s)",
					 said->value);
		*to = value * 1e9;
		at = end + (*end == ',');
	}
	return said->value[0] ? 0
			      : cli_usage(said->page, "--peak '' is not like nvlink=450,net=50");
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void append_text(const char ***list, size_t *count, const char *text)
{
	*list = cli_realloc(*list, (*count + 1) * sizeof(**list));
	(*list)[(*count)++] = text;
}

/* Reads a small file, terminated; NULL after an error was reported. */
static char *read_list(const char *path)
{
	struct stat st;
	int fd = file_examine(-1, path, &st) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	size_t length;
	char *text = fd != -1 ? file_read_whole(fd, LIST_FILE_MOST, &length) : NULL;

	if (text == NULL && errno == ENOMEM)
		cli_no_memory();
	if (text == NULL && errno == EFBIG)
		cli_error("%s: too long for a list of agents", path);
	else if (text == NULL)
		cli_error("%s: %s", path, file_error_text(errno));
	if (fd != -1)
		close(fd);
	return text;
}

static int take_agents(const struct cli_said *said)
{
	struct doctor_options *options = said->target;
	const char *value = said->value;
	char *text = value[0] == '@' ? read_list(value + 1) : NULL;
	char why[200];
	enum status status;

	options->has_agents = true;
	if (value[0] == '@' && text == NULL)
		return CLI_EXIT_USAGE;
	status = fetch_targets_add(&options->targets, text ? text : value, DOCTOR_AGENT_PORT, why,
				   sizeof(why));
	free(text);
	if (status == ERR_NO_SPACE && why[0] == '\0')
		cli_no_memory();
	return status == OK ? 0 : cli_usage(said->page, "--agents: %s", why);
}

/* "4711", "4711_3" of an array, "4711+1" of a heterogeneous job. */
static int take_slurm(const struct cli_said *said)
{
	const char *value = said->value;
	size_t first = strspn(value, DIGITS);
	size_t second =
		value[first] == '_' || value[first] == '+' ? strspn(value + first + 1, DIGITS) : 0;

	if (first == 0 || value[first + (second ? 1 + second : 0)] != '\0' ||
	    strlen(value) > SLURM_ID_MAX)
		return cli_usage(said->page, "--slurm '%s' is not a job ID like 4711 or 4711_3",
				 value);
	*(const char **)said->target = value;
	return 0;
}

static int take_prometheus(const struct cli_said *said)
{
	const char *value = said->value;

	if (!fetch_url_is_good(value) || strpbrk(value, "?#"))
		return cli_usage(said->page,
				 "--prometheus '%s' is not a URL like http://prometheus:9090 (a "
				 "password goes into a file: --auth)",
				 value);
	*(const char **)said->target = value;
	return 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int take_log(const struct cli_said *said)
{
	struct doctor_options *options = said->target;

	append_text(&options->logs, &options->log_count, said->value);
	return 0;
}

/* A PATH, or after --log another log. */
static int take_operand(const struct cli_said *said)
{
	struct doctor_options *options = said->target;

	if (said->option != NULL && said->option->take == take_log)
		return take_log(said);
	append_text(&options->paths, &options->path_count, said->value);
	return 0;
}

#define DOCTOR_TIME(field, least_ns, most_ns)                      \
	CLI_TIME(struct doctor_options, field, least_ns, most_ns), \
		.like = "is not a time like 20s or 500ms", .less = "is too short or too long"

/* The setting of the agent, for this run. */
static int take_runbooks(const struct cli_said *said)
{
	return setenv("RINGSIDE_RUNBOOKS", said->value, 1) == 0
		       ? 0
		       : cli_usage(said->page, "--runbooks: %s", strerror(errno));
}

static const struct cli_option doctor_option_rows[] = {
	CLI_OPTION_JSON(struct doctor_options),
	{ 'a', "all", NULL, "show every verdict with all its lines, and every communicator",
	  CLI_FLAG(struct doctor_options, has_all) },
	{ 0, "agents", "LIST",
	  "query these agents: host[:port], URLs, ranges like node[001-064], @FILE with one per "
	  "line",
	  CLI_CALL_ALL(take_agents) },
	{ 0, "slurm", "JOBID", "query the agents on the nodes of this Slurm job (asks squeue)",
	  CLI_CALL(struct doctor_options, slurm, take_slurm) },
	{ 0, "prometheus", "URL", "query this Prometheus, which scrapes the agents",
	  CLI_CALL(struct doctor_options, prometheus, take_prometheus) },
	{ 0, "window", "TIME", "time window used to judge slowness (with --prometheus, default 5m)",
	  DOCTOR_TIME(window_ns, CLI_SECONDS(4), CLI_SECONDS(86400)) },
	{ 0, "past", "TIME",
	  "compare with the window this long ago (default 60m, or 15m for a younger job)",
	  DOCTOR_TIME(past_ns, CLI_SECONDS(1), CLI_SECONDS(90 * 86400)) },
	{ 0, "log", "FILE", "also read NCCL_DEBUG output; files that follow are logs, too",
	  CLI_CALL_ALL(take_log) },
	{ 0, "ras", "ADDRESS",
	  "also query NCCL's RAS at HOST:PORT; 'local': NCCL_RAS_ADDR or localhost:28028",
	  CLI_TEXT(struct doctor_options, ras) },
	{ 0, "hang", "TIME",
	  "report a hang after this long without progress (default 20s, "
	  "or RINGSIDE_HANG_AFTER of the job)",
	  DOCTOR_TIME(hang_ns, CLI_SECONDS(1) / 10, CLI_SECONDS(86400)) },
	CLI_OPTIONS_READING(struct doctor_options),
	{ 0, "baseline", "FILE", "compare with a baseline ('ringside baseline save')",
	  CLI_TEXT(struct doctor_options, baseline) },
	{ 0, "expected", "FILE",
	  "compare with results of nccl-tests or 'ringside bench', text or JSON",
	  CLI_TEXT(struct doctor_options, expected) },
	{ 0, "peak", "LIST", "expected bus bandwidth in GB/s: nvlink=450,net=50, or one of them",
	  CLI_CALL_ALL(take_peak) },
	{ 0, "gpu-hour-price", "PRICE", "price of a GPU-hour, to show what lost time costs",
	  CLI_CALL(struct doctor_options, gpu_hour_price, cli_take_price) },
	{ 0, "no-stacks", NULL, "do not look where hung ranks are in their program",
	  CLI_FLAG(struct doctor_options, has_no_stacks) },
	{ 0, "native", NULL,
	  "also show native frames of hung ranks (eu-stack or gdb); stops each for up to 100 ms",
	  CLI_FLAG(struct doctor_options, has_native) },
	{ 0, "any-user", NULL, "as root, also look at ranks of other users",
	  CLI_FLAG(struct doctor_options, has_any_user) },
	{ 'w', "watch", NULL,
	  "keep watching; print verdicts as they appear, change and clear (Ctrl-C to stop)",
	  CLI_FLAG(struct doctor_options, is_watch) },
	{ 0, "interval", "TIME", "with --watch: time between scans (default 10s)",
	  DOCTOR_TIME(interval_ns, CLI_SECONDS(1) / 5, CLI_SECONDS(3600)) },
	{ 0, "timeout", "TIME", "timeout per agent (default 5s)",
	  DOCTOR_TIME(timeout_ns, CLI_SECONDS(1) / 100, CLI_SECONDS(600)) },
	{ 0, "parallel", "N", "agents queried at the same time, 1 to 1024 (default 32)",
	  CLI_U32(struct doctor_options, parallel, 1, 1024),
	  .like = "is not a number from 1 to 1024" },
	{ 0, "auth", "FILE", "credentials file with one line: basic NAME:PASSWORD or bearer TOKEN",
	  CLI_TEXT(struct doctor_options, auth) },
	{ 0, "cacert", "FILE", "CA certificates to trust instead of the system's",
	  CLI_TEXT(struct doctor_options, ca_file) },
	{ 0, "insecure", NULL, "accept any certificate",
	  CLI_FLAG(struct doctor_options, is_insecure) },
	{ 0, "runbooks", "URL",
	  "link to runbooks there (a copy of docs/; default: RINGSIDE_RUNBOOKS)",
	  CLI_CALL_ALL(take_runbooks) },
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example doctor_examples[] = {
	{ "ringside doctor", "diagnose the jobs on this host" },
	{ "ringside doctor traces/", "diagnose a job that has ended" },
	{ "ringside doctor --agents 'node[001-064]'", "a whole job, through its nodes' agents" },
	{ "ringside doctor --slurm 4711", "the same for a job of Slurm" },
	{ "ringside doctor --agents @nodes --watch --interval 30s",
	  "scan every 30 seconds and print changes" },
	{ "ringside doctor --prometheus http://prometheus:9090 --job llm-7",
	  "one job of thousands of ranks" },
	{ "ringside doctor --log nccl.*.log", "check the setup in NCCL's own log" },
	{ NULL, NULL },
};

/* Its name is that of the command whose options are parsed: bundle has those of the doctor for agents. */
static struct cli_page doctor_page = {
	.name = "doctor",
	.operands = "[PATH...]",
	.about = "Diagnoses hangs, stragglers, slow links and misconfiguration. Each verdict names "
		 "one cause, with evidence, confidence, next steps and a runbook. The exit code is "
		 "1 when there is trouble. docs/DOCTOR.md explains the verdicts.\n" CLI_INPUT_ABOUT
			 CLI_INPUT_NONE "\n",
	.options = doctor_option_rows,
	.operand = take_operand,
	.examples = doctor_examples,
};

static int doctor_check_options(const struct doctor_options *options)
{
	int sources = (options->path_count > 0) + options->has_agents + (options->slurm != NULL) +
		      (options->prometheus != NULL);

	if (sources > 1)
		return cli_usage(
			&doctor_page,
			"PATH, --agents, --slurm and --prometheus are four sources: give one");
	if (options->has_agents && options->targets.count == 0)
		return cli_usage(&doctor_page, "--agents lists no agent");
	if (options->is_watch &&
	    (options->path_count > 0 || (options->log_count > 0 && sources == 0)))
		return cli_usage(&doctor_page,
				 "--watch follows what runs: this machine, --agents, --slurm or "
				 "--prometheus, not files");
	if (options->prometheus != NULL && (options->chosen.filter.since.base != FILTER_NO_TIME ||
					    options->chosen.filter.until.base != FILTER_NO_TIME))
		return cli_usage(&doctor_page, "--since and --until are for recordings: with "
					       "--prometheus use --window");
	return -1;
}

/* ---- the nodes of a Slurm job ---------------------------------------------------------------- */

/* One line of squeue: 4711_3|4714|RUNNING|node[001-064] */
struct slurm_line {
	const char *id;
	const char *raw_id;
	const char *state;
	const char *nodes; /* "": none yet */
};

/* Cuts the next line of `*text` into fields. False: there is none, or it has other fields. */
static bool slurm_line_next(char **text, struct slurm_line *line)
{
	char *end = strchr(*text, '\n');
	char *fields[4] = { *text };

	if (end == NULL)
		return false;
	*end = '\0';
	for (size_t i = 1; i < ARRAY_LENGTH(fields); i++) {
		fields[i] = strchr(fields[i - 1], '|');
		if (fields[i] == NULL)
			return false;
		*fields[i]++ = '\0';
	}
	*line = (struct slurm_line){ fields[0], fields[1], fields[2], fields[3] };
	*text = end + 1;
	return true;
}

/* SLURM_JOB_ID in the job: in all components of a heterogeneous job that of the first. */
static void slurm_line_name(const struct slurm_line *line, char *name, size_t size)
{
	const char *plus = strchr(line->id, '+');

	text_format(name, size, "%.*s", plus ? (int)(plus - line->id) : (int)size - 1,
		    plus ? line->id : line->raw_id);
}

static int slurm_read(struct doctor_options *options, char *text)
{
	char name[sizeof(options->slurm_name)], state[40] = "", why[200];
	struct slurm_line line;

	while (text[0] != '\0') {
		if (!slurm_line_next(&text, &line))
			return cli_error("--slurm %s: cannot read the answer of squeue",
					 options->slurm);
		text_copy(state, sizeof(state), line.state);
		if (line.nodes[0] == '\0')
			continue;
		slurm_line_name(&line, name, sizeof(name));
		if (options->targets.count > 0 && strcmp(name, options->slurm_name) != 0)
			return cli_error("--slurm %s is an array job: choose one of its tasks, "
					 "like --slurm %s",
					 options->slurm, line.id);
		text_copy(options->slurm_name, sizeof(options->slurm_name), name);
		if (fetch_targets_add(&options->targets, line.nodes, DOCTOR_AGENT_PORT, why,
				      sizeof(why)) != OK)
			return cli_error("--slurm %s: %s", options->slurm, why);
	}
	if (options->targets.count == 0)
		return cli_error("--slurm %s: the job has no nodes%s%s", options->slurm,
				 state[0] ? ": " : "", state);
	return 0;
}

/* Asks Slurm which nodes the job has or had. Returns 0, or the exit code after an error was reported. */
static int slurm_find(struct doctor_options *options)
{
	/* Those of the user would hide jobs. */
	static const char *const filters[] = { "SQUEUE_ACCOUNT", "SQUEUE_LICENSES",
					       "SQUEUE_NAMES",	 "SQUEUE_PARTITION",
					       "SQUEUE_QOS",	 "SQUEUE_USERS" };
	char jobs[SLURM_ID_MAX + sizeof("--jobs=")];
	const char *words[] = { "squeue", "--noheader",		  "--states=all",
				jobs,	  "--format=%i|%A|%T|%N", NULL };
	struct cli_capture got;
	int code;

	for (size_t i = 0; i < ARRAY_LENGTH(filters); i++)
		unsetenv(filters[i]);
	text_format(jobs, sizeof(jobs), "--jobs=%s", options->slurm);
	if (cli_capture(&got, words, -1, SLURM_SECONDS, SLURM_BYTES) != OK || got.exit_code != 0)
		code = cli_error("--slurm %s: %s%s", options->slurm, got.why,
				 strstr(got.why, "Invalid job id")
					 ? "; Slurm forgets jobs minutes after their end: use "
					   "--agents with their nodes (sacct -j ID -o NodeList)"
					 : "");
	else if (got.is_cut)
		code = cli_error("--slurm %s: the answer of squeue is too long", options->slurm);
	else
		code = slurm_read(options, got.bytes);
	free(got.bytes);
	if (code == 0 && options->chosen.job == NULL)
		options->chosen.job = options->slurm_name;
	options->has_agents |= code == 0;
	return code;
}

int doctor_options_parse(struct doctor_options *options, int argc, char **argv)
{
	int code;

	*options = (struct doctor_options){
		.interval_ns = 10000000000u,
		.timeout_ns = 5000000000u,
		.parallel = 32,
	};
	fetch_targets_init(&options->targets);
	doctor_page.name = argv[0];
	code = cli_parse(&doctor_page, options, argc, argv);
	options->is_hang_fixed = options->hang_ns != 0;
	if (!options->is_hang_fixed)
		options->hang_ns = CLI_SECONDS(20);
	if (code == CLI_GO_ON)
		code = doctor_check_options(options);
	if (code == -1 && options->slurm != NULL && slurm_find(options) != 0)
		code = CLI_EXIT_UNKNOWN;
	return code;
}

void doctor_options_release(struct doctor_options *options)
{
	free(options->paths);
	free(options->logs);
	options->paths = options->logs = NULL;
	fetch_targets_release(&options->targets);
}

/* What a job is compared with: a baseline, expected bandwidths. */

static int read_expected(struct doctor_yardstick *yardstick, const char *path)
{
	enum diff_expected_found found = diff_expected_read(&yardstick->expected, path);

	yardstick->has_expected = found == DIFF_EXPECTED_FOUND;
	if (yardstick->has_expected)
		diff_expected_warn(&yardstick->expected, path);
	if (found == DIFF_EXPECTED_NOT)
		return cli_error("%s: not a file of expected bandwidths (output of nccl-tests or "
				 "'ringside bench')",
				 path);
	return found == DIFF_EXPECTED_BAD ? CLI_EXIT_UNKNOWN : 0;
}

/* 0, or the exit code after an error was reported. */
static int doctor_yardstick_read(struct doctor_yardstick *yardstick,
				 const struct doctor_options *options)
{
	int code = 0;

	if (options->baseline) {
		code = baseline_file_read(&yardstick->baseline, options->baseline);
		yardstick->has_baseline = code == 0;
	}
	if (code == 0 && options->expected)
		code = read_expected(yardstick, options->expected);
	return code;
}

static void doctor_yardstick_release(struct doctor_yardstick *yardstick)
{
	if (yardstick->has_baseline)
		baseline_release(&yardstick->baseline);
	if (yardstick->has_expected)
		expected_release(&yardstick->expected);
	yardstick->has_baseline = yardstick->has_expected = false;
}

/* A verdict as it was in the last scan. */
struct known {
	uint64_t key;
	uint64_t state; /* hash of severity and title, to detect changes */
	uint64_t first_ns;
	char title[200];
	bool is_there; /* in this scan */
};

struct watch {
	const struct doctor_options *options;
	struct known *list;
	size_t count;
	bool has_looked;
};

static uint64_t state_of(const struct verdict *verdict)
{
	/* Titles of class blind contain progress: not a change each time. */
	if (verdict->class == VERDICT_BLIND && verdict->severity == VERDICT_NOTE)
		return VERDICT_NOTE;
	return hash_word((uint64_t)verdict->severity,
			 hash_bytes(verdict->title, strlen(verdict->title)));
}

static struct known *watch_find(struct watch *watch, uint64_t key)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->list[i].key == key)
			return &watch->list[i];
	return NULL;
}

static struct known *watch_remember(struct watch *watch, uint64_t key, uint64_t wall_ns)
{
	struct known *known;

	watch->list = cli_realloc(watch->list, (watch->count + 1) * sizeof(*watch->list));
	known = &watch->list[watch->count++];
	*known = (struct known){ .key = key, .first_ns = wall_ns };
	return known;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void tell_json(struct sink *sink, const char *event, const struct doctor_case *look,
		      const struct verdict *verdict, const struct known *known)
{
	char time[UNITS_TEXT];
	struct json json;

	json_begin(&json, sink);
	json_put_string(&json, "event", event);
	json_put_string(&json, "time", units_wall_time(time, look->wall_ns));
	json_put_unsigned(&json, "time_ns", look->wall_ns);
	json_put_hex(&json, "key", known->key);
	json_put_string(&json, "title", known->title);
	if (verdict) {
		json_key(&json, "verdict");
		verdict_json_one(&json, verdict);
	}
	json_finish(&json);
}

static void watch_tell(struct sink *sink, const char *event, const struct doctor_case *look,
		       const struct verdict *verdict, const struct known *known)
{
	struct verdict_text_options style = doctor_text_options(look->options);
	char time[UNITS_TEXT], stood[UNITS_TEXT], title[200];

	if (look->options->is_json) {
		tell_json(sink, event, look, verdict, known);
		return;
	}
	style.has_jobs = look->has_job && look->scene.jobs > 1;
	units_date(time, look->wall_ns);
	if (verdict) {
		sink_format(sink, "\n%s UTC: %s\n", time, event);
		verdict_text_one(sink, verdict, 0, &style);
		return;
	}
	text_from_field(title, sizeof(title), known->title, strlen(known->title));
	sink_format(sink, "\n%s UTC: %s after %s: %s\n", time, event,
		    units_duration(stood, look->wall_ns - known->first_ns), title);
}

/* The first scan is printed in full, later ones only as changes. */
static void tell_first(struct sink *sink, const struct doctor_case *look)
{
	struct verdict_text_options style = doctor_text_options(look->options);
	struct verdict_look shown = doctor_case_look(look);
	struct json json;

	if (!look->options->is_json) {
		if (verdict_text(sink, &look->verdicts, &shown, &style) == ERR_NO_SPACE)
			cli_no_memory();
		return;
	}
	json_init(&json, sink);
	verdict_json(&json, &look->verdicts, &shown);
	json_line(&json);
}

static void watch_compare(struct watch *watch, struct sink *sink, const struct doctor_case *look)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->count; i++)
		watch->list[i].is_there = false;
	for (size_t i = 0; i < look->verdicts.count; i++) {
		const struct verdict *verdict = &look->verdicts.list[i];
		struct known *known = watch_find(watch, verdict_key(verdict));
		bool is_new = known == NULL;
		bool is_other = is_new || known->state != state_of(verdict);

		if (is_new)
			known = watch_remember(watch, verdict_key(verdict), look->wall_ns);
		known->is_there = true;
		known->state = state_of(verdict);
		text_copy(known->title, sizeof(known->title), verdict->title);
		if (watch->has_looked && is_other)
			watch_tell(sink, is_new ? "appeared" : "changed", look, verdict, known);
	}
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->list[i].is_there)
			watch->list[kept++] = watch->list[i];
		else
			watch_tell(sink, "cleared", look, NULL, &watch->list[i]);
	}
	watch->count = kept;
	if (!watch->has_looked)
		tell_first(sink, look);
	watch->has_looked = true;
}

static int doctor_exit(const struct doctor_case *look)
{
	static const int codes[] = {
		[SCENE_NOTHING_WRONG] = CLI_EXIT_DONE,
		[SCENE_TROUBLE] = CLI_EXIT_TROUBLE,
		[SCENE_STUCK] = CLI_EXIT_TROUBLE,
		[SCENE_UNKNOWN] = CLI_EXIT_UNKNOWN,
	};

	return codes[scene_answer(look->has_job ? &look->scene : NULL, &look->verdicts)];
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Returns true to continue. */
static bool watch_look_once(struct watch *watch, const struct doctor_yardstick *yardstick,
			    int stop_fd, int *exit_code)
{
	struct doctor_case look;
	struct sink sink;
	int code = doctor_case_make(&look, watch->options, yardstick, stop_fd);

	/* Recordings may appear later; other errors are permanent. */
	if (code != 0) {
		doctor_case_release(&look);
		if (code != FETCH_STOPPED)
			*exit_code = code;
		return code == CLI_EXIT_UNKNOWN;
	}
	sink_init_fd(&sink, STDOUT_FILENO);
	watch_compare(watch, &sink, &look);
	*exit_code = doctor_exit(&look);
	doctor_case_release(&look);
	if (sink_flush(&sink) == OK) {
		sink_release(&sink);
		return true;
	}
	*exit_code = cli_finish(&sink, *exit_code);
	return false;
}

static bool wait_for_next(uint64_t interval_ns, int stop_fd)
{
	struct pollfd stop = { stop_fd, POLLIN, 0 };
	int found = poll(&stop, 1, (int)(interval_ns / 1000000));

	return found == 0 || (found == -1 && errno == EINTR);
}

/* Until SIGINT or SIGTERM. Returns the exit code of the last scan. */
static int doctor_watch(const struct doctor_options *options,
			const struct doctor_yardstick *yardstick)
{
	struct watch watch = { .options = options };
	int exit_code = CLI_EXIT_DONE, stop_fd;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	stop_fd = signalfd(-1, &ends, SFD_CLOEXEC);
	if (stop_fd == -1)
		return cli_error("cannot wait for signals: %s", strerror(errno));
	while (watch_look_once(&watch, yardstick, stop_fd, &exit_code) &&
	       wait_for_next(options->interval_ns, stop_fd))
		;
	close(stop_fd);
	free(watch.list);
	return exit_code;
}

/* ringside doctor: see docs/DOCTOR.md. */

static int doctor_show(const struct doctor_case *look)
{
	struct verdict_text_options style = doctor_text_options(look->options);
	struct verdict_look shown = doctor_case_look(look);
	bool has_found = look->options->has_all && look->has_log;
	enum status status = OK;
	struct sink sink;
	struct json json;

	cli_begin(&sink, look->options->is_json);
	if (look->options->is_json) {
		json_init(&json, &sink);
		verdict_json_open(&json, &look->verdicts, &shown);
		if (has_found)
			doctor_found_json(&json, &look->log);
		json_finish(&json);
	} else {
		status = verdict_text(&sink, &look->verdicts, &shown, &style);
		if (has_found)
			doctor_found_text(&sink, &look->log);
	}
	if (status == ERR_NO_SPACE && sink.status == OK)
		cli_no_memory();
	return cli_finish(&sink, doctor_exit(look));
}

static int doctor_look_once(const struct doctor_options *options,
			    const struct doctor_yardstick *yardstick)
{
	struct doctor_case look;
	int code = doctor_case_make(&look, options, yardstick, -1);

	if (code == 0)
		code = doctor_show(&look);
	doctor_case_release(&look);
	return code;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_yardstick yardstick = { .has_baseline = false };
	struct doctor_options options;
	struct cli_host_watch host;
	int code = doctor_options_parse(&options, argc, argv);

	if (code == -1) {
		if (options.path_count == 0 && !options.has_agents && !options.prometheus &&
		    options.log_count == 0) {
			cli_host_watch_open(&host);
			yardstick.host = &host;
		}
		code = doctor_yardstick_read(&yardstick, &options);
		if (code == 0)
			code = options.is_watch ? doctor_watch(&options, &yardstick)
						: doctor_look_once(&options, &yardstick);
	}
	if (yardstick.host != NULL)
		cli_host_watch_close(&host);
	doctor_yardstick_release(&yardstick);
	doctor_options_release(&options);
	return code;
}
