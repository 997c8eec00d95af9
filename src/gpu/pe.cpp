// One PE of a candidate on a GPU machine: loads the candidate's shared object, starts NVSHMEM in it, and then
// does what the judge asks line by line. It never holds an expected output: what the candidate writes goes to
// files that the reference's processes compare.
//
//   echolo-gpu-pe CANDIDATE.so PE N_PES DEVICE
//
//   make-id                        -> id HEX
//   start HEX                      -> ok
//   case SPEC                      -> ok              (src/gpu/case_file.hpp)
//   calls eager|graph SHIFT DELAY_US SEED  -> ok      one call on each set of inputs, outputs to files
//   time eager|graph CALLS SHIFT FLUSH [nothing]  -> times T1 T2 ...   microseconds of each call, or of an
//                                                    empty kernel instead
//   write                          -> ok              outputs of the last calls to files
//   quit
//
// With SHIFT s, set i has the contents of set (i + s) % sets, so that a replay at the same addresses sees new
// data. A fault is answered with `error TEXT`.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <echolo/candidate.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "case_file.hpp"

struct State;

namespace {

using namespace echolo::gpu;  // NOLINT(google-build-using-namespace)

void good(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// The candidate's functions and the shim's, by name.
class Object {
 public:
  explicit Object(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    find(create, "candidate_create");
    find(run, "candidate_run");
    find(destroy, "candidate_destroy");
    find(id_bytes, "echolo_shim_id_bytes");
    find(make_id, "echolo_shim_make_id");
    find(start, "echolo_shim_start");
    find(end, "echolo_shim_end");
    find(delay, "echolo_shim_delay");
    find(nothing, "echolo_shim_nothing");
  }

  State* (*create)(const echolo::Launch&) = nullptr;
  void (*run)(State*, const echolo::Launch&, echolo::TensorList, echolo::TensorList, cudaStream_t) = nullptr;
  void (*destroy)(State*) = nullptr;
  int (*id_bytes)() = nullptr;
  int (*make_id)(void*) = nullptr;
  int (*start)(const void*, int, int) = nullptr;
  void (*end)() = nullptr;
  void (*delay)(cudaStream_t, std::uint64_t, std::uint64_t) = nullptr;
  void (*nothing)(cudaStream_t) = nullptr;

 private:
  template <typename F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the candidate has no ") + name);
  }
  void* handle_;  // stays loaded until the process ends
};

struct DeviceFree {
  void operator()(void* p) const { cudaFree(p); }
};
using Buffer = std::unique_ptr<void, DeviceFree>;

Buffer allocate(std::size_t bytes) {
  void* p = nullptr;
  good(cudaMalloc(&p, bytes), "cudaMalloc");
  return Buffer(p);
}

// Two caches' worth, written before a timed call so that it begins with a cold cache.
constexpr std::size_t kFlushBytes = std::size_t{128} << 20U;

class Pe {
 public:
  Pe(const std::string& object, int pe, int n_pes) : object_(object), pe_(pe), n_pes_(n_pes) {
    good(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    flush_ = allocate(kFlushBytes);
  }

  std::string answer(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    if (verb == "make-id") return make_id();
    if (verb == "start") return start(in);
    if (verb == "case") return begin_case(in);
    if (verb == "calls") return calls(in);
    if (verb == "time") return time(in);
    if (verb == "write") return write();
    throw std::runtime_error("unknown command " + verb);
  }

  void finish() {
    end_case();
    if (started_) object_.end();
  }

 private:
  struct Set {
    std::vector<Buffer> masters, inputs, outputs;
    std::vector<echolo::Tensor> in, out;
  };

  std::string make_id() {
    std::vector<unsigned char> id(static_cast<std::size_t>(object_.id_bytes()));
    if (object_.make_id(id.data()) != 0) throw std::runtime_error("nvshmemx_get_uniqueid failed");
    std::string hex = "id ";
    for (const unsigned char byte : id) {
      hex += "0123456789abcdef"[byte >> 4U];
      hex += "0123456789abcdef"[byte & 15U];
    }
    return hex;
  }

  std::string start(std::istringstream& in) {
    std::string hex;
    in >> hex;
    std::vector<unsigned char> id(static_cast<std::size_t>(object_.id_bytes()));
    if (hex.size() != 2 * id.size()) throw std::runtime_error("an id of another length");
    for (std::size_t i = 0; i < id.size(); ++i) {
      id[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    }
    const int status = object_.start(id.data(), pe_, n_pes_);
    if (status != 0) throw std::runtime_error("nvshmemx_init_attr failed with " + std::to_string(status));
    started_ = true;
    return "ok";
  }

  std::string begin_case(std::istringstream& in) {
    std::string path;
    in >> path;
    end_case();
    case_ = read_case(path);
    params_.clear();
    for (const auto& [name, value] : case_.params) params_.push_back({name.c_str(), value});
    launch_ = {pe_,
               n_pes_,
               static_cast<echolo::DType>(case_.dtype),
               static_cast<std::int32_t>(params_.size()),
               params_.data(),
               case_.problem.c_str()};
    for (int s = 0; s < case_.sets; ++s) {
      Set set;
      for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
        set.masters.push_back(read_tensor(case_.inputs[i], case_.file("in", s, pe_, i)));
        set.inputs.push_back(allocate(case_.inputs[i].bytes()));
        set.in.push_back(tensor(case_.inputs[i], set.inputs.back().get()));
      }
      for (const Shape& shape : case_.outputs) {
        set.outputs.push_back(allocate(shape.bytes()));
        set.out.push_back(tensor(shape, set.outputs.back().get()));
      }
      sets_.push_back(std::move(set));
    }
    state_ = object_.create(launch_);
    good(cudaDeviceSynchronize(), "candidate_create");
    return "ok";
  }

  void end_case() {
    forget_graphs();
    if (state_ != nullptr) object_.destroy(state_);
    state_ = nullptr;
    sets_.clear();
  }

  void forget_graphs() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    graph_ = nullptr;
    graph_key_.clear();
  }

  static echolo::Tensor tensor(const Shape& shape, void* data) {
    echolo::Tensor t{
        data, static_cast<echolo::DType>(shape.dtype), static_cast<std::int32_t>(shape.dims.size()), {}};
    for (std::size_t d = 0; d < shape.dims.size(); ++d) t.shape[d] = shape.dims[d];
    return t;
  }

  static Buffer read_tensor(const Shape& shape, const std::string& path) {
    std::vector<char> bytes(shape.bytes());
    std::ifstream file(path, std::ios::binary);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      throw std::runtime_error("cannot read " + path);
    }
    Buffer buffer = allocate(bytes.size());
    good(cudaMemcpy(buffer.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "copy of an input");
    return buffer;
  }

  // Gives each set the contents of the set `shift` places on.
  void refresh(int shift) {
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      const Set& from = sets_[(s + static_cast<std::size_t>(shift)) % sets_.size()];
      for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
        good(cudaMemcpyAsync(sets_[s].inputs[i].get(), from.masters[i].get(), case_.inputs[i].bytes(),
                             cudaMemcpyDeviceToDevice, stream_),
             "copy of an input");
      }
    }
    good(cudaStreamSynchronize(stream_), "copy of inputs");
  }

  // Every bit set is a NaN in each floating type.
  void poison(const Set& set) {
    for (std::size_t i = 0; i < case_.outputs.size(); ++i) {
      good(cudaMemsetAsync(set.outputs[i].get(), 0xff, case_.outputs[i].bytes(), stream_), "poison");
    }
  }

  void call(const Set& set) {
    object_.run(state_, launch_, {set.in.data(), static_cast<std::int32_t>(set.in.size())},
                {set.out.data(), static_cast<std::int32_t>(set.out.size())}, stream_);
  }

  template <typename Body>
  void capture(const std::string& key, const Body& body) {
    if (graph_key_ == key) return;
    forget_graphs();
    cudaGraph_t graph = nullptr;
    good(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    body();
    good(cudaStreamEndCapture(stream_, &graph), "capture");
    good(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    graph_key_ = key;
  }

  std::string calls(std::istringstream& in) {
    std::string mode;
    int shift = 0;
    std::uint64_t delay_us = 0, seed = 0;
    in >> mode >> shift >> delay_us >> seed;
    refresh(shift);
    const auto all = [&] {
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        poison(sets_[s]);
        object_.delay(stream_, seed * 64 + static_cast<std::uint64_t>(pe_) * 8 + s, delay_us * 1000);
        call(sets_[s]);
      }
    };
    if (mode == "graph") {
      capture("calls " + std::to_string(delay_us), all);
      good(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
    } else {
      all();
    }
    good(cudaStreamSynchronize(stream_), "the candidate's calls");
    good(cudaGetLastError(), "the candidate's calls");
    return write();
  }

  std::string time(std::istringstream& in) {
    std::string mode, what;
    int n = 0, shift = 0, flush = 0;
    in >> mode >> n >> shift >> flush >> what;
    const bool nothing = what == "nothing";
    while (events_.size() < 2 * static_cast<std::size_t>(n)) {
      events_.emplace_back();
      good(cudaEventCreate(&events_.back()), "cudaEventCreate");
    }
    refresh(shift);
    const unsigned flags = mode == "graph" ? cudaEventRecordExternal : cudaEventRecordDefault;
    const auto all = [&] {
      for (int i = 0; i < n; ++i) {
        const Set& set = sets_[static_cast<std::size_t>(i) % sets_.size()];
        poison(set);
        if (flush != 0) good(cudaMemsetAsync(flush_.get(), i, kFlushBytes, stream_), "flush");
        good(cudaEventRecordWithFlags(events_[2 * i], stream_, flags), "event");
        nothing ? object_.nothing(stream_) : call(set);
        good(cudaEventRecordWithFlags(events_[2 * i + 1], stream_, flags), "event");
      }
    };
    if (mode == "graph") {
      capture("time " + std::to_string(n) + " " + std::to_string(flush) + what, all);
      good(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
    } else {
      all();
    }
    good(cudaStreamSynchronize(stream_), "the candidate's calls");
    std::ostringstream out;
    out << "times";
    for (int i = 0; i < n; ++i) {
      float ms = 0;
      good(cudaEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1]), "cudaEventElapsedTime");
      out << ' ' << ms * 1000.0F;
    }
    return out.str();
  }

  std::string write() {
    std::vector<char> bytes;
    for (int s = 0; s < case_.sets; ++s) {
      for (std::size_t i = 0; i < case_.outputs.size(); ++i) {
        bytes.resize(case_.outputs[i].bytes());
        good(cudaMemcpy(bytes.data(), sets_[static_cast<std::size_t>(s)].outputs[i].get(), bytes.size(),
                        cudaMemcpyDeviceToHost),
             "copy of an output");
        std::ofstream file(case_.file("out", s, pe_, i), std::ios::binary | std::ios::trunc);
        if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
          throw std::runtime_error("cannot write an output");
        }
      }
    }
    return "ok";
  }

  Object object_;
  int pe_, n_pes_;
  bool started_ = false;
  cudaStream_t stream_ = nullptr;
  Buffer flush_;
  Case case_;
  std::vector<echolo::Param> params_;
  echolo::Launch launch_{};
  std::vector<Set> sets_;
  State* state_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  std::string graph_key_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: echolo-gpu-pe CANDIDATE.so PE N_PES DEVICE\n";
    return 2;
  }
  // What a candidate prints must not be taken for an answer.
  std::FILE* answers = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const auto reply = [&](const std::string& text) {
    std::fputs((text + "\n").c_str(), answers);
    std::fflush(answers);
  };
  try {
    good(cudaSetDevice(std::stoi(argv[4])), "cudaSetDevice");
    Pe pe(argv[1], std::stoi(argv[2]), std::stoi(argv[3]));
    std::string line;
    while (std::getline(std::cin, line) && line != "quit") {
      try {
        reply(pe.answer(line));
      } catch (const std::exception& fault) {
        reply(std::string("error ") + fault.what());
      }
    }
    pe.finish();
  } catch (const std::exception& fault) {
    reply(std::string("error ") + fault.what());
    return 1;
  }
  return 0;
}
