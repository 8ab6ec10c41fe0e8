/* dladdr() is GNU's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "programs/bench/nccl_open.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_result.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

#define NCCL_LIBRARY "libnccl.so.2"
enum { NCCL_FLOAT8_SINCE = 22400, NCCL_BFLOAT16_SINCE = 21000 };

static int take(void *library, const char *symbol, void *pointer)
{
	void *address = dlsym(library, symbol);

	memcpy(pointer, &address, sizeof(address));
	return address ? 0 : -1;
}

static const char *take_all(struct nccl *nccl)
{
#define TAKE(member, symbol, parameters)                     \
	if (take(nccl->library, #symbol, &nccl->member) < 0) \
		return #symbol;
#define TRY(member, symbol, parameters) (void)take(nccl->library, #symbol, &nccl->member);
	NCCL_FUNCTIONS(TAKE)
	NCCL_NEW_FUNCTIONS(TRY)
#undef TRY
#undef TAKE
	if (take(nccl->library, "ncclGetErrorString", &nccl->error_text) < 0)
		return "ncclGetErrorString";
	(void)take(nccl->library, "ncclGetLastError", &nccl->last_error);
	return NULL;
}

static void path_find(struct nccl *nccl, const char *name)
{
	Dl_info info;
	void *address = dlsym(nccl->library, "ncclGetVersion");
	const char *path = name;

	if (address && dladdr(address, &info) != 0 && info.dli_fname)
		path = info.dli_fname;
	text_copy(nccl->path, sizeof(nccl->path), path);
}

static int library_open(struct nccl *nccl, const char *name, char *problem, size_t problem_size)
{
	const char *why;

	dlerror();
	nccl->library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (nccl->library)
		return 0;
	why = dlerror();
	text_format(problem, problem_size,
		    "NCCL's library %s cannot be loaded (%s): name one with --nccl FILE or "
		    "RINGSIDE_NCCL",
		    name, why ? why : "no reason given");
	return -1;
}

int nccl_open(struct nccl *nccl, const char *path, char *problem, size_t problem_size)
{
	const char *missing;
	nccl_result result;

	*nccl = (struct nccl){ 0 };
	if (path == NULL || path[0] == '\0')
		path = getenv("RINGSIDE_NCCL");
	if (path == NULL || path[0] == '\0')
		path = NCCL_LIBRARY;
	if (library_open(nccl, path, problem, problem_size) < 0)
		return -1;
	missing = take_all(nccl);
	path_find(nccl, path);
	if (missing) {
		text_format(problem, problem_size,
			    "%s has no %s: bench needs NCCL 2.7 or newer; name one with --nccl "
			    "FILE or RINGSIDE_NCCL",
			    nccl->path, missing);
		dlclose(nccl->library);
		nccl->library = NULL;
		return -1;
	}
	result = nccl->get_version(&nccl->version);
	if (result == 0)
		return 0;
	nccl_explain(nccl, result, "ncclGetVersion", problem, problem_size);
	return -1;
}

const char *nccl_explain(const struct nccl *nccl, nccl_result result, const char *what,
			 char *problem, size_t problem_size)
{
	const char *text = nccl->error_text(result);
	const char *last = nccl->last_error ? nccl->last_error(NULL) : NULL;
	char line[200] = "";

	if (last) {
		text_copy(line, sizeof(line), last);
		line[strcspn(line, "\n")] = '\0';
	}
	text_format(problem, problem_size, "%s failed: %s%s%s", what, text ? text : "no text",
		    line[0] ? "; NCCL says: " : "", line);
	return problem;
}

nccl_type nccl_type_of(const struct nccl *nccl, unsigned int datatype)
{
	int since = datatype == OP_FLOAT8_E4M3 || datatype == OP_FLOAT8_E5M2 ? NCCL_FLOAT8_SINCE
		    : datatype == OP_BFLOAT16				     ? NCCL_BFLOAT16_SINCE
									     : 0;

	for (uint8_t type = 0; nccl->version >= since; type++) {
		uint8_t found = op_datatype_from_nccl(type);

		if (found == OP_DATATYPE_UNKNOWN)
			break;
		if (found == datatype)
			return type;
	}
	return -1;
}

nccl_op nccl_op_of(unsigned int redop)
{
	switch (redop) {
	case BENCH_NO_REDOP: /* functions that move take none; NCCL wants a number all the same */
	case BENCH_SUM:
		return 0;
	case BENCH_PROD:
		return 1;
	case BENCH_MAX:
		return 2;
	case BENCH_MIN:
		return 3;
	case BENCH_AVG:
		return 4;
	default:
		return -1;
	}
}
