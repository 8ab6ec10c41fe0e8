/* What `ringside export` was asked for, and doing it. */
#ifndef EXPORT_JOB_H
#define EXPORT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/filter.h"
#include "programs/cli/cli_input.h"
#include "view/export_format.h"

struct export_job {
	const struct export_format *format;
	const char *path; /* of the file or the directory */
	bool is_directory;
	bool is_forced;		     /* a directory may have files */
	uint64_t file_rows;	     /* directory: about the most rows of one file */
	const struct filter *filter; /* which operations; NULL: all */
	/* What was written. */
	uint64_t rows;
	uint64_t timed;	    /* of rows: with a duration */
	uint64_t captured;  /* of rows: put into graphs, which takes no time */
	uint64_t read;	    /* operations, of which rows passed the filter */
	uint64_t processes; /* that could have some */
	uint64_t files;
	uint64_t bytes; /* 0 for standard output, pipes and devices */
	/* What is known of what is not in it, over all processes. */
	uint64_t issued;  /* by the recorders' counters */
	uint64_t lost;	  /* counted as lost while recording */
	uint64_t damaged; /* records that cannot be read */
	bool is_complete; /* every operation that was issued was read */
};

/* Rows to the file or the directory. An exit code; what failed was told, and then nothing is left
 * of the file or the directory. */
int export_job_run(struct export_job *job, const struct cli_input *input);

/* "job=77/host=node%3A1/rank=3/part-0.parquet"; false when it does not fit. */
bool export_partition_name(char *name, size_t size, const struct recording_process *process,
			   unsigned int part, const char *suffix);

#endif
