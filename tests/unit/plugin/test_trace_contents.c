/*
 * What reaches a trace file besides records, and what NCCL's log says: links between ranks, details
 * of channels and transfers, and the one line of the plugin.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/file.h"
#include "tests/unit/plugin/defect_process.h"

enum { OPS = 20 };

/* Each operation sends to rank 1 and receives from rank 3, one step of 1000 bytes each. */
static void play_transfers(void)
{
	void *context = play_init(1, 2, 4, 0);

	for (int i = 0; i < OPS; i++) {
		struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", 1);

		for (int is_send = 0; is_send < 2; is_send++) {
			void *proxy = play_proxy_start(context, op.task, getpid(), 0,
						       is_send ? 1 : 3, is_send);
			void *step = play_step_start(context, proxy, 0);

			play_state(step, is_send ? ABI_STEP_SEND_GPU_WAIT : ABI_STEP_RECV_WAIT, 0);
			play_state(step, is_send ? ABI_STEP_SEND_WAIT : ABI_STEP_RECV_FLUSH_WAIT,
				   1000);
			play_stop(step);
			play_stop(proxy);
		}
	}
	ncclProfiler_v5.finalize(context);
}

/* Only the file: no region. */
static void play_and_leave_the_file(void)
{
	play_transfers();
	unlink(recorder.region.path);
}

static const struct region_link *link_to(const struct recording_process *process, int peer,
					 bool is_receive)
{
	static const struct region_link nothing;

	for (size_t i = 0; process != NULL && i < process->link_count; i++)
		if ((uint32_t)process->links[i].key == (uint32_t)peer + 1 &&
		    !!(process->links[i].key >> 32 & 1) == is_receive)
			return &process->links[i];
	return &nothing;
}

static void links_are_in_the_file(void)
{
	struct defect_run run = defect_run("trace", play_and_leave_the_file);

	EXPECT_THAT("without its region, all operations are in the file",
		    run.status == 0 && run.process != NULL && run.process->region == NULL &&
			    run.account.walk.in_trace == OPS);
	EXPECT_THAT("and what was sent to a peer",
		    link_to(run.process, 1, false)->proxies == OPS &&
			    link_to(run.process, 1, false)->steps == OPS &&
			    link_to(run.process, 1, false)->bytes == OPS * 1000);
	EXPECT_THAT("and received from another",
		    link_to(run.process, 3, true)->proxies == OPS &&
			    link_to(run.process, 3, true)->bytes == OPS * 1000);
	EXPECT_THAT("but nothing else", link_to(run.process, 1, true)->proxies +
							link_to(run.process, 3, false)->proxies ==
						0);
	defect_release(&run);
}

/* Each detail is where a reader of the ring looks for its sequence. */
static void play_details(void)
{
	play_transfers();
	for (uint64_t i = 1; i <= recorder.region.header->details_head; i++)
		if (recorder.region.details[i - 1].sequence != i)
			_exit(2);
	if (recorder.region.header->details_head != 4 * OPS)
		_exit(3);
}

/* Everything that a detail says. */
static bool is_right(const struct op_detail *detail)
{
	bool is_send = detail->flags & PROXY_IS_SEND, is_step = detail->kind == OP_DETAIL_STEP;
	uint64_t last = 0;

	for (int i = 0; i < 4; i++) {
		if (detail->time_ns[i] == 0)
			continue;
		if (detail->time_ns[i] < last)
			return false;
		last = detail->time_ns[i];
	}
	return detail->peer == (is_send ? 1 : 3) && detail->bytes == 1000 && detail->comm == 1 &&
	       detail->number >= 1 && detail->number <= OPS && detail->channel == 0 &&
	       detail->step == (is_step ? 0 : 4) && !(detail->flags & PROXY_IS_FOREIGN) &&
	       detail->time_ns[0] != 0 && detail->time_ns[3] != 0;
}

struct seen {
	uint64_t kinds[4], sends[4], wrong;
};

static bool count_detail(const struct op_detail *detail, enum recording_place place, void *seen)
{
	struct seen *to = seen;

	(void)place;
	to->kinds[detail->kind % 4]++;
	to->sends[detail->kind % 4] += (detail->flags & PROXY_IS_SEND) != 0;
	to->wrong += !is_right(detail);
	return true;
}

static void details_are_in_the_file(void)
{
	struct defect_run run = defect_run("full", play_details);
	struct seen seen = { .wrong = 0 };

	EXPECT_THAT("each step and each proxy operation has a detail in its place",
		    run.status == 0);
	if (run.process != NULL)
		recording_each_detail(run.process, count_detail, &seen, NULL);
	EXPECT_EQUAL(seen.kinds[OP_DETAIL_STEP], 2 * OPS);
	EXPECT_EQUAL(seen.kinds[OP_DETAIL_PROXY], 2 * OPS);
	EXPECT_EQUAL(seen.kinds[OP_DETAIL_KERNEL], 0);
	EXPECT_EQUAL(seen.sends[OP_DETAIL_STEP], OPS);
	EXPECT_EQUAL(seen.sends[OP_DETAIL_PROXY], OPS);
	EXPECT_EQUAL(seen.wrong, 0);
	defect_release(&run);
}

enum { KERNEL_CHANNELS = 3, GPU_START = 1000000, GPU_STOP = 2000000 };
static const uint8_t kernel_channels[KERNEL_CHANNELS] = { 0, 63, 64 };

/* A collective and a receive, each on three channels; the stamps of the 65th are not kept. */
static void play_kernels(void)
{
	void *context = play_init(1, 1, 4, 0);

	for (int is_receive = 0; is_receive < 2; is_receive++) {
		void *kernels[KERNEL_CHANNELS], *task;

		task = is_receive ? play_p2p(context, NULL, "Recv", 64, 2)
				  : play_issue(context, "AllReduce", 64, "ncclFloat32",
					       KERNEL_CHANNELS)
					    .task;
		for (int i = 0; i < KERNEL_CHANNELS; i++)
			kernels[i] = play_kernel_start(context, task, kernel_channels[i],
						       play_gpu_now() + GPU_START);
		for (int i = 0; i < KERNEL_CHANNELS; i++)
			play_kernel_stop(kernels[i], play_gpu_now() + GPU_STOP);
		if (is_receive)
			play_stop(task);
	}
	ncclProfiler_v5.finalize(context);
}

static bool check_kernel(const struct op_detail *detail, enum recording_place place, void *seen)
{
	struct seen *to = seen;
	uint64_t turn = to->kinds[0]++ % KERNEL_CHANNELS;
	bool is_receive = to->kinds[0] > KERNEL_CHANNELS, has_stamps = turn < 2;
	const uint64_t *at = detail->time_ns;
	bool is_fine = detail->kind == OP_DETAIL_KERNEL && detail->comm == 1 &&
		       detail->number == 1u + is_receive &&
		       detail->channel == kernel_channels[turn] &&
		       detail->peer == (is_receive ? 2 : OP_NOBODY) && at[2] != 0 &&
		       at[3] >= at[2] && (at[0] != 0) == has_stamps && (at[1] != 0) == has_stamps &&
		       (!has_stamps || (at[1] > at[0] && at[0] > at[2] + GPU_START / 2));

	(void)place;
	to->wrong += !is_fine;
	return true;
}

static void kernels_are_in_the_file(void)
{
	struct defect_run run = defect_run("full", play_kernels);
	struct seen seen = { .wrong = 0 };

	if (run.process != NULL)
		recording_each_detail(run.process, check_kernel, &seen, NULL);
	EXPECT_EQUAL(seen.kinds[0], 2 * KERNEL_CHANNELS);
	EXPECT_EQUAL(seen.wrong, 0);
	defect_release(&run);
}

/* ---- names and ends ---------------------------------------------------------------------------- */

/* Names that only this process knows, and a communicator that is open at the end. */
static void play_names(void)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API }, descr = { .type = ABI_COLL };
	static const char *const algorithms[] = { "SPIRAL", "ZIGZAG", "SPIRAL", "SNAKE" };
	void *context = play_init(1, 1, 2, 0);

	for (size_t i = 0; i < ARRAY_LENGTH(algorithms); i++) {
		void *api = play_start(context, group);

		descr.parent = play_coll_api(context, api, "AllReduce", 64, "ncclFloat32", false);
		descr.coll.function = "AllReduce";
		descr.coll.count = 64;
		descr.coll.datatype = "ncclFloat32";
		descr.coll.channels = 1;
		descr.coll.algorithm = algorithms[i];
		descr.coll.protocol = "SIMPLE";
		play_stop(play_start(context, descr));
		play_stop(api);
	}
	unlink(recorder.region.path);
}

static bool sum_algorithms(const struct op_record *op, enum recording_place place, void *sum)
{
	(void)place;
	*(uint64_t *)sum = *(uint64_t *)sum * 10 + op->algorithm - OP_NAME_INTERNED;
	return true;
}

static void names_are_in_the_file(void)
{
	struct defect_run run = defect_run("trace", play_names);
	const struct recording_process *process = run.process;
	uint64_t sum = 0;

	EXPECT(run.status == 0 && process != NULL && run.account.walk.in_trace == 4);
	EXPECT_THAT("each name once, in order", process != NULL &&
							strcmp(process->names[0], "SPIRAL") == 0 &&
							strcmp(process->names[1], "ZIGZAG") == 0 &&
							strcmp(process->names[2], "SNAKE") == 0 &&
							process->names[3][0] == '\0');
	if (process != NULL)
		recording_each_op(process, sum_algorithms, &sum, NULL);
	EXPECT_EQUAL(sum, 102); /* 0, 1, 0, 2 */
	EXPECT_THAT("the open communicator has its counts and no end",
		    process != NULL && process->comm_count == 1 &&
			    process->comms[0].counts.issued == 4 &&
			    process->comms[0].info.finalize_ns == 0);
	defect_release(&run);
}

/* ---- names of files --------------------------------------------------------------------------- */

/* Somebody else has taken the name: a process of the same pid in another container. */
static void find_the_name_taken(void)
{
	char host[256] = "", path[600], state;
	uint64_t ticks = 0;
	int fd;

	unsetenv("RANK");
	gethostname(host, sizeof(host) - 1);
	file_proc_stat("self", &state, &ticks);
	text_format(path, sizeof(path), "%s/rx-%s-%d-%llu.ringside", getenv("RINGSIDE_DIR"), host,
		    getpid(), (unsigned long long)ticks);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1 || write(fd, "mine", 4) != 4)
		_exit(2);
	play_transfers();
	if (lseek(fd, 0, SEEK_END) != 4)
		_exit(3);
}

static void a_taken_name_is_left_alone(void)
{
	struct defect_run run = defect_run("trace", find_the_name_taken);

	EXPECT_THAT("a file that exists is not touched", run.status == 0);
	EXPECT_THAT("another one has everything", run.process != NULL &&
							  run.process->file_count == 1 &&
							  run.account.walk.in_trace == OPS);
	defect_release(&run);
}

/* ---- NCCL's log ------------------------------------------------------------------------------ */

static char logged[2048];
static int log_calls, log_level;

__attribute__((format(printf, 5, 6))) static void take_log(int level, unsigned long flags,
							   const char *file, int line,
							   const char *format, ...)
{
	va_list list;

	(void)flags, (void)file, (void)line;
	va_start(list, format);
	vsnprintf(logged, sizeof(logged), format, list);
	va_end(list);
	log_level = level;
	log_calls++;
}

static void log_twice(void)
{
	char wanted[600];
	void *context;

	setenv("RINGSIDE_BUFFER", "2MiB", 1);
	setenv("RINGSIDE_QUOTA", "16MiB", 1);
	setenv("RINGSIDE_JOB", "logged", 1);
	for (uint64_t i = 1; i <= 2; i++)
		ncclProfiler_v5.init(&context, i, &play_mask, "test", 1, 2, 0, take_log);
	text_format(wanted, sizeof(wanted), "mode flight, region %s (shm), trace none, ",
		    recorder.region.path);
	if (log_calls != 1 || log_level != ABI_LOG_INFO)
		_exit(2);
	if (strstr(logged, wanted) == NULL ||
	    strstr(logged, "buffer 2048 KiB, quota 16 MiB, ") == NULL ||
	    strstr(logged, "job logged, Inspector files in none") == NULL)
		_exit(3);
}

static void the_log_says_what_is_recorded_where(void)
{
	struct defect_run run = defect_run("flight", log_twice);

	EXPECT_THAT("the log has one line about the recording, for the first communicator",
		    run.status == 0);
	defect_release(&run);
}

int main(void)
{
	links_are_in_the_file();
	details_are_in_the_file();
	kernels_are_in_the_file();
	names_are_in_the_file();
	a_taken_name_is_left_alone();
	the_log_says_what_is_recorded_where();
	return tap_done();
}
