/*
 * A unit test program has the tests of one directory, one per file, and a table of them that make
 * generates (scripts/unit-table). Each file has its own main(), which is renamed when it is
 * compiled.
 */
#ifndef RUNNER_H
#define RUNNER_H

struct unit_file {
	const char *name; /* of the file without .c; NULL ends the table */
	/* One of the two. */
	int (*run)(void);
	int (*run_with_arguments)(int argc, char **argv);
};

extern const struct unit_file unit_files[];

/*
 * The program that is tested, if a file has this function. A child with UNIT_PROGRAM in its environment is that program:
 * so what runs itself again through /proc/self/exe does so in a test, too.
 */
int unit_program(int argc, char **argv) __attribute__((weak));

#endif
