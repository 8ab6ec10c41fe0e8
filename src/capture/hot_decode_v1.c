#define ABI_VERSION 1
#include "abi/abi_v1.h"
#include "capture/decode.inc"
