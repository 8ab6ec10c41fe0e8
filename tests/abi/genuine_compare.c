/*
 * Compares src/plugin with NCCL's own headers, at compile time, for one interface version.
 * genuine_headers.t compiles it: -DVERSION=N, with NCCL's headers put in front, and a generated
 * genuine_numbers.h that has NUMBER(ours, theirs) for each number these headers know.
 */
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "tests/abi/genuine_fields.h"

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define JOIN3(a, b, c) JOIN(JOIN(a, b), c)

typedef struct JOIN(abi_descr_v, VERSION) our_descr;
typedef JOIN3(ncclProfilerEventDescr_v, VERSION, _t) their_descr;
typedef union JOIN(abi_args_v, VERSION) our_args;
typedef JOIN3(ncclProfilerEventStateArgs_v, VERSION, _t) their_args;
typedef struct JOIN(abi_plugin_v, VERSION) our_plugin;
typedef JOIN3(ncclProfiler_v, VERSION, _t) their_plugin;

/* A flag may be wider: the example plugin of NCCL 2.28 says int where NCCL says bool. */
#define IS_SAME_SIZE(ours, theirs) ((ours) == (theirs) || ((ours) == sizeof(bool) && (theirs) == 4))

#define SAME(our_type, ours, their_type, theirs)                                                \
	_Static_assert(offsetof(our_type, ours) == offsetof(their_type, theirs),                \
		       #ours " is not where NCCL has " #theirs);                                \
	_Static_assert(                                                                         \
		IS_SAME_SIZE(sizeof(((our_type *)0)->ours), sizeof(((their_type *)0)->theirs)), \
		#ours " has not the size of NCCL's " #theirs);

#define SAME_FIELD(ours, theirs) SAME(our_descr, ours, their_descr, theirs)
#define SAME_ARG(ours, theirs) SAME(our_args, ours, their_args, theirs)

/* The lists have no semicolons, which clang-format does not understand. */
/* clang-format off */
_Static_assert(sizeof(our_descr) == sizeof(their_descr), "the descriptor has not NCCL's size");
JOIN(FIELDS_, VERSION)(SAME_FIELD)

_Static_assert(sizeof(our_args) == sizeof(their_args), "state arguments have not NCCL's size");
JOIN(ARGS_, VERSION)(SAME_ARG)

_Static_assert(sizeof(our_plugin) == sizeof(their_plugin), "the plugin has not NCCL's size");
SAME(our_plugin, name, their_plugin, name)
SAME(our_plugin, init, their_plugin, init)
SAME(our_plugin, start_event, their_plugin, startEvent)
SAME(our_plugin, stop_event, their_plugin, stopEvent)
SAME(our_plugin, record_event_state, their_plugin, recordEventState)
SAME(our_plugin, finalize, their_plugin, finalize)
/* clang-format on */

/* The parameters of init, in NCCL's types: their order is what changed between versions. */
#if VERSION <= 3
typedef ncclResult_t (*init_type)(void **, int *);
#elif VERSION == 4
typedef ncclResult_t (*init_type)(void **, int *, const char *, uint64_t, int, int, int,
				  ncclDebugLogger_t);
#else
typedef ncclResult_t (*init_type)(void **, uint64_t, int *, const char *, int, int, int,
				  ncclDebugLogger_t);
#endif
_Static_assert(_Generic(((their_plugin *)0)->init, init_type : 1, default : 0),
	       "init takes other parameters than we think");

#define NUMBER(ours, theirs) \
	_Static_assert((int)(ours) == (int)(theirs), #ours " is not NCCL's " #theirs);
#include "genuine_numbers.h"
