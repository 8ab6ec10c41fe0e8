/*
 * Preloaded into a job: once the file SILENT_GO exists, its memory is locked for good. One thread reads its own memory where the
 * file SILENT_FILE is mapped, whose reading is never answered; another one asks for more memory and waits for the first.
 * Who then reads /proc/PID/environ or cmdline waits, too.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *go;
static void *mapped;

static void wait_for_go(void)
{
	while (access(go, F_OK) == -1)
		usleep(10000);
}

static void *read_it(void *memory)
{
	char byte;

	wait_for_go();
	return (void *)(intptr_t)pread(*(int *)memory, &byte, 1, (off_t)(uintptr_t)mapped);
}

static void *ask_for_more(void *unused)
{
	wait_for_go();
	usleep(300000);
	return mmap(unused, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void __attribute__((constructor)) be_silent(void)
{
	static int memory;
	const char *path = getenv("SILENT_FILE");
	pthread_t thread;
	int fd;

	go = getenv("SILENT_GO");
	if (path == NULL || go == NULL)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd == -1 || memory == -1 || mapped == MAP_FAILED ||
	    pthread_create(&thread, NULL, read_it, &memory) != 0 ||
	    pthread_create(&thread, NULL, ask_for_more, NULL) != 0)
		abort();
	close(fd);
}
