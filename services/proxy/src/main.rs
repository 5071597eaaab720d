//! The executable `spandrel-proxy`: objects over HTTP.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Parser;
use serde::Deserialize;
use spandrel::dynamic::describe_file;
use spandrel::options::OrbArgs;
use spandrel_daemon::{EXIT_CODES, Failure, PolicyArgs};
use spandrel_proxy::http::{AllowedHosts, Authentication, HttpLimits, HttpServer, TlsFiles, Tokens};
use spandrel_proxy::{CallLimits, Catalogue, Exposure, Proxy};

const EXAMPLES: &str = "\
Examples:
  spandrel proxy --expose 'Bank/*' --tokens tokens.txt
  spandrel proxy --expose Bank/alice --anonymous --idl bank.idl
  spandrel proxy --exposures proxy.toml --tokens tokens.txt --listen 0.0.0.0:8443 --http-cert server.pem --http-key server.key
  curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' -d '{\"cents\": 500}' http://127.0.0.1:8080/Bank/alice/deposit

Nothing is served unless --expose or --exposures names it, and no client without --tokens, --http-ca or --anonymous.";

/// Objects of the naming service as HTTP and JSON.
///
/// POST /NAME/OPERATION calls an operation with a JSON object of its arguments, GET and PUT /NAME/ATTRIBUTE get and set an attribute.
/// GET /openapi.json describes all of them, GET /healthz is a probe.
#[derive(Debug, Parser)]
#[command(name = "spandrel-proxy", version, max_term_width = 110, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
struct Args {
    /// A name of the naming service whose object is served; `*` in it stands for any text; may be given more than once
    #[arg(long, value_name = "NAME")]
    expose: Vec<String>,
    /// A file (TOML) of the names to serve: `[[expose]]` with `name` and perhaps `operations`
    #[arg(long, value_name = "FILE")]
    exposures: Option<PathBuf>,
    /// A file that declares the interfaces; without it, an interface repository describes them
    #[arg(long, value_name = "FILE")]
    idl: Option<PathBuf>,
    /// A folder with included files
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// The address to listen at
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// TLS for HTTP: the certificate of this server, and those of intermediate authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "http_key")]
    http_cert: Option<PathBuf>,
    /// TLS for HTTP: the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "http_cert")]
    http_key: Option<PathBuf>,
    /// TLS for HTTP: the authorities of clients' certificates, which then may take the place of tokens (PEM)
    #[arg(long, value_name = "FILE", requires = "http_cert")]
    http_ca: Option<PathBuf>,
    /// A file of the clients' tokens: in each line a name, a blank, and a token of at least 16 characters
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Serve clients without token and certificate; only on a loopback address
    #[arg(long)]
    anonymous: bool,
    /// The most calls at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    max_calls: u16,
    /// The most HTTP connections at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,
    /// The longest time of a call in seconds; `Prefer: wait=SECONDS` of a request makes it shorter
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    orb: OrbArgs,
}

/// The file of `--exposures`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    expose: Vec<ConfigExposure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigExposure {
    name: String,
    #[serde(default)]
    operations: Vec<String>,
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| spandrel_daemon::parse::<Args>().serve())
}

impl Args {
    fn serve(&self) -> Result<(), Failure> {
        let (exposures, authentication) = (self.exposures()?, self.authentication()?);
        let idl = self.idl.as_ref().map(|file| {
            describe_file(file, self.include.iter().cloned()).map_err(|error| {
                Failure::usage(anyhow!("cannot use the IDL file {} (--idl): {}", file.display(), error.in_line()))
            })
        });
        let idl = idl.transpose()?;
        let authorizer = self.policy.authorizer(self.orb.site().map_err(Failure::usage)?)?;
        let timeout = Duration::from_secs(self.timeout.into());
        let orb = spandrel_daemon::client_orb(&self.orb, timeout)?;
        let catalogue = Catalogue::new(&orb, &exposures, idl)
            .context("there is no naming service: --orb '-ORBInitRef NameService=corbaloc::HOST:PORT/NameService'")
            .map_err(Failure::failed)?;
        let limits = CallLimits { calls: self.max_calls.into(), timeout, ..CallLimits::default() };
        let (proxy, anonymous) = (Proxy::new(catalogue, authorizer, limits), self.anonymous);
        let router = move |address| {
            let router = proxy.router(authentication);
            // A browser needs no secret for an anonymous request.
            if anonymous { AllowedHosts::of(address, &[]).guard(router) } else { router }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::failed)?;
        let http = {
            let _inside = runtime.enter();
            let limits = HttpLimits { connections: self.max_connections.into(), ..HttpLimits::default() };
            HttpServer::start(self.listen, self.tls().as_ref(), limits, router).map_err(Failure::cannot_listen)?
        };
        self.warn_of_exposure();
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let ready = [format!("proxy {}", http.url())];
        let begin = move || {
            // A second wish to end finds the first.
            _ = end.try_send(());
        };
        let stop = || {
            // An error means that the sender is gone, which ends the process, too.
            _ = ended.recv();
            runtime.block_on(http.stop());
        };
        spandrel_daemon::serve(&ready, &|| Ok(()), begin, stop)?;
        orb.shutdown().map_err(Failure::failed)
    }

    fn exposures(&self) -> Result<Vec<Exposure>, Failure> {
        let exposures = self.expose.iter().map(|name| Exposure { name: name.clone(), operations: Vec::new() });
        let mut all: Vec<Exposure> = exposures.collect();
        if let Some(file) = &self.exposures {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {} (--exposures)", file.display()))
                .map_err(Failure::usage)?;
            let config: Config = spandrel_daemon::parse_toml(&text)
                .with_context(|| format!("{} (--exposures) is malformed", file.display()))
                .map_err(Failure::usage)?;
            let read = config.expose.into_iter();
            all.extend(read.map(|ConfigExposure { name, operations }| Exposure { name, operations }));
        }
        if all.is_empty() {
            return Err(Failure::usage(anyhow!("nothing is served: --expose NAME or --exposures FILE names objects")));
        }
        Ok(all)
    }

    fn authentication(&self) -> Result<Authentication, Failure> {
        if self.anonymous && !self.listen.ip().is_loopback() {
            return Err(Failure::usage(anyhow!(
                "--anonymous needs a loopback address, and --listen is {}: other machines need --tokens or --http-ca",
                self.listen
            )));
        }
        if !self.anonymous && self.tokens.is_none() && self.http_ca.is_none() {
            return Err(Failure::usage(anyhow!(
                "no client could identify itself: --tokens FILE or --http-ca FILE, or --anonymous on a loopback address"
            )));
        }
        let tokens = self.tokens.as_ref().map(|file| Tokens::read(file)).transpose().map_err(Failure::usage)?;
        Ok(Authentication {
            tokens: tokens.unwrap_or_default(),
            certificates: self.http_ca.is_some(),
            anonymous: self.anonymous,
        })
    }

    fn tls(&self) -> Option<TlsFiles> {
        let (certificate, key) = (self.http_cert.clone()?, self.http_key.clone()?);
        Some(TlsFiles { certificate, key, client_authorities: self.http_ca.clone() })
    }

    fn warn_of_exposure(&self) {
        if !self.listen.ip().is_loopback() && self.http_cert.is_none() {
            tracing::warn!(
                "{} has no TLS: others on the network can read tokens and requests (--http-cert)",
                self.listen
            );
        }
    }
}
