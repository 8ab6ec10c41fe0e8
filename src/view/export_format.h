/*
 * Formats of `ringside export`. The caller gives process after process and batch after batch; each
 * writes into a sink. Those of this room are tables: rows of the columns of export_columns.h.
 *
 *	writer = format->begin(&sink, columns);
 *	for each process {
 *		format->process(writer, process);
 *		for each batch
 *			format->batch(writer, batch);
 *	}
 *	format->fact(writer, "ringside.lost", "0");
 *	status = format->end(writer);
 */
#ifndef EXPORT_FORMAT_H
#define EXPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op.h"
#include "common/status.h"
#include "recording/recording.h"
#include "view/sink.h"

struct export_format {
	const char *name;
	const char *suffix; /* of its files, with the dot */
	bool is_binary;	    /* not for a terminal */
	/* NULL: rows of columns; directories are partitioned by job, host and rank. Else directories
	 * have a file per process of this name. */
	void (*file_name)(char *name, size_t size, const struct recording_process *process);
	/* Bit c: with column c. NULL when there is no memory. */
	void *(*begin)(struct sink *sink, uint64_t columns);
	/* Borrowed until the end. */
	void (*process)(void *writer, const struct recording_process *process);
	/* All words of export_words() must be there. Anything but OK: no more is wanted. */
	enum status (*batch)(void *writer, const struct op_batch *batch);
	/* About the whole file; lost where the format has no place for it. */
	void (*fact)(void *writer, const char *key, const char *value);
	/* Writes what is left and frees the writer. The sink is not flushed. */
	enum status (*end)(void *writer);
};

extern const struct export_format export_parquet;
extern const struct export_format export_csv;
extern const struct export_format export_jsonl;

#endif
