/* The tape reader and player: the input as a tape, and as changes to a valid one. */
#include <string.h>

#include "fuzz/fuzz_main.h"
#include "plugin/abi_v7.h"
#include "sim/host.h"

static const char good[] =
	"# interface v7\n"
	"10 1 INIT ctx=0x1 id=3ebfde700b16877c name=a%20b nnodes=2 nranks=4 rank=3\n"
	"11 1 START 0x2 ctx=0x1 type=256 parent=(nil) rank=0 GroupApi captured=0 depth=1\n"
	"12 1 STATE 0x2 23 arg=0 null=1\n"
	"13 1 START 0x3 ctx=0x1 type=512 parent=0x2 rank=0 CollApi AllReduce count=256 captured=0\n"
	"14 1 STOP 0x3\n"
	"15 1 START 0x4 ctx=0x1 type=2 parent=0x3 rank=3 Coll seq=5 AllReduce count=256 "
	"dt=ncclInt32 root=-1 nch=1 nw=3 RING - pg=0x7 sb=0x10 rb=(nil) tag=1 sym=0 "
	"variant=(null)\n"
	"16 2 START 0x5 ctx=0x1 type=8 parent=0x4 rank=3 ProxyOp pid=4 ch=255 peer=1 nsteps=2 "
	"chunk=1 send=1\n"
	"17 2 START 0x6 ctx=0x1 type=16 parent=0x5 rank=0 ProxyStep 4\n"
	"18 2 STATE 0x6 9 arg=1024\n"
	"19 3 START 0x7 ctx=0x1 type=64 parent=0x4 rank=0 KernelCh ch=3 pt=1900\n"
	"20 3 STATE 0x7 22 arg=2700\n"
	"21 2 STOP 0x6\n"
	"22 1 FINI ctx=0x1\n";

static int init(void **context, uint64_t hash, int *mask, const char *name, int nnodes, int nranks,
		int rank, abi_log_fn log)
{
	(void)hash;
	(void)nnodes;
	(void)nranks;
	(void)rank;
	(void)log;
	*context = mask;
	*mask = name ? (int)strlen(name) % 2 ? 0xffff : 0xfff : 0xffff;
	return 0;
}

static int start(void *context, void **handle, struct abi_descr_v7 *d)
{
	*handle = d->parent ? d : context;
	return 0;
}

static int stop(void *handle)
{
	(void)handle;
	return 0;
}

static int state(void *handle, int number, union abi_args_v7 *args)
{
	(void)handle;
	return args ? number : 0;
}

static const struct abi_plugin_v7 deaf = { "deaf", init, start, stop, state, stop };

static void read_and_play(const char *text, size_t size)
{
	enum { FEW_THREADS = 4 };
	struct host_linked linked = { .v7 = &deaf };
	struct tape_config config = { .linked = &linked };
	struct tape tape = { 0 };
	struct tape_counts counts;
	struct tape_error error;

	if (tape_parse(&tape, text, size, 7, &error) != OK)
		return;
	if (tape.threads <= FEW_THREADS)
		(void)tape_play(&tape, &config, &counts, &error);
	tape_release(&tape);
}

/* Pairs of bytes: how far to skip, and what to put there. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char changed[sizeof(good)];
	size_t at = 0;

	read_and_play((const char *)data, size);
	memcpy(changed, good, sizeof(good));
	for (size_t i = 0; i + 1 < size && i < 16; i += 2) {
		at = (at + data[i] * 5u + 1) % (sizeof(good) - 1);
		changed[at] = (char)data[i + 1];
	}
	read_and_play(changed, sizeof(good) - 1);
	return 0;
}
