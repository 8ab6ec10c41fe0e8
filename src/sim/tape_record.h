/*
 * The tape recorder's file. Lines are written one by one, under one lock, in the order in which they
 * were numbered; docs/TAPES.md is their format. A diagnostic tool: it may wait, and it writes to the
 * disk from within NCCL's threads. Never part of the plugin that runs always.
 */
#ifndef TAPE_RECORD_H
#define TAPE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"

/* A line that is being put together. */
struct tape_text {
	char bytes[1024];
	size_t length;
};

/*
 * The words behind "START ... rank=R" for what a version has of its own. False: none of these, the
 * event is one that all versions share.
 */

bool tape_fields_v1(struct tape_text *text, const struct abi_descr_v1 *d);
bool tape_fields_v2(struct tape_text *text, const struct abi_descr_v2 *d);
bool tape_fields_v3(struct tape_text *text, const struct abi_descr_v3 *d);
bool tape_fields_v4(struct tape_text *text, const struct abi_descr_v4 *d);
bool tape_fields_v5(struct tape_text *text, const struct abi_descr_v5 *d);
bool tape_fields_v6(struct tape_text *text, const struct abi_descr_v6 *d);
bool tape_fields_v7(struct tape_text *text, const struct abi_descr_v7 *d);

#endif
