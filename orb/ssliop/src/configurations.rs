//! The configurations of connections: built from the options, and reused until these change.

use std::time::{Duration, Instant};

use rustls::{ClientConfig, ServerConfig, crypto::CryptoProvider};
use spandrel_sync::{Arc, Mutex};

use crate::options::{Options, SetupError};

#[derive(Debug)]
pub(crate) struct Configurations(Mutex<State>);

#[derive(Debug)]
struct State {
    options: Options,
    /// The time of the last check of the files.
    checked_at: Instant,
    client: CachedConfig<ClientConfig>,
    server: CachedConfig<ServerConfig>,
}

/// Builds a configuration from the options.
type Make<C> = fn(&Options) -> Result<Arc<C>, SetupError>;

/// A configuration, built on first use. It stores sessions for resumption.
#[derive(Debug)]
struct CachedConfig<C> {
    /// With the function that built it, so that a program without servers links no code for them.
    config: Option<(Arc<C>, Make<C>)>,
    /// Whether the options have changed since.
    is_stale: bool,
}

impl<C> CachedConfig<C> {
    fn nothing() -> Self {
        Self { config: None, is_stale: false }
    }

    /// Builds the configuration again, if it was in use.
    fn rebuild(&self, options: &Options) -> Result<Self, SetupError> {
        let rebuild = |(_, make): &(_, Make<C>)| make(options).map(|config| (config, *make));
        Ok(Self { config: self.config.as_ref().map(rebuild).transpose()?, is_stale: false })
    }

    /// The configuration for the present options, or the previous one if these are unusable.
    fn get(&mut self, options: &Options, make: Make<C>) -> Result<Arc<C>, SetupError> {
        match &self.config {
            Some((config, _)) if !self.is_stale => return Ok(Arc::clone(config)),
            _ => self.is_stale = false,
        }
        match (make(options), &self.config) {
            (Ok(made), _) => {
                self.config = Some((Arc::clone(&made), make));
                Ok(made)
            }
            (Err(error), None) => Err(error),
            (Err(error), Some((config, _))) => {
                warn(&error);
                Ok(Arc::clone(config))
            }
        }
    }
}

impl Configurations {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self(Mutex::new(State {
            options: Options::new(provider),
            checked_at: Instant::now(),
            client: CachedConfig::nothing(),
            server: CachedConfig::nothing(),
        }))
    }

    /// Changes the options for later connections.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Options) -> R) -> R {
        let mut state = self.0.lock();
        let changed = change(&mut state.options);
        state.forget();
        changed
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&Options) -> R) -> R {
        read(&self.0.lock().options)
    }

    /// The configuration of clients, and the time limit of a handshake.
    pub(crate) fn client(&self) -> Result<(Arc<ClientConfig>, Duration), SetupError> {
        let mut state = self.0.lock();
        state.check_files();
        let State { options, client, .. } = &mut *state;
        Ok((client.get(options, Options::client)?, options.handshake_timeout))
    }

    /// The configuration of servers.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, SetupError> {
        let mut state = self.0.lock();
        state.check_files();
        let State { options, server, .. } = &mut *state;
        server.get(options, Options::server)
    }

    /// Reads the files again.
    pub(crate) fn reload(&self) -> Result<(), SetupError> {
        self.0.lock().reload()
    }
}

impl State {
    fn forget(&mut self) {
        self.client.is_stale = true;
        self.server.is_stale = true;
    }

    /// Reads changed files, unless they were checked recently. An unusable file is logged once, and read
    /// again after its next change.
    fn check_files(&mut self) {
        let Some(pause) = self.options.reload else { return };
        if self.checked_at.elapsed() < pause {
            return;
        }
        self.checked_at = Instant::now();
        if self.options.files.have_changed()
            && let Err(error) = self.reload()
        {
            warn(&error);
        }
    }

    /// Replaces all files' contents, or none.
    fn reload(&mut self) -> Result<(), SetupError> {
        let mut options = self.options.clone();
        options.files.read_again(&mut options.credentials)?;
        (self.client, self.server) = (self.client.rebuild(&options)?, self.server.rebuild(&options)?);
        self.options = options;
        Ok(())
    }
}

/// The ORB continues with the old certificates.
fn warn(error: &SetupError) {
    let cause = std::error::Error::source(error).map(tracing::field::display);
    tracing::warn!(%error, cause, "the new certificates are unusable: the old ones stay in use");
}
