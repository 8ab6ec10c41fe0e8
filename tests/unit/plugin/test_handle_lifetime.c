/*
 * Handles, contexts and communicators that live longer or shorter than expected: defects D6 to D8,
 * D19, D29, D31 and D32 of docs/HACKING.md.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v6.h"
#include "tests/unit/plugin/defect_process.h"
#include "tests/support/plugin_host.h"

static uint64_t odd_of(enum odd_reason reason)
{
	return load_relaxed(&recorder.region.header->odd[reason]);
}

/* ---- D6 -------------------------------------------------------------------------------------- */

enum { LATE = 64 };

struct late {
	void *task, *kernel, *proxy, *step;
};

static struct late open_everything(void *context)
{
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	struct late late = { .task = op.task };

	late.kernel = play_kernel_start(context, op.task, 0, play_gpu_now());
	late.proxy = play_proxy_start(context, op.task, getpid(), 0, 1, true);
	play_state(late.proxy, ABI_OP_IN_PROGRESS, 0);
	late.step = play_step_start(context, late.proxy, 0);
	play_state(late.step, ABI_STEP_SEND_GPU_WAIT, 0);
	return late;
}

/* What NCCL still calls when it does not know that the communicator ended. */
static void call_late(void *context, const struct late *late)
{
	play_state(late->step, ABI_STEP_SEND_PEER_WAIT, 0);
	play_state(late->step, ABI_STEP_SEND_WAIT, 4096);
	play_stop(late->step);
	play_stop(play_step_start(context, late->proxy, 1));
	play_stop(late->proxy);
	play_kernel_stop(late->kernel, play_gpu_now());
	play_stop(play_kernel_start(context, late->task, 1, play_gpu_now()));
	play_stop(play_proxy_start(context, late->task, getpid(), 1, 1, false));
	play_stop(late->task);
}

static void late_calls_on_retired_handles(void)
{
	void *context = play_init(1, 2, 2, 0), *next;
	struct late late[LATE];
	struct op_record before;
	uint64_t head, stale = odd_of(ODD_STALE_HANDLE);

	for (int i = 0; i < LATE; i++)
		late[i] = open_everything(context);
	ncclProfiler_v5.finalize(context);
	before = *play_record(1);
	head = recorder.region.header->ring_head;
	for (int i = 0; i < LATE; i++)
		call_late(context, &late[i]);
	EXPECT_THAT("D6: states and stops after the communicator's end change no record",
		    memcmp(&before, play_record(1), sizeof(before)) == 0 &&
			    recorder.region.header->ring_head == head);
	EXPECT_THAT("D6: they are counted", odd_of(ODD_STALE_HANDLE) >= stale + 4 * LATE);
	/* Their slots have new owners now. */
	next = play_init(2, 2, 2, 0);
	for (int i = 0; i < 5000; i++)
		open_everything(next);
	for (int i = 0; i < LATE; i++)
		call_late(context, &late[i]);
	ncclProfiler_v5.finalize(next);
	EXPECT_THAT("D6: nor those of another operation",
		    play_record(1)->state == OP_ABANDONED && play_record(1)->send_bytes == 0 &&
			    play_record(1)->kernels_stopped == 0);
}

static void *call_late_from_another_thread(void *argument)
{
	struct late *late = argument;

	for (int i = 0; i < LATE; i++)
		call_late(NULL, &late[i]);
	return NULL;
}

/* The proxy thread of a shared parent continues while the child communicator is finalized. */
static void late_calls_while_it_ends(void)
{
	static struct late late[LATE];

	for (int round = 0; round < 20; round++) {
		void *context = play_init((uint64_t)round + 10, 2, 2, 0);
		struct region_comm *comm = hot_comm(context)->shared;
		pthread_t thread;

		for (int i = 0; i < LATE; i++)
			late[i] = open_everything(context);
		if (pthread_create(&thread, NULL, call_late_from_another_thread, late) != 0)
			exit(1);
		ncclProfiler_v5.finalize(context);
		pthread_join(thread, NULL);
		if (comm->counts.issued != LATE || comm->counts.recorded != LATE)
			EXPECT_THAT("D6: with late calls in between, everything is recorded",
				    false);
	}
	EXPECT_THAT("D6: late calls while the communicator ends do no harm", true);
}

/* ---- D7, D8 ---------------------------------------------------------------------------------- */

static void make_and_destroy_a_thousand(void)
{
	struct late late;

	for (uint64_t i = 0; i < 1000; i++) {
		void *context = play_init(i + 1, 2, 2, 0);

		late = open_everything(context);
		ncclProfiler_v5.finalize(context);
		call_late(context, &late);
		ncclProfiler_v5.finalize(context);
	}
}

static void a_thousand_communicators_come_and_go(void)
{
	struct defect_run run = defect_run("trace", make_and_destroy_a_thousand);

	EXPECT_THAT(
		"D7: created, destroyed and called afterwards a thousand times: no crash, no loss",
		defect_adds_up(&run, 1000));
	defect_release(&run);
}

/* As in NCCL: dlopen with the first communicator, dlclose with the last. */
static void load_and_unload_a_thousand_times(void)
{
	const char *build = getenv("BUILD");
	char path[4096];

	text_format(path, sizeof(path), "%s/libnccl-profiler-ringside.so", build ? build : "build");
	for (int i = 0; i < 1000; i++) {
		const struct abi_plugin_v5 *plugin;
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *context;
		int mask;

		if (library == NULL || (plugin = dlsym(library, "ncclProfiler_v5")) == NULL)
			_exit(2);
		plugin->init(&context, 1, &mask, NULL, 1, 2, 0, NULL);
		plugin->finalize(context);
		dlclose(library);
	}
}

static void the_library_is_loaded_and_unloaded(void)
{
	struct defect_run run = defect_run("trace", load_and_unload_a_thousand_times);

	if (WIFEXITED(run.status) && WEXITSTATUS(run.status) == 2)
		EXPECT_THAT("D7: loaded and unloaded a thousand times # SKIP not built here", true);
	else
		EXPECT_THAT("D7: loaded and unloaded a thousand times, its thread keeps running",
			    defect_adds_up(&run, 0));
	defect_release(&run);
}

enum { TOO_MANY = 600 };

static void make_too_many(void)
{
	static void *contexts[TOO_MANY];
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };

	for (uint64_t i = 0; i < TOO_MANY; i++)
		contexts[i] = play_init(i + 1, 1, 2, 0);
	for (int i = 0; i < TOO_MANY; i++)
		play_issue(contexts[i], "AllReduce", 8, "ncclFloat32", 1);
	/*
	 * One call on a communicator without a slot, captured into a graph that is replayed three
	 * times.
	 */
	group.parent = play_coll_api(contexts[TOO_MANY - 1], play_start(contexts[0], group),
				     "AllReduce", 8, "ncclFloat32", true);
	for (int i = 0; i < 3; i++)
		play_coll(contexts[TOO_MANY - 1], group.parent, "AllReduce", 8, "ncclFloat32", 1);
	for (int i = 0; i < TOO_MANY; i++)
		ncclProfiler_v5.finalize(contexts[i]);
	play_issue(play_init(1, 1, 2, 0), "AllReduce", 8, "ncclFloat32", 1);
}

static void a_communicator_without_room_spoils_nothing(void)
{
	struct defect_run run = defect_run("trace", make_too_many);
	const struct recording_process *process = run.process;

	EXPECT_THAT("D8: with more communicators than fit, the process continues and ends well",
		    process != NULL && run.status == 0 && run.account.is_exact &&
			    process->file_count == 1 && process->files[0].is_closed);
	EXPECT_THAT("D8: their operations are recorded or counted, including replays",
		    process != NULL &&
			    run.account.kept + process->lost[LOST_NO_COMM] ==
				    TOO_MANY + 1 + 3 + 1 &&
			    process->lost[LOST_NO_COMM] == TOO_MANY - 512 + 4);
	defect_release(&run);
}

/* ---- D19, D29 -------------------------------------------------------------------------------- */

static void an_all_to_all_with_everything_asked_for(int release)
{
	struct plugin_host made = plugin_host_new(release, true, 4);
	struct host_op op = host_op_make(made.comm, OP_ALL_TO_ALL, 4096, OP_FLOAT32);
	struct host_foreign foreign = { .pid = getpid() + 1,
					.context = (void *)UINT64_C(0x7f0012345678),
					.parent = (void *)UINT64_C(0x7f00deadbeef) };
	const struct region_comm *comm = plugin_host_comm(made.id);
	struct host_counts counts;

	*host_mask(made.host) |= 0xffff;
	op.has_network = true;
	op.has_net_events = true;
	op.channels = 8;
	op.steps = 4;
	for (int i = 0; i < 10; i++) {
		plugin_host_play(&made, &op);
		if (host_play_foreign(&op, &foreign) != OK)
			abort();
	}
	host_comm_settle(made.comm);
	host_comm_counts(made.comm, &counts);
	plugin_host_end(&made);
	EXPECT_THAT("D19: all-to-all over the network with every event requested",
		    comm->counts.recorded == counts.shown && comm->counts.issued == counts.shown);
	EXPECT_THAT("D29: events for another process are counted, and its pointers not followed",
		    odd_of(ODD_FOREIGN_PROCESS) >= 10 * 8);
}

/* Equal pids in two pid namespaces: the pid says "ours", the pointers do not. */
static void a_foreign_pointer_with_our_own_pid(void)
{
	void *garbage[] = { (void *)UINT64_C(0x7f00deadbeef), (void *)UINT64_C(0x7f00deadbee0),
			    (void *)~UINT64_C(0), (void *)1 };
	uint64_t head = recorder.region.header->ring_head;

	for (size_t i = 0; i < ARRAY_LENGTH(garbage); i++) {
		void *proxy = play_proxy_start(garbage[i], garbage[i], getpid(), 0, 1, true);
		void *step = play_step_start(garbage[i], proxy, 0);

		play_state(proxy, ABI_OP_IN_PROGRESS, 0);
		play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
		play_stop(step);
		play_stop(proxy);
	}
	EXPECT_THAT("D29: a foreign parent with our own pid belongs to no operation of ours",
		    recorder.region.header->ring_head == head);
}

/* ---- D31, D32 -------------------------------------------------------------------------------- */

#define START_ANY(N, plugin)                                                             \
	static bool starts_all_v##N(void *context)                                       \
	{                                                                                \
		bool is_good = true;                                                     \
		for (unsigned int bit = 0; bit < (N <= 4 ? 8 : 16); bit++) {             \
			struct abi_descr_v##N descr = { .type = 0 };                     \
			void *handle = NULL;                                             \
			descr.type = (__typeof__(descr.type))(UINT64_C(1) << bit);       \
			is_good &= (plugin)->start_event(context, &handle, &descr) == 0; \
			is_good &= handle != NULL;                                       \
		}                                                                        \
		return is_good;                                                          \
	}
START_ANY(1, &ncclProfiler_v1)
START_ANY(2, &ncclProfiler_v2)
START_ANY(3, &ncclProfiler_v3)
START_ANY(4, &ncclProfiler_v4)
START_ANY(5, &ncclProfiler_v5)
START_ANY(6, &ncclProfiler_v6)
START_ANY(7, &ncclProfiler_v7.plugin)

static bool starts_all(void *context)
{
	return starts_all_v1(context) && starts_all_v2(context) && starts_all_v3(context) &&
	       starts_all_v4(context) && starts_all_v5(context) && starts_all_v6(context) &&
	       starts_all_v7(context);
}

static void no_parent_is_null(void)
{
	void *context = play_init(3, 1, 2, 0);
	struct late late[1];

	EXPECT_THAT("D31: every event of every version gets a handle", starts_all(context));
	EXPECT_THAT("D31: with an unknown context too", starts_all((void *)UINT64_C(0x1230)));
	/* All tables full: operations and proxy operations that never stop. */
	for (int i = 0; i < 10000; i++)
		late[0] = open_everything(context);
	EXPECT_THAT("D31: with all tables full too", starts_all(context));
	EXPECT_THAT("D31: also for the children of those without a slot",
		    late[0].task != NULL && late[0].proxy != NULL && late[0].step != NULL &&
			    late[0].kernel != NULL);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D31: after the communicator's end too", starts_all(context));
}

static bool inits_fine(bool is_on)
{
	void *context = NULL;
	int mask = -1;
	bool is_fine =
		ncclProfiler_v5.init(&context, 1, &mask, (const char *)1, -1, -1, -1, NULL) == 0;

	is_fine &= context != NULL && (mask != 0) == is_on;
	is_fine &= starts_all(context);
	is_fine &= ncclProfiler_v5.finalize(context) == 0 && ncclProfiler_v5.finalize(NULL) == 0;
	return is_fine;
}

static void init_in_a_bad_place(void)
{
	setenv("RINGSIDE_SHM", "/proc/nowhere", 1);
	setenv("RINGSIDE_DIR", "/proc/nowhere", 1);
	_exit(inits_fine(true) ? 0 : 1);
}

static void init_with_nonsense(void)
{
	setenv("RINGSIDE_MODE", "everything", 1);
	setenv("RINGSIDE_BUFFER", "-1", 1);
	setenv("RINGSIDE_QUOTA", "much", 1);
	setenv("RINGSIDE_EVENTS", "all,of,them", 1);
	setenv("RINGSIDE_LABELS", "=,=", 1);
	setenv("RINGSIDE_GROUP", "nobody-has-this-group", 1);
	_exit(inits_fine(true) ? 0 : 1);
}

static void init_switched_off(void)
{
	setenv("RINGSIDE_DISABLE", "1", 1);
	_exit(inits_fine(false) ? 0 : 1);
}

static void init_without_places_to_write_to(void)
{
	ncclProfiler_v5.init(NULL, 1, NULL, NULL, 1, 2, 0, NULL);
	_exit(inits_fine(true) ? 0 : 1);
}

static void init_never_fails(void)
{
	static const struct {
		const char *sentence;
		void (*body)(void);
	} cases[] = {
		{ "D32: init succeeds where nothing can be written", init_in_a_bad_place },
		{ "D32: init succeeds with nonsense in every setting", init_with_nonsense },
		{ "D32: init succeeds when it is switched off, with an empty mask",
		  init_switched_off },
		{ "D32: init succeeds with NULL for context and mask",
		  init_without_places_to_write_to },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct defect_run run = defect_run("trace", cases[i].body);

		EXPECT_THAT(cases[i].sentence, run.status == 0);
		defect_release(&run);
	}
}

/* ---- threads of our own ----------------------------------------------------------------------- */

static uint32_t names_own, names_others;

/* Replaces libc's: a detached thread may be gone when another thread names it. */
EXPORTED int pthread_setname_np(pthread_t thread, const char *name)
{
	(void)name;
	add_relaxed(pthread_equal(thread, pthread_self()) ? &names_own : &names_others, 1);
	return 0;
}

/* The trace thread, and one that reports a bad setting. */
static void start_threads(void)
{
	setenv("RINGSIDE_BUFFER", "junk", 1);
	setenv("RINGSIDE_GROUP", "nobody-has-this-group", 1);
	play_init(1, 1, 2, 0);
	_exit(load_relaxed(&names_own) >= 2 && load_relaxed(&names_others) == 0 ? 0 : 1);
}

static void threads_name_themselves(void)
{
	struct defect_run run = defect_run("trace", start_threads);

	EXPECT_THAT("our own threads are named only by themselves", run.status == 0);
	defect_release(&run);
}

int main(void)
{
	/* First those with a process of their own: nothing is set up here yet. */
	a_thousand_communicators_come_and_go();
	the_library_is_loaded_and_unloaded();
	a_communicator_without_room_spoils_nothing();
	init_never_fails();
	threads_name_themselves();
	play_setup("flight");
	late_calls_on_retired_handles();
	late_calls_while_it_ends();
	an_all_to_all_with_everything_asked_for(HOST_NCCL_2_30);
	an_all_to_all_with_everything_asked_for(HOST_NCCL_2_31);
	a_foreign_pointer_with_our_own_pid();
	no_parent_is_null();
	return tap_done();
}
