/*
 * Passes kernels to a fake CUDA: checks what is launched with which arguments and, if the toolkit's assembler is
 * installed, that it accepts the text. Their results are checked on a GPU (make check-gpu).
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_gpu.h"
#include "tests/tap.h"

static char texts[2][16384];
static int loads;
static int refuse; /* number of loads that fail */
static int unloads;
static struct {
	uint64_t buffer, count, first, second, counter;
	uint32_t element_bytes, period, phase;
	unsigned int blocks, threads;
	int launches;
} seen;

static struct CUfunc_st *const fill_function = (struct CUfunc_st *)&seen.buffer;
static struct CUfunc_st *const check_function = (struct CUfunc_st *)&seen.count;

static cuda_result load(struct CUmod_st **module, const void *image)
{
	snprintf(texts[loads % 2], sizeof(texts[0]), "%s", (const char *)image);
	if (loads++ < refuse)
		return 218;
	*module = (struct CUmod_st *)texts;
	return 0;
}

static cuda_result unload(struct CUmod_st *module)
{
	unloads += module == (struct CUmod_st *)texts;
	return 0;
}

static cuda_result find(struct CUfunc_st **function, struct CUmod_st *module, const char *name)
{
	(void)module;
	*function = strcmp(name, "ringside_fill") == 0 ? fill_function : check_function;
	return strncmp(name, "ringside_", 9) == 0 ? 0 : 500;
}

static cuda_result launch(struct CUfunc_st *function, unsigned int x, unsigned int y,
			  unsigned int z, unsigned int threads, unsigned int threads_y,
			  unsigned int threads_z, unsigned int shared, struct CUstream_st *stream,
			  void **with, void **extra)
{
	bool is_check = function == check_function;

	(void)stream;
	seen.launches++;
	seen.blocks = x;
	seen.threads = threads;
	seen.buffer = *(uint64_t *)with[0];
	seen.count = *(uint64_t *)with[1];
	seen.element_bytes = *(uint32_t *)with[2];
	seen.first = *(uint64_t *)with[3];
	seen.second = is_check ? *(uint64_t *)with[4] : 0;
	seen.period = *(uint32_t *)with[is_check ? 5 : 4];
	seen.phase = *(uint32_t *)with[is_check ? 6 : 5];
	seen.counter = is_check ? *(uint64_t *)with[7] : 0;
	return y == 1 && z == 1 && threads_y == 1 && threads_z == 1 && shared == 0 && !extra ? 0
											     : 1;
}

static void test_launches(const struct bench_kernels *kernels, const struct cuda *cuda)
{
	struct kernel_span span = {
		.buffer = 0x7000, .count = 1000, .element_bytes = 2, .period = 8191, .phase = 17
	};

	EXPECT(kernels_fill(kernels, cuda, NULL, &span, 0x100) == 0);
	EXPECT(seen.buffer == 0x7000 && seen.count == 1000 && seen.element_bytes == 2);
	EXPECT(seen.first == 0x100 && seen.period == 8191 && seen.phase == 17);
	EXPECT_EQUAL(seen.blocks * seen.threads, 1024);
	span.count = UINT64_C(1) << 40;
	EXPECT(kernels_check(kernels, cuda, NULL, &span, 0x200, 0x300, 0x400) == 0);
	EXPECT(seen.first == 0x200 && seen.second == 0x300 && seen.counter == 0x400);
	EXPECT(seen.count == UINT64_C(1) << 40 && seen.blocks <= 65535);
	span.blocks = 3;
	EXPECT(kernels_fill(kernels, cuda, NULL, &span, 0x100) == 0 && seen.blocks == 3);
	span.count = 0;
	seen.launches = 0;
	EXPECT(kernels_fill(kernels, cuda, NULL, &span, 0x100) == 0);
	EXPECT(kernels_check(kernels, cuda, NULL, &span, 1, 2, 3) == 0 && seen.launches == 0);
}

static const char *assembler(void)
{
	static const char *const places[] = { "/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static int assemble(const char *text, const char *target)
{
	char path[] = "/tmp/ringside-test-XXXXXX", command[512];
	int fd = mkstemp(path), code = -1;
	ssize_t length = (ssize_t)strlen(text);

	if (fd == -1)
		return -1;
	snprintf(command, sizeof(command), "%s -arch=%s -o /dev/null %s >/dev/null 2>&1",
		 assembler(), target, path);
	if (write(fd, text, (size_t)length) == length)
		code = system(command);
	close(fd);
	unlink(path);
	return code;
}

int main(void)
{
	struct cuda cuda = { .module_load = load,
			     .module_unload = unload,
			     .module_function = find,
			     .launch = launch };
	struct bench_kernels kernels;
	const char *what = "";

	EXPECT(kernels_load(&kernels, &cuda, &what) == 0 && loads == 1);
	test_launches(&kernels, &cuda);
	kernels_unload(&kernels, &cuda);
	EXPECT(unloads == 1 && kernels.module == NULL);
	/* A driver that no longer supports such an old GPU gets another header. */
	loads = 0;
	refuse = 1;
	EXPECT(kernels_load(&kernels, &cuda, &what) == 0 && loads == 2);
	EXPECT(strcmp(texts[0], texts[1]) != 0);
	refuse = 100;
	EXPECT(kernels_load(&kernels, &cuda, &what) == 218);
	EXPECT(strcmp(what, "cuModuleLoadData") == 0);
	if (assembler() == NULL) {
		printf("# no ptxas found: the kernels' text is not assembled\n");
		return tap_done();
	}
	EXPECT(assemble(texts[0], "sm_90") == 0);
	EXPECT(assemble(texts[1], "sm_90") == 0);
	EXPECT_THAT("a broken text is rejected",
		    assemble(".version 6.0\n.target sm_50\nnonsense", "sm_90") != 0);
	return tap_done();
}
