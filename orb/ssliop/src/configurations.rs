//! On what terms connections are made: as the options say, and kept until they say something else.

use std::time::{Duration, Instant};

use rustls::{ClientConfig, ServerConfig, crypto::CryptoProvider};
use spandrel_sync::{Arc, Mutex};

use crate::options::{Options, SetupError};

#[derive(Debug)]
pub(crate) struct Terms(Mutex<State>);

#[derive(Debug)]
struct State {
    options: Options,
    /// When the files were looked at.
    looked: Instant,
    client: Kept<ClientConfig>,
    server: Kept<ServerConfig>,
}

/// Makes a configuration from the options.
type Make<C> = fn(&Options) -> Result<Arc<C>, SetupError>;

/// A configuration, made when it is first needed. It remembers sessions, to be resumed.
#[derive(Debug)]
struct Kept<C> {
    /// With the function that made it, so that a program that never listens links none for servers.
    config: Option<(Arc<C>, Make<C>)>,
    /// The options have changed since.
    is_stale: bool,
}

impl<C> Kept<C> {
    fn nothing() -> Self {
        Self { config: None, is_stale: false }
    }

    /// Made again, if it was needed at all.
    fn again(&self, options: &Options) -> Result<Self, SetupError> {
        let again = |(_, make): &(_, Make<C>)| make(options).map(|config| (config, *make));
        Ok(Self { config: self.config.as_ref().map(again).transpose()?, is_stale: false })
    }

    /// The configuration by the present options, or the previous one if these cannot be used.
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

impl Terms {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self(Mutex::new(State {
            options: Options::new(provider),
            looked: Instant::now(),
            client: Kept::nothing(),
            server: Kept::nothing(),
        }))
    }

    /// For connections that are made from now on.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Options) -> R) -> R {
        let mut state = self.0.lock();
        let changed = change(&mut state.options);
        state.forget();
        changed
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&Options) -> R) -> R {
        read(&self.0.lock().options)
    }

    /// What clients connect with, and how long a handshake may take.
    pub(crate) fn client(&self) -> Result<(Arc<ClientConfig>, Duration), SetupError> {
        let mut state = self.0.lock();
        state.look();
        let State { options, client, .. } = &mut *state;
        Ok((client.get(options, Options::client)?, options.handshake_timeout))
    }

    /// What servers accept with.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, SetupError> {
        let mut state = self.0.lock();
        state.look();
        let State { options, server, .. } = &mut *state;
        server.get(options, Options::server)
    }

    /// Reads the files anew.
    pub(crate) fn reload(&self) -> Result<(), SetupError> {
        self.0.lock().reload()
    }
}

impl State {
    fn forget(&mut self) {
        self.client.is_stale = true;
        self.server.is_stale = true;
    }

    /// Reads files that have changed, if nobody has looked lately. What cannot be used is told once, and looked at again when it changes.
    fn look(&mut self) {
        let Some(pause) = self.options.reload else { return };
        if self.looked.elapsed() < pause {
            return;
        }
        self.looked = Instant::now();
        if self.options.files.have_changed()
            && let Err(error) = self.reload()
        {
            warn(&error);
        }
    }

    /// All of it, or nothing.
    fn reload(&mut self) -> Result<(), SetupError> {
        let mut options = self.options.clone();
        options.files.read_again(&mut options.papers)?;
        (self.client, self.server) = (self.client.again(&options)?, self.server.again(&options)?);
        self.options = options;
        Ok(())
    }
}

/// An ORB goes on with what it has.
fn warn(error: &SetupError) {
    let cause = std::error::Error::source(error).map(tracing::field::display);
    tracing::warn!(%error, cause, "the new certificates cannot be used: the old ones stay");
}
