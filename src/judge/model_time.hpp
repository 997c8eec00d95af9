// From what a job recorded (runtime::JobSpec::work_file) to modelled times.
#pragma once

#include <string>

#include "base/result.hpp"
#include "judge/compile.hpp"
#include "judge/verdict.hpp"
#include "timing/topology.hpp"

namespace echolo::judge {

struct TimeOptions {
  bool wanted = true;     // false: nothing is recorded, and a job runs a little faster
  std::string topology;   // a name or path of src/timing/topology.hpp; empty: an H200's, by fabric and world
  bool timeline = false;  // the verdict keeps one for Perfetto
  std::string work_folder{};  // for a whole program's record
};

// The topology that such a run is modelled on; its name is empty where nobody asked for one and there is none
// of so many PEs. Errors: as load_topology; one that was asked for has fewer PEs.
Result<timing::Topology> choose_topology(const TimeOptions& options, const std::string& fabric, int world);

// Fills call_us, median_us and model of `out` from the recorded work: calls 1 to `n_calls`, or 0: all of it.
// `timeline`, where not null: the last call's, for Perfetto. Errors: the machine's fault.
Status model_times(const std::string& work_file, const timing::Topology& topology, int n_calls,
                   const CompileRequest& compiled, ModelledSize& out, std::string* timeline);

}  // namespace echolo::judge
