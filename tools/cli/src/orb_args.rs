//! The options of commands that are clients: those of their ORB, and of TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use spandrel::net::transport::{Address, Iiop, Protocol, SocketSettings, Transport};
use spandrel::types::Ior;
use spandrel::{ObjectRef, Orb, OrbBuilder};
use spandrel_lab::reference::security::{Security, requires_client_certificate, security};

use crate::common;

/// The longest text that is read as a reference.
const MAX_TEXT_OCTETS: u64 = 16 << 20;

/// Options of the ORB.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct OrbArgs {
    /// An option of the ORB and its value, such as '-ORBTransports uds'; may be given more than once
    #[arg(long = "orb", value_name = "OPTION", allow_hyphen_values = true, value_parser = orb_option,
        help_heading = "Options of the ORB")]
    options: Vec<[String; 2]>,
    /// TLS: this client's certificate, and those of intermediate authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "Options of the ORB")]
    cert: Option<PathBuf>,
    /// TLS: the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Options of the ORB")]
    key: Option<PathBuf>,
    /// TLS: the authorities that the server's certificate may be of (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Options of the ORB")]
    ca: Option<PathBuf>,
}

impl OrbArgs {
    /// An ORB with these time limits, unless the options set others.
    pub(crate) fn orb(&self, timeout: Duration) -> anyhow::Result<Orb> {
        self.orb_with(timeout, |builder| builder)
    }

    /// As [`OrbArgs::orb`], with settings of the command, which options may replace.
    pub(crate) fn orb_with(
        &self,
        timeout: Duration,
        set: impl FnOnce(OrbBuilder) -> OrbBuilder,
    ) -> anyhow::Result<Orb> {
        let builder = set(Orb::builder().connect_timeout(Some(timeout)).request_timeout(Some(timeout)));
        let mut args: Vec<String> = self.all_options()?.into_iter().flatten().collect();
        Ok(with_tls(builder).take_args(&mut args).context("cannot use --orb").map_err(common::as_usage)?.build()?)
    }

    /// The options of the ORB with their values, those of TLS first.
    fn all_options(&self) -> anyhow::Result<Vec<[String; 2]>> {
        let mut options = Vec::new();
        for (option, file) in [("-ORBSSLCertificate", &self.cert), ("-ORBSSLKey", &self.key), ("-ORBSSLCA", &self.ca)] {
            if let Some(file) = file {
                check_readable(file)?;
                options.push([option.to_owned(), file.display().to_string()]);
            }
        }
        options.extend_from_slice(&self.options);
        Ok(options)
    }

    /// A server by its address: `host:port`, or that of another transport such as `ssliop://host:port`.
    pub(crate) fn server(&self, text: &str) -> anyhow::Result<Server> {
        let (scheme, address) = text.split_once("://").unwrap_or(("iiop", text));
        let address = Address::new(scheme.to_owned(), address);
        if matches!(scheme, "iiop" | "ssliop") && address.host_and_port().is_none() {
            return Err(common::usage(format!("invalid value `{text}` for --to: expected {SCHEMES}")));
        }
        let connect: Connect = match scheme {
            "iiop" => connector(Iiop, &address),
            #[cfg(unix)]
            "uds" => connector(spandrel::net::transport::Uds, &address),
            #[cfg(target_os = "linux")]
            "shm" => connector(spandrel::net::transport::Shm, &address),
            #[cfg(feature = "tls")]
            "ssliop" => {
                let ssliop = ssliop();
                for option in self.all_options()? {
                    let [option, value] = option;
                    if !ssliop.option(&option, &value).map_err(|error| anyhow::anyhow!("{option}: {error}"))? {
                        return Err(common::usage(format!("`{option}` is not an option of TLS")));
                    }
                }
                connector(ssliop, &address)
            }
            other => {
                let unknown = format!("unknown transport `{other}` in `{text}`, the value of --to: expected {SCHEMES}");
                return Err(common::usage(unknown));
            }
        };
        Ok(Server { address, connect })
    }

    /// Whether options were given.
    pub(crate) fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Adds a remedy to the error of a call, if the reference shows one.
    pub(crate) fn explained(&self, error: anyhow::Error, ior: &Ior) -> anyhow::Error {
        let has = |file: &Option<PathBuf>, name: &str| {
            file.is_some() || self.options.iter().any(|[option, _]| option == name)
        };
        let trusts = has(&self.ca, "-ORBSSLCA");
        let identifies = has(&self.cert, "-ORBSSLCertificate");
        match security(ior) {
            Security::TlsOnly if !trusts => error.context(if cfg!(feature = "tls") {
                "the reference offers TLS only: --ca FILE names the authorities of the server's certificate"
            } else {
                "the reference offers TLS only, and this command was built without the feature `tls`"
            }),
            Security::TlsOnly if !identifies && requires_client_certificate(ior) && ended_by_alert(&error) => error
                .context("the server requires a client certificate: --cert FILE and --key FILE name it and its key"),
            _ => error,
        }
    }
}

/// Whether the server ended the connection by an alert of TLS, as it does without the client's certificate.
fn ended_by_alert(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.to_string().contains("received fatal alert")) // the text of `rustls`
}

/// The transports of servers.
const SCHEMES: &str = "iiop://host:port, ssliop://host:port, uds://path or shm://path";

/// The time limit for a connection to a server.
const CONNECTING: Duration = Duration::from_secs(30);

type Connect = Arc<dyn Fn() -> io::Result<Arc<dyn Transport>> + Send + Sync>;

/// A server to which connections are opened without an ORB.
#[derive(Clone)]
pub(crate) struct Server {
    address: Address,
    connect: Connect,
}

impl Server {
    pub(crate) fn name(&self) -> String {
        self.address.to_string()
    }

    /// Opens a new connection to the server.
    pub(crate) fn connect(&self) -> anyhow::Result<Arc<dyn Transport>> {
        (self.connect)().with_context(|| format!("cannot connect to {}", self.address))
    }
}

fn connector<P: Protocol>(protocol: P, address: &Address) -> Connect {
    let address = address.clone();
    Arc::new(move || {
        let stream = protocol.connect(&address, Some(CONNECTING), &SocketSettings::default())?;
        Ok(Arc::new(stream))
    })
}

#[cfg(feature = "tls")]
fn ssliop() -> spandrel::ssliop::Ssliop {
    spandrel::ssliop::Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
}

#[cfg(feature = "tls")]
fn with_tls(builder: OrbBuilder) -> OrbBuilder {
    builder.protocol(ssliop())
}

#[cfg(not(feature = "tls"))]
fn with_tls(builder: OrbBuilder) -> OrbBuilder {
    builder
}

/// Parses an option and its value: `-ORBName value` or `-ORBName=value`.
fn orb_option(text: &str) -> Result<[String; 2], String> {
    let text = text.trim();
    let place = text.find(char::is_whitespace).or_else(|| text.find('='));
    match place.map(|place| (&text[..place], text[place + 1..].trim())) {
        Some((option, value)) if option.starts_with("-ORB") && !value.is_empty() => {
            Ok([option.to_owned(), value.to_owned()])
        }
        _ => Err("expected an option and its value, such as `-ORBTransports uds`".to_owned()),
    }
}

fn check_readable(file: &Path) -> anyhow::Result<()> {
    match std::fs::File::open(file) {
        Ok(_) => Ok(()),
        Err(error) => Err(common::unreadable(file, &error)),
    }
}

/// The object of a URL. `corbaname:` and initial references are resolved.
pub(crate) fn object(orb: &Orb, url: &str) -> anyhow::Result<ObjectRef> {
    orb.string_to_object(url).context("cannot read the reference")
}

/// The reference itself, or the text of standard input.
pub(crate) fn reference_text(given: &str) -> anyhow::Result<String> {
    use std::io::Read as _;
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().lock().take(MAX_TEXT_OCTETS).read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::orb_option;

    #[test]
    fn an_option_is_split_from_its_value() {
        let split = |text: &str| orb_option(text).ok().map(|[option, value]| format!("{option}|{value}"));
        assert_eq!(split("-ORBTransports uds").as_deref(), Some("-ORBTransports|uds"));
        assert_eq!(split("-ORBInitRef=Bank=corbaloc::a/b").as_deref(), Some("-ORBInitRef|Bank=corbaloc::a/b"));
        assert_eq!(split("-ORBInitRef Bank=IOR:00").as_deref(), Some("-ORBInitRef|Bank=IOR:00"));
        for text in ["-ORBTransports", "-ORBTransports ", "Transports uds", ""] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
