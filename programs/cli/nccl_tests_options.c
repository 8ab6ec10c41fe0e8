#include "programs/cli/nccl_tests_options.h"

#include <stddef.h>

#define SIZES "nccl-tests' -b, -e, -i and -f are one option here: -s 1K..1G*2, or 1M..8M+1M"

const struct cli_option nccl_tests_options[] = {
	{ 'b', "minbytes", NULL, SIZES },
	{ 'e', "maxbytes", NULL, SIZES },
	{ 'i', "stepbytes", NULL, SIZES },
	{ CLI_LONG_ONLY, "stepfactor", NULL, SIZES },
	{ 'g', "ngpus", NULL,
	  "a rank for each GPU is started anyway; --ranks N for another number" },
	{ CLI_LONG_ONLY, "nthreads", NULL, "a rank is a process here; --ranks N says how many" },
	{ 'd', "datatype", NULL, "datatypes are -t, --types" },
	{ CLI_LONG_ONLY, "op", NULL, "reductions are -r, --redops" },
	{ CLI_LONG_ONLY, "iters", NULL, "calls are -n, --calls" },
	{ 'w', "warmup_iters", NULL, "warm-up calls are --warmup" },
	{ 'm', "agg_iters", NULL, "calls without a wait between them are --modes back-to-back" },
	{ 'G', "cudagraph", NULL, "CUDA graphs are --modes graph, with --graph-calls N" },
	{ 'z', "blocking", NULL, "waiting for each call is --modes blocking, as it is by itself" },
	{ 'c', "check", NULL, "results are checked anyway; --no-check leaves it" },
	{ 'a', "average", NULL, "whose time a call has is --over mean, min or max" },
	{ 'T', "timeout", NULL, "the limit for a call that hangs is --stuck" },
	{ 'J', "output_file", NULL, "files are -o: .json, .parquet, others are text" },
	CLI_OPTION_END,
};
