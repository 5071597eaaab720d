//! The options that all service executables have.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use spandrel::ssliop::Ssliop;
use spandrel::{Endpoint, Orb};

use crate::failure::{Failure, FailureKind};

/// The options that all service executables have.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DaemonArgs {
    /// The folder of the state; it is created [default: $STATE_DIRECTORY of systemd; else /var/lib/spandrel for root,
    /// $XDG_DATA_HOME/spandrel or ~/.local/share/spandrel for others]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// An address to listen at, as in -ORBListenEndpoints: `iiop://0.0.0.0:2809`, `ssliop://…`, `uds://…`; may be given
    /// more than once [default: the standard port of the service on 127.0.0.1]
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<String>,
    /// An option of the ORB and its value, such as '-ORBMetricsEndpoint 127.0.0.1:9464'; may be given more than once
    #[arg(long = "orb", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// TLS: the certificate of this server, and those of intermediate authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// TLS: the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// TLS: the authorities of clients' certificates, which are required then (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    ca: Option<PathBuf>,
}

impl DaemonArgs {
    /// The folder of the state.
    ///
    /// # Errors
    /// An environment without a place for it.
    pub fn data_folder(&self) -> Result<PathBuf, Failure> {
        let given = self.data.clone().or_else(|| env::var_os("STATE_DIRECTORY").map(PathBuf::from));
        given.or_else(default_folder).ok_or_else(|| {
            Failure::new(FailureKind::Data, anyhow!("there is no default folder for the state: --data names one"))
        })
    }

    /// An ORB with these options, and whether all of its endpoints are encrypted or local.
    pub(crate) fn orb(&self, default_port: u16) -> Result<(Orb, bool), Failure> {
        let mut args = Vec::new();
        let files = [("-ORBSSLCertificate", &self.cert), ("-ORBSSLKey", &self.key), ("-ORBSSLCA", &self.ca)];
        for (option, file) in files {
            if let Some(file) = file {
                check_readable(file)?;
                args.extend([option.to_owned(), file.display().to_string()]);
            }
        }
        if self.ca.is_some() {
            args.extend(["-ORBSSLVerify".to_owned(), "require".to_owned()]);
        }
        for option in &self.options {
            args.extend(split_option(option)?);
        }
        for endpoint in &self.listen {
            args.extend(["-ORBListenEndpoints".to_owned(), endpoint.clone()]);
        }
        let mut builder = Orb::builder().protocol(Ssliop::new(Arc::new(rustls::crypto::ring::default_provider())));
        let names_endpoints = args.iter().any(|arg| arg == "-ORBListenEndpoints");
        if !names_endpoints {
            builder = builder.listen(Endpoint::new("127.0.0.1", default_port));
        }
        let is_plain = |endpoint: &String| {
            let local = ["ssliop://", "giop:ssl:", "uds://", "shm://", "giop:unix:"];
            !local.iter().any(|scheme| endpoint.starts_with(scheme))
        };
        let is_encrypted = names_endpoints && !self.listen.iter().any(is_plain);
        let orb = builder.take_args(&mut args).map_err(Failure::usage)?.build().map_err(Failure::failed)?;
        if let Some(unknown) = args.first() {
            return Err(Failure::usage(anyhow!("unknown option of the ORB `{unknown}` (--orb)")));
        }
        Ok((orb, is_encrypted))
    }
}

/// The folder of the state of a user.
fn default_folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return Some(variable("LOCALAPPDATA")?.join("spandrel"));
    }
    let home = variable("HOME");
    if home.as_deref() == Some(Path::new("/root")) {
        return Some(PathBuf::from("/var/lib/spandrel"));
    }
    Some(variable("XDG_DATA_HOME").or_else(|| Some(home?.join(".local/share")))?.join("spandrel"))
}

/// An option and its value: `-ORBName value` or `-ORBName=value`.
fn split_option(text: &str) -> Result<[String; 2], Failure> {
    let text = text.trim();
    let place = text.find(|letter: char| letter.is_whitespace() || letter == '=');
    match place.map(|place| (&text[..place], text[place + 1..].trim())) {
        Some((option, value)) if option.starts_with("-ORB") && !value.is_empty() => {
            Ok([option.to_owned(), value.to_owned()])
        }
        _ => Err(Failure::usage(anyhow!(
            "invalid value `{text}` for --orb: expected an option and its value, such as `-ORBMetrics yes`"
        ))),
    }
}

fn check_readable(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()));
    opened.map(drop).map_err(Failure::usage)
}
