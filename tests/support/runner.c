/*
 * The main program of unit tests.
 *
 *	PROGRAM                 run all files, as one TAP stream
 *	PROGRAM FILE [ARG...]   run only this one, in this process: for a debugger
 *	PROGRAM -l              list the files
 *
 * Every file runs in its own process, so that it finds nothing left by another, and one that
 * crashes fails alone. Its output comes through a pipe: its lines are renumbered, and its plan is
 * compared with the results.
 */
#include "tests/support/runner.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long count, failed;

static int file_main(const struct unit_file *file, int argc, char **argv)
{
	return file->run != NULL ? file->run() : file->run_with_arguments(argc, argv);
}

/* A line of the runner itself. */
static void complain(const struct unit_file *file, const char *what, long number)
{
	printf("not ok %lu - %s: %s %ld\n", ++count, file->name, what, number);
	failed++;
}

/* Lines that are not TAP results pass unchanged. */
static bool pass_result(const char *line)
{
	bool is_failed = strncmp(line, "not ok ", 7) == 0;
	const char *rest;

	if (!is_failed && strncmp(line, "ok ", 3) != 0)
		return false;
	rest = line + (is_failed ? 7 : 3);
	rest += strspn(rest, "0123456789");
	printf("%sok %lu%s", is_failed ? "not " : "", ++count, rest);
	if (is_failed)
		failed++;
	return true;
}

/* Everything the file prints, until the other end is closed. */
static void pass_output(const struct unit_file *file, FILE *output)
{
	unsigned long before = count, planned = 0;
	bool has_plan = false;
	size_t room = 0;
	char *line = NULL, *rest;

	while (getline(&line, &room, output) != -1) {
		if (strncmp(line, "1..", 3) == 0) {
			planned = strtoul(line + 3, &rest, 10);
			has_plan = true;
			if (planned == 0 && strstr(rest, "# SKIP") != NULL) {
				printf("ok %lu - %s%s", ++count, file->name, rest);
				before++;
			}
		} else if (!pass_result(line)) {
			fputs(line, stdout);
		}
		fflush(stdout);
	}
	free(line);
	if (!has_plan)
		complain(file, "ended without a plan, after tests:", (long)(count - before));
	else if (count - before != planned)
		complain(file, "has a plan that is not what came:", (long)planned);
}

static void run_file(const struct unit_file *file)
{
	char *argv[] = { (char *)file->name, NULL };
	unsigned long failed_before = failed;
	int ends[2], status;
	FILE *output;
	pid_t child;

	printf("# %s\n", file->name);
	fflush(stdout);
	if (pipe(ends) == -1 || (child = fork()) == -1) {
		perror(file->name);
		exit(1);
	}
	if (child == 0) {
		if (dup2(ends[1], STDOUT_FILENO) == -1)
			_exit(1);
		close(ends[0]);
		close(ends[1]);
		exit(file_main(file, 1, argv));
	}
	close(ends[1]);
	output = fdopen(ends[0], "r");
	if (output == NULL) {
		perror(file->name);
		exit(1);
	}
	pass_output(file, output);
	fclose(output);
	if (waitpid(child, &status, 0) != child)
		complain(file, "is nobody's child:", (long)child);
	else if (WIFSIGNALED(status))
		complain(file, "was ended by signal", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0 && failed == failed_before)
		complain(file, "failed with exit code", WEXITSTATUS(status));
}

#ifdef __SANITIZE_ADDRESS__
/*
 * In place of AddressSanitizer's: at the end of each process it makes the memory around all globals usable again. A test
 * forks hundreds of times, and that takes longer than the test. A library that is unloaded needs it.
 */
void __asan_unregister_globals(void *globals, long how_many);
void __asan_unregister_globals(void *globals, long how_many)
{
	extern char __executable_start, _end;
	void (*original)(void *, long);

	if ((char *)globals >= &__executable_start && (char *)globals < &_end)
		return;
	original = (void (*)(void *, long))dlsym(RTLD_NEXT, "__asan_unregister_globals");
	original(globals, how_many);
}
#endif

int main(int argc, char **argv)
{
	const struct unit_file *file;

	if (unit_program != NULL && getenv("UNIT_PROGRAM") != NULL)
		return unit_program(argc, argv);
	if (argc > 1 && strcmp(argv[1], "-l") == 0) {
		for (file = unit_files; file->name != NULL; file++)
			puts(file->name);
		return 0;
	}
	if (argc > 1) {
		for (file = unit_files; file->name != NULL; file++)
			if (strcmp(file->name, argv[1]) == 0)
				return file_main(file, argc - 1, argv + 1);
		fprintf(stderr, "%s: no file %s here: -l lists them\n", argv[0], argv[1]);
		return 2;
	}
	for (file = unit_files; file->name != NULL; file++)
		run_file(file);
	printf("1..%lu\n", count);
	return failed > 0 ? 1 : 0;
}
