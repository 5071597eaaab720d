//! The options of the web console.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::anyhow;
use spandrel::diagnostics::log::LogTail;
use spandrel_console::{Console, ConsoleOptions};
use spandrel_daemon::{Daemon, Failure, FailureKind};
use spandrel_proxy::http::Tokens;

use crate::Services;

/// The options of the web console.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConsoleArgs {
    /// Serve the web console at this address. Without TLS: other machines should reach it only through a server that adds TLS
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8809")]
    console: Option<SocketAddr>,
    /// A name of this host by which browsers may address the console, besides its address and `localhost`; may be given more
    /// than once
    #[arg(long, value_name = "NAME", requires = "console")]
    console_host: Vec<String>,
    /// The tokens of the console: in each line a name, a blank, and a token [default: a random token, printed at the
    /// start]
    #[arg(long, value_name = "FILE", requires = "console")]
    console_tokens: Option<PathBuf>,
}

impl ConsoleArgs {
    /// Whether `--console` was given.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.console.is_some()
    }

    /// Starts the web console if `--console` was given.
    ///
    /// # Errors
    /// An address that cannot be listened at; tokens that cannot be read.
    pub fn start(&self, daemon: &Daemon, services: &Services, log: LogTail) -> Result<Option<Console>, Failure> {
        let Some(address) = self.console else { return Ok(None) };
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "other machines reach the console without TLS (--console)");
        }
        let tokens = self.console_tokens.as_deref().map(Tokens::read).transpose();
        let tokens = tokens.map_err(|error| Failure::usage(anyhow!(error).context("--console-tokens")))?;
        let options = ConsoleOptions {
            address,
            hosts: self.console_host.clone(),
            tokens,
            authorizer: daemon.authorizer().cloned(),
            log,
            ..ConsoleOptions::new(daemon.data())
        };
        let started = Console::start(daemon.orb(), services.shown(), options);
        started.map(Some).map_err(|error| {
            let is_in_use = error.chain().any(|cause| {
                let cause = cause.downcast_ref::<std::io::Error>();
                cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::AddrInUse)
            });
            let kind = if is_in_use { FailureKind::AddressInUse } else { FailureKind::Failed };
            Failure::new(kind, error.context("cannot start the console (--console)"))
        })
    }
}
