/*
 * The launcher: forks the ranks, then waits for whatever happens first: a rank ends, a rank says why it
 * cannot go on, a signal, the limit. It holds no threads and never opens CUDA, so it may fork.
 *
 * After the first failure the others have some seconds to end by themselves, then SIGTERM, then SIGKILL.
 */
#include "programs/bench/bench_launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "programs/bench/launch_parts.h"

enum { GRACE_SECONDS = 3, TERM_SECONDS = 2, LAST_SECONDS = 60 };

static uint64_t now_ns(void)
{
	return clock_system_ns(CLOCK_MONOTONIC);
}

void bench_tell(const struct bench_place *place, const char *problem)
{
	char line[512];

	text_format(line, sizeof(line), "%s\n", problem);
	/* Short enough to be written in one piece. A launcher that is gone needs no reason. */
	if (place->problem_fd == -1)
		fprintf(stderr, "ringside: %s\n", problem);
	else if (write(place->problem_fd, line, strlen(line)) == -1)
		return;
}

/* ---- before --------------------------------------------------------------------------------------- */

static int fail_to_begin(struct launch_job *job, const char *what)
{
	text_format(job->told, sizeof(job->told), "%s: %s", what, strerror(errno));
	return -1;
}

/* Open before any rank runs: whoever connects waits in its queue until rank 0 listens. */
static int open_socket(struct launch_job *job)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);

	job->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (job->listen_fd == -1 ||
	    bind(job->listen_fd, (struct sockaddr *)&address, length) == -1 ||
	    listen(job->listen_fd, 1024) == -1 ||
	    getsockname(job->listen_fd, (struct sockaddr *)&address, &length) == -1)
		return fail_to_begin(job, "no socket for ranks to meet");
	job->place.port = ntohs(address.sin_port);
	return 0;
}

/* What nohup or a shell made us ignore stays ignored: a signal that is blocked would come all the same. */
void bench_launch_signals(sigset_t *ending)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction before;

	sigemptyset(ending);
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaddset(ending, numbers[i]);
}

static sigset_t watched_signals(void)
{
	sigset_t wanted;

	bench_launch_signals(&wanted);
	sigaddset(&wanted, SIGCHLD);
	return wanted;
}

static int prepare(struct launch_job *job)
{
	struct bench_place *place = &job->place;
	sigset_t wanted = watched_signals();

	bench_place_init(place);
	text_copy(place->launcher, sizeof(place->launcher), "self");
	text_copy(place->address, sizeof(place->address), "127.0.0.1");
	place->nranks = place->local_ranks = job->launch->ranks;
	place->is_gpu_shared = job->launch->ranks > job->gpus;
	place->is_mps = job->mps.is_on;
	if (getrandom(&place->token, sizeof(place->token), 0) != (ssize_t)sizeof(place->token))
		return fail_to_begin(job, "no random numbers");
	if (open_socket(job) != 0)
		return -1;
	if (pipe2(job->problem_ends, O_CLOEXEC) == -1)
		return fail_to_begin(job, "no pipe");
	fcntl(job->problem_ends[0], F_SETFL, O_NONBLOCK);
	job->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	job->ranks = calloc((size_t)job->launch->ranks, sizeof(*job->ranks));
	if (job->signal_fd == -1 || job->ranks == NULL)
		return fail_to_begin(job, "cannot watch over ranks");
	return 0;
}

static int start_ranks(struct launch_job *job, bench_rank_fn body, void *context)
{
	/* What is buffered would be written once by every rank. */
	fflush(NULL);
	for (int rank = 0; rank < job->launch->ranks; rank++) {
		pid_t pid = fork();

		if (pid == 0)
			launch_become_rank(job, rank, body, context);
		if (pid == -1)
			return fail_to_begin(job, "cannot start a rank");
		job->ranks[rank].pid = pid;
		job->left++;
	}
	close(job->listen_fd);
	job->listen_fd = -1;
	return 0;
}

/* ---- while ---------------------------------------------------------------------------------------- */

static void end_soon(struct launch_job *job, int seconds)
{
	uint64_t end_ns = now_ns() + (uint64_t)seconds * 1000000000;

	if (job->end_ns == 0 || end_ns < job->end_ns)
		job->end_ns = end_ns;
}

static void signal_ranks(struct launch_job *job, int number)
{
	for (int rank = 0; rank < job->launch->ranks; rank++) {
		if (job->ranks[rank].pid == 0)
			continue;
		job->ranks[rank].is_ended_by_us = true;
		kill(job->ranks[rank].pid, number);
	}
}

static void note_end(struct launch_job *job, int rank)
{
	const struct launch_rank *ended = &job->ranks[rank];
	bool is_signal = WIFSIGNALED(ended->status);
	int code = is_signal ? WTERMSIG(ended->status) : WEXITSTATUS(ended->status);

	if (!is_signal && code == 0) {
		/* Rank 0 writes the results and ends last; the others have nothing left to do. */
		if (rank == 0)
			end_soon(job, LAST_SECONDS);
		return;
	}
	/* Whoever read the results went away: nothing to say, as with any command. */
	if (rank == 0 && is_signal && code == SIGPIPE && job->signal == 0)
		job->signal = SIGPIPE;
	/* Wrong usage is, where it is what all say that failed; whom we had to end says nothing. */
	if (!ended->is_ended_by_us)
		job->code = is_signal || code != 2 || (job->has_failed && job->code != 2) ? 1 : 2;
	job->has_failed = true;
	end_soon(job, GRACE_SECONDS);
	if (ended->is_ended_by_us || (!is_signal && code <= 2) || job->death[0] != '\0')
		return;
	if (is_signal)
		text_format(job->death, sizeof(job->death), "rank %d was ended by signal %d (%s)%s",
			    rank, code, strsignal(code),
			    code == SIGKILL ? ": out of memory? See dmesg" : "");
	else
		text_format(job->death, sizeof(job->death), "rank %d ended with exit code %d", rank,
			    code);
}

static void collect_ranks(struct launch_job *job)
{
	for (int rank = 0; rank < job->launch->ranks; rank++) {
		struct launch_rank *at = &job->ranks[rank];

		if (at->pid == 0 || waitpid(at->pid, &at->status, WNOHANG) != at->pid)
			continue;
		at->pid = 0;
		job->left--;
		note_end(job, rank);
	}
}

static void hear_problem(struct launch_job *job)
{
	char text[sizeof(job->told)];
	ssize_t got = read(job->problem_ends[0], text, sizeof(text) - 1);

	if (got <= 0 || job->told[0] != '\0')
		return;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	text_copy(job->told, sizeof(job->told), text);
	end_soon(job, 2 * GRACE_SECONDS);
}

static void take_signals(struct launch_job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		job->signal = (int)info.ssi_signo;
		signal_ranks(job, job->signal);
		end_soon(job, TERM_SECONDS);
	}
}

/* The time that was given is over. */
static void end_ranks(struct launch_job *job)
{
	if (!job->has_failed && job->signal == 0 && job->told[0] == '\0') {
		int seconds = (int)((now_ns() - job->began_ns) / 1000000000);
		int rank = 0;

		while (rank < job->launch->ranks - 1 && job->ranks[rank].pid == 0)
			rank++;
		text_format(job->told, sizeof(job->told),
			    "not over after %d s: %d of %d ranks still run, the first is rank %d",
			    seconds, job->left, job->launch->ranks, rank);
		job->has_failed = true;
	}
	signal_ranks(job, job->is_end_told ? SIGKILL : SIGTERM);
	job->end_ns = now_ns() + (uint64_t)TERM_SECONDS * 1000000000;
	job->is_end_told = true;
}

static void watch_ranks(struct launch_job *job)
{
	struct pollfd polls[2] = { { .fd = job->signal_fd, .events = POLLIN },
				   { .fd = job->problem_ends[0], .events = POLLIN } };

	if (job->launch->limit_s > 0)
		end_soon(job, job->launch->limit_s);
	for (;;) {
		uint64_t now = now_ns();

		hear_problem(job);
		collect_ranks(job);
		if (job->left == 0)
			break;
		if (job->end_ns != 0 && now >= job->end_ns) {
			end_ranks(job);
			continue;
		}
		poll(polls, 2, job->end_ns == 0 ? -1 : (int)((job->end_ns - now) / 1000000 + 1));
		take_signals(job);
	}
	hear_problem(job);
}

/* ---- after ---------------------------------------------------------------------------------------- */

static void release(struct launch_job *job)
{
	if (job->listen_fd != -1)
		close(job->listen_fd);
	if (job->signal_fd != -1)
		close(job->signal_fd);
	for (int i = 0; i < 2; i++)
		if (job->problem_ends[i] != -1)
			close(job->problem_ends[i]);
	free(job->ranks);
	bench_mps_stop(&job->mps);
	/* Signals that came meanwhile were heard, or are too late. */
	sigprocmask(SIG_SETMASK, &job->signals_before, NULL);
}

/* A rank that died explains more than what the others noticed of it. */
static int tell_result(const struct launch_job *job)
{
	const struct bench_launch *launch = job->launch;
	const char *problem = job->death[0] != '\0' ? job->death : job->told;

	if (job->signal != 0)
		return 128 + job->signal;
	if (!job->has_failed && problem[0] == '\0')
		return 0;
	if (launch->problem != NULL)
		text_copy(launch->problem, launch->problem_size, problem);
	else if (problem[0] != '\0')
		fprintf(stderr, "ringside: %s\n", problem);
	return job->code == 2 ? 2 : 1;
}

int bench_launch(const struct bench_launch *launch, bench_rank_fn body, void *context)
{
	struct launch_job job = { .launch = launch,
				  .pid = getpid(),
				  .gpus = launch->gpus,
				  .listen_fd = -1,
				  .problem_ends = { -1, -1 },
				  .signal_fd = -1,
				  .began_ns = now_ns() };
	sigset_t wanted = watched_signals();

	if (launch->problem != NULL && launch->problem_size > 0)
		launch->problem[0] = '\0';
	if (job.gpus == 0)
		job.gpus = bench_launch_gpus(job.told, sizeof(job.told));
	if (job.gpus < 1) {
		job.has_failed = true;
		return tell_result(&job);
	}
	sigprocmask(SIG_BLOCK, &wanted, &job.signals_before);
	if (launch->ranks > job.gpus && launch->is_mps_wanted)
		bench_mps_start(&job.mps);
	if (prepare(&job) != 0 || start_ranks(&job, body, context) != 0) {
		job.has_failed = true;
		end_soon(&job, 0);
	}
	if (job.left > 0)
		watch_ranks(&job);
	release(&job);
	return tell_result(&job);
}
