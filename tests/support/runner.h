/*
 * A unit test program has the tests of a room, a file each, and a table of them that make writes
 * (scripts/unit-table). Each file keeps a main() of its own, which is renamed when it is compiled.
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

#endif
