#include "capture/inspector_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "capture/inspector_place.h"
#include "capture/recorder.h"
#include "inspector/inspector_line.h"
#include "inspector/inspector_prom.h"
#include "op/op_bus.h"
#include "op/op_names.h"
#include "op/op_time.h"

/* Compared and hashed as bytes: no gaps. */
struct series_key {
	char comm_name[sizeof(((struct comm_info *)0)->name)];
	int32_t nnodes, nranks;
	uint8_t gpu, function, size, algorithm, protocol;
	uint8_t zero[3];
};

struct inspector_series_entry {
	struct series_key key;
	uint64_t count; /* 0: free */
	double bus_bytes;
	uint64_t ns;
};

enum { SERIES_EASY = INSPECTOR_SERIES / 4 * 3 }; /* from here on new ones become "other" */

bool inspector_series_init(struct inspector_series *series, const char *dir, const char *job,
			   const char *node)
{
	*series = (struct inspector_series){ .job = job, .node = node };
	series->entries = calloc(INSPECTOR_SERIES, sizeof(*series->entries));
	series->gpus = calloc(INSPECTOR_GPUS, sizeof(*series->gpus));
	series->chunk = malloc(INSPECTOR_CHUNK_BYTES);
	return series->entries != NULL && series->gpus != NULL && series->chunk != NULL &&
	       text_copy(series->dir, sizeof(series->dir), dir);
}

/* INSPECTOR_GPUS: there is no room for it. */
static uint32_t gpu_of(struct inspector_series *series, const struct comm_info *comm)
{
	struct inspector_gpu *gpu;
	uint32_t i;

	for (i = 0; i < series->gpu_count; i++)
		if (strcmp(series->gpus[i].uuid, comm->gpu_uuid) == 0)
			return i;
	if (i == INSPECTOR_GPUS)
		return i;
	gpu = &series->gpus[series->gpu_count++];
	*gpu = (struct inspector_gpu){ .gpu = comm->gpu, .lock = -1, .fd = -1 };
	text_copy(gpu->uuid, sizeof(gpu->uuid), comm->gpu_uuid);
	return i;
}

void inspector_series_see_gpu(struct inspector_series *series, const struct comm_info *comm)
{
	gpu_of(series, comm);
}

static struct inspector_series_entry *find_entry(struct inspector_series *series,
						 const struct series_key *key)
{
	uint32_t at = (uint32_t)hash_bytes(key, sizeof(*key)) & (INSPECTOR_SERIES - 1);

	while (series->entries[at].count > 0 &&
	       memcmp(&series->entries[at].key, key, sizeof(*key)) != 0)
		at = (at + 1) & (INSPECTOR_SERIES - 1);
	return &series->entries[at];
}

static struct series_key make_key(uint32_t gpu, const struct comm_info *comm,
				  const struct op_record *op)
{
	struct series_key key;

	memset(&key, 0, sizeof(key));
	text_copy(key.comm_name, sizeof(key.comm_name), comm->name);
	key.nnodes = comm->nnodes;
	key.nranks = comm->nranks;
	key.gpu = (uint8_t)gpu;
	key.function = op->function;
	key.size = (uint8_t)inspector_size_class(inspector_rank_bytes(op, comm));
	if (!inspector_is_p2p(op->function)) {
		key.algorithm = op->algorithm;
		key.protocol = op->protocol;
	}
	return key;
}

/* What is left of a key when there is little room: few can be different. */
static void fold_key(struct series_key *key)
{
	memset(key->comm_name, 0, sizeof(key->comm_name));
	text_copy(key->comm_name, sizeof(key->comm_name), "other");
	key->nranks = 0;
	key->nnodes = key->nnodes == 1 ? 1 : 0;
	key->algorithm = key->protocol = 0;
}

bool inspector_series_add(struct inspector_series *series, const struct comm_info *comm,
			  const struct op_record *op)
{
	uint32_t gpu = gpu_of(series, comm);
	struct series_key key = make_key(gpu, comm, op);
	struct inspector_series_entry *entry;

	if (gpu == INSPECTOR_GPUS)
		return false;
	entry = find_entry(series, &key);
	if (entry->count == 0 && series->used >= SERIES_EASY) {
		fold_key(&key);
		entry = find_entry(series, &key);
		/* One stays free, or a search would not end. */
		if (entry->count == 0 && series->used >= INSPECTOR_SERIES - 1)
			return false;
	}
	if (entry->count == 0) {
		entry->key = key;
		series->used++;
	}
	entry->count++;
	entry->bus_bytes += (double)op->bytes * op_bus_factor(op->function, comm->nranks);
	entry->ns += op_duration_ns(op);
	series->count++;
	return true;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* As NCCL says it, also where only NCCL knows the name. */
static const char *name_of(enum op_name_table table, uint8_t number)
{
	unsigned int place = (unsigned int)number - OP_NAME_INTERNED;

	if (number < OP_NAME_INTERNED)
		return op_name_of_nccl(table, number);
	return place < OP_NAMES_INTERNED_MAX ? recorder.region.names[place].text : NULL;
}

static struct inspector_labels labels_of(const struct inspector_series *series,
					 const struct series_key *key)
{
	const struct inspector_gpu *gpu = &series->gpus[key->gpu];

	return (struct inspector_labels){
		.job = series->job,
		.node = series->node,
		.gpu_uuid = gpu->uuid,
		.gpu = gpu->gpu,
		.process = gpu->process,
		.comm_name = key->comm_name,
		.nnodes = key->nnodes,
		.nranks = key->nranks,
		.function = op_function_name(key->function),
		.size = key->size,
		.algorithm = name_of(OP_NAMES_ALGORITHM, key->algorithm),
		.protocol = name_of(OP_NAMES_PROTOCOL, key->protocol),
	};
}

static double value_of(const struct inspector_series_entry *entry, enum inspector_metric metric)
{
	if (metric == INSPECTOR_EXEC_TIME || metric == INSPECTOR_P2P_EXEC_TIME)
		return (double)entry->ns / (double)entry->count / 1e3;
	return entry->bus_bytes / (double)entry->ns;
}

static void add_metric(struct inspector_series *series, uint32_t gpu, enum inspector_metric metric)
{
	bool is_p2p = metric == INSPECTOR_P2P_BUS_BANDWIDTH || metric == INSPECTOR_P2P_EXEC_TIME;
	char text[INSPECTOR_SAMPLE_BYTES];

	inspector_gpu_add(&series->gpus[gpu], text, inspector_metric_head(text, metric));
	for (uint32_t i = 0; i < INSPECTOR_SERIES; i++) {
		const struct inspector_series_entry *entry = &series->entries[i];
		struct inspector_labels labels;

		if (entry->count == 0 || entry->key.gpu != gpu ||
		    inspector_is_p2p(entry->key.function) != is_p2p)
			continue;
		labels = labels_of(series, &entry->key);
		inspector_gpu_add(
			&series->gpus[gpu], text,
			inspector_metric_sample(text, metric, &labels, value_of(entry, metric)));
	}
}

static enum status publish_gpu(struct inspector_series *series, uint32_t which)
{
	struct inspector_gpu *gpu = &series->gpus[which];

	if (gpu->process == 0 && inspector_gpu_claim(gpu, series->dir) != OK)
		return ERR_SYSTEM;
	inspector_gpu_begin(gpu, series->chunk);
	for (int metric = 0; metric < INSPECTOR_METRICS; metric++)
		add_metric(series, which, (enum inspector_metric)metric);
	return inspector_gpu_publish(gpu);
}

static uint64_t operations_of(const struct inspector_series *series, uint32_t gpu)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < INSPECTOR_SERIES; i++)
		if (series->entries[i].key.gpu == gpu)
			count += series->entries[i].count;
	return count;
}

uint64_t inspector_series_publish(struct inspector_series *series, enum status *status)
{
	uint64_t published = 0;
	int error = 0;

	*status = OK;
	inspector_make_directories(series->dir);
	if (!series->is_clean)
		inspector_gpu_clean(series->dir);
	series->is_clean = true;
	for (uint32_t i = 0; i < series->gpu_count; i++) {
		if (publish_gpu(series, i) == OK) {
			published += operations_of(series, i);
		} else {
			*status = ERR_SYSTEM;
			error = errno;
		}
	}
	memset(series->entries, 0, INSPECTOR_SERIES * sizeof(*series->entries));
	series->used = 0;
	series->count = 0;
	errno = error;
	return published;
}

void inspector_series_leave(struct inspector_series *series)
{
	for (uint32_t i = 0; i < series->gpu_count; i++)
		inspector_gpu_leave(&series->gpus[i]);
	free(series->entries);
	free(series->gpus);
	free(series->chunk);
	*series = (struct inspector_series){ .used = 0 };
}
