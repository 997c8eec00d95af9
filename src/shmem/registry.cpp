// The names of the NVSHMEM API and what each means.
#include <array>

#include "shmem/call.hpp"
#include "shmem/operation.hpp"

namespace echolo::shmem {
namespace {

using vgpu::Granularity;

class Registry {
 public:
  Registry() {
    add_setup();
    for (const Element& element : elements()) {
      add_transfers(element);
      if (element.rma) {
        add_element(element);
        add_collectives(element, std::string(element.name) + "_");
      }
      if (element.name == "mem") add_collectives(element, "");
      if (element.wait) add_waits(element);
      if (element.standard_amo || element.extended_amo) add_atomics(element);
    }
  }

  std::map<std::string, Operation, std::less<>> take() { return std::move(table_); }

 private:
  Operation& add(const std::string& name, Handler handler, const char* arguments, char result,
                 const Element* element = nullptr) {
    Operation& op = table_[name];
    op.name = name;
    op.handler = handler;
    op.arguments = arguments;
    op.result = result;
    op.element = element;
    return op;
  }

  // nvshmem_NAME for one thread, nvshmemx_NAME_warp and nvshmemx_NAME_block for groups.
  template <typename Set>
  void add_groups(const std::string& name, Handler handler, const char* arguments, char result,
                  const Element* element, const Set& set) {
    set(add("nvshmem_" + name, handler, arguments, result, element));
    for (const Granularity g : {Granularity::kWarp, Granularity::kBlock}) {
      Operation& op = add("nvshmemx_" + name + (g == Granularity::kWarp ? "_warp" : "_block"), handler,
                          arguments, result, element);
      op.granularity = g;
      op.on_host = false;
      set(op);
    }
  }

  void add_setup() {
    add("nvshmem_my_pe", do_my_pe, "", 'i');
    add("nvshmem_n_pes", do_n_pes, "", 'i');
    add("nvshmem_ptr", do_ptr, "pi", 'p');
    add("nvshmem_quiet", do_quiet, "", 0);
    add("nvshmem_fence", do_fence, "", 0);
    add("nvshmemx_mc_ptr", do_mc_ptr, "ip", 'p');
    add("nvshmem_team_my_pe", do_team_my_pe, "i", 'i');
    add("nvshmem_team_n_pes", do_team_n_pes, "i", 'i');
    add("nvshmem_team_translate_pe", do_team_translate, "iii", 'i');
    add("nvshmem_signal_fetch", do_signal_fetch, "p", 'q');
    add("nvshmemx_signal_op", do_signal_op, "pqii", 0);
    Operation& signal_wait = add("nvshmem_signal_wait_until", do_wait, "piq", 'q', &signal_element());
    signal_wait.signal = true;
    for (const bool barrier : {false, true}) {
      const auto set_world = [&](Operation& op) {
        op.barrier = barrier;
        op.whole_world = true;
      };
      const auto set_team = [&](Operation& op) { op.barrier = barrier; };
      add_groups(barrier ? "barrier_all" : "sync_all", do_barrier, "", 0, nullptr, set_world);
      add_groups(barrier ? "barrier" : "team_sync", do_barrier, "i", 'i', nullptr, set_team);
    }
    for (const auto& [name, handler, arguments, result] :
         {std::tuple{"nvshmem_malloc", &do_allocate, "z", 'p'},
          std::tuple{"nvshmem_calloc", &do_allocate, "zz", 'p'},
          std::tuple{"nvshmem_align", &do_allocate, "zz", 'p'},
          std::tuple{"nvshmem_free", &do_free, "p", '\0'},
          std::tuple{"nvshmem_team_split_strided", &do_team_split, "iiii", 'q'},
          std::tuple{"nvshmem_team_split_2d", &do_team_split_2d, "ii", 'q'},
          std::tuple{"nvshmem_team_destroy", &do_team_destroy, "i", '\0'}}) {
      add(name, handler, arguments, result).on_device = false;
    }
  }

  // put and get in all forms. Typed: T_put; sized: put32; bytes: putmem.
  void add_transfers(const Element& element) {
    const std::string name(element.name);
    const auto spell = [&](const std::string& verb, const std::string& tail) {
      return element.rma ? name + "_" + verb + tail : verb + name + tail;
    };
    for (const bool get : {false, true}) {
      for (const bool nonblocking : {false, true}) {
        const auto set = [&](Operation& op) {
          op.get = get;
          op.nonblocking = nonblocking;
        };
        const std::string tail = nonblocking ? "_nbi" : "";
        add_groups(spell(get ? "get" : "put", tail), do_transfer, "ppzi", 0, &element, set);
        if (!get) {
          const auto set_signal = [&](Operation& op) {
            set(op);
            op.signal = true;
          };
          add_groups(spell("put", "_signal" + tail), do_transfer, "ppzpqii", 0, &element, set_signal);
        }
      }
      if (name == "mem") continue;
      const auto set_strided = [&](Operation& op) {
        op.get = get;
        op.strided = true;
      };
      add_groups(spell(get ? "iget" : "iput", ""), do_transfer, "ppzzzi", 0, &element, set_strided);
    }
  }

  void add_element(const Element& element) {
    const std::string name = "nvshmem_" + std::string(element.name);
    add(name + "_p", do_p, "pvi", 0, &element);
    add(name + "_g", do_g, "pi", 'v', &element);
  }

  void add_collectives(const Element& element, const std::string& typed) {
    const std::string tail = typed.empty() ? "mem" : "";
    const auto keep = [](Operation&) {};
    add_groups(typed + "broadcast" + tail, do_broadcast, "ippzi", 'i', &element, keep);
    add_groups(typed + "fcollect" + tail, do_fcollect, "ippz", 'i', &element, keep);
    add_groups(typed + "alltoall" + tail, do_alltoall, "ippz", 'i', &element, keep);
    if (typed.empty()) return;
    for (const Reduction reduction : {Reduction::kAnd, Reduction::kOr, Reduction::kXor, Reduction::kMax,
                                      Reduction::kMin, Reduction::kSum, Reduction::kProd}) {
      const bool bitwise = reduction <= Reduction::kXor;
      if (bitwise ? !element.bitwise_reduce : !element.arith_reduce) continue;
      const auto set = [&](Operation& op) { op.reduction = reduction; };
      const std::string stem = typed + std::string(name_of(reduction));
      add_groups(stem + "_reduce", do_reduce, "ippz", 'i', &element, set);
      add_groups(stem + "_reducescatter", do_reducescatter, "ippz", 'i', &element, set);
    }
  }

  void add_waits(const Element& element) {
    const std::string stem = "nvshmem_" + std::string(element.name) + "_";
    for (const bool test : {false, true}) {
      const std::string verb = stem + (test ? "test" : "wait_until");
      Operation& one = add(verb, do_wait, "piv", test ? 'i' : '\0', &element);
      one.test = test;
      one.on_host = !test;  // on streams
      for (const Quantifier quantifier : {Quantifier::kAll, Quantifier::kAny, Quantifier::kSome}) {
        for (const bool vector : {false, true}) {
          static constexpr std::array<const char*, 4> kNames = {"", "_all", "_any", "_some"};
          const bool some = quantifier == Quantifier::kSome;
          const bool all = quantifier == Quantifier::kAll;
          const std::string arguments = std::string(some ? "pzppi" : "pzpi") + (vector ? "p" : "v");
          Operation& op = add(verb + kNames[static_cast<std::size_t>(quantifier)] + (vector ? "_vector" : ""),
                              do_wait, arguments.c_str(), all ? (test ? 'i' : '\0') : 'z', &element);
          op.test = test;
          op.quantifier = quantifier;
          op.vector = vector;
          op.on_host = false;
        }
      }
    }
  }

  void add_amo(const Element& element, const char* prefix, const char* name, Amo amo, bool fetches,
               const char* arguments) {
    Operation& op = add(prefix + std::string(element.name) + "_atomic_" + name, do_atomic, arguments,
                        fetches ? 'v' : '\0', &element);
    op.amo = amo;
    op.fetches = fetches;
  }

  void add_atomics(const Element& element) {
    const char* const core = "nvshmem_";
    add_amo(element, core, "fetch", Amo::kFetch, true, "pi");
    add_amo(element, core, "set", Amo::kSet, false, "pvi");
    add_amo(element, core, "swap", Amo::kSwap, true, "pvi");
    const char* const additive = element.extended_amo ? "nvshmemx_" : core;
    add_amo(element, additive, "add", Amo::kAdd, false, "pvi");
    add_amo(element, additive, "fetch_add", Amo::kAdd, true, "pvi");
    if (element.standard_amo) {
      add_amo(element, core, "inc", Amo::kInc, false, "pi");
      add_amo(element, core, "fetch_inc", Amo::kInc, true, "pi");
      add_amo(element, core, "compare_swap", Amo::kCompareSwap, true, "pvvi");
    }
    if (element.bitwise_amo) {
      add_amo(element, core, "and", Amo::kAnd, false, "pvi");
      add_amo(element, core, "or", Amo::kOr, false, "pvi");
      add_amo(element, core, "xor", Amo::kXor, false, "pvi");
      add_amo(element, core, "fetch_and", Amo::kAnd, true, "pvi");
      add_amo(element, core, "fetch_or", Amo::kOr, true, "pvi");
      add_amo(element, core, "fetch_xor", Amo::kXor, true, "pvi");
    }
  }

  std::map<std::string, Operation, std::less<>> table_;
};

}  // namespace

const std::map<std::string, Operation, std::less<>>& operations() {
  static const std::map<std::string, Operation, std::less<>> table = Registry().take();
  return table;
}

const Operation* find_host_operation(std::string_view name) {
  constexpr std::string_view kOnStream = "_on_stream";
  std::string plain(name);
  if (name.ends_with(kOnStream)) {
    plain.resize(name.size() - kOnStream.size());
    // nvshmemx_float_put_on_stream is nvshmem_float_put on a stream; a few names keep their x.
    if (plain.starts_with("nvshmemx_") && operations().count(plain) == 0)
      plain = "nvshmem_" + plain.substr(9);
  }
  const auto found = operations().find(plain);
  if (found == operations().end()) return nullptr;
  const bool on_stream_only = name.ends_with(kOnStream);
  return found->second.on_host || on_stream_only ? &found->second : nullptr;
}

}  // namespace echolo::shmem
