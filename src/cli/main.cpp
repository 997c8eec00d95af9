// The `echolo` binary: parses, chooses a command, and turns what it returns into an exit code
// (docs/architecture.md, "Exit codes").
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "cli/session.hpp"

namespace {

using echolo::cli::Session;

// Names that `word` may have been meant as: commands where it looks like one, else options.
std::string suggestion(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  if (word.starts_with('-')) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
  }
  return echolo::did_you_mean(word, names);
}

const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

int bad_usage(const CLI::App& app, const CLI::ParseError& fault) {
  const CLI::App& command = innermost(app);
  std::string hint;
  std::string message = fault.what();
  if (const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&fault); extras != nullptr) {
    const std::vector<std::string> words = app.remaining(true);
    if (!words.empty()) {
      const std::string word = words.front().substr(0, words.front().find('='));
      const bool option = word.starts_with('-');
      const bool commands = !option && !command.get_subcommands([](const CLI::App*) { return true; }).empty();
      message = std::string(option     ? "unknown option "
                            : commands ? "unknown command "
                                       : "unexpected argument ") +
                echolo::printable(word);
      hint = suggestion(command, word);
    }
  }
  echolo::Error error = echolo::usage_error(message, hint);
  std::string name = "echolo";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  if (error.hint.empty()) error.hint = name + " --help";
  Session session;
  session.colour_err = ::isatty(STDERR_FILENO) != 0;
  return session.fail(error);
}

int run(int argc, char** argv) {
  Session session;
  const bool no_colour = std::getenv("NO_COLOR") != nullptr;
  session.colour_out = ::isatty(STDOUT_FILENO) != 0 && !no_colour;
  session.colour_err = ::isatty(STDERR_FILENO) != 0 && !no_colour;

  CLI::App app(
      "EcholoKernel: turns a torch.distributed program into a fused multi-GPU kernel and proves it right",
      "echolo");
  app.set_version_flag("--version", ECHOLO_VERSION);
  app.require_subcommand(1);
  echolo::cli::add_common_options(app, session);
  echolo::cli::add_problems(app, session);
  echolo::cli::add_reference(app, session);
  echolo::cli::add_check(app, session);
  echolo::cli::add_sanitize(app, session);
  echolo::cli::add_replay(app, session);
  echolo::cli::add_optimize(app, session);
  echolo::cli::add_runs(app, session);
  echolo::cli::add_litmus(app, session);
  echolo::cli::add_doctor(app, session);
  echolo::cli::add_later(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::RequiredError& fault) {
    // With an unknown word where a command should be, the missing command is not what is wrong.
    const std::vector<std::string> words = app.remaining(true);
    if (app.get_subcommands().empty() && !words.empty()) return bad_usage(app, CLI::ExtrasError(words));
    return bad_usage(app, fault);
  } catch (const CLI::ParseError& fault) {
    return bad_usage(app, fault);
  }
  return session.chosen ? session.chosen()
                        : session.fail(echolo::usage_error("give a command", "echolo --help"));
}

}  // namespace

int main(int argc, char** argv) {
  echolo::install_interrupt_handler();
  // A full disk or a closed pipe is an error to report, not a reason to die.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "error: a fault in echolo itself: %s\n", fault.what());
    return echolo::cli::kMachineFault;
  }
}
