/*
 * Launches for tests of GPU times, on a driver that plays on the CPU and does what the test says. Each scene has its own
 * process: the plugin reads its settings once, and a context whose driver failed is never timed again.
 */
#ifndef TIMES_PLAY_H
#define TIMES_PLAY_H

#include <signal.h>
#include <sys/wait.h>

#include "common/attributes.h"
#include "common/op.h"
#include "plugin/process_info.h"
#include "tests/fake_gpu/fake_control.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"
#include "tests/unit/plugin/callback_play.h"
#include "tests/unit/plugin/gpu_play.h"

/*
 * A time is dropped if the host was held up between the two events for more than a fiftieth of it, so kernels are long
 * enough for a busy machine. The GPU plays their time, it does not wait.
 */
enum { PATIENCE_MS = 20000, MS = 100 * 1000 * 1000 };

static struct cuda cuda;
static struct fake_control gpu;
static struct CUstream_st *stream;
static void *library;

static inline void find(void *to, const char *name)
{
	*(void **)to = dlsym(library, name);
}

static inline bool says(bool is_true, const char *what)
{
	if (!is_true)
		printf("# not so: %s\n", what);
	return is_true;
}
#define SAYS(condition) says(!!(condition), #condition)

static inline void begin_gpu(void)
{
	setenv("FAKE_GPUS", "2", 1);
	setenv("FAKE_GPU_CLOCK", "model", 0);
	library = gpu_play_library();
	if (!gpu_play_use(library, 0) || !fake_control_open(&gpu, library))
		abort();
#define FIND(member, symbol, parameters) find(&cuda.member, #symbol);
	CUDA_FUNCTIONS(FIND)
#undef FIND
	if (cuda.stream_create(&stream, CUDA_STREAM_NON_BLOCKING) != 0)
		abort();
}

static inline void *begin(const char *times)
{
	begin_gpu();
	setenv("RINGSIDE_TIMES", times, 1);
	play_setup("flight");
	gpu.clear();
	return play_init(0x5eed, 1, 8, 0);
}

struct launch {
	void *group, *apis[4], *launch;
};

/* The calls of a group, up to its end. */
static inline struct launch call(void *context, unsigned int count)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	struct launch made = { .group = play_start(context, group) };

	for (unsigned int i = 0; i < count; i++)
		made.apis[i] = play_coll_api(context, made.group, "AllReduce", 1 << 20,
					     "ncclFloat32", false);
	return made;
}

/* NCCL enqueues the kernel between the start and the stop of the event. */
static inline void launch(void *context, struct launch *made, struct CUstream_st *on,
			  uint64_t duration_ns)
{
	struct abi_descr_v5 descr = { .type = ABI_KERNEL_LAUNCH, .parent = made->group };

	descr.kernel_launch.stream = on;
	made->launch = play_start(context, descr);
	gpu.kernel(on, duration_ns);
	play_stop(made->launch);
}

static inline void tasks(void *context, const struct launch *made, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		play_stop(
			play_coll(context, made->apis[i], "AllReduce", 1 << 20, "ncclFloat32", 4));
	play_stop(made->group);
}

static inline struct launch collective(void *context, uint64_t duration_ns)
{
	struct launch made = call(context, 1);

	launch(context, &made, stream, duration_ns);
	tasks(context, &made, 1);
	return made;
}

static inline const struct region_header *header(void)
{
	return recorder.region.header;
}

static inline bool until(bool (*is_so)(void))
{
	for (int i = 0; i < PATIENCE_MS && !is_so(); i++)
		usleep(1000);
	return is_so();
}

static inline bool all_are_taken(void)
{
	return load_relaxed(&header()->times_taken) + load_relaxed(&header()->times_dropped) ==
	       load_relaxed(&header()->timed_launches);
}

/* The operation with this number, from the ring or, if it is there, its live slot. */
static inline struct op_record op_of(uint64_t number)
{
	for (uint32_t i = 0; i < recorder.region.live_count; i++)
		if (region_slot_is_used(recorder.region.live[i].word) &&
		    recorder.region.live[i].op.number == number)
			return recorder.region.live[i].op;
	for (uint64_t i = 1; i <= header()->ring_head; i++)
		if (play_record(i)->number == number)
			return *play_record(i);
	return (struct op_record){ .number = 0 };
}

static inline bool is_timed(uint64_t number, uint64_t duration_ns)
{
	struct op_record op = op_of(number);
	uint64_t found = op_duration_ns(&op);

	return SAYS(op.number == number) && SAYS(op.time_source == OP_TIME_KERNEL_GPU) &&
	       SAYS(op.flags & OP_FLAG_CUDA_EVENT) && SAYS(!(op.flags & OP_FLAG_NOT_SAMPLED)) &&
	       SAYS(op.state == OP_DONE) && SAYS(op.gpu_start_ns >= op.issue_ns) &&
	       SAYS(found + 1000 >= duration_ns && found <= duration_ns + 1000);
}

static inline bool is_untimed(uint64_t number)
{
	struct op_record op = op_of(number);

	return SAYS(op.number == number) && SAYS(op.time_source == OP_TIME_NONE) &&
	       SAYS(!(op.flags & OP_FLAG_CUDA_EVENT)) && SAYS(op.state == OP_LAUNCHED);
}

/* Until the reader has made a whole pass that began after now. */
static uint64_t asked_after;

static inline bool was_asked(void)
{
	uint64_t state = load_relaxed(&header()->sampling);

	/* Without events there is nobody to ask, without open launches nothing. */
	return load_relaxed(&header()->times_read_ns) > asked_after || all_are_taken() ||
	       (state != SAMPLING_ACTIVE && state != SAMPLING_BY_CUDA);
}

static inline bool ask_again(void)
{
	asked_after = recorder_now();
	return until(was_asked);
}

static inline bool play_scene(bool (*scene)(void))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		bool is_good = scene();

		fflush(stdout);
		exit(is_good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		printf("# ended by signal %d\n", WTERMSIG(status));
	return status == 0;
}

#endif
