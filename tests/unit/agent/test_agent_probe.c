/*
 * What is asked about hung jobs, and when. Stacks and RAS are played; the file is included for that. Processes are
 * this one and one that does not exist.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/agent.h"
#include "cli/cli_ask.h"
#include "import/ras.h"

static void play_stacks(struct stacks_target *targets, size_t count,
			const struct stacks_options *options);
static void play_say(const struct stack *stack, char *to, size_t size);
static enum status play_ask(struct ras_answer *answer, const char *address,
			    enum ras_request request);
static enum status play_read(struct ras_status *ras, const char *text, size_t length);
static enum status play_support(struct verdicts *verdicts, const struct recording *recording,
				const struct ras_status *ras, const char *job, bool *is_ours);

static int play_limit(int what, const struct rlimit *limit);

#define setrlimit play_limit
#define stacks_take play_stacks
#define stack_say play_say
#define cli_ras_ask play_ask
#define ras_status_read play_read
#define ras_support play_support
#include "agent/agent_probe.c"
#undef setrlimit
#undef stacks_take
#undef stack_say
#undef cli_ras_ask
#undef ras_status_read
#undef ras_support

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/tap.h"

#define SECOND SECOND_NS
#define BEGIN (1000 * SECOND)
enum { PROCESSES = 4 };

/* ---- the stage -------------------------------------------------------------------------------- */

static struct recording_process processes[PROCESSES], *process_list[PROCESSES];
static struct watch_process watched[PROCESSES];
static struct recording_comm comms[PROCESSES];
static struct watch watch;
static struct live live;
static struct agent_probe probe;
static bool has_news;

/* In the child: what RAS says. */
static struct {
	enum status asked, read, supported;
	bool is_ours;
} ras_play;

/* It would be too little for AddressSanitizer: a limit that is not set fails the child instead. */
static bool has_limit;

static int play_limit(int what, const struct rlimit *limit)
{
	has_limit = what == RLIMIT_AS && limit->rlim_cur == UINT64_C(1) << 30 &&
		    limit->rlim_max == limit->rlim_cur;
	return 0;
}

static void play_stacks(struct stacks_target *targets, size_t count,
			const struct stacks_options *options)
{
	if (!options->any_user || options->budget_ns != 8 * SECOND)
		return;
	for (size_t i = 0; i < count; i++) {
		targets[i].stack.thread_count = options->may_stop ? 2 : 1;
		if (targets[i].start_ticks == 13)
			text_copy(targets[i].why, sizeof(targets[i].why), "it is gone");
		if (targets[i].start_ticks >= 13)
			targets[i].stack.thread_count = 0;
	}
}

static void play_say(const struct stack *stack, char *to, size_t size)
{
	text_copy(to, size,
		  stack->thread_count == 0   ? ""
		  : stack->thread_count == 1 ? "in a.py"
					     : "in b.c");
}

static enum status play_ask(struct ras_answer *answer, const char *address,
			    enum ras_request request)
{
	if (!has_limit || request != RAS_JSON || strcmp(address, "localhost:28028") == 0)
		return ERR_FORMAT;
	text_copy(answer->why, sizeof(answer->why), "it does not answer");
	return ras_play.asked;
}

static enum status play_read(struct ras_status *ras, const char *text, size_t length)
{
	(void)ras, (void)text, (void)length;
	return ras_play.read;
}

/* Evidence for the first verdict, and more confidence in the second. */
static enum status play_support(struct verdicts *verdicts, const struct recording *recording,
				const struct ras_status *ras, const char *job, bool *is_ours)
{
	(void)ras;
	*is_ours = ras_play.is_ours && recording->count == PROCESSES && strcmp(job, "llm") == 0;
	verdict_evidence(&verdicts->list[0], "RAS: rank 3 is\nmissing");
	verdict_evidence(&verdicts->list[0], "RAS: 7 ranks answer");
	verdicts->list[1].confidence = 0.875;
	return ras_play.supported;
}

static struct verdict *add_hang(const char *job, int64_t pid)
{
	struct verdict *verdict = verdicts_add(&live.verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);

	text_copy(verdict->job, sizeof(verdict->job), job);
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), "5");
	verdict->pid = pid;
	verdict->rank = pid;
	verdict->confidence = 0.5;
	verdict->job_start_wall_ns = 7;
	verdict_evidence(verdict, "seen");
	return &live.verdicts.list[live.verdicts.count - 1];
}

static void begin(bool has_stacks, bool has_ras)
{
	struct agent_probe_options options = { .has_stacks = has_stacks, .has_ras = has_ras };

	live = (struct live){ .looks = 1 };
	verdicts_init(&live.verdicts);
	watch = (struct watch){ .recording = { .processes = process_list, .count = PROCESSES },
				.processes = watched };
	for (int i = 0; i < PROCESSES; i++) {
		comms[i] = (struct recording_comm){ .counts = { .last_issue_ns = 100 } };
		processes[i] = (struct recording_process){ .job = "llm",
							   .pid = getpid(),
							   .pid_here = getpid(),
							   .start_ticks = 10 + (uint64_t)i,
							   .counts_ns = 100 + (uint64_t)i,
							   .rank = i,
							   .life = RECORDING_ALIVE,
							   .comms = &comms[i],
							   .comm_count = 1 };
		watched[i] = (struct watch_process){ .file = { .owner = getuid() } };
		process_list[i] = &processes[i];
	}
	agent_probe_open(&probe, &options, -1);
}

static void end(void)
{
	agent_probe_release(&probe);
	verdicts_release(&live.verdicts);
	for (int i = 0; i < PROCESSES; i++)
		free(processes[i].stack);
}

static uint64_t run(uint64_t now_ns)
{
	return agent_probe_run(&probe, &live, &watch, now_ns, &has_news);
}

/* Until the child has ended. */
static void ask(uint64_t now_ns)
{
	bool is_due = run(now_ns) == now_ns + 100 * MS_NS;

	while (probe.is_asking) {
		uint64_t next_ns = run(now_ns);

		is_due &= next_ns == now_ns + (probe.is_asking ? 100 * MS_NS : 0);
		is_due &= has_news == !probe.is_asking;
		poll(NULL, 0, 1);
	}
	EXPECT_THAT("the child is looked at ten times per second, and its end is news", is_due);
}

/* ---- who is asked ----------------------------------------------------------------------------- */

static void test_chosen(void)
{
	pid_t other = fork();

	if (other == 0) {
		pause();
		_exit(0);
	}
	begin(true, false);
	add_hang("llm", other);
	processes[2].pid_here = other;
	text_copy(probe.asked, sizeof(probe.asked), "llm");
	choose_processes(&probe, &live, &watch);
	EXPECT_THAT("the culprit comes first",
		    probe.asked_count == 4 && probe.asked_of[0].start_ticks == 12 &&
			    probe.asked_of[1].start_ticks == 10 &&
			    probe.asked_of[2].start_ticks == 11 &&
			    probe.asked_of[3].start_ticks == 13 && probe.asked_of[0].pid == other &&
			    probe.asked_of[1].pid == getpid() &&
			    probe.asked_of[0].counts_ns == 102);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	processes[0].life = RECORDING_KILLED;
	processes[1].pid_here = 0;
	processes[2].is_earlier_run = true;
	choose_processes(&probe, &live, &watch);
	EXPECT_THAT("dead ones, those of elsewhere and of earlier runs are not asked",
		    probe.asked_count == 1 && probe.asked_of[0].start_ticks == 13);
	watched[3].file.owner = getuid() + 1;
	choose_processes(&probe, &live, &watch);
	EXPECT_THAT("nor is one of another user", probe.asked_count == 0);
	watched[3].file.owner = getuid();
	text_copy(processes[3].job, sizeof(processes[3].job), "other");
	choose_processes(&probe, &live, &watch);
	EXPECT_THAT("nor one of another job", probe.asked_count == 0);
	end();
}

static void test_many_processes(void)
{
	enum { MANY = STACKS_PROCESSES_MAX + 2 };
	static struct recording_process many[MANY], *list[MANY];
	static struct watch_process of_watch[MANY];

	begin(true, false);
	for (int i = 0; i < MANY; i++) {
		many[i] = processes[0];
		of_watch[i] = watched[0];
		list[i] = &many[i];
	}
	watch.recording.processes = list;
	watch.recording.count = MANY;
	watch.processes = of_watch;
	text_copy(probe.asked, sizeof(probe.asked), "llm");
	choose_processes(&probe, &live, &watch);
	EXPECT_EQUAL(probe.asked_count, STACKS_PROCESSES_MAX);
	end();
}

/* ---- when ------------------------------------------------------------------------------------- */

static void test_jobs(void)
{
	struct verdict *verdict;

	begin(true, false);
	EXPECT_EQUAL(run(BEGIN), UINT64_MAX);
	verdict = add_hang("llm", 1);
	verdict->severity = VERDICT_WARNING;
	agent_probe_add(&probe, &live, BEGIN);
	EXPECT_THAT("a warning is no hang", probe.count == 0);
	verdict->severity = VERDICT_ERROR;
	verdict->class = VERDICT_SLOW_RANK;
	agent_probe_add(&probe, &live, BEGIN);
	EXPECT_EQUAL(probe.count, 0);
	verdict->class = VERDICT_NEVER_ISSUED;
	EXPECT_THAT("a job that is not known has nothing to wait for",
		    !agent_probe_is_pending(&probe, verdict, BEGIN) &&
			    !agent_probe_is_pending(NULL, verdict, BEGIN));
	agent_probe_add(&probe, &live, BEGIN);
	add_hang("other", 2);
	agent_probe_add(&probe, &live, BEGIN + 5);
	verdict = &live.verdicts.list[0];
	EXPECT(probe.count == 2 && probe.jobs[0].first_ns == BEGIN &&
	       probe.jobs[0].last_ns == BEGIN + 5 && probe.jobs[1].first_ns == BEGIN + 5 &&
	       strcmp(probe.jobs[1].name, "other") == 0 && probe.jobs[0].start_wall_ns == 7);
	EXPECT_THAT("a verdict waits for its answer for 20 s",
		    agent_probe_is_pending(&probe, verdict, BEGIN + 20 * SECOND - 1) &&
			    !agent_probe_is_pending(&probe, verdict, BEGIN + 20 * SECOND));
	probe.jobs[0].is_done = true;
	EXPECT(!agent_probe_is_pending(&probe, verdict, BEGIN));
	probe.jobs[0].begun_ns = BEGIN;
	probe.jobs[0].lines[0] = strdup("x");
	probe.jobs[0].line_count = 1;
	verdict->job_start_wall_ns = 8;
	agent_probe_add(&probe, &live, BEGIN + 9);
	EXPECT_THAT("another run is another job",
		    probe.jobs[0].first_ns == BEGIN + 9 && probe.jobs[0].begun_ns == 0 &&
			    !probe.jobs[0].is_done && probe.jobs[0].line_count == 0 &&
			    probe.jobs[1].first_ns == BEGIN + 5 && probe.count == 2);
	agent_probe_refresh(&probe, &watch.recording, BEGIN + 9 + 10 * SECOND);
	EXPECT_EQUAL(probe.count, 2);
	probe.jobs[1].last_ns += 5;
	agent_probe_refresh(&probe, &watch.recording, BEGIN + 10 + 10 * SECOND);
	EXPECT_THAT("a hang is over when it is gone for 10 s",
		    probe.count == 1 && strcmp(probe.jobs[0].name, "other") == 0);
	for (int i = 0; i < AGENT_PROBE_JOBS_MAX + 2; i++) {
		char name[16];

		text_format(name, sizeof(name), "job %d", i);
		add_hang(name, 3);
	}
	agent_probe_add(&probe, &live, BEGIN + 10);
	EXPECT_EQUAL(probe.count, AGENT_PROBE_JOBS_MAX);
	end();
	begin(false, false);
	add_hang("llm", 1);
	agent_probe_add(&probe, &live, BEGIN);
	EXPECT_THAT("nothing is asked without --stacks and --ras",
		    probe.count == 0 && probe.jobs == NULL);
	end();
}

static void test_turns(void)
{
	uint64_t next = UINT64_MAX;

	begin(true, false);
	probe.count = 3;
	probe.jobs[0].begun_ns = BEGIN + 2;
	probe.jobs[1].begun_ns = BEGIN + 1;
	probe.jobs[2].begun_ns = BEGIN + 3;
	EXPECT(next_job(&probe, BEGIN + 60 * SECOND, &next) == NULL &&
	       next == BEGIN + 1 + 60 * SECOND);
	EXPECT_EQUAL(run(BEGIN), BEGIN + 1 + 60 * SECOND);
	next = UINT64_MAX;
	EXPECT(next_job(&probe, BEGIN + 60 * SECOND + 2, &next) == &probe.jobs[1] &&
	       next == BEGIN + 3 + 60 * SECOND);
	probe.jobs[2].begun_ns = 0;
	next = UINT64_MAX;
	EXPECT_THAT("one that was never asked comes first",
		    next_job(&probe, BEGIN + 70 * SECOND, &next) == &probe.jobs[2] &&
			    next == UINT64_MAX);
	next = 5;
	probe.jobs[2].begun_ns = BEGIN + 3;
	next_job(&probe, BEGIN, &next);
	EXPECT_EQUAL(next, 5);
	end();
}

/* ---- answers ---------------------------------------------------------------------------------- */

static bool has_line(const struct agent_probe_job *job, const char *kind,
		     const struct verdict *verdict, const char *text)
{
	char wanted[400];

	text_format(wanted, sizeof(wanted), "%s %" PRIx64 " %s", kind, verdict_key(verdict), text);
	for (size_t i = 0; i < job->line_count; i++)
		if (strcmp(job->lines[i], wanted) == 0)
			return true;
	for (size_t i = 0; i < job->line_count; i++)
		printf("# %s\n", job->lines[i]);
	return false;
}

static void test_stacks(void)
{
	const struct agent_probe_job *job;
	struct verdict *verdict;

	begin(true, false);
	add_hang("llm", getpid());
	agent_probe_add(&probe, &live, BEGIN);
	ask(BEGIN + 1);
	job = &probe.jobs[0];
	verdict = &live.verdicts.list[0];
	EXPECT(job->is_done && job->begun_ns == BEGIN + 1 && job->taken_count == 3 &&
	       strcmp(probe.asked, "llm") == 0);
	EXPECT(processes[0].stack && strcmp(processes[0].stack, "in a.py") == 0);
	EXPECT(processes[2].stack && processes[3].stack == NULL);
	EXPECT(job->line_count == 1 &&
	       has_line(job, "missing", verdict, "where rank 5 is in its program: it is gone"));
	agent_probe_add(&probe, &live, BEGIN + 2);
	EXPECT(verdict->missing.count == 1 &&
	       strcmp(verdict->missing.list[0], "where rank 5 is in its program: it is gone") == 0);
	EXPECT_EQUAL(run(BEGIN + 2), BEGIN + 1 + 60 * SECOND);
	comms[0].counts.last_issue_ns = 101;
	comms[1].counts.last_issue_ns = 101;
	processes[2].start_ticks = 99;
	agent_probe_refresh(&probe, &watch.recording, BEGIN + 3);
	EXPECT_THAT("a stack is dropped when its process makes another call",
		    job->taken_count == 1 && processes[0].stack == NULL && processes[1].stack &&
			    job->taken[0].start_ticks == 11);
	processes[2].start_ticks = 12;
	probe.options.has_native = true;
	processes[3].start_ticks = 14;
	ask(BEGIN + 1 + 60 * SECOND);
	EXPECT_THAT("a minute later they are taken again",
		    job->taken_count == 3 && strcmp(processes[1].stack, "in b.c") == 0 &&
			    has_line(job, "missing", verdict,
				     "where rank 5 is in its program: could not tell"));
	agent_probe_refresh(&probe, &watch.recording, BEGIN + 200 * SECOND);
	EXPECT_THAT("a hang that is over has no stacks",
		    probe.count == 0 && processes[1].stack == NULL && processes[2].stack == NULL);
	end();
}

/* What a child says is not trusted. */
static void test_output(void)
{
	static char output[] = "stack 1 10 of another process\n"
			       "stack x\n"
			       "stack\n"
			       "nonsense\n"
			       "missing 0 of no verdict\n";
	static char many[100 * 8];
	struct agent_probe_job *job;
	struct verdict *verdict;
	char line[100];

	begin(true, false);
	add_hang("llm", 3);
	agent_probe_add(&probe, &live, BEGIN);
	verdict = &live.verdicts.list[0];
	job = &probe.jobs[0];
	probe.asked_of[0] = (struct agent_probe_taken){ getpid(), 10, 100 };
	probe.asked_of[1] = (struct agent_probe_taken){ getpid(), 77, 100 };
	probe.asked_count = 2;
	probe.child.bytes = output;
	take_output(&probe, job, &watch.recording);
	EXPECT(job->taken_count == 0 && job->line_count == 3 && processes[0].stack == NULL);
	text_format(line, sizeof(line), "stack %d 10 at home\nstack %d 77 of nobody\n", getpid(),
		    getpid());
	probe.child.bytes = line;
	take_output(&probe, job, &watch.recording);
	EXPECT(job->taken_count == 1 && job->line_count == 0 &&
	       strcmp(processes[0].stack, "at home") == 0);
	for (int i = 0; i < 100; i++)
		text_append(many, sizeof(many), "line 7\n");
	probe.child.bytes = many;
	take_output(&probe, job, &watch.recording);
	EXPECT_THAT("64 lines are kept, and stacks of before are dropped",
		    job->line_count == AGENT_PROBE_LINES_MAX && job->taken_count == 0 &&
			    processes[0].stack == NULL);
	probe.child.bytes = NULL;
	take_output(&probe, job, &watch.recording);
	EXPECT_EQUAL(job->line_count, 0);
	job->taken_count = STACKS_PROCESSES_MAX;
	text_format(line, sizeof(line), "%d 10 at home", getpid());
	take_stack(&probe, job, line, &watch.recording);
	EXPECT(job->taken_count == STACKS_PROCESSES_MAX && processes[0].stack == NULL);
	job->taken_count = 0;
#define LINE(kind, text)                                                                         \
	do {                                                                                     \
		text_format(line, sizeof(line), "%s %" PRIx64 " %s", kind, verdict_key(verdict), \
			    text);                                                               \
		add_line(verdict, line);                                                         \
	} while (0)
	LINE("evidence", "a line");
	EXPECT(verdict->evidence.count == 2 && strcmp(verdict->evidence.list[1], "a line") == 0);
	LINE("missing", "a caveat");
	EXPECT(verdict->missing.count == 1 && strcmp(verdict->missing.list[0], "a caveat") == 0);
	LINE("confidence", "0.5");
	EXPECT(verdict->confidence == 0.5);
	LINE("confidence", "0.75");
	EXPECT(verdict->confidence == 0.75);
	LINE("confidence", "1.01");
	EXPECT(verdict->confidence == 0.75);
	LINE("confidence", "1");
	EXPECT(verdict->confidence == 1);
	LINE("advice", "no");
	add_line(verdict, "evidence 0 of another");
	add_line(verdict, "evidence");
	EXPECT(verdict->evidence.count == 2 && verdict->missing.count == 1 &&
	       verdict->advice.count == 0);
	end();
}

/* ---- RAS -------------------------------------------------------------------------------------- */

static void test_addresses(void)
{
	static const struct {
		const char *address, *host;
		int64_t port;
	} cases[] = {
		{ "localhost:1", "localhost", 1 },
		{ "[::1]:65535", "::1", 65535 },
		{ "[]:7", NULL, 0 },
		{ ":7", NULL, 0 },
		{ "a:0", NULL, 0 },
		{ "a:65536", NULL, 0 },
		{ "a", NULL, 0 },
		{ "a:x", NULL, 0 },
		{ "[a:7", "[a", 7 },
		{ "a]:7", "a]", 7 },
		{ "]:7", "]", 7 },
	};
	struct sockaddr_storage to;
	char host[64];
	int64_t port = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		bool is_good = split_address(cases[i].address, host, sizeof(host), &port);

		EXPECT_THAT(cases[i].address,
			    is_good == (cases[i].host != NULL) &&
				    (!is_good ||
				     (strcmp(host, cases[i].host) == 0 && port == cases[i].port)));
	}
	EXPECT(find_local("localhost", false, &to) && to.ss_family == AF_INET &&
	       find_local("localhost", true, &to) && to.ss_family == AF_INET6 &&
	       find_local("127.0.0.1", false, &to) && find_local("127.1.2.3", false, &to));
	EXPECT(!find_local("example.org", false, &to) && !find_local("192.0.2.1", false, &to) &&
	       !find_local("2001:db8::1", false, &to) && !find_local("", false, &to));
}

static struct listener listener_of(const char *const *lines, const char *v4, const char *v6)
{
	struct listener listener = { .is_found = false };

	for (; *lines != NULL; lines++)
		note_listener(&listener, *lines, 0x1f90, v4, v6);
	return listener;
}

/* Whoever is bound to the address gets a connection to it, whatever others do with the same port. */
static void test_listeners(void)
{
#define LISTENER(address, port, state, user)              \
	"   0: " address ":" port " 00000000:0000 " state \
	" 00000000:00000000 00:00000000 00000000 " user " 0 1"
	static const char *const elsewhere[] = { LISTENER("0900007F", "1F90", "0A", "1000"), NULL };
	static const char *const all[] = { LISTENER("00000000", "1F90", "0A", "1000"), NULL };
	static const char *const both[] = { LISTENER("0100007F", "1F90", "0A", "0"),
					    LISTENER("00000000", "1F90", "0A", "1000"), NULL };
	static const char *const several[] = {
		LISTENER("00000000", "1F90", "0A", "1000"),
		LISTENER("00000000000000000000000000000000", "1F90", "0A", "0"), NULL
	};
	static const char *const others[] = { LISTENER("0100007F", "1F90", "01", "1000"),
					      LISTENER("0100007F", "1F91", "0A", "1000"), "x",
					      NULL };
	static const char *const mapped[] = {
		LISTENER("0000000000000000FFFF00000100007F", "1F90", "0A", "7"), NULL
	};
	const char *v4 = "0100007F", *v6 = "0000000000000000FFFF00000100007F";
	struct listener found;

	EXPECT_THAT("one on another address", !listener_of(elsewhere, v4, v6).is_found);
	EXPECT_THAT("connections and other ports", !listener_of(others, v4, v6).is_found);
	found = listener_of(all, v4, v6);
	EXPECT(found.is_found && found.user == 1000);
	found = listener_of(both, v4, v6);
	EXPECT_THAT("the one bound to the address", found.is_found && found.user == 0);
	found = listener_of(mapped, v4, v6);
	EXPECT(found.is_found && found.user == 7);
	EXPECT_THAT("of two users nobody knows", listener_of(several, v4, v6).user == UINT_MAX);
}

static int listen_here(int64_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 || listen(fd, 1) == -1 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		abort();
	*port = ntohs(address.sin_port);
	return fd;
}

static void set_info(struct recording_process *process, const char *text)
{
	process->info = (char *)(uintptr_t)text;
	process->info_bytes = strlen(text);
}

static void test_find(void)
{
	const struct request request = { .probe = &probe, .live = &live, .watch = &watch };
	char address[300], why[300], info[100], wanted[200];
	struct sockaddr_storage to, other;
	const struct sockaddr *at = (const struct sockaddr *)&to;
	int64_t port;
	int fd = listen_here(&port);

	begin(false, true);
	text_copy(probe.asked, sizeof(probe.asked), "llm");
	EXPECT(find_local("127.0.0.1", false, &to) && find_local("127.0.0.9", false, &other));
	EXPECT(has_listener(getpid(), at, port, getuid()) &&
	       !has_listener(getpid(), at, port, getuid() + 1) &&
	       !has_listener(getpid(), at, port == 1 ? 2 : port - 1, getuid()) &&
	       !has_listener(INT32_MAX, at, port, getuid()));
	EXPECT_THAT("the address counts, not only the port",
		    !has_listener(getpid(), (struct sockaddr *)&other, port, getuid()));
	EXPECT(is_in_our_network(getpid()) && !is_in_our_network(INT32_MAX));
	text_format(info, sizeof(info), "env.NCCL_RAS_ADDR=127.0.0.1:%d\n", (int)port);
	set_info(&processes[3], info);
	processes[0].pid_here = INT32_MAX;
	processes[1].pid_here = -1;
	processes[2].life = RECORDING_KILLED;
	EXPECT(find_ras(&request, address, sizeof(address), why, sizeof(why)));
	text_format(wanted, sizeof(wanted), "127.0.0.1:%d", (int)port);
	EXPECT_EQUAL(strcmp(address, wanted), 0);
	text_format(info, sizeof(info), "env.NCCL_RAS_ADDR=localhost:%d\n", (int)port);
	EXPECT_THAT("what was looked at is asked, not a name",
		    find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
			    strcmp(address, wanted) == 0);
	text_format(info, sizeof(info), "env.NCCL_RAS_ADDR=127.0.0.1:%d\n", (int)port);
	close(fd);
	text_format(wanted, sizeof(wanted), "no process of its user listens on 127.0.0.1:%d",
		    (int)port);
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(why, wanted) == 0);
	set_info(&processes[3], "env.NCCL_RAS_ADDR=192.0.2.1:80\n");
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(why, "192.0.2.1:80 is not an address of this host") == 0);
	set_info(&processes[3], "env.NCCL_RAS_ADDR=here\n");
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(why, "NCCL_RAS_ADDR=here is not HOST:PORT") == 0);
	processes[3].pid_here = INT32_MAX;
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(why, "its processes are in another network namespace (a container)") == 0);
	set_info(&processes[3], "env.NCCL_RAS_ENABLE=1\n");
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(address, "localhost:28028") == 0);
	set_info(&processes[3], "env.NCCL_RAS_ENABLE=0\n");
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(why, "NCCL_RAS_ENABLE=0 in its environment") == 0);
	text_copy(probe.asked, sizeof(probe.asked), "other");
	EXPECT(!find_ras(&request, address, sizeof(address), why, sizeof(why)) &&
	       strcmp(why, "none of its processes runs here") == 0);
	end();
}

static void test_must_ask(void)
{
	const struct request request = { .probe = &probe, .live = &live, .watch = &watch };

	begin(false, true);
	text_copy(probe.asked, sizeof(probe.asked), "llm");
	add_hang("llm", 3);
	processes[0].rank = 7;
	EXPECT_THAT("who sees the cause asks", must_ask_ras(&request));
	live.verdicts.list[0].class = VERDICT_ELSEWHERE;
	EXPECT_THAT("others do not", !must_ask_ras(&request));
	processes[3].rank = 0;
	EXPECT_THAT("but the one of rank 0", must_ask_ras(&request));
	text_copy(processes[3].job, sizeof(processes[3].job), "other");
	EXPECT(!must_ask_ras(&request));
	end();
}

static void test_ras(void)
{
	struct agent_probe_job *job;
	const struct verdict *first, *second;
	char info[100], another[200];
	int64_t port;
	int fd = listen_here(&port);

	begin(false, true);
	text_format(info, sizeof(info), "env.NCCL_RAS_ADDR=127.0.0.1:%d\n", (int)port);
	for (int i = 0; i < PROCESSES; i++)
		set_info(&processes[i], info);
	add_hang("llm", 3);
	add_hang("llm", 4);
	add_hang("other", 5);
	first = &live.verdicts.list[0];
	second = &live.verdicts.list[1];
	agent_probe_add(&probe, &live, BEGIN);
	job = &probe.jobs[0];
	ras_play.is_ours = true;
	ask(BEGIN);
	EXPECT_EQUAL(job->line_count, 3);
	EXPECT(has_line(job, "evidence", first, "RAS: rank 3 is?missing") ||
	       has_line(job, "evidence", first, "RAS: rank 3 is missing"));
	EXPECT(has_line(job, "evidence", first, "RAS: 7 ranks answer"));
	EXPECT(has_line(job, "confidence", second, "0.8750"));
	EXPECT_THAT("what the child adds is not in the agent",
		    first->evidence.count == 1 && second->confidence == 0.5);
	agent_probe_add(&probe, &live, BEGIN);
	EXPECT(first->evidence.count == 3 && second->confidence == 0.875);
	verdicts_release(&live.verdicts);
	add_hang("llm", 3);
	add_hang("llm", 4);
	add_hang("other", 5);
	first = &live.verdicts.list[0];
	second = &live.verdicts.list[1];
	ras_play.is_ours = false;
	job->begun_ns = 0;
	probe.jobs[1].begun_ns = BEGIN;
	ask(BEGIN);
	text_format(another, sizeof(another),
		    "what NCCL's RAS knows: 127.0.0.1:%d answers for another job", (int)port);
	EXPECT(job->line_count == 2 && has_line(job, "missing", first, another) &&
	       has_line(job, "missing", second, another));
	ras_play.supported = ERR_NO_SPACE;
	job->begun_ns = 0;
	ask(BEGIN);
	ras_play.supported = OK;
	EXPECT(job->line_count == 2);
	ras_play.read = ERR_FORMAT;
	job->begun_ns = 0;
	ask(BEGIN);
	EXPECT(has_line(job, "missing", first, "what NCCL's RAS knows: its answer cannot be read"));
	ras_play.asked = ERR_SYSTEM;
	job->begun_ns = 0;
	ask(BEGIN);
	EXPECT(has_line(job, "missing", second, "what NCCL's RAS knows: it does not answer"));
	close(fd);
	end();
}

/* A child that takes too long. */
static void test_late(void)
{
	begin(true, false);
	add_hang("llm", 3);
	agent_probe_add(&probe, &live, BEGIN);
	run(BEGIN);
	EXPECT(probe.is_asking && probe.child.until_ns == BEGIN + 40 * SECOND &&
	       probe.child.limit == 256 * 1024);
	probe.count = 0;
	while (probe.is_asking)
		run(BEGIN + 40 * SECOND);
	EXPECT_THAT("the answer about a job that is over is no news", !has_news);
	end();
}

int main(void)
{
	test_chosen();
	test_many_processes();
	test_jobs();
	test_turns();
	test_stacks();
	test_output();
	test_addresses();
	test_listeners();
	test_find();
	test_must_ask();
	test_ras();
	test_late();
	return tap_done();
}
