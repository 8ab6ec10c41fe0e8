#define ABI_VERSION 2
#include "abi/abi_v2.h"
#include "capture/decode.inc"
