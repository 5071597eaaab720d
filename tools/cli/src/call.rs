//! `spandrel call`: one call of an object, with the interface from an IDL file.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use spandrel::dynamic::{
    Descriptions, DynAny, DynamicObject, InterfaceDescription, OperationDescription, Outcome, RequestError,
    Undescribed, ValueTypes, describe_file,
};
use spandrel::{ObjectRef, Orb, types::Any};

use crate::{common, ior};

const EXAMPLES: &str = "\
Examples:
  spandrel call --idl bank.idl corbaloc::localhost:2809/Account deposit 100
  spandrel call --idl bank.idl - transfer '{number: 7, owner: \"Ada\"}' '[1.5, 2]' < account.ior
  spandrel call --idl bank.idl IOR:0100... balance
  spandrel call --idl bank.idl IOR:0100...

Arguments are those of `in` and `inout` parameters, much as in JSON: true, 0xff, 1.5e3, \"text\" (without quotes if nothing else is
in the argument), ENUMERATOR, {member: value, ...}, [value, ...], for unions {member: value}, for references a URL or null.
Values of value types are {member: value, ...} or null. {_type: \"IDL:Derived:1.0\", ...} is one of a derived type, and says of which type the
value in an abstract interface is; {_id: 1, ...} numbers a value, and {_ref: 1} is the same value once more.
An attribute is got by its name, and set by its name and a value. Without an operation, those that there are are listed.

Prints the result, then a line for each `inout` and `out` parameter with its name.

Exit codes: 0 done, 1 failed, or the operation raised an exception, 2 wrong usage.";

/// Call an operation of an object.
///
/// Reads the interface from an IDL file, so that nothing needs to be compiled.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reference, as IOR: or corbaloc:, or - to read it from standard input
    reference: String,
    /// The operation, or an attribute
    operation: Option<String>,
    /// The values of its parameters
    #[arg(allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// The file that declares the interface
    #[arg(long, value_name = "FILE")]
    idl: PathBuf,
    /// A folder with included files
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// The interface, as Bank::Account or by its repository id; by default that of the reference
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The time limit of the call in seconds
    #[arg(short, long, value_name = "SECONDS", default_value_t = 30.0)]
    timeout: f64,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let idl = describe_file(&self.idl, self.include.iter().cloned());
        let idl = idl.with_context(|| format!("cannot use the IDL file {}", self.idl.display()))?;
        let timeout = Duration::try_from_secs_f64(self.timeout).context("invalid value of --timeout")?;
        let orb = Orb::builder().request_timeout(Some(timeout)).build()?;
        let reference = ior::reference_text(self.reference.clone())?;
        let object = orb.string_to_object(&reference).context("cannot read the reference")?;
        let interface = self.interface(&idl, &object)?;
        let Some(name) = &self.operation else { return list(&interface) };
        let operation = find(&interface, name, self.arguments.len())?;
        let arguments = read(&orb, operation, interface.value_types(), &self.arguments)?;
        let outcome = DynamicObject::new(object, interface.clone()).call(&operation.name, &arguments);
        common::print(&show(operation, &outcome.map_err(explain)?)?)
    }

    fn interface(&self, idl: &Descriptions, object: &ObjectRef) -> anyhow::Result<InterfaceDescription> {
        let named = self.interface.as_deref().or(Some(object.type_id()).filter(|id| !id.is_empty()));
        if let Some(name) = named {
            return idl.interface(name).with_context(|| format!("{} does not declare `{name}`", self.idl.display()));
        }
        let all: Vec<&str> = idl.interfaces().collect();
        match all[..] {
            [only] => Ok(idl.interface(only)?),
            [] => bail!("{} declares no interface", self.idl.display()),
            _ => bail!("the reference has no type: give --interface, one of {}", all.join(", ")),
        }
    }
}

/// The operation, or the accessor of an attribute.
fn find<'i>(
    interface: &'i InterfaceDescription,
    name: &str,
    arguments: usize,
) -> anyhow::Result<&'i OperationDescription> {
    let accessor = if arguments == 0 { "_get_" } else { "_set_" };
    let found = interface.find(name).or_else(|| interface.find(&format!("{accessor}{name}")));
    if let Some(Undescribed { reason, .. }) = interface.undescribed().iter().find(|it| it.name == name) {
        bail!("`{name}` of `{}` cannot be called: {reason}", interface.id());
    }
    found.ok_or_else(|| {
        anyhow!("`{}` has no operation or attribute `{name}` with this number of arguments", interface.id())
    })
}

fn list(interface: &InterfaceDescription) -> anyhow::Result<()> {
    let lines = interface.operations().iter().map(|operation| format!("{operation}\n"));
    let left_out = interface.undescribed().iter();
    let left_out = left_out.map(|Undescribed { name, reason }| format!("// {name} cannot be called: {reason}\n"));
    common::print(&lines.chain(left_out).collect::<String>())
}

fn read(
    orb: &Orb,
    operation: &OperationDescription,
    value_types: &ValueTypes,
    texts: &[String],
) -> anyhow::Result<Vec<Any>> {
    let sent: Vec<_> = operation.parameters.iter().filter(|parameter| parameter.mode.is_sent()).collect();
    if sent.len() != texts.len() {
        bail!("`{operation}` takes {} arguments, not {}", sent.len(), texts.len());
    }
    let resolve = |url: &str| {
        let object = orb.string_to_object(url);
        object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
    };
    let read = sent.iter().zip(texts).map(|(parameter, text)| {
        let value = DynAny::from_text_with(&parameter.type_code, text, value_types, &resolve);
        let type_spec = parameter.type_code.type_spec();
        let value =
            value.with_context(|| format!("invalid value `{text}` for `{}`: expected `{type_spec}`", parameter.name));
        Ok(value?.to_any()?)
    });
    read.collect()
}

fn show(operation: &OperationDescription, outcome: &Outcome) -> anyhow::Result<String> {
    let mut text = String::new();
    if operation.result.kind() != spandrel::types::TcKind::Void {
        text = format!("{}\n", DynAny::new(&outcome.result)?);
    }
    for out in &outcome.outs {
        if let Some(value) = &out.value {
            text.push_str(&format!("{}: {}\n", out.name, DynAny::new(value)?));
        }
    }
    Ok(text)
}

/// An exception of the operation is shown with its members.
fn explain(error: RequestError) -> anyhow::Error {
    match &error {
        RequestError::Raised(raised) => match DynAny::new(&raised.exception) {
            Ok(members) => anyhow!("{raised} {members}"),
            Err(_) => anyhow!(error),
        },
        _ => anyhow!(error),
    }
}
