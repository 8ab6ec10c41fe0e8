#include "programs/bench/bench_mps.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/bench/bench_spawn.h"

enum { START_SECONDS = 20, QUIT_SECONDS = 15, LEFT_TRIES = 30, NAP_MS = 100, PIDS_MAX = 16 };

/* A small file of /proc, or of MPS; how many bytes. */
static size_t read_small(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t total = 0;
	ssize_t got;

	if (fd == -1)
		return 0;
	while (total < size && (got = read(fd, to + total, size - total)) > 0)
		total += (size_t)got;
	close(fd);
	return total;
}

/* ---- is there one already? ------------------------------------------------------------------------ */

static bool is_running(const char *directory)
{
	char path[4200], text[32] = "";
	int64_t pid;

	text_format(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", directory);
	if (read_small(path, text, sizeof(text) - 1) == 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return text_number(text, 2, INT32_MAX, &pid) == OK && (kill((pid_t)pid, 0) == 0);
}

/* ---- starting ------------------------------------------------------------------------------------- */

void bench_mps_environment(const struct bench_mps *mps)
{
	if (!mps->is_ours)
		return;
	setenv("CUDA_MPS_PIPE_DIRECTORY", mps->pipe, 1);
	setenv("CUDA_MPS_LOG_DIRECTORY", mps->log, 1);
}

/* The daemon gets its directories by its environment, and nothing that is meant for NCCL. */
static int run_control(const struct bench_mps *mps, const char *option, const char *input,
		       int limit_s)
{
	char pipe[200], log[200], output[200];
	const char *const words[] = { "/usr/bin/env", pipe, log, mps->control, option, NULL };

	text_format(pipe, sizeof(pipe), "CUDA_MPS_PIPE_DIRECTORY=%s", mps->pipe);
	text_format(log, sizeof(log), "CUDA_MPS_LOG_DIRECTORY=%s", mps->log);
	text_format(output, sizeof(output), "%s/output", mps->directory);
	return bench_spawn(words, input, output, limit_s);
}

static bool make_directories(struct bench_mps *mps)
{
	/* Short, and not below TMPDIR: the pipe's name has to fit into a socket's address. */
	text_copy(mps->directory, sizeof(mps->directory), "/tmp/ringside-mps-XXXXXX");
	if (mkdtemp(mps->directory) == NULL) {
		mps->directory[0] = '\0';
		return false;
	}
	text_format(mps->pipe, sizeof(mps->pipe), "%s/pipe", mps->directory);
	text_format(mps->log, sizeof(mps->log), "%s/log", mps->directory);
	return mkdir(mps->pipe, 0700) == 0 && mkdir(mps->log, 0700) == 0;
}

/* ---- stopping ------------------------------------------------------------------------------------- */

static bool has_variable(const char *text, size_t length, const char *wanted)
{
	for (const char *at = text; at < text + length; at += strlen(at) + 1)
		if (strcmp(at, wanted) == 0)
			return true;
	return false;
}

static bool is_of(const struct bench_mps *mps, const char *pid)
{
	static const char beginning[] = "nvidia-cuda-mps";
	char path[64], comm[32] = "", wanted[200];
	bool is_its = false;
	size_t length;
	char *environment;

	text_format(path, sizeof(path), "/proc/%.16s/comm", pid);
	read_small(path, comm, sizeof(comm) - 1);
	if (strncmp(comm, beginning, sizeof(beginning) - 1) != 0)
		return false;
	environment = calloc(1, (1 << 20) + 1);
	if (environment == NULL)
		return false;
	text_format(path, sizeof(path), "/proc/%.16s/environ", pid);
	length = read_small(path, environment, 1 << 20);
	text_format(wanted, sizeof(wanted), "CUDA_MPS_PIPE_DIRECTORY=%s", mps->pipe);
	is_its = has_variable(environment, length, wanted);
	free(environment);
	return is_its;
}

/* The daemon and its servers, by the pipe directory in their environment. */
static size_t find_left(const struct bench_mps *mps, pid_t *pids)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;
	int64_t pid;

	if (proc == NULL)
		return 0;
	while (count < PIDS_MAX && (entry = readdir(proc)) != NULL)
		if (text_number(entry->d_name, 2, INT32_MAX, &pid) == OK &&
		    is_of(mps, entry->d_name))
			pids[count++] = (pid_t)pid;
	closedir(proc);
	return count;
}

static void stop_all(const void *context)
{
	const struct bench_mps *mps = context;
	pid_t left[PIDS_MAX];
	size_t count = 0;

	run_control(mps, NULL, "quit\n", QUIT_SECONDS);
	for (int i = 0; i < LEFT_TRIES; i++) {
		count = find_left(mps, left);
		if (count == 0)
			break;
		poll(NULL, 0, NAP_MS);
	}
	for (size_t i = 0; i < count; i++)
		kill(left[i], SIGKILL);
	bench_remove_tree(mps->directory);
}

/* ---- both ----------------------------------------------------------------------------------------- */

void bench_mps_start(struct bench_mps *mps)
{
	const char *set = getenv("CUDA_MPS_PIPE_DIRECTORY");

	memset(mps, 0, sizeof(*mps));
	if (is_running(set && set[0] ? set : "/tmp/nvidia-mps")) {
		mps->is_on = true;
		return;
	}
	if (!bench_find_program("nvidia-cuda-mps-control", mps->control, sizeof(mps->control)))
		return;
	mps->is_ours = true;
	if (!make_directories(mps) || !bench_keeper_start(&mps->keeper, stop_all, mps) ||
	    run_control(mps, "-d", NULL, START_SECONDS) != 0) {
		bench_mps_stop(mps);
		return;
	}
	mps->is_on = true;
}

void bench_mps_stop(struct bench_mps *mps)
{
	if (!mps->is_ours)
		return;
	if (!bench_keeper_end(&mps->keeper))
		bench_remove_tree(mps->directory);
	memset(mps, 0, sizeof(*mps));
}
