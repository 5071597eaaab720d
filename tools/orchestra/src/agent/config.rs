//! The configuration of an agent: the commands that it starts, and the supervisors that it obeys.
//!
//! ```toml
//! host = "bobsdell"                               # by default the machine's own name
//! supervisors = ["cn:supervisor"]                 # identities of certificates, as in a policy of authorization
//! targets = ["192.168.0.*"]                       # hosts to which load may be applied
//! max_workers = 1024                              # of one load
//!
//! [commands.transfer]
//! program = "/usr/libexec/transfer-server"        # an absolute path
//! arguments = ["--port", "60002"]                 # behind the architecture, or with {architecture} anywhere
//! architectures = ["iterative", "thread-pool"]
//! environment = { TMPDIR = "/tmp/{architecture}-{workers}" } # the only variables besides PATH, HOME, LANG and TZ
//! version = ["--version"]                         # arguments with which the program prints its version
//! end = "signal"                                  # or "close-stdin", for programs without SIGTERM
//! start_timeout = "20s"                           # until the line `listening HOST:PORT`
//! max_workers = 64                                # of a pool
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use wildmatch::WildMatch;

use crate::idl::orchestra::{Refused, Server};

/// The most octets of a configuration.
const MAX_CONFIGURATION: u64 = 1 << 20;
/// The place of the architecture in arguments and variables.
const ARCHITECTURE: &str = "{architecture}";
/// The place of the workers of the pool in variables.
const WORKERS: &str = "{workers}";

/// The file that says which programs an agent may start, and who may ask for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// The name of the machine in the naming service.
    pub host: Option<String>,
    /// The identities that may call the agent.
    #[serde(default)]
    pub supervisors: Vec<String>,
    /// Patterns of the hosts to which load may be applied.
    pub targets: Option<Vec<String>>,
    /// The most workers of a load.
    #[serde(default = "many_workers")]
    pub max_workers: u32,
    /// The programs that may be started, by the name that plans use.
    #[serde(default)]
    pub commands: BTreeMap<String, CommandConfig>,
}

/// A program that an agent may start, with its arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments, behind the architecture unless one contains `{architecture}`.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The architectures that may be chosen.
    pub architectures: Vec<String>,
    /// Environment variables. Their values may contain `{architecture}` and `{workers}`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The arguments with which the program prints its version.
    pub version: Option<Vec<String>>,
    /// The way in which it is ended.
    #[serde(default)]
    pub end: End,
    /// The time until it listens.
    #[serde(default = "start_timeout", deserialize_with = "duration")]
    pub start_timeout: Duration,
    /// The most workers of a pool.
    #[serde(default = "pool_workers")]
    pub max_workers: u32,
}

/// The way in which a program is told to end.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By the signal SIGTERM.
    #[default]
    Signal,
    /// By the end of its standard input.
    CloseStdin,
}

fn many_workers() -> u32 {
    1024
}

fn pool_workers() -> u32 {
    64
}

fn start_timeout() -> Duration {
    Duration::from_secs(20)
}

pub(crate) fn duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text).map_err(|error| {
        serde::de::Error::custom(format!("invalid time \"{text}\": expected one such as \"20s\": {error}"))
    })
}

impl AgentConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// A file that cannot be read, or has another syntax; a program without an absolute path.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let read = || match fs::metadata(file)?.len() {
            0..=MAX_CONFIGURATION => fs::read_to_string(file),
            _ => Err(io::Error::other(format!("it has more than {MAX_CONFIGURATION} octets"))),
        };
        let text = read().with_context(|| format!("cannot read {} (--commands)", file.display()))?;
        let parsed: Self = spandrel_daemon::parse_toml(&text)
            .with_context(|| format!("{} (--commands) is malformed", file.display()))?;
        for (name, command) in &parsed.commands {
            if !command.program.is_absolute() {
                let program = command.program.display();
                bail!("{}: command `{name}`: `{program}` is not an absolute path", file.display());
            }
            if command.architectures.is_empty() {
                bail!("{}: command `{name}` has no architecture", file.display());
            }
        }
        Ok(parsed)
    }

    /// The command of a server, if this configuration allows it.
    pub(crate) fn allowed(&self, server: &Server) -> Result<&CommandConfig, Refused> {
        let refused = |reason| Err(Refused { reason });
        let Some(command) = self.commands.get(&server.name) else {
            return refused(format!("the agent's configuration has no command `{}`", server.name));
        };
        if !command.architectures.contains(&server.architecture) {
            return refused(format!(
                "the agent's configuration has no architecture `{}` of the command `{}`",
                server.architecture, server.name
            ));
        }
        if server.workers > command.max_workers {
            return refused(format!(
                "{} workers exceed max_workers = {} of the command `{}`",
                server.workers, command.max_workers, server.name
            ));
        }
        Ok(command)
    }

    /// Whether load may be applied to this host.
    pub(crate) fn check_target(&self, host: &str, is_insecure: bool) -> Result<(), Refused> {
        let is_loopback =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let is_allowed = match &self.targets {
            Some(patterns) => patterns.iter().any(|pattern| WildMatch::new(pattern).matches(host)),
            None => is_loopback || !is_insecure,
        };
        match is_allowed {
            true => Ok(()),
            false => Err(Refused { reason: format!("the agent's configuration (targets) excludes the host `{host}`") }),
        }
    }

    /// The policy of authorization that lets only the supervisors call.
    pub(crate) fn policy(&self) -> anyhow::Result<spandrel::authorization::Policy> {
        if self.supervisors.is_empty() {
            bail!("the configuration names no supervisors: supervisors = [\"cn:…\"]");
        }
        // A string of JSON is one of TOML.
        let identities = self.supervisors.iter().map(|identity| serde_json::Value::from(identity.as_str()).to_string());
        let identities: Vec<String> = identities.collect();
        let text = format!("[[rule]]\naction = \"allow\"\nidentity = [{}]\n", identities.join(", "));
        text.parse().context("supervisors of the configuration are invalid")
    }
}

impl CommandConfig {
    /// The arguments of a server: `ARCHITECTURE [--workers N] [--no-greeting]`, with those of the configuration.
    pub(crate) fn words(&self, server: &Server) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if !self.arguments.iter().any(|argument| argument.contains(ARCHITECTURE)) {
            words.push(server.architecture.clone());
        }
        words.extend(self.arguments.iter().map(|argument| argument.replace(ARCHITECTURE, &server.architecture)));
        if server.workers > 0 {
            words.extend(["--workers".to_owned(), server.workers.to_string()]);
        }
        if !server.greeting {
            words.push("--no-greeting".to_owned());
        }
        words
    }

    /// The environment variables of a server.
    pub(crate) fn variables(&self, server: &Server) -> impl Iterator<Item = (&str, String)> {
        let workers = server.workers.to_string();
        self.environment.iter().map(move |(name, value)| {
            (name.as_str(), value.replace(ARCHITECTURE, &server.architecture).replace(WORKERS, &workers))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_differ_between_servers() {
        let text = "program = '/bin/a'\narchitectures = ['pool']\nenvironment = { A = 'x', B = '/b/{architecture}-{workers}' }";
        let command: CommandConfig = spandrel_daemon::parse_toml(text).unwrap();
        let server = Server { name: "n".to_owned(), architecture: "pool".to_owned(), workers: 5, greeting: true };
        let variables: Vec<_> = command.variables(&server).collect();
        assert_eq!(variables, [("A", "x".to_owned()), ("B", "/b/pool-5".to_owned())]);
    }
}
