// The parts below the programs: the wire protocol's bounds, fat binaries, tensor files, the engine's order.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/rng.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "harness.hpp"
#include "runtime/node/engine.hpp"
#include "runtime/node/process.hpp"
#include "runtime/pe/fatbin.hpp"
#include "runtime/protocol.hpp"
#include "runtime/tensor_file.hpp"

namespace echolo::runtime {
namespace {

TEST(Protocol, ReaderNeverReadsPastTheEnd) {
  wire::Writer out;
  out.u8(7).u32(1234).u64(5).text("hello").i32(-3);
  const std::vector<std::uint8_t> whole = out.bytes();
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    wire::Reader in(cut);
    const auto a = in.u8();
    const auto b = in.u32();
    const auto c = in.u64();
    const auto d = in.text();
    const auto e = in.i32();
    EXPECT_EQ(in.done(), n == whole.size());
    if (n == whole.size()) {
      EXPECT_EQ(a, 7);
      EXPECT_EQ(b, 1234U);
      EXPECT_EQ(c, 5U);
      EXPECT_EQ(d, "hello");
      EXPECT_EQ(e, -3);
    } else {
      EXPECT_EQ(e, 0);
    }
  }
}

TEST(Protocol, BlobLengthsAndChoicesAreChecked) {
  wire::Writer out;
  out.u64(~0ULL);
  wire::Reader huge(out.bytes());
  EXPECT_TRUE(huge.blob().empty());
  EXPECT_FALSE(huge.ok());
  wire::Writer choice;
  choice.u8(200);
  wire::Reader in(choice.bytes());
  in.choice(wire::AllocationClass::kAsync);
  EXPECT_FALSE(in.ok());
}

TEST(Protocol, HeadersAreChecked) {
  wire::RequestHeader good;
  good.op = static_cast<std::uint16_t>(wire::Op::kMemoryInfo);
  EXPECT_TRUE(wire::valid(good));
  wire::RequestHeader bad = good;
  bad.magic = 1;
  EXPECT_FALSE(wire::valid(bad));
  bad = good;
  bad.version = 99;
  EXPECT_FALSE(wire::valid(bad));
  bad = good;
  bad.op = static_cast<std::uint16_t>(wire::Op::kCount);
  EXPECT_FALSE(wire::valid(bad));
  bad = good;
  bad.bytes = wire::kMaxPayload + 1;
  EXPECT_FALSE(wire::valid(bad));
  bad = good;
  std::memset(bad.name, 'x', sizeof bad.name);
  EXPECT_FALSE(wire::valid(bad));
}

TEST(Protocol, RandomBytesNeverMakeARequest) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    HostThread thread;
    thread.socket = Fd(pair[0]);
    Fd other(pair[1]);
    std::vector<std::uint8_t> bytes(rng.below(400));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
    const ssize_t written = bytes.empty() ? 0 : ::write(other.get(), bytes.data(), bytes.size());
    ASSERT_EQ(written, static_cast<ssize_t>(bytes.size()));
    other.close();
    const ReadState state = read_request(thread);
    EXPECT_NE(state, ReadState::kOk);
    EXPECT_FALSE(thread.in_call);
  }
}

TEST(Fatbin, FindsThePtxThatNvccEmbeds) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = test::compiled("candidate.cu", true);
  ASSERT_TRUE(program.ok()) << program.error().message;
  Command command;
  const std::string section = *program + ".fatbin";
  command.argv = {"objcopy", "-O", "binary", "--only-section=.nv_fatbin", *program, section};
  ASSERT_TRUE(run_command(command).ok());
  const Result<std::string> bytes = read_file(section);
  ASSERT_TRUE(bytes.ok());
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes->data());
  const pe::FatbinContents contents = pe::parse_fatbin(data, bytes->size());
  ASSERT_EQ(contents.error, "");
  ASSERT_EQ(contents.ptx.size(), 1U);
  EXPECT_NE(contents.ptx[0].source.find("candidate.cu"), std::string::npos);
  EXPECT_EQ(contents.ptx[0].arch, 90U);
  EXPECT_NE(contents.ptx[0].text.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(contents.ptx[0].text.find("all_reduce"), std::string::npos);
  // Cut or damaged anywhere, it is refused or gives less, but is never read past its end.
  Rng rng(9);
  for (std::size_t n = 0; n < 400; n += 7) {
    const std::vector<std::uint8_t> cut(data, data + n);
    EXPECT_TRUE(n >= 16 ? pe::parse_fatbin(cut.data(), n).ptx.empty() : true);
  }
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint8_t> damaged(data, data + bytes->size());
    for (int i = 0; i < 4; ++i) damaged[rng.below(128)] = static_cast<std::uint8_t>(rng.next());
    const pe::FatbinContents got = pe::parse_fatbin(damaged.data(), damaged.size());
    EXPECT_TRUE(!got.error.empty() || got.ptx.size() <= 2);
  }
}

TEST(TensorFile, WritesWhatItReads) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("echolo-tensors-" + std::to_string(::getpid()))).string();
  std::vector<TensorData> tensors;
  tensors.push_back({{"b", DType::kBf16, {2, 3}}, std::vector<std::uint8_t>(12, 1)});
  tensors.push_back({{"a", DType::kI64, {}}, std::vector<std::uint8_t>(8, 2)});
  tensors.push_back({{"none", DType::kF32, {0, 4}}, {}});
  ASSERT_TRUE(write_tensors(path, tensors).ok());
  const auto back = read_tensors(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->size(), 3U);
  for (const TensorData& tensor : *back) {
    bool found = false;
    for (const TensorData& before : tensors) {
      if (before.spec.name != tensor.spec.name) continue;
      found = true;
      EXPECT_EQ(before.bytes, tensor.bytes);
      EXPECT_EQ(before.spec.shape, tensor.spec.shape);
      EXPECT_EQ(before.spec.dtype, tensor.spec.dtype);
    }
    EXPECT_TRUE(found);
  }
  const Result<std::string> bytes = read_file(path);
  ASSERT_TRUE(bytes.ok());
  for (const std::size_t n : {std::size_t{0}, std::size_t{7}, std::size_t{20}, bytes->size() - 1}) {
    ASSERT_TRUE(write_file_atomically(path, bytes->substr(0, n)).ok());
    EXPECT_FALSE(read_tensors(path).ok()) << n;
  }
  std::filesystem::remove(path);
}

// ---- the engine ----

struct Trace {
  Engine engine{2};
  std::string order;
  std::vector<char> held;  // operations that may not end yet

  Op op(char name) {
    Op out;
    out.attempt = [this, name](Op&) {
      if (std::find(held.begin(), held.end(), name) != held.end()) return Step::kWaiting;
      order += name;
      return Step::kDone;
    };
    return out;
  }
  void run() {
    bool fault = false;
    engine.pump(0, &fault);
  }
};

TEST(Engine, StreamsRunInOrderAndApart) {
  Trace t;
  const StreamHandle a = t.engine.create_stream(0, true, 0), b = t.engine.create_stream(0, true, 0);
  t.held = {'1'};
  EXPECT_EQ(t.engine.submit(0, 0, a, t.op('1')), kOk);
  EXPECT_EQ(t.engine.submit(0, 0, a, t.op('2')), kOk);
  EXPECT_EQ(t.engine.submit(0, 0, b, t.op('3')), kOk);
  t.run();
  EXPECT_EQ(t.order, "3");
  t.held.clear();
  t.run();
  EXPECT_EQ(t.order, "312");
  EXPECT_TRUE(t.engine.idle());
}

TEST(Engine, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  Trace t;
  const StreamHandle blocking = t.engine.create_stream(0, false, 0),
                     apart = t.engine.create_stream(0, true, 0);
  t.held = {'1'};
  t.engine.submit(0, 0, blocking, t.op('1'));
  t.engine.submit(0, 0, 0, t.op('2'));
  t.engine.submit(0, 0, blocking, t.op('3'));
  t.engine.submit(0, 0, apart, t.op('4'));
  t.engine.submit(1, 0, 0, t.op('5'));  // another PE's
  t.run();
  EXPECT_EQ(t.order, "45");
  t.held.clear();
  t.run();
  EXPECT_EQ(t.order, "45123");
}

TEST(Engine, ADestroyedStreamsWorkStillCounts) {
  Trace t;
  const StreamHandle blocking = t.engine.create_stream(0, false, 0);
  t.held = {'1'};
  t.engine.submit(0, 0, blocking, t.op('1'));
  EXPECT_EQ(t.engine.destroy_stream(0, blocking), kOk);
  EXPECT_EQ(t.engine.destroy_stream(0, blocking), kBadHandle);
  t.engine.submit(0, 0, 0, t.op('2'));
  t.run();
  EXPECT_EQ(t.order, "");
  t.held.clear();
  t.run();
  EXPECT_EQ(t.order, "12");
}

TEST(Engine, EventsJoinStreams) {
  Trace t;
  const StreamHandle a = t.engine.create_stream(0, true, 0), b = t.engine.create_stream(0, true, 0);
  const std::uint64_t event = t.engine.create_event(0, true);
  t.held = {'1'};
  t.engine.submit(0, 0, a, t.op('1'));
  EXPECT_EQ(t.engine.record_event(0, 0, event, a, Op{}), kOk);
  t.engine.submit(0, 0, a, t.op('2'));
  EXPECT_EQ(t.engine.wait_event(0, 0, b, event, Op{}), kOk);
  t.engine.submit(0, 0, b, t.op('3'));
  t.run();
  EXPECT_EQ(t.order, "");
  t.held = {'2'};
  t.run();
  EXPECT_EQ(t.order, "13");
}

TEST(Engine, AGraphLaunchStartsItsStateAfresh) {
  Trace t;
  const StreamHandle a = t.engine.create_stream(0, true, 0);
  ASSERT_EQ(t.engine.begin_capture(0, 0, a, 0), kOk);
  Op counted;
  counted.attempt = [&t, n = 0](Op&) mutable {
    t.order += static_cast<char>('0' + n);
    return ++n == 3 ? Step::kDone : Step::kWaiting;
  };
  t.engine.submit(0, 0, a, counted);
  std::uint64_t graph = 0, exec = 0;
  ASSERT_EQ(t.engine.end_capture(0, 0, a, &graph), kOk);
  ASSERT_EQ(t.engine.instantiate(0, graph, &exec), kOk);
  t.engine.launch_graph(0, 0, exec, a, Op{});
  t.engine.launch_graph(0, 0, exec, a, Op{});
  for (int i = 0; i < 10; ++i) t.run();
  EXPECT_EQ(t.order, "012012");
  EXPECT_TRUE(t.engine.idle());
}

TEST(Job, JsonCarriesEverything) {
  JobSpec spec;
  spec.world = 5;
  spec.fabric = "rdma";
  spec.candidate.library = "x.so";
  spec.candidate.params = {{"M", 3}};
  spec.candidate.outputs = {{{"y", DType::kBf16, {1, 2}}}};
  spec.candidate.calls = {{{"a", "b"}}};
  spec.register_counts = {{"k", 17}};
  const JobSpec back = nlohmann::json::parse(nlohmann::json(spec).dump()).get<JobSpec>();
  EXPECT_EQ(nlohmann::json(back), nlohmann::json(spec));
  JobResult result;
  result.status = "crashed";
  result.pes.push_back({PeEnd::kTimeout, 24, "slow", "text", true});
  result.call_modelled_ns = {1, 2};
  const JobResult again = nlohmann::json::parse(nlohmann::json(result).dump()).get<JobResult>();
  EXPECT_EQ(nlohmann::json(again), nlohmann::json(result));
}

// A folder with an echolo-node of our own, which run_job takes as long as this lives.
struct OtherNode {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("echolo-node-" + std::to_string(::getpid()));
  std::optional<std::string> before;
  OtherNode() {
    std::filesystem::create_directory(folder);
    if (const char* given = std::getenv("ECHOLO_BIN_DIR")) before = given;
    ::setenv("ECHOLO_BIN_DIR", folder.c_str(), 1);
  }
  ~OtherNode() {
    if (before.has_value()) {
      ::setenv("ECHOLO_BIN_DIR", before->c_str(), 1);
    } else {
      ::unsetenv("ECHOLO_BIN_DIR");
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  OtherNode(const OtherNode&) = delete;
  OtherNode& operator=(const OtherNode&) = delete;
  // It gives a good result, and then ends with `code`.
  Result<JobResult> run(int code) const {
    JobResult good;
    good.status = "correct";
    const std::string script = "#!/bin/sh\ncat >/dev/null\necho '" + nlohmann::json(good).dump() +
                               "'\necho its own fault >&2\nexit " + std::to_string(code) + "\n";
    const std::string path = (folder / "echolo-node").string();
    EXPECT_TRUE(write_file_atomically(path, script).ok());
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return run_job(JobSpec{});
  }
};

// A sanitizer speaks at exit, after the answer: such an answer must not count.
TEST(Job, AnAnswerOfANodeThatEndsBadlyIsNone) {
  const OtherNode node;
  const Result<JobResult> right = node.run(0);
  ASSERT_TRUE(right.ok()) << right.error().render();
  EXPECT_EQ(right->status, "correct");
  const Result<JobResult> wrong = node.run(86);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, ErrorKind::kMachine);
  EXPECT_NE(wrong.error().message.find("its own fault"), std::string::npos) << wrong.error().message;
}

}  // namespace
}  // namespace echolo::runtime
