/* Tapes: reading, replaying, recording, and all three in a cycle. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/host.h"
#include "tests/unit/sim/stage.h"

/* ---- reading --------------------------------------------------------------------------------- */

static struct tape tape_of(const char *text)
{
	struct tape tape = { 0 };
	struct tape_error error;

	if (tape_parse(&tape, text, strlen(text), TAPE_VERSION_UNNAMED, &error) != OK) {
		printf("# line %zu: %s\n", error.line, error.text);
		abort();
	}
	return tape;
}

static void real_tapes_are_read(void)
{
	static const struct {
		const char *path;
		size_t lines, starts;
		uint32_t threads;
	} tapes[] = {
		{ "tests/tapes/six-ops-rank0.tap", 3197, 834, 2 },
		{ "tests/tapes/six-ops-rank1.tap", 3193, 833, 2 },
		{ "tests/tapes/graph-replay-a.tap", 780, 220, 3 },
		{ "tests/tapes/six-ops-v6-rank0.tap", 3108, 817, 2 },
	};

	for (size_t i = 0; i < sizeof(tapes) / sizeof(tapes[0]); i++) {
		struct tape tape = { 0 };
		struct tape_error error;
		size_t starts = 0;

		printf("# %s\n", tapes[i].path);
		EXPECT_EQUAL(tape_read(&tape, tapes[i].path, TAPE_VERSION_UNNAMED, &error), OK);
		EXPECT_EQUAL(tape.count, tapes[i].lines);
		EXPECT_EQUAL(tape.threads, tapes[i].threads);
		for (size_t j = 0; j < tape.count; j++)
			starts += tape.lines[j].what == TAPE_START;
		EXPECT_EQUAL(starts, tapes[i].starts);
		tape_release(&tape);
	}
}

static void words_mean_what_they_say(void)
{
	struct tape tape = tape_of(
		"# interface v6\n"
		"10 77 INIT ctx=0x1 id=3ebfde700b16877c name=a%20b nnodes=2 nranks=4 rank=3\n"
		"\n"
		"# a remark\n"
		"20 77 START 0x9 ctx=0x1 type=2 parent=0x3 rank=3 Coll seq=5 AllReduce count=256 "
		"dt=ncclInt32 root=-1 nch=1 nw=3 RING - pg=0x7 later=1\n"
		"30 78 START 0xc ctx=0x1 type=16 parent=(nil) rank=0 ProxyStep 4\n"
		"40 78 STATE 0xc 9 arg=1024\n"
		"50 78 STATE 0xc 23 arg=0 null=1\n"
		"60 77 STOP (nil)\n"
		"70 77 FINI ctx=0x1");

	EXPECT_EQUAL(tape.count, 6);
	EXPECT_THAT("the last line is incomplete: skipped", tape.lines[5].what == TAPE_STOP);
	EXPECT_EQUAL(tape.lines[0].version, 6);
	EXPECT_EQUAL(tape.lines[0].hash, 0x3ebfde700b16877c);
	EXPECT(strcmp(tape.lines[0].name, "a b") == 0);
	EXPECT_EQUAL(tape.lines[0].rank, 3);
	EXPECT_EQUAL(tape.lines[1].time_ns, 20);
	EXPECT_EQUAL(tape.lines[1].handle, 9);
	EXPECT_EQUAL(tape.lines[1].sequence, 5);
	EXPECT_EQUAL(tape.lines[1].group, 7);
	EXPECT_EQUAL((int)tape.lines[1].root, -1);
	EXPECT(strcmp(tape.lines[1].function, "AllReduce") == 0);
	EXPECT(strcmp(tape.lines[1].algorithm, "RING") == 0);
	EXPECT(strcmp(tape.lines[1].protocol, "") == 0);
	EXPECT_EQUAL(tape.lines[2].step, 4);
	EXPECT_EQUAL(tape.lines[2].thread, 1);
	EXPECT_EQUAL(tape.lines[3].arg, 1024);
	EXPECT(tape.lines[3].has_args && !tape.lines[4].has_args);
	EXPECT_EQUAL(tape.lines[5].handle, 0);
	tape_release(&tape);
}

static void wrong_lines_are_named(void)
{
	static const struct {
		const char *line, *complaint;
	} wrong[] = {
		{ "x 1 STOP 0x1\n", "not a time" },
		{ "1 y STOP 0x1\n", "not a thread" },
		{ "1 2\n", "expected" },
		{ "1 2 STAP 0x1\n", "not INIT" },
		{ "1 2 STOP\n", "missing handle" },
		{ "1 2 STATE 0x1 99 arg=0\n", "missing state" },
		{ "1 2 STATE 0x1 9 arg=many\n", "not a number" },
		{ "1 2 START 0x1 ctx=0x1 parent=(nil) rank=0\n", "type=" },
		{ "1 2 START 0x1 ctx=0x1 type=3 parent=(nil) rank=0\n", "type=" },
		{ "1 2 START 0x1 ctx=0x1 type=1 parent=(nil) rank=0 Coll\n", "disagree" },
		{ "1 2 START 0x1 ctx=0x1 type=16 parent=(nil) rank=0 ProxyStep x\n", "step" },
		{ "1 2 START 0x1 ctx=0x1 type=2 parent=(nil) rank=0 Coll a b c d\n", "unexpected "
										     "word" },
		{ "# interface v9\n", "unknown interface" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct tape tape = { 0 };
		struct tape_error error;
		char text[400];

		snprintf(text, sizeof(text), "# one\n1 2 STOP 0x1\n%s1 2 STOP 0x2\n",
			 wrong[i].line);
		EXPECT_EQUAL(tape_parse(&tape, text, strlen(text), 5, &error), ERR_FORMAT);
		EXPECT_EQUAL(error.line, 3);
		if (!EXPECT_THAT(wrong[i].complaint, strstr(error.text, wrong[i].complaint)))
			printf("#   said: %s\n", error.text);
		EXPECT_EQUAL(tape.count, 0);
	}
}

static void binary_is_refused_and_a_missing_file_too(void)
{
	struct tape tape = { 0 };
	struct tape_error error;

	EXPECT_EQUAL(tape_parse(&tape, "1 2 ST\0P\n", 9, 5, &error), ERR_FORMAT);
	EXPECT_EQUAL(tape_parse(&tape, "", 0, 5, &error), OK);
	EXPECT_EQUAL(tape.count, 0);
	tape_release(&tape);
	EXPECT_EQUAL(tape_read(&tape, "/does/not/exist.tap", 5, &error), ERR_SYSTEM);
	EXPECT(strstr(error.text, "No such file") != NULL);
}

/* ---- playing --------------------------------------------------------------------------------- */

static struct tape_counts play_to_witness(const struct tape *tape, int mask, bool keeps_stamps)
{
	struct tape_config config = { .linked = &witness_linked, .keeps_stamps = keeps_stamps };
	struct tape_counts counts;
	struct tape_error error;

	witness_reset(mask);
	witness.next_id = 100000; /* different from the ids of the tape */
	if (tape_play(tape, &config, &counts, &error) != OK)
		printf("# %s\n", error.text);
	return counts;
}

static void real_tape_is_played(void)
{
	struct tape tape = { 0 };
	struct tape_error error;
	struct tape_counts counts;
	const struct witness_call *coll;
	bool is_in_order = true;

	tape_read(&tape, "tests/tapes/graph-replay-a.tap", 5, &error);
	counts = play_to_witness(&tape, 0xffff, true);
	EXPECT_EQUAL(counts.version, 5);
	EXPECT_EQUAL(counts.unasked, 0);
	EXPECT_EQUAL(counts.starts, 220);
	EXPECT_EQUAL(witness.count, tape.count);
	for (size_t i = 0; i < tape.count && i < witness.count; i++)
		is_in_order &= "ISTEF"[tape.lines[i].what] == witness.calls[i].what;
	EXPECT_THAT("every line is replayed, in the order of the tape", is_in_order);
	coll = witness_nth(ABI_COLL, 12);
	EXPECT_EQUAL(coll->parent, witness_nth(ABI_COLL_API, 2)->handle);
	EXPECT_EQUAL(coll->parent_group, witness_nth(ABI_GROUP, 12)->handle);
	EXPECT_EQUAL(coll->context, 100001);
	EXPECT_EQUAL(coll->count, 256);
	EXPECT(strcmp(coll->datatype, "ncclInt32") == 0);
	EXPECT(strcmp(witness_nth(ABI_COLL_API, 0)->datatype, "Unknown") == 0);
	EXPECT_THAT("threads stay separate",
		    !pthread_equal(coll->thread, witness_nth(ABI_COLL_API, 0)->thread) &&
			    !pthread_equal(coll->thread, witness_nth(ABI_PROXY_OP, 0)->thread));
	EXPECT(stage_is_balanced());
	EXPECT_THAT("GroupApi's states have no argument",
		    !witness_find('T', witness_nth(ABI_GROUP_API, 0)->handle, 23)->has_args);
	tape_release(&tape);
}

static void mask_chooses_lines(void)
{
	struct tape tape = { 0 };
	struct tape_error error;
	struct tape_counts counts;

	tape_read(&tape, "tests/tapes/six-ops-rank0.tap", 5, &error);
	counts = play_to_witness(&tape, ABI_COLL, true);
	EXPECT_EQUAL(witness_starts(ABI_COLL), 30);
	EXPECT_EQUAL(witness_starts(ABI_COLL_API), 30);
	EXPECT_EQUAL(witness_starts(ABI_GROUP_API), 36);
	EXPECT_EQUAL(witness_starts(ABI_P2P) + witness_starts(ABI_PROXY_OP), 0);
	EXPECT_EQUAL(counts.inits + counts.starts + counts.states + counts.stops +
			     counts.finalizes + counts.unasked,
		     tape.count);
	EXPECT(stage_is_balanced());
	tape_release(&tape);
}

static void stamps_move_to_the_present(void)
{
	struct tape tape = tape_of("1000 1 INIT ctx=0x1 id=1 name=(null) nnodes=1 nranks=2 rank=0\n"
				   "2000 2 START 0x2 ctx=0x1 type=64 parent=(nil) rank=0 KernelCh "
				   "ch=3 pt=1900\n"
				   "3000 2 STATE 0x2 22 arg=2700\n"
				   "3000 2 STOP 0x2\n");
	uint64_t start, stop;

	play_to_witness(&tape, 0xffff, true);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 0)->gpu_ns, 1900);
	play_to_witness(&tape, 0xffff, false);
	start = witness_nth(ABI_KERNEL_CH, 0)->gpu_ns;
	stop = witness_find('T', witness_nth(ABI_KERNEL_CH, 0)->handle, 22)->arg;
	EXPECT(start > 1900);
	EXPECT_EQUAL(stop - start, 800);
	tape_release(&tape);
}

static void strange_ids_are_passed_on(void)
{
	struct tape tape = tape_of("1000 1 INIT ctx=0x1 id=1 name=(null) nnodes=1 nranks=2 rank=0\n"
				   "1001 1 START 0x2 ctx=0x7f00aa type=8 parent=0x7f00bb rank=0 "
				   "ProxyOp pid=5 ch=0 peer=1 "
				   "nsteps=1 chunk=1 send=1\n"
				   "1002 1 STOP 0x2\n"
				   "1003 1 STOP 0x2\n"
				   "1004 1 STOP (nil)\n"
				   "1005 1 STOP 0xdead\n"
				   "1006 1 FINI ctx=0x1\n"
				   "1007 1 FINI ctx=0x1\n");

	play_to_witness(&tape, 0xffff, true);
	EXPECT_EQUAL(witness_nth(ABI_PROXY_OP, 0)->context, 0x7f00aa);
	EXPECT_EQUAL(witness_nth(ABI_PROXY_OP, 0)->parent, 0x7f00bb);
	EXPECT_EQUAL(witness_count_of('E', witness_nth(ABI_PROXY_OP, 0)->handle), 2);
	EXPECT_EQUAL(witness_count_of('E', 0), 1);
	EXPECT_EQUAL(witness_count_of('E', 0xdead), 1);
	tape_release(&tape);
}

static void pauses_are_kept_when_asked(void)
{
	struct tape tape = tape_of("0 1 INIT ctx=0x1 id=1 name=(null) nnodes=1 nranks=2 rank=0\n"
				   "5000000 1 FINI ctx=0x1\n");
	struct tape_config config = { .linked = &witness_linked, .is_timed = true };
	struct tape_counts counts;
	struct tape_error error;
	struct timespec before, after;

	witness_reset(0xffff);
	clock_gettime(CLOCK_MONOTONIC, &before);
	EXPECT_EQUAL(tape_play(&tape, &config, &counts, &error), OK);
	clock_gettime(CLOCK_MONOTONIC, &after);
	EXPECT_THAT("it took at least as long as recorded",
		    (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >=
			    5000000);
	config = (struct tape_config){ .plugin = "/does/not/exist.so" };
	EXPECT_EQUAL(tape_play(&tape, &config, &counts, &error), ERR_UNKNOWN);
	EXPECT(strstr(error.text, "exist.so") != NULL);
	tape_release(&tape);
}

/* ---- recording ------------------------------------------------------------------------------- */

static char recorder[4096];
static char directory[] = "/tmp/test-tape-XXXXXX";

/* Two directories above this program's, or in the build directory. */
static void find_recorder(void)
{
	const char *build = getenv("BUILD");
	char self[2048];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[length > 0 ? length : 0] = '\0';
	*strrchr(self, '/') = '\0'; /* .../tests/unit */
	*strrchr(self, '/') = '\0'; /* .../tests */
	*strrchr(self, '/') = '\0';
	snprintf(recorder, sizeof(recorder), "%s/libnccl-profiler-tape.so", self);
	if (access(recorder, R_OK) != 0 && build)
		snprintf(recorder, sizeof(recorder), "%s/libnccl-profiler-tape.so", build);
	if (mkdtemp(directory) == NULL)
		abort();
}

static void path_of(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", directory, name);
}

/* Each recording runs in its own process: the recorder keeps its file open until the end. */
static int in_child(void (*act)(void *), void *arg, const char *tape)
{
	char path[200];
	int status = -1;
	pid_t pid;

	path_of(path, sizeof(path), tape);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setenv("RINGSIDE_TAPE", path, 1);
		setenv("RINGSIDE_TAPE_EVENTS", "0xffff", 1);
		act(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	return status;
}

/* A mix of everything that the release has. */
static void play_mix(void *arg)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE,	OP_ALL_GATHER, OP_BROADCAST,
					     OP_REDUCE_SCATTER, OP_REDUCE,     OP_ALL_TO_ALL };
	struct host_config config = { .release = *(const int *)arg,
				      .plugin = recorder,
				      .gpu_offset_ns = 5 };
	struct host_comm_config comm_config = {
		.hash = 0xfeed, .name = "a=b c%", .nranks = 4, .nnodes = 2, .rank = 2
	};
	struct host_foreign foreign = { 4242, (void *)0x7f0011, (void *)0x7f0022 };
	struct host_user user = { 0 };
	struct host *host;
	struct host_comm *comm;
	struct host_graph *graph;
	struct host_op op;

	if (host_new(&host, &config) != OK || host_comm_new(host, &comm, &comm_config) != OK ||
	    host_graph_new(host, &graph) != OK || host_plugin(host)->version == 0)
		_exit(3);
	for (size_t i = 0; i < sizeof(functions); i++) {
		op = host_op_make(comm, functions[i], 100, OP_BFLOAT16);
		op.has_network = op.has_net_events = true;
		op.channels = 2;
		op.steps = 3;
		op.user_tag = i;
		host_play(&user, &op);
	}
	op.function = OP_ALL_REDUCE;
	host_play_group(&user, &(struct host_group){ .ops = &op, .count = 1, .capture = graph });
	host_graph_replay(graph);
	op.path = HOST_PATH_COPY_ENGINE;
	host_play(&user, &op);
	op.path = HOST_PATH_SYMMETRIC;
	host_play(&user, &op);
	op = host_op_make(comm, OP_SEND, 9, OP_UINT8);
	op.has_network = true;
	host_play_foreign(&op, &foreign);
	op.quirks = HOST_QUIRK_STOP_TWICE | HOST_QUIRK_STOP_NULL;
	host_play(&user, &op);
	host_comm_settle(comm);
	host_graph_free(graph);
	host_comm_destroy(comm);
	host_free(host);
}

static void play_tape_again(void *arg)
{
	struct tape_config config = { .plugin = recorder, .keeps_stamps = true };
	struct tape tape = { 0 };
	struct tape_counts counts;
	struct tape_error error;

	if (tape_read(&tape, arg, 5, &error) != OK ||
	    tape_play(&tape, &config, &counts, &error) != OK) {
		fprintf(stderr, "line %zu: %s\n", error.line, error.text);
		_exit(4);
	}
	tape_release(&tape);
}

/* A line without its time, with its thread replaced by the order of appearance. */
static char *line_normal(char *line, long *threads, size_t *count)
{
	char *thread = strchr(line, ' ') + 1, *rest;
	long id = strtol(thread, &rest, 10);
	size_t i = 0;

	while (i < *count && threads[i] != id)
		i++;
	if (i == *count && i < 31)
		threads[(*count)++] = id;
	rest[-1] = (char)('A' + i);
	return rest - 1;
}

/* Number of equal lines up to the first difference; *total: number of lines. */
static size_t lines_alike(const char *left_path, const char *right_path, size_t *total)
{
	FILE *left = fopen(left_path, "r"), *right = fopen(right_path, "r");
	char a[2048], b[2048];
	long left_threads[32], right_threads[32];
	size_t left_count = 0, right_count = 0, alike = 0;
	bool is_alike = true;

	*total = 0;
	while (left && right && fgets(a, sizeof(a), left)) {
		const char *first = a, *second = b;

		++*total;
		if (fgets(b, sizeof(b), right) == NULL)
			snprintf(b, sizeof(b), "(nothing)");
		if (a[0] != '#' && b[0] != '#' && b[0] != '(') {
			first = line_normal(a, left_threads, &left_count);
			second = line_normal(b, right_threads, &right_count);
		}
		if (is_alike && strcmp(first, second) != 0)
			printf("# %s# %s", first, second);
		is_alike &= strcmp(first, second) == 0;
		alike += is_alike;
	}
	if (right && fgets(b, sizeof(b), right))
		alike = 0;
	if (left)
		fclose(left);
	if (right)
		fclose(right);
	return alike;
}

static void circle_is_closed(void)
{
	static int releases[] = { HOST_NCCL_2_23, HOST_NCCL_2_25, HOST_NCCL_2_26, HOST_NCCL_2_27,
				  HOST_NCCL_2_28, HOST_NCCL_2_30, HOST_NCCL_2_31 };
	char first[200], second[200], name[40];
	size_t total;

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		printf("# release %d\n", releases[i]);
		snprintf(name, sizeof(name), "first-%zu.tap", i);
		path_of(first, sizeof(first), name);
		EXPECT_EQUAL(in_child(play_mix, &releases[i], name), 0);
		snprintf(name, sizeof(name), "second-%zu.tap", i);
		path_of(second, sizeof(second), name);
		EXPECT_EQUAL(in_child(play_tape_again, first, name), 0);
		EXPECT_EQUAL(lines_alike(first, second, &total), total);
		EXPECT(total > 100);
	}
}

static size_t count_in_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char line[2048];
	size_t count = 0;

	while (file && fgets(line, sizeof(line), file))
		count += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return count;
}

static void tape_has_all_fields(void)
{
	char path[200];

	path_of(path, sizeof(path), "first-4.tap");
	EXPECT_EQUAL(count_in_file(path, "# interface v5\n"), 1);
	EXPECT_EQUAL(count_in_file(path, "id=feed name=a%3Db%20c%25 nnodes=2 nranks=4 rank=2"), 1);
	EXPECT_EQUAL(count_in_file(path, "CollApi AllGather count=100 captured=0 dt=ncclBfloat16"),
		     1);
	EXPECT_EQUAL(count_in_file(path, "Coll seq=0 AllGather count=200 dt=ncclInt8 root=0 nch=2 "
					 "nw=3 RING LL pg=0x"),
		     1);
	EXPECT_EQUAL(count_in_file(path, " STATE (nil) 9 arg=0 null=1"), 1);
	EXPECT_EQUAL(count_in_file(path, "ctx=0x7f0011 type=8 parent=0x7f0022"), 1);
	path_of(path, sizeof(path), "first-6.tap");
	EXPECT_EQUAL(count_in_file(path, "# interface v7\n"), 1);
	EXPECT(count_in_file(path, " tag=3") > 0);
	EXPECT_EQUAL(count_in_file(path, "CeColl seq="), 1);
	EXPECT(count_in_file(path, "KernelPhase ch=0 phase=1 pt=") > 0);
	EXPECT_EQUAL(count_in_file(path, "sym=1 variant=AllReduce"), 1);
}

static void record_and_die(void *arg)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .plugin = recorder };
	struct host_comm_config comm_config = { .hash = 1 };
	struct host_user user = { 0 };
	struct host *host;
	struct host_comm *comm;
	struct host_op op;

	(void)arg;
	host_new(&host, &config);
	host_comm_new(host, &comm, &comm_config);
	op = host_op_make(comm, OP_ALL_REDUCE, 100, OP_INT8);
	host_play(&user, &op);
	host_comm_settle(comm);
	raise(SIGKILL);
}

static void killed_process_leaves_its_tape(void)
{
	char path[200];
	struct tape tape = { 0 };
	struct tape_error error;
	struct stat st;

	EXPECT_EQUAL(WTERMSIG(in_child(record_and_die, NULL, "killed.tap")), SIGKILL);
	path_of(path, sizeof(path), "killed.tap");
	EXPECT_EQUAL(tape_read(&tape, path, 5, &error), OK);
	EXPECT_EQUAL(count_in_file(path, "KernelCh"), 1);
	EXPECT_EQUAL(count_in_file(path, " 22 arg="), 1);
	EXPECT_EQUAL(stat(path, &st), 0);
	EXPECT_EQUAL(st.st_mode & 0777, 0600);
	tape_release(&tape);
	/* The same name again: the old file is kept. */
	in_child(record_and_die, NULL, "killed.tap");
	EXPECT_EQUAL(count_in_file(path, "KernelCh"), 1);
	path_of(path, sizeof(path), "killed.tap.1");
	EXPECT_EQUAL(count_in_file(path, "KernelCh"), 1);
}

static void record_nowhere(void *arg)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .plugin = recorder };
	struct host_comm_config comm_config = { .hash = 1 };
	struct host *host;
	struct host_comm *comm;
	int null = open("/dev/null", O_WRONLY);

	(void)arg;
	dup2(null, STDERR_FILENO);
	host_new(&host, &config);
	host_comm_new(host, &comm, &comm_config);
	_exit(*host_mask(host) == 0 && host_comm_context(comm) != NULL ? 0 : 5);
}

static void no_file_no_events(void)
{
	EXPECT_EQUAL(in_child(record_nowhere, NULL, "no/such/directory.tap"), 0);
}

/* A communicator with this name is made and destroyed; its messages go to a file. */
static void record_name(void *arg)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .plugin = recorder };
	struct host_comm_config comm_config = { .hash = 1, .name = arg };
	struct host *host;
	struct host_comm *comm;
	char path[200];

	path_of(path, sizeof(path), "said");
	dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO);
	if (chdir(directory) != 0 || host_new(&host, &config) != OK ||
	    host_comm_new(host, &comm, &comm_config) != OK)
		_exit(3);
	host_comm_destroy(comm);
	host_free(host);
}

static void long_words_are_cut(void)
{
	static const size_t lengths[] = { 1, 127, 128, 129, 400 };
	char name[512], wanted[1600], path[200];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int is_odd = 0; is_odd < 2; is_odd++) {
			size_t shown = lengths[i] < 128 ? lengths[i] : 128, used;

			memset(name, is_odd ? ' ' : 'x', lengths[i]);
			name[lengths[i]] = '\0';
			used = (size_t)snprintf(wanted, sizeof(wanted), " name=");
			for (size_t j = 0; j < shown; j++)
				used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s",
							 is_odd ? "%20" : "x");
			snprintf(wanted + used, sizeof(wanted) - used,
				 " nnodes=1 nranks=2 rank=0\n");
			EXPECT_EQUAL(in_child(record_name, name, "words.tap"), 0);
			path_of(path, sizeof(path), "words.tap");
			EXPECT_EQUAL(count_in_file(path, wanted), 1);
			unlink(path);
		}
}

/* How many files of the directory have such a name; they are removed. */
static size_t remove_like(const char *start)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	size_t count = 0;
	char path[600];

	while (dir && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, start, strlen(start)) == 0) {
			snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
			unlink(path);
			count++;
		}
	if (dir)
		closedir(dir);
	return count;
}

static void record_unnamed(void *arg)
{
	if (arg)
		setenv("RINGSIDE_TAPE", arg, 1);
	else
		unsetenv("RINGSIDE_TAPE");
	record_name(NULL);
}

static void tape_has_a_standard_name(void)
{
	char host[200] = "", start[256], empty[] = "", ranked[] = "tape-%j-%r", wrong[] = "tape-%x";
	char said[200];

	gethostname(host, sizeof(host) - 1);
	snprintf(start, sizeof(start), "ringside-%s-", host);
	EXPECT_EQUAL(in_child(record_unnamed, NULL, "unused"), 0);
	EXPECT_EQUAL(remove_like(start), 1);
	EXPECT_EQUAL(in_child(record_unnamed, empty, "unused"), 0);
	EXPECT_EQUAL(remove_like(start), 1);
	setenv("SLURM_JOB_ID", "77", 1);
	setenv("PMI_RANK", "5", 1);
	unsetenv("RINGSIDE_JOB");
	unsetenv("RANK");
	unsetenv("SLURM_PROCID");
	unsetenv("OMPI_COMM_WORLD_RANK");
	EXPECT_EQUAL(in_child(record_unnamed, ranked, "unused"), 0);
	EXPECT_EQUAL(remove_like("tape-77-5"), 1);
	EXPECT_EQUAL(in_child(record_unnamed, wrong, "unused"), 0);
	path_of(said, sizeof(said), "said");
	EXPECT_EQUAL(count_in_file(said, "ringside tape: cannot create tape-%x: Invalid argument; "
					 "set RINGSIDE_TAPE to a file\n"),
		     1);
}

/* As on a full disk. */
static void record_until_full(void *arg)
{
	struct rlimit limit = { 40, 40 };

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	record_name(arg);
}

static void full_disk_ends_the_tape(void)
{
	char path[200];
	struct stat st;

	path_of(path, sizeof(path), "full.tap");
	EXPECT_EQUAL(in_child(record_until_full, NULL, "full.tap"), 0);
	EXPECT_THAT("what fits is there, and the job goes on",
		    stat(path, &st) == 0 && st.st_size == 40);
}

static void clean_up(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	if (system(command) != 0)
		printf("# %s is left\n", directory);
}

int main(void)
{
	real_tapes_are_read();
	words_mean_what_they_say();
	wrong_lines_are_named();
	binary_is_refused_and_a_missing_file_too();
	real_tape_is_played();
	mask_chooses_lines();
	stamps_move_to_the_present();
	strange_ids_are_passed_on();
	pauses_are_kept_when_asked();
	find_recorder();
	if (access(recorder, R_OK) != 0) {
		printf("# the recorder is not built: %s\n", recorder);
		EXPECT_THAT("the recorder is built", 0);
		return tap_done();
	}
	circle_is_closed();
	tape_has_all_fields();
	killed_process_leaves_its_tape();
	no_file_no_events();
	long_words_are_cut();
	tape_has_a_standard_name();
	full_disk_ends_the_tape();
	clean_up();
	return tap_done();
}
