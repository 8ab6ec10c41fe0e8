/*
 * What a process killed after any single instruction of a callback leaves behind: a job is stepped
 * through calls, instruction by instruction, and whenever its region has changed, a reader counts.
 *
 *	process_step	prints TAP; PLUGIN and RINGSIDE_SHM are set
 */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "format/region_layout.h"
#include "plugin/abi_v5.h"
#include "recording/recording.h"
#include "tests/tap.h"

enum { STEPS_MOST = 200000 };

/* ---- the job --------------------------------------------------------------------------------- */

static const struct abi_plugin_v5 *plugin;
static void *context;
static int mask;

static void *start(const struct abi_descr_v5 *descr)
{
	struct abi_descr_v5 copy = *descr;
	void *handle = NULL;

	plugin->start_event(context, &handle, &copy);
	return handle;
}

static void *call(bool is_captured)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API }, api = { .type = ABI_COLL_API };
	void *handle;

	api.parent = start(&group);
	api.coll_api.function = "AllReduce";
	api.coll_api.count = 1024;
	api.coll_api.datatype = "ncclFloat32";
	api.coll_api.is_captured = is_captured;
	handle = start(&api);
	plugin->stop_event(handle);
	plugin->stop_event(api.parent);
	return handle;
}

static void *task(void *parent)
{
	struct abi_descr_v5 coll = { .type = ABI_COLL, .parent = parent };
	void *handle;

	coll.coll.function = "AllReduce";
	coll.coll.count = 1024;
	coll.coll.datatype = "ncclFloat32";
	coll.coll.channels = 1;
	handle = start(&coll);
	plugin->stop_event(handle);
	return handle;
}

static void kernel(void *parent)
{
	struct abi_descr_v5 channel = { .type = ABI_KERNEL_CH, .parent = parent };
	union abi_args_v5 args = { .kernel_ch = { 2000 } };
	void *handle;

	channel.kernel_ch.gpu_ns = 1000;
	handle = start(&channel);
	plugin->record_event_state(handle, ABI_KERNEL_CH_STOP, &args);
	plugin->stop_event(handle);
}

static void play_whole(void)
{
	kernel(task(call(false)));
}

/* As in interfaces without API events, and in replays. */
static void play_task(void)
{
	kernel(task(NULL));
}

static void play_captured(void)
{
	call(true);
}

/* Stop, play, stop. */
static void run_job(void (*play)(void), int before)
{
	void *library = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);

	plugin = library != NULL ? dlsym(library, "ncclProfiler_v5") : NULL;
	if (plugin == NULL || ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1)
		_exit(4);
	plugin->init(&context, 7, &mask, "steps", 1, 2, 0, NULL);
	for (int i = 0; i < before; i++)
		play_whole();
	raise(SIGSTOP);
	play();
	raise(SIGSTOP);
	_exit(0);
}

/* ---- the reader ------------------------------------------------------------------------------ */

struct mapped {
	char path[512];
	const char *bytes;
	char *last; /* as it was when it was read last */
	size_t size;
};

static bool map_region(struct mapped *mapped)
{
	char dir[448];
	struct dirent *entry;
	struct stat st;
	DIR *list;
	int fd = -1;

	text_format(dir, sizeof(dir), "%s/ringside-%u", getenv("RINGSIDE_SHM"), geteuid());
	list = opendir(dir);
	while (list != NULL && fd == -1 && (entry = readdir(list)) != NULL) {
		if (strstr(entry->d_name, ".region") == NULL)
			continue;
		text_format(mapped->path, sizeof(mapped->path), "%s/%s", dir, entry->d_name);
		fd = open(mapped->path, O_RDONLY | O_CLOEXEC);
	}
	if (list != NULL)
		closedir(list);
	if (fd == -1 || fstat(fd, &st) == -1)
		return false;
	mapped->size = (size_t)st.st_size;
	mapped->bytes = mmap(NULL, mapped->size, PROT_READ, MAP_SHARED, fd, 0);
	mapped->last = malloc(mapped->size);
	close(fd);
	if (mapped->bytes == MAP_FAILED || mapped->last == NULL)
		return false;
	memcpy(mapped->last, mapped->bytes, mapped->size);
	return true;
}

/* Where operations are counted and kept. Comparing all of it would take long. */
static bool has_changed(struct mapped *mapped)
{
	const struct region_header *header = (const void *)mapped->bytes;
	static const enum region_part_index parts[] = { REGION_COMMS, REGION_LIVE, REGION_RING };
	bool is_new = memcmp(mapped->last, mapped->bytes, sizeof(*header)) != 0;

	for (size_t i = 0; i < ARRAY_LENGTH(parts) && !is_new; i++) {
		const struct region_part *part = &header->parts[parts[i]];

		is_new = memcmp(mapped->last + part->offset, mapped->bytes + part->offset,
				(size_t)part->count * part->stride) != 0;
	}
	if (is_new)
		memcpy(mapped->last, mapped->bytes, mapped->size);
	return is_new;
}

struct numbers {
	uint64_t count, highest, sum;
};

static bool note_number(const struct op_record *op, enum recording_place place, void *to)
{
	struct numbers *numbers = to;

	(void)place;
	numbers->count++;
	numbers->sum += op->number;
	if (op->number > numbers->highest)
		numbers->highest = op->number;
	return true;
}

/* Each number up to the highest once, as many as are counted. */
static bool is_whole(const struct mapped *mapped, unsigned int step)
{
	struct recording_account account = { 0 };
	struct numbers numbers = { 0 };
	struct recording recording;
	bool is_right;

	recording_init(&recording);
	recording_add(&recording, mapped->path, 0);
	recording_finish(&recording);
	is_right = recording.count == 1 &&
		   recording_account(&account, recording.processes[0]) == OK &&
		   recording_each_op(recording.processes[0], note_number, &numbers, NULL) == OK;
	is_right = is_right && account.is_exact && numbers.count == account.issued &&
		   numbers.highest == numbers.count &&
		   numbers.sum == numbers.count * (numbers.count + 1) / 2;
	if (!is_right)
		printf("# after instruction %u: issued %llu, recorded %llu, in flight %llu, "
		       "missing %lld; read %llu, highest %llu\n",
		       step, (unsigned long long)account.issued,
		       (unsigned long long)account.recorded, (unsigned long long)account.in_flight,
		       (long long)account.missing, (unsigned long long)numbers.count,
		       (unsigned long long)numbers.highest);
	recording_account_release(&account);
	recording_release(&recording);
	return is_right;
}

/* True if the job has stopped with this signal. */
static bool await_stop(pid_t pid, int signal)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == signal;
}

#ifdef __aarch64__
/* LDXR, LDAXR, LDXP, LDAXP and the like; CASP has the code of a pair of less than 32 bits each. */
static bool is_load_exclusive(uint32_t instruction)
{
	bool is_pair = instruction >> 21 & 1, is_large = instruction >> 31;

	return (instruction & 0x3fc00000) == 0x08400000 && (is_large || !is_pair);
}

/*
 * The exception after each step takes the reservation away, so the store-exclusive that follows fails, and its loop begins again:
 * without the atomics of ARMv8.1, such code cannot be stepped through.
 */
static bool cannot_be_stepped(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec to = { &registers, sizeof(registers) };

	return ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &to) == 0 &&
	       is_load_exclusive(
		       (uint32_t)ptrace(PTRACE_PEEKTEXT, pid, (void *)registers.pc, NULL));
}
#else
static bool cannot_be_stepped(pid_t pid)
{
	(void)pid;
	return false;
}
#endif

static void check_steps(const char *sentence, void (*play)(void), int before)
{
	struct mapped mapped = { .size = 0 };
	unsigned int steps = 0, changes = 0, wrong = 0;
	bool has_exclusives = false;
	char line[200];
	pid_t pid = fork();

	if (pid == 0)
		run_job(play, before);
	if (!await_stop(pid, SIGSTOP)) {
		printf("1..0 # SKIP no process can be traced here\n");
		exit(0);
	}
	EXPECT_THAT("its region can be read", map_region(&mapped) && is_whole(&mapped, 0));
	while (steps < STEPS_MOST && !(has_exclusives = cannot_be_stepped(pid)) &&
	       ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && await_stop(pid, SIGTRAP)) {
		steps++;
		if (!has_changed(&mapped))
			continue;
		changes++;
		wrong += !is_whole(&mapped, steps);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(mapped.path);
	munmap((void *)(uintptr_t)mapped.bytes, mapped.size);
	free(mapped.last);
	printf("# %s: %u instructions, %u changes\n", sentence, steps, changes);
	if (has_exclusives && wrong == 0) {
		text_format(line, sizeof(line),
			    "%s # SKIP exclusive loads and stores cannot be stepped through",
			    sentence);
		EXPECT_THAT(line, true);
		return;
	}
	EXPECT_THAT(sentence, wrong == 0 && changes > 0 && steps < STEPS_MOST);
}

int main(void)
{
	setenv("RINGSIDE_MODE", "flight", 1);
	setenv("RINGSIDE_EVENTS", "kernel", 1);
	/* No threads: they are not stepped. */
	setenv("RINGSIDE_HEARTBEAT", "0", 1);
	setenv("RINGSIDE_BUFFER", "1MiB", 1);
	check_steps("an operation that makes an older one leave", play_whole, 70);
	check_steps("an operation without an API event", play_task, 70);
	check_steps("a captured call", play_captured, 3);
	return tap_done();
}
