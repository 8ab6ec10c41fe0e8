/*
 * Where a sub-command of the benchmark writes: standard output, and files beside it, whose names end in what is
 * in them. Rank 0's alone.
 */
#ifndef BENCH_OUTPUTS_H
#define BENCH_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmds/cli.h"
#include "common/status.h"
#include "output/sink.h"
#include "programs/cli/bench_command.h"

enum { BENCH_OUTPUTS_MOST = 16 };

enum bench_output_kind { BENCH_OUTPUT_TEXT = 0, BENCH_OUTPUT_JSON = 1, BENCH_OUTPUT_HTML = 2 };

struct bench_outputs {
	const char *paths[BENCH_OUTPUTS_MOST];
	enum bench_output_kind kinds[BENCH_OUTPUTS_MOST];
	size_t count;
	bool is_json; /* on standard output, instead of text */
};

/* "ringside bench health --ranks 4": the command as it was given, argv[0] being its last word. */
void bench_outputs_command(char *to, size_t size, int argc, char **argv);

/* The option's row. Without `html` a page cannot be had. */
#define BENCH_OUTPUTS_OPTION(ends)                                      \
	{                                                               \
		'o', "output", "FILE",                                  \
			"write this file too: " ends                    \
			", others are text; may be given several times" \
	}

/* 0, or the exit code after an error was told. */
int bench_outputs_take(struct bench_outputs *files, const struct cli_page *page, const char *path,
		       bool has_html);
/* The same, whatever its name ends in. */
int bench_outputs_add(struct bench_outputs *files, const struct cli_page *page, const char *path,
		      enum bench_output_kind kind);

/* Could all be written? Before anything is measured. 0, or CLI_EXIT_TROUBLE after it was told. */
int bench_outputs_check(const struct bench_outputs *files);

/* After bench_outputs_check() failed on rank 0: the others end, too, without a word. Gives back CLI_EXIT_TROUBLE. */
int bench_team_quit(struct bench_team *team);

/* `width` is that of the terminal, 0 for files. */
typedef enum status (*bench_outputs_fn)(const void *context, enum bench_output_kind kind,
					unsigned int width, struct sink *sink);

/* Files, then standard output. Gives back exit_code, or CLI_EXIT_TROUBLE after something was told. */
int bench_outputs_write(const struct bench_outputs *files, bench_outputs_fn write,
			const void *context, int exit_code);

#endif
