/* The driver's command line. */
#include "driver.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <nccl.h>

static int usage(const char *problem)
{
	fprintf(stderr,
		"nccl_driver: %s\n"
		"usage: nccl_driver probe\n"
		"       nccl_driver run|serve --ranks N --out DIR [--one-node] [--kinds all] "
		"[--styles "
		"all]\n"
		"           [--sizes 1024,1048576] [--big BYTES] [--calls N] [--burst N]\n"
		"           [--captured N] [--replays N] [--gap-ms N] [--kill-at-end]\n"
		"       nccl_driver hang --ranks N --out DIR --scene NAME [--victim R] [--big "
		"BYTES]\n"
		"           [--one-node] [--preload FILE]\n"
		"       nccl_driver steady|windows --ranks N --out DIR --seconds N [--victim R] "
		"[--one-node]\n",
		problem);
	return 2;
}

static int sizes_parse(struct options *options, const char *text)
{
	options->size_count = 0;
	while (*text) {
		char *end;
		unsigned long long bytes = strtoull(text, &end, 10);

		if (end == text || bytes == 0 || options->size_count == SIZES_MAX)
			return -1;
		options->sizes[options->size_count++] = bytes;
		text = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return -1;
	}
	return options->size_count ? 0 : -1;
}

static int number_parse(int *number, const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 0 || value > 1000000)
		return -1;
	*number = (int)value;
	return 0;
}

static int option_take(struct options *options, int letter, const char *value)
{
	switch (letter) {
	case 'n':
		return number_parse(&options->ranks, value);
	case 'r':
		return number_parse(&options->rank, value);
	case 'o':
		options->out = value;
		break;
	case 'k':
		options->kinds = value;
		break;
	case 's':
		options->styles = value;
		break;
	case 'z':
		return sizes_parse(options, value);
	case 'B':
		options->big_bytes = strtoull(value, NULL, 10);
		break;
	case 'c':
		return number_parse(&options->calls, value);
	case 'b':
		return number_parse(&options->burst, value);
	case 'C':
		return number_parse(&options->captured, value);
	case 'R':
		return number_parse(&options->replays, value);
	case 'g':
		return number_parse(&options->gap_ms, value);
	case 'K':
		options->is_killed_at_end = 1;
		break;
	case 'N':
		options->is_one_node = 1;
		break;
	case 'S':
		return number_parse(&options->seconds, value);
	case 'x':
		options->scene = value;
		break;
	case 'v':
		return number_parse(&options->victim, value);
	case 'f':
		return number_parse(&options->fault_after, value);
	case 'p':
		options->preload = value;
		break;
	default:
		return -1;
	}
	return 0;
}

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "rank", required_argument, NULL, 'r' },
	{ "out", required_argument, NULL, 'o' },
	{ "kinds", required_argument, NULL, 'k' },
	{ "styles", required_argument, NULL, 's' },
	{ "sizes", required_argument, NULL, 'z' },
	{ "big", required_argument, NULL, 'B' },
	{ "calls", required_argument, NULL, 'c' },
	{ "burst", required_argument, NULL, 'b' },
	{ "captured", required_argument, NULL, 'C' },
	{ "replays", required_argument, NULL, 'R' },
	{ "gap-ms", required_argument, NULL, 'g' },
	{ "kill-at-end", no_argument, NULL, 'K' },
	{ "one-node", no_argument, NULL, 'N' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "scene", required_argument, NULL, 'x' },
	{ "victim", required_argument, NULL, 'v' },
	{ "fault-after", required_argument, NULL, 'f' },
	{ "preload", required_argument, NULL, 'p' },
	{ NULL, 0, NULL, 0 },
};

/*
 * Everything a reader of the results wants to know about the host, from the libraries themselves: the linked one
 * may not be the loaded one.
 */
static int probe(void)
{
	struct cudaDeviceProp device;
	int version = 0, driver = 0, runtime = 0;
	void *memory;

	must_nccl(ncclGetVersion(&version), "ncclGetVersion");
	must_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
	must_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
	must_cuda(cudaSetDevice(0), "cudaSetDevice");
	must_cuda(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
	must_cuda(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
	must_cuda(cudaMemset(memory, 0, 1 << 20), "cudaMemset");
	must_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	must_cuda(cudaFree(memory), "cudaFree");
	printf("{\"nccl\":%d,\"nccl_header\":%d,\"cuda_driver\":%d,\"cuda_runtime\":%d,"
	       "\"gpu\":\"%s\",\"multiprocessors\":%d,\"memory_bytes\":%zu}\n",
	       version, NCCL_VERSION_CODE, driver, runtime, device.name, device.multiProcessorCount,
	       device.totalGlobalMem);
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = {
		.kinds = "all",
		.styles = "all",
		.rank = -1,
		.sizes = { 1 << 10, 1 << 20 },
		.size_count = 2,
		.calls = 6,
		.burst = 200,
		.captured = 4,
		.replays = 6,
		.gap_ms = 25,
		.seconds = 5,
	};
	int letter;

	if (argc < 2)
		return usage("command missing");
	options.verb = argv[1];
	if (strcmp(options.verb, "probe") == 0)
		return probe();
	optind = 2;
	while ((letter = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (option_take(&options, letter, optarg) != 0)
			return usage("unrecognized option");
	if (options.ranks < 2 || options.ranks > 64 || !options.out)
		return usage("--ranks (2 to 64) and --out are required");
	if (options.rank >= options.ranks)
		return usage("--rank must be below --ranks");
	if (strcmp(options.verb, "run") == 0)
		return options.rank < 0 ? launch_run(&options, argc, argv) : cases_run(&options);
	if (strcmp(options.verb, "serve") == 0)
		return options.rank < 0 ? launch_serve(&options, argc, argv)
					: timing_serve(&options);
	if (strcmp(options.verb, "hang") == 0)
		return options.rank < 0 ? launch_hang(&options, argc, argv) : hang_run(&options);
	if (strcmp(options.verb, "steady") == 0)
		return options.rank < 0 ? launch_run(&options, argc, argv) : loop_steady(&options);
	if (strcmp(options.verb, "windows") == 0)
		return options.rank < 0 ? launch_run(&options, argc, argv) : loop_windows(&options);
	if (strcmp(options.verb, "edges") == 0)
		return options.rank < 0 ? launch_run(&options, argc, argv) : edges_run(&options);
	return usage("unknown command: expected probe, run, serve, hang, steady, windows or edges");
}
