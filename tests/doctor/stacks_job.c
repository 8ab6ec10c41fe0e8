/*
 * Processes in known places, for stacks.t: stacks_job WHAT. Prints a line when it is there.
 *
 *	futex, read, socket, sleep, spin, vfork     where the main thread is
 *	threads                                     asleep, with 1,099 others
 *	attach PID                                  a tracer that sends SIGSTOP and then does nothing, as a debugger might
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void *hold(void *lock)
{
	pthread_mutex_lock(lock);
	puts("ready");
	fflush(stdout);
	pause();
	return NULL;
}

static void wait_for_lock(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_create(&thread, NULL, hold, &lock);
	while (pthread_mutex_trylock(&lock) == 0)
		pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
}

static void *wait_forever(void *unused)
{
	pause();
	return unused;
}

static void start_threads(void)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < 1099; i++)
		if (pthread_create(&thread, &small, wait_forever, NULL) != 0)
			exit(1);
}

static void read_socket(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server, (struct sockaddr *)&address, sizeof(address)) == -1 ||
	    listen(server, 1) == -1 ||
	    getsockname(server, (struct sockaddr *)&address, &length) == -1 ||
	    connect(client, (struct sockaddr *)&address, sizeof(address)) == -1)
		exit(1);
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	if (read(client, &byte, 1) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct timespec day = { 86400, 0 };
	int ends[2];
	char byte;

	if (strcmp(what, "futex") == 0)
		wait_for_lock();
	if (strcmp(what, "threads") == 0)
		start_threads();
	if (strcmp(what, "socket") == 0)
		read_socket();
	if (strcmp(what, "attach") == 0) {
		ptrace(PTRACE_ATTACH, (pid_t)atoi(argv[2]), NULL, NULL);
		pause();
	}
	puts("ready");
	fflush(stdout);
	if (strcmp(what, "read") == 0 && pipe(ends) == 0)
		return (int)read(ends[0], &byte, 1);
	if (strcmp(what, "sleep") == 0 || strcmp(what, "threads") == 0)
		return clock_nanosleep(CLOCK_MONOTONIC, 0, &day, NULL);
	if (strcmp(what, "vfork") == 0 && vfork() == 0) {
		pause();
		_exit(0);
	}
	for (volatile unsigned long i = 0; strcmp(what, "spin") == 0;)
		i++;
	return 0;
}
