// The service thread: runs the host functions that streams reach (cudaLaunchHostFunc, callbacks, host nodes
// of graphs) and moves bytes between pageable host memory and captured copies. Started when the node first
// needs it.
#pragma once

namespace echolo::runtime::pe {

void start_service();

}  // namespace echolo::runtime::pe
