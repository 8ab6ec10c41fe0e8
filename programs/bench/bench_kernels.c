/*
 * Each thread walks the elements first + n * stride and, beside the address, keeps its place in the table:
 * one division at the start, then an addition and at most one subtraction per element.
 */
#include "programs/bench/bench_kernels.h"

#include <string.h>

#include "common/text.h"

enum { THREADS = 256, BLOCKS_MAX = 1024, PTX_BYTES = 8192 };

/* What both begin with. In: %d1 buffer, %d2 count, %r1 element bytes, %r2 period, %r3 phase.
 * Out: %d4 element, %d6 its stride, %d7 period, %d9 place, %d10 its stride, %d12 address, %d13 its stride,
 * %p1 %p2 %p3: elements of 1, 2, 4 bytes. */
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

/* Counts in a register, and adds to memory once. */
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

/* The oldest first: it is what most drivers take. */
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
