#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/store.hpp"

namespace echolo::store {
namespace {
namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "echolo-store-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code code;
    fs::remove_all(folder_, code);
  }
  Store open() {
    Result<Store> store = Store::open(folder_);
    EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().render());
    return std::move(store).value();
  }
  // Runs `body` in a child; its exit status.
  template <typename Body>
  int in_child(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  std::string folder_;
};

const NewRun kRun{"optimize", "ag_gemm", 4, R"({"budget": 4})"};

Iteration iteration(int number, const std::string& candidate) {
  return {number, candidate, "kernel " + candidate, R"({"knobs": {}})", "", ""};
}

TEST_F(StoreTest, KeepsWhatItIsGiven) {
  Store store = open();
  Result<OpenRun> run = store.create_run(kRun);
  ASSERT_TRUE(run.ok());
  const std::string id = run.value().id;
  ASSERT_TRUE(store.add_iteration(id, iteration(1, "sha256:a")).ok());
  ASSERT_TRUE(store.add_iteration(id, iteration(2, "sha256:b")).ok());
  const Result<std::string> hash = store.put_artifact("{\"status\": \"deadlock\"}");
  ASSERT_TRUE(hash.ok());
  ASSERT_TRUE(store.record_verdict(id, 1, "key", "sha256:a", "deadlock", *hash).ok());

  const Result<RunInfo> info = store.run(id.substr(0, 5));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->status, "running");
  EXPECT_EQ(info->n_iterations, 2);
  EXPECT_EQ(info->n_judged, 1);
  EXPECT_EQ(info->options, kRun.options);
  const auto iterations = store.iterations(id);
  ASSERT_TRUE(iterations.ok());
  EXPECT_EQ(iterations->at(0).status, "deadlock");
  EXPECT_EQ(iterations->at(0).verdict, *hash);
  EXPECT_EQ(iterations->at(1).status, "proposed");
  EXPECT_EQ(*store.artifact(*hash), "{\"status\": \"deadlock\"}");
  EXPECT_EQ(store.find_verdict(id, "sha256:a", "key").value(), *hash);
  EXPECT_FALSE(store.find_verdict(id, "sha256:a", "other options").value().has_value());
  EXPECT_FALSE(store.find_verdict(id, "sha256:b", "key").value().has_value());

  ASSERT_TRUE(store.finish_run(id, "done", R"({"winner": null})").ok());
  EXPECT_EQ(store.run(id)->status, "done");
  const auto events = store.events(id);
  ASSERT_TRUE(events.ok());
  std::vector<std::string> kinds;
  for (const Event& event : *events) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"created", "proposed", "proposed", "judged", "done"}));
}

TEST_F(StoreTest, EventsAreAppendOnly) {
  Store store = open();
  Result<OpenRun> run = store.create_run(kRun);
  ASSERT_TRUE(run.ok());
  SQLite::Database database((fs::path(folder_) / "echolo.db").string(), SQLite::OPEN_READWRITE);
  EXPECT_THROW(database.exec("UPDATE events SET kind = 'other'"), SQLite::Exception);
  EXPECT_THROW(database.exec("DELETE FROM events"), SQLite::Exception);
}

TEST_F(StoreTest, KilledRunIsInterruptedAndResumesWithItsVerdicts) {
  const int status = in_child([&] {
    Result<Store> store = Store::open(folder_);
    Result<OpenRun> run = store.value().create_run(kRun);
    const std::string& id = run.value().id;
    for (int i = 1; i <= 4; ++i) {
      if (!store.value().add_iteration(id, iteration(i, "sha256:" + std::to_string(i))).ok()) ::_exit(1);
    }
    const std::string hash = *store.value().put_artifact("verdict");
    if (!store.value().record_verdict(id, 1, "key", "sha256:1", "correct", hash).ok()) ::_exit(1);
    if (!store.value().record_verdict(id, 2, "key", "sha256:2", "deadlock", hash).ok()) ::_exit(1);
    ::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  Store store = open();
  const auto runs = store.runs();
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().status, "interrupted");
  EXPECT_EQ(runs->front().n_judged, 2);
  const std::string id = runs->front().id;
  Result<OpenRun> again = store.resume_run(id);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(store.run(id)->status, "running");
  EXPECT_TRUE(store.find_verdict(id, "sha256:1", "key").value().has_value());
  EXPECT_TRUE(store.find_verdict(id, "sha256:2", "key").value().has_value());
  EXPECT_FALSE(store.find_verdict(id, "sha256:3", "key").value().has_value());
  // A second process may not take it up as well.
  const int second = in_child([&] {
    Result<Store> other = Store::open(folder_);
    ::_exit(other.value().resume_run(id).ok() ? 1 : 0);
  });
  EXPECT_EQ(WEXITSTATUS(second), 0);
}

// Killed at many moments while it writes, the store is never damaged: every run that is listed is whole.
TEST_F(StoreTest, SurvivesBeingKilledAtAnyMoment) {
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      Result<Store> store = Store::open(folder_);
      if (!store.ok()) ::_exit(1);
      Result<OpenRun> run = store.value().create_run(kRun);
      for (int i = 1; run.ok() && i < 10'000; ++i) {
        const std::string name = "sha256:" + std::to_string(i);
        (void)store.value().add_iteration(run.value().id, iteration(i, name)).ok();
        const Result<std::string> hash = store.value().put_artifact(name);
        if (hash.ok())
          (void)store.value().record_verdict(run.value().id, i, "key", name, "correct", *hash).ok();
      }
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(3'000 + round * 4'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    Store store = open();
    const auto runs = store.runs();
    ASSERT_TRUE(runs.ok()) << runs.error().render();
    for (const RunInfo& run : *runs) {
      EXPECT_EQ(run.status, "interrupted");
      const auto iterations = store.iterations(run.id);
      ASSERT_TRUE(iterations.ok());
      for (const Iteration& one : *iterations) {
        // Verdict and status change together, and what a verdict names is there.
        EXPECT_EQ(one.status == "correct", !one.verdict.empty());
        if (!one.verdict.empty()) {
          EXPECT_EQ(*store.artifact(one.verdict), one.candidate);
        }
      }
    }
  }
}

TEST_F(StoreTest, StopAsksTheLiveProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Result<Store> store = Store::open(folder_);
    Result<OpenRun> run = store.value().create_run(kRun);
    (void)!::write(ready[1], run.value().id.data(), 8);
    ::pause();
    ::_exit(0);
  }
  char id[9] = {};
  ASSERT_EQ(::read(ready[0], id, 8), 8);
  Store store = open();
  EXPECT_EQ(store.run(id)->status, "running");
  EXPECT_TRUE(store.stop_run(id).ok());
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_EQ(store.run(id)->status, "stopped");
  EXPECT_FALSE(store.stop_run(id).ok());
  EXPECT_TRUE(store.resume_run(id).ok());
}

TEST_F(StoreTest, FinishedRunsAreNotResumed) {
  Store store = open();
  std::string id;
  {
    Result<OpenRun> run = store.create_run(kRun);
    ASSERT_TRUE(run.ok());
    id = run.value().id;
    ASSERT_TRUE(store.finish_run(id, "failed", "{}").ok());
  }
  const Result<OpenRun> again = store.resume_run(id);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  EXPECT_NE(again.error().message.find("finished"), std::string::npos);
}

TEST_F(StoreTest, UnknownRunOffersNearOnes) {
  Store store = open();
  Result<OpenRun> run = store.create_run(kRun);
  ASSERT_TRUE(run.ok());
  std::string wrong = run.value().id;
  wrong[3] = wrong[3] == 'x' ? 'y' : 'x';
  const Result<RunInfo> info = store.run(wrong);
  ASSERT_FALSE(info.ok());
  EXPECT_NE(info.error().hint.find(run.value().id), std::string::npos);
}

TEST_F(StoreTest, DamagedArtifactIsNoticed) {
  Store store = open();
  const std::string hash = *store.put_artifact("a verdict");
  const fs::path path = fs::path(folder_) / "artifacts" / hash.substr(0, 2) / hash.substr(2);
  std::ofstream(path) << "another";
  const Result<std::string> read = store.artifact(hash);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::kMachine);
}

TEST_F(StoreTest, NewerSchemaIsRefusedAndOlderOneIsBroughtUpToDate) {
  { Store store = open(); }
  const std::string file = (fs::path(folder_) / "echolo.db").string();
  {
    SQLite::Database database(file, SQLite::OPEN_READWRITE);
    database.exec("PRAGMA user_version = 99");
  }
  const Result<Store> newer = Store::open(folder_);
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().kind, ErrorKind::kUsage);
  // An empty database is version 0.
  fs::remove(file);
  fs::remove(file + "-wal");
  fs::remove(file + "-shm");
  { SQLite::Database database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE); }
  Store store = open();
  EXPECT_TRUE(store.create_run(kRun).ok());
}

TEST_F(StoreTest, SeveralProcessesWriteAtOnce) {
  { Store store = open(); }
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Result<Store> store = Store::open(folder_);
      if (!store.ok()) ::_exit(1);
      for (int k = 0; k < 10; ++k) {
        Result<OpenRun> run = store.value().create_run(kRun);
        if (!run.ok() || !store.value().finish_run(run.value().id, "done", "{}").ok()) ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Store store = open();
  EXPECT_EQ(store.runs()->size(), 40U);
}

// A quota that is used up, as a limit on file size: what was there stays, nothing half-written appears.
TEST_F(StoreTest, FullDiskIsAMachineErrorAndLeavesTheStoreWhole) {
  std::string id;
  {
    Store store = open();
    Result<OpenRun> run = store.create_run(kRun);
    ASSERT_TRUE(run.ok());
    id = run.value().id;
  }
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    Result<Store> store = Store::open(folder_);
    if (!store.ok()) ::_exit(2);
    const rlimit full{32'768, 32'768};
    ::setrlimit(RLIMIT_FSIZE, &full);
    const Result<std::string> artifact = store.value().put_artifact(std::string(100'000, 'x'));
    if (artifact.ok() || artifact.error().kind != ErrorKind::kMachine) ::_exit(3);
    bool failed = false;
    for (int i = 1; i < 2'000 && !failed; ++i) {
      const Status added = store.value().add_iteration(id, iteration(i, std::string(200, 'y')));
      failed = !added.ok();
      if (failed && added.error().kind != ErrorKind::kMachine) ::_exit(4);
      if (failed && added.error().message.find(folder_) == std::string::npos) ::_exit(5);
    }
    ::_exit(failed ? 0 : 6);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(folder_) / "artifacts")) {
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
  }
  Store store = open();
  EXPECT_EQ(store.run(id)->status, "interrupted");
  EXPECT_TRUE(store.resume_run(id).ok());
}

TEST_F(StoreTest, FolderThatCannotBeMadeIsAMachineError) {
  std::ofstream(fs::path(folder_) / "file") << "x";
  const Result<Store> store = Store::open((fs::path(folder_) / "file" / "store").string());
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().kind, ErrorKind::kMachine);
  EXPECT_NE(store.error().hint.find("--store"), std::string::npos);
}

TEST_F(StoreTest, DatabaseThatIsNoneIsAMachineError) {
  std::ofstream(fs::path(folder_) / "echolo.db") << std::string(4096, 'z');
  const Result<Store> store = Store::open(folder_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().kind, ErrorKind::kMachine);
  EXPECT_NE(store.error().message.find("damaged"), std::string::npos);
}

TEST(DefaultDirectory, FollowsTheEnvironment) {
  ::setenv("XDG_DATA_HOME", "/somewhere", 1);
  EXPECT_EQ(*default_directory(), "/somewhere/echolo");
  ::unsetenv("XDG_DATA_HOME");
  ::setenv("HOME", "/a/person", 1);
  EXPECT_EQ(*default_directory(), "/a/person/.local/share/echolo");
}

TEST_F(StoreTest, AVerdictIsFoundByTheBeginningOfItsId) {
  Store store = open();
  KeptVerdict verdict{
      "abc123def456",       "check", "ag_gemm", "sha256:1", std::string(64, 'a'), "{}", "deadlock",
      std::string(64, 'b'), ""};
  ASSERT_TRUE(store.keep_verdict(verdict).ok());
  verdict.status = "correct";  // asked again after a change of ours: the newer answer counts
  ASSERT_TRUE(store.keep_verdict(verdict).ok());
  verdict.id = "abd000000000";
  ASSERT_TRUE(store.keep_verdict(verdict).ok());
  const auto found = store.kept_verdict("abc");
  ASSERT_TRUE(found.ok()) << found.error().render();
  EXPECT_EQ(found->id, "abc123def456");
  EXPECT_EQ(found->status, "correct");
  EXPECT_EQ(found->source, std::string(64, 'a'));
  EXPECT_FALSE(found->created.empty());
  const auto last = store.kept_verdicts(1);
  ASSERT_TRUE(last.ok()) << last.error().render();
  EXPECT_EQ(last->size(), 1U);
  EXPECT_EQ(store.kept_verdicts(100)->size(), 2U);
  for (const char* none : {"ab", "f", "", "%", "ABC"}) {
    const auto nothing = store.kept_verdict(none);
    ASSERT_FALSE(nothing.ok()) << none;
    EXPECT_EQ(nothing.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace echolo::store
