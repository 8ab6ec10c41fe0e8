/* For tests of the simulator: runs a job offline into its own directory and reads everything back. */
#ifndef SIM_FILES_H
#define SIM_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/op.h"
#include "format/trace_read.h"
#include "sim/sim_engine.h"
#include "sim/sim_job.h"

/* The contents of one file. */
struct sim_read {
	struct op_record *ops;
	size_t count, room;
	struct op_detail *details;
	size_t detail_count, detail_room;
	struct comm_info comms[SIM_ROLES + 1]; /* by id */
	struct trace_counts counts;	       /* the last */
	struct comm_counts comm_counts[SIM_ROLES + 1];
	bool is_closed;
	uint64_t problems; /* damaged blocks, invalid records */
	char info[4096];
};

struct sim_run {
	char directory[64];
	struct sim_job job;
	struct sim_result result;
	struct sim_read *reads; /* by rank */
	uint64_t hash;		/* of all bytes of all files, by rank */
};

static inline void sim_read_block(struct sim_read *read, const struct trace_item *item)
{
	struct trace_records records;
	struct trace_comm_counts counts;
	struct comm_info comm;

	if (item->type == TRACE_PROCESS) {
		snprintf(read->info, sizeof(read->info), "%.*s", (int)item->payload_bytes,
			 (const char *)item->payload);
		return;
	}
	if (trace_records_init(&records, item) != OK)
		read->problems++;
	if (item->type == TRACE_COMM)
		while (trace_records_comm(&records, &comm) == OK)
			read->comms[comm.id] = comm;
	if (item->type == TRACE_COUNTS || item->type == TRACE_CLOSE) {
		read->problems += trace_records_counts(&records, &read->counts) != OK;
		while (trace_records_comm_counts(&records, &counts) == OK)
			read->comm_counts[counts.id] = counts.counts;
	}
	for (uint32_t i = 0; i < item->records && item->type == TRACE_OPS; i++) {
		if (read->count == read->room) {
			read->room = read->room ? 2 * read->room : 256;
			read->ops = realloc(read->ops, read->room * sizeof(*read->ops));
		}
		read->problems += trace_records_op(&records, &read->ops[read->count]) != OK ||
				  op_check(&read->ops[read->count]) != NULL;
		read->count++;
	}
	for (uint32_t i = 0; i < item->records && item->type == TRACE_DETAILS; i++) {
		if (read->detail_count == read->detail_room) {
			read->detail_room = read->detail_room ? 2 * read->detail_room : 256;
			read->details =
				realloc(read->details, read->detail_room * sizeof(*read->details));
		}
		read->problems +=
			trace_records_detail(&records, &read->details[read->detail_count]) != OK ||
			op_check_detail(&read->details[read->detail_count]) != NULL;
		read->detail_count++;
	}
}

static inline uint64_t sim_read_hash(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint64_t hash = 0;
	char *bytes;

	if (fd == -1 || fstat(fd, &st) == -1)
		return 0;
	bytes = malloc((size_t)st.st_size + 1);
	if (bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size)
		hash = hash_bytes(bytes, (size_t)st.st_size);
	free(bytes);
	close(fd);
	return hash;
}

static inline void sim_read_file(struct sim_read *read, const char *path)
{
	struct trace_reader reader;
	struct trace_item item;

	if (trace_open(&reader, path, NULL) != OK) {
		read->problems++;
		return;
	}
	while (trace_next(&reader, &item) != TRACE_END) {
		if (item.found == TRACE_BLOCK)
			sim_read_block(read, &item);
		else if (item.found != TRACE_CUT || item.bytes != 0)
			read->problems++;
	}
	read->is_closed = reader.is_closed;
	trace_close(&reader);
}

static inline void sim_run_read(struct sim_run *run)
{
	struct dirent **names;
	int count = scandir(run->directory, &names, NULL, alphasort);
	char path[512];
	int rank;

	run->reads = calloc((size_t)run->job.world, sizeof(*run->reads));
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", run->directory, names[i]->d_name);
		if (sscanf(names[i]->d_name, "r%d-", &rank) == 1 && rank < run->job.world) {
			sim_read_file(&run->reads[rank], path);
			run->hash = hash_word(
				run->hash, hash_bytes(names[i]->d_name, strlen(names[i]->d_name)));
			run->hash = hash_word(run->hash, sim_read_hash(path));
		}
		if (names[i]->d_name[0] != '.')
			unlink(path);
		free(names[i]);
	}
	free(names);
	rmdir(run->directory);
}

/* A job with these options; faults are strings, terminated by NULL. False: something failed. */
static inline bool sim_run_start(struct sim_run *run, struct sim_options *options,
				 const char *const *faults)
{
	char why[256], failed[512];

	*run = (struct sim_run){ 0 };
	snprintf(run->directory, sizeof(run->directory), "/tmp/sim-test-XXXXXX");
	for (; faults && *faults; faults++)
		if (sim_fault_parse(&options->faults[options->fault_count++], *faults, why,
				    sizeof(why)) != OK)
			return false;
	if (sim_options_finish(options, why, sizeof(why)) != OK ||
	    mkdtemp(run->directory) == NULL || sim_job_init(&run->job, options) != OK ||
	    sim_result_init(&run->result, &run->job) != OK)
		return false;
	if (sim_offline_run(&run->job, run->directory, &run->result, failed, sizeof(failed)) != OK)
		return false;
	sim_run_read(run);
	return true;
}

static inline void sim_run_end(struct sim_run *run)
{
	for (int rank = 0; run->reads && rank < run->job.world; rank++) {
		free(run->reads[rank].ops);
		free(run->reads[rank].details);
	}
	free(run->reads);
	sim_result_release(&run->result);
	sim_job_release(&run->job);
}

#endif
