/*
 * The library that counts calls between a program and NCCL, on an NCCL of this test: what is counted, passed on and
 * written. Each scene is a child, because counting begins anew in one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/support/expected_file.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

/* ---- an NCCL ------------------------------------------------------------------------------------------ */

static const char *played_host = "node-1";
static const char *missing = "";   /* a function that this NCCL does not have */
static const char *elsewhere = ""; /* one that only another library has */
static int played_result, called, passed_errno;

static int plays(void)
{
	called++;
	passed_errno = errno;
	errno = 99;
	return played_result;
}

static int plays_bcast(void *buffer, size_t count, int type, int root, void *comm, void *stream);

static void *played_dlsym(void *handle, const char *name)
{
	errno = 5;
	if (strcmp(name, missing) == 0 || (strcmp(name, elsewhere) == 0 && handle == RTLD_NEXT))
		return NULL;
	return strcmp(name, "ncclBcast") == 0 ? (void *)plays_bcast : (void *)plays;
}

static void *played_dlopen(const char *name, int mode)
{
	(void)mode;
	return strcmp(name, "libnccl.so.2") == 0 ? (void *)&played_host : NULL;
}

static int played_gethostname(char *name, size_t size)
{
	snprintf(name, size, "%s", played_host);
	return 0;
}

#define dlsym played_dlsym
#define dlopen played_dlopen
#define gethostname played_gethostname
#include "bench/count_preload.c"
#undef dlsym
#undef dlopen
#undef gethostname

/* NCCL's own calls are not the program's. */
static int plays_bcast(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

/* ---- scenes ------------------------------------------------------------------------------------------- */

enum { INT8 = 0, FLOAT32 = 7, BFLOAT16 = 9, FLOAT8 = 11, NO_TYPE = 12 };

static const char *directory;

static void call_everything(void)
{
	ncclAllReduce(NULL, NULL, 10, FLOAT32, 0, NULL, NULL);
	ncclAllReduce(NULL, NULL, 3, INT8, 0, NULL, NULL);
	ncclAllGather(NULL, NULL, 10, BFLOAT16, NULL, NULL);
	ncclReduceScatter(NULL, NULL, 10, FLOAT8, 0, NULL, NULL);
	ncclBroadcast(NULL, NULL, 10, NO_TYPE, 0, NULL, NULL);
	ncclBcast(NULL, 5, 4, 0, NULL, NULL);
	ncclReduce(NULL, NULL, 10, -1, 0, 0, NULL, NULL);
	ncclGroupStart();
	ncclSend(NULL, 100, 8, 1, NULL, NULL);
	ncclRecv(NULL, 100, 6, 1, NULL, NULL);
	ncclGroupEnd();
	ncclAlltoAll(NULL, NULL, 1, 2, NULL, NULL);
	ncclGather(NULL, NULL, 1, 3, 0, NULL, NULL);
	ncclScatter(NULL, NULL, 1, 5, 0, NULL, NULL);
	EXPECT_EQUAL(called, 14);
}

static void results_are_counted(void)
{
	static const int results[] = { 0, 1, 7, 6 };

	for (size_t i = 0; i < 4; i++) {
		played_result = results[i];
		errno = 42;
		EXPECT_EQUAL(ncclAllReduce(NULL, NULL, 1, FLOAT32, 0, NULL, NULL), results[i]);
		EXPECT_THAT("errno passes through, both ways", passed_errno == 42 && errno == 99);
	}
}

static void what_is_missing_is_unknown(void)
{
	missing = "ncclAllGather";
	EXPECT_EQUAL(ncclAllGather(NULL, NULL, 1, FLOAT32, NULL, NULL), 2);
	EXPECT_EQUAL(ncclReduce(NULL, NULL, 1, FLOAT32, 0, 0, NULL, NULL), 0);
}

static void another_library_is_found(void)
{
	elsewhere = "ncclReduce";
	EXPECT_EQUAL(ncclReduce(NULL, NULL, 1, FLOAT32, 0, 0, NULL, NULL), 0);
	EXPECT_EQUAL(called, 1);
}

static void a_child_has_its_own(void)
{
	pid_t child;

	ncclAllReduce(NULL, NULL, 1, FLOAT32, 0, NULL, NULL);
	child = fork();
	if (child == 0) {
		played_host = "child";
		ncclReduce(NULL, NULL, 1, FLOAT32, 0, 0, NULL, NULL);
		end_process();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ncclAllReduce(NULL, NULL, 1, FLOAT32, 0, NULL, NULL);
}

/* What a process that did not count must not write. */
static void a_child_without_calls_has_none(void)
{
	pid_t child;

	ncclAllReduce(NULL, NULL, 1, FLOAT32, 0, NULL, NULL);
	child = fork();
	if (child == 0) {
		end_process();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void nothing_is_called(void)
{
}

static void one_call(void)
{
	ncclAllReduce(NULL, NULL, 1, FLOAT32, 0, NULL, NULL);
	ncclAllReduce(NULL, NULL, 1, FLOAT32, 0, NULL, NULL);
}

static void files_are_limited(void)
{
	struct rlimit limit = { 8191, 8191 };

	setrlimit(RLIMIT_FSIZE, &limit);
	one_call();
}

static void files_are_just_large_enough(void)
{
	struct rlimit limit = { 8192, 8192 };

	setrlimit(RLIMIT_FSIZE, &limit);
	one_call();
}

static const struct {
	const char *title;
	void (*play)(void);
	const char *rank; /* RANK, OMPI_COMM_WORLD_RANK; NULL: not set */
	const char *mpi_rank;
	const char *host;
	const char *directory; /* NULL: the test's */
} scenes[] = {
	{ "every function", call_everything, "3", "4", NULL, NULL },
	{ "results", results_are_counted, "x", "4", NULL, NULL },
	{ "a function that NCCL does not have", what_is_missing_is_unknown, NULL, NULL, NULL,
	  NULL },
	{ "NCCL of a module", another_library_is_found, "0", NULL, "a b\"c\\d/e", NULL },
	{ "a child", a_child_has_its_own, "-1", "2147483648", NULL, NULL },
	{ "a child without calls", a_child_without_calls_has_none, "2147483647", NULL, NULL, NULL },
	{ "no calls", nothing_is_called, "1", NULL, NULL, NULL },
	{ "no directory is given", one_call, "1", NULL, NULL, "" },
	{ "no such directory: one line", one_call, "1", NULL, NULL, "/nonexistent" },
	{ "files are limited: one line, and no file", files_are_limited, "1", NULL, NULL, NULL },
	{ "files are just large enough", files_are_just_large_enough, "1", NULL, NULL, NULL },
};

/* Numbers that differ: times and process ids. */
static void hide(char *text, const char *name)
{
	for (char *at = strstr(text, name); at != NULL; at = strstr(at, name)) {
		size_t digits = strspn(at += strlen(name), "0123456789");

		if (digits > 0) {
			*at = 'N';
			memmove(at + 1, at + digits, strlen(at + digits) + 1);
		}
	}
}

static void append(char *to, size_t size, const char *path)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "re");
	size_t length = 0;

	if (file != NULL) {
		length = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[length] = '\0';
	hide(text, "pid");
	hide(text, "\"pid\":");
	hide(text, "_ns\":");
	hide(text, "\"ns\":");
	snprintf(to + strlen(to), size - strlen(to), "%s", text);
}

/* Functions that were called, and the head. */
static void keep_called(char *text)
{
	char *to = text;

	for (char *at = text, *next; *at != '\0'; at = next) {
		next = at + strcspn(at, "\n");
		next += *next == '\n';
		if (strstr(at, "\"calls\":0,\"failed\":0") != NULL &&
		    strstr(at, "\"calls\":0,\"failed\":0") < next)
			continue;
		memmove(to, at, (size_t)(next - at));
		to += next - at;
	}
	*to = '\0';
}

static int play_in_child(size_t i)
{
	tap_count = 0;
	played_host = scenes[i].host ? scenes[i].host : "node-1";
	setenv("RINGSIDE_COUNT_DIR", scenes[i].directory ? scenes[i].directory : ".", 1);
	unsetenv("RANK");
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("PMI_RANK");
	unsetenv("SLURM_PROCID");
	if (scenes[i].rank != NULL)
		setenv("RANK", scenes[i].rank, 1);
	if (scenes[i].mpi_rank != NULL)
		setenv("OMPI_COMM_WORLD_RANK", scenes[i].mpi_rank, 1);
	if (chdir(directory) == -1 || freopen("/dev/null", "w", stdout) == NULL)
		return 1;
	scenes[i].play();
	end_process();
	return tap_failed;
}

static void play(size_t i, char *text, size_t size)
{
	char command[600], path[200];
	int status;
	pid_t child;

	snprintf(path, sizeof(path), "%s/messages", directory);
	child = fork();
	if (child == 0) {
		if (freopen(path, "w", stderr) == NULL)
			_exit(1);
		_exit(play_in_child(i));
	}
	if (waitpid(child, &status, 0) != child)
		abort();
	snprintf(text + strlen(text), size - strlen(text), "=== %s: exit %d\n", scenes[i].title,
		 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	append(text, size, path);
	snprintf(command, sizeof(command),
		 "cd %s && ls | sed -n 's/pid[0-9]*/pidN/; /pid/p' | sort >names; "
		 "cat *.json 2>/dev/null >>names; rm -f *.json *.count",
		 directory);
	if (system(command) == -1)
		abort();
	snprintf(path, sizeof(path), "%s/names", directory);
	append(text, size, path);
}

int main(void)
{
	static char text[1 << 18];

	directory = scratch_make();
	for (size_t i = 0; i < ARRAY_LENGTH(scenes); i++)
		play(i, text, sizeof(text));
	keep_called(text);
	EXPECT_THAT("counts as in count_preload.txt",
		    expected_file(text, "tests/unit/bench/expected/count_preload.txt"));
	return tap_done();
}
