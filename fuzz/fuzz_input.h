/* Reads an input byte by byte; zeros after its end. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct input {
	const uint8_t *data;
	size_t size, at;
};

static inline uint8_t byte(struct input *input)
{
	return input->at < input->size ? input->data[input->at++] : 0;
}

#endif
