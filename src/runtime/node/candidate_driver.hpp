// What the host process of a candidate is told to do next, and the judge's own work in stream order: inputs
// written, outputs poisoned before a call and harvested after it, virtual time taken around it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/job.hpp"
#include "runtime/node/engine.hpp"
#include "runtime/protocol.hpp"
#include "runtime/tensor_file.hpp"
#include "vgpu/core/machine.hpp"

namespace echolo::runtime {

class CandidateDriver {
 public:
  // Checks the job against its input files (names, one file a PE and call); the error is the judge's own
  // fault.
  static Result<CandidateDriver> create(const JobSpec& spec, vgpu::Machine& machine, Engine& engine);

  // The PE is done with what it was told last and asks for more. Error: out of memory, an input can't be
  // read.
  Result<std::vector<std::uint8_t>> next(int pe, int thread, StreamHandle stream);
  // "candidate_run, call 2"; empty between calls.
  std::string phase(int pe) const;
  // Told of each input and output when a call is over and they are the judge's again.
  using GivenBack = std::function<void(std::uint64_t base, std::uint64_t bytes, const Op& at)>;
  void on_given_back(GivenBack given_back) { given_back_ = std::move(given_back); }
  int call_of(int pe) const;                       // 1-based number of the call that the PE is in, 0: none
  bool finished(int pe) const;                     // has been told to end
  std::vector<std::uint64_t> modelled_ns() const;  // by call: the maximum over PEs, 0 where it never ended
  // Where outputs could not be written.
  const std::string& write_error() const { return *write_error_; }

 private:
  struct Tensors {
    std::vector<std::uint64_t> inputs, outputs;
  };
  struct PeScript {
    int step = 0;  // index of the command that was given last, 0: none yet
    wire::CommandKind kind{};
    int call = 0;
    Tensors fixed;  // of the captured graph
    bool ended = false;
  };
  CandidateDriver(const JobSpec& spec, vgpu::Machine& machine, Engine& engine);

  int n_eager() const { return static_cast<int>(spec_->candidate.calls.size()); }
  int n_replays() const { return static_cast<int>(spec_->candidate.replays.size()); }
  const CallSpec& call_spec(int call) const;
  Result<Tensors> allocate(int pe, int call);
  Status enqueue_before(int pe, int thread, StreamHandle stream, int call, const Tensors& tensors);
  Status enqueue_after(int pe, int thread, StreamHandle stream, int call, const Tensors& tensors);
  Status submit(int pe, int thread, StreamHandle stream, std::string what, Attempt attempt, int call);
  void put_tensors(int pe, const Tensors& tensors, wire::Writer& out) const;

  const JobSpec* spec_;
  vgpu::Machine* machine_;
  Engine* engine_;
  std::vector<PeScript> scripts_;
  std::vector<Tensors> current_;                                            // by PE
  std::shared_ptr<std::vector<std::vector<std::uint64_t>>> begun_, ended_;  // [call][pe], virtual ns
  std::shared_ptr<std::string> write_error_;
  GivenBack given_back_;
  std::vector<std::vector<TensorSpec>>
      input_specs_;  // by PE: shapes of the inputs, from the first call's file
};

}  // namespace echolo::runtime
