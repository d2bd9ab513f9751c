/* banned.h - calls that have no safe use here fail the build. */
#ifndef VT_BANNED_H
#define VT_BANNED_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gmtime localtime rand srand

#endif
