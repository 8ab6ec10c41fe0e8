/*
 * The child is a fork of the agent, so it has the recording and the verdicts of the moment. It writes lines:
 *
 *	stack PID START_TICKS TEXT	where a process is
 *	evidence KEY TEXT		for the verdict with this key
 *	missing KEY TEXT
 *	confidence KEY NUMBER		it is at least that
 *
 * What a job can put into an answer of its RAS or into the names of its functions is read in the child alone; the agent
 * gets a bounded number of lines of text.
 */
#include "agent/agent.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_ask.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "import/ras.h"

/* Time for frames of all processes; then no tool is started. */
#define TOOLS_NS (8 * SECOND_NS)
/* The above, the last tool, /proc, and RAS. */
#define CHILD_NS (40 * SECOND_NS)
#define REPEAT_NS (60 * SECOND_NS)
#define POLL_NS (100 * MS_NS)
/* A verdict waits for its turn at most this long. */
#define PENDING_NS (20 * SECOND_NS)
/* A verdict that is gone for a moment has not cleared. */
#define QUIET_NS (10 * SECOND_NS)
#define RAS_MEMORY (UINT64_C(1) << 30)
enum { OUTPUT_MOST = 256 * 1024, RAS_PORT = 28028 };

struct request {
	const struct agent_probe *probe;
	struct live *live;
	const struct watch *watch;
};

/* ---- in the child: stacks ------------------------------------------------------------------------ */

static void put_line(const char *kind, uint64_t key, const char *text)
{
	char line[1000];

	/* Without control characters: a line is a line. */
	text_from_field(line, sizeof(line), text, strlen(text));
	dprintf(STDOUT_FILENO, "%s %" PRIx64 " %s\n", kind, key, line);
}

static bool is_hang_of(const struct verdict *verdict, const char *job)
{
	return verdict_is_hang(verdict->class) && verdict->severity == VERDICT_ERROR &&
	       strcmp(verdict->job, job) == 0;
}

/* A culprit whose place is not known: why. */
static void say_unknown(const struct request *request, int64_t pid, const char *why)
{
	const struct verdicts *verdicts = &request->live->verdicts;
	char text[300];

	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if (!is_hang_of(verdict, request->probe->asked) || verdict->pid != pid)
			continue;
		text_format(text, sizeof(text), "where rank %s is in its program: %s",
			    verdict->rank_label, why);
		put_line("missing", verdict_key(verdict), text);
	}
}

static void child_stacks(const struct request *request)
{
	const struct agent_probe *probe = request->probe;
	const struct stacks_options options = { .may_stop = probe->options.has_native,
						.any_user = true,
						.budget_ns = TOOLS_NS };
	static struct stacks_target targets[STACKS_PROCESSES_MAX];

	serve_rights_hand_on();
	for (size_t i = 0; i < probe->asked_count; i++)
		stacks_target_init(&targets[i], probe->asked_of[i].pid,
				   probe->asked_of[i].start_ticks);
	stacks_take(targets, probe->asked_count, &options);
	for (size_t i = 0; i < probe->asked_count; i++) {
		char place[STACK_PLACE];

		stack_say(&targets[i].stack, place, sizeof(place));
		if (place[0] != '\0')
			dprintf(STDOUT_FILENO, "stack %" PRId64 " %" PRIu64 " %s\n", targets[i].pid,
				targets[i].start_ticks, place);
		else
			say_unknown(request, targets[i].pid,
				    targets[i].why[0] ? targets[i].why : "could not tell");
	}
}

/* ---- in the child: RAS --------------------------------------------------------------------------- */

static bool is_here(const struct sockaddr *address)
{
	struct ifaddrs *list = NULL;
	bool is_found = false;

	if (getifaddrs(&list) == -1)
		return false;
	for (const struct ifaddrs *at = list; at != NULL && !is_found; at = at->ifa_next) {
		if (at->ifa_addr == NULL || at->ifa_addr->sa_family != address->sa_family)
			continue;
		if (address->sa_family == AF_INET)
			is_found = ((const struct sockaddr_in *)at->ifa_addr)->sin_addr.s_addr ==
				   ((const struct sockaddr_in *)address)->sin_addr.s_addr;
		else if (address->sa_family == AF_INET6)
			is_found = memcmp(&((const struct sockaddr_in6 *)at->ifa_addr)->sin6_addr,
					  &((const struct sockaddr_in6 *)address)->sin6_addr,
					  sizeof(struct in6_addr)) == 0;
	}
	freeifaddrs(list);
	return is_found;
}

/*
 * "localhost" or a number that is an address of this host: names are not looked up, the job chooses them. False: neither.
 */
static bool find_local(const char *host, bool is_v6, struct sockaddr_storage *address)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	const char *loopback = is_v6 ? "::1" : "127.0.0.1";
	struct addrinfo *found = NULL;
	bool is_local = strcmp(host, "localhost") == 0;

	if (getaddrinfo(is_local ? loopback : host, NULL, &hints, &found) != 0)
		return false;
	is_local = is_local || strncmp(host, "127.", 4) == 0 || is_here(found->ai_addr);
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return is_local;
}

/* Its host without brackets, and its port. */
static bool split_address(const char *address, char *host, size_t size, int64_t *port)
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;

	if (length > 1 && address[0] == '[' && address[length - 1] == ']') {
		address++;
		length -= 2;
	}
	return colon != NULL && text_number(colon + 1, 1, 65535, port) == OK && length > 0 &&
	       text_format(host, size, "%.*s", (int)length, address);
}

/* Of the sockets that listen on a port: which gets a connection to an address? The one bound to it, else one to all. */
struct listener {
	bool is_found, is_exact;
	unsigned int user;
};

/* Addresses as /proc/PID/net has them: words of four bytes as the machine reads them, in hexadecimal digits. */
static bool is_all(const char *address)
{
	return strspn(address, "0") == strlen(address);
}

static void note_listener(struct listener *listener, const char *line, int64_t port, const char *v4,
			  const char *v6)
{
	char address[40];
	unsigned int at, state, user;
	bool is_exact;

	if (sscanf(line, " %*u: %39[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %u", address,
		   &at, &state, &user) != 4 ||
	    at != (unsigned int)port || state != 0x0a)
		return;
	is_exact = strcasecmp(address, v4) == 0 || strcasecmp(address, v6) == 0;
	if (!is_exact && (listener->is_exact || !is_all(address)))
		return;
	/* Of several users nobody knows which. */
	if (listener->is_found && listener->is_exact == is_exact && listener->user != user)
		user = UINT_MAX;
	*listener = (struct listener){ true, is_exact, user };
}

/* Does a process of this user listen there? Whoever else does could tell us anything about the job. */
static bool has_listener(int64_t pid, const struct sockaddr *to, int64_t port, uint32_t owner)
{
	static const char *const kinds[] = { "tcp", "tcp6" };
	struct listener listener = { .is_found = false };
	char v4[9] = "-", v6[33] = "-";
	uint32_t words[4] = { 0, 0, 0, 0 };

	if (to->sa_family == AF_INET) {
		memcpy(&words[3], &((const struct sockaddr_in *)to)->sin_addr, 4);
		text_format(v4, sizeof(v4), "%08X", words[3]);
		words[2] = htonl(0xffff);
	} else {
		memcpy(words, &((const struct sockaddr_in6 *)to)->sin6_addr, 16);
	}
	text_format(v6, sizeof(v6), "%08X%08X%08X%08X", words[0], words[1], words[2], words[3]);
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		char path[64], line[512];
		FILE *file;

		text_format(path, sizeof(path), "/proc/%" PRId64 "/net/%s", pid, kinds[i]);
		file = fopen(path, "re");
		while (file != NULL && fgets(line, sizeof(line), file) != NULL)
			note_listener(&listener, line, port, v4, v6);
		if (file != NULL)
			fclose(file);
	}
	return listener.is_found && listener.user == owner;
}

static bool is_in_our_network(int64_t pid)
{
	struct stat own, other;
	char path[64];

	text_format(path, sizeof(path), "/proc/%" PRId64 "/ns/net", pid);
	return stat("/proc/self/ns/net", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* "localhost" is two addresses. */
static bool find_listener(int64_t pid, const char *host, struct sockaddr_storage *to, int64_t port,
			  uint32_t owner)
{
	return has_listener(pid, (const struct sockaddr *)to, port, owner) ||
	       (strcmp(host, "localhost") == 0 && find_local(host, true, to) &&
		has_listener(pid, (const struct sockaddr *)to, port, owner));
}

/* Exactly the address that was looked at. */
static bool put_number(char *text, size_t size, const struct sockaddr_storage *to, int64_t port)
{
	char host[INET6_ADDRSTRLEN];
	bool is_v6 = to->ss_family == AF_INET6;
	const void *bytes = is_v6 ? (const void *)&((const struct sockaddr_in6 *)to)->sin6_addr
				  : (const void *)&((const struct sockaddr_in *)to)->sin_addr;

	return inet_ntop(to->ss_family, bytes, host, sizeof(host)) != NULL &&
	       text_format(text, size, is_v6 ? "[%s]:%" PRId64 : "%s:%" PRId64, host, port);
}

/* Where the RAS of the job listens; false: `why` it is not asked. */
static bool find_ras(const struct request *request, char *address, size_t size, char *why,
		     size_t why_size)
{
	const struct watch *watch = request->watch;
	struct sockaddr_storage to;
	char host[256];
	int64_t port;

	text_copy(why, why_size, "none of its processes runs here");
	for (size_t i = 0; i < watch->recording.count; i++) {
		const struct recording_process *process = watch->recording.processes[i];

		if (strcmp(process->job, request->probe->asked) != 0 ||
		    process->life != RECORDING_ALIVE || process->pid_here <= 0)
			continue;
		if (recording_info(process, "env.NCCL_RAS_ENABLE", address, size) &&
		    strcmp(address, "0") == 0) {
			text_copy(why, why_size, "NCCL_RAS_ENABLE=0 in its environment");
			return false;
		}
		if (!recording_info(process, "env.NCCL_RAS_ADDR", address, size))
			text_format(address, size, "localhost:%d", RAS_PORT);
		if (!is_in_our_network(process->pid_here))
			text_copy(why, why_size,
				  "its processes are in another network namespace (a container)");
		else if (!split_address(address, host, sizeof(host), &port))
			text_format(why, why_size, "NCCL_RAS_ADDR=%.100s is not HOST:PORT",
				    address);
		else if (!find_local(host, false, &to))
			text_format(why, why_size, "%.100s is not an address of this host",
				    address);
		else if (find_listener(process->pid_here, host, &to, port,
				       watch->processes[i].file.owner))
			return put_number(address, size, &to, port);
		else
			text_format(why, why_size, "no process of its user listens on %.100s",
				    address);
	}
	return false;
}

/* What was added to the verdicts of the job since `before`. */
static void put_added(const struct request *request, const struct verdict *before, size_t count)
{
	const struct verdicts *now = &request->live->verdicts;

	for (size_t i = 0; i < count; i++) {
		uint64_t key = verdict_key(&now->list[i]);
		char number[32];

		for (size_t j = before[i].evidence.count; j < now->list[i].evidence.count; j++)
			put_line("evidence", key, now->list[i].evidence.list[j]);
		if (now->list[i].confidence <= before[i].confidence)
			continue;
		text_format(number, sizeof(number), "%.4f", now->list[i].confidence);
		put_line("confidence", key, number);
	}
}

static void put_not_asked(const struct request *request, const char *why)
{
	const struct verdicts *verdicts = &request->live->verdicts;
	char text[400];

	text_format(text, sizeof(text), "what NCCL's RAS knows: %s", why);
	for (size_t i = 0; i < verdicts->count; i++)
		if (is_hang_of(&verdicts->list[i], request->probe->asked))
			put_line("missing", verdict_key(&verdicts->list[i]), text);
}

static void child_ras(const struct request *request)
{
	struct verdicts *verdicts = &request->live->verdicts;
	struct verdict *before = calloc(verdicts->count + 1, sizeof(*before));
	const struct rlimit memory = { RAS_MEMORY, RAS_MEMORY };
	char address[300], why[300] = "out of memory";
	struct ras_answer answer = { .text = NULL };
	struct ras_status ras;
	bool is_ours = false;

	setrlimit(RLIMIT_AS, &memory);
	ras_status_init(&ras);
	if (before != NULL && find_ras(request, address, sizeof(address), why, sizeof(why))) {
		enum status status = cli_ras_ask(&answer, address, RAS_JSON);

		text_copy(why, sizeof(why), answer.why);
		if (status == OK) {
			status = ras_status_read(&ras, answer.text, answer.length);
			text_copy(why, sizeof(why), "its answer cannot be read");
		}
		memcpy(before, verdicts->list, verdicts->count * sizeof(*before));
		if (status == OK)
			status = ras_support(verdicts, &request->watch->recording, &ras,
					     request->probe->asked, &is_ours);
		if (status == OK && !is_ours)
			text_format(why, sizeof(why), "%.200s answers for another job", address);
	}
	if (is_ours)
		put_added(request, before, verdicts->count);
	else
		put_not_asked(request, why);
}

/* Every agent of a large job would ask at the same moment: those that see the cause do, else the one of rank 0. */
static bool must_ask_ras(const struct request *request)
{
	const struct verdicts *verdicts = &request->live->verdicts;
	const struct recording *recording = &request->watch->recording;

	for (size_t i = 0; i < verdicts->count; i++)
		if (is_hang_of(&verdicts->list[i], request->probe->asked) &&
		    verdicts->list[i].class != VERDICT_ELSEWHERE)
			return true;
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->rank == 0 &&
		    strcmp(recording->processes[i]->job, request->probe->asked) == 0)
			return true;
	return false;
}

static int child_work(const char *input, void *context)
{
	const struct request *request = context;

	(void)input;
	if (request->probe->options.has_stacks)
		child_stacks(request);
	if (request->probe->options.has_ras && must_ask_ras(request))
		child_ras(request);
	return 0;
}

/* ---- what it found --------------------------------------------------------------------------------- */

static struct agent_probe_job *find_job(const struct agent_probe *probe, const char *name)
{
	for (size_t i = 0; i < probe->count; i++)
		if (strcmp(probe->jobs[i].name, name) == 0)
			return &probe->jobs[i];
	return NULL;
}

static void forget_lines(struct agent_probe_job *job)
{
	for (size_t i = 0; i < job->line_count; i++)
		free(job->lines[i]);
	job->line_count = 0;
}

static struct recording_process *find_process(struct recording *recording,
					      const struct agent_probe_taken *taken)
{
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->pid_here == taken->pid &&
		    recording->processes[i]->start_ticks == taken->start_ticks)
			return recording->processes[i];
	return NULL;
}

static void forget_stack(struct recording *recording, const struct agent_probe_taken *taken)
{
	struct recording_process *process = find_process(recording, taken);

	if (process == NULL)
		return;
	free(process->stack);
	process->stack = NULL;
}

static void take_stack(struct agent_probe *probe, struct agent_probe_job *job, const char *line,
		       struct recording *recording)
{
	struct agent_probe_taken taken;
	struct recording_process *process;
	int used = 0;

	if (sscanf(line, "%" SCNd64 " %" SCNu64 " %n", &taken.pid, &taken.start_ticks, &used) !=
		    2 ||
	    used == 0 || job->taken_count == STACKS_PROCESSES_MAX)
		return;
	for (size_t i = 0; i < probe->asked_count; i++) {
		const struct agent_probe_taken *asked = &probe->asked_of[i];

		if (asked->pid != taken.pid || asked->start_ticks != taken.start_ticks)
			continue;
		process = find_process(recording, asked);
		if (process == NULL)
			return;
		free(process->stack);
		process->stack = strdup(line + used);
		job->taken[job->taken_count++] = *asked;
		return;
	}
}

static void take_output(struct agent_probe *probe, struct agent_probe_job *job,
			struct recording *recording)
{
	char *line = probe->child.bytes, *rest = NULL;

	for (size_t i = 0; i < job->taken_count; i++)
		forget_stack(recording, &job->taken[i]);
	job->taken_count = 0;
	forget_lines(job);
	for (line = line ? strtok_r(line, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "stack ", 6) == 0)
			take_stack(probe, job, line + 6, recording);
		else if (job->line_count < AGENT_PROBE_LINES_MAX &&
			 (job->lines[job->line_count] = strdup(line)) != NULL)
			job->line_count++;
	}
}

static void add_line(struct verdict *verdict, const char *line)
{
	char kind[16];
	uint64_t key;
	int used = 0;

	if (sscanf(line, "%15s %" SCNx64 " %n", kind, &key, &used) != 2 || used == 0 ||
	    key != verdict_key(verdict))
		return;
	if (strcmp(kind, "evidence") == 0) {
		verdict_evidence(verdict, "%s", line + used);
	} else if (strcmp(kind, "missing") == 0) {
		verdict_missing(verdict, "%s", line + used);
	} else if (strcmp(kind, "confidence") == 0) {
		double confidence = strtod(line + used, NULL);

		if (confidence > verdict->confidence && confidence <= 1)
			verdict->confidence = confidence;
	}
}

/* ---- scan by scan ---------------------------------------------------------------------------------- */

void agent_probe_open(struct agent_probe *probe, const struct agent_probe_options *options,
		      int epoll)
{
	*probe = (struct agent_probe){ .options = *options, .epoll = epoll };
	if (options->has_stacks || options->has_ras)
		probe->jobs = calloc(AGENT_PROBE_JOBS_MAX, sizeof(*probe->jobs));
}

void agent_probe_release(struct agent_probe *probe)
{
	child_release(&probe->child);
	for (size_t i = 0; i < probe->count; i++)
		forget_lines(&probe->jobs[i]);
	free(probe->jobs);
	*probe = (struct agent_probe){ .epoll = -1 };
}

void agent_probe_refresh(struct agent_probe *probe, struct recording *recording, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < probe->count; i++) {
		struct agent_probe_job *job = &probe->jobs[i];
		bool is_over = now_ns - job->last_ns > QUIET_NS;
		size_t still = 0;

		for (size_t j = 0; j < job->taken_count; j++) {
			const struct recording_process *process =
				find_process(recording, &job->taken[j]);

			if (is_over || process == NULL ||
			    recording_last_call_ns(process) > job->taken[j].counts_ns)
				forget_stack(recording, &job->taken[j]);
			else
				job->taken[still++] = job->taken[j];
		}
		job->taken_count = still;
		if (is_over)
			forget_lines(job);
		else
			probe->jobs[kept++] = *job;
	}
	probe->count = kept;
}

/* Another run under the same name is another job. */
static void note_hang(struct agent_probe *probe, const struct verdict *verdict, uint64_t now_ns)
{
	struct agent_probe_job *job = find_job(probe, verdict->job);

	if (job == NULL && probe->count < AGENT_PROBE_JOBS_MAX) {
		job = &probe->jobs[probe->count++];
		*job = (struct agent_probe_job){ .first_ns = now_ns,
						 .start_wall_ns = verdict->job_start_wall_ns };
		text_copy(job->name, sizeof(job->name), verdict->job);
	}
	if (job == NULL)
		return;
	job->last_ns = now_ns;
	if (job->start_wall_ns != verdict->job_start_wall_ns) {
		job->start_wall_ns = verdict->job_start_wall_ns;
		job->first_ns = now_ns;
		job->begun_ns = 0;
		job->is_done = false;
		forget_lines(job);
	}
}

void agent_probe_add(struct agent_probe *probe, struct live *live, uint64_t now_ns)
{
	for (size_t i = 0; probe->jobs != NULL && i < live->verdicts.count; i++) {
		struct verdict *verdict = &live->verdicts.list[i];
		const struct agent_probe_job *job;

		if (!is_hang_of(verdict, verdict->job))
			continue;
		note_hang(probe, verdict, now_ns);
		job = find_job(probe, verdict->job);
		for (size_t j = 0; job != NULL && j < job->line_count; j++)
			add_line(verdict, job->lines[j]);
	}
}

bool agent_probe_is_pending(const struct agent_probe *probe, const struct verdict *verdict,
			    uint64_t now_ns)
{
	const struct agent_probe_job *job;

	if (probe == NULL || !is_hang_of(verdict, verdict->job))
		return false;
	job = find_job(probe, verdict->job);
	return job != NULL && !job->is_done && now_ns - job->first_ns < PENDING_NS;
}

/* ---- the child ------------------------------------------------------------------------------------- */

static bool is_blamed(const struct live *live, const struct recording_process *process)
{
	for (size_t i = 0; i < live->verdicts.count; i++)
		if (is_hang_of(&live->verdicts.list[i], process->job) &&
		    live->verdicts.list[i].pid == recording_pid(process))
			return true;
	return false;
}

/* A region names its process: nobody gets another user's process read by writing its number there. */
static bool is_of_owner(int64_t pid, uint32_t owner)
{
	char path[64];
	struct stat st;

	text_format(path, sizeof(path), "/proc/%" PRId64, pid);
	return stat(path, &st) == 0 && st.st_uid == owner;
}

/* The culprits first: the number is limited. */
static void choose_processes(struct agent_probe *probe, const struct live *live,
			     const struct watch *watch)
{
	probe->asked_count = 0;
	for (int is_first = 1; is_first >= 0; is_first--)
		for (size_t i = 0; i < watch->recording.count; i++) {
			const struct recording_process *process = watch->recording.processes[i];

			if (probe->asked_count < STACKS_PROCESSES_MAX &&
			    process->life == RECORDING_ALIVE && process->pid_here > 0 &&
			    !process->is_earlier_run && strcmp(process->job, probe->asked) == 0 &&
			    is_blamed(live, process) == (is_first == 1) &&
			    is_of_owner(process->pid_here, watch->processes[i].file.owner))
				probe->asked_of[probe->asked_count++] = (struct agent_probe_taken){
					process->pid_here, process->start_ticks, process->counts_ns
				};
		}
}

static uint64_t due_ns(const struct agent_probe_job *job)
{
	return job->begun_ns == 0 ? 0 : job->begun_ns + REPEAT_NS;
}

/* Whose turn it is: the one that has waited longest; NULL: none is due. */
static struct agent_probe_job *next_job(struct agent_probe *probe, uint64_t now_ns, uint64_t *next)
{
	struct agent_probe_job *found = NULL;

	for (size_t i = 0; i < probe->count; i++) {
		struct agent_probe_job *job = &probe->jobs[i];

		if (due_ns(job) > now_ns)
			*next = due_ns(job) < *next ? due_ns(job) : *next;
		else if (found == NULL || job->begun_ns < found->begun_ns)
			found = job;
	}
	return found;
}

static bool end_child(struct agent_probe *probe, struct watch *watch)
{
	struct agent_probe_job *job = find_job(probe, probe->asked);

	if (job != NULL) {
		job->is_done = true;
		take_output(probe, job, &watch->recording);
	}
	if (probe->child.code != 0)
		serve_log(SERVE_WARNING, "job %s: stacks and RAS are incomplete: %s", probe->asked,
			  probe->child.why);
	child_release(&probe->child);
	probe->is_asking = false;
	return job != NULL;
}

uint64_t agent_probe_run(struct agent_probe *probe, struct live *live, struct watch *watch,
			 uint64_t now_ns, bool *has_news)
{
	struct request request = { .probe = probe, .live = live, .watch = watch };
	const struct child_task task = { .work = child_work,
					 .context = &request,
					 .timeout_ns = CHILD_NS,
					 .limit_bytes = OUTPUT_MOST };
	struct agent_probe_job *job;
	uint64_t next = UINT64_MAX;

	*has_news = false;
	if (probe->is_asking) {
		if (!child_has_ended(&probe->child, now_ns))
			return now_ns + POLL_NS;
		*has_news = end_child(probe, watch);
		return now_ns;
	}
	job = next_job(probe, now_ns, &next);
	if (job == NULL)
		return next;
	job->begun_ns = now_ns;
	probe->is_asking = true;
	text_copy(probe->asked, sizeof(probe->asked), job->name);
	choose_processes(probe, live, watch);
	child_start(&probe->child, &task, probe->epoll, now_ns);
	return now_ns + POLL_NS;
}
