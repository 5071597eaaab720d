//! The configuration of commands: the only programs that are run.
//!
//! ```toml
//! [commands.bank]
//! program = "/opt/bank/bin/bank-server"           # an absolute path
//! arguments = ["--branch", "{server}"]            # {server} is its name, {repository} the URL of this activator;
//!                                                 # {{name}} is the text {name}
//! environment = { SPANDREL_LOG = "info" }         # the only variables besides PATH, HOME, LANG and TZ
//! working_directory = "/var/lib/bank"             # by default the activator's data folder
//! orb_arguments = true                            # whether -ORBUseImR 1 and the like are appended
//! metrics = "127.0.0.1:9464"                      # where a server shows its metrics; appended as -ORBMetricsEndpoint
//! uid = 1001                                      # Unix: another user and group, if the activator runs as root
//! gid = 1001
//!
//! [commands.bank.limits]                          # each may be absent, and is at least 1
//! cpu_seconds = 3600
//! memory = 536870912                              # octets of address space
//! descriptors = 1024
//! instances = 4                                   # servers that run this command at the same time
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use spandrel::net::error::escape;
use spandrel::services::activation::TOKEN_VARIABLE;

/// The most octets of a configuration.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// The programs that administrators may name in a registration: they choose an entry, never a path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// The entries by the name that registrations use.
    #[serde(default)]
    pub commands: BTreeMap<String, Command>,
}

/// A program with its arguments, environment and limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The absolute path of the program.
    #[serde(deserialize_with = "absolute")]
    pub program: PathBuf,
    /// Its arguments; `{server}` in them is the name of the server, `{repository}` the URL of the activator, and
    /// `{{name}}` the text `{name}`.
    #[serde(default, deserialize_with = "arguments")]
    pub arguments: Vec<String>,
    /// Environment variables of the process besides PATH, HOME, LANG and TZ.
    #[serde(default, deserialize_with = "environment")]
    pub environment: BTreeMap<String, String>,
    /// The absolute path of the working directory; that of the data by default.
    #[serde(default, deserialize_with = "absolute_folder")]
    pub working_directory: Option<PathBuf>,
    /// Whether the ORB options of a started server are appended to the arguments (default true).
    #[serde(default = "yes")]
    pub orb_arguments: bool,
    /// The address at which a server of this command shows its metrics (`-ORBMetricsEndpoint`), for the console. It is one
    /// of the ORB options that are appended.
    pub metrics: Option<SocketAddr>,
    /// The user of the process (Unix).
    pub uid: Option<u32>,
    /// The group of the process (Unix).
    pub gid: Option<u32>,
    /// Resources of each started process, as `setrlimit` bounds them.
    #[serde(default)]
    pub limits: ResourceLimits,
}

/// The limits of a process, and of the processes of a command. All but `instances` exist on Linux only.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    /// Processor time, in seconds (`RLIMIT_CPU`).
    #[serde(default, deserialize_with = "at_least_one")]
    pub cpu_seconds: Option<u64>,
    /// Address space, in octets (`RLIMIT_AS`).
    #[serde(default, deserialize_with = "at_least_one")]
    pub memory: Option<u64>,
    /// Files open at the same time (`RLIMIT_NOFILE`).
    #[serde(default, deserialize_with = "at_least_one")]
    pub descriptors: Option<u64>,
    /// Processes of this command at the same time, over all servers.
    #[serde(default, deserialize_with = "at_least_one")]
    pub instances: Option<usize>,
}

fn yes() -> bool {
    true
}

/// A path that does not depend on the working directory.
fn absolute<'d, D: Deserializer<'d>>(deserializer: D) -> Result<PathBuf, D::Error> {
    absolute_path("program", PathBuf::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// As [`absolute`], for a working directory.
fn absolute_folder<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let folder = Option::deserialize(deserializer)?;
    folder.map(|folder| absolute_path("working_directory", folder)).transpose().map_err(D::Error::custom)
}

fn absolute_path(setting: &str, path: PathBuf) -> Result<PathBuf, String> {
    without_nul(setting, &path.to_string_lossy())?;
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(format!("{setting} `{}` is not an absolute path", escape(&path.display().to_string())))
    }
}

/// Arguments with known placeholders.
fn arguments<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let arguments = Vec::<String>::deserialize(deserializer)?;
    for argument in &arguments {
        without_nul("an argument", argument).map_err(D::Error::custom)?;
        expand(argument, "", "").map_err(D::Error::custom)?;
    }
    Ok(arguments)
}

/// Variables that a process can have, without that of the token.
fn environment<'d, D: Deserializer<'d>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<String, String>::deserialize(deserializer)?;
    for (name, value) in &variables {
        let shown = escape(name);
        // Windows has them without case.
        let problem = if name.is_empty() || name.contains('=') {
            format!("invalid name of an environment variable `{shown}`: it is empty or has `=`")
        } else if name.eq_ignore_ascii_case(TOKEN_VARIABLE) {
            format!("the environment variable `{shown}` has the token of the activator, and cannot be set")
        } else {
            let checked = without_nul("an environment variable", name).and_then(|()| without_nul(name, value));
            checked.map_err(D::Error::custom)?;
            continue;
        };
        return Err(D::Error::custom(problem));
    }
    Ok(variables)
}

/// Refuses NUL, which no process can be given.
fn without_nul(setting: &str, text: &str) -> Result<(), String> {
    if text.contains('\0') { Err(format!("{setting} has a NUL character")) } else { Ok(()) }
}

/// A limit that permits something.
fn at_least_one<'d, D, N>(deserializer: D) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'d>,
    N: Deserialize<'d> + Default + PartialEq,
{
    let limit = Option::deserialize(deserializer)?;
    if limit == Some(N::default()) {
        return Err(D::Error::custom("a limit of 0 permits no process: expected at least 1, or no such setting"));
    }
    Ok(limit)
}

/// An argument with the name of a server and the URL of the activator. Braces around anything but a name stay as they
/// are, and `${name}` does unless it is known.
///
/// # Errors
/// An explanation of the first unknown placeholder.
pub(crate) fn expand(argument: &str, server: &str, repository: &str) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = argument;
    while let Some(place) = rest.find('{') {
        let (before, braced) = rest.split_at(place);
        expanded.push_str(before);
        let len = match (name_between(braced, "{{", "}}"), name_between(braced, "{", "}")) {
            (Some(name), _) => {
                expanded.push_str(&braced[1..name.len() + 3]);
                name.len() + 4
            }
            (None, Some(name)) => {
                expanded.push_str(match name {
                    "server" => server,
                    "repository" => repository,
                    _ if before.ends_with('$') => &braced[..name.len() + 2],
                    _ => {
                        return Err(format!(
                            "unknown placeholder `{{{name}}}` in an argument: expected `{{server}}` or \
                             `{{repository}}`; `{{{{{name}}}}}` is the text `{{{name}}}`"
                        ));
                    }
                });
                name.len() + 2
            }
            (None, None) => {
                expanded.push('{');
                1
            }
        };
        rest = &braced[len..];
    }
    Ok(expanded + rest)
}

/// The name at the beginning of a text between these braces.
fn name_between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (name, _) = text.strip_prefix(open)?.split_once(close)?;
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
    is_name.then_some(name)
}

/// A failure of [`Commands::read`], with the file and the reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandsError {
    /// The operating system did not open or read the file.
    #[error("cannot read the commands {}: {source}", .file.display())]
    Read {
        /// The file that cannot be read.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// It is not TOML of the expected form.
    #[error("cannot read the commands {}: {reason}", .file.display())]
    Syntax {
        /// The file with the error.
        file: PathBuf,
        /// The error with its line.
        reason: String,
    },
}

impl Commands {
    /// Reads the file `commands.toml`, or another one of its form.
    ///
    /// # Errors
    /// A file that cannot be read, has another syntax, or names a program without an absolute path.
    pub fn read(file: &Path) -> Result<Self, CommandsError> {
        let read = || {
            if fs::metadata(file)?.len() > MAX_CONFIGURATION {
                return Err(io::Error::other(format!("it has more than {MAX_CONFIGURATION} octets")));
            }
            fs::read_to_string(file)
        };
        let text = read().map_err(|source| CommandsError::Read { file: file.to_owned(), source })?;
        Self::parse(&text).map_err(|reason| CommandsError::Syntax { file: file.to_owned(), reason })
    }

    fn parse(text: &str) -> Result<Self, String> {
        spandrel_daemon::parse_toml(text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_all_settings_is_read() {
        let text = "[commands.bank]\nprogram = '/bin/true'\narguments = ['{server}']\nuid = 7\n\
                    environment = { A = 'b' }\norb_arguments = false\nmetrics = '127.0.0.1:9464'\n[commands.bank.limits]\ncpu_seconds = 1\n\
                    memory = 2\ndescriptors = 3\ninstances = 4\n";
        if cfg!(windows) {
            return; // the path is not absolute there
        }
        let commands = Commands::parse(text).unwrap();
        let bank = &commands.commands["bank"];
        let limits = ResourceLimits { cpu_seconds: Some(1), memory: Some(2), descriptors: Some(3), instances: Some(4) };
        assert_eq!((bank.limits, bank.uid, bank.orb_arguments), (limits, Some(7), false));
        assert_eq!(bank.metrics, Some(SocketAddr::from(([127, 0, 0, 1], 9464))));
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_stay() {
        for (argument, expanded) in [
            ("{server} at {repository}{server}", "bank at corbaloc::bank"),
            ("{{server}} {{foo}}", "{server} {foo}"),
            ("{ print } {a,b} x{3} ${HOME} ${server} {\"a\":{}} {", "{ print } {a,b} x{3} ${HOME} $bank {\"a\":{}} {"),
            ("no braces \u{fc}", "no braces \u{fc}"),
        ] {
            assert_eq!(expand(argument, "bank", "corbaloc::").as_deref(), Ok(expanded), "{argument}");
        }
        let error = expand("{foo}", "", "").unwrap_err();
        assert!(error.ends_with("expected `{server}` or `{repository}`; `{{foo}}` is the text `{foo}`"), "{error}");
    }

    #[test]
    fn errors_are_one_line_with_a_place_and_a_reason() {
        let program = if cfg!(windows) { "program = 'C:\\true.exe'" } else { "program = '/bin/true'" };
        let command = format!("[commands.a]\n{program}\n");
        for (text, expected) in [
            ("[commands.a]\nprogram = 'bin/true'".to_owned(), "line 2: program `bin/true` is not an absolute path"),
            (format!("{command}shell = true"), "line 3: unknown field `shell`, expected one of `program`"),
            ("\n[commands.a]\narguments = []".to_owned(), "line 2: missing field `program`"),
            (format!("{command}uid = 'grace'"), "line 3: invalid type: string \"grace\", expected u32"),
            (format!("{command}metrics = 'here'"), "line 3: invalid socket address syntax"),
            ("[command.a]".to_owned(), "line 1: unknown field `command`, expected `commands`"),
            (format!("{command}limits = {{ instances = 0 }}"), "line 3: a limit of 0 permits no process"),
            (format!("{command}[commands.a.limits]\ncpu_seconds = 1\ndescriptors = 0"), "line 5: a limit of 0"),
            (format!("{command}arguments = ['{{server}}', '--at={{foo}}']"), "line 3: unknown placeholder `{foo}`"),
            (format!("{command}[commands.b"), "line 3: "),
            (format!("{command}uid ="), "line 3: "),
            (
                format!("{command}working_directory = 'data'"),
                "line 3: working_directory `data` is not an absolute path",
            ),
            (format!("{command}working_directory = ''"), "line 3: working_directory `` is not an absolute path"),
            (format!("{command}arguments = [\"a\\u0000\"]"), "line 3: an argument has a NUL character"),
            (
                format!("{command}environment = {{ \"A=B\" = 'c' }}"),
                "line 3: invalid name of an environment variable `A=B`",
            ),
            (format!("{command}environment = {{ \"\" = 'c' }}"), "line 3: invalid name of an environment variable"),
            (format!("{command}environment = {{ \"A\\u0000\" = 'c' }}"), "line 3: an environment variable has a NUL"),
            (format!("{command}environment = {{ A = \"\\u0000\" }}"), "line 3: A has a NUL character"),
            (format!("{command}environment = {{ {TOKEN_VARIABLE} = 'c' }}"), "line 3: the environment variable"),
        ] {
            let error = Commands::parse(&text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
