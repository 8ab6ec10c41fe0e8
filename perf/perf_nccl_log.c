/*
 * How fast NCCL's logs are read, in MB per second of CPU time on one core, and relative to a plain pass over the
 * same lines (memchr for each end of line, memmem for the word), the minimum for any reader.
 *
 * "info": the output of NCCL_DEBUG=INFO while communicators are created, for 64 nodes with eight GPUs each. "coll":
 * a line or two per operation, as with NCCL_DEBUG_SUBSYS=COLL. "mixed": every other line is from another program.
 *
 * Usage: perf_nccl_log [MIB]; prints one "name value" line per result.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "import/nccl_log.h"
#include "tests/support/nccl_log_stage.h"

enum { ROUNDS = 5 };

static double seconds_now(void)
{
	return (double)clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static double walk(const struct log_stage *stage, uint64_t *found)
{
	const char *at = stage->text, *end = at + stage->used, *stop;
	double start = seconds_now();

	for (*found = 0; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1)
		*found += memmem(at, (size_t)(stop - at), "NCCL ", 5) != NULL;
	return seconds_now() - start;
}

static double read_it(const struct log_stage *stage)
{
	double start = seconds_now();
	struct nccl_log log;

	nccl_log_init(&log);
	if (nccl_log_add_memory(&log, "log", stage->text, stage->used) != OK ||
	    log.nccl_lines == 0 || log.kinds[NCCL_LOG_KIND_OTHER] > 0) {
		fprintf(stderr, "perf_nccl_log: cannot read the log\n");
		exit(1);
	}
	nccl_log_release(&log);
	return seconds_now() - start;
}

static void measure(const char *name, struct log_stage *stage)
{
	double best = 0, best_walk = 0;
	uint64_t found = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double seconds = read_it(stage), walked = walk(stage, &found);

		best = i == 0 || seconds < best ? seconds : best;
		best_walk = i == 0 || walked < best_walk ? walked : best_walk;
	}
	if (found == 0)
		exit(1); /* keeps the compiler from removing the pass */
	printf("%s_mb_per_s %.0f\n", name, (double)stage->used / 1e6 / best);
	printf("%s_walk_ratio %.2f\n", name, best / best_walk);
	log_stage_release(stage);
}

static void put_operation(struct log_stage *stage, uint64_t number)
{
	int rank = (int)(number % 8);

	log_put(stage,
		"node0:%d:%d [%d] NCCL INFO AllReduce: opCount %llx sendbuff 0x7f5a9e000000 "
		"recvbuff "
		"0x7f5a9e000000 count %llu datatype 7 op 0 root 0 comm 0x55be%04x [nranks=8] "
		"stream "
		"0x55d0c0a8f2a0\n",
		1000 + rank, 1000 + rank, rank, (unsigned long long)number / 8,
		(unsigned long long)(number * 7919 % 1000000), rank);
	log_put(stage,
		"node0:%d:%d [%d] NCCL INFO AllReduce: %llu Bytes -> Algo RING proto SIMPLE "
		"channel{Lo..Hi}={0..15}\n",
		1000 + rank, 1000 + rank, rank, (unsigned long long)1024 << number % 18);
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20;
	struct log_stage info = log_stage_new(64, 8), coll = log_stage_new(1, 8);
	struct log_stage mixed = log_stage_new(1, 8);

	if (bytes == 0 || bytes > (size_t)1 << 30) {
		fprintf(stderr, "perf_nccl_log: expected 1 to 1024 MiB\n");
		return 2;
	}
	while (info.used < bytes)
		log_stage_play(&info);
	measure("info", &info);
	log_stage_play(&coll);
	for (uint64_t i = 0; coll.used < bytes; i++)
		put_operation(&coll, i);
	measure("coll", &coll);
	log_stage_play(&mixed);
	for (uint64_t i = 0; mixed.used < bytes; i++) {
		put_operation(&mixed, i);
		log_put(&mixed,
			"[2026-01-01 10:00:00] iteration %llu loss 1.234 grad norm 0.5 tokens per "
			"second 123456 elapsed 1.2 s memory 65 GiB\n",
			(unsigned long long)i);
	}
	measure("mixed", &mixed);
	return 0;
}
