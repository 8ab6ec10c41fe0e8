#define ABI_VERSION 3
#include "plugin/abi_v3.h"
#include "plugin/decode.inc"
