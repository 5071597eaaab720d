//! `spandrel trade query`: the offers that match a constraint.

use anyhow::Context as _;
use spandrel::ObjectRef;
use spandrel::net::error::{escape, output};
use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading::{Offer, OfferIterator};
use spandrel::types::IiopProfile;

use super::table::Table;
use super::trader::{Trader, TraderArgs};
use super::values;
use crate::common;
use crate::json::{JsonObject, array};

const EXAMPLES: &str = "\
Examples:
  spandrel trade query Printer
  spandrel trade query Printer 'ppm > 20 and colour' --prefer 'min queue' --how-many 5
  spandrel trade query Printer \"'duplex' in features\" --property name --property queue --json
  spandrel trade query Printer --policy hop_count=2 --policy starting_trader=branch/annex
  spandrel trade query Printer --references | head -1 | spandrel call - status

Constraints and preferences are those of the trading service: == != < <= > >= + - * / and or not in ~ exist; min, max or with and an
expression, random, first. Values of dynamic properties are those at the time of the query.

Policies: exact_type_match, use_dynamic_properties, use_modifiable_properties and use_proxy_offers (true or false); search_card,
match_card, return_card and hop_count (a number); link_follow_rule (local_only, if_no_local or always); starting_trader (names of
links, with / between them). Others have a type before the value: NAME='unsigned long 5'.

Exit codes: 0 done (also if no offer matches), 1 failed, 2 wrong usage.";

/// The offers of one answer.
const CHUNK: u32 = 200;

/// Show the offers of a service type that match a constraint.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The service type
    #[arg(value_name = "TYPE")]
    service_type: String,
    /// The constraint; without one, all offers of the type match
    #[arg(default_value = "", hide_default_value = true)]
    constraint: String,
    /// The order of the offers: min, max or with and an expression, random, or first
    #[arg(short, long, value_name = "PREFERENCE", default_value = "", hide_default_value = true)]
    prefer: String,
    /// The most offers to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = common::whole(1..=1_000_000_u32))]
    how_many: u32,
    /// Show this property; may be repeated (default: all)
    #[arg(long, value_name = "NAME")]
    property: Vec<String>,
    /// A policy of the query; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    policy: Vec<String>,
    /// Print nothing but the references, one in each line
    #[arg(short, long, conflicts_with_all = ["property", "json"])]
    references: bool,
    #[command(flatten)]
    trader: TraderArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.trader.run(|trader| {
            let offers = self.query(trader)?;
            Ok(match (self.references, self.trader.is_json()) {
                (true, _) => {
                    offers.iter().flat_map(|offer| &offer.reference).map(|object| format!("{object}\n")).collect()
                }
                (_, true) => format!("{}\n", array(offers.iter().map(json))),
                _ => table(&offers),
            })
        })
    }

    fn query(&self, trader: &Trader) -> anyhow::Result<Vec<Offer>> {
        let policies = self.policy.iter().map(|text| values::policy(&trader.orb, text));
        let policies = policies.collect::<anyhow::Result<Vec<_>>>()?;
        let properties = match &*self.property {
            _ if self.references => SpecifiedProps::Unlisted(HowManyProps::None),
            [] => SpecifiedProps::Unlisted(HowManyProps::All),
            names => SpecifiedProps::PropNames(names.to_vec()),
        };
        let (mut offers, iterator, limits) = trader
            .lookup()?
            .query(&self.service_type, &self.constraint, &self.prefer, &policies, &properties, self.how_many.min(CHUNK))
            .with_context(|| format!("cannot query offers of the type `{}`", escape(&self.service_type)))?;
        let offer_count = self.how_many as usize;
        let mut goes_on = iterator.is_some();
        if let Some(iterator) = &iterator {
            let ended = self.iterate(trader, iterator, &mut offers, &mut goes_on);
            // It ends by itself later.
            _ = iterator.destroy();
            ended?;
        }
        if offers.len() > offer_count || goes_on {
            output::remark(&format!("there are further offers: --how-many is {offer_count}\n"));
        }
        offers.truncate(offer_count);
        if !limits.is_empty() {
            let names: Vec<String> = limits.iter().take(20).map(|name| escape(name).at_most(60).to_string()).collect();
            output::remark(&format!("limits of the trader were applied: {}\n", names.join(", ")));
        }
        Ok(offers)
    }

    /// Adds the offers of an iterator, which may have no end.
    fn iterate(
        &self,
        trader: &Trader,
        iterator: &OfferIterator,
        offers: &mut Vec<Offer>,
        goes_on: &mut bool,
    ) -> anyhow::Result<()> {
        while *goes_on && offers.len() < self.how_many as usize {
            let left = self.how_many - u32::try_from(offers.len())?;
            let (more, next) = trader.bound::<OfferIterator>(iterator.as_object())?.next_n(left.min(CHUNK))?;
            *goes_on = more;
            offers.extend(next);
        }
        Ok(())
    }
}

/// The properties of offers in columns, in the order in which their names appear, and behind them the object.
fn table(offers: &[Offer]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for property in offers.iter().flat_map(|offer| &offer.properties) {
        if !names.contains(&&*property.name) {
            names.push(&property.name);
        }
    }
    if offers.is_empty() {
        return String::new();
    }
    let mut table = Table::new(names.iter().copied().chain(["OBJECT"]));
    for offer in offers {
        let value = |name: &&str| {
            let property = offer.properties.iter().find(|property| property.name == **name);
            property.map_or_else(|| "-".to_owned(), |property| values::text(&property.value))
        };
        table.row(names.iter().map(value).chain([object(offer.reference.as_ref())]));
    }
    table.finish()
}

/// The type of an object and its first address.
pub(super) fn object(object: Option<&ObjectRef>) -> String {
    let Some(object) = object else { return "nil".to_owned() };
    let kind = crate::naming::type_of(object);
    match object.ior().profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten()) {
        Some(profile) => format!("{kind} at {}:{}", profile.host, profile.port),
        None => kind.to_owned(),
    }
}

fn json(offer: &Offer) -> String {
    let reference = offer.reference.as_ref().map(ToString::to_string);
    JsonObject::new().optional("reference", reference).json("properties", &values::json(&offer.properties)).finish()
}
