/* Reading what the PATHs of a command line lead to. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "recording/recording.h"

/* For the help of every command that reads. */
#define CLI_INPUT_ABOUT                                                                            \
	"PATH is a trace file, a region, a log of NCCL Inspector or CoMMA, a bundle, a directory " \
	"of these, or @PID for a process of this machine."
#define CLI_INPUT_NONE " Without one, the regions of this machine are read."

#define CLI_INPUT_NOTHING                                                                        \
	"nothing is recorded on this machine; start a job with 'ringside run -- CMD', or say a " \
	"PATH where recordings are"

struct cli_input {
	struct recording recording;
	const char **paths;
	size_t path_count;
};

void cli_input_init(struct cli_input *input);
void cli_input_release(struct cli_input *input);

/* One more PATH, borrowed. */
void cli_input_path(struct cli_input *input, const char *path);

/* Read all of it; without a path, this machine's regions. 0, or the exit code after an error was
 * told. Trouble with single files is in input->recording.troubles. */
int cli_input_read(struct cli_input *input, unsigned int flags);

/* Tell trouble on stderr, a line each, the first few of each kind. True when there is some that an
 * exit code should say. Files that end too early are no trouble where has_cuts is false: commands
 * that say of each process whether it ended need no further word. */
bool cli_input_complain(const struct cli_input *input, bool has_cuts);

/* Nobody records on this machine, and no PATH was given: what to do. The exit code for trouble. */
int cli_input_nothing(void);

/* Is it worth an exit code of 1? A file in a directory that is neither trace nor region is not. */
bool cli_input_is_trouble(const struct cli_input *input, const struct recording_trouble *trouble);

/* How many operations are to be expected: for progress. */
uint64_t cli_input_operations(const struct recording *recording);

#endif
