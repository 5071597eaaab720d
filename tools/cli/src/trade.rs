//! `spandrel trade`: offers, service types and links of a trader.

mod links;
mod offers;
mod query;
mod table;
mod types;
mod values;

use anyhow::Context as _;
use spandrel::Orb;
use spandrel::net::sync::time::Deadline;
use spandrel::services::cos_trading::{Link, Lookup, Proxy, Register};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::types::Interface;
use spandrel::{ObjectRef, SystemException};

use crate::client_args::{ClientArgs, bound};
use crate::json::JsonObject;
use crate::naming;

const EXAMPLES: &str = "\
Examples:
  spandrel trade types add Printer --interface IDL:Office/Printer:1.0 'mandatory string name' 'unsigned short ppm' 'boolean colour'
  spandrel trade export Printer IOR:0100... name=laser ppm=35 colour=true
  spandrel trade query Printer 'ppm > 20 and colour' --prefer 'max ppm'
  spandrel trade query Printer --references | head -1 | spandrel call - status
  spandrel trade links add branch corbaloc::branch.example:2811/TradingService
  spandrel trade --help

Without --at and -ORBInitRef TradingService=URL, the trader is that at 127.0.0.1:2811.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// The trader where none is given.
const TRADER: &str = "corbaloc::127.0.0.1:2811/TradingService";
const INITIAL_REFERENCE: &str = "TradingService";

/// Find objects by their properties: offers, service types and links of a trader.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Query(query::Args),
    Export(offers::ExportArgs),
    Withdraw(offers::WithdrawArgs),
    Modify(offers::ModifyArgs),
    Describe(offers::DescribeArgs),
    Types(types::Args),
    Links(links::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Query(args) => args.run(),
            Command::Export(args) => args.run(),
            Command::Withdraw(args) => args.run(),
            Command::Modify(args) => args.run(),
            Command::Describe(args) => args.run(),
            Command::Types(args) => args.run(),
            Command::Links(args) => args.run(),
        }
    }
}

/// The options of all subcommands.
#[derive(Debug, clap::Args)]
struct TraderArgs {
    /// The trader: a URL, or a name in the naming service
    #[arg(long, value_name = "TRADER")]
    at: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

impl TraderArgs {
    /// Runs a subcommand, whose result is the text to print.
    fn run(&self, act: impl FnOnce(&Trader) -> anyhow::Result<String>) -> anyhow::Result<()> {
        let text = self.client.reported(self.trader().and_then(|trader| act(&trader)))?;
        crate::common::print(&text)
    }

    /// The output of a change: nothing, or a JSON object.
    fn reported(&self, done: &str, name: &str) -> String {
        if !self.is_json() {
            return String::new();
        }
        format!("{}\n", JsonObject::new().value(done, name).finish())
    }

    fn is_json(&self) -> bool {
        self.client.json
    }

    fn trader(&self) -> anyhow::Result<Trader> {
        let (orb, deadline) = (self.client.orb()?, self.client.deadline());
        let lookup = match &self.at {
            Some(text) => naming::object(&orb, text)?,
            None if orb.has_initial_reference(INITIAL_REFERENCE) => {
                orb.resolve_initial_references(INITIAL_REFERENCE)
                    .context("cannot use the given initial reference `TradingService`")?
            }
            None => orb.string_to_object(TRADER)?,
        };
        Ok(Trader { orb, lookup: lookup.unchecked_narrow(), deadline })
    }
}

/// A trader, with one time limit for all calls of a command.
struct Trader {
    orb: Orb,
    lookup: Lookup,
    deadline: Deadline,
}

impl Trader {
    /// The object with the time that is left.
    fn bound<I: Interface>(&self, object: &ObjectRef) -> anyhow::Result<I> {
        Ok(bound(object, self.deadline)?.unchecked_narrow())
    }

    fn lookup(&self) -> anyhow::Result<Lookup> {
        self.bound(self.lookup.as_object())
    }

    fn register(&self) -> anyhow::Result<Register> {
        self.component(self.lookup()?.register_if().map(untyped), "Register")
    }

    fn link(&self) -> anyhow::Result<Link> {
        self.component(self.lookup()?.link_if().map(untyped), "Link")
    }

    fn proxy(&self) -> anyhow::Result<Proxy> {
        self.component(self.lookup()?.proxy_if().map(untyped), "Proxy")
    }

    fn repository(&self) -> anyhow::Result<ServiceTypeRepository> {
        self.component(self.lookup()?.type_repos(), "ServiceTypeRepository")
    }

    /// A component of the trader, which need not have all.
    fn component<I: Interface>(
        &self,
        got: Result<Option<ObjectRef>, SystemException>,
        interface: &str,
    ) -> anyhow::Result<I> {
        let component = got.context("cannot reach the trader")?;
        let component = component.with_context(|| format!("the trader has no interface {interface}"))?;
        self.bound(&component)
    }
}

fn untyped<I: Interface>(object: Option<I>) -> Option<ObjectRef> {
    object.map(|object| object.as_object().clone())
}
