/*
 * What the first communicator sets up, and what a communicator leaves to the next owner of its
 * slot: signals, forks, a trace that cannot be written, the text about the process, shared tables.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "tests/unit/plugin/defect_process.h"

static void expect(bool is_true, int code)
{
	if (!is_true)
		_exit(code);
}

/* ---- signals ---------------------------------------------------------------------------------- */

static bool is_pending(int signal_number)
{
	sigset_t pending;

	sigemptyset(&pending);
	sigpending(&pending);
	return sigismember(&pending, signal_number);
}

/* Nobody reads standard error, and there is something to say. */
static void init_without_a_listener(int blocked, bool is_raised)
{
	sigset_t before, after, block;
	int ends[2];

	expect(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) != -1, 2);
	close(ends[0]);
	close(ends[1]);
	setenv("RINGSIDE_MODE", "everything", 1);
	sigemptyset(&block);
	if (blocked != 0)
		sigaddset(&block, blocked);
	sigprocmask(SIG_BLOCK, &block, &before);
	if (is_raised)
		raise(blocked);
	sigprocmask(SIG_BLOCK, NULL, &before);
	play_init(1, 1, 2, 0);
	sigprocmask(SIG_BLOCK, NULL, &after);
	for (int i = 1; i < 32; i++)
		expect(sigismember(&before, i) == sigismember(&after, i), 3);
	expect(is_pending(SIGPIPE) == (is_raised && blocked == SIGPIPE), 4);
	expect(is_pending(SIGXFSZ) == (is_raised && blocked == SIGXFSZ), 5);
	expect(strstr(recorder.region.info, "\nmessage.1=ringside: RINGSIDE_MODE=everything is not "
					    "flight, ") != NULL,
	       6);
}

static void init_plainly(void)
{
	init_without_a_listener(0, false);
}

static void init_with_sigpipe_blocked(void)
{
	init_without_a_listener(SIGPIPE, false);
}

static void init_with_sigpipe_pending(void)
{
	init_without_a_listener(SIGPIPE, true);
}

static void init_with_sigxfsz_pending(void)
{
	init_without_a_listener(SIGXFSZ, true);
}

/* ---- forks ------------------------------------------------------------------------------------ */

/* The child's calls are nobody's, and its exit does not end the parent's recording. */
static void fork_in_between(void)
{
	void *context = play_init(1, 1, 2, 0), *handle = NULL;
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	int how, ends[2];
	pid_t child;

	play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	expect(pipe(ends) == 0, 2);
	child = fork();
	if (child == 0) {
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
		ncclProfiler_v5.start_event(context, &handle, &group);
		ncclProfiler_v5.finalize(context);
		expect(!load_relaxed(&recorder.is_on), 3);
		expect(handle_kind(handle_decode(recorder.salt, handle)) == HANDLE_IGNORED, 4);
		handle = (void *)0xdead;
		ncclProfiler_v5.init(&handle, 2, &play_mask, "test", 1, 2, 0, NULL);
		expect(handle_kind(handle_decode(recorder.salt, handle)) == HANDLE_IGNORED &&
			       play_mask == 0,
		       5);
		exit(0);
	}
	expect(waitpid(child, &how, 0) == child && how == 0, 6);
	expect(recorder.region.header->ended_ns == 0, 7);
	expect(access(recorder.region.path, F_OK) == 0, 8);
	play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
}

/* A fork before the first communicator: each process has a recording of its own. */
static void fork_first(void)
{
	pid_t child = fork();
	int how;

	if (child == 0) {
		play_init(1, 1, 2, 0);
		expect(load_relaxed(&recorder.is_on) && recorder.pid == getpid(), 3);
		unlink(recorder.region.path);
		_exit(0);
	}
	expect(waitpid(child, &how, 0) == child && how == 0, 4);
	play_issue(play_init(1, 1, 2, 0), "AllReduce", 8, "ncclFloat32", 1);
}

/* ---- a trace that cannot be written ------------------------------------------------------------ */

static bool info_has(const char *line)
{
	const char *info = recorder.region.info;

	return memmem(info, recorder.region.header->info_bytes, line, strlen(line)) != NULL;
}

static void trace_into(const char *dir, const char *message)
{
	setenv("RINGSIDE_DIR", dir, 1);
	play_issue(play_init(1, 1, 2, 0), "AllReduce", 8, "ncclFloat32", 1);
	expect(info_has("\nmode=flight\n") && info_has("\ntrace=\n"), 2);
	expect(recorder.region.header->mode == REGION_MODE_FLIGHT, 3);
	expect(info_has(message) && !info_has("\nmessage.2="), 4);
	expect(!recorder.is_full, 5);
}

static void trace_into_nothing(void)
{
	trace_into("/dev/null/x", "(Not a directory); recording without a trace file\n");
}

static void trace_into_no_path(void)
{
	trace_into("/tmp/%q", "\nmessage.1=ringside: RINGSIDE_DIR=/tmp/%q is not a usable path ");
}

/* ---- the text about the process ---------------------------------------------------------------- */

static void describe(void)
{
	setenv("RINGSIDE_LABELS", "team=a,stage=,hf=hf_AbCdEf0123456789", 1);
	setenv("RINGSIDE_HANG_AFTER", "77", 1);
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("POD_NAME", "llama-worker-0", 1);
	setenv("POD_NAMESPACE", "team-a", 1);
	setenv("RINGSIDE_HEARTBEAT", "3", 1);
	setenv("RANK", "5", 1);
	play_init(1, 1, 2, 0);
	expect(info_has("\nlabel.team=a\nlabel.stage=\nlabel.hf=***\n"), 2);
	expect(info_has("\nhang_after_s=77\n") && info_has("\npod_namespace=team-a\n"), 3);
	expect(info_has("\nrank=5\n") && info_has("\nregion_kind=shm\n"), 4);
	expect(info_has("\nheartbeat_ns=3000000000\n") && info_has("\ninterface=5\n"), 5);
	expect(!info_has("env_left_out"), 6);
}

/* More than there is room for: whole lines, and the number of those that are missing. */
static void describe_too_much(void)
{
	extern char **environ;
	static char value[200], *environment[204];
	static char mutant[2][512]; /* of scripts/mutants: it follows the test */
	static char program[] = "/proc/self/exe", name[] = "test_process_setup";
	static char *arguments[] = { program, name, NULL };
	char shm[128], text[256];
	int count = 0;

	if (getenv("NCCL_TOO_MUCH_0") == NULL) {
		/* The names are read from the environment at the start of the process. */
		memset(value, 'v', sizeof(value) - 1);
		text_format(shm, sizeof(shm), "RINGSIDE_SHM=%s", getenv("RINGSIDE_SHM"));
		for (int i = 0; i < 200; i++) {
			text_format(text, sizeof(text), "NCCL_TOO_MUCH_%d=%s", i, value);
			environment[count++] = strdup(text);
		}
		environment[count] = shm;
		for (int i = 0; i < 2; i++) {
			const char *name_of = i == 0 ? "MUTANT" : "MUTANTS_SEEN";

			if (getenv(name_of) == NULL)
				continue;
			text_format(mutant[i], sizeof(mutant[i]), "%s=%s", name_of,
				    getenv(name_of));
			environment[++count] = mutant[i];
		}
		execve(program, arguments, environment);
		_exit(2);
	}
	play_init(1, 1, 2, 0);
	for (char **at = environ; *at != NULL; at++)
		count += strncmp(*at, "NCCL_TOO_MUCH_", 14) == 0;
	for (const char *at = recorder.region.info; (at = strstr(at, "\nenv.NCCL_TOO_MUCH_")); at++)
		count--;
	text_format(text, sizeof(text), "\nenv_left_out=%d\n", count);
	expect(count > 0 && info_has(text), 3);
	expect(recorder.region.header->info_bytes <= REGION_INFO_BYTES, 4);
	exit(0);
}

/* ---- memory ------------------------------------------------------------------------------------ */

static void init_with(const char *mode, uint32_t ring, uint32_t details)
{
	setenv("RINGSIDE_MODE", mode, 1);
	setenv("RINGSIDE_DIR", "/%q", 1); /* no usable path: no trace */
	setenv("RINGSIDE_BUFFER", "2MiB", 1);
	play_init(1, 1, 2, 0);
	expect(recorder.region.ring_count == ring, 2);
	expect(recorder.region.detail_count == details, 3);
}

static void share_the_buffer(void)
{
	init_with("full", 4096, 8192);
}

static void have_the_buffer_for_operations(void)
{
	init_with("flight", 8192, 0);
}

static void have_no_ring(void)
{
	init_with("profile", 0, 0);
}

/* Memory that ends with its process: no heartbeat, and the reason is noted. */
static void have_no_file(void)
{
	setenv("RINGSIDE_SHM", "/dev/null/x", 1);
	setenv("RINGSIDE_HEARTBEAT", "3", 1);
	play_init(1, 1, 2, 0);
	expect(recorder.region.kind == REGION_KIND_MEMFD, 2);
	expect(info_has("\nregion_kind=memfd\n") && info_has("\nheartbeat_ns=0\n"), 3);
	expect(recorder.region.header->alive_ns == 0, 4);
}

/* ---- the next owner of a slot ------------------------------------------------------------------ */

static void send_to(void *context, int peer)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *api = play_start(context, group), *task;
	void *proxy, *step;

	task = play_p2p(context, play_p2p_api(context, api, "Send", 256), "Send", 256, peer);
	play_stop(api);
	proxy = play_proxy_start(context, task, getpid(), 0, peer, true);
	step = play_step_start(context, proxy, 0);
	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	play_state(step, ABI_STEP_SEND_WAIT, 1000);
	play_stop(step);
	play_stop(proxy);
}

struct sums {
	uint64_t peers, links, totals;		       /* slots of a communicator */
	uint64_t peer_calls;			       /* what they hold */
	uint64_t count, bytes, max_ns, proxies, steps; /* of all */
};

static struct sums sums_of(uint32_t id)
{
	const struct region_writer *region = &recorder.region;
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < region->peer_count; i++)
		if (region->peers[i].key >> 34 == id) {
			sums.peers++;
			sums.peer_calls += region->peers[i].count;
		}
	for (uint32_t i = 0; i < region->link_count; i++) {
		sums.links += region->links[i].key >> 34 == id;
		sums.proxies += region->links[i].proxies;
		sums.steps += region->links[i].steps;
	}
	for (uint32_t i = 0; i < region->total_count; i++) {
		sums.totals += region->totals[i].key >> 40 == id;
		sums.count += region->totals[i].count;
		sums.bytes += region->totals[i].bytes;
		if (region->totals[i].max_ns > sums.max_ns)
			sums.max_ns = region->totals[i].max_ns;
	}
	return sums;
}

/* Its places are free for others, what it did is still in the sums, and others keep theirs. */
static void take_the_slot_of_another(void)
{
	void *first = play_init(1, 2, 4, 0), *second = play_init(2, 2, 4, 0), *context;
	struct sums before, after, kept;
	uint32_t made;

	for (int i = 0; i < 3; i++) {
		send_to(first, 1);
		send_to(first, 2);
		send_to(second, 1);
	}
	ncclProfiler_v5.finalize(first);
	/* Nothing was timed: a maximum to carry over. */
	for (uint32_t i = 0; i < recorder.region.total_count; i++)
		if (recorder.region.totals[i].key >> 40 == 1)
			recorder.region.totals[i].max_ns = 7000;
	before = sums_of(1);
	kept = sums_of(2);
	expect(before.peers == 2 && before.links == 2 && before.totals > 0, 2);
	expect(kept.peers == 1 && kept.links == 1 && kept.peer_calls == 3, 3);
	expect(before.proxies == 9 && before.max_ns > 0, 4);
	for (made = 2; made < recorder.region.comm_count; made++)
		ncclProfiler_v5.finalize(play_init(made + 1, 1, 2, 0));
	expect(sums_of(1).peers == 2, 5); /* free slots come first */
	context = play_init(made + 1, 1, 2, 0);
	expect(hot_comm(context) == &recorder.comms[0], 6);
	after = sums_of(1);
	expect(after.peers == 0 && after.links == 0 && after.totals == 0, 7);
	expect(after.count == before.count && after.bytes == before.bytes, 8);
	expect(after.max_ns == before.max_ns && after.steps == before.steps, 9);
	expect(after.proxies == before.proxies && recorder.region.links[0].proxies == 6, 10);
	after = sums_of(2);
	expect(after.peers == 1 && after.links == 1 && after.peer_calls == 3, 11);
	/* The one that ended first goes first. */
	ncclProfiler_v5.finalize(second);
	play_init(made + 2, 1, 2, 0);
	expect(sums_of(2).peers == 1 && recorder.region.comms[2].info.id == made + 2, 12);
}

int main(void)
{
	static const struct {
		const char *name, *mode;
		void (*body)(void);
		uint64_t issued;
	} cases[] = {
		{ "a message that nobody reads does not kill the job", "flight", init_plainly, 0 },
		{ "nor leave a signal behind", "flight", init_with_sigpipe_blocked, 0 },
		{ "the job's own signal is left to it", "flight", init_with_sigpipe_pending, 0 },
		{ "whichever it is", "flight", init_with_sigxfsz_pending, 0 },
		{ "a forked child records nothing", "flight", fork_in_between, 2 },
		{ "one that was forked first records itself", "flight", fork_first, 1 },
		{ "without a directory for its trace a job records on", "full", trace_into_nothing,
		  1 },
		{ "so it does without a usable name for one", "trace", trace_into_no_path, 1 },
		{ "the region describes its process", "flight", describe, 0 },
		{ "details get half of the buffer", "full", share_the_buffer, 0 },
		{ "operations have all of it without them", "flight",
		  have_the_buffer_for_operations, 0 },
		{ "a profile needs none", "profile", have_no_ring, 0 },
		{ "a slot's next owner finds nothing of the last one", "flight",
		  take_the_slot_of_another, 0 },
	};
	struct defect_run run;

	if (getenv("NCCL_TOO_MUCH_0") != NULL)
		describe_too_much();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		run = defect_run(cases[i].mode, cases[i].body);
		EXPECT_THAT(cases[i].name, run.status == 0 && run.process != NULL);
		if (run.status != 0)
			printf("# status 0x%x\n", (unsigned int)run.status);
		if (cases[i].issued != 0)
			EXPECT_EQUAL(run.account.issued, cases[i].issued);
		defect_release(&run);
	}
	run = defect_run("flight", have_no_file);
	EXPECT_THAT("a region that ends with its process needs no heartbeat", run.status == 0);
	defect_release(&run);
	run = defect_run("flight", describe_too_much);
	EXPECT_THAT("what does not fit is counted", run.status == 0);
	if (run.status != 0)
		printf("# status 0x%x\n", (unsigned int)run.status);
	defect_release(&run);
	return tap_done();
}
