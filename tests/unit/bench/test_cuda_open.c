#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_gpu.h"
#include "tests/tap.h"

static cuda_result name_of(cuda_result result, const char **name)
{
	*name = "CUDA_ERROR_OUT_OF_MEMORY";
	return result == 2 ? 0 : 1;
}

static cuda_result text_of(cuda_result result, const char **text)
{
	*text = "out of memory";
	return result == 2 ? 0 : 1;
}

static bool is_one_line(const char *text)
{
	return text[0] != '\0' && strchr(text, '\n') == NULL;
}

int main(void)
{
	struct cuda cuda;
	char problem[512] = "";

	setenv("RINGSIDE_CUDA", "/nowhere/libcuda.so.1", 1);
	EXPECT(cuda_open(&cuda, problem, sizeof(problem)) == -1);
	EXPECT(is_one_line(problem) && strstr(problem, "/nowhere/libcuda.so.1") != NULL);
	EXPECT(strstr(problem, "NVIDIA driver") != NULL);

	/* Another library: recognized by its missing first function. */
	setenv("RINGSIDE_CUDA", "libm.so.6", 1);
	EXPECT(cuda_open(&cuda, problem, sizeof(problem)) == -1);
	EXPECT(is_one_line(problem) && strstr(problem, "has no cuInit") != NULL);
	EXPECT(cuda.library == NULL);

	cuda = (struct cuda){ .error_name = name_of, .error_text = text_of };
	EXPECT(strcmp(cuda_explain(&cuda, 2, "cuMemAlloc_v2", problem, sizeof(problem)),
		      "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)") == 0);
	EXPECT(strcmp(cuda_explain(&cuda, 77777, "cuX", problem, sizeof(problem)),
		      "cuX failed: CUDA error 77777") == 0);
	return tap_done();
}
