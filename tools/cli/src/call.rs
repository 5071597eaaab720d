//! `spandrel call`: calls of an object, with the interface from an IDL file or an interface repository.

mod exception;
mod interface;
mod listing;
mod load;

use std::path::PathBuf;
use std::time::Duration;

use spandrel::dynamic::{
    Descriptions, DynAny, DynamicObject, InterfaceDescription, OperationDescription, Outcome, TextContext,
};
use spandrel::types::{Any, TcKind};
use spandrel::{ObjectRef, Orb};

use crate::common;
use crate::json;
use crate::orb_args::{OrbArgs, reference_text};
use exception::{OperationException, explain};

const EXAMPLES: &str = "\
Examples:
  spandrel call --idl bank.idl corbaloc::localhost:2809/Account deposit 100
  spandrel call --idl bank.idl - transfer '{number: 7, owner: \"Ada\"}' '[1.5, 2]' < account.ior
  spandrel call --idl tango.idl corbaname::db:10000#sys/tg_test/1 command_inout DevLong 'Tango::DevVarLongArray [1, 2]'
  spandrel call --idl bank.idl --ca authority.pem --json IOR:0100... balance
  spandrel call --idl bank.idl --rate 5000 --duration 30s --connections 4 IOR:0100... balance
  spandrel call --idl bank.idl IOR:0100...
  spandrel call --orb '-ORBInitRef InterfaceRepository=corbaloc::ir.example:2809/InterfaceRepository' IOR:0100... balance

Arguments are those of `in` and `inout` parameters, much as in JSON: true, 0xff, 1.5e3, \"text\" (without quotes if nothing else is
in the argument), ENUMERATOR, {member: value, ...}, [value, ...], for unions {member: value}, for references a URL or null; an any has
its type before its value: short 3, sequence<long> [1, 2], Bank::Entry {what: \"x\", ..}. In a struct, .. gives all other members their
defaults. Values of value types are {member: value, ...} or null. {_type: \"IDL:Derived:1.0\", ...} is one of a derived type, and says of
which type the value in an abstract interface is; {_id: 1, ...} numbers a value, and {_ref: 1} is the same value once more.
An attribute is got by its name, and set by its name and a value. Without an operation, those that there are are listed.

Prints the result, then a line for each `inout` and `out` parameter with its name; with --json one JSON object.

Exit codes: 0 done, 1 failed, or the operation raised an exception, 2 wrong usage.";

/// Call an operation of an object.
///
/// Reads the interface from an IDL file, or without one from the interface repository of the object's server or of
/// -ORBInitRef, so that nothing needs to be compiled.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reference, as IOR:, corbaloc: or corbaname:, or - to read it from standard input
    reference: String,
    /// The operation, or an attribute
    operation: Option<String>,
    /// The values of its parameters; those that begin with a hyphen and are no numbers after --
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// The file that declares the interface; without it, an interface repository describes it
    #[arg(long, value_name = "FILE")]
    idl: Option<PathBuf>,
    /// A folder with included files
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// The interface, as Bank::Account or by its repository id; by default that of the reference, or the one
    /// that the object supports
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The time limit of the call in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = common::positive_seconds)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    load: load::LoadArgs,
    #[command(flatten)]
    orb: OrbArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let done = self.call();
        if let (true, Err(error)) = (self.json, &done) {
            let failure = match error.downcast_ref::<OperationException>() {
                Some(raised) => raised.0.to_json(),
                None => json::failure(error),
            };
            common::print(&format!("{failure}\n"))?;
        }
        done
    }

    fn call(&self) -> anyhow::Result<()> {
        let idl = self.idl.as_ref().map(|file| common::read_idl(file, &self.include)).transpose()?;
        let orb = self.new_orb()?;
        let object = self.orb.object(&orb, &reference_text(&self.reference)?)?;
        let ior = object.ior().clone();
        let interface = match (&idl, &self.idl) {
            (Some(idl), Some(file)) => interface::find(idl, file, self.interface.as_deref(), &object),
            _ => interface::from_repository(&orb, self.interface.as_deref(), &object),
        };
        let interface = interface.map_err(|error| self.orb.explained(error, &ior))?;
        let Some(name) = &self.operation else {
            return common::print(&if self.json { listing::json(&interface) } else { listing::text(&interface) });
        };
        let operation = interface::operation(&interface, name, self.arguments.len())?;
        let arguments = read(&orb, idl.as_ref(), &interface, operation, &self.arguments)?;
        if let Some(rate) = self.load.rate() {
            let objects = self.objects(object, &interface)?;
            let call = |object: &DynamicObject| object.call(&operation.name, &arguments).map(drop);
            let done = self.load.run(rate, &objects, call, self.json);
            return done.map_err(|error| self.orb.explained(error, &ior));
        }
        let outcome = DynamicObject::new(object, interface.clone()).call(&operation.name, &arguments);
        let outcome = outcome.map_err(|error| self.orb.explained(explain(error), &ior))?;
        common::print(&if self.json { format!("{}\n", outcome.to_json()?) } else { show(operation, &outcome)? })
    }
}

impl Args {
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
        self.orb.orb_with(self.timeout, |builder| match self.load.rate() {
            Some(_) => builder.connections_per_peer(1),
            None => builder,
        })
    }
}

/// The arguments as values of the parameters' types.
fn read(
    orb: &Orb,
    idl: Option<&Descriptions>,
    interface: &InterfaceDescription,
    operation: &OperationDescription,
    texts: &[String],
) -> anyhow::Result<Vec<Any>> {
    let resolve = |url: &str| {
        let object = orb.string_to_object(url);
        object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
    };
    let types = |name: &str| idl?.type_code(name).ok();
    let context = TextContext::new().value_types(interface.value_types()).types(&types).references(&resolve);
    Ok(operation.read_argument_list(texts, &context)?)
}

fn show(operation: &OperationDescription, outcome: &Outcome) -> anyhow::Result<String> {
    let mut text = String::new();
    if operation.result.kind() != TcKind::Void {
        text = format!("{}\n", DynAny::new(&outcome.result)?);
    }
    for out in &outcome.outs {
        if let Some(value) = &out.value {
            text.push_str(&format!("{}: {}\n", out.name, DynAny::new(value)?));
        }
    }
    Ok(text)
}
