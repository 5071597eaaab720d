//! `spandrel call`: calls of an object, with the interface from an IDL file or an interface repository.

mod exception;
pub(crate) mod interface;
pub(crate) mod listing;
mod load;
mod series;
pub(crate) mod values;

use spandrel::dynamic::{DynamicObject, InterfaceDescription};
use spandrel::{ObjectRef, Orb};

use crate::client_args::ClientArgs;
use crate::orb_args::reference_text;
use crate::{common, json, naming};
use exception::OperationException;
pub(crate) use exception::explain;
use interface::InterfaceArgs;
use values::{shown, with_context};

const EXAMPLES: &str = "\
Examples:
  spandrel call Bank/alice deposit 100
  spandrel call corbaname::bank.example#Bank/alice deposit 100
  spandrel call --idl bank.idl corbaloc::localhost:2809/Account deposit 100
  spandrel call --idl bank.idl - transfer '{number: 7, owner: \"Ada\"}' '[1.5, 2]' < account.ior
  spandrel call --idl tango.idl corbaname::db:10000#sys/tg_test/1 command_inout DevLong 'Tango::DevVarLongArray [1, 2]'
  spandrel call --idl bank.idl --ca authority.pem --json IOR:0100... balance
  spandrel call --idl bank.idl --rate 5000 --duration 30s --connections 4 IOR:0100... balance
  spandrel call --idl bank.idl IOR:0100...
  spandrel call Bank/alice --repeat 10 --interval 1s balance
  spandrel call Bank/alice --calls calls.txt --deferred --json
  spandrel call --orb '-ORBInitRef InterfaceRepository=corbaloc::ir.example:2809/InterfaceRepository' IOR:0100... balance

Arguments are those of `in` and `inout` parameters, much as in JSON: true, 0xff, 1.5e3, \"text\" (without quotes if nothing else is
in the argument), ENUMERATOR, {member: value, ...}, [value, ...], for unions {member: value}, for references a URL or null; an any has
its type before its value: short 3, sequence<long> [1, 2], Bank::Entry {what: \"x\", ..}. In a struct, .. gives all other members their
defaults. Values of value types are {member: value, ...} or null. {_type: \"IDL:Derived:1.0\", ...} is one of a derived type, and says of
which type the value in an abstract interface is; {_id: 1, ...} numbers a value, and {_ref: 1} is the same value once more.
An attribute is got by its name, and set by its name and a value. Without an operation, those that there are are listed.

A reference that is no URL is a name of the naming service at 127.0.0.1:2809, or of --orb '-ORBInitRef NameService=URL'.
A file of calls (--calls) has one in each line: the operation, and perhaps a JSON object of its arguments by name, or an array of
them: deposit {\"cents\": 100}. Lines that begin with # are comments.

Prints the result, then a line for each `inout` and `out` parameter with its name; with --json one JSON object.

Exit codes: 0 done, 1 failed, or the operation raised an exception, 2 wrong usage.";

/// Call an operation of an object.
///
/// Reads the interface from an IDL file, or without one from the interface repository of the object's server or of
/// -ORBInitRef, so that nothing needs to be compiled.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reference, as IOR:, corbaloc: or corbaname:, or a name such as Bank/alice, or - to read it from standard input
    #[arg(index = 1)]
    reference: String,
    /// The operation, or an attribute
    #[arg(index = 2, conflicts_with = "calls")]
    operation: Option<String>,
    /// The values of its parameters; those that begin with a hyphen and are no numbers after --
    #[arg(index = 3, allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    interface: InterfaceArgs,
    #[command(flatten)]
    series: series::SeriesArgs,
    #[command(flatten)]
    load: load::LoadArgs,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let outcome = self.call();
        if let (true, Err(error)) = (self.client.json, &outcome) {
            let failure = match error.downcast_ref::<OperationException>() {
                Some(raised) => raised.0.to_json(),
                None => json::failure(error),
            };
            // The calls of a series have printed their failures.
            if !error.is::<series::FailedCalls>() {
                common::print(&format!("{failure}\n"))?;
            }
        }
        outcome
    }

    fn call(&self) -> anyhow::Result<()> {
        let orb = self.new_orb()?;
        let object = naming::object(&orb, &reference_text(&self.reference)?)?;
        let ior = object.ior().clone();
        let description = self.interface.find(&orb, &object).map_err(|error| self.client.explained(error, &ior))?;
        let interface = &description.interface;
        if let Some(calls) = self.series.calls()? {
            let calls =
                calls.iter().map(|call| call.prepare(&orb, &description)).collect::<anyhow::Result<Vec<_>>>()?;
            let object = DynamicObject::new(object, interface.clone());
            return self.series.run(&object, &calls, self.client.json);
        }
        let Some(name) = &self.operation else {
            return common::print(&if self.client.json { listing::json(interface) } else { listing::text(interface) });
        };
        let operation = interface::operation(interface, name, self.arguments.len())?;
        let arguments =
            with_context(&orb, &description, |context| operation.read_argument_list(&self.arguments, context))?;
        if let Some(rate) = self.load.rate() {
            let objects = self.objects(object, interface)?;
            let call = |object: &DynamicObject| object.call(&operation.name, &arguments).map(drop);
            let done = self.load.run(rate, &objects, call, self.client.json);
            return done.map_err(|error| self.client.explained(error, &ior));
        }
        let object = DynamicObject::new(object, interface.clone());
        if self.series.is_wanted() {
            let call = series::Call { operation: operation.name.clone(), arguments };
            return self.series.run(&object, &[call], self.client.json);
        }
        let outcome = object.call(&operation.name, &arguments);
        let outcome = outcome.map_err(|error| self.client.explained(explain(error), &ior))?;
        common::print(&shown(operation, &outcome, self.client.json)?)
    }

    /// The object once for each connection of a load. Each ORB has one connection, over which calls wait for
    /// their answers together.
    fn objects(&self, object: ObjectRef, interface: &InterfaceDescription) -> anyhow::Result<Vec<DynamicObject>> {
        let ior = object.ior().clone();
        let mut objects = vec![DynamicObject::new(object, interface.clone())];
        for _ in 1..self.load.connections() {
            let orb = self.new_orb()?;
            objects.push(DynamicObject::new(orb.reference(ior.clone()), interface.clone()));
        }
        Ok(objects)
    }

    fn new_orb(&self) -> anyhow::Result<Orb> {
        self.client.orb_with(|builder| match self.load.rate() {
            Some(_) => builder.connections_per_peer(1),
            None => builder,
        })
    }
}
