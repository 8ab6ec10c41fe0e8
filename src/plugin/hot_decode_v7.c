#define ABI_VERSION 7
#include "plugin/abi_v7.h"
#include "plugin/decode.inc"
