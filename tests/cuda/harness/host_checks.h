// What the host side does when a call of the runtime fails, and which devices it touches.
#pragma once

// 0, or 72 after a report on stderr. Launches must come on this stream.
int host_checks(void* stream);
