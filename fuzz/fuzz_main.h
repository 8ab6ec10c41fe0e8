/*
 * The interface of a fuzz target: one function that takes any bytes and survives. The name is
 * libFuzzer's, so the same file links with libFuzzer, or with fuzz_main.c if that is not available.
 */
#ifndef FUZZ_MAIN_H
#define FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0. Touches no file and nothing outside the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
