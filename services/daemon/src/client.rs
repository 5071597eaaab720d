//! The options of executables that are clients of objects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use spandrel::Orb;
use spandrel::ssliop::Ssliop;

use crate::failure::Failure;
use crate::options::{split_option, tls_options};

/// The longest time in which a server has to accept a connection, unless the options say another.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(30);

/// The options of executables that call objects and serve none.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClientArgs {
    /// An option of the ORB and its value, such as '-ORBInitRef NameService=corbaloc::names.example:2809/NameService';
    /// may be given more than once
    #[arg(long = "orb", value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) options: Vec<String>,
    /// TLS towards objects: the certificate of this client, and those of intermediate authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// TLS towards objects: the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// TLS towards objects: the authorities of servers' certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

impl ClientArgs {
    /// An ORB with these options, and this time limit for connecting and for calls unless they set others.
    ///
    /// # Errors
    /// Wrong options; a file that cannot be read.
    pub fn orb(&self, timeout: Duration) -> Result<Orb, Failure> {
        let mut args = tls_options([&self.cert, &self.key, &self.ca])?;
        for option in &self.options {
            args.extend(split_option(option)?);
        }
        let connecting = timeout.min(MAX_CONNECT_TIME);
        let builder = Orb::builder().connect_timeout(Some(connecting)).request_timeout(Some(timeout));
        let builder = builder.protocol(Ssliop::new(Arc::new(rustls::crypto::ring::default_provider())));
        let orb = builder.take_args(&mut args).map_err(Failure::usage)?.build().map_err(Failure::failed)?;
        match args.first() {
            Some(unknown) => Err(Failure::usage(anyhow!("unknown option of the ORB `{unknown}` (--orb)"))),
            None => Ok(orb),
        }
    }
}
