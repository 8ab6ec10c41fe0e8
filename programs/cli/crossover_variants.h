/*
 * What `ringside bench crossover` makes NCCL take, one after the other: each algorithm with each protocol,
 * and NCCL's own choice among them. Names as NCCL_ALGO and NCCL_PROTO have them, any case.
 */
#ifndef CROSSOVER_VARIANTS_H
#define CROSSOVER_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CROSSOVER_ALGORITHMS = 8, CROSSOVER_PROTOCOLS = 4, CROSSOVER_VARIANTS = 33 };

struct crossover_variant {
	uint8_t algorithm; /* enum op_algorithm; 0, and protocol 0: as NCCL chooses */
	uint8_t protocol;  /* enum op_protocol */
	uint32_t refused;  /* bit f: NCCL does not do function f so, here */
};

struct crossover_variants {
	uint8_t algorithms[CROSSOVER_ALGORITHMS];
	size_t algorithm_count;
	uint8_t protocols[CROSSOVER_PROTOCOLS];
	size_t protocol_count;
	struct crossover_variant list[CROSSOVER_VARIANTS];
	size_t count;
};

/* Ring and Tree with LL, LL128 and Simple. */
void crossover_variants_init(struct crossover_variants *variants);
/* "ring,tree,nvls", "all". 0, or -1 and *problem says in one line what is wrong. */
int crossover_algorithms(struct crossover_variants *variants, const char *text, char *problem,
			 size_t size);
/* "ll,simple", "all". */
int crossover_protocols(struct crossover_variants *variants, const char *text, char *problem,
			size_t size);
/* Fill the list: NCCL's choice first, then every pair that NCCL knows. NVLS, CollNet and PAT have Simple
 * alone; a pair that cannot be is not in the list. */
void crossover_variants_list(struct crossover_variants *variants);

/* Does NCCL have that at all, wherever it runs? Trees only reduce and spread at once, PAT only does one
 * of the two. */
bool crossover_is_known(uint8_t function, const struct crossover_variant *variant);

/* "Ring", as NCCL_ALGO takes it; NULL for 0. */
const char *crossover_algorithm_setting(uint8_t algorithm);
const char *crossover_protocol_setting(uint8_t protocol);

#endif
