/*
 * Commands of `ringside bench` on the fake GPU, each in a child with its own environment: exit code and output, as
 * text for expected_file.h. What differs between hosts and runs is replaced: process ids, and the paths of the build
 * and of the test's directory. The host is node-1.
 */
#ifndef COMMAND_STAGE_H
#define COMMAND_STAGE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/text.h"
#include "output/sink.h"
#include "tests/support/expected_file.h"
#include "tests/support/scratch.h"

/* The width of tables depends on it. In place of libc's, for everything in the program; the files share one. */
__attribute__((weak)) int gethostname(char *name, size_t length)
{
	return text_copy(name, length, "node-1") ? 0 : -1;
}

/*
 * Commands look for our plugin beside their program: see cli_plugin_find(). Its path is in PLAYED_PROGRAM, because a
 * plugin beside this program would be found by all tests that lie there.
 */
__attribute__((weak)) ssize_t readlink(const char *path, char *to, size_t size)
{
	const char *played = getenv("PLAYED_PROGRAM");
	size_t length;

	if (played == NULL || strcmp(path, "/proc/self/exe") != 0)
		return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
	length = strlen(played) < size ? strlen(played) : size;
	memcpy(to, played, length);
	return (ssize_t)length;
}

enum { STAGE_WORDS_MAX = 48, STAGE_AT_ONCE = 4, STAGE_FILE_BYTES = 1 << 20 };

typedef int stage_command_fn(int argc, char **argv);

/*
 * One command. Words are separated by blanks; @ in them is the test's directory. The word >/dev/null hides output with
 * times of the host.
 */
struct stage_case {
	const char *title;
	const char *variables; /* "FAKE_GPUS=4 NCCL_ALGO=Ring" */
	const char *words;     /* "health --ranks 2" */
};

struct stage {
	const char *directory; /* for files of the commands */
	char build[4096];      /* the parent of tests/unit/PROGRAM */
	struct sink text;      /* of all cases */
};

/* Nothing that the caller of the tests has set may change what a command does. */
static inline void stage_forget_environment(void)
{
	static const char *const prefixes[] = { "FAKE_",  "NCCL_",   "RINGSIDE_", "OMPI_",
						"PMI",	  "PALS_",   "MPI_",	  "SLURM_",
						"CUDA_",  "MASTER_", "RANK=",	  "LOCAL",
						"WORLD_", "TORCHE",  "COLUMNS=",  "NO_COLOR",
						NULL };
	extern char **environ;

	for (char **at = environ; *at != NULL;) {
		char name[256];
		bool is_ours = false;

		for (const char *const *prefix = prefixes; *prefix != NULL; prefix++)
			is_ours |= strncmp(*at, *prefix, strlen(*prefix)) == 0;
		if (is_ours && text_format(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at))
			unsetenv(name);
		else
			at++;
	}
}

/* Our plugin, beside the program that is played. */
static inline void stage_install(struct stage *stage)
{
	char from[4200], to[4200];

	text_format(to, sizeof(to), "%s/lib", stage->directory);
	if (mkdir(to, 0755) == -1)
		abort();
	text_format(from, sizeof(from), "%s/" CLI_PLUGIN_FILE, stage->build);
	text_format(to, sizeof(to), "%s/lib/" CLI_PLUGIN_FILE, stage->directory);
	if (symlink(from, to) == -1)
		abort();
	text_format(to, sizeof(to), "%s/lib/ringside-bench", stage->directory);
	setenv("PLAYED_PROGRAM", to, 1);
}

static inline void stage_open(struct stage *stage)
{
	char path[4200], *slash;
	ssize_t length = readlink("/proc/self/exe", stage->build, sizeof(stage->build) - 1);

	stage->build[length > 0 ? length : 0] = '\0';
	for (int i = 0; i < 3 && (slash = strrchr(stage->build, '/')) != NULL; i++)
		*slash = '\0';
	stage_forget_environment();
	text_format(path, sizeof(path), "%s/tests/fake_gpu/libcuda.so.1", stage->build);
	setenv("RINGSIDE_CUDA", path, 1);
	text_format(path, sizeof(path), "%s/tests/fake_gpu/libnccl.so.2", stage->build);
	setenv("RINGSIDE_NCCL", path, 1);
	setenv("FAKE_GPU_CLOCK", "model", 1);
	setenv("LC_ALL", "C", 1);
	stage->directory = scratch_make();
	text_format(path, sizeof(path), "%s/shm", stage->directory);
	if (mkdir(path, 0755) == -1)
		abort();
	setenv("RINGSIDE_SHM", path, 1);
	/* Not the host's MPS. */
	text_format(path, sizeof(path), "%s/none", stage->directory);
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	stage_install(stage);
	sink_init_memory(&stage->text);
}

/* The whole file; the caller frees it. "" if there is none. */
static inline char *stage_file(const char *path)
{
	char *text = calloc(1, STAGE_FILE_BYTES);
	FILE *file = fopen(path, "re");

	if (text == NULL)
		abort();
	if (file != NULL) {
		if (fread(text, 1, STAGE_FILE_BYTES - 1, file) == 0)
			text[0] = '\0';
		fclose(file);
	}
	return text;
}

/* The text with every `name` replaced. */
static inline char *stage_replace(char *text, const char *name, const char *by)
{
	const char *from = text, *found;
	struct sink sink;
	char *replaced;

	sink_init_memory(&sink);
	for (; name[0] != '\0' && (found = strstr(from, name)) != NULL;
	     from = found + strlen(name)) {
		sink_write(&sink, from, (size_t)(found - from));
		sink_text(&sink, by);
	}
	sink_text(&sink, from);
	replaced = strdup(sink_string(&sink));
	sink_release(&sink);
	free(text);
	if (replaced == NULL)
		abort();
	return replaced;
}

/* Numbers that follow a name, with their blanks: "Pid   4711" becomes "Pid N". */
static inline void stage_hide_number(char *text, const char *name)
{
	for (char *at = strstr(text, name); at != NULL; at = strstr(at, name)) {
		char *number = at + strlen(name);
		size_t blanks = strspn(number, " ");
		size_t digits = strspn(number + blanks, "0123456789");

		at = number;
		if (digits == 0)
			continue;
		if (blanks > 0)
			*at++ = ' ';
		*at++ = 'N';
		memmove(at, number + blanks + digits, strlen(number + blanks + digits) + 1);
	}
}

static inline void stage_show(struct stage *stage, const char *what, const char *path)
{
	char *text = stage_file(path);

	text = stage_replace(text, stage->directory, "SCRATCH");
	text = stage_replace(text, stage->build, "BUILD");
	stage_hide_number(text, "Pid");
	stage_hide_number(text, "\"pid\":");
	if (text[0] != '\0')
		sink_format(&stage->text, "--- %s\n%s%s", what, text,
			    text[strlen(text) - 1] == '\n' ? "" : "\n");
	free(text);
}

static inline void stage_become(const struct stage *stage, stage_command_fn *command,
				const struct stage_case *one, const char *path)
{
	char *words[STAGE_WORDS_MAX + 1], text[4096], *rest, *word, output[4200];
	int argc = 0, code, fd;

	text_copy(text, sizeof(text), one->variables ? one->variables : "");
	for (word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		char *value = stage_replace(strdup(strchr(word, '=') + 1), "@", stage->directory);

		*strchr(word, '=') = '\0';
		setenv(word, value, 1);
	}
	text_copy(text, sizeof(text), one->words);
	for (word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		if (argc == STAGE_WORDS_MAX)
			abort();
		if (strcmp(word, ">/dev/null") == 0)
			break;
		words[argc++] = stage_replace(strdup(word), "@", stage->directory);
	}
	words[argc] = NULL;
	for (int standard = STDOUT_FILENO; standard <= STDERR_FILENO; standard++) {
		text_format(output, sizeof(output), "%s.%d", path, standard);
		fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
		if (fd == -1 || dup2(fd, standard) == -1)
			abort();
	}
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(fd, STDIN_FILENO);
	code = command(argc, words);
	fflush(NULL);
	_exit(code);
}

/* Runs the commands, a few at a time, and appends what they printed in the order of the list. */
static inline void stage_run(struct stage *stage, stage_command_fn *command,
			     const struct stage_case *list, size_t count)
{
	char path[200], output[220];
	pid_t *children = calloc(count, sizeof(*children));
	int *codes = calloc(count, sizeof(*codes));

	if (children == NULL || codes == NULL)
		abort();
	fflush(stdout);
	for (size_t i = 0; i < count + STAGE_AT_ONCE; i++) {
		if (i >= STAGE_AT_ONCE &&
		    waitpid(children[i - STAGE_AT_ONCE], &codes[i - STAGE_AT_ONCE], 0) == -1)
			abort();
		if (i >= count)
			continue;
		text_format(path, sizeof(path), "%s/case%zu", stage->directory, i);
		children[i] = fork();
		if (children[i] == -1)
			abort();
		if (children[i] == 0)
			stage_become(stage, command, &list[i], path);
	}
	for (size_t i = 0; i < count; i++) {
		sink_format(&stage->text, "=== %s\n%s%s%s\n", list[i].title,
			    list[i].variables ? list[i].variables : "",
			    list[i].variables ? " " : "", list[i].words);
		if (WIFSIGNALED(codes[i]))
			sink_format(&stage->text, "signal %d\n", WTERMSIG(codes[i]));
		else
			sink_format(&stage->text, "exit %d\n", WEXITSTATUS(codes[i]));
		text_format(output, sizeof(output), "%s/case%zu.1", stage->directory, i);
		if (strstr(list[i].words, " >/dev/null") == NULL)
			stage_show(stage, "output", output);
		text_format(output, sizeof(output), "%s/case%zu.2", stage->directory, i);
		stage_show(stage, "messages", output);
	}
	free(children);
	free(codes);
}

/* Whether all that was printed is in the file. */
static inline bool stage_is_expected(struct stage *stage, const char *path)
{
	bool is_same = expected_file(sink_string(&stage->text), path);

	sink_release(&stage->text);
	sink_init_memory(&stage->text);
	return is_same;
}

#endif
