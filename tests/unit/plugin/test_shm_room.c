/*
 * Too little space in /dev/shm: defect D20 of docs/HACKING.md. NCCL itself crashes there if kernel
 * events are on, so they are not requested; and our own region shrinks or moves.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "plugin/settings.h"
#include "tests/unit/plugin/defect_process.h"

#define MIB (UINT64_C(1) << 20)

/* ---- what NCCL is asked for ------------------------------------------------------------------ */

static void kernel_events_need_room(void)
{
	static const struct {
		unsigned int interface;
		enum settings_times wish;
		uint64_t free_bytes;
		bool is_asked;
	} cases[] = {
		{ 5, TIMES_AUTO, 64 * MIB, false },    { 6, TIMES_AUTO, 64 * MIB, false },
		{ 5, TIMES_KERNEL, 64 * MIB, false },  { 6, TIMES_KERNEL, 64 * MIB, false },
		{ 5, TIMES_AUTO, 0, false },	       { 6, TIMES_AUTO, 159 * MIB, false },
		{ 5, TIMES_KERNEL, 1024 * MIB, true }, { 6, TIMES_KERNEL, 1024 * MIB, true },
		{ 5, TIMES_AUTO, 1024 * MIB, false },  { 6, TIMES_AUTO, 1024 * MIB, false },
		{ 5, TIMES_OFF, 1024 * MIB, false },   { 4, TIMES_AUTO, 1024 * MIB, false },
		{ 3, TIMES_AUTO, 1024 * MIB, false },  { 1, TIMES_KERNEL, 1024 * MIB, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct settings settings = { .times = cases[i].wish,
					     .proxy = SWITCH_AUTO,
					     .steps = SWITCH_AUTO,
					     .launch = SWITCH_AUTO };
		struct mask_choice choice =
			mask_choose(cases[i].interface, &settings, cases[i].free_bytes);
		char sentence[120];

		text_format(sentence, sizeof(sentence),
			    "D20: v%u with %llu MiB free: kernel events %s", cases[i].interface,
			    (unsigned long long)(cases[i].free_bytes / MIB),
			    cases[i].is_asked ? "on" : "off");
		EXPECT_THAT(sentence,
			    (choice.kernel == KERNEL_EVENTS_ON) == cases[i].is_asked &&
				    !!(choice.mask & ABI_KERNEL_CH) == cases[i].is_asked &&
				    choice.kernel_reason[0] != '\0' && choice.mask & ABI_COLL);
	}
}

/* ---- our own region -------------------------------------------------------------------------- */

static uint64_t pretended_bytes; /* free in every file system; 0: the real value */
static uint64_t largest_bytes;	 /* limit of a file; 0: none */

int fstatvfs(int fd, struct statvfs *fs)
{
	(void)fd;
	memset(fs, 0, sizeof(*fs));
	fs->f_frsize = 4096;
	fs->f_blocks = 16384 * MIB / 4096;
	fs->f_bavail = (pretended_bytes != 0 ? pretended_bytes : 16384 * MIB) / 4096;
	return 0;
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
	if (largest_bytes != 0 && (uint64_t)(offset + length) > largest_bytes)
		return ENOSPC;
	return syscall(SYS_fallocate, fd, 0, offset, length) == 0 ? 0 : errno;
}

static void record_a_little(void)
{
	void *context = play_init(1, 1, 2, 0);

	for (int i = 0; i < 2000; i++)
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	ncclProfiler_v5.finalize(context);
}

static void record_with_little_room(void)
{
	pretended_bytes = 64 * MIB;
	record_a_little();
	_exit(recorder.region.kind == REGION_KIND_SHM_SMALL && recorder.region.bytes <= 4 * MIB &&
			      recorder.region.reason[0] != '\0'
		      ? 0
		      : 1);
}

static void record_with_no_room(void)
{
	pretended_bytes = 1 * MIB;
	record_a_little();
	_exit(recorder.region.kind == REGION_KIND_MEMFD ? 0 : 1);
}

static void record_on_a_full_file_system(void)
{
	largest_bytes = 2 * MIB;
	record_a_little();
	_exit(recorder.region.kind == REGION_KIND_SHM_SMALL && recorder.region.bytes <= 2 * MIB
		      ? 0
		      : 1);
}

static void record_where_no_file_can_be_had(void)
{
	largest_bytes = 4096;
	record_a_little();
	_exit(recorder.region.kind == REGION_KIND_PRIVATE ? 0 : 1);
}

static void the_region_gives_way(void)
{
	static const struct {
		const char *sentence;
		void (*body)(void);
	} cases[] = {
		{ "D20: with 64 MiB free the region is smaller, and the job runs",
		  record_with_little_room },
		{ "D20: with 1 MiB free it is the process's own memory", record_with_no_room },
		{ "D20: when reserving fails it takes less", record_on_a_full_file_system },
		{ "D20: when nothing can be reserved it is private",
		  record_where_no_file_can_be_had },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct defect_run run = defect_run("flight", cases[i].body);

		EXPECT_THAT(cases[i].sentence, run.status == 0);
		defect_release(&run);
	}
}

/* The trace does not need a large ring in the region. */
static void trace_with_no_room(void)
{
	largest_bytes = 4096;
	setenv("RINGSIDE_BUFFER", "1GiB", 1);
	record_a_little();
}

static void a_trace_needs_no_region(void)
{
	struct defect_run run = defect_run("trace", trace_with_no_room);

	EXPECT_THAT("D20: without any shared memory the trace file has everything",
		    run.status == 0 && run.process != NULL && run.account.walk.in_trace == 2000);
	defect_release(&run);
}

/* A real tmpfs of 64 MiB, as in Docker, if this user may mount one. */
static void record_in_a_small_tmpfs(void)
{
	if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("none", getenv("RINGSIDE_SHM"), "tmpfs", 0, "size=64m") == -1)
		_exit(2);
	pretended_bytes = 64 * MIB;
	record_a_little();
	_exit(recorder.region.header != NULL && load_relaxed(&recorder.is_on) ? 0 : 1);
}

static void a_small_tmpfs(void)
{
	struct defect_run run = defect_run("flight", record_in_a_small_tmpfs);
	bool is_skipped = WIFEXITED(run.status) && WEXITSTATUS(run.status) == 2;

	EXPECT_THAT(is_skipped ? "D20: a tmpfs of 64 MiB # SKIP only root can mount one"
			       : "D20: in a tmpfs of 64 MiB the job runs",
		    is_skipped || run.status == 0);
	defect_release(&run);
}

int main(void)
{
	kernel_events_need_room();
	the_region_gives_way();
	a_trace_needs_no_region();
	a_small_tmpfs();
	return tap_done();
}
