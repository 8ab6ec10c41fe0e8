/*
 * A program that calls NCCL: calls, calls from threads, calls before being killed, calls in a child. Also built as
 * a library (-DMODULE), which `module` opens like Python opens its modules.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INT32 = 2, FLOAT16 = 6, THREADS = 4, THREAD_CALLS = 5000 };

#ifdef MODULE
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream);
int module_calls(void);

int module_calls(void)
{
	int failed = 0;

	for (int i = 0; i < 3; i++)
		failed |= ncclAllReduce(NULL, NULL, 1, INT32, 0, NULL, NULL);
	return failed;
}
#else
#ifdef LINKED
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream);
int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream);
int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);

static int calls(void)
{
	int failed = 0;

	for (int i = 0; i < 10; i++)
		failed |= ncclAllReduce(NULL, NULL, 1000, INT32, 0, NULL, NULL);
	failed |= ncclBcast(NULL, 100, FLOAT16, 0, NULL, NULL);
	failed |= ncclGroupStart();
	failed |= ncclSend(NULL, 1, INT32, 1, NULL, NULL);
	failed |= ncclSend(NULL, 1, INT32, 2, NULL, NULL);
	failed |= ncclGroupEnd();
	errno = 0;
	failed |= ncclAllReduce(NULL, NULL, 0, INT32, 0, NULL, NULL) != 4;
	return failed || errno != 0;
}

static void *thread(void *context)
{
	for (int i = 0; i < THREAD_CALLS; i++)
		ncclAllReduce(NULL, NULL, 1, INT32, 0, NULL, NULL);
	return context;
}

static int in_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int in_child(void)
{
	pid_t child;
	int status = 1;

	calls();
	child = fork();
	if (child == 0)
		_exit(calls());
	return child == -1 || waitpid(child, &status, 0) != child || status != 0;
}
#else
static int module(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*function)(void) = handle ? (int (*)(void))dlsym(handle, "module_calls") : NULL;

	return function ? function() : 2;
}
#endif

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

#ifdef LINKED
	if (strcmp(what, "threads") == 0)
		return in_threads();
	if (strcmp(what, "fork") == 0)
		return in_child();
	if (strcmp(what, "killed") == 0 && calls() == 0)
		raise(SIGKILL);
	return strcmp(what, "calls") == 0 ? calls() : 2;
#else
	return strcmp(what, "nothing") == 0 ? 0 : module(what);
#endif
}
#endif
