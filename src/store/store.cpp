#include "store/store.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "store/schema.hpp"

namespace echolo::store {
namespace fs = std::filesystem;
namespace {

constexpr int kBusyMilliseconds = 10'000;
constexpr const char* kMoveHint = "give another folder with --store DIR, or mend this one";

constexpr const char* kRunColumns =
    "SELECT id, command, problem, world, options, status, created, finished, summary, pid, stop_requested,"
    " (SELECT count(*) FROM iterations WHERE run = runs.id),"
    " (SELECT count(*) FROM iterations WHERE run = runs.id AND verdict <> '') FROM runs ";

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Error describe(const SQLite::Exception& fault, const std::string& directory) {
  const std::string where = "the store in " + directory;
  switch (fault.getErrorCode()) {
    case SQLITE_FULL:
      return machine_error("the disk of " + where + " is full",
                           "free some space, or give another folder with --store DIR");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return machine_error(where + " cannot be written (read-only)", kMoveHint);
    case SQLITE_CANTOPEN:
      return machine_error("cannot open " + where, kMoveHint);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return machine_error(where + " is busy: another process has held it for " +
                           std::to_string(kBusyMilliseconds / 1000) + " s");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return machine_error(where + " is damaged: " + fault.what(), "move echolo.db away and start afresh");
    case SQLITE_IOERR:
      return machine_error("cannot read or write " + where + " (" + fault.what() + ")",
                           "the disk may be full or a quota reached; give another folder with --store DIR");
    default:
      return machine_error(where + ": " + fault.what());
  }
}

Status make_directories(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code)
    return machine_error("cannot make the folder " + path.string() + ": " + code.message(), kMoveHint);
  return {};
}

// The lock of a run, or nothing where another process holds it. A lock file that is not there is nobody's.
Result<std::optional<RunLock>> try_lock(const fs::path& path, bool create) {
  const int fd = ::open(path.c_str(), (create ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0644);
  if (fd < 0) {
    if (errno == ENOENT && !create) return std::optional<RunLock>(std::in_place, -1);
    return machine_error("cannot lock " + path.string() + ": " + std::strerror(errno), kMoveHint);
  }
  RunLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<RunLock>();
    return machine_error("cannot lock " + path.string() + ": " + std::strerror(errno));
  }
  return std::optional<RunLock>(std::move(lock));
}

void migrate(SQLite::Database& database) {
  // Immediate: of two processes that open a new store at once, one waits and then finds nothing left to do.
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  int version = database.execAndGet("PRAGMA user_version").getInt();
  const auto steps = migrations();
  for (; version < static_cast<int>(steps.size()); ++version) {
    database.exec(std::string(steps[static_cast<std::size_t>(version)]));
    database.exec("PRAGMA user_version = " + std::to_string(version + 1));
  }
  transaction.commit();
}

void bind_all(SQLite::Statement&, int) {}
template <typename First, typename... Rest>
void bind_all(SQLite::Statement& statement, int index, const First& first, const Rest&... rest) {
  if constexpr (std::is_convertible_v<const First&, std::string_view>) {
    statement.bind(index, std::string(std::string_view(first)));
  } else {
    statement.bind(index, first);
  }
  bind_all(statement, index + 1, rest...);
}

template <typename... Values>
void execute(SQLite::Database& database, const char* sql, const Values&... values) {
  SQLite::Statement statement(database, sql);
  bind_all(statement, 1, values...);
  statement.exec();
}

void add_event(SQLite::Database& db, const std::string& run, std::string_view kind, std::string_view data) {
  execute(db, "INSERT INTO events (run, time, kind, data) VALUES (?, ?, ?, ?)", run, now_text(), kind, data);
}

}  // namespace

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

struct Store::Impl {
  std::string directory;
  SQLite::Database database;
  std::mutex mutex;

  Impl(std::string where, const std::string& file)
      : directory(std::move(where)),
        database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_FULLMUTEX,
                 kBusyMilliseconds) {}

  fs::path lock_path(const std::string& run) const { return fs::path(directory) / "locks" / (run + ".lock"); }
  fs::path artifact_path(std::string_view hash) const {
    return fs::path(directory) / "artifacts" / hash.substr(0, 2) / hash.substr(2);
  }

  // Runs `body` with the database to itself and turns SQLite's exceptions into errors.
  template <typename Body>
  auto guarded(Body&& body) -> decltype(body(database)) {
    const std::scoped_lock lock(mutex);
    try {
      return body(database);
    } catch (const SQLite::Exception& fault) {
      return describe(fault, directory);
    }
  }

  Result<RunInfo> read_run(SQLite::Statement& row) const {
    RunInfo info;
    info.id = row.getColumn(0).getString();
    info.command = row.getColumn(1).getString();
    info.problem = row.getColumn(2).getString();
    info.world = row.getColumn(3).getInt();
    info.options = row.getColumn(4).getString();
    info.status = row.getColumn(5).getString();
    info.created = row.getColumn(6).getString();
    info.finished = row.getColumn(7).getString();
    info.summary = row.getColumn(8).getString();
    info.pid = row.getColumn(9).getInt();
    info.stop_requested = row.getColumn(10).getInt() != 0;
    info.n_iterations = row.getColumn(11).getInt();
    info.n_judged = row.getColumn(12).getInt();
    if (info.status == "open") {
      auto lock = try_lock(lock_path(info.id), false);
      if (!lock) return std::move(lock).error();
      info.status = !lock.value().has_value() ? "running" : info.stop_requested ? "stopped" : "interrupted";
    }
    return info;
  }
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<std::string> default_directory() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data != '\0') {
    return (fs::path(data) / "echolo").string();
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return (fs::path(home) / ".local" / "share" / "echolo").string();
  }
  return machine_error("neither HOME nor XDG_DATA_HOME is set, so there is no place for the store",
                       "give a folder with --store DIR");
}

Result<Store> Store::open(const std::string& directory) {
  std::error_code code;
  const fs::path root = fs::absolute(directory, code);
  if (code) return machine_error("cannot use " + directory + ": " + code.message());
  for (const char* part : {"artifacts", "cache", "locks"}) {
    if (Status made = make_directories(root / part); !made) return made.error();
  }
  try {
    auto impl = std::make_unique<Impl>(root.string(), (root / "echolo.db").string());
    impl->database.exec("PRAGMA journal_mode = WAL");
    impl->database.exec("PRAGMA synchronous = NORMAL");
    impl->database.exec("PRAGMA foreign_keys = ON");
    const int known = static_cast<int>(migrations().size());
    const int version = impl->database.execAndGet("PRAGMA user_version").getInt();
    if (version > known) {
      return usage_error("the store in " + root.string() + " was written by a newer echolo (schema " +
                             std::to_string(version) + ", this one knows " + std::to_string(known) + ")",
                         "use that echolo, or give another folder with --store DIR");
    }
    if (version < known) migrate(impl->database);
    return Store(std::move(impl));
  } catch (const SQLite::Exception& fault) {
    return describe(fault, root.string());
  }
}

const std::string& Store::directory() const { return impl_->directory; }

Result<std::string> Store::cache_directory(std::string_view name) {
  const fs::path path = fs::path(impl_->directory) / "cache" / name;
  if (Status made = make_directories(path); !made) return made.error();
  return path.string();
}

Result<std::string> Store::put_artifact(std::string_view bytes) {
  const std::string hash = sha256_hex(bytes);
  const fs::path path = impl_->artifact_path(hash);
  std::error_code code;
  if (fs::exists(path, code)) return hash;
  if (Status made = make_directories(path.parent_path()); !made) return made.error();
  if (Status written = write_file_atomically(path.string(), bytes); !written) return written.error();
  return hash;
}

Result<std::string> Store::artifact(std::string_view hash) const {
  if (hash.size() != 64) return usage_error("'" + std::string(hash) + "' is no content hash");
  const fs::path path = impl_->artifact_path(hash);
  Result<std::string> bytes = read_file(path.string());
  if (!bytes) return machine_error("the store lacks the artifact " + std::string(hash));
  if (sha256_hex(*bytes) != hash) {
    return machine_error("the artifact " + path.string() +
                         " is damaged: its content no longer has that hash");
  }
  return bytes;
}

Result<OpenRun> Store::create_run(const NewRun& run) {
  // Not left to chance alone: the primary key refuses a second run of the same name.
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string id =
      sha256_hex(now_text() + "/" + std::to_string(ticks) + "/" + std::to_string(::getpid())).substr(0, 8);
  auto lock = try_lock(impl_->lock_path(id), true);
  if (!lock) return std::move(lock).error();
  if (!lock.value()) return machine_error("two runs chose the id " + id + "; try again");
  const Status added = impl_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    execute(db,
            "INSERT INTO runs (id, sequence, command, problem, world, options, status, created, pid)"
            " VALUES (?, (SELECT coalesce(max(sequence), 0) + 1 FROM runs), ?, ?, ?, ?, 'open', ?, ?)",
            id, run.command, run.problem, run.world, run.options, now_text(), static_cast<int>(::getpid()));
    add_event(db, id, "created", run.options);
    transaction.commit();
    return {};
  });
  if (!added) {
    ::unlink(impl_->lock_path(id).c_str());
    return added.error();
  }
  return OpenRun{id, std::move(*lock.value())};
}

Result<OpenRun> Store::resume_run(const std::string& id) {
  Result<RunInfo> info = run(id);
  if (!info) return info.error();
  auto lock = try_lock(impl_->lock_path(info->id), true);
  if (!lock) return std::move(lock).error();
  if (!lock.value()) {
    return usage_error(
        "run " + info->id + " is still being worked on by process " + std::to_string(info->pid),
        "echolo runs stop " + info->id);
  }
  const Status taken = impl_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement query(db, "SELECT status FROM runs WHERE id = ?");
    query.bind(1, info->id);
    if (!query.executeStep()) return usage_error("there is no run " + info->id);
    const std::string status = query.getColumn(0).getString();
    query.reset();
    if (status == "done" || status == "failed") {
      return usage_error("run " + info->id + " is finished (" + status + "); there is nothing to resume",
                         "echolo runs show " + info->id);
    }
    execute(db, "UPDATE runs SET status = 'open', finished = '', stop_requested = 0, pid = ? WHERE id = ?",
            static_cast<int>(::getpid()), info->id);
    add_event(db, info->id, "resumed", "{}");
    transaction.commit();
    return {};
  });
  if (!taken) return taken.error();
  return OpenRun{info->id, std::move(*lock.value())};
}

Status Store::finish_run(const std::string& id, std::string_view status, std::string_view summary) {
  return impl_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    execute(db, "UPDATE runs SET status = ?, summary = ?, finished = ? WHERE id = ?", status, summary,
            now_text(), id);
    add_event(db, id, status, summary);
    transaction.commit();
    return {};
  });
}

Status Store::stop_run(const std::string& id) {
  Result<RunInfo> info = run(id);
  if (!info) return info.error();
  if (info->status != "running") {
    return usage_error("run " + info->id + " is not running (" + info->status + ")");
  }
  Status asked = impl_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    execute(db, "UPDATE runs SET stop_requested = 1 WHERE id = ?", info->id);
    add_event(db, info->id, "stop_requested", "{}");
    transaction.commit();
    return {};
  });
  if (!asked) return asked;
  // The lock was held a moment ago, so the process is the one that took it.
  if (::kill(info->pid, SIGTERM) != 0 && errno != ESRCH) {
    return machine_error("cannot signal process " + std::to_string(info->pid) + ": " + std::strerror(errno));
  }
  return {};
}

Result<std::vector<RunInfo>> Store::runs() const {
  return impl_->guarded([&](SQLite::Database& db) -> Result<std::vector<RunInfo>> {
    std::vector<RunInfo> all;
    SQLite::Statement query(db, std::string(kRunColumns) + "ORDER BY sequence DESC");
    while (query.executeStep()) {
      Result<RunInfo> info = impl_->read_run(query);
      if (!info) return info.error();
      all.push_back(std::move(*info));
    }
    return all;
  });
}

Result<RunInfo> Store::run(std::string_view id) const {
  Result<std::vector<RunInfo>> all = runs();
  if (!all) return all.error();
  std::vector<std::string> names;
  std::vector<const RunInfo*> found;
  for (const RunInfo& info : *all) {
    if (info.id == id) return info;
    if (!id.empty() && info.id.starts_with(id)) found.push_back(&info);
    names.push_back(info.id);
  }
  if (found.size() == 1) return *found.front();
  if (found.size() > 1) return usage_error("several runs begin with '" + std::string(id) + "'");
  const std::string near = did_you_mean(id, names);
  return usage_error("there is no run '" + std::string(id) + "'", near.empty() ? "echolo runs list" : near);
}

Status Store::add_iteration(const std::string& run, const Iteration& iteration) {
  return impl_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    execute(
        db,
        "INSERT INTO iterations (run, number, candidate, label, detail, status) VALUES (?, ?, ?, ?, ?, ?)",
        run, iteration.number, iteration.candidate, iteration.label, iteration.detail, "proposed");
    add_event(db, run, "proposed", iteration.detail);
    transaction.commit();
    return {};
  });
}

Status Store::record_verdict(const std::string& run, int iteration, const std::string& options_key,
                             const std::string& candidate, const std::string& status,
                             const std::string& verdict_artifact) {
  return impl_->guarded([&](SQLite::Database& db) -> Status {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    execute(db,
            "INSERT INTO verdicts (run, candidate, options_key, status, artifact, created)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            run, candidate, options_key, status, verdict_artifact, now_text());
    if (iteration > 0) {
      execute(db, "UPDATE iterations SET status = ?, verdict = ? WHERE run = ? AND number = ?", status,
              verdict_artifact, run, iteration);
    }
    add_event(db, run, "judged",
              R"({"iteration": )" + std::to_string(iteration) + R"(, "status": ")" + status + R"("})");
    transaction.commit();
    return {};
  });
}

Result<std::vector<Iteration>> Store::iterations(const std::string& run) const {
  return impl_->guarded([&](SQLite::Database& db) -> Result<std::vector<Iteration>> {
    std::vector<Iteration> all;
    SQLite::Statement query(db,
                            "SELECT number, candidate, label, detail, status, verdict FROM iterations WHERE "
                            "run = ? ORDER BY number");
    query.bind(1, run);
    while (query.executeStep()) {
      all.push_back({query.getColumn(0).getInt(), query.getColumn(1).getString(),
                     query.getColumn(2).getString(), query.getColumn(3).getString(),
                     query.getColumn(4).getString(), query.getColumn(5).getString()});
    }
    return all;
  });
}

Result<std::optional<std::string>> Store::find_verdict(const std::string& run, std::string_view candidate,
                                                       std::string_view options_key) const {
  return impl_->guarded([&](SQLite::Database& db) -> Result<std::optional<std::string>> {
    SQLite::Statement query(
        db,
        "SELECT artifact FROM verdicts WHERE run = ? AND candidate = ? AND options_key = ?"
        " ORDER BY id DESC LIMIT 1");
    bind_all(query, 1, run, candidate, options_key);
    if (!query.executeStep()) return std::optional<std::string>();
    return std::optional<std::string>(query.getColumn(0).getString());
  });
}

namespace {

const std::string kKeptVerdict =
    "SELECT id, command, subject, candidate, source, options, status, verdict, created FROM kept_verdicts ";

KeptVerdict kept_verdict_in(SQLite::Statement& row) {
  const auto text = [&](int column) { return row.getColumn(column).getString(); };
  return {text(0), text(1), text(2), text(3), text(4), text(5), text(6), text(7), text(8)};
}

}  // namespace

Status Store::keep_verdict(const KeptVerdict& verdict) {
  return impl_->guarded([&](SQLite::Database& db) -> Status {
    execute(db,
            "INSERT OR REPLACE INTO kept_verdicts"
            " (id, command, subject, candidate, source, options, status, verdict, created)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            verdict.id, verdict.command, verdict.subject, verdict.candidate, verdict.source, verdict.options,
            verdict.status, verdict.verdict, now_text());
    return {};
  });
}

Result<KeptVerdict> Store::kept_verdict(std::string_view id) const {
  return impl_->guarded([&](SQLite::Database& db) -> Result<KeptVerdict> {
    // Hex digits only, so that nothing in it means more than itself to LIKE.
    const bool plausible = !id.empty() && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    SQLite::Statement query(db, kKeptVerdict + "WHERE id LIKE ? || '%' ORDER BY id LIMIT 2");
    query.bind(1, std::string(id));
    std::vector<KeptVerdict> found;
    while (plausible && query.executeStep()) found.push_back(kept_verdict_in(query));
    if (found.empty()) return usage_error("the store holds no verdict '" + std::string(id) + "'");
    if (found.size() > 1 && found.front().id != id)
      return usage_error("several verdicts begin with '" + std::string(id) + "'");
    return found.front();
  });
}

Result<std::vector<KeptVerdict>> Store::kept_verdicts(int most) const {
  return impl_->guarded([&](SQLite::Database& db) -> Result<std::vector<KeptVerdict>> {
    SQLite::Statement query(db, kKeptVerdict + "ORDER BY created DESC, rowid DESC LIMIT ?");
    query.bind(1, most);
    std::vector<KeptVerdict> found;
    while (query.executeStep()) found.push_back(kept_verdict_in(query));
    return found;
  });
}

Status Store::append_event(const std::string& run, std::string_view kind, std::string_view data) {
  return impl_->guarded([&](SQLite::Database& db) -> Status {
    add_event(db, run, kind, data);
    return {};
  });
}

Result<std::vector<Event>> Store::events(const std::string& run, std::int64_t after) const {
  return impl_->guarded([&](SQLite::Database& db) -> Result<std::vector<Event>> {
    std::vector<Event> all;
    SQLite::Statement query(db,
                            "SELECT id, time, kind, data FROM events WHERE run = ? AND id > ? ORDER BY id");
    query.bind(1, run);
    query.bind(2, after);
    while (query.executeStep()) {
      all.push_back({query.getColumn(0).getInt64(), query.getColumn(1).getString(),
                     query.getColumn(2).getString(), query.getColumn(3).getString()});
    }
    return all;
  });
}

}  // namespace echolo::store
