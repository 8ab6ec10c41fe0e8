#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "output/metrics.h"

#define AGENT_KERNEL_PAUSE_NS UINT64_C(600000000000)

#define IDLE_NS (10 * SECOND_NS)
#define SLOWEST_NS (4 * SECOND_NS)
#define HOST_PAUSE_NS (30 * SECOND_NS)
/* While a child reads. */
#define HOST_POLL_NS (100 * MS_NS)
enum { PAUSE_PER_COST = 200 };
/* The file of a region exists before its contents. */
#define BUSY_NS (4 * SECOND_NS)
/* Of reading processes, in bytes: some milliseconds. */
#define STEP_EFFORT (UINT64_C(4) << 20)
/* While what was found is examined. */
#define SEARCHING_NS (100 * MS_NS)
/* Of a judgement, which is cut off by CPU time before: on a node without idle cores. */
#define JUDGE_NS (60 * SECOND_NS)
#define JUDGE_POLL_NS (100 * MS_NS)
/* Half of what the unit has. */
#define JUDGE_BYTES (UINT64_C(128) << 20)
enum { JUDGEMENT_BYTES_MAX = 4 << 20 };

enum status agent_look_init(struct agent_look *look, const struct watch_settings *settings,
			    const struct live_limits *limits)
{
	*look = (struct agent_look){ .limits = *limits,
				     .start_wall_ns = clock_system_ns(CLOCK_REALTIME) };
	look->epoll = -1;
	live_init(&look->live, limits);
	return watch_init(&look->watch, settings);
}

void agent_look_release(struct agent_look *look)
{
	hub_child_release(&look->judge);
	live_release(&look->live);
	watch_release(&look->watch);
}

/* `live` points into the recording, so it is updated even if that could not be read. */
static enum status think(struct agent_look *look)
{
	enum status status;

	if (look->probe != NULL)
		agent_probe_refresh(look->probe, &look->watch.recording, look->begun_ns);
	status = live_look(&look->live, &look->watch.recording, look->begun_ns,
			   clock_system_ns(CLOCK_REALTIME));
	if (status != OK) {
		live_release(&look->live);
		live_init(&look->live, &look->limits);
	}
	return look->read != OK ? look->read : status;
}

/* ---- speed ------------------------------------------------------------------------------------ */

/*
 * From the child, which is a fork of this program: the judgement and the verdicts as they are in memory, each verdict
 * followed by its lines.
 */
static void write_lines(struct sink *sink, const struct verdict_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		sink_write(sink, lines->list[i], strlen(lines->list[i]) + 1);
}

static int judge_work(const char *input, void *context)
{
	struct agent_look *look = context;
	struct live_judgement *judgement = &look->judgement;
	struct sink sink;

	(void)input;
	hub_child_close_others(true);
	live_judge_compare(&look->live, judgement);
	sink_init_fd(&sink, STDOUT_FILENO);
	sink_write(&sink, judgement, sizeof(*judgement));
	for (size_t i = 0; i < judgement->found.count; i++) {
		const struct verdict *verdict = &judgement->found.list[i];

		sink_write(&sink, verdict, sizeof(*verdict));
		write_lines(&sink, &verdict->evidence);
		write_lines(&sink, &verdict->missing);
		write_lines(&sink, &verdict->advice);
	}
	return sink_flush(&sink) == OK ? 0 : 1;
}

/* What is left of the child's output. */
struct rest {
	char *at, *end;
};

static bool take_bytes(struct rest *rest, void *to, size_t length)
{
	if ((size_t)(rest->end - rest->at) < length)
		return false;
	memcpy(to, rest->at, length);
	rest->at += length;
	return true;
}

/* Borrowed from the output; `list` has room for VERDICT_LINES_MAX. */
static bool take_lines(struct rest *rest, struct verdict_lines *lines, char **list)
{
	lines->list = list;
	for (size_t i = 0; i < lines->count; i++) {
		char *end = rest->at < rest->end
				    ? memchr(rest->at, '\0', (size_t)(rest->end - rest->at))
				    : NULL;

		if (end == NULL || i == VERDICT_LINES_MAX)
			return false;
		list[i] = rest->at;
		rest->at = end + 1;
	}
	return true;
}

static bool take_judgement(struct live_judgement *judgement, const struct hub_child *child)
{
	struct rest rest = { child->bytes, child->bytes + child->used };
	char *lines[3][VERDICT_LINES_MAX];
	struct live_judgement made;
	struct verdict verdict;

	if (child->code != 0 || !take_bytes(&rest, &made, sizeof(made)))
		return false;
	for (size_t i = 0; i < made.found.count; i++) {
		if (!take_bytes(&rest, &verdict, sizeof(verdict)) ||
		    !take_lines(&rest, &verdict.evidence, lines[0]) ||
		    !take_lines(&rest, &verdict.missing, lines[1]) ||
		    !take_lines(&rest, &verdict.advice, lines[2]))
			return false;
		verdicts_add_copy(&judgement->found, &verdict);
	}
	made.found = judgement->found;
	*judgement = made;
	return true;
}

/* A judgement counts against a budget of its own, so that expensive ones do not make scans less frequent. */
static void end_judgement(struct agent_look *look)
{
	if (!take_judgement(&look->judgement, &look->judge)) {
		agent_log(AGENT_WARNING, "cannot judge the speed of a job: %s", look->judge.why);
		look->judgement.status = ERR_SYSTEM;
	}
	look->judgements++;
	look->judged_ns += look->judge.cpu_ns;
	live_judge_end(&look->live, &look->judgement, look->judge.cpu_ns);
	hub_child_release(&look->judge);
}

uint64_t agent_look_judge(struct agent_look *look, uint64_t now_ns)
{
	const struct hub_child_task task = { .work = judge_work,
					     .context = look,
					     .timeout_ns = JUDGE_NS,
					     .limit_bytes = JUDGEMENT_BYTES_MAX,
					     .memory_bytes = JUDGE_BYTES };

	if (look->judge.begun_ns != 0) {
		if (!hub_child_has_ended(&look->judge, now_ns))
			return now_ns + JUDGE_POLL_NS;
		end_judgement(look);
	}
	if (look->status != OK || look->judged_look == look->number)
		return UINT64_MAX;
	look->judged_look = look->number;
	if (!live_judge_begin(&look->live, look->last_ns, &look->judgement))
		return UINT64_MAX;
	hub_child_start(&look->judge, &task, look->epoll, now_ns);
	return now_ns + JUDGE_POLL_NS;
}

/* ---- facts of the host ------------------------------------------------------------------------ */

uint64_t agent_look_host(struct agent_look *look, uint64_t now_ns)
{
	struct cli_host_watch *host = look->host;

	if (host == NULL)
		return UINT64_MAX;
	if (host->child.pid != 0 &&
	    !cli_host_take(&host->child, &host->facts, now_ns, clock_system_ns(CLOCK_REALTIME)))
		return now_ns + HOST_POLL_NS;
	if (look->watch.recording.count == 0)
		return UINT64_MAX;
	if (now_ns < look->next_host_ns)
		return look->next_host_ns;
	look->next_host_ns = now_ns + HOST_PAUSE_NS;
	cli_host_watch_read(host, &look->watch.recording, false, now_ns);
	return host->child.pid != 0 ? now_ns + HOST_POLL_NS : look->next_host_ns;
}

/* A new verdict wants new facts. */
static void support_verdicts(struct agent_look *look, uint64_t now_ns)
{
	size_t count = look->live.verdicts.count;

	if (look->host == NULL || look->status != OK || look->live.job.recording == NULL)
		return;
	if (count > look->supported)
		look->next_host_ns = now_ns;
	look->supported = count;
	if (count == 0)
		return;
	host_log_read(&look->host->log, &look->host->facts, clock_system_ns(CLOCK_REALTIME));
	host_support(&look->live.verdicts, &look->live.job, &look->host->facts, false);
}

static void tell_failure(const struct agent_look *look, enum status before)
{
	if (look->status != OK && before == OK)
		agent_log(AGENT_ERROR, "cannot scan processes: %s",
			  look->status == ERR_SYSTEM ? strerror(errno) : status_text(look->status));
	if (look->status == OK && before != OK)
		agent_log(AGENT_NOTICE, "scanning processes works again");
}

/* One line per scan, whatever is in that directory. */
static void tell_refused(struct agent_look *look)
{
	const struct watch_refused *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < look->watch.refused_count; i++) {
		struct watch_refused *refused = &look->watch.refused[i];

		if (refused->is_told)
			continue;
		refused->is_told = true;
		first = first ? first : refused;
		count++;
	}
	if (count == 1)
		agent_log(AGENT_WARNING, "cannot read %s: %s", first->path, first->why);
	else if (count > 1)
		agent_log(AGENT_WARNING, "cannot read %s: %s; and %zu more files", first->path,
			  first->why, count - 1);
}

static bool was_told(const struct agent_look *look, uint32_t uid)
{
	for (size_t i = 0; i < look->told_count; i++)
		if (look->told[i] == uid)
			return true;
	return false;
}

/* One line per user, until nothing is left out of that user any more. */
static void tell_left_out(struct agent_look *look)
{
	const struct recording *recording = &look->watch.recording;
	uint32_t told[AGENT_LOOK_TOLD];
	size_t count = 0;

	for (size_t i = 0; i < recording->left_out_count && count < AGENT_LOOK_TOLD; i++) {
		const struct recording_left_out *one = &recording->left_out[i];

		told[count++] = one->owner;
		if (!was_told(look, one->owner))
			agent_log(AGENT_WARNING,
				  "user %" PRIu32 " has more than the agent follows: %zu processes "
				  "and the rest of %zu directories are left out",
				  one->owner, one->processes, one->directories);
	}
	memcpy(look->told, told, count * sizeof(*told));
	look->told_count = count;
}

/* Once: with a wrong --host the agent would follow nothing, and say nothing. */
static void tell_other_host(struct agent_look *look)
{
	const struct watch *watch = &look->watch;

	if (watch->other_host[0] == '\0' || look->is_other_host_told)
		return;
	look->is_other_host_told = true;
	agent_log(AGENT_WARNING,
		  "processes recorded on host %s are ignored: --host says that this is %s",
		  watch->other_host, watch->settings.only_host);
}

/* The first scan of a process is more expensive than later ones, so the cheaper of two counts. */
static void note_cost(struct agent_look *look, uint64_t cost_ns)
{
	look->cost_ns = cost_ns < look->last_cost_ns ? cost_ns : look->last_cost_ns;
	look->last_cost_ns = cost_ns;
}

static uint64_t fair_pause(const struct agent_look *look)
{
	uint64_t fair_ns = look->cost_ns * PAUSE_PER_COST;

	if (fair_ns < SECOND_NS)
		return SECOND_NS;
	return fair_ns < SLOWEST_NS ? fair_ns : SLOWEST_NS;
}

/* Time until the next scan. */
static uint64_t pause_of(const struct agent_look *look, uint64_t now_ns)
{
	/* Clients are served between two scans, and a long search goes on there. */
	if (watch_is_searching(&look->watch))
		return SEARCHING_NS;
	if (look->watch.recording.count == 0 && now_ns >= look->busy_until_ns)
		return IDLE_NS;
	return fair_pause(look);
}

static void begin_scan(struct agent_look *look, uint64_t now_ns)
{
	look->is_scanning = true;
	look->is_read = false;
	look->begun_ns = now_ns;
	look->steps_ns = 0;
	look->next_ns = UINT64_MAX;
	watch_look_begin(&look->watch, WATCH_TOTALS, now_ns);
}

static void end_scan(struct agent_look *look, uint64_t now_ns)
{
	uint64_t next_ns = look->begun_ns + pause_of(look, now_ns);

	look->is_scanning = false;
	look->failures += look->status != OK;
	look->number++;
	look->last_ns = look->begun_ns;
	/* What came meanwhile may have made it due earlier. */
	look->next_ns = next_ns < look->next_ns ? next_ns : look->next_ns;
	if (look->probe != NULL)
		agent_probe_add(look->probe, &look->live, look->begun_ns);
	support_verdicts(look, now_ns);
}

bool agent_look_step(struct agent_look *look, uint64_t now_ns)
{
	uint64_t start_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	enum status before = look->status;
	bool is_last = look->is_scanning && look->is_read;

	if (!look->is_scanning && now_ns < look->next_ns)
		return false;
	if (!look->is_scanning)
		begin_scan(look, now_ns);
	if (is_last)
		look->status = think(look);
	else
		look->read = watch_look_step(&look->watch, STEP_EFFORT, &look->is_read);
	look->steps_ns += clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
	look->spent_ns += clock_system_ns(CLOCK_MONOTONIC) - now_ns;
	if (!is_last)
		return true;
	note_cost(look, look->steps_ns);
	end_scan(look, now_ns);
	tell_failure(look, before);
	tell_refused(look);
	tell_left_out(look);
	tell_other_host(look);
	return true;
}

bool agent_look_search(struct agent_look *look)
{
	return watch_search_more(&look->watch);
}

bool agent_look_fresh(struct agent_look *look, uint64_t now_ns)
{
	/* While one is under way, the one before is good enough. */
	uint64_t most_ns = fair_pause(look) * (look->is_scanning ? 2 : 1);

	if (look->last_ns != 0 && now_ns - look->last_ns < most_ns)
		return true;
	if (!look->is_scanning)
		look->next_ns = now_ns;
	return false;
}

void agent_look_heed(struct agent_look *look, uint64_t now_ns)
{
	uint64_t soon = (look->is_scanning ? look->begun_ns : look->last_ns) + SECOND_NS;

	if (!watch_heed(&look->watch))
		return;
	look->busy_until_ns = now_ns + BUSY_NS;
	if (soon < look->next_ns)
		look->next_ns = soon;
}

/* ---- the agent ------------------------------------------------------------------------------- */

uint64_t agent_look_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size, resident = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
	DIR *list = opendir("/proc/self/fd");
	uint64_t count = 0;

	while (list && readdir(list))
		count++;
	if (list)
		closedir(list);
	/* Do not count ".", ".." and the open directory itself. */
	return count > 3 ? count - 3 : 0;
}

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_usec * 1000;
}

void agent_look_self(const struct agent_look *look, struct metrics_agent *agent)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	*agent = (struct metrics_agent){
		.version = RINGSIDE_VERSION,
		.looks = look->number,
		.look_ns = look->spent_ns,
		.judgements = look->judgements,
		.judge_ns = look->judged_ns,
		.cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime),
		.refused = look->watch.refused_count,
		.unreadable = look->watch.unreadable,
		.left_out = look->watch.left_out,
		.resident_bytes = agent_look_resident_bytes(),
		.open_fds = open_fds(),
		.start_wall_ns = look->start_wall_ns,
		.verdicts = look->verdicts,
		.kernel = look->kernel,
	};
}

static const char prefix[] = "ringside-";
static const char suffix[] = ".prom";
static const char unfinished[] = ".new";

/* ---- names ----------------------------------------------------------------------------------- */

void agent_textfile_name(const struct recording_process *process,
			 char name[static AGENT_TEXTFILE_NAME])
{
	char gpu[64] = "gpu", namespace[32] = "";

	/* The first processes of two containers, started together, have the same pid and start. */
	if (process->pid_namespace != 0 && process->pid_namespace != file_proc_namespace("self"))
		text_format(namespace, sizeof(namespace), "-ns%" PRIu64, process->pid_namespace);
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;

		if (info->gpu_uuid[0]) {
			text_from_field(gpu, sizeof(gpu), info->gpu_uuid, sizeof(info->gpu_uuid));
			break;
		}
		if (info->gpu >= 0) {
			text_format(gpu, sizeof(gpu), "gpu%d", (int)info->gpu);
			break;
		}
	}
	for (char *at = gpu; *at != '\0'; at++)
		if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
		    !(*at >= '0' && *at <= '9') && *at != '-')
			*at = '_';
	text_format(name, AGENT_TEXTFILE_NAME, "%s%s%s-%" PRId64 "-%" PRIu64 "%s", prefix, gpu,
		    namespace, process->pid, process->start_ticks, suffix);
}

/* Digits that end at `end`, after a dash. Returns the position of the dash, or NULL. */
static const char *number_before(const char *start, const char *end)
{
	const char *at = end;

	while (at > start && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return at < end && at > start && at[-1] == '-' ? at - 1 : NULL;
}

static const char *name_without(const char *start, const char *end, const char *ending)
{
	size_t length = strlen(ending);

	return (size_t)(end - start) >= length && memcmp(end - length, ending, length) == 0
		       ? end - length
		       : NULL;
}

bool agent_textfile_is_ours(const char *name)
{
	const char *end = name + strlen(name), *cut;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	cut = name_without(name, end, unfinished);
	end = name_without(name, cut ? cut : end, suffix);
	end = end ? number_before(name, end) : NULL;
	end = end ? number_before(name, end) : NULL;
	return end && end > name;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* By name, for bsearch. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Removes our files except for those in the list. */
static void remove_others(const struct agent_textfile *to, const void *keep, size_t count)
{
	int fd = openat(to->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd == -1 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (list && (entry = readdir(list)) != NULL)
		if (agent_textfile_is_ours(entry->d_name) &&
		    !(count &&
		      bsearch(entry->d_name, keep, count, AGENT_TEXTFILE_NAME, compare_names)))
			unlinkat(to->fd, entry->d_name, 0);
	if (list)
		closedir(list);
	else if (fd != -1)
		close(fd);
}

static bool put_file(const struct agent_textfile *to, const char *name, const struct sink *text)
{
	char beside[AGENT_TEXTFILE_NAME + 8];
	struct sink sink;
	bool is_good;
	int fd;

	text_format(beside, sizeof(beside), "%s%s", name, unfinished);
	unlinkat(to->fd, beside, 0);
	fd = openat(to->fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd == -1)
		return false;
	sink_init_fd(&sink, fd);
	sink_write(&sink, text->bytes, text->used);
	is_good = sink_flush(&sink) == OK && fchmod(fd, 0644) == 0;
	sink_release(&sink);
	if (close(fd) == -1 || !is_good || renameat(to->fd, beside, to->fd, name) == -1) {
		int error = errno;

		unlinkat(to->fd, beside, 0);
		errno = error;
		return false;
	}
	return true;
}

static bool write_process(const struct agent_textfile *to, const struct live *live, size_t index,
			  const char *name)
{
	struct sink text;
	bool is_good;

	sink_init_memory(&text);
	metrics_write(&text, METRICS_TEXT, live, NULL, (long)index);
	errno = ENOMEM;
	is_good = text.status == OK && text.bytes && put_file(to, name, &text);
	sink_release(&text);
	return is_good;
}

void agent_textfile_write(struct agent_textfile *to, const struct live *live, uint64_t now_ns)
{
	const struct recording *recording = live->job.recording;
	size_t count = recording ? recording->count : 0, failed = 0;
	char(*names)[AGENT_TEXTFILE_NAME] = calloc(count + 1, sizeof(*names));
	int error = ENOMEM;

	to->next_ns = now_ns + to->interval_ns;
	for (size_t i = 0; names && i < count; i++) {
		agent_textfile_name(recording->processes[i], names[i]);
		if (!write_process(to, live, i, names[i])) {
			error = errno;
			failed++;
		}
	}
	if (names) {
		qsort(names, count, sizeof(*names), compare_names);
		remove_others(to, names, count);
		to->count = count;
	}
	if ((names == NULL || failed) && !to->is_failing)
		agent_log(AGENT_ERROR, "cannot write files in %s: %s", to->directory,
			  strerror(error));
	else if (names && !failed && to->is_failing)
		agent_log(AGENT_NOTICE, "writing files in %s works again", to->directory);
	to->is_failing = names == NULL || failed;
	free(names);
}

int agent_textfile_open(struct agent_textfile *to, const char *directory, uint64_t interval_ns)
{
	*to = (struct agent_textfile){ .fd = -1, .interval_ns = interval_ns };
	if (directory == NULL)
		return 0;
	to->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to->fd == -1 || faccessat(to->fd, ".", W_OK | X_OK, AT_EACCESS) == -1)
		return agent_log(AGENT_ERROR, "cannot write files in %s: %s", directory,
				 strerror(errno));
	to->directory = directory;
	remove_others(to, NULL, 0);
	return 0;
}

void agent_textfile_close(struct agent_textfile *to)
{
	if (to->directory)
		remove_others(to, NULL, 0);
	if (to->fd != -1)
		close(to->fd);
	to->fd = -1;
	to->directory = NULL;
}

enum { NAME = 140 };

void agent_kernel_release(struct agent_kernel *kernel)
{
	for (size_t i = 0; i < kernel->count; i++)
		free(kernel->jobs[i].asked);
	kernel->count = 0;
}

static const char *job_text(const char *name, char text[static NAME])
{
	text_format(text, NAME, name[0] ? "job %s" : "an unnamed job", name);
	return text;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static const struct recording_process *find_process(const struct watch *watch,
						    const struct agent_kernel_asked *asked)
{
	for (size_t i = 0; i < watch->recording.count; i++) {
		const struct watch_file *file = &watch->processes[i].file;

		if (file->device == asked->device && file->inode == asked->inode &&
		    watch->processes[i].died_ns == 0)
			return watch->recording.processes[i];
	}
	return NULL;
}

struct answers {
	size_t granted, other;
	enum recording_answer last;
	const char *reason; /* of the last other answer */
};

static void count_answer(struct agent_kernel *kernel, const struct recording_ask *ask,
			 struct answers *answers)
{
	if (ask->answer == RECORDING_GRANTED) {
		kernel->totals[METRICS_KERNEL_GRANTED]++;
		answers->granted++;
		return;
	}
	kernel->totals[ask->answer == RECORDING_FAILED ? METRICS_KERNEL_FAILED
						       : METRICS_KERNEL_REFUSED]++;
	answers->other++;
	answers->last = ask->answer;
	answers->reason = ask->reason;
}

static void tell_answers(const struct agent_kernel *kernel, const struct agent_kernel_job *job,
			 const struct answers *answers)
{
	char name[NAME];

	job_text(job->name, name);
	if (answers->granted > 0)
		agent_log(AGENT_NOTICE,
			  "%s: %zu of %zu processes time every operation for %" PRIu32 " s", name,
			  answers->granted, job->count, kernel->seconds);
	if (answers->other > 0)
		agent_log(AGENT_NOTICE,
			  "%s: %zu of %zu processes cannot time every operation: %s: %s", name,
			  answers->other, job->count, recording_answer_name(answers->last),
			  answers->reason);
}

static void look_for_answers(struct agent_kernel *kernel, struct agent_kernel_job *job,
			     const struct watch *watch)
{
	struct answers answers = { .reason = "" };

	for (size_t i = 0; i < job->count && job->open > 0; i++) {
		struct agent_kernel_asked *asked = &job->asked[i];
		const struct recording_process *process =
			asked->is_open ? find_process(watch, asked) : NULL;

		if (!asked->is_open)
			continue;
		if (process == NULL && asked->ask.answer == RECORDING_PENDING) {
			asked->ask.answer = RECORDING_FAILED;
			text_copy(asked->ask.reason, sizeof(asked->ask.reason),
				  "the process ended before answering");
		}
		if (process != NULL && !recording_ask_answered(&asked->ask, process))
			continue;
		asked->is_open = false;
		job->open--;
		count_answer(kernel, &asked->ask, &answers);
	}
	tell_answers(kernel, job, &answers);
}

/* ---- requests --------------------------------------------------------------------------------- */

static struct agent_kernel_job *find_job(struct agent_kernel *kernel, const char *name,
					 uint32_t user)
{
	for (size_t i = 0; i < kernel->count; i++)
		if (kernel->jobs[i].user == user && strcmp(kernel->jobs[i].name, name) == 0)
			return &kernel->jobs[i];
	return NULL;
}

static void forget_old(struct agent_kernel *kernel, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < kernel->count; i++) {
		struct agent_kernel_job *job = &kernel->jobs[i];

		if (job->open == 0 && now_ns - job->asked_ns >= AGENT_KERNEL_PAUSE_NS)
			free(job->asked);
		else
			kernel->jobs[kept++] = *job;
	}
	kernel->count = kept;
}

static bool can_be_asked(const struct watch *watch, uint32_t p, uint32_t user)
{
	const struct recording_process *process = watch->recording.processes[p];

	/* A communicator with ranks of several users: one of them is forged. */
	return process->life == RECORDING_ALIVE && process->region != NULL &&
	       process->region_path != NULL && watch->processes[p].file.owner == user;
}

static void ask_process(struct agent_kernel *kernel, struct agent_kernel_job *job,
			const struct watch *watch, uint32_t p)
{
	const struct watch_file *file = &watch->processes[p].file;
	struct agent_kernel_asked *asked = &job->asked[job->count++];

	*asked = (struct agent_kernel_asked){ file->device, file->inode, .is_open = true };
	recording_ask_times(&asked->ask, watch->recording.processes[p], kernel->seconds);
	job->open++;
	kernel->totals[METRICS_KERNEL_ASKED]++;
}

static void tell_asked(const struct agent_kernel *kernel, const struct agent_kernel_job *job,
		       const char *comm, enum live_doubt doubt, double figure)
{
	char name[NAME], why[200];

	if (doubt == LIVE_DOUBT_HANG)
		text_format(why, sizeof(why),
			    "no calls on %.80s for %.0f s, and its last calls are "
			    "not timed",
			    comm, figure);
	else
		text_format(why, sizeof(why),
			    "%.80s is %.1fx slower than before, and its calls are not timed", comm,
			    figure);
	agent_log(AGENT_NOTICE,
		  "%s: asked %zu processes to time every operation for %" PRIu32 " s: %s",
		  job_text(job->name, name), job->count, kernel->seconds, why);
}

static void kernel_ask(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint32_t c, uint64_t now_ns)
{
	const struct job_comm *comm = &live->job.comms[c];
	uint32_t user = watch->processes[live->job.seats[comm->seats[0]].process].file.owner;
	const char *name = live->job.groups[comm->group].name;
	struct agent_kernel_job *job;
	enum live_doubt doubt;
	uint32_t last = UINT32_MAX;
	double figure;

	if (find_job(kernel, name, user) != NULL || kernel->count == AGENT_KERNEL_JOBS_MAX)
		return;
	doubt = live_doubt(live, c, &figure);
	if (doubt == LIVE_NO_DOUBT)
		return;
	job = &kernel->jobs[kernel->count];
	*job = (struct agent_kernel_job){ .user = user, .asked_ns = now_ns };
	text_copy(job->name, sizeof(job->name), name);
	job->asked = calloc(comm->seat_count, sizeof(*job->asked));
	if (job->asked == NULL)
		return;
	kernel->count++;
	/* Ranks in the same process share a region. */
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t p = live->job.seats[comm->seats[i]].process;

		if (p != last && can_be_asked(watch, p, user))
			ask_process(kernel, job, watch, p);
		last = p;
	}
	if (job->count > 0)
		tell_asked(kernel, job, comm->label, doubt, figure);
}

void agent_kernel_look(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint64_t now_ns)
{
	if (kernel->seconds == 0)
		return;
	for (size_t i = 0; i < kernel->count; i++)
		look_for_answers(kernel, &kernel->jobs[i], watch);
	forget_old(kernel, now_ns);
	for (uint32_t c = 0; c < live->job.comm_count; c++)
		if (live->job.comms[c].seat_count > 0)
			kernel_ask(kernel, live, watch, c, now_ns);
}
