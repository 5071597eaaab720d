//! Services that run in a server architecture chosen by name, and change it while they serve.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use spandrel::net::ipc::inet::Addr;
use spandrel::net::sync::{Arc, Mutex};
use spandrel_architectures::http::Http;
use spandrel_architectures::transfer::Transfer;
use spandrel_architectures::{AdaptiveServer, Architecture, Server as _, Service, Settings, SwitchingServer};
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

use crate::arguments::{ArgumentError, parse};
use crate::handover::Handover;
use crate::numbers::connections;

/// The name that stands for a choice by the load.
const ADAPTIVE: &str = "adaptive";

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    /// The port on the loopback interface
    #[arg(short = 'p', value_name = "PORT", required_unless_present = "address", conflicts_with = "address")]
    port: Option<u16>,
    /// The address, for other interfaces
    #[arg(short = 'l', value_name = "ADDRESS:PORT")]
    address: Option<Addr>,
    /// The architecture, or `adaptive` for a choice by the load
    #[arg(short = 'a', value_name = "ARCHITECTURE", default_value = "leader-followers")]
    architecture: String,
    /// The threads or processes of a pool
    #[arg(short = 'w', value_name = "NUMBER", default_value_t = 5)]
    workers: usize,
    /// The maximum number of connections
    #[arg(short = 'm', value_name = "NUMBER", default_value_t = 1_000)]
    most: usize,
    /// The time in seconds after which a connection without transfers is closed
    #[arg(short = 'i', value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
    /// The time in seconds that connections have after a change of the architecture
    #[arg(short = 'd', value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    drain: u64,
    /// The folder of the files
    #[arg(short = 'r', value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Wait for the request without a greeting
    #[arg(short = 'n')]
    no_greeting: bool,
}

/// A service in a server architecture. A changed directive changes the architecture of new connections.
pub struct ArchitectureService {
    name: &'static str,
    make: fn(&Args) -> Result<Service, ArgumentError>,
    handover: Arc<Handover>,
    linked: Mutex<Option<Linked>>,
}

/// The state of a linked service.
struct Linked {
    address: Addr,
    /// None: by the load.
    architecture: Option<Architecture>,
    service: Service,
    settings: Settings,
    server: Arc<SwitchingServer>,
    adaptive: Option<AdaptiveServer>,
}

impl std::fmt::Debug for ArchitectureService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchitectureService").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ArchitectureService {
    /// A service of files over HTTP/1.1.
    pub(crate) fn http(handover: Arc<Handover>) -> Self {
        let make = |args: &Args| {
            let folder = args.folder.as_ref().ok_or("expected a folder: -r FOLDER")?;
            if args.no_greeting {
                return Err("HTTP has no greeting (-n)".into());
            }
            Ok(Service::Http(Http::open(folder)?))
        };
        Self { name: "HTTP", make, handover, linked: Mutex::new(None) }
    }

    /// The service of paper 004.
    pub(crate) fn transfer(handover: Arc<Handover>) -> Self {
        let make = |args: &Args| match &args.folder {
            Some(_) => Err("the transfer service has no folder (-r)".into()),
            None => Ok(Service::Transfer(Transfer { has_greeting: !args.no_greeting })),
        };
        Self { name: "transfer", make, handover, linked: Mutex::new(None) }
    }
}

impl SharedObject for ArchitectureService {
    fn init(&self, _context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let architecture = match &*args.architecture {
            ADAPTIVE => None,
            name => Some(name.parse().map_err(|error| format!("{error}, or `{ADAPTIVE}`"))?),
        };
        let settings = Settings {
            workers: args.workers,
            max_connections: args.most,
            idle: Duration::from_secs(args.idle),
            ..Settings::default()
        };
        settings.check()?;
        let service = (self.make)(&args)?;
        let address = args.address.unwrap_or_else(|| Addr::loopback(args.port.unwrap_or_default()));
        let drain = Duration::from_secs(args.drain);
        let server = match self.handover.take(address) {
            Some(server) => server,
            None => {
                let server = SwitchingServer::listen(&address, drain);
                Arc::new(server.map_err(|error| format!("cannot listen at {address}: {error}"))?)
            }
        };
        server.set_drain(drain);
        *self.linked.lock() = Some(Linked { address, architecture, service, settings, server, adaptive: None });
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        let Some(Linked { address, server, adaptive, .. }) = self.linked.lock().take() else { return Ok(()) };
        drop(adaptive);
        server.suspend()?;
        self.handover.leave(address, server);
        Ok(())
    }

    fn metrics(&self) -> String {
        connections(self.linked.lock().as_ref().map_or(0, |linked| linked.server.connections()))
    }

    fn info(&self) -> String {
        let linked = self.linked.lock();
        let address = linked.as_ref().and_then(|linked| linked.server.addr().ok());
        let (Some(Linked { server, adaptive, .. }), Some(address)) = (&*linked, address) else {
            return format!("{} # not linked", self.name);
        };
        let choice = if adaptive.is_some() { ", by the load" } else { "" };
        let architecture = server.architecture().map_or("suspended", Architecture::name);
        format!("{address}/tcp # {}, {architecture}{choice}, {} connections", self.name, server.connections())
    }
}

impl ServiceObject for ArchitectureService {
    fn suspend(&self) -> ServiceResult {
        if let Some(linked) = &mut *self.linked.lock() {
            linked.adaptive = None;
            linked.server.suspend()?;
        }
        Ok(())
    }

    fn resume(&self) -> ServiceResult {
        let mut linked = self.linked.lock();
        let Some(Linked { architecture, service, settings, server, adaptive, .. }) = &mut *linked else {
            return Ok(());
        };
        match architecture {
            Some(architecture) => server.switch(*architecture, service, settings)?,
            None => *adaptive = Some(AdaptiveServer::adopt(Arc::clone(server), service, settings)?),
        }
        Ok(())
    }
}
