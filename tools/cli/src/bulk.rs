//! `spandrel bulk`: files over the bulk streams that operations hand over.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use spandrel::dynamic::{DynamicObject, OperationDescription, Outcome};
use spandrel::net::reactor::on_termination;
use spandrel::types::{Any, TypeCode};
use spandrel_lab::bulk::{Direction, FileOutcome, FileTransfer, OFFER_ID};

use crate::call::explain;
use crate::call::interface::{self, InterfaceArgs};
use crate::call::values::with_context;
use crate::client_args::ClientArgs;
use crate::orb_args::reference_text;
use crate::{common, json, naming};

const EXAMPLES: &str = "\
Examples:
  spandrel bulk get --idl gallery.idl -I orb/bulk/idl Gallery scan.raw fetch scan.raw
  spandrel bulk put --idl gallery.idl -I orb/bulk/idl Gallery scan.raw store scan.raw
  spandrel bulk get Gallery scan.raw fetch scan.raw --time-limit 2min --json
  spandrel bulk get Gallery scan.raw fetch scan.raw --listen 192.0.2.7:7100

Calls an operation that returns a Bulk::Offer, or has one as an out parameter, and transfers the file over the connection that
the offer names: a UNIX-domain socket, TCP or TLS, else calls. A connection that breaks is opened again, and the transfer goes on
where it ended. A new file has its name once it is whole; until then the octets are in a hidden file beside it. Ctrl-C ends the
transfer, and the other party is told of it.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Transfer a file over a bulk stream that an operation of an object hands over.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the octets that the object sends to a file
    Get(TransferArgs),
    /// Send the octets of a file to the object
    Put(TransferArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct TransferArgs {
    /// The reference, as IOR:, corbaloc: or corbaname:, or a name such as Plant/images, or - to read it from standard input
    #[arg(index = 1)]
    reference: String,
    /// The file at this side
    #[arg(index = 2)]
    file: PathBuf,
    /// The operation that hands over the stream
    #[arg(index = 3)]
    operation: String,
    /// The values of its parameters, as of `spandrel call`
    #[arg(index = 4, allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    interface: InterfaceArgs,
    /// The time limit of the whole transfer; without it, only that of progress holds
    #[arg(long, value_name = "TIME", value_parser = common::positive_time)]
    time_limit: Option<Duration>,
    /// The longest time without progress
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = common::positive_time)]
    idle: Duration,
    /// How often a connection that broke is opened again
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = common::whole(0..=1000_u32))]
    resumptions: u32,
    /// Let the other party open the connection to this address of this machine, if it cannot be reached itself
    #[arg(long, value_name = "HOST:PORT", value_parser = common::host_and_port)]
    listen: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (direction, args) = match &self.command {
            Command::Get(args) => (Direction::Get, args),
            Command::Put(args) => (Direction::Put, args),
        };
        args.client.reported(args.run(direction))
    }
}

impl TransferArgs {
    fn run(&self, direction: Direction) -> anyhow::Result<()> {
        let orb = self.client.orb()?;
        let object = naming::object(&orb, &reference_text(&self.reference)?)?;
        let ior = object.ior().clone();
        let described = self.interface.find(&orb, &object).map_err(|error| self.client.explained(error, &ior))?;
        let operation = interface::operation(&described.interface, &self.operation, self.arguments.len())?;
        if !hands_over(operation) {
            let others =
                described.interface.operations().iter().filter(|other| hands_over(other)).map(|other| &*other.name);
            let others = others.collect::<Vec<_>>().join(", ");
            let others = if others.is_empty() { String::new() } else { format!("; these do: {others}") };
            bail!("the operation `{}` hands over no Bulk::Offer{others}", operation.name);
        }
        let arguments =
            with_context(&orb, &described, |context| operation.read_argument_list(&self.arguments, context))?;
        let object = DynamicObject::new(object, described.interface.clone());
        let transfer = self.transfer(direction)?;
        // Ctrl-C ends the transfer, and the second one the process.
        let is_interrupted = Arc::clone(&transfer.is_interrupted);
        let handler = on_termination(move |_| !is_interrupted.swap(true, Ordering::Relaxed));
        let handler = handler.context("cannot handle Ctrl-C")?;
        let result = transfer.run(|| {
            let outcome = object.call(&operation.name, &arguments);
            let outcome = outcome.map_err(|error| self.client.explained(explain(error), &ior))?;
            offer(&outcome).cloned().context("the operation returned no offer")
        });
        drop(handler);
        common::print(&self.text(&result?))
    }

    fn transfer(&self, direction: Direction) -> anyhow::Result<FileTransfer> {
        Ok(FileTransfer {
            direction,
            file: self.file.clone(),
            time_limit: self.time_limit,
            idle: self.idle,
            resumptions: self.resumptions,
            listen: self.listen.clone(),
            tls: self.client.tls()?,
            is_interrupted: Arc::new(AtomicBool::new(false)),
        })
    }

    fn text(&self, outcome: &FileOutcome) -> String {
        let FileOutcome { octets, checksum, is_verified, route } = outcome;
        if self.client.json {
            let object = json::JsonObject::new().value("octets", *octets).value("checksum", format!("{checksum:08x}"));
            let object = object.value("verified", *is_verified).value("route", route.as_str());
            return format!("{}\n", object.finish());
        }
        let compared = if *is_verified { ", compared" } else { "" };
        format!("{octets} octets by {route}, CRC-32 {checksum:08x}{compared}\n")
    }
}

fn is_offer(type_code: &TypeCode) -> bool {
    type_code.without_aliases().id().is_ok_and(|id| id == OFFER_ID)
}

/// Whether the operation returns an offer, or has one as an `out` or `inout` parameter.
fn hands_over(operation: &OperationDescription) -> bool {
    let mut outs = operation.parameters.iter().filter(|parameter| parameter.mode.is_returned());
    is_offer(&operation.result) || outs.any(|parameter| is_offer(&parameter.type_code))
}

/// The first offer among the results.
fn offer(outcome: &Outcome) -> Option<&Any> {
    let outs = outcome.outs.iter().filter_map(|out| out.value.as_ref());
    std::iter::once(&outcome.result).chain(outs).find(|value| is_offer(value.type_code()))
}
