/*
 * Forked children: whatever they do, the parent's recording stays intact, and the parent continues.
 *
 *	process_fork	prints TAP; PLUGIN and the settings are in the environment
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "plugin/abi_v5.h"
#include "sim/host.h"
#include "tests/tap.h"

static struct host *host;
static struct host_comm *comm;
static struct host_user user;

static void play(int count)
{
	for (int i = 0; i < count; i++) {
		struct host_op op = host_op_make(comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);

		op.channels = 2;
		if (host_play(&user, &op) != OK)
			exit(3);
	}
	host_comm_settle(comm);
}

/* A checksum over everything below a directory: names, sizes, content. */
static uint64_t look_at(const char *directory, unsigned int *files)
{
	DIR *list = opendir(directory);
	struct dirent *entry;
	uint64_t sum = 0;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		char path[1024];
		struct stat st;
		void *bytes;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (entry->d_name[0] == '.' || lstat(path, &st) == -1)
			continue;
		if (S_ISDIR(st.st_mode)) {
			sum += look_at(path, files);
			continue;
		}
		++*files;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (bytes != MAP_FAILED) {
			sum += hash_bytes(path, strlen(path)) ^
			       hash_bytes(bytes, (size_t)st.st_size);
			munmap(bytes, (size_t)st.st_size);
		}
		close(fd);
	}
	if (list != NULL)
		closedir(list);
	return sum;
}

static uint64_t look(unsigned int *files)
{
	*files = 0;
	return look_at(getenv("RINGSIDE_SHM"), files) + look_at(getenv("RINGSIDE_DIR"), files);
}

/* ---- what children do ------------------------------------------------------------------------- */

static void exit_at_once(void)
{
	exit(0);
}

static void exit_quickly(void)
{
	_exit(0);
}

static void die(void)
{
	raise(SIGKILL);
}

static void call_everything(void)
{
	const struct abi_plugin_v5 *plugin = host_plugin(host)->v5;
	void *context = host_comm_context(comm), *handle = NULL;
	struct abi_descr_v5 descr = { .type = ABI_COLL_API };

	descr.coll_api.function = "AllReduce";
	descr.coll_api.datatype = "ncclFloat32";
	for (uint64_t type = 1; type <= ABI_KERNEL_LAUNCH; type <<= 1) {
		descr.type = type;
		plugin->start_event(context, &handle, &descr);
		plugin->record_event_state(handle, ABI_KERNEL_CH_STOP, NULL);
		plugin->stop_event(handle);
	}
	plugin->finalize(context);
	exit(0);
}

static void begin_anew(void)
{
	const struct abi_plugin_v5 *plugin = host_plugin(host)->v5;
	void *context = NULL, *handle = NULL;
	struct abi_descr_v5 descr = { .type = ABI_GROUP_API };
	int mask = -1;

	plugin->init(&context, 9, &mask, "child", 1, 2, 0, NULL);
	if (mask != 0)
		_exit(1);
	plugin->start_event(context, &handle, &descr);
	plugin->stop_event(handle);
	plugin->finalize(context);
	exit(0);
}

static void become_another(void)
{
	execlp("true", "true", (char *)NULL);
	_exit(1);
}

static void have_a_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		call_everything();
	waitpid(pid, NULL, 0);
	exit(0);
}

static void have_threads(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, (void *(*)(void *))(void *)call_everything, NULL) == 0)
		pthread_join(thread, NULL);
	exit(0);
}

/* ---- and what comes of it ---------------------------------------------------------------------- */

/* A child that hangs is as wrong as one that fails. */
static bool ended_well(pid_t pid, int wanted)
{
	int status = -1;

	for (int i = 0; i < 12000; i++) {
		struct timespec moment = { 0, 10000000 };

		if (waitpid(pid, &status, WNOHANG) == pid)
			return status == wanted;
		nanosleep(&moment, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return false;
}

static void expect_nothing(const char *what, void (*child)(void), int wanted)
{
	unsigned int files[2];
	uint64_t before = look(&files[0]);
	char sentence[200];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child();
	snprintf(sentence, sizeof(sentence), "a child that %s comes to its end", what);
	EXPECT_THAT(sentence, ended_well(pid, wanted));
	snprintf(sentence, sizeof(sentence), "a child that %s leaves everything as it was", what);
	EXPECT_THAT(sentence, look(&files[1]) == before && files[0] == files[1]);
}

/* A raw system call, which libc's fork handlers do not see. */
static void a_silent_fork_leaves_everything_as_it_was(void)
{
	unsigned int files;
	uint64_t before = look(&files);
	pid_t pid;

	fflush(stdout);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		exit(0);
	EXPECT_THAT("a child of a silent fork comes to its end", ended_well(pid, 0));
	EXPECT_THAT("and does not end the parent's recording", look(&files) == before);
}

/* NCCL's logger is called in the middle of init. */
static pid_t forked_in_init;

static void fork_in_log(int level, unsigned long flags, const char *file, int line,
			const char *format, ...)
{
	(void)level;
	(void)flags;
	(void)file;
	(void)line;
	(void)format;
	fflush(stdout);
	forked_in_init = fork();
	if (forked_in_init == 0)
		begin_anew();
}

static void a_child_forked_during_init_does_not_hang(void)
{
	EXPECT(forked_in_init > 0);
	EXPECT_THAT("a child that was forked in the middle of init comes to its end",
		    ended_well(forked_in_init, 0));
}

int main(void)
{
	struct host_config config = { .plugin = getenv("PLUGIN"),
				      .release = HOST_NCCL_2_28,
				      .log = fork_in_log };
	struct host_comm_config comm_config = { .hash = 5, .nnodes = 1, .nranks = 2 };

	if (host_new(&host, &config) != OK || host_comm_new(host, &comm, &comm_config) != OK ||
	    host_plugin(host)->version != 5)
		return 3;
	a_child_forked_during_init_does_not_hang();
	play(100);
	expect_nothing("exits", exit_at_once, 0);
	expect_nothing("exits without handlers", exit_quickly, 0);
	expect_nothing("is killed", die, SIGKILL);
	expect_nothing("calls everything", call_everything, 0);
	expect_nothing("makes a communicator", begin_anew, 0);
	expect_nothing("becomes another program", become_another, 0);
	expect_nothing("has a child", have_a_child, 0);
	expect_nothing("calls from a thread", have_threads, 0);
	a_silent_fork_leaves_everything_as_it_was();
	play(100);
	host_comm_destroy(comm);
	host_free(host);
	return tap_done();
}
