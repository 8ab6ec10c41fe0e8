#define ABI_VERSION 7
#include "abi/abi_v7.h"
#include "capture/decode.inc"
