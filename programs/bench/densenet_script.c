/*
 * .incbin looks from the root of the tree, where make runs. The compiler does not see that file, so
 * scripts/build.mk says that this object depends on it.
 */
#include "programs/bench/densenet_script.h"

#include "common/attributes.h"

__asm__(".pushsection .rodata\n"
	".globl densenet_script_begin\n"
	".hidden densenet_script_begin\n"
	"densenet_script_begin:\n"
	".incbin \"programs/bench/densenet.py\"\n"
	".globl densenet_script_end\n"
	".hidden densenet_script_end\n"
	"densenet_script_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char densenet_script_begin[] HIDDEN;
extern const char densenet_script_end[] HIDDEN;

const char *densenet_script(size_t *length)
{
	*length = (size_t)(densenet_script_end - densenet_script_begin);
	return densenet_script_begin;
}
