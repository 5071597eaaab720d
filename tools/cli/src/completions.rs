//! Completion in a shell: of commands and options, of names from the naming service, and of operations from the interface repository or
//! the IDL file.
//!
//! The shell runs `spandrel` with the environment variable `COMPLETE`, and the words of the command line as arguments. A
//! completion that needs the network takes at most [`TIMEOUT`], and is empty after any error.

use std::env;
use std::ffi::{OsStr, OsString};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches as _};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use spandrel::net::sync::time::Deadline;
use spandrel::services::name;

use crate::call::interface::InterfaceArgs;
use crate::orb_args::ClientOrbArgs;
use crate::{common, external, naming};

const EXAMPLES: &str = "\
Examples:
  spandrel completions bash > ~/.local/share/bash-completion/completions/spandrel
  spandrel completions zsh > ~/.zfunc/_spandrel
  spandrel completions fish > ~/.config/fish/completions/spandrel.fish";

/// The environment variable by which a shell asks for completions.
const VARIABLE: &str = "COMPLETE";
/// The longest time for the answers of services.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The most candidates that a completion returns.
const MAX_CANDIDATES: usize = 2000;

/// The end for bash: a function that the shell calls instead of the one before.
const BASH_COLONS: &str = include_str!("completions/colons.bash");

/// The last line for zsh. It loads the script as a function when something is completed for the first time, which is to be
/// completed, too.
const ZSH_FIRST: &str = "if [[ $funcstack[1] == _spandrel ]]; then _clap_dynamic_completer_spandrel \"$@\"; fi\n";

/// Print a script that completes commands, options, names and operations in a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let shells = Shells::builtins();
        let Some(shell) = shells.completer(&self.shell) else { anyhow::bail!("`{}` is no known shell", self.shell) };
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "spandrel", "spandrel", "spandrel", &mut script)?;
        let mut script = String::from_utf8(script)?;
        match &*self.shell {
            "bash" => script += BASH_COLONS,
            "zsh" => script += ZSH_FIRST,
            _ => {}
        }
        common::print(&script)
    }
}

/// The command line of the program.
static COMMAND: OnceLock<fn() -> Command> = OnceLock::new();

/// Prints the completions and ends the process, if a shell asks for them; `command` makes the command line.
pub(crate) fn answer(command: fn() -> Command) {
    _ = COMMAND.set(command);
    if env::var_os(VARIABLE).is_some() {
        let own: Vec<String> = command().get_subcommands().map(|own| own.get_name().to_owned()).collect();
        // An executable that cannot be started has no completions.
        _ = external::complete(words_given().get(1..).unwrap_or_default(), &own);
    }
    CompleteEnv::with_factory(completed).var(VARIABLE).complete();
}

/// The arguments that are names, by the commands that have them.
const NAMES: [(&str, &str); 10] = [
    ("ping", "reference"),
    ("ior", "reference"),
    ("call", "reference"),
    ("describe", "reference"),
    ("watch", "reference"),
    ("list", "context"),
    ("tree", "context"),
    ("bind", "name"),
    ("bind", "reference"),
    ("unbind", "name"),
];

/// The command line with the completions of arguments. Changing an argument moves it behind the others, so that positional
/// ones have their places in their declarations.
fn completed() -> Command {
    let command = COMMAND.get().expect("it is set before completions are asked for")();
    let with =
        |command: Command, of: &'static str, argument: &'static str, find: fn(&OsStr) -> Vec<CompletionCandidate>| {
            command.mut_subcommand(of, |of| of.mut_arg(argument, |argument| argument.add(ArgValueCompleter::new(find))))
        };
    // Executables complete their own arguments. The process ends with its answer, which needs the names.
    let external = external::commands().into_iter().filter(|name| command.find_subcommand(name).is_none());
    let external: Vec<Command> = external.map(|name| Command::new(&*name.leak())).collect();
    let command = command.subcommands(external);
    let command = NAMES.into_iter().fold(command, |command, (of, argument)| with(command, of, argument, names));
    ["call", "watch"].into_iter().fold(command, |command, of| with(command, of, "operation", operations))
}

/// Names of the naming service that begin like this.
fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str().map(str::to_owned) else { return Vec::new() };
    bounded(move || names_below(&current))
}

fn names_below(current: &str) -> Option<Vec<CompletionCandidate>> {
    // What stands before the last component is kept.
    let start = current.rfind(['/', '#']).map_or(0, |separator| separator + 1);
    let (before, begun) = current.split_at(start);
    if naming::is_url(current) && !before.contains('#') {
        return None;
    }
    let matches = words()?;
    let orb = ClientOrbArgs::from_arg_matches(&matches).ok()?.orb(TIMEOUT).ok()?;
    let context = naming::Place::resolve(&orb, before.trim_end_matches('/')).ok()?.context().ok()?;
    let mut candidates = Vec::new();
    naming::each_binding(&context, Deadline::after(TIMEOUT), &mut |binding| {
        let name = name::to_string(&binding.binding_name);
        if name.starts_with(begun) {
            let end = if naming::is_context(&binding) { "/" } else { "" };
            candidates.push(CompletionCandidate::new(format!("{before}{name}{end}")));
        }
        Ok(candidates.len() < MAX_CANDIDATES)
    })
    .ok()?;
    Some(candidates)
}

/// Operations and attributes of the object on the command line that begin like this.
fn operations(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str().map(str::to_owned) else { return Vec::new() };
    bounded(move || {
        let matches = words()?;
        let orb = ClientOrbArgs::from_arg_matches(&matches).ok()?.orb(TIMEOUT).ok()?;
        let object = naming::object(&orb, matches.get_one::<String>("reference")?).ok()?;
        let interface = InterfaceArgs::from_arg_matches(&matches).ok()?.find(&orb, &object).ok()?.interface;
        let attributes = interface.attributes().iter().map(|attribute| (attribute.name.clone(), attribute.to_string()));
        let operations = interface.operations().iter().filter(|operation| !operation.name.starts_with('_'));
        let operations = operations.map(|operation| (operation.name.clone(), operation.to_string()));
        let all = attributes.chain(operations).filter(|(name, _)| name.starts_with(&current));
        Some(all.map(|(name, declared)| CompletionCandidate::new(name).help(Some(declared.into()))).collect())
    })
}

/// The words of the command line, as far as they are complete.
fn words() -> Option<ArgMatches> {
    let matches = COMMAND.get()?().ignore_errors(true).try_get_matches_from(words_given()).ok()?;
    matches.subcommand().map(|(_, matches)| matches.clone())
}

/// The words of the command line, with `spandrel` itself: the shell's script gives them behind `--`.
fn words_given() -> Vec<OsString> {
    env::args_os().skip_while(|word| word != "--").skip(1).collect()
}

/// The candidates that a function finds in time.
fn bounded(find: impl FnOnce() -> Option<Vec<CompletionCandidate>> + Send + 'static) -> Vec<CompletionCandidate> {
    let (sender, receiver) = mpsc::channel();
    // The process ends without it if it takes too long.
    let started = thread::Builder::new().spawn(move || drop(sender.send(find().unwrap_or_default())));
    if started.is_err() {
        return Vec::new();
    }
    receiver.recv_timeout(TIMEOUT).unwrap_or_default()
}
