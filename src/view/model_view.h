/* How long operations should take: answers of the cost model, with what they rest on. */
#ifndef MODEL_VIEW_H
#define MODEL_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "bench/cost_fit.h"
#include "bench/cost_model.h"
#include "output/json.h"
#include "output/sink.h"

/* One size: all algorithms, the fastest that NCCL has first. */
struct model_line {
	uint64_t bytes;
	struct cost_answer answers[COST_ALGORITHMS];
	size_t count;
	const char *why; /* count 0: why there is none */
};

/* All borrowed. */
struct model_view {
	uint8_t function;
	struct cost_shape shape;
	const char *nodes_from; /* how the number of nodes was come by; NULL: it was given */
	const struct cost_model *model;
	const struct cost_fit *fit; /* NULL: nothing was fitted */
	const char *const *files;   /* that it was fitted to */
	size_t file_count;
	const struct model_line *lines;
	size_t line_count;
};

/* A sentence, tables, and what to keep in mind. `width` as for tables. ERR_NO_SPACE. */
enum status model_text(struct sink *sink, const struct model_view *view, unsigned int width);

/* One object: docs/MODEL.md has its keys. */
void model_json(struct json *json, const struct model_view *view);

/* Groups that answers rest on, each once, in the order of the model; how many. */
size_t model_groups(const struct model_view *view, const struct cost_group **groups, size_t room);

/* "LL128"; "" for none. */
const char *model_protocol_name(uint8_t protocol);
const char *model_source_name(uint8_t source); /* "fit", "hand", "textbook"; "unknown" */

#endif
