#include "runtime/node/candidate_driver.hpp"

#include <algorithm>

namespace echolo::runtime {
namespace {

std::string file_of(const std::string& folder, int call, int pe) {
  return folder + "/call" + std::to_string(call) + ".rank" + std::to_string(pe) + ".safetensors";
}

}  // namespace

CandidateDriver::CandidateDriver(const JobSpec& spec, vgpu::Machine& machine, Engine& engine)
    : spec_(&spec), machine_(&machine), engine_(&engine) {
  const auto world = static_cast<std::size_t>(spec.world);
  const auto calls = static_cast<std::size_t>(n_eager()) + static_cast<std::size_t>(n_replays());
  scripts_.resize(world);
  current_.resize(world);
  begun_ =
      std::make_shared<std::vector<std::vector<std::uint64_t>>>(calls, std::vector<std::uint64_t>(world, 0));
  ended_ =
      std::make_shared<std::vector<std::vector<std::uint64_t>>>(calls, std::vector<std::uint64_t>(world, 0));
  write_error_ = std::make_shared<std::string>();
  input_specs_.resize(world);
}

Result<CandidateDriver> CandidateDriver::create(const JobSpec& spec, vgpu::Machine& machine, Engine& engine) {
  CandidateDriver driver(spec, machine, engine);
  const auto world = static_cast<std::size_t>(spec.world);
  const CandidateJob& job = spec.candidate;
  if (job.outputs.size() != world) return machine_error("the job does not name the outputs of every PE");
  if (job.inputs.size() > wire::kMaxTensors) return machine_error("the job has too many inputs");
  for (const std::vector<CallSpec>* calls : {&job.calls, &job.replays}) {
    for (const CallSpec& call : *calls) {
      if (call.input_files.size() != world)
        return machine_error("the job does not name the inputs of every PE");
    }
  }
  const CallSpec* first = !job.calls.empty()     ? &job.calls.front()
                          : !job.replays.empty() ? &job.replays.front()
                                                 : nullptr;
  if (first == nullptr) return driver;
  for (std::size_t pe = 0; pe < world; ++pe) {
    Result<std::vector<TensorData>> file = read_tensors(first->input_files[pe]);
    if (!file.ok()) return file.error();
    for (const std::string& name : job.inputs) {
      const auto it =
          std::find_if(file->begin(), file->end(), [&](const TensorData& t) { return t.spec.name == name; });
      if (it == file->end()) return machine_error(first->input_files[pe] + ": no tensor named " + name);
      driver.input_specs_[pe].push_back(it->spec);
    }
  }
  return driver;
}

const CallSpec& CandidateDriver::call_spec(int call) const {
  const CandidateJob& job = spec_->candidate;
  return call <= n_eager() ? job.calls[static_cast<std::size_t>(call - 1)]
                           : job.replays[static_cast<std::size_t>(call - 1 - n_eager())];
}

Result<CandidateDriver::Tensors> CandidateDriver::allocate(int pe, int call) {
  Tensors out;
  const auto index = static_cast<std::size_t>(pe);
  const auto make = [&](const TensorSpec& spec, const char* role,
                        std::vector<std::uint64_t>& into) -> Status {
    const Result<std::uint64_t> address = machine_->memory().allocate(
        pe, std::max<std::uint64_t>(spec.bytes(), 1), 256, vgpu::AllocationKind::kInternal, spec.name,
        std::string(role) + (call == 0 ? " of the captured call" : " of call " + std::to_string(call)), "");
    if (!address.ok()) return address.error();
    into.push_back(*address);
    return {};
  };
  for (const TensorSpec& spec : input_specs_[index]) {
    if (const Status status = make(spec, "input", out.inputs); !status.ok()) return status.error();
  }
  for (const OutputSpec& output : spec_->candidate.outputs[index]) {
    if (const Status status = make({output.name, output.dtype, output.shape}, "output", out.outputs);
        !status.ok()) {
      return status.error();
    }
  }
  return out;
}

Status CandidateDriver::submit(int pe, int thread, StreamHandle stream, std::string what, Attempt attempt,
                               int call) {
  Op op;
  op.what = std::move(what);
  op.site.role = "judge";
  op.site.pe = pe;
  op.site.on_device = false;
  op.call = call;
  op.attempt = std::move(attempt);
  const int error = engine_->submit(pe, thread, stream, std::move(op));
  if (error != kOk)
    return machine_error("the run stream can't take the judge's work (error " + std::to_string(error) + ")");
  return {};
}

Status CandidateDriver::enqueue_before(int pe, int thread, StreamHandle stream, int call,
                                       const Tensors& tensors) {
  const auto index = static_cast<std::size_t>(pe);
  Result<std::vector<TensorData>> file = read_tensors(call_spec(call).input_files[index]);
  if (!file.ok()) return file.error();
  auto inputs = std::make_shared<std::vector<std::vector<std::uint8_t>>>();
  for (const TensorSpec& spec : input_specs_[index]) {
    const auto it = std::find_if(file->begin(), file->end(),
                                 [&](const TensorData& t) { return t.spec.name == spec.name; });
    if (it == file->end() || it->spec.dtype != spec.dtype || it->spec.shape != spec.shape) {
      return machine_error(call_spec(call).input_files[index] + ": tensor " + spec.name +
                           " differs from the first call's");
    }
    inputs->push_back(std::move(it->bytes));
  }
  std::vector<std::uint64_t> output_bytes;
  for (const OutputSpec& output : spec_->candidate.outputs[index]) {
    output_bytes.push_back(TensorSpec{output.name, output.dtype, output.shape}.bytes());
  }
  vgpu::Machine* machine = machine_;
  auto begun = begun_;
  return submit(
      pe, thread, stream, "the judge's inputs",
      [machine, inputs, tensors, output_bytes, begun, call, index](Op& self) {
        vgpu::Memory::Accessor who;
        who.site = &self.site;
        who.pe = self.pe;
        who.what = "the judge's inputs";
        for (std::size_t i = 0; i < inputs->size(); ++i) {
          const auto& bytes = (*inputs)[i];
          if (!bytes.empty() &&
              !machine->memory().write(tensors.inputs[i], bytes.data(), bytes.size(), who)) {
            return Step::kFault;
          }
        }
        for (std::size_t i = 0; i < output_bytes.size(); ++i) {
          if (output_bytes[i] != 0) machine->memory().poison(tensors.outputs[i], output_bytes[i]);
        }
        (*begun)[static_cast<std::size_t>(call - 1)][index] = self.done_ns;
        return Step::kDone;
      },
      call);
}

Status CandidateDriver::enqueue_after(int pe, int thread, StreamHandle stream, int call,
                                      const Tensors& tensors) {
  const auto index = static_cast<std::size_t>(pe);
  vgpu::Machine* machine = machine_;
  auto ended = ended_;
  auto write_error = write_error_;
  std::vector<TensorSpec> specs;
  for (const OutputSpec& output : spec_->candidate.outputs[index])
    specs.push_back({output.name, output.dtype, output.shape});
  std::vector<std::uint64_t> input_bytes;
  for (const TensorSpec& input : input_specs_[index]) input_bytes.push_back(input.bytes());
  const std::string path =
      spec_->candidate.output_dir.empty() ? "" : file_of(spec_->candidate.output_dir, call, pe);
  return submit(
      pe, thread, stream, "the judge's harvest",
      [machine, tensors, specs, ended, write_error, path, call, index, input_bytes,
       given_back = given_back_](Op& self) {
        (*ended)[static_cast<std::size_t>(call - 1)][index] = self.done_ns;
        vgpu::Memory::Accessor who;
        who.site = &self.site;
        who.pe = self.pe;
        who.what = "the judge's harvest";
        for (std::size_t i = 0; given_back && i < input_bytes.size(); ++i)
          given_back(tensors.inputs[i], input_bytes[i], self);
        for (std::size_t i = 0; given_back && i < specs.size(); ++i)
          given_back(tensors.outputs[i], specs[i].bytes(), self);
        std::vector<TensorData> out;
        for (std::size_t i = 0; i < specs.size(); ++i) {
          TensorData tensor{specs[i], std::vector<std::uint8_t>(specs[i].bytes())};
          if (!tensor.bytes.empty() &&
              !machine->memory().read(tensors.outputs[i], tensor.bytes.data(), tensor.bytes.size(), who)) {
            return Step::kFault;
          }
          out.push_back(std::move(tensor));
        }
        if (path.empty()) return Step::kDone;
        const Status status = write_tensors(path, out);
        if (!status.ok() && write_error->empty()) *write_error = status.error().render();
        return Step::kDone;
      },
      call);
}

void CandidateDriver::put_tensors(int pe, const Tensors& tensors, wire::Writer& out) const {
  const auto index = static_cast<std::size_t>(pe);
  const auto put = [&out](DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t address) {
    out.i32(static_cast<std::int32_t>(dtype)).i32(static_cast<std::int32_t>(shape.size()));
    for (std::size_t i = 0; i < 8; ++i) out.put<std::int64_t>(i < shape.size() ? shape[i] : 0);
    out.u64(address);
  };
  out.u32(static_cast<std::uint32_t>(tensors.inputs.size()));
  for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
    put(input_specs_[index][i].dtype, input_specs_[index][i].shape, tensors.inputs[i]);
  }
  const auto& outputs = spec_->candidate.outputs[index];
  out.u32(static_cast<std::uint32_t>(outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    put(outputs[i].dtype, outputs[i].shape, tensors.outputs[i]);
}

Result<std::vector<std::uint8_t>> CandidateDriver::next(int pe, int thread, StreamHandle stream) {
  PeScript& script = scripts_[static_cast<std::size_t>(pe)];
  Tensors& current = current_[static_cast<std::size_t>(pe)];
  if (script.kind == wire::CommandKind::kRun || script.kind == wire::CommandKind::kReplay) {
    if (script.step > 0) {
      const Tensors& used = script.kind == wire::CommandKind::kReplay ? script.fixed : current;
      if (const Status status = enqueue_after(pe, thread, stream, script.call, used); !status.ok())
        return status.error();
    }
  }
  wire::Writer out;
  const int step = script.step++;
  const int runs = n_eager(), replays = n_replays();
  const int capture = runs + 1, destroy = runs + 1 + (replays > 0 ? 1 + replays : 0);
  const auto begin = [&](wire::CommandKind kind, int call) {
    script.kind = kind;
    script.call = call;
    out.u8(static_cast<std::uint8_t>(kind)).i32(call);
  };
  if (step == 0) {
    begin(wire::CommandKind::kCreate, 0);
    const CandidateJob& job = spec_->candidate;
    out.text(job.problem)
        .i32(static_cast<std::int32_t>(job.dtype))
        .u32(static_cast<std::uint32_t>(job.params.size()));
    for (const auto& [name, value] : job.params) out.text(name).put<std::int64_t>(value);
  } else if (step <= runs) {
    Result<Tensors> tensors = allocate(pe, step);
    if (!tensors.ok()) return tensors.error();
    current = *tensors;
    if (const Status status = enqueue_before(pe, thread, stream, step, current); !status.ok())
      return status.error();
    begin(wire::CommandKind::kRun, step);
    put_tensors(pe, current, out);
  } else if (replays > 0 && step == capture) {
    Result<Tensors> tensors = allocate(pe, 0);
    if (!tensors.ok()) return tensors.error();
    script.fixed = *tensors;
    begin(wire::CommandKind::kCapture, runs + 1);
    put_tensors(pe, script.fixed, out);
  } else if (step < destroy) {
    const int call = step - 1;  // calls count on through the replays; the capture itself is none
    if (const Status status = enqueue_before(pe, thread, stream, call, script.fixed); !status.ok())
      return status.error();
    begin(wire::CommandKind::kReplay, call);
  } else if (step == destroy) {
    begin(wire::CommandKind::kDestroy, 0);
  } else {
    begin(wire::CommandKind::kExit, 0);
    script.ended = true;
  }
  return out.take();
}

std::string CandidateDriver::phase(int pe) const {
  const PeScript& script = scripts_[static_cast<std::size_t>(pe)];
  if (script.step == 0) return "loading the candidate";
  switch (script.kind) {
    case wire::CommandKind::kCreate:
      return "candidate_create";
    case wire::CommandKind::kRun:
      return "candidate_run, call " + std::to_string(script.call);
    case wire::CommandKind::kCapture:
      return "candidate_run, captured into a graph";
    case wire::CommandKind::kReplay:
      return "a replay of the captured graph, call " + std::to_string(script.call);
    case wire::CommandKind::kDestroy:
      return "candidate_destroy";
    case wire::CommandKind::kExit:
      return "";
  }
  return "";
}

int CandidateDriver::call_of(int pe) const { return scripts_[static_cast<std::size_t>(pe)].call; }
bool CandidateDriver::finished(int pe) const { return scripts_[static_cast<std::size_t>(pe)].ended; }

std::vector<std::uint64_t> CandidateDriver::modelled_ns() const {
  std::vector<std::uint64_t> out;
  for (std::size_t call = 0; call < ended_->size(); ++call) {
    std::uint64_t most = 0;
    for (std::size_t pe = 0; pe < scripts_.size(); ++pe) {
      const std::uint64_t begin = (*begun_)[call][pe], end = (*ended_)[call][pe];
      most = std::max(most, end > begin ? end - begin : 0);
    }
    out.push_back(most);
  }
  return out;
}

}  // namespace echolo::runtime
