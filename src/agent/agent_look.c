/* When this host is scanned, what a scan makes of it, and what is logged about it. */
#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "output/metrics.h"

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
/* About 24 MiB and 1.8 MiB. Reading some of it takes about a millisecond each. */
enum { PAST_OPERATIONS = 640 * 1024, PAST_OF_PROCESS = 48 * 1024, PAST_AT_ONCE = 8 };

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
	child_release(&look->judge);
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

/* ---- the past --------------------------------------------------------------------------------- */

/* Equal shares of users, and of the processes of a user: about 37 bytes an operation. */
static uint64_t past_share(const struct agent_look *look, const struct recording_process *process)
{
	size_t users = look->watch.owner_count, processes = look->watch.recording.count;

	for (size_t i = 0; i < look->watch.owner_count; i++)
		if (look->watch.owners[i].uid == (uint64_t)process->owner)
			processes = look->watch.owners[i].count;
	if (users == 0 || processes == 0)
		return 0;
	return PAST_OPERATIONS / users / processes < PAST_OF_PROCESS
		       ? PAST_OPERATIONS / users / processes
		       : PAST_OF_PROCESS;
}

/* What ring buffers will have overwritten when somebody asks since when a job is slow. */
static void keep_past(struct agent_look *look)
{
	struct recording *recording = &look->watch.recording;
	uint64_t wall_ns = clock_system_ns(CLOCK_REALTIME);
	unsigned int taken = 0;

	for (size_t i = 0; i < recording->count; i++) {
		size_t p = (look->next_past + i) % recording->count;
		struct recording_process *process = recording->processes[p];

		if (!recording_past_follow(process, wall_ns, past_share(look, process),
					   taken < PAST_AT_ONCE))
			continue;
		if (++taken == PAST_AT_ONCE)
			look->next_past = p + 1;
	}
}

/* ---- facts of the host ------------------------------------------------------------------------ */

uint64_t agent_look_host(struct agent_look *look, uint64_t now_ns)
{
	struct cli_host_watch *host = look->host;

	if (host == NULL)
		return UINT64_MAX;
	if (host->reading.child.begun_ns != 0 &&
	    !cli_host_take(&host->reading, &host->facts, now_ns, clock_system_ns(CLOCK_REALTIME)))
		return now_ns + HOST_POLL_NS;
	if (look->watch.recording.count == 0)
		return UINT64_MAX;
	if (now_ns < look->next_host_ns)
		return look->next_host_ns;
	look->next_host_ns = now_ns + HOST_PAUSE_NS;
	cli_host_watch_read(host, &look->watch.recording, false, now_ns);
	return host->reading.child.begun_ns != 0 ? now_ns + HOST_POLL_NS : look->next_host_ns;
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
		serve_log(SERVE_ERROR, "cannot scan processes: %s",
			  look->status == ERR_SYSTEM ? strerror(errno) : status_text(look->status));
	if (look->status == OK && before != OK)
		serve_log(SERVE_NOTICE, "scanning processes works again");
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
		serve_log(SERVE_WARNING, "cannot read %s: %s", first->path, first->why);
	else if (count > 1)
		serve_log(SERVE_WARNING, "cannot read %s: %s; and %zu more files", first->path,
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
		if (was_told(look, one->owner))
			continue;
		if (one->is_silent)
			serve_log(SERVE_WARNING,
				  "user %" PRIu32 ": a file or process does not answer, and is not "
				  "asked again for a while",
				  one->owner);
		if (one->processes > 0 || one->directories > 0)
			serve_log(SERVE_WARNING,
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
	serve_log(SERVE_WARNING,
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
	keep_past(look);
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
		.given_up = child_given_up(),
		.cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime),
		.refused = look->watch.refused_count,
		.unreadable = look->watch.unreadable,
		.left_out = look->watch.left_out,
		.resident_bytes = serve_resident_bytes(),
		.open_fds = open_fds(),
		.start_wall_ns = look->start_wall_ns,
		.verdicts = look->verdicts,
		.kernel = look->kernel,
	};
}
