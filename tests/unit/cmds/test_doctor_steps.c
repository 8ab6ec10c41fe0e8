/*
 * The doctor's steps: what it asks agents, Prometheus, RAS and its own host for, which files it reads, and which jobs
 * and verdicts it keeps. Whatever answers is played; the file is included for that.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define doctor_case_make steps_included_make
#define doctor_case_release steps_included_release
#define doctor_case_look steps_included_look
#include "cli/cli.h"
#include "cmds/doctor_case.h"
#include "common/clock.h"
#include "doctor/prom.h"
#include "import/ras.h"

static int play_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests,
		      size_t count, cli_fetch_answer *take, void *context);
static struct prom *play_prom_new(const struct prom_options *options);
static const char *play_prom_warning(const struct prom *prom);
static size_t play_prom_odd(const struct prom *prom);
static enum status play_prom_slow(struct prom *prom, struct verdicts *verdicts,
				  const struct slow_sums_options *options);
static uint64_t play_prom_wall(const struct prom *prom);
static enum status play_ras_ask(struct ras_answer *answer, const char *address,
				enum ras_request request);
static enum status play_ras_read(struct ras_status *ras, const char *text, size_t length);
static enum status play_ras_find(struct verdicts *verdicts, const struct recording *recording,
				 const struct ras_status *ras, const char *from);
static void play_watch_read(struct cli_host_watch *watch, const struct recording *recording,
			    bool has_traces, uint64_t now_ns);
static void play_host_wait(struct cli_host *host, struct host_facts *facts);
static void play_support(struct verdicts *verdicts, const struct job *job,
			 const struct host_facts *own, bool has_notes);
static uint64_t play_clock(clockid_t clock);
static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms);
static size_t play_stacks(struct recording *recording,
			  bool (*wanted)(const struct recording_process *process, void *context),
			  void *context, const struct stacks_options *options);
static bool play_are_off(void);
static void play_say_stacks(struct verdicts *verdicts, size_t first, const struct job *job,
			    void *none);
static enum status play_flights(struct recording *recording);
static int play_choose(struct cli_input *input, const struct report_filter *chosen,
		       const struct cli_page *page);

#define cli_fetch(how, requests, count, take, context) \
	play_fetch(how, requests, count, take, context)
#define prom_new play_prom_new
#define prom_warning play_prom_warning
#define prom_odd_series play_prom_odd
#define prom_slow play_prom_slow
#define prom_wall_ns play_prom_wall
#define cli_ras_ask play_ras_ask
#define ras_status_read play_ras_read
#define ras_find play_ras_find
#define cli_host_watch_read play_watch_read
#define cli_host_wait play_host_wait
#define host_support play_support
#define clock_system_ns play_clock
#define poll play_poll
#define stacks_of_recording play_stacks
#define stacks_are_off play_are_off
#define hang_say_stacks play_say_stacks
#define recording_find_flights play_flights
#define cli_input_choose play_choose
#include "cmds/doctor_case.c"
#undef cli_fetch
#undef prom_new
#undef prom_warning
#undef prom_odd_series
#undef prom_slow
#undef prom_wall_ns
#undef cli_ras_ask
#undef ras_status_read
#undef ras_find
#undef cli_host_watch_read
#undef cli_host_wait
#undef host_support
#undef clock_system_ns
#undef poll
#undef stacks_of_recording
#undef stacks_are_off
#undef hang_say_stacks
#undef recording_find_flights
#undef cli_input_choose

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

enum { PROCESSES = 6 };

static struct {
	const int *answers; /* HTTP status; 0: an error; 1: one that cannot be read */
	int fetch_code;
	const char *warning;
	size_t odd;
	enum status slow, ras, ras_read, ras_find, flights;
	uint64_t prom_wall_ns;
	uint64_t now_ns, step_ns;
	bool are_off;
	size_t stacks;
	int choose_code;
} play;
static struct sink happened;
static struct doctor_options options;
static struct doctor_yardstick yardstick;
static struct cli_host_watch own_host;
static struct doctor_case look;
static struct recording_process processes[PROCESSES], *list[PROCESSES];

static int play_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests,
		      size_t count, cli_fetch_answer *take, void *context)
{
	sink_format(&happened, "fetch %zu: parallel %u, timeout %llu ms, limit %llu MiB, stop %d\n",
		    count, how->parallel, (unsigned long long)how->timeout_ns / 1000000,
		    (unsigned long long)how->limit_bytes >> 20, how->stop_fd);
	for (size_t i = 0; i < count; i++) {
		int status = play.answers ? play.answers[i] : 0;

		if (i < 3)
			sink_format(&happened, "GET %.60s\n", requests[i].url);
		take(context, i, status == 1 ? 200 : status, "nobody answers", 14);
	}
	return play.fetch_code;
}

static struct prom *play_prom_new(const struct prom_options *wanted)
{
	sink_format(&happened, "Prometheus: job %s, hang %llu ns, window %u s, past %u s\n",
		    wanted->job ? wanted->job : "any", (unsigned long long)wanted->hang_ns,
		    wanted->window_s, wanted->past_s);
	return prom_new(wanted);
}

static const char *play_prom_warning(const struct prom *prom)
{
	(void)prom;
	return play.warning;
}

static size_t play_prom_odd(const struct prom *prom)
{
	(void)prom;
	return play.odd;
}

static enum status play_prom_slow(struct prom *prom, struct verdicts *verdicts,
				  const struct slow_sums_options *wanted)
{
	(void)prom, (void)verdicts;
	sink_format(&happened, "price %.1f\n", wanted->gpu_hour_price);
	return play.slow;
}

static uint64_t play_prom_wall(const struct prom *prom)
{
	(void)prom;
	return play.prom_wall_ns;
}

static enum status play_ras_ask(struct ras_answer *answer, const char *address,
				enum ras_request request)
{
	*answer = (struct ras_answer){ .address = "10.0.0.1:28028", .why = "no RAS there" };
	sink_format(&happened, "ask RAS at %s%s\n", address ? address : "the default",
		    request == RAS_JSON ? " for JSON" : "");
	answer->text = play.ras == OK ? strdup("{}") : NULL;
	answer->length = 2;
	return play.ras;
}

static enum status play_ras_read(struct ras_status *ras, const char *text, size_t length)
{
	(void)ras;
	sink_format(&happened, "read RAS: %.*s\n", (int)length, text);
	return text[0] == '!' ? ERR_FORMAT : play.ras_read;
}

static enum status play_ras_find(struct verdicts *verdicts, const struct recording *recording,
				 const struct ras_status *ras, const char *from)
{
	(void)verdicts, (void)recording, (void)ras;
	sink_format(&happened, "judge RAS from %s\n", from);
	return play.ras_find;
}

static void play_watch_read(struct cli_host_watch *watch, const struct recording *recording,
			    bool has_traces, uint64_t now_ns)
{
	(void)recording;
	sink_format(&happened, "read host%s at %llu ms\n", has_traces ? " with traces" : "",
		    (unsigned long long)now_ns / 1000000);
	watch->facts.begin_ns = 1;
}

static void play_host_wait(struct cli_host *host, struct host_facts *facts)
{
	(void)host, (void)facts;
	play.now_ns += play.step_ns;
}

static void play_support(struct verdicts *verdicts, const struct job *job,
			 const struct host_facts *own, bool has_notes)
{
	(void)verdicts, (void)job;
	sink_format(&happened, "support%s%s\n", own ? " by own host" : "",
		    has_notes ? " and notes" : "");
}

static uint64_t play_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? 99 : play.now_ns;
}

static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	(void)fds, (void)count;
	sink_format(&happened, "wait %d ms\n", wait_ms);
	play.now_ns += (uint64_t)wait_ms * MS_NS;
	return 0;
}

static size_t play_stacks(struct recording *recording,
			  bool (*wanted)(const struct recording_process *process, void *context),
			  void *context, const struct stacks_options *how)
{
	sink_format(&happened, "stacks%s%s of", how->may_stop ? ", may stop" : "",
		    how->any_user ? ", any user" : "");
	for (size_t i = 0; i < recording->count; i++)
		if (wanted(recording->processes[i], context))
			sink_format(&happened, " %lld", (long long)recording->processes[i]->rank);
	sink_text(&happened, "\n");
	return play.stacks;
}

static bool play_are_off(void)
{
	return play.are_off;
}

static void play_say_stacks(struct verdicts *verdicts, size_t first, const struct job *job,
			    void *none)
{
	(void)verdicts, (void)job, (void)none;
	sink_format(&happened, "stacks reported from %zu on\n", first);
}

static enum status play_flights(struct recording *recording)
{
	(void)recording;
	errno = EIO;
	return play.flights;
}

static int play_choose(struct cli_input *input, const struct report_filter *chosen,
		       const struct cli_page *page)
{
	if (input != &look.input || chosen->job != NULL || chosen->run != 0 || page != NULL)
		abort();
	return play.choose_code;
}

static void begin(const char *heading)
{
	sink_format(&happened, "=== %s\n", heading);
	memset(&play, 0, sizeof(play));
	play.warning = "";
	play.now_ns = 1000 * SECOND_NS;
	memset(&options, 0, sizeof(options));
	options.hang_ns = 20 * SECOND_NS;
	options.timeout_ns = 5 * SECOND_NS;
	options.parallel = 32;
	memset(&yardstick, 0, sizeof(yardstick));
	memset(&own_host, 0, sizeof(own_host));
	text_copy(own_host.facts.host, sizeof(own_host.facts.host), "node1");
	look = (struct doctor_case){ .options = &options, .yardstick = &yardstick, .stop_fd = 7 };
	cli_input_init(&look.input);
	verdicts_init(&look.verdicts);
	for (int i = 0; i < PROCESSES; i++) {
		processes[i] = (struct recording_process){ .rank = i, .job = "a", .info = "" };
		list[i] = &processes[i];
	}
}

/* The recording does not own these. */
static void set_recording(size_t count)
{
	look.input.recording.processes = list;
	look.input.recording.count = count;
}

static void show_verdicts(void)
{
	for (size_t i = 0; i < look.verdicts.count; i++) {
		const struct verdict *verdict = &look.verdicts.list[i];

		sink_format(&happened, "%s [%s] %s\n", verdict_severity_name(verdict->severity),
			    verdict->rule, verdict->title);
		for (size_t j = 0; j < verdict->evidence.count; j++)
			sink_format(&happened, "  %s\n", verdict->evidence.list[j]);
	}
}

static void end(void)
{
	if (look.input.recording.processes == list)
		look.input.recording.count = 0;
	look.input.recording.processes =
		look.input.recording.processes == list ? NULL : look.input.recording.processes;
	if (look.asked_for.processes == list)
		look.asked_for.processes = NULL;
	steps_included_release(&look);
}

/* ---- agents and Prometheus -------------------------------------------------------------------- */

static void agents(void)
{
	static const int statuses[] = { 0, 401, 403, 404, 503, 500, 1 };
	static const size_t counts[] = { 0, 1, 64, 65, 128, 129, 512, 513, 100000 };
	static struct fetch_target targets[7];
	char name[200];

	for (size_t i = 0; i < ARRAY_LENGTH(targets); i++)
		targets[i] = (struct fetch_target){ .name = "node", .url = "http://node:9749" };
	for (int turn = 0; turn < 2; turn++) {
		begin(turn ? "agents of a job" : "agents");
		play.answers = statuses;
		options.targets.list = targets;
		options.targets.count = turn ? 2 : ARRAY_LENGTH(statuses);
		options.chosen.job = turn ? "my job" : NULL;
		sink_format(&happened, "code %d\n", doctor_read_agents(&look));
		sink_format(&happened, "from %s\n", look.from);
		for (size_t i = 0; i < look.source_count; i++)
			sink_format(&happened, "%s: %d %s\n", look.sources[i].name,
				    look.sources[i].is_silent, look.sources[i].problem);
		sink_format(&happened, "%zu troubles\n", look.input.recording.trouble_count);
		end();
	}
	begin("a job with a name that is too long, of one agent");
	options.targets.list = targets;
	options.targets.count = 1;
	memset(name, 'j', sizeof(name));
	name[JOB_NAME_SIZE] = '\0';
	options.chosen.job = name;
	play.fetch_code = 3;
	sink_format(&happened, "code %d, from %s\n", doctor_read_agents(&look), look.from);
	end();
	for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
		sink_format(&happened, "%zu agents: %zu operations\n", counts[i],
			    operations_wanted(counts[i]));

	begin("variables are hidden");
	set_recording(3);
	processes[1].info = processes[2].info = "env_hidden=1\n";
	processes[0].info = "env_hidden=0\n";
	for (int i = 0; i < 3; i++)
		processes[i].info_bytes = strlen(processes[i].info);
	note_hidden(&look);
	show_verdicts();
	end();
}

static void prometheus(void)
{
	static int statuses[QUERIES_MOST];

	for (size_t i = 0; i < QUERIES_MOST; i++)
		statuses[i] = i < PROM_NEEDED ? 0 : 401;
	begin("Prometheus does not answer");
	play.answers = statuses;
	options.prometheus = "http://prometheus:9090//";
	options.window_ns = 90 * SECOND_NS;
	options.past_ns = 1800 * SECOND_NS;
	options.chosen.job = "train";
	sink_format(&happened, "code %d, from %s\n", doctor_read_prometheus(&look), look.from);
	show_verdicts();
	end();
	begin("nor later");
	options.prometheus = "/";
	options.parallel = 3;
	play.fetch_code = 5;
	sink_format(&happened, "code %d\n", doctor_read_prometheus(&look));
	end();
	begin("slowness from Prometheus");
	options.gpu_hour_price = 2.5;
	play.warning = "too many series";
	play.odd = 4;
	judge_sums(&look);
	show_verdicts();
	end();
	begin("nothing odd");
	judge_sums(&look);
	show_verdicts();
	end();
}

/* ---- logs ------------------------------------------------------------------------------------- */

static int read_logs(const char *heading, const char *first, const char *second)
{
	static const char *logs[2];
	int code;

	begin(heading);
	logs[0] = strdup(command_path(first));
	logs[1] = second ? strdup(command_path(second)) : NULL;
	options.logs = logs;
	options.log_count = second ? 2 : 1;
	code = doctor_read_logs(&look);
	sink_format(&happened, "code %d, %zu files\n", code, look.log.file_count);
	for (size_t i = 0; i < look.log.file_count; i++)
		sink_format(&happened, "%s: %llu lines\n",
			    look.log.files[i].name + strlen(scratch_dir.path),
			    (unsigned long long)look.log.files[i].lines);
	show_verdicts();
	end();
	free((char *)logs[0]);
	free((char *)logs[1]);
	return code;
}

static void logs(void)
{
	static const char text[] = "node1:41:41 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n";
	char path[64] = "deep", file[80];

	command_directory("logs");
	command_directory("logs/b");
	command_write_text("logs/c.log", text);
	command_write_text("logs/a.log", text);
	command_write_text("logs/b/x.log", text);
	command_write_text("logs/.hidden", text);
	command_write_text("other.log", "nothing of NCCL\n");
	if (symlink("a.log", command_path("logs/link")) != 0 ||
	    symlink("logs", command_path("linked")) != 0 ||
	    mkfifo(command_path("logs/pipe"), 0600) != 0)
		abort();
	read_logs("a directory", "logs", NULL);
	read_logs("a link to one, and a file", "linked", "logs/a.log");
	read_logs("a file of something else", "other.log", NULL);
	read_logs("two of them", "other.log", "other.log");
	read_logs("nothing there", "nowhere", "logs/a.log");
	begin("a watch waits for lines");
	options.is_watch = true;
	EXPECT(check_lines(&look) == 0);
	end();
	/* The ninth level is left out. */
	for (int i = 0; i < 10; i++) {
		command_directory(path);
		snprintf(file, sizeof(file), "%s/%d.log", path, i);
		command_write_text(file, text);
		text_append(path, sizeof(path), "/%d", i);
	}
	read_logs("nested", "deep", NULL);
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static struct verdict *add_verdict(enum verdict_class class, enum verdict_severity severity,
				   int64_t rank, const char *job)
{
	struct verdict *verdict = verdicts_add(&look.verdicts, class, severity);

	verdict->rank = rank;
	verdict->peer = -1;
	text_copy(verdict->job, sizeof(verdict->job), job);
	return verdict;
}

static void prices(void)
{
	struct verdict *verdict;

	begin("prices");
	options.gpu_hour_price = 2;
	verdict = add_verdict(VERDICT_NEVER_ISSUED, VERDICT_ERROR, 0, "a");
	verdict->victims = 2;
	verdict->for_ns = 3600 * SECOND_NS;
	verdict = add_verdict(VERDICT_SLOW_RANK, VERDICT_WARNING, 0, "a");
	verdict->gpu_hours = 5;
	verdict = add_verdict(VERDICT_SLOW_RANK, VERDICT_WARNING, 0, "a");
	verdict->gpu_hours = 5;
	verdict->money = 7;
	put_price(&look);
	for (size_t i = 0; i < look.verdicts.count; i++)
		sink_format(&happened, "%.1f hours, %.1f\n", look.verdicts.list[i].gpu_hours,
			    look.verdicts.list[i].money);
	end();
}

/* What looks slow because it hangs becomes a note. */
static void tempers(void)
{
	static const struct {
		enum verdict_class class;
		enum verdict_severity severity;
		int64_t rank, peer;
		const char *job;
	} cases[] = {
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, 3, -1, "a" },
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, 4, 3, "a" },
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, 4, -1, "a" },
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, 3, -1, "b" },
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, 5, -1, "a" },
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, -1, -1, "a" },
		{ VERDICT_SETUP, VERDICT_WARNING, 3, -1, "a" },
		{ VERDICT_SLOW_RANK, VERDICT_WARNING, 0, -1, "a" },
		{ VERDICT_NEVER_ISSUED, VERDICT_ERROR, 3, -1, "a" },
		{ VERDICT_NEVER_ISSUED, VERDICT_WARNING, 5, -1, "a" },
		{ VERDICT_NEVER_ISSUED, VERDICT_ERROR, -1, -1, "a" },
		{ VERDICT_NEVER_ISSUED, VERDICT_ERROR, 0, -1, "a" },
	};

	begin("slow because it hangs");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		add_verdict(cases[i].class, cases[i].severity, cases[i].rank, cases[i].job)->peer =
			cases[i].peer;
	temper_slowness(&look.verdicts);
	for (size_t i = 0; i < look.verdicts.count; i++)
		sink_format(&happened, "%zu %s\n", i,
			    verdict_severity_name(look.verdicts.list[i].severity));
	end();
}

static void stacks(void)
{
	begin("stacks of hung jobs");
	look.asked_for = (struct recording){ .processes = list, .count = PROCESSES };
	text_copy(processes[2].job, sizeof(processes[2].job), "b");
	text_copy(processes[4].job, sizeof(processes[4].job), "b");
	add_verdict(VERDICT_NEVER_ISSUED, VERDICT_ERROR, 0, "c");
	take_stacks(&look, 1);
	add_verdict(VERDICT_SLOW_RANK, VERDICT_ERROR, 0, "a");
	add_verdict(VERDICT_NEVER_ISSUED, VERDICT_WARNING, 0, "d");
	take_stacks(&look, 1);
	add_verdict(VERDICT_NEVER_ISSUED, VERDICT_ERROR, 0, "b");
	add_verdict(VERDICT_SLOW_RANK, VERDICT_ERROR, 0, "a");
	take_stacks(&look, 1);
	play.stacks = 1;
	options.has_native = options.has_any_user = true;
	take_stacks(&look, 1);
	options.has_no_stacks = true;
	take_stacks(&look, 1);
	options.has_no_stacks = false;
	play.are_off = true;
	take_stacks(&look, 1);
	end();
}

static void ras(void)
{
	static struct recording_note notes[] = {
		{ .path = "a/ras/status.txt", .text = "text", .length = 4 },
		{ .path = "a/ras/status.json", .text = "json", .length = 4 },
		{ .path = "b/ras/status.json", .text = "!son", .length = 4 },
		{ .path = "b/agent.json", .text = "note", .length = 4 },
	};

	begin("RAS in a bundle");
	look.input.recording.notes = notes;
	look.input.recording.note_count = ARRAY_LENGTH(notes);
	judge_ras(&look);
	sink_text(&happened, "-- no JSON that can be read\n");
	notes[1].text = "!";
	judge_ras(&look);
	notes[1].text = "json";
	look.input.recording.notes = NULL;
	look.input.recording.note_count = 0;
	sink_text(&happened, "-- asked\n");
	options.ras = "local";
	judge_ras(&look);
	options.ras = "node1:28028";
	judge_ras(&look);
	play.ras_read = ERR_FORMAT;
	judge_ras(&look);
	play.ras = ERR_SYSTEM;
	judge_ras(&look);
	show_verdicts();
	sink_text(&happened, "-- by a watch, with a hang only\n");
	options.is_watch = true;
	judge_ras(&look);
	add_verdict(VERDICT_NEVER_ISSUED, VERDICT_WARNING, 0, "a");
	add_verdict(VERDICT_SLOW_RANK, VERDICT_WARNING, 0, "a");
	judge_ras(&look);
	end();
}

/* Counters of this host are read twice, a second apart, if a verdict is about it. */
static void hosts(void)
{
	static const struct {
		const char *what, *host;
		enum verdict_class class;
		uint64_t step_ns;
	} cases[] = {
		{ "nothing here", "node2", VERDICT_NEVER_ISSUED, 0 },
		{ "a setting here", "node1", VERDICT_SETUP, 0 },
		{ "a hang here", "node1", VERDICT_NEVER_ISSUED, 250 * MS_NS },
		{ "slowness here", "node1", VERDICT_SLOW_RANK, 999 * MS_NS },
		{ "a slow reading", "node1", VERDICT_SLOW_RANK, SECOND_NS },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin(cases[i].what);
		yardstick.host = &own_host;
		play.step_ns = cases[i].step_ns;
		add_verdict(VERDICT_BLIND, VERDICT_NOTE, 0, "a");
		text_copy(add_verdict(cases[i].class, VERDICT_ERROR, 0, "a")->host, 64,
			  cases[i].host);
		support_verdicts(&look);
		sink_text(&happened, "-- again\n");
		support_verdicts(&look);
		end();
	}
	begin("no host");
	support_verdicts(&look);
	end();
}

/* ---- jobs ------------------------------------------------------------------------------------- */

static void show_chosen(int code)
{
	sink_format(&happened, "code %d, from '%s', ranks", code, look.from);
	for (size_t i = 0; i < look.asked_for.count; i++)
		sink_format(&happened, " %lld", (long long)look.asked_for.processes[i]->rank);
	sink_text(&happened, "\n");
}

/* Two processes each of three jobs. */
static void three_jobs(const char *heading, const enum recording_life lives[PROCESSES])
{
	begin(heading);
	set_recording(PROCESSES);
	for (int i = 0; i < PROCESSES; i++) {
		text_copy(processes[i].job, sizeof(processes[i].job),
			  i < 2	  ? "a"
			  : i < 4 ? "b"
				  : "c");
		processes[i].life = lives[i];
	}
	text_copy(look.from, sizeof(look.from), "here");
}

static void jobs(void)
{
	static const enum recording_life some[] = { RECORDING_ENDED,   RECORDING_KILLED,
						    RECORDING_ENDED,   RECORDING_ALIVE,
						    RECORDING_UNKNOWN, RECORDING_ENDED },
					 dead[PROCESSES] = { RECORDING_ENDED,  RECORDING_KILLED,
							     RECORDING_ENDED,  RECORDING_ENDED,
							     RECORDING_KILLED, RECORDING_ENDED };

	three_jobs("ended jobs are left out", some);
	show_chosen(choose_job(&look));
	end();
	three_jobs("unless all have ended", dead);
	show_chosen(choose_job(&look));
	end();
	three_jobs("or they are files", some);
	options.path_count = 1;
	show_chosen(choose_job(&look));
	end();
	three_jobs("one by name", dead);
	options.chosen.job = "b";
	show_chosen(choose_job(&look));
	end();
	three_jobs("a run that there is not", dead);
	options.chosen.run = 4;
	show_chosen(choose_job(&look));
	end();
	three_jobs("for a watch it may come", dead);
	options.chosen.run = 4;
	options.is_watch = true;
	show_chosen(choose_job(&look));
	end();
	three_jobs("nor a job of that name", dead);
	options.chosen.job = "d";
	options.is_watch = true;
	show_chosen(choose_job(&look));
	end();
	begin("nothing");
	show_chosen(choose_job(&look));
	end();
}

static void moments(void)
{
	struct recording recording = { .processes = list, .count = 3 };
	static struct region region;

	begin("moments");
	processes[0].snapshot_wall_ns = 5;
	processes[1].snapshot_wall_ns = 7;
	processes[1].life = RECORDING_ALIVE;
	processes[2].snapshot_wall_ns = 6;
	EXPECT_THAT("of snapshots, the newest counts", moment_of_files(&recording) == 7);
	processes[1].region = &region;
	EXPECT_THAT("of a process that runs, now", moment_of_files(&recording) == 99);
	processes[1].region = NULL;
	processes[2].snapshot_wall_ns = 0;
	processes[2].life = RECORDING_ALIVE;
	EXPECT(moment_of_files(&recording) == 99);
	processes[2].life = RECORDING_KILLED;
	EXPECT(moment_of_files(&recording) == 7);
	look.asked_for = recording;
	EXPECT_THAT("of regions, now", moment_of(&look) == 99);
	options.path_count = 1;
	EXPECT_THAT("of files, theirs", moment_of(&look) == 7);
	options.path_count = 0;
	options.log_count = 1;
	EXPECT_THAT("of logs alone, none", moment_of(&look) == 0);
	options.has_agents = true;
	EXPECT(moment_of(&look) == 99);
	end();
}

static void emptiness(void)
{
	begin("nothing is recorded");
	EXPECT_EQUAL(check_emptiness(&look), CLI_EXIT_UNKNOWN);
	options.is_watch = true;
	EXPECT_EQUAL(check_emptiness(&look), 0);
	options.is_watch = false;
	look.has_log = true;
	EXPECT_THAT("a log is something", check_emptiness(&look) == 0);
	options.path_count = 1;
	EXPECT_THAT("but not for a path", check_emptiness(&look) == CLI_EXIT_UNKNOWN);
	look.has_log = false;
	options.path_count = 0;
	options.log_count = 1;
	EXPECT_EQUAL(check_emptiness(&look), 0);
	options.log_count = 0;
	look.source_count = 1;
	EXPECT_EQUAL(check_emptiness(&look), 0);
	look.source_count = 0;
	set_recording(1);
	EXPECT_EQUAL(check_emptiness(&look), 0);
	play.flights = ERR_SYSTEM;
	EXPECT_EQUAL(find_flights(&look), CLI_EXIT_UNKNOWN);
	play.flights = ERR_FORMAT;
	EXPECT_EQUAL(find_flights(&look), CLI_EXIT_UNKNOWN);
	play.flights = OK;
	EXPECT_EQUAL(find_flights(&look), 0);
	end();
}

/* --rank and --comm select verdicts; one about all ranks includes them. */
static void chosen_verdicts(void)
{
	static const struct {
		int64_t rank, peer;
		const char *comm;
	} cases[] = {
		{ 3, -1, "" },	 { 4, -1, "" },	  { 4, 3, "" },	 { -1, -1, "" }, { -1, 4, "world" },
		{ 3, -1, "tp" }, { 3, -1, "dp" }, { 5, -1, "" }, { 6, 0, "" },	 { 6, -1, "world" },
	};
	static struct job_comm comms[] = { { .label = "tp", .name = "tp" },
					   { .label = "world", .name = "world" } };

	begin("verdicts that were asked for");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct verdict *verdict =
			add_verdict(VERDICT_SLOW_RANK, VERDICT_WARNING, cases[i].rank, "a");

		verdict->peer = cases[i].peer;
		text_copy(verdict->comm, sizeof(verdict->comm), cases[i].comm);
	}
	options.chosen.job = "a";
	options.chosen.run = 1;
	EXPECT_THAT("nothing was chosen",
		    choose_verdicts(&look) == 0 && look.verdicts.count == ARRAY_LENGTH(cases));
	options.chosen.filter.ranks[0] = (struct filter_range){ 3, 3 };
	options.chosen.filter.ranks[1] = (struct filter_range){ 5, 5 };
	options.chosen.filter.range_count = 2;
	EXPECT_THAT("there is no job",
		    choose_verdicts(&look) == 0 && look.verdicts.count == ARRAY_LENGTH(cases));
	look.has_job = true;
	look.job.comms = comms;
	look.job.comm_count = 2;
	play.choose_code = 3;
	EXPECT_EQUAL(choose_verdicts(&look), 3);
	options.is_watch = true;
	EXPECT_EQUAL(choose_verdicts(&look), 0);
	play.choose_code = 0;
	for (int turn = 0; turn < 2; turn++) {
		EXPECT_EQUAL(choose_verdicts(&look), 0);
		for (size_t i = 0; i < look.verdicts.count; i++)
			sink_format(&happened, "rank %lld, peer %lld, %s\n",
				    (long long)look.verdicts.list[i].rank,
				    (long long)look.verdicts.list[i].peer,
				    look.verdicts.list[i].comm);
		sink_format(&happened, "-- %zu are hidden\n", look.hidden);
		options.chosen.filter.comms[0] = "world";
		options.chosen.filter.comm_count = 1;
		options.chosen.filter.range_count = 0;
	}
	look.has_job = false;
	end();
}

static void shown(void)
{
	static struct hang_source sources[] = { { .is_silent = true },
						{ .is_silent = false },
						{ .is_silent = true } };
	static struct nccl_log_file files[] = { { .lines = 5 }, { .lines = 7 } };
	struct verdict_look found;

	begin("what is shown");
	look.sources = sources;
	look.source_count = 3;
	look.log = (struct nccl_log){ .files = files, .file_count = 2 };
	found = steps_included_look(&look);
	EXPECT(found.silent == 2 && found.sources == 3 && found.source == NULL);
	EXPECT(found.log_lines == 0 && found.log_files == 0 && !found.has_speed_reference);
	look.has_log = true;
	options.peak_network = 1;
	text_copy(look.from, sizeof(look.from), "here");
	found = steps_included_look(&look);
	EXPECT(found.log_lines == 12 && found.log_files == 2 && found.has_speed_reference);
	EXPECT(found.source == look.from && found.hang_ns == 20 * SECOND_NS);
	options.peak_network = 0;
	options.peak_nvlink = 1;
	EXPECT(steps_included_look(&look).has_speed_reference);
	options.peak_nvlink = 0;
	yardstick.has_expected = true;
	EXPECT(steps_included_look(&look).has_speed_reference);
	yardstick = (struct doctor_yardstick){ .has_baseline = true };
	EXPECT(steps_included_look(&look).has_speed_reference);
	look.yardstick = NULL;
	EXPECT(!steps_included_look(&look).has_speed_reference);
	look.sources = NULL;
	look.source_count = 0;
	look.has_log = false;
	end();
}

static void errors_go_to(const char *name)
{
	int fd = open(command_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

int main(void)
{
	int before = dup(STDERR_FILENO);
	struct sink tidy;
	size_t length;
	char *errors;

	command_begin();
	sink_init_memory(&happened);
	errors_go_to("errors");
	agents();
	prometheus();
	logs();
	prices();
	tempers();
	stacks();
	ras();
	hosts();
	jobs();
	moments();
	emptiness();
	chosen_verdicts();
	shown();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	errors = command_read(command_path("errors"), &length);
	sink_format(&happened, "=== errors\n%s", errors);
	free(errors);
	sink_init_memory(&tidy);
	command_tidy(&tidy, sink_string(&happened));
	sink_release(&happened);
	EXPECT_THAT("the doctor's steps",
		    expected_text(&tidy, "tests/unit/cmds/expected/doctor-steps"));
	return tap_done();
}
