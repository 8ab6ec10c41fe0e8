#define ABI_VERSION 5
#include "abi/abi_v5.h"
#include "capture/decode.inc"
