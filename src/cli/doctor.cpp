// echolo doctor
#include "judge/doctor.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/session.hpp"

namespace echolo::cli {

void add_doctor(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine has and lacks, and the command that mends it");
  add_common_options(*command, session);
  command->callback([&session] {
    session.chosen = [&session] {
      Result<std::string> store = session.store_path();
      if (!store) return session.fail(store.error());
      auto progress = session.progress();
      progress->stage("doctor", "looking at compiler, PyTorch and sandbox");
      Result<std::vector<judge::Examination>> all = judge::examine_machine(*store);
      progress.reset();
      if (!all) return session.fail(all.error());
      return session.print(
          session.json ? judge::to_json(*all).dump(2) + "\n" : judge::render(*all, session.colour_out),
          judge::nothing_needed_is_missing(*all) ? kGood : kMachineFault);
    };
  });
}

}  // namespace echolo::cli
