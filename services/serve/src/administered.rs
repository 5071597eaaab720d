//! The configurator of a process, and its commands.

use std::sync::OnceLock;

use spandrel::net::sync::Arc;
use spandrel_configurator::{Changes, Configurator, ConfigureError, ServiceStatus};

use crate::http_request::is_http;

/// The reason why a line that an administrator has sent had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The line is no command: its sender may be no administrator, but a program that was made to send something else.
    NoCommand(String),
    /// The configurator has refused or failed to carry out the command.
    Failed(String),
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::NoCommand(reason) | Self::Failed(reason)) = self;
        f.write_str(reason)
    }
}

/// The configurator of the process, once there is one: the administration is one of its services.
#[derive(Clone, Default)]
pub struct Administered(Arc<OnceLock<Configurator>>);

impl std::fmt::Debug for Administered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Administered").field(&self.0.get()).finish()
    }
}

impl Administered {
    /// The commands that a service `Administration` takes, a line for each.
    pub const COMMANDS: &str = "\
list            the services, one in a line: name, state, source, description
info NAME       the description of a service
metrics         the numbers of all services, as Prometheus reads them
libraries       libraries of removed services that are still mapped
reconfigure     read the files of the configuration again
help            this list
dynamic … static … stream … suspend NAME resume NAME remove NAME
                directives of svc.conf";

    /// Makes the configurator known to the services that administer it. Only the first call has an effect.
    pub fn set(&self, configurator: &Configurator) {
        _ = self.0.set(configurator.clone());
    }

    pub(crate) fn get(&self) -> Result<&Configurator, String> {
        self.0.get().ok_or_else(|| "the process has no configurator yet".to_owned())
    }

    /// Carries out one of [`COMMANDS`](Self::COMMANDS) and returns the lines of the answer.
    ///
    /// # Errors
    /// The reason in one line.
    pub fn command(&self, command: &[u8]) -> Result<Vec<String>, CommandError> {
        if is_http(command) {
            return Err(CommandError::NoCommand("this is no HTTP server".to_owned()));
        }
        let Ok(command) = std::str::from_utf8(command) else {
            return Err(CommandError::NoCommand("the command is no text in UTF-8".to_owned()));
        };
        // Files may have them between words; before a command they are those of a binary protocol.
        if command.trim_start().starts_with(char::is_control) {
            return Err(CommandError::NoCommand("the command begins with a control character".to_owned()));
        }
        let configurator = self.get().map_err(CommandError::Failed)?;
        let repository = configurator.repository();
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            [] => Ok(Vec::new()),
            ["help"] => Ok(Self::COMMANDS.lines().map(str::to_owned).collect()),
            ["list"] => Ok(repository.iter().map(|service| self.line(configurator, &service)).collect()),
            ["info", name] => {
                let info = repository.info(name);
                Ok(vec![info.ok_or_else(|| CommandError::Failed(format!("there is no service `{name}`")))?])
            }
            ["metrics"] => Ok(repository.render_metrics().lines().map(str::to_owned).collect()),
            ["libraries"] => Ok(repository
                .kept_libraries()
                .iter()
                .map(|library| format!("{} {} users", library.file.display(), library.users))
                .collect()),
            ["reconfigure"] => changed(command, configurator.reconfigure()).map_err(CommandError::Failed),
            _ => {
                let outcome = configurator.process_text(command);
                let is_command = !matches!(outcome, Err(ConfigureError::Read(_)));
                let error = if is_command { CommandError::Failed } else { CommandError::NoCommand };
                changed(command, outcome).map_err(error)
            }
        }
    }

    fn line(&self, configurator: &Configurator, service: &ServiceStatus) -> String {
        let state = if service.is_suspended { "suspended" } else { "active" };
        let info = configurator.repository().info(&service.name).unwrap_or_default();
        format!("{} {state} {} {info}", service.name, service.source)
    }
}

/// The answer to a command that changes something, which is logged.
fn changed(command: &str, outcome: Result<Changes, ConfigureError>) -> Result<Vec<String>, String> {
    match outcome {
        Ok(changes) => {
            tracing::info!(command, "administration: {changes}");
            Ok(vec![changes.to_string()])
        }
        Err(error) => {
            let reason = error.in_line();
            tracing::warn!(command, "administration: {reason}");
            Err(reason)
        }
    }
}
