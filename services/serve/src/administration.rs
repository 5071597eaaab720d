//! The administration of the services of a process: by lines of text over a local socket, and as a CORBA object.

use std::io;

use clap::Parser;
use spandrel::net::ipc::Family;
use spandrel::net::ipc::inet::{Addr, Inet};
use spandrel::net::reactor::framing::{FrameHandler, Framed, Lines};
use spandrel::net::reactor::strategy::ThreadPerConnection;
use spandrel::net::reactor::{Acceptor, Peer};
use spandrel::net::sync::Mutex;
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

use crate::administered::Administered;
use crate::arguments::parse;
use crate::orb_service::OrbService;
use crate::remote;

/// The maximum number of administrators at the same time.
const MOST: usize = 8;
/// The length of the longest command, in octets.
const MAX_COMMAND: usize = 64 * 1024;

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    /// A UNIX-domain socket, which only its owner can use
    #[cfg(unix)]
    #[arg(short = 'u', value_name = "PATH")]
    socket: Option<std::path::PathBuf>,
    /// A TCP port of the loopback interface, for systems without such sockets: every user of the machine can use it
    #[arg(short = 'p', value_name = "PORT")]
    port: Option<u16>,
    /// The service of an ORB: its object with the key `ServiceConfigurator` is the administration
    #[arg(short = 'o', value_name = "SERVICE")]
    orb: Option<String>,
}

/// The service. Its commands have one line each (`help` lists them). An answer is any number of lines, then `ok`, or
/// `error: REASON`.
pub struct Administration {
    administered: Administered,
    places: Mutex<Vec<String>>,
    object: Mutex<Option<remote::ActiveObject>>,
}

impl std::fmt::Debug for Administration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Administration").finish_non_exhaustive()
    }
}

impl Administration {
    /// The administration of a configurator.
    #[must_use]
    pub fn new(administered: Administered) -> Self {
        Self { administered, places: Mutex::new(Vec::new()), object: Mutex::new(None) }
    }

    fn open<F: Family>(&self, context: &ServiceContext<'_>, family: F, address: &F::Addr) -> ServiceResult {
        let administered = self.administered.clone();
        let make = move || Framed::new(Lines::new(MAX_COMMAND), Commands(administered.clone()));
        // Not in threads of the reactor, which a command may need.
        let server = Acceptor::new(family, make)
            .concurrency(ThreadPerConnection::new(MOST))
            .open(context.registry(), address)
            .map_err(|error| format!("cannot listen at {address}: {error}"))?;
        self.places.lock().push(server.addr().to_string());
        Ok(())
    }
}

struct Commands(Administered);

impl<F: Family> FrameHandler<F> for Commands {
    fn handle_frame(&mut self, peer: &mut Peer<'_, F>, frame: &[u8]) -> io::Result<()> {
        let answer = match std::str::from_utf8(frame) {
            Ok(command) => self.0.command(command),
            Err(_) => Err("the command is no text in UTF-8".to_owned()),
        };
        let text = match answer {
            Ok(lines) => lines.iter().map(|line| format!("{line}\n")).chain(["ok\n".to_owned()]).collect(),
            Err(reason) => format!("error: {reason}\n"),
        };
        peer.put(text.as_bytes())
    }
}

impl SharedObject for Administration {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let mut has_place = false;
        #[cfg(unix)]
        if let Some(path) = &args.socket {
            use spandrel::net::ipc::unix;

            let address = unix::Addr::path(path)?;
            let options = unix::AcceptorOptions::default().replace_stale(true).mode(0o600);
            self.open(context, unix::Unix::new(options, unix::Connector::new()), &address)?;
            has_place = true;
        }
        if let Some(port) = args.port {
            self.open(context, Inet::default(), &Addr::loopback(port))?;
            has_place = true;
        }
        if let Some(name) = &args.orb {
            let service =
                context.find::<OrbService>(name).ok_or_else(|| format!("there is no ORB `{name}` before it"))?;
            let orb = service.orb().ok_or_else(|| format!("the ORB `{name}` has ended"))?;
            *self.object.lock() = Some(remote::activate(&orb, self.administered.clone(), name)?);
            self.places.lock().push(format!("{name}/{}", remote::KEY));
            has_place = true;
        }
        if has_place { Ok(()) } else { Err("expected a place: -u PATH, -p PORT or -o SERVICE".into()) }
    }

    fn fini(&self) -> ServiceResult {
        if let Some(object) = self.object.lock().take() {
            object.deactivate()?;
        }
        Ok(())
    }

    fn info(&self) -> String {
        format!("{} # administration", self.places.lock().join(" "))
    }
}

impl ServiceObject for Administration {}
