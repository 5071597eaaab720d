//! The options of commands that are clients: those of their ORB, and of TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use spandrel::net::transport::{Address, Iiop, Protocol, SocketSettings, Transport};
use spandrel::options::{OrbArgs, OrbArgsError, OrbSetting, SettingSource};
use spandrel::types::Ior;
use spandrel::{ObjectRef, Orb, OrbBuilder};
use spandrel_lab::reference::security::{Security, requires_client_certificate, security};

use crate::common;

/// The naming service where none is given: that of `spandrel up` on this machine.
const NAMING: &str = "corbaloc::127.0.0.1:2809/NameService";

/// The longest text that is read as a reference.
const MAX_TEXT_OCTETS: u64 = 16 << 20;

/// The options of the ORB of a command, which is a client.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ClientOrbArgs {
    #[command(flatten)]
    orb: OrbArgs,
}

impl ClientOrbArgs {
    /// Sets all options in a builder, so that a value that cannot be used is an error. No ORB is created.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.builder(Orb::builder()).map(drop)
    }

    /// An ORB with these time limits, unless the options set others.
    pub(crate) fn orb(&self, timeout: Duration) -> anyhow::Result<Orb> {
        self.orb_with(timeout, |builder| builder)
    }

    /// As [`ClientOrbArgs::orb`], with settings of the command, which options may replace.
    pub(crate) fn orb_with(
        &self,
        timeout: Duration,
        set: impl FnOnce(OrbBuilder) -> OrbBuilder,
    ) -> anyhow::Result<Orb> {
        let builder = set(Orb::builder().connect_timeout(Some(timeout)).request_timeout(Some(timeout)));
        let orb = self.builder(builder)?.build()?;
        // The one of this machine. One that was given and cannot be used is an error, so that no other is read or changed
        // in its place.
        if !orb.has_initial_reference("NameService") {
            orb.register_initial_reference("NameService", &orb.string_to_object(NAMING)?)?;
        }
        Ok(orb)
    }

    /// The builder with all options.
    fn builder(&self, builder: OrbBuilder) -> anyhow::Result<OrbBuilder> {
        self.orb.apply(with_tls(builder)).map_err(|error| match error {
            OrbArgsError::Unreadable { file, error } => common::unreadable(&file, &error),
            error => common::as_usage(error.into()),
        })
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
                // A site has options for ORBs, too.
                let is_used = |setting: &OrbSetting| {
                    setting.source == SettingSource::CommandLine || setting.option.starts_with("-ORBSSL")
                };
                connector(self.ssliop_with(is_used)?, &address)
            }
            other => {
                let unknown = format!("unknown transport `{other}` in `{text}`, the value of --to: expected {SCHEMES}");
                return Err(common::usage(unknown));
            }
        };
        Ok(Server { address, connect })
    }

    /// TLS with the certificates and authorities of the options, for connections beside the ORB.
    #[cfg(feature = "tls")]
    pub(crate) fn tls(&self) -> anyhow::Result<Option<spandrel::ssliop::Ssliop>> {
        self.ssliop_with(|setting| setting.option.starts_with("-ORBSSL")).map(Some)
    }

    /// TLS for connections beside the ORB: this command has none.
    #[cfg(not(feature = "tls"))]
    #[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn tls(&self) -> anyhow::Result<Option<spandrel::ssliop::Ssliop>> {
        Ok(None)
    }

    #[cfg(feature = "tls")]
    fn ssliop_with(&self, is_used: impl Fn(&OrbSetting) -> bool) -> anyhow::Result<spandrel::ssliop::Ssliop> {
        let ssliop = ssliop();
        for OrbSetting { option, value, .. } in self.orb.settings()?.into_iter().filter(is_used) {
            if !ssliop.option(&option, &value).map_err(|error| anyhow::anyhow!("{option}: {error}"))? {
                return Err(common::usage(format!("`{option}` is not an option of TLS")));
            }
        }
        Ok(ssliop)
    }

    /// The options as they were given.
    pub(crate) fn args(&self) -> &OrbArgs {
        &self.orb
    }

    /// Whether options were given.
    pub(crate) fn has_options(&self) -> bool {
        self.orb.has_options()
    }

    /// Adds a remedy to the error of a call, if the reference shows one.
    pub(crate) fn explained(&self, error: anyhow::Error, ior: &Ior) -> anyhow::Error {
        let trusts = matches!(self.orb.authorities(), Ok(Some(_))) || self.orb.has_option("-ORBSSLCA");
        let identifies = matches!(self.orb.certificate(), Ok(Some(_))) || self.orb.has_option("-ORBSSLCertificate");
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
    match text.trim() {
        "" => Err(anyhow::anyhow!("standard input is empty: a reference or a name was expected")),
        text => Ok(text.to_owned()),
    }
}
