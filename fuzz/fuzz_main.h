/*
 * What a fuzz target gives: one function that takes any bytes and survives. The name is libFuzzer's,
 * so the same file links with libFuzzer, and with fuzz_main.c where that is not at hand.
 */
#ifndef FUZZ_MAIN_H
#define FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

/* Gives back 0. Touches no file and nothing outside the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
