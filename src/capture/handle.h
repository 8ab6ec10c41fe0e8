/*
 * What NCCL gets instead of pointers. 64 bits:
 *
 *	63..60 kind | 59..29 generation | 28..9 slot | 8..1 extra | 0 always 0
 *
 * XORed with a salt of this process whose lowest bit is 1: so a handle is never NULL, never an
 * aligned pointer, and another process's handle (PXN hands them over) decodes to nonsense that the
 * generation check refuses. A captured call is named for as long as its graph lives, so its handle
 * holds the operation's number itself (59..1) and no slot.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include <stdbool.h>
#include <stdint.h>

enum handle_kind {
	HANDLE_NONE = 0,
	HANDLE_CONTEXT = 1,
	HANDLE_GROUP_API = 2,  /* slot: group */
	HANDLE_LAUNCH = 3,     /* slot: group */
	HANDLE_CALL = 4,       /* slot: live operation, known from its API call */
	HANDLE_CAPTURED = 5,   /* number of the captured operation */
	HANDLE_TASK = 6,       /* slot: live operation, from its Coll, P2p or CeColl event */
	HANDLE_KERNEL = 7,     /* slot: live operation; extra: channel */
	HANDLE_PROXY = 8,      /* slot: proxy operation */
	HANDLE_STEP = 9,       /* slot: proxy operation; extra: step modulo 256 */
	HANDLE_UNTRACKED = 10, /* an operation without a live slot */
	HANDLE_IGNORED = 11,   /* an event that nothing is kept of */
};

/* One word, so that it travels in one register; 0 in bit 0 once the salt is off. */
struct handle {
	uint64_t raw;
};

enum { HANDLE_KIND_SHIFT = 60, HANDLE_GENERATION_SHIFT = 29, HANDLE_SLOT_BITS = 20 };
#define HANDLE_GENERATION_MASK UINT32_C(0x7fffffff)

static inline struct handle handle_of(enum handle_kind kind, uint32_t generation, uint32_t slot,
				      uint8_t extra)
{
	return (struct handle){ (uint64_t)kind << HANDLE_KIND_SHIFT |
				(uint64_t)(generation & HANDLE_GENERATION_MASK)
					<< HANDLE_GENERATION_SHIFT |
				(uint64_t)slot << 9 | (uint64_t)extra << 1 };
}

static inline void *handle_encode(uint64_t salt, struct handle handle)
{
	return (void *)(uintptr_t)(handle.raw ^ salt);
}

static inline struct handle handle_decode(uint64_t salt, const void *opaque)
{
	return (struct handle){ (uint64_t)(uintptr_t)opaque ^ salt };
}

static inline enum handle_kind handle_kind(struct handle handle)
{
	return handle.raw & 1 ? HANDLE_NONE : (enum handle_kind)(handle.raw >> HANDLE_KIND_SHIFT);
}

static inline bool handle_is(struct handle handle, enum handle_kind kind)
{
	return (handle.raw & (UINT64_C(15) << HANDLE_KIND_SHIFT | 1)) ==
	       (uint64_t)kind << HANDLE_KIND_SHIFT;
}

static inline uint32_t handle_generation(struct handle handle)
{
	return (uint32_t)(handle.raw >> HANDLE_GENERATION_SHIFT) & HANDLE_GENERATION_MASK;
}

static inline uint32_t handle_slot(struct handle handle)
{
	return (uint32_t)(handle.raw >> 9) & ((1u << HANDLE_SLOT_BITS) - 1);
}

static inline uint8_t handle_extra(struct handle handle)
{
	return (uint8_t)(handle.raw >> 1);
}

/* The same slot and generation as something of another kind. */
static inline struct handle handle_as(struct handle handle, enum handle_kind kind, uint8_t extra)
{
	uint64_t kept = (uint64_t)HANDLE_GENERATION_MASK << HANDLE_GENERATION_SHIFT |
			(uint64_t)((1u << HANDLE_SLOT_BITS) - 1) << 9;

	return (struct handle){ (handle.raw & kept) | (uint64_t)kind << HANDLE_KIND_SHIFT |
				(uint64_t)extra << 1 };
}

/* Is this the handle of a slot with this word (generation << 32, odd when it is used)? */
static inline bool handle_fits(struct handle handle, uint64_t word)
{
	uint64_t difference = word >> (32 - HANDLE_GENERATION_SHIFT) ^ handle.raw;
	uint64_t mask = (uint64_t)HANDLE_GENERATION_MASK << HANDLE_GENERATION_SHIFT;

	return (difference & mask) == 0 && (word & (UINT64_C(1) << 32));
}

static inline void *handle_encode_captured(uint64_t salt, uint64_t number)
{
	uint64_t raw = (uint64_t)HANDLE_CAPTURED << 60 | (number << 1 & ~(UINT64_C(15) << 60));

	return (void *)(uintptr_t)(raw ^ salt);
}

static inline uint64_t handle_captured_number(uint64_t salt, const void *opaque)
{
	uint64_t raw = (uint64_t)(uintptr_t)opaque ^ salt;

	return (raw & ~(UINT64_C(15) << 60)) >> 1;
}

#endif
