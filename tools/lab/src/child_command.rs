//! The subcommand `peer` of an executable that runs experiments: their child processes.

use std::env;
use std::process::Command;

use clap::Subcommand;

use crate::child;
#[cfg(target_os = "linux")]
use crate::peer::EchoServer;
use crate::peer::child::{ChildKind, ChildRole};

/// The role of a child process, as arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The core to pin itself to
    #[arg(long)]
    core: Option<usize>,
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Listen for control connections
    Receive { addr: String },
    /// Carry out jobs from standard input
    Transmit { addr: String },
    /// Serve this number of objects
    ServantsServer {
        servants: u32,
        /// Through a dynamic skeleton
        #[arg(long)]
        dynamic: bool,
    },
    /// Call the objects of a directory, by commands on standard input
    ServantsClient {
        reference: String,
        /// With a connection of its own for each reference
        #[arg(long)]
        private: bool,
    },
    /// Serve a soak run
    SoakServer {
        /// Options of its ORB
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Serve one object that counts its calls
    #[cfg(target_os = "linux")]
    CallsServer {
        /// Processor time of each upcall in microseconds
        #[arg(long, default_value_t = 0)]
        work: u32,
        /// With an asynchronous servant
        #[arg(long)]
        asynchronous: bool,
        /// Options of its ORB
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Keep calls in flight to an object, by commands on standard input
    #[cfg(target_os = "linux")]
    InFlightClient { reference: String },
    /// Serve one object with requests of several priorities
    #[cfg(target_os = "linux")]
    PrioritiesServer {
        contender: String,
        /// Processor time of an upcall of high and of low priority in microseconds
        #[arg(num_args = 2)]
        work: Vec<u32>,
        /// Processor time of a servant that spins, in milliseconds
        #[arg(long)]
        spin: u64,
        /// The path of a UNIX-domain socket to listen at as well
        #[arg(long)]
        path: Option<String>,
        /// The reference of the server that it calls, as an intermediary
        #[arg(long)]
        next: Option<String>,
    },
    /// Echo input on each connection
    #[cfg(target_os = "linux")]
    Echo { server: EchoServer },
}

impl Args {
    /// Sets an action that the child carries out at its end, unless it is ended from outside.
    pub fn at_end(&self, action: impl FnOnce() + Send + 'static) {
        child::set_end_action(Box::new(action));
    }

    /// Runs the child until the parent has ended. Failures are reported to the parent, which prints them, and end the
    /// process with 1.
    pub fn run(self) {
        let kind = match self.kind {
            Kind::Receive { addr } => ChildKind::Receive(addr),
            Kind::Transmit { addr } => ChildKind::Transmit(addr),
            Kind::ServantsServer { servants, dynamic } => ChildKind::ServantsServer { servants, is_dynamic: dynamic },
            Kind::ServantsClient { reference, private } => ChildKind::ServantsClient { reference, is_private: private },
            Kind::SoakServer { options } => ChildKind::SoakServer { options },
            #[cfg(target_os = "linux")]
            Kind::CallsServer { work, asynchronous, options } => {
                ChildKind::CallsServer { options, work_micros: work, is_asynchronous: asynchronous }
            }
            #[cfg(target_os = "linux")]
            Kind::InFlightClient { reference } => ChildKind::InFlightClient { reference },
            #[cfg(target_os = "linux")]
            Kind::PrioritiesServer { contender, work, spin, path, next } => ChildKind::PrioritiesServer {
                contender,
                path,
                next,
                work_micros: [work[0], work[1]],
                spin_millis: spin,
            },
            #[cfg(target_os = "linux")]
            Kind::Echo { server } => ChildKind::Echo(server),
        };
        if child::run(&ChildRole { kind, core: self.core }).is_err() {
            std::process::exit(1);
        }
    }
}

/// The command line that runs this program as the given child: its subcommand `peer`, with [`Args`].
#[must_use]
pub fn launch(role: &ChildRole) -> Command {
    let mut command = Command::new(env::current_exe().unwrap_or_else(|_| "spandrel".into()));
    command.arg("peer");
    if let Some(core) = role.core {
        command.arg("--core").arg(core.to_string());
    }
    match &role.kind {
        ChildKind::Receive(addr) => command.args(["receive", addr]),
        ChildKind::Transmit(addr) => command.args(["transmit", addr]),
        ChildKind::ServantsServer { servants, is_dynamic } => {
            command.args(["servants-server", &servants.to_string()]).args(is_dynamic.then_some("--dynamic"))
        }
        ChildKind::ServantsClient { reference, is_private } => {
            command.args(["servants-client", reference]).args(is_private.then_some("--private"))
        }
        ChildKind::SoakServer { options } => command.arg("soak-server").args(options),
        #[cfg(target_os = "linux")]
        ChildKind::CallsServer { options, work_micros, is_asynchronous } => {
            command.args(["calls-server", "--work", &work_micros.to_string()]);
            command.args(is_asynchronous.then_some("--asynchronous")).args(options)
        }
        #[cfg(target_os = "linux")]
        ChildKind::InFlightClient { reference } => command.args(["in-flight-client", reference]),
        #[cfg(target_os = "linux")]
        ChildKind::PrioritiesServer { contender, path, next, work_micros: [high, low], spin_millis } => {
            command.args(["priorities-server", "--spin", &spin_millis.to_string()]);
            command.args(path.iter().flat_map(|path| ["--path", path]));
            command.args(next.iter().flat_map(|next| ["--next", next]));
            command.args([contender, &high.to_string(), &low.to_string()])
        }
        #[cfg(target_os = "linux")]
        ChildKind::Echo(server) => command.args(["echo", server.name()]),
    };
    command
}
