#include "programs/bench/cuda_open.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define CUDA_LIBRARY "libcuda.so.1"

/* A function's address into a pointer of its type: C has no cast for that. */
static int take(void *library, const char *symbol, void *pointer)
{
	void *address = dlsym(library, symbol);

	memcpy(pointer, &address, sizeof(address));
	return address ? 0 : -1;
}

static const char *take_all(struct cuda *cuda)
{
#define TAKE(member, symbol, parameters)                     \
	if (take(cuda->library, #symbol, &cuda->member) < 0) \
		return #symbol;
	CUDA_FUNCTIONS(TAKE)
#undef TAKE
	return NULL;
}

static int library_open(struct cuda *cuda, const char *name, char *problem, size_t problem_size)
{
	const char *missing, *why;

	dlerror();
	cuda->library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (cuda->library == NULL) {
		why = dlerror();
		text_format(problem, problem_size,
			    "CUDA's driver %s is not here (%s): bench needs a machine with an "
			    "NVIDIA driver",
			    name, why ? why : "no reason given");
		return -1;
	}
	missing = take_all(cuda);
	if (missing == NULL)
		return 0;
	text_format(problem, problem_size,
		    "CUDA's driver %s has no %s: bench needs a driver for CUDA 11.4 or newer (470)",
		    name, missing);
	dlclose(cuda->library);
	cuda->library = NULL;
	return -1;
}

int cuda_open(struct cuda *cuda, char *problem, size_t problem_size)
{
	const char *name = getenv("RINGSIDE_CUDA");
	char why[256];
	cuda_result result;

	*cuda = (struct cuda){ 0 };
	if (name == NULL || name[0] == '\0')
		name = CUDA_LIBRARY;
	if (library_open(cuda, name, problem, problem_size) < 0)
		return -1;
	result = cuda->init(0);
	if (result == 0)
		return 0;
	text_format(problem, problem_size,
		    "%s: bench needs a GPU that this process may use (nvidia-smi tells)",
		    cuda_explain(cuda, result, "cuInit", why, sizeof(why)));
	return -1;
}

const char *cuda_explain(const struct cuda *cuda, cuda_result result, const char *what,
			 char *problem, size_t problem_size)
{
	const char *name = NULL, *text = NULL;

	if (cuda->error_name(result, &name) != 0)
		name = NULL;
	if (cuda->error_text(result, &text) != 0)
		text = NULL;
	if (name)
		text_format(problem, problem_size, "%s failed: %s (%s)", what, name,
			    text ? text : "no text");
	else
		text_format(problem, problem_size, "%s failed: CUDA error %d", what, result);
	return problem;
}
