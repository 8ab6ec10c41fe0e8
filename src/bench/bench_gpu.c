/* Finds the functions of CUDA and NCCL, and the kernels that fill and check buffers. */
#include "bench/bench_gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_result.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

#define CUDA_LIBRARY "libcuda.so.1"

/* Stores a function's address in a typed pointer; C has no cast for that. */
static int library_take(void *library, const char *symbol, void *pointer)
{
	void *address = dlsym(library, symbol);

	memcpy(pointer, &address, sizeof(address));
	return address ? 0 : -1;
}

static const char *cuda_take_all(struct cuda *cuda)
{
#define CUDA_TAKE(member, symbol, parameters)                        \
	if (library_take(cuda->library, #symbol, &cuda->member) < 0) \
		return #symbol;
	CUDA_FUNCTIONS(CUDA_TAKE)
#undef CUDA_TAKE
	return NULL;
}

static int cuda_library_open(struct cuda *cuda, const char *name, char *problem,
			     size_t problem_size)
{
	const char *missing, *why;

	dlerror();
	cuda->library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (cuda->library == NULL) {
		why = dlerror();
		return bench_problem(
			problem, problem_size,
			"cannot load the CUDA driver %s (%s): bench needs a host with an "
			"NVIDIA driver",
			name, why ? why : "no reason given");
	}
	missing = cuda_take_all(cuda);
	if (missing == NULL)
		return 0;
	text_format(problem, problem_size,
		    "CUDA driver %s has no %s: bench needs CUDA 11.4 or newer (driver 470)", name,
		    missing);
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
	if (cuda_library_open(cuda, name, problem, problem_size) < 0)
		return -1;
	result = cuda->init(0);
	if (result == 0)
		return 0;
	return bench_problem(problem, problem_size,
			     "%s: bench needs a GPU that this process can use (check nvidia-smi)",
			     cuda_explain(cuda, result, "cuInit", why, sizeof(why)));
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

#define NCCL_LIBRARY "libnccl.so.2"
enum { NCCL_FLOAT8_SINCE = 22400, NCCL_BFLOAT16_SINCE = 21000 };

static const char *nccl_take_all(struct nccl *nccl)
{
#define NCCL_TAKE(member, symbol, parameters)                        \
	if (library_take(nccl->library, #symbol, &nccl->member) < 0) \
		return #symbol;
#define TRY(member, symbol, parameters) (void)library_take(nccl->library, #symbol, &nccl->member);
	NCCL_FUNCTIONS(NCCL_TAKE)
	NCCL_NEW_FUNCTIONS(TRY)
#undef TRY
#undef NCCL_TAKE
	if (library_take(nccl->library, "ncclGetErrorString", &nccl->error_text) < 0)
		return "ncclGetErrorString";
	(void)library_take(nccl->library, "ncclGetLastError", &nccl->last_error);
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

static int nccl_library_open(struct nccl *nccl, const char *name, char *problem,
			     size_t problem_size)
{
	const char *why;

	dlerror();
	nccl->library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (nccl->library)
		return 0;
	why = dlerror();
	return bench_problem(problem, problem_size,
			     "cannot load NCCL from %s (%s): name a library with --nccl FILE or "
			     "RINGSIDE_NCCL",
			     name, why ? why : "no reason given");
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
	if (nccl_library_open(nccl, path, problem, problem_size) < 0)
		return -1;
	missing = nccl_take_all(nccl);
	path_find(nccl, path);
	if (missing) {
		text_format(problem, problem_size,
			    "%s has no %s: bench needs NCCL 2.7 or newer; name a library with "
			    "--nccl FILE or RINGSIDE_NCCL",
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
	/* Functions without a reduction ignore it, but NCCL wants a valid value. */
	static const nccl_op numbers[BENCH_REDOPS] = {
		[BENCH_NO_REDOP] = 0, [BENCH_SUM] = 0, [BENCH_PROD] = 1,
		[BENCH_MAX] = 2,      [BENCH_MIN] = 3, [BENCH_AVG] = 4
	};

	return redop < BENCH_REDOPS ? numbers[redop] : -1;
}

/*
 * Each thread visits elements first + n * stride and keeps its table index beside the address: one division at the
 * start, then an addition and at most one subtraction per element.
 */

enum { THREADS = 256, BLOCKS_MAX = 1024, PTX_BYTES = 8192 };

/*
 * Common prologue. In: %d1 buffer, %d2 count, %r1 element bytes, %r2 period, %r3 phase. Out: %d4 element, %d6 its
 * stride, %d7 period, %d9 table index, %d10 its stride, %d12 address, %d13 its stride, %p1 %p2 %p3: element size is
 * 1, 2, 4 bytes.
 */
#define PTX_START                        \
	"cvta.to.global.u64 %d1, %d1;\n" \
	"mov.u32 %r4, %ctaid.x;\n"       \
	"mov.u32 %r5, %ntid.x;\n"        \
	"mov.u32 %r6, %tid.x;\n"         \
	"mov.u32 %r7, %nctaid.x;\n"      \
	"mul.wide.u32 %d4, %r4, %r5;\n"  \
	"cvt.u64.u32 %d5, %r6;\n"        \
	"add.u64 %d4, %d4, %d5;\n"       \
	"mul.wide.u32 %d6, %r7, %r5;\n"  \
	"cvt.u64.u32 %d7, %r2;\n"        \
	"cvt.u64.u32 %d8, %r3;\n"        \
	"add.u64 %d9, %d4, %d8;\n"       \
	"rem.u64 %d9, %d9, %d7;\n"       \
	"rem.u64 %d10, %d6, %d7;\n"      \
	"cvt.u64.u32 %d11, %r1;\n"       \
	"mul.lo.u64 %d12, %d4, %d11;\n"  \
	"add.u64 %d12, %d12, %d1;\n"     \
	"mul.lo.u64 %d13, %d6, %d11;\n"  \
	"setp.eq.u32 %p1, %r1, 1;\n"     \
	"setp.eq.u32 %p2, %r1, 2;\n"     \
	"setp.eq.u32 %p3, %r1, 4;\n"     \
	"LOOP:\n"                        \
	"setp.ge.u64 %p4, %d4, %d2;\n"   \
	"@%p4 bra END;\n"                \
	"shl.b64 %d14, %d9, 3;\n"

#define PTX_NEXT                        \
	"NEXT:\n"                       \
	"add.u64 %d9, %d9, %d10;\n"     \
	"setp.ge.u64 %p5, %d9, %d7;\n"  \
	"@%p5 sub.u64 %d9, %d9, %d7;\n" \
	"add.u64 %d4, %d4, %d6;\n"      \
	"add.u64 %d12, %d12, %d13;\n"   \
	"bra LOOP;\n"                   \
	"END:\n"

#define PTX_REGISTERS          \
	".reg .pred %p<10>;\n" \
	".reg .b32 %r<10>;\n"  \
	".reg .b64 %d<24>;\n"

static const char fill_text[] =
	".visible .entry " KERNEL_FILL "(\n"
	".param .u64 buffer, .param .u64 count, .param .u32 element_bytes, .param .u64 table,\n"
	".param .u32 period, .param .u32 phase)\n"
	"{\n" PTX_REGISTERS "ld.param.u64 %d1, [buffer];\n"
	"ld.param.u64 %d2, [count];\n"
	"ld.param.u32 %r1, [element_bytes];\n"
	"ld.param.u64 %d3, [table];\n"
	"ld.param.u32 %r2, [period];\n"
	"ld.param.u32 %r3, [phase];\n"
	"cvta.to.global.u64 %d3, %d3;\n" PTX_START "add.u64 %d14, %d14, %d3;\n"
	"ld.global.u64 %d15, [%d14];\n"
	"cvt.u32.u64 %r8, %d15;\n"
	"@%p1 bra ONE;\n"
	"@%p2 bra TWO;\n"
	"@%p3 bra FOUR;\n"
	"st.global.u64 [%d12], %d15;\n"
	"bra NEXT;\n"
	"ONE:\n"
	"st.global.u8 [%d12], %r8;\n"
	"bra NEXT;\n"
	"TWO:\n"
	"st.global.u16 [%d12], %r8;\n"
	"bra NEXT;\n"
	"FOUR:\n"
	"st.global.u32 [%d12], %r8;\n" PTX_NEXT "ret;\n"
	"}\n";

/* Counts in a register and adds to memory once. */
static const char check_text[] =
	".visible .entry " KERNEL_CHECK "(\n"
	".param .u64 buffer, .param .u64 count, .param .u32 element_bytes, .param .u64 low,\n"
	".param .u64 high, .param .u32 period, .param .u32 phase, .param .u64 counter)\n"
	"{\n" PTX_REGISTERS "ld.param.u64 %d1, [buffer];\n"
	"ld.param.u64 %d2, [count];\n"
	"ld.param.u32 %r1, [element_bytes];\n"
	"ld.param.u64 %d3, [low];\n"
	"ld.param.u64 %d16, [high];\n"
	"ld.param.u32 %r2, [period];\n"
	"ld.param.u32 %r3, [phase];\n"
	"ld.param.u64 %d17, [counter];\n"
	"cvta.to.global.u64 %d3, %d3;\n"
	"cvta.to.global.u64 %d16, %d16;\n"
	"cvta.to.global.u64 %d17, %d17;\n"
	"mov.u64 %d18, 0;\n" PTX_START "add.u64 %d19, %d14, %d3;\n"
	"ld.global.u64 %d20, [%d19];\n"
	"add.u64 %d19, %d14, %d16;\n"
	"ld.global.u64 %d21, [%d19];\n"
	"@%p1 bra ONE;\n"
	"@%p2 bra TWO;\n"
	"@%p3 bra FOUR;\n"
	"ld.global.u64 %d15, [%d12];\n"
	"bra JUDGE;\n"
	"ONE:\n"
	"ld.global.u8 %r8, [%d12];\n"
	"cvt.u64.u32 %d15, %r8;\n"
	"bra JUDGE;\n"
	"TWO:\n"
	"ld.global.u16 %r8, [%d12];\n"
	"cvt.u64.u32 %d15, %r8;\n"
	"bra JUDGE;\n"
	"FOUR:\n"
	"ld.global.u32 %r8, [%d12];\n"
	"cvt.u64.u32 %d15, %r8;\n"
	"JUDGE:\n"
	"setp.lt.u64 %p6, %d15, %d20;\n"
	"setp.gt.u64 %p7, %d15, %d21;\n"
	"or.pred %p8, %p6, %p7;\n"
	"@%p8 add.u64 %d18, %d18, 1;\n" PTX_NEXT "setp.eq.u64 %p9, %d18, 0;\n"
	"@%p9 bra QUIT;\n"
	"red.global.add.u64 [%d17], %d18;\n"
	"QUIT:\n"
	"ret;\n"
	"}\n";

/* Oldest first: most drivers accept it. */
static const char *const headers[] = {
	".version 6.0\n.target sm_50\n.address_size 64\n",
	".version 7.0\n.target sm_75\n.address_size 64\n",
};

static cuda_result module_load(struct bench_kernels *kernels, const struct cuda *cuda)
{
	char text[PTX_BYTES];
	cuda_result result = 1;

	_Static_assert(sizeof(fill_text) + sizeof(check_text) + 128 < PTX_BYTES, "PTX_BYTES");
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		text_format(text, sizeof(text), "%s%s%s", headers[i], fill_text, check_text);
		result = cuda->module_load(&kernels->module, text);
		if (result == 0)
			break;
	}
	return result;
}

cuda_result kernels_load(struct bench_kernels *kernels, const struct cuda *cuda, const char **what)
{
	cuda_result result;

	*kernels = (struct bench_kernels){ 0 };
	*what = "cuModuleLoadData";
	result = module_load(kernels, cuda);
	if (result)
		return result;
	*what = "cuModuleGetFunction";
	result = cuda->module_function(&kernels->fill, kernels->module, KERNEL_FILL);
	if (result == 0)
		result = cuda->module_function(&kernels->check, kernels->module, KERNEL_CHECK);
	if (result)
		kernels_unload(kernels, cuda);
	return result;
}

void kernels_unload(struct bench_kernels *kernels, const struct cuda *cuda)
{
	if (kernels->module)
		(void)cuda->module_unload(kernels->module);
	*kernels = (struct bench_kernels){ 0 };
}

static unsigned int blocks_of(const struct kernel_span *span)
{
	uint64_t blocks = (span->count + THREADS - 1) / THREADS;

	if (span->blocks)
		return span->blocks;
	return blocks < BLOCKS_MAX ? (unsigned int)blocks : BLOCKS_MAX;
}

cuda_result kernels_fill(const struct bench_kernels *kernels, const struct cuda *cuda,
			 struct CUstream_st *stream, const struct kernel_span *span,
			 cuda_address table)
{
	struct kernel_span with = *span;
	void *parameters[] = {
		&with.buffer, &with.count, &with.element_bytes, &table, &with.period, &with.phase,
	};

	if (with.count == 0)
		return 0;
	return cuda->launch(kernels->fill, blocks_of(&with), 1, 1, THREADS, 1, 1, 0, stream,
			    parameters, NULL);
}

cuda_result kernels_check(const struct bench_kernels *kernels, const struct cuda *cuda,
			  struct CUstream_st *stream, const struct kernel_span *span,
			  cuda_address low, cuda_address high, cuda_address counter)
{
	struct kernel_span with = *span;
	void *parameters[] = {
		&with.buffer, &with.count,  &with.element_bytes, &low,
		&high,	      &with.period, &with.phase,	 &counter,
	};

	if (with.count == 0)
		return 0;
	return cuda->launch(kernels->check, blocks_of(&with), 1, 1, THREADS, 1, 1, 0, stream,
			    parameters, NULL);
}
