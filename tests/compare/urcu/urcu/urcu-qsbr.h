/* SPDX-License-Identifier: MIT */
#include "../quiescent.h"
