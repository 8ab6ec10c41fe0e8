/* What is to be measured: the command line, understood. Pure; no CUDA. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "bench/bench_stats.h"

enum { PLAN_FUNCTIONS = 16, PLAN_SIZES = 128, PLAN_TYPES = 16, PLAN_MODES = 4 };

enum plan_place { PLAN_OUT_OF_PLACE = 1, PLAN_IN_PLACE = 2, PLAN_BOTH_PLACES = 3 };
/* What keeps ranks together before each measured call (blocking) or block: nothing, the hub, or an
 * AllReduce of one element on the same stream right before the first event. */
enum plan_align { PLAN_ALIGN_NONE = 0, PLAN_ALIGN_HUB = 1, PLAN_ALIGN_NCCL = 2 };

struct bench_plan {
	uint8_t functions[PLAN_FUNCTIONS];
	size_t function_count;
	uint64_t sizes[PLAN_SIZES]; /* bytes of the message as nccl-tests counts them */
	size_t size_count;
	uint8_t datatypes[PLAN_TYPES];
	size_t datatype_count;
	uint8_t redops[BENCH_REDOPS];
	size_t redop_count;
	uint8_t modes[PLAN_MODES];
	size_t mode_count;
	unsigned int places; /* enum plan_place */
	int32_t root;
	uint32_t calls; /* measured calls; 0: by `seconds` */
	double seconds; /* time budget of one cell, warm-up apart; 0: by `calls`. Both: what ends first */
	uint32_t least_calls; /* with a time budget: never fewer */
	uint32_t warmups;
	uint32_t graph_calls; /* calls captured into one graph */
	enum plan_align align;
	int patience_s; /* a call that is not over by then is a hang, and ends the job; 0: no limit */
	bool is_checked;
	enum bench_over over;
	char nccl_path[4096]; /* "": as the loader finds it */
};

/* AllReduce, 1 KiB to 128 MiB by 4, float32, sum, both places, blocking, 20 calls after 5. */
void plan_init(struct bench_plan *plan);

/* "allreduce,allgather" or "all"; nccl-tests' and NCCL's spellings, any case. 0, or -1 and *problem. */
int plan_functions(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_datatypes(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_redops(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_modes(struct bench_plan *plan, const char *text, char *problem, size_t size);
/* How many cells it has, of which some may turn out not to be possible. */
size_t plan_cells(const struct bench_plan *plan);

/* "1K,32K,1M", "1K..1G" (by 2), "1K..1G*4" (by a factor), "1M..8M+1M" (by steps). K, M, G are 1024. */
int plan_sizes(struct bench_plan *plan, const char *text, char *problem, size_t size);

#endif
