#define ABI_VERSION 3
#include "abi/abi_v3.h"
#include "capture/decode.inc"
