#include "programs/bench/bench_look.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/bench/bench_launch.h"
#include "programs/bench/bench_spawn.h"
#include "programs/bench/cuda_open.h"
#include "programs/bench/nccl_open.h"

/* A driver that was not used for long takes many seconds to wake up. */
enum { LOOK_SECONDS = 60 };

struct answer {
	int gpus;
	char problem[512];
};

static void look(bool with_nccl, const char *nccl_path, struct answer *answer)
{
	struct cuda cuda = { 0 };
	struct nccl nccl = { 0 };
	cuda_result result;

	answer->gpus = -1;
	if (cuda_open(&cuda, answer->problem, sizeof(answer->problem)) != 0)
		return;
	if (with_nccl && nccl_open(&nccl, nccl_path, answer->problem, sizeof(answer->problem)) != 0)
		return;
	result = cuda.device_count(&answer->gpus);
	if (result == 0)
		return;
	answer->gpus = -1;
	cuda_explain(&cuda, result, "cuDeviceGetCount", answer->problem, sizeof(answer->problem));
}

static void look_in_child(bool with_nccl, const char *nccl, int fd)
{
	struct answer answer = { 0 };

	/* Who asked may be gone before CUDA answers. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Libraries may talk; results are on stdout. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	look(with_nccl, nccl, &answer);
	_exit(write(fd, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
}

int bench_look(bool with_nccl, const char *nccl, char *problem, size_t problem_size)
{
	struct answer answer = { .gpus = -1 };
	int ends[2], status;
	ssize_t got;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) == -1 || (child = fork()) == -1) {
		snprintf(problem, problem_size, "cannot start a process: %s", strerror(errno));
		return -1;
	}
	if (child == 0)
		look_in_child(with_nccl, nccl, ends[1]);
	close(ends[1]);
	status = bench_wait_child(child, LOOK_SECONDS);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	got = read(ends[0], &answer, sizeof(answer));
	close(ends[0]);
	if (got == (ssize_t)sizeof(answer)) {
		answer.problem[sizeof(answer.problem) - 1] = '\0';
		text_copy(problem, problem_size, answer.problem);
		if (answer.gpus == 0)
			text_copy(problem, problem_size,
				  "CUDA is here, but no GPU: see nvidia-smi and "
				  "CUDA_VISIBLE_DEVICES");
		return answer.gpus > 0 ? answer.gpus : -1;
	}
	if (status == -1)
		snprintf(problem, problem_size, "CUDA did not open within %d s: see dmesg",
			 LOOK_SECONDS);
	else
		snprintf(problem, problem_size, "opening CUDA ended the process (%s %d): see dmesg",
			 WIFSIGNALED(status) ? "signal" : "exit code",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return -1;
}

int bench_launch_gpus(char *problem, size_t problem_size)
{
	return bench_look(false, NULL, problem, problem_size);
}
