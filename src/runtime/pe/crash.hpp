// What this PE's host code does wrong on its own: signals. A handler on an alternate stack tells the node the
// place, then ends the process; a dereference of device memory is one of them.
#pragma once

#include "runtime/protocol.hpp"

namespace echolo::runtime::pe {

void install_crash_handlers();
void use_alternate_stack();  // of the calling thread; once a thread

// The API call that this thread is in, so that a crash inside (a bad host pointer) names the caller.
void enter_call(const char* name, const wire::Frame* frames);
void leave_call();

// Inside a crash handler: where the crash is; elsewhere nothing is filled.
void crash_frames(wire::Frame* frames);

}  // namespace echolo::runtime::pe
