//! The administration of the services of a process: by lines of text over a local socket, and as a CORBA object.

use std::io;
use std::time::{Duration, Instant};

use clap::Parser;
use spandrel::net::error::escape;
use spandrel::net::ipc::inet::{Addr, Inet};
use spandrel::net::ipc::{Family, Transmit as _};
use spandrel::net::reactor::framing::{FrameHandler, Framed, Lines};
use spandrel::net::reactor::strategy::{Acceptance, ThreadPerConnection};
use spandrel::net::reactor::{Acceptor, Expired, Peer};
use spandrel::net::sync::Mutex;
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

use crate::administered::{Administered, CommandError};
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
    /// The time in seconds in which a connection has to bring its next command, and to take each part of an answer
    #[arg(short = 'i', value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
}

/// The service. Its commands have one line each (`help` lists them). An answer is any number of lines, then `ok`, or
/// `error: REASON`. A connection ends at the first line that is no command, so that it does not take commands from the body
/// of another protocol's message, and when it has brought none for a time (`-i`, a minute by default).
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
    /// A service that carries out commands of its clients on the configurator, once that is set.
    #[must_use]
    pub fn new(administered: Administered) -> Self {
        Self { administered, places: Mutex::new(Vec::new()), object: Mutex::new(None) }
    }

    fn open<F: Family>(
        &self,
        context: &ServiceContext<'_>,
        family: F,
        address: &F::Addr,
        idle: Duration,
    ) -> ServiceResult {
        let administered = self.administered.clone();
        let commands = move || Commands { administered: administered.clone(), idle, last_command: Instant::now() };
        let make = move || Framed::new(Lines::new(MAX_COMMAND), commands());
        // Not in threads of the reactor, which a command may need.
        let server = Acceptor::new(family, make)
            .acceptance(Administrators { idle })
            .concurrency(ThreadPerConnection::new(MOST))
            .open(context.registry(), address)
            .map_err(|error| format!("cannot listen at {address}: {error}"))?;
        self.places.lock().push(server.addr().to_string());
        Ok(())
    }
}

/// Tells connections beyond the limit why they are closed.
struct Administrators {
    idle: Duration,
}

impl<F: Family> Acceptance<F> for Administrators {
    fn admits(&mut self, stream: &F::Stream, _remote: &F::Addr, open: usize) -> bool {
        if open < MOST {
            return true;
        }
        let idle = self.idle.as_secs();
        let text =
            format!("error: all {MOST} connections are in use; one without a command ends after {idle} seconds\n");
        _ = stream.try_send(text.as_bytes());
        false
    }
}

struct Commands {
    administered: Administered,
    idle: Duration,
    /// When the last command had been carried out.
    last_command: Instant,
}

impl<F: Family> FrameHandler<F> for Commands {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.stream().set_send_timeout(Some(self.idle))?;
        peer.schedule(self.idle, None, 0).map(drop)
    }

    fn handle_frame(&mut self, peer: &mut Peer<'_, F>, frame: &[u8]) -> io::Result<()> {
        let answer = self.administered.command(frame);
        if let Err(CommandError::NoCommand(reason)) = &answer {
            tracing::warn!(remote = %peer.remote(), reason, "a line is no command of the administration");
            peer.close();
        }
        let text = match answer {
            // A line of a plug-in is one line: it ends no answer.
            Ok(lines) => lines.iter().map(|line| format!("{}\n", escape(line))).chain(["ok\n".to_owned()]).collect(),
            Err(error) => format!("error: {}\n", escape(&error.to_string())),
        };
        peer.put(text.as_bytes())?;
        self.last_command = Instant::now();
        Ok(())
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, _: Expired) -> io::Result<()> {
        let left = self.idle.saturating_sub(self.last_command.elapsed());
        if !left.is_zero() {
            return peer.schedule(left, None, 0).map(drop);
        }
        peer.close();
        peer.put(format!("error: no command in {} seconds\n", self.idle.as_secs()).as_bytes())
    }
}

impl SharedObject for Administration {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let mut has_place = false;
        let idle = Duration::from_secs(args.idle);
        #[cfg(unix)]
        if let Some(path) = &args.socket {
            use spandrel::net::ipc::unix;

            let address = unix::Addr::path(path)?;
            let options = unix::AcceptorOptions::default().replace_stale(true).mode(0o600);
            self.open(context, unix::Unix::new(options, unix::Connector::new()), &address, idle)?;
            has_place = true;
        }
        if let Some(port) = args.port {
            self.open(context, Inet::default(), &Addr::loopback(port), idle)?;
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
