//! `spandrel trade`: offers, service types and links of a trader.

mod links;
mod offers;
mod query;
mod table;
mod trader;
mod types;
mod values;

pub(crate) use table::Table;
pub(crate) use values::{read_value, text as value_text};

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
