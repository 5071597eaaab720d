//! `spandrel trade types`: the service types of a trader's repository.

use anyhow::{Context as _, anyhow};
use spandrel::dynamic::describe;
use spandrel::net::error::{escape, excerpt};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::cos_trading_repos::service_type_repository::{
    ListOption, PropStruct, PropertyMode, SpecifiedServiceTypes, TypeStruct,
};

use super::table::Table;
use super::trader::{Trader, TraderArgs};
use crate::json::{JsonObject, array, text};

const EXAMPLES: &str = "\
Examples:
  spandrel trade types list
  spandrel trade types describe ColourPrinter
  spandrel trade types add Printer --interface IDL:Office/Printer:1.0 'mandatory string name' 'unsigned short ppm'
  spandrel trade types add ColourPrinter --interface IDL:Office/Printer:1.0 --base Printer 'sequence<string> inks'
  spandrel trade types mask Printer

A property is written as a member of an IDL struct, behind `mandatory`, `readonly` or both.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// List, describe, add, remove and mask service types.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the names of all service types
    List {
        #[command(flatten)]
        trader: TraderArgs,
    },
    /// Describe a service type with the properties of its bases
    Describe(NamedType),
    Add(AddArgs),
    /// Remove a service type, which must have no subtypes
    Remove(NamedType),
    /// Permit no new offers of a service type
    Mask(NamedType),
    /// Permit offers of a masked service type again
    Unmask(NamedType),
}

#[derive(Debug, clap::Args)]
struct NamedType {
    /// The service type
    #[arg(value_name = "TYPE")]
    name: String,
    #[command(flatten)]
    trader: TraderArgs,
}

/// Add a service type.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// The service type
    #[arg(value_name = "TYPE")]
    name: String,
    /// The properties, such as 'mandatory readonly string name'
    #[arg(value_name = "PROPERTY", value_parser = property)]
    properties: Vec<PropStruct>,
    /// The repository id of the interface that its objects have
    #[arg(short, long, value_name = "ID", default_value = "IDL:omg.org/CORBA/Object:1.0")]
    interface: String,
    /// A service type from which it inherits properties; may be repeated
    #[arg(short, long, value_name = "TYPE")]
    base: Vec<String>,
    #[command(flatten)]
    trader: TraderArgs,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match &self.command {
            Command::List { trader: args } => args.run(|trader| {
                let mut names = trader.type_names()?;
                names.sort();
                Ok(match args.is_json() {
                    true => format!("{}\n", array(names.iter().map(|name| text(name)))),
                    false => names.iter().map(|name| format!("{}\n", escape(name))).collect(),
                })
            }),
            Command::Describe(named) => named.trader.run(|trader| named.describe(trader)),
            Command::Add(add) => add.trader.run(|trader| {
                let outcome = trader.repository()?.add_type(&add.name, &add.interface, &add.properties, &add.base);
                outcome.with_context(|| format!("cannot add the service type `{}`", escape(&add.name)))?;
                Ok(add.trader.reported("added", &add.name))
            }),
            Command::Remove(named) => {
                named.change("remove", "removed", |repository| Ok(repository.remove_type(&named.name)?))
            }
            Command::Mask(named) => named.change("mask", "masked", |repository| Ok(repository.mask_type(&named.name)?)),
            Command::Unmask(named) => {
                named.change("unmask", "unmasked", |repository| Ok(repository.unmask_type(&named.name)?))
            }
        }
    }
}

impl NamedType {
    fn change(
        &self,
        verb: &str,
        done: &str,
        act: impl FnOnce(&ServiceTypeRepository) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.trader.run(|trader| {
            let changed = act(&trader.repository()?);
            changed.with_context(|| format!("cannot {verb} the service type `{}`", escape(&self.name)))?;
            Ok(self.trader.reported(done, &self.name))
        })
    }

    fn describe(&self, trader: &Trader) -> anyhow::Result<String> {
        let described = trader.repository()?.fully_describe_type(&self.name);
        let described = described.with_context(|| trader.no_type(&self.name))?;
        Ok(match self.trader.is_json() {
            true => format!("{}\n", json(&self.name, &described)),
            false => shown(&described),
        })
    }
}

impl Trader {
    pub(super) fn type_names(&self) -> anyhow::Result<Vec<String>> {
        let all = SpecifiedServiceTypes::Unlisted(ListOption::All);
        self.repository()?.list_types(&all).context("cannot list the service types")
    }
}

fn shown(described: &TypeStruct) -> String {
    let mut table = Table::untitled();
    table.row(["interface".to_owned(), described.if_name.clone()]);
    if !described.super_types.is_empty() {
        table.row(["bases".to_owned(), described.super_types.join(", ")]);
    }
    if described.masked {
        table.row(["masked".to_owned(), "yes".to_owned()]);
    }
    let mut text = table.finish();
    if !described.props.is_empty() {
        let mut properties = Table::new(["PROPERTY", "MODE", "TYPE"]);
        for property in &described.props {
            properties.row([property.name.clone(), mode(property.mode).to_owned(), property.value_type.to_string()]);
        }
        text += &properties.finish();
    }
    text
}

fn json(name: &str, described: &TypeStruct) -> String {
    let properties = described.props.iter().map(|property| {
        let object = JsonObject::new().value("name", &*property.name).value("mode", mode(property.mode));
        object.value("type", property.value_type.to_string()).finish()
    });
    let object = JsonObject::new().value("name", name).value("interface", &*described.if_name);
    let object = object.json("bases", &array(described.super_types.iter().map(|base| text(base))));
    object.value("masked", described.masked).json("properties", &array(properties)).finish()
}

fn mode(mode: PropertyMode) -> &'static str {
    match mode {
        PropertyMode::PropNormal => "normal",
        PropertyMode::PropReadonly => "readonly",
        PropertyMode::PropMandatory => "mandatory",
        PropertyMode::PropMandatoryReadonly => "mandatory readonly",
    }
}

/// The property of a member of an IDL struct, behind its modes.
fn property(given: &str) -> Result<PropStruct, String> {
    let (mut rest, mut is_mandatory, mut is_readonly) = (given.trim(), false, false);
    while let Some((word, behind)) = rest.split_once(char::is_whitespace) {
        match word {
            "mandatory" if !is_mandatory => is_mandatory = true,
            "readonly" if !is_readonly => is_readonly = true,
            _ => break,
        }
        rest = behind.trim_start();
    }
    member(rest.trim_end_matches(';'))
        .map_err(|error| {
            format!("cannot read the property: {error}; expected [mandatory] [readonly] TYPE NAME").replace('\n', " ")
        })
        .map(|(name, value_type)| {
            let mode = match (is_mandatory, is_readonly) {
                (false, false) => PropertyMode::PropNormal,
                (false, true) => PropertyMode::PropReadonly,
                (true, false) => PropertyMode::PropMandatory,
                (true, true) => PropertyMode::PropMandatoryReadonly,
            };
            PropStruct { name, value_type, mode }
        })
}

/// The name and type of the only member of a struct.
fn member(text: &str) -> anyhow::Result<(String, spandrel::types::TypeCode)> {
    // Not more than one declaration, whatever the text contains.
    if text.contains(['{', '}', ';', '#']) {
        return Err(anyhow!("`{}` is not one member", excerpt(text)));
    }
    let described = describe(&format!("struct Declared {{ {text}; }};")).map_err(|error| anyhow!(error.in_line()))?;
    let declared = described.type_code("Declared").map_err(|error| anyhow!(error.in_line()))?;
    if declared.member_count()? != 1 {
        return Err(anyhow!("`{}` is not one member", excerpt(text)));
    }
    Ok((declared.member_name(0)?.to_owned(), declared.member_type(0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_is_a_member_behind_its_modes() {
        let read = |text: &str| {
            property(text).map(|property| format!("{} {} {}", mode(property.mode), property.value_type, property.name))
        };
        assert_eq!(read("string name").unwrap(), "normal string name");
        assert_eq!(read("readonly mandatory unsigned short ppm;").unwrap(), "mandatory readonly unsigned short ppm");
        assert_eq!(read("mandatory sequence<string> inks").unwrap(), "mandatory sequence<string> inks");
        for invalid in [
            "",
            "name",
            "mandatory",
            "mandatory mandatory string x",
            "string a, b",
            "string a; long b",
            "nosuch x",
            "string a }; struct B { long x",
        ] {
            let error = read(invalid).unwrap_err();
            assert!(error.starts_with("cannot read the property: ") && !error.contains('\n'), "{invalid}: {error}");
        }
    }
}
