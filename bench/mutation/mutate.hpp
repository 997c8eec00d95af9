// Mutants of CUDA + NVSHMEM sources: one synchronisation removed or weakened at a time, everything else as it
// was, each line where it was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace echolo::mutation {

struct Mutant {
  std::string operation;  // "delete-call", "narrow-scope", ... (kOperations)
  std::string before;     // the mutated text, white space folded
  std::string after;
  int line = 0;      // 1-based, where the mutated text begins
  std::string text;  // the whole mutated source
};

// What is done:
// - delete-call: a statement that only synchronises goes: fences, barriers, quiet, waits, signals of their
// own,
//   stream and event waits of the host
// - signal-before-data: a put-with-signal becomes the signal, then the put
// - narrow-scope: system to gpu, gpu to cta, in PTX, in atomics and in thread fences
// - weaken-order: acquire, release and acq_rel to relaxed, in PTX and in libcu++ calls
// - wait-for-less: a wait for at least N becomes one for at least N - 1
// - drop-wait-group: an asynchronous copy's commit or wait goes
// - drop-reset: something that is by its name a flag or a counter is not cleared
// Comments, strings that are no inline PTX, and preprocessor lines are left alone. So are calls of the host
// that wait for nothing: for the device before anything was started, for the peers beside an allocation, a
// release or the end of NVSHMEM, which meet them anyway.
std::vector<Mutant> mutants_of(std::string_view source);

}  // namespace echolo::mutation
