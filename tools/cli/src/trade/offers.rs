//! `spandrel trade export`, `withdraw`, `modify` and `describe`: single offers, and the trader itself.

use anyhow::Context as _;
use spandrel::net::error::escape;
use spandrel::services::cos_trading::register::WithdrawError;
use spandrel::types::TypeCode;

use super::query::object;
use super::table::Table;
use super::trader::{Trader, TraderArgs};
use super::values;
use crate::common;
use crate::json::{JsonObject, array};
use crate::naming;
use crate::orb_args::reference_text;

const EXPORT_EXAMPLES: &str = "\
Examples:
  spandrel trade export Printer IOR:0100... name=laser ppm=35
  some-server | head -1 | spandrel trade export Printer - name=laser 'features=[\"duplex\", \"colour\"]'
  spandrel trade export Printer Office/laser 'room=string \"4.12\"'

Values are those of `spandrel call`. The service type says of which types; a property that it has not has its type before the value.
Prints the id of the offer, for withdraw, modify and describe.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Export an offer: an object with its properties.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    /// The service type
    #[arg(value_name = "TYPE")]
    service_type: String,
    /// The object: a reference as IOR:, corbaloc: or corbaname:, a name in the naming service, or - to read one of them from
    /// standard input
    reference: String,
    /// The properties
    #[arg(value_name = "NAME=VALUE")]
    properties: Vec<String>,
    #[command(flatten)]
    trader: TraderArgs,
}

impl ExportArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.trader.run(|trader| {
            let object = naming::object(&trader.orb, &reference_text(&self.reference)?)?;
            let types = trader.property_types(&self.service_type)?;
            let properties = self.properties.iter().map(|text| values::property(&trader.orb, text, &types));
            let properties = properties.collect::<anyhow::Result<Vec<_>>>()?;
            let id = trader.register()?.export(Some(&object), &self.service_type, &properties);
            let id =
                id.with_context(|| format!("cannot export an offer of the type `{}`", escape(&self.service_type)))?;
            Ok(match self.trader.is_json() {
                true => format!("{}\n", JsonObject::new().value("exported", id).finish()),
                false => format!("{}\n", escape(&id)),
            })
        })
    }
}

impl Trader {
    /// The names and types of all properties of a service type. Empty if the trader has no repository of types.
    fn property_types(&self, service_type: &str) -> anyhow::Result<Vec<(String, TypeCode)>> {
        let Ok(repository) = self.repository() else { return Ok(Vec::new()) };
        let described = repository.fully_describe_type(service_type);
        let described = described.with_context(|| self.no_type(service_type))?;
        Ok(described.props.into_iter().map(|property| (property.name, property.value_type)).collect())
    }

    /// The error of a service type that cannot be described, with a similar name.
    pub(super) fn no_type(&self, service_type: &str) -> String {
        let names = self.type_names().unwrap_or_default();
        let similar = match names.iter().any(|name| name == service_type) {
            true => String::new(),
            false => common::did_you_mean(service_type, names.iter().map(|name| &**name)),
        };
        format!("cannot describe the service type `{}`{similar}", escape(service_type))
    }
}

/// Withdraw offers by their ids, or all of a type that match a constraint.
#[derive(Debug, clap::Args)]
pub(crate) struct WithdrawArgs {
    /// The ids of offers
    #[arg(value_name = "ID", required_unless_present = "matching", conflicts_with = "matching")]
    ids: Vec<String>,
    /// Withdraw the offers of this type (with its subtypes) that match the constraint
    #[arg(long, num_args = 2, value_names = ["TYPE", "CONSTRAINT"])]
    matching: Option<Vec<String>>,
    #[command(flatten)]
    trader: TraderArgs,
}

impl WithdrawArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.trader.run(|trader| {
            let register = trader.register()?;
            if let Some([service_type, constraint]) = self.matching.as_deref() {
                let outcome = register.withdraw_using_constraint(service_type, constraint);
                outcome.with_context(|| format!("cannot withdraw offers of the type `{}`", escape(service_type)))?;
            }
            for id in &self.ids {
                withdraw(trader, id).with_context(|| format!("cannot withdraw the offer `{}`", escape(id)))?;
            }
            let withdrawn = array(self.ids.iter().map(|id| crate::json::text(id)));
            Ok(match self.trader.is_json() {
                true => format!("{}\n", JsonObject::new().json("withdrawn", &withdrawn).finish()),
                false => String::new(),
            })
        })
    }
}

/// Withdraws an offer, or a proxy offer, of which the id does not tell apart.
fn withdraw(trader: &Trader, id: &str) -> anyhow::Result<()> {
    match trader.register()?.withdraw(id) {
        Err(WithdrawError::ProxyOfferId(_)) => Ok(trader.proxy()?.withdraw_proxy(id)?),
        done => Ok(done?),
    }
}

/// Change, add or delete properties of an offer.
#[derive(Debug, clap::Args)]
pub(crate) struct ModifyArgs {
    /// The id of the offer
    id: String,
    /// Properties with their new values
    #[arg(value_name = "NAME=VALUE", required_unless_present = "delete")]
    properties: Vec<String>,
    /// Delete this property; may be repeated
    #[arg(long, value_name = "NAME")]
    delete: Vec<String>,
    #[command(flatten)]
    trader: TraderArgs,
}

impl ModifyArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.trader.run(|trader| {
            let failed = || format!("cannot modify the offer `{}`", escape(&self.id));
            let offer = trader.register()?.describe(&self.id).with_context(failed)?;
            let types = trader.property_types(&offer.r#type)?;
            let properties = self.properties.iter().map(|text| values::property(&trader.orb, text, &types));
            let properties = properties.collect::<anyhow::Result<Vec<_>>>()?;
            trader.register()?.modify(&self.id, &self.delete, &properties).with_context(failed)?;
            Ok(self.trader.reported("modified", &self.id))
        })
    }
}

/// Describe an offer; or without an id, the trader: its limits and defaults.
#[derive(Debug, clap::Args)]
pub(crate) struct DescribeArgs {
    /// The id of the offer
    id: Option<String>,
    #[command(flatten)]
    trader: TraderArgs,
}

impl DescribeArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        self.trader.run(|trader| match &self.id {
            Some(id) => self.offer(trader, id),
            None => self.attributes(trader),
        })
    }

    fn offer(&self, trader: &Trader, id: &str) -> anyhow::Result<String> {
        use spandrel::services::cos_trading::register::DescribeError;
        let failed = || format!("cannot describe the offer `{}`", escape(id));
        let offer = match trader.register()?.describe(id) {
            Err(DescribeError::ProxyOfferId(_)) => return self.proxy(trader, id).with_context(failed),
            described => described.with_context(failed)?,
        };
        if self.trader.is_json() {
            let object = JsonObject::new().value("id", id).value("type", offer.r#type);
            let object = object.optional("reference", offer.reference.as_ref().map(ToString::to_string));
            return Ok(format!("{}\n", object.json("properties", &values::json(&offer.properties)).finish()));
        }
        let mut table = Table::untitled();
        table.row(["type".to_owned(), offer.r#type.clone()]);
        table.row(["object".to_owned(), object(offer.reference.as_ref())]);
        for property in &offer.properties {
            table.row([property.name.clone(), values::text(&property.value)]);
        }
        Ok(table.finish())
    }

    fn proxy(&self, trader: &Trader, id: &str) -> anyhow::Result<String> {
        let offer = trader.proxy()?.describe_proxy(id)?;
        if self.trader.is_json() {
            let target = offer.target.as_ref().map(|target| target.as_object().to_string());
            let object = JsonObject::new().value("id", id).value("type", offer.r#type).optional("target", target);
            let object = object.value("if_match_all", offer.if_match_all).value("recipe", offer.recipe);
            return Ok(format!("{}\n", object.json("properties", &values::json(&offer.properties)).finish()));
        }
        let mut table = Table::untitled();
        table.row(["type".to_owned(), offer.r#type.clone()]);
        table.row(["proxy of".to_owned(), object(offer.target.as_ref().map(|target| target.as_object()))]);
        table.row(["recipe".to_owned(), offer.recipe.clone()]);
        table.row(["if_match_all".to_owned(), offer.if_match_all.to_string()]);
        for property in &offer.properties {
            table.row([property.name.clone(), values::text(&property.value)]);
        }
        Ok(table.finish())
    }

    fn attributes(&self, trader: &Trader) -> anyhow::Result<String> {
        let lookup = trader.lookup()?;
        let numbers = [
            ("def_search_card", lookup.def_search_card()),
            ("max_search_card", lookup.max_search_card()),
            ("def_match_card", lookup.def_match_card()),
            ("max_match_card", lookup.max_match_card()),
            ("def_return_card", lookup.def_return_card()),
            ("max_return_card", lookup.max_return_card()),
            ("max_list", lookup.max_list()),
            ("def_hop_count", lookup.def_hop_count()),
            ("max_hop_count", lookup.max_hop_count()),
        ];
        let mut rows: Vec<(&str, serde_json::Value)> = Vec::new();
        for (name, number) in numbers {
            rows.push((name, number.with_context(|| format!("cannot read the attribute {name}"))?.into()));
        }
        for (name, option) in
            [("def_follow_policy", lookup.def_follow_policy()), ("max_follow_policy", lookup.max_follow_policy())]
        {
            rows.push((name, values::follow_text(option?).into()));
        }
        for (name, is_supported) in [
            ("supports_dynamic_properties", lookup.supports_dynamic_properties()),
            ("supports_modifiable_properties", lookup.supports_modifiable_properties()),
            ("supports_proxy_offers", lookup.supports_proxy_offers()),
        ] {
            rows.push((name, is_supported?.into()));
        }
        if self.trader.is_json() {
            let object = rows.into_iter().fold(JsonObject::new(), |object, (name, value)| object.value(name, value));
            return Ok(format!("{}\n", object.finish()));
        }
        let mut table = Table::untitled();
        for (name, value) in rows {
            table.row([name.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)]);
        }
        Ok(table.finish())
    }
}
