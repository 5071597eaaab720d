//! The administration of servers: registrations, starting and ending, and servers that tell their state.

use spandrel::net::error::escape;
use spandrel::net::sync::Arc;
use spandrel::services::activation::{MAX_SERVER_NAME, is_server_name};
use spandrel::services::implementation_repository::administration::{
    ActivateServerError, EnableServerError, FindError, RegisterServerError, RemoveServerError, ServerIsRunningError,
    ServerIsShuttingDownError, ShutdownServerError, UpdateServerError,
};
use spandrel::services::implementation_repository::{
    ActivationMode, AdministrationServant as Operations, AlreadyRegistered, AlreadyRunning, CannotComplete, NotFound,
    ServerInformation, ServerObject, StartupOptions,
};
use spandrel::types::Ior;
use spandrel::{CompletionStatus, SystemException};

use crate::control::{Shared, is_gone, new_token};
use crate::server::{Phase, Server, Stopping};
use crate::store::{Mode, Registration, StoreError};

/// The most octets of a text of the registration.
const MAX_TEXT: usize = 4_096;
/// The most octets of the profiles of a reference.
const MAX_REFERENCE: usize = 16 << 10;

/// The refusal of a process that the activator has not started: clients would be forwarded to any address that a caller
/// names.
const NEEDS_TOKEN: &str =
    "the activator starts this server, so that its process has a token; servers of mode `manual` have none";

/// The servant of the repository.
pub(crate) struct AdministrationServant(pub(crate) Arc<Shared>);

fn cannot(reason: impl Into<String>) -> CannotComplete {
    CannotComplete { reason: reason.into() }
}

impl From<StoreError> for CannotComplete {
    fn from(error: StoreError) -> Self {
        cannot(error.to_string())
    }
}

impl AdministrationServant {
    fn permit<'s>(&self, operation: &str, server: impl Into<Option<&'s str>>) -> Result<(), SystemException> {
        self.0.path_check.as_ref().map_or(Ok(()), |check| check.check(operation, server.into()))
    }

    /// Checks the texts of a registration, and that its command is configured.
    fn check(&self, server: &str, options: &StartupOptions) -> Result<(), CannotComplete> {
        if !is_server_name(server) {
            return Err(cannot(format!(
                "invalid name of a server: expected at most {MAX_SERVER_NAME} letters, digits, `.`, `-` and `_`"
            )));
        }
        let texts = [&options.owner, &options.permissions, &options.description, &options.command];
        if texts.iter().any(|text| text.len() > MAX_TEXT) {
            return Err(cannot(format!("a text has more than {MAX_TEXT} octets")));
        }
        if options.command.is_empty() && options.activation == ActivationMode::Manual {
            return Ok(());
        }
        if options.command.is_empty() {
            return Err(cannot("a server of this mode needs a command"));
        }
        if !self.0.commands.lock().commands.contains_key(&options.command) {
            return Err(cannot(format!(
                "the command `{}` is not in the configuration of the activator",
                escape(&options.command)
            )));
        }
        Ok(())
    }

    /// Changes the registration of a server, on disk first.
    fn change(&self, server: &mut Server, name: &str, registration: Registration) -> Result<(), CannotComplete> {
        self.0.store.set_server(name, &registration)?;
        server.registration = registration;
        Ok(())
    }
}

fn information(name: &str, server: &Server) -> ServerInformation {
    ServerInformation {
        server: name.to_owned(),
        startup: server.registration.options(),
        enabled: server.registration.is_enabled,
        state: server.state(),
        pid: server.process().map_or(0, |process| process.id().pid),
        starts: server.starts,
        failures: server.failures,
        waiting: u32::try_from(server.waiters.len()).unwrap_or(u32::MAX),
        last_failure: server.last_failure.clone(),
    }
}

/// The reference of a server object as it is kept.
fn checked(object: Option<&ServerObject>) -> Result<Ior, CannotComplete> {
    let object = object.ok_or_else(|| cannot("the reference of the server is nil"))?;
    let ior = object.as_object().ior();
    if ior.profiles.iter().map(|profile| profile.data.len()).sum::<usize>() > MAX_REFERENCE {
        return Err(cannot(format!("the reference of the server has more than {MAX_REFERENCE} octets")));
    }
    if spandrel::services::activation::with_key(ior, "", b"key").profiles.is_empty() {
        return Err(cannot("the reference of the server has no IIOP profile"));
    }
    Ok(ior.clone())
}

impl Operations for AdministrationServant {
    fn register_server(&self, server: &str, options: &StartupOptions) -> Result<(), RegisterServerError> {
        self.permit("register_server", server)?;
        self.check(server, options)?;
        let mut core = self.0.core.lock();
        if core.servers.contains_key(server) {
            return Err(AlreadyRegistered {}.into());
        }
        if core.servers.len() >= self.0.limits.max_servers {
            return Err(cannot(format!("{} servers are registered, the limit", core.servers.len())).into());
        }
        let registration = Registration::new(options, true);
        self.0.store.set_server(server, &registration).map_err(CannotComplete::from)?;
        core.servers.insert(server.to_owned(), Server::new(registration));
        Ok(())
    }

    fn update_server(&self, server: &str, options: &StartupOptions) -> Result<(), UpdateServerError> {
        self.permit("update_server", server)?;
        self.check(server, options)?;
        let mut core = self.0.core.lock();
        let entry = core.servers.get_mut(server).ok_or(NotFound {})?;
        let registration = Registration::new(options, entry.registration.is_enabled);
        Ok(self.change(entry, server, registration)?)
    }

    fn remove_server(&self, server: &str) -> Result<(), RemoveServerError> {
        self.permit("remove_server", server)?;
        let mut core = self.0.core.lock();
        let entry = core.servers.get(server).ok_or(NotFound {})?;
        if !matches!(entry.phase, Phase::Stopped | Phase::Failed | Phase::Backoff { .. }) {
            return Err(cannot("the server runs: stop it first").into());
        }
        self.0.store.remove_server(server).map_err(CannotComplete::from)?;
        let removed = core.servers.remove(server);
        let waiters = removed.map(|server| server.waiters).unwrap_or_default();
        core.waiting -= waiters.len();
        drop(core);
        for waiter in waiters {
            waiter.call.end(Err(SystemException::object_not_exist(0, CompletionStatus::No)));
        }
        Ok(())
    }

    fn enable_server(&self, server: &str, enabled: bool) -> Result<(), EnableServerError> {
        self.permit("enable_server", server)?;
        let mut core = self.0.core.lock();
        let entry = core.servers.get_mut(server).ok_or(NotFound {})?;
        let registration = Registration { is_enabled: enabled, ..entry.registration.clone() };
        self.change(entry, server, registration)?;
        drop(core);
        self.0.notify();
        Ok(())
    }

    fn activate_server(&self, server: &str) -> Result<(), ActivateServerError> {
        self.permit("activate_server", server)?;
        let mut core = self.0.core.lock();
        let entry = core.servers.get_mut(server).ok_or(NotFound {})?;
        if !entry.registration.is_enabled {
            return Err(cannot(format!("the server is disabled (`spandrel-activator enable {server}`)")).into());
        }
        if entry.registration.command.is_empty() {
            return Err(cannot("the server has no command: it is started elsewhere").into());
        }
        if matches!(entry.phase, Phase::Running(_)) {
            return Ok(());
        }
        entry.failures = 0;
        entry.last_failure.clear();
        entry.is_wanted = !matches!(entry.phase, Phase::Starting { .. });
        match &mut entry.phase {
            Phase::Failed | Phase::Backoff { .. } => entry.phase = Phase::Stopped,
            Phase::Stopping(stopping) => stopping.failure = None,
            Phase::Starting { .. } | Phase::Running(_) | Phase::Stopped => {}
        }
        drop(core);
        self.0.notify();
        Ok(())
    }

    fn shutdown_server(&self, server: &str, drain: bool) -> Result<(), ShutdownServerError> {
        self.permit("shutdown_server", server)?;
        let mut core = self.0.core.lock();
        let entry = core.servers.get_mut(server).ok_or(NotFound {})?;
        let shutdown = self.0.begin_stop(entry, drain);
        drop(core);
        self.0.notify();
        if let Some(shutdown) = shutdown {
            self.0.send_shutdown(shutdown);
        }
        Ok(())
    }

    fn find(&self, server: &str) -> Result<ServerInformation, FindError> {
        self.permit("find", server)?;
        let core = self.0.core.lock();
        Ok(core.servers.get(server).map(|entry| information(server, entry)).ok_or(NotFound {})?)
    }

    fn list(&self) -> Result<Vec<ServerInformation>, SystemException> {
        self.permit("list", None)?;
        let core = self.0.core.lock();
        Ok(core.servers.iter().map(|(name, server)| information(name, server)).collect())
    }

    fn server_is_running(
        &self,
        server: &str,
        token: &str,
        server_object: Option<&ServerObject>,
    ) -> Result<String, ServerIsRunningError> {
        self.permit("server_is_running", server)?;
        let reference = checked(server_object)?;
        let mut is_other_gone = false;
        loop {
            let mut core = self.0.core.lock();
            let entry = core.servers.get_mut(server).ok_or(NotFound {})?;
            if matches!(entry.phase, Phase::Stopping(_)) && entry.token() == Some(token) {
                return Err(cannot("the server is being ended").into());
            }
            let is_started_elsewhere = entry.registration.activation == Mode::Manual;
            let own = match entry.token() {
                Some(own) if own == token => own.to_owned(),
                None if token.is_empty() && !is_started_elsewhere => return Err(cannot(NEEDS_TOKEN).into()),
                None if token.is_empty() => new_token(),
                None => return Err(cannot("the token is not that of a running process").into()),
                Some(_) => {
                    // Another process. It may have ended without a word, if the activator has not started it.
                    let other = match &entry.phase {
                        Phase::Running(running)
                            if running.process.is_none() && token.is_empty() && is_started_elsewhere =>
                        {
                            running.reference.clone()
                        }
                        _ => return Err(AlreadyRunning {}.into()),
                    };
                    if !is_other_gone {
                        let other = self.0.orb.reference(other).with_timeout(Some(self.0.limits.ping_timeout));
                        drop(core);
                        match other.unchecked_narrow::<ServerObject>().ping() {
                            Err(exception) if is_gone(&exception) => is_other_gone = true,
                            _ => return Err(AlreadyRunning {}.into()),
                        }
                        continue;
                    }
                    new_token()
                }
            };
            self.0.set_running(server, entry, &own, &reference).map_err(CannotComplete::from)?;
            entry.is_wanted = false;
            drop(core);
            self.0.notify();
            return Ok(own);
        }
    }

    fn server_is_shutting_down(&self, server: &str, token: &str) -> Result<(), ServerIsShuttingDownError> {
        self.permit("server_is_shutting_down", server)?;
        let mut core = self.0.core.lock();
        let entry = core.servers.get_mut(server).ok_or(NotFound {})?;
        if entry.token() != Some(token) {
            return Err(SystemException::no_permission(0, CompletionStatus::No)
                .with_detail("the token is not that of the running process")
                .into());
        }
        if matches!(entry.phase, Phase::Stopping(Stopping { failure: Some(_), .. })) {
            return Ok(()); // it is ended for a failure, which counts
        }
        let is_wanted = entry.is_wanted;
        _ = self.0.begin_stop(entry, true);
        entry.is_wanted = is_wanted;
        drop(core);
        self.0.notify();
        Ok(())
    }
}
