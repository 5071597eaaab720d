//! The options that all service executables have.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use spandrel::authorization::{AuditLog, AuditOptions, Authorizer};
use spandrel::net::error::excerpt;
use spandrel::net::transport::Address;
use spandrel::options::{OrbArgs, OrbArgsError, Site, SiteSetting};
use spandrel::services::activation;
use spandrel::ssliop::Ssliop;
use spandrel::{Endpoint, ObjectRef, Orb};

use crate::client::client_orb;
use crate::failure::{Failure, FailureKind};
use crate::signals;

/// The options that all service executables have.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DaemonArgs {
    /// The folder of the state; it is created [default: $STATE_DIRECTORY of systemd; else /var/lib/spandrel for root,
    /// $XDG_DATA_HOME/spandrel or ~/.local/share/spandrel for others]
    #[arg(long, global = true, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// An address to listen at, as in -ORBListenEndpoints: `iiop://0.0.0.0:2809`, `ssliop://…`, `uds://…`; may be given
    /// more than once [default: the standard port of the service on 127.0.0.1]
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<String>,
    #[command(flatten)]
    orb: OrbArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

/// The options for a policy of authorization.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PolicyArgs {
    /// A policy file: the peers that may call operations; without one all may. It is read again at SIGHUP and when it
    /// changes
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// A file for the decisions of the policy, in lines of JSON
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
}

impl PolicyArgs {
    /// The policy and the audit log of these options, else those of the site; the policy is read again at SIGHUP and when
    /// the file changes.
    ///
    /// # Errors
    /// Files that cannot be read or written, or that are no policy; an audit log without a policy.
    pub fn authorizer(&self, site: Option<&Site>) -> Result<Option<Authorizer>, Failure> {
        let of_site = |file: Option<&SiteSetting>| file.map(|file| PathBuf::from(&file.value));
        let policy = self.policy.clone().or_else(|| of_site(site?.policy()));
        let audit = self.audit.clone().or_else(|| of_site(site?.audit()));
        let Some(policy) = &policy else {
            return match audit {
                Some(_) => Err(Failure::usage(anyhow!("--audit needs --policy: without a policy nothing is decided"))),
                None => Ok(None),
            };
        };
        let audit = audit.as_deref().map(|file| AuditLog::open(file, AuditOptions::default())).transpose();
        let audit =
            audit.map_err(|error| Failure::failed(anyhow!(error).context("no service without it (--audit)")))?;
        let authorizer = Authorizer::from_file(policy, audit).map_err(|error| {
            Failure::new(FailureKind::Policy, anyhow!("{error} (--policy; the page `Authorization` has the syntax)"))
        })?;
        authorizer.watch().map_err(Failure::failed)?;
        signals::reload_on_hangup(&authorizer).map_err(Failure::failed)?;
        Ok(Some(authorizer))
    }
}

impl DaemonArgs {
    /// The site of the options, if there is one.
    ///
    /// # Errors
    /// A site that cannot be read.
    pub fn site(&self) -> Result<Option<&Site>, Failure> {
        self.orb.site().map_err(Failure::usage)
    }

    /// Adds an option of the ORB and its value. One of the site or of the command line has precedence.
    #[must_use]
    pub fn with_orb_option(mut self, option: &str, value: &str) -> Self {
        self.orb = self.orb.with_default(option, value);
        self
    }

    /// The folder of the state.
    ///
    /// # Errors
    /// An environment without a place for it.
    pub fn data_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.data.clone().or_else(|| env::var_os("STATE_DIRECTORY").map(PathBuf::from));
        folder.or_else(default_folder).ok_or_else(|| {
            Failure::new(FailureKind::Data, anyhow!("there is no default folder for the state: --data names one"))
        })
    }

    /// The object of a running service with a plain key, for subcommands. It is at `server`, whose port is
    /// this one unless it states another; calls have this time limit. `initial_name` is the name of the
    /// initial reference that leads to the service.
    ///
    /// `server` is `HOST`, `HOST:PORT`, or the same behind `iiop://` or `ssliop://`; or the URL of the object itself. An
    /// address without a scheme is one of TLS if there are authorities (`--ca`): no request is sent in clear by mistake.
    /// Without `server` the object is one of the server of the initial reference, if a site or an option sets one, and
    /// otherwise that of a service on this machine.
    ///
    /// # Errors
    /// Wrong options; a file that cannot be read.
    pub fn served_object(
        &self,
        server: Option<&str>,
        default_port: u16,
        (initial_name, key): (&str, &str),
        timeout: Duration,
    ) -> Result<ServedObject, Failure> {
        let initial = match server {
            Some(_) => None,
            None => self.initial_reference(initial_name)?,
        };
        let (url, address) = match &initial {
            Some(url) => (url.clone(), excerpt(url).to_string()),
            None => {
                let by_tls = self.orb.authorities().map_err(Failure::usage)?.is_some();
                object_url(server.unwrap_or("127.0.0.1"), default_port, key, by_tls).map_err(Failure::usage)?
            }
        };
        let orb = client_orb(&self.orb, timeout)?;
        let source =
            if initial.is_some() { format!("the initial reference {initial_name}") } else { "--server".to_owned() };
        let mut object =
            orb.string_to_object(&url).with_context(|| format!("cannot read {source}")).map_err(Failure::usage)?;
        if initial.is_some() && initial_name != key {
            object = orb.reference(activation::with_key(object.ior(), "", key.as_bytes()));
        }
        Ok(ServedObject { object, address })
    }

    /// The URL of the initial reference of this name, if the site or an option sets one.
    fn initial_reference(&self, name: &str) -> Result<Option<String>, Failure> {
        let settings = self.orb.settings().map_err(Failure::usage)?;
        let url = settings.iter().rev().filter(|setting| setting.option == "-ORBInitRef").find_map(|setting| {
            let (key, url) = setting.value.split_once('=')?;
            (key == name).then(|| url.to_owned())
        });
        Ok(url)
    }

    /// An ORB with these options, its endpoints, and its protocol of TLS with the certificates of the options.
    pub(crate) fn orb(
        &self,
        default_port: u16,
        authorizer: Option<&Authorizer>,
    ) -> Result<(Orb, Vec<Endpoint>, Ssliop), Failure> {
        let mut args = self.orb.clone();
        if args.authorities().map_err(Failure::usage)?.is_some() {
            if args.certificate().map_err(Failure::usage)?.is_none() {
                return Err(Failure::usage(anyhow!("--ca needs --cert and --key, the certificate of the service")));
            }
            args = args.with_default("-ORBSSLVerify", "require");
        }
        let builder = activation::install(Orb::builder().accept_later()).map_err(Failure::failed)?;
        let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.protocol(ssliop.clone());
        let mut builder = args.apply(builder).map_err(|error| match error {
            OrbArgsError::Option(error) => Failure::usage(error),
            error => Failure::usage(error),
        })?;
        let settings = args.settings().map_err(Failure::usage)?;
        let texts = settings.iter().filter(|setting| LISTEN_OPTIONS.contains(&&*setting.option)).map(|of| &of.value);
        let mut endpoints = endpoints(texts.chain(&self.listen))?;
        for endpoint in &self.listen {
            builder = builder.option(LISTEN_OPTIONS[0], endpoint).map_err(Failure::usage)?;
        }
        if endpoints.is_empty() {
            endpoints.push(Endpoint::new("127.0.0.1", default_port));
            builder = builder.listen(Endpoint::new("127.0.0.1", default_port));
        }
        if let Some(authorizer) = authorizer {
            builder = authorizer.install(builder).map_err(Failure::failed)?;
        }
        let orb = builder.build().map_err(Failure::of_listening)?;
        Ok((orb, endpoints, ssliop))
    }
}

/// An object that a subcommand calls, at the server that its options name.
#[derive(Clone, Debug)]
pub struct ServedObject {
    /// A reference without a type: the subcommand narrows it.
    pub object: ObjectRef,
    /// The address of its service with the port, or the start of the URL that was given, for messages.
    pub address: String,
}

/// The URL of an object with a plain key, at the address of a server, and that address with its port.
fn object_url(server: &str, default_port: u16, key: &str, by_tls: bool) -> anyhow::Result<(String, String)> {
    let is_scheme = |scheme: &str| server.get(..scheme.len()).is_some_and(|text| text.eq_ignore_ascii_case(scheme));
    if ["ior:", "corbaloc:", "corbaname:", "file://"].into_iter().any(is_scheme) {
        return Ok((server.to_owned(), excerpt(server).to_string()));
    }
    let (scheme, address) = match server.split_once("://") {
        Some((scheme, address)) => (scheme, address),
        None if by_tls => ("ssliop", server),
        None => ("iiop", server),
    };
    // The colons of an IPv6 address are in brackets.
    let has_port = address.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
    let address = if has_port { address.to_owned() } else { format!("{address}:{default_port}") };
    match Address::new("iiop", &address).host_and_port() {
        Some((host, _)) if !host.is_empty() && matches!(scheme, "iiop" | "ssliop") => {
            Ok((format!("corbaloc:{scheme}:1.2@{address}/{key}"), address))
        }
        _ => Err(anyhow!(
            "invalid value `{server}` for --server: expected HOST or HOST:PORT, such as 127.0.0.1:{default_port}, \
             ssliop://HOST:PORT, or the URL of the service's object"
        )),
    }
}

/// The options by which an ORB's endpoints are named.
const LISTEN_OPTIONS: [&str; 4] = ["-ORBListenEndpoints", "-ORBListenEndpoint", "-ORBEndpoint", "-ORBendPoint"];

/// The endpoints of these values of options.
fn endpoints<'v>(values: impl Iterator<Item = &'v String>) -> Result<Vec<Endpoint>, Failure> {
    let texts = values.flat_map(|value| value.split(';')).filter(|text| !text.is_empty());
    texts.map(|text| text.parse().map_err(Failure::usage)).collect()
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
