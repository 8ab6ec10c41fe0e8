/* What a Parquet file says about itself in its footer: schema, row groups, key-value metadata. */
#ifndef PARQUET_META_H
#define PARQUET_META_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "view/parquet.h"
#include "view/parquet_chunk.h"
#include "view/sink.h"

struct parquet_meta {
	const struct parquet_column *columns; /* borrowed */
	size_t column_count;
	struct sink groups; /* as the footer will have them */
	size_t group_count;
	struct sink pairs; /* the same */
	size_t pair_count;
};

void parquet_meta_init(struct parquet_meta *meta, const struct parquet_column *columns,
		       size_t count);
void parquet_meta_release(struct parquet_meta *meta);

/* A row group whose chunks are complete and will lie one after the other, from `offset` on. */
void parquet_meta_group(struct parquet_meta *meta, const struct parquet_chunk *chunks, size_t count,
			uint64_t rows, uint64_t offset);

void parquet_meta_pair(struct parquet_meta *meta, const char *key, const char *value);

/* ERR_NO_SPACE (memory). */
enum status parquet_meta_footer(struct parquet_meta *meta, struct sink *footer, uint64_t rows);

#endif
