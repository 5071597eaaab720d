//! Queries of linked traders: at the same time, with one time limit, and their offers in one order.

use std::time::Duration;

use spandrel::services::cos_trading::admin::octet_seq_any;
use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading::{Lookup, Offer, OfferIterator, Policy, trader_name_any};
use spandrel::types::{Any, Interface as _};
use spandrel_constraint::{Expression, Preference, Properties, Value};

use super::rules::Hop;
use crate::wait;

/// The offers of one answer of an iterator.
const CHUNK: u32 = 500;
/// The names in `limits_applied` that are passed on from each trader.
const MAX_LIMITS: usize = 100;

/// The part of a query that is the same for all other traders.
#[derive(Clone, Copy, Debug)]
pub struct RemoteQuery<'q> {
    /// The service type whose offers are queried.
    pub service_type: &'q str,
    /// The preference by which each trader orders its offers.
    pub preference: &'q str,
    /// The properties with which the importer wants the offers.
    pub properties: &'q SpecifiedProps,
    /// The most offers that one trader may return.
    pub how_many: u32,
}

/// A trader that receives the query, with the constraint and policies for it alone.
#[derive(Clone, Debug)]
pub struct RemoteTarget<'q> {
    /// The `Lookup` interface of the trader.
    pub target: Lookup,
    /// The importer's constraint, or that which a proxy offer's recipe has made.
    pub constraint: &'q str,
    /// The importer's policies with the hop's own, or those of a proxy offer.
    pub policies: Vec<Policy>,
}

/// The offers of another trader, and the policies that limited them.
#[derive(Debug, Default)]
pub struct RemoteOffers {
    /// The offers in the other trader's order.
    pub offers: Vec<Offer>,
    /// The names of policies that the other trader reports in `limits_applied`.
    pub limits: Vec<String>,
}

/// The policies of a query over a link: the importer's, with the hop count and the follow rule of the hop,
/// the id of the request, and the rest of `starting_trader` in place of the importer's own.
///
/// # Errors
/// A value that cannot be encoded.
pub fn policies_of_hop(
    importer: &[Policy],
    hop: Hop,
    request_id: &[u8],
    starting_trader: &[String],
) -> Result<Vec<Policy>, spandrel::cdr::CdrError> {
    const REPLACED: [&str; 4] = ["hop_count", "link_follow_rule", "request_id", "starting_trader"];
    let mut policies: Vec<Policy> =
        importer.iter().filter(|policy| !REPLACED.contains(&&*policy.name)).cloned().collect();
    let policy = |name: &str, value: Any| Policy { name: name.to_owned(), value };
    policies.push(policy("hop_count", Any::new(hop.hop_count)?));
    policies.push(policy("link_follow_rule", Any::new(hop.follow_rule)?));
    policies.push(policy("request_id", octet_seq_any(request_id)?));
    if !starting_trader.is_empty() {
        policies.push(policy("starting_trader", trader_name_any(starting_trader)?));
    }
    Ok(policies)
}

/// The policies of a query for the trader behind a proxy offer: those of a hop, with the policies of the
/// proxy offer in place of those with the same name. The request's id and hop count are kept in any case, so
/// that queries in a circle end.
///
/// # Errors
/// A value that cannot be encoded.
pub fn policies_of_proxy(
    importer: &[Policy],
    hop: Hop,
    request_id: &[u8],
    passed_on: &[Policy],
) -> Result<Vec<Policy>, spandrel::cdr::CdrError> {
    const BOUNDING: [&str; 2] = ["hop_count", "request_id"];
    let passed_on = passed_on.iter().filter(|policy| !BOUNDING.contains(&&*policy.name));
    let mut policies = policies_of_hop(importer, hop, request_id, &[])?;
    policies.retain(|policy| !passed_on.clone().any(|passed_on| passed_on.name == policy.name));
    policies.extend(passed_on.cloned());
    Ok(policies)
}

/// The properties to ask other traders for: those that the importer wants, and those of the preference, by which the offers of
/// several traders are brought into one order.
#[must_use]
pub fn requested_properties(wanted: &SpecifiedProps, preference: &Preference) -> SpecifiedProps {
    let mut names = match wanted {
        SpecifiedProps::PropNames(names) => names.clone(),
        SpecifiedProps::Unlisted(HowManyProps::All) => return wanted.clone(),
        SpecifiedProps::Unlisted(_) => Vec::new(),
    };
    for name in preference.expression().map(Expression::property_names).unwrap_or_default() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { wanted.clone() } else { SpecifiedProps::PropNames(names) }
}

/// Removes the properties that the importer did not want.
pub fn retain_wanted(wanted: &SpecifiedProps, offers: &mut [Offer]) {
    let is_wanted = |name: &String| match wanted {
        SpecifiedProps::PropNames(names) => names.contains(name),
        SpecifiedProps::Unlisted(option) => *option == HowManyProps::All,
    };
    for offer in offers {
        offer.properties.retain(|property| is_wanted(&property.name));
    }
}

/// Queries traders at the same time. One that does not answer in time, or raises an exception, has no offers.
#[must_use]
pub fn query_all(targets: &[RemoteTarget<'_>], query: RemoteQuery<'_>, timeout: Duration) -> Vec<RemoteOffers> {
    let pending = targets.iter().map(|remote| -> wait::Pending<'_, RemoteOffers> {
        let RemoteTarget { constraint, policies, .. } = remote;
        let target: Lookup = remote.target.as_object().with_timeout(Some(timeout)).unchecked_narrow();
        let RemoteQuery { service_type, preference, properties, how_many } = query;
        let reply = target.query_async(service_type, constraint, preference, policies, properties, how_many);
        Box::pin(async move {
            let (mut offers, iterator, mut limits) = match reply.await {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::debug!(%error, "a linked trader did not answer a query");
                    return RemoteOffers::default();
                }
            };
            if let Some(iterator) = iterator {
                drain(&iterator, &mut offers, how_many, timeout).await;
            }
            offers.truncate(how_many as usize);
            limits.truncate(MAX_LIMITS);
            RemoteOffers { offers, limits }
        })
    });
    wait::all(pending.collect())
}

/// Adds the offers of an iterator, and destroys it. The time limit is that of each call.
async fn drain(iterator: &OfferIterator, offers: &mut Vec<Offer>, how_many: u32, timeout: Duration) {
    let iterator: OfferIterator = iterator.as_object().with_timeout(Some(timeout)).unchecked_narrow();
    loop {
        let left = how_many.saturating_sub(u32::try_from(offers.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        match iterator.next_n_async(left.min(CHUNK)).await {
            // An iterator without an end would otherwise be called for ever.
            Ok((goes_on, next)) => {
                let is_end = !goes_on || next.is_empty();
                offers.extend(next);
                if is_end {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    _ = iterator.destroy_async().await; // it expires otherwise
}

/// Brings the offers of several traders into the order of the preference. Each list is in this order already; offers of the
/// same rank keep the order of the lists, the local one first. Duplicates, of an object that several traders offer with the
/// same properties, stay.
#[must_use]
pub fn merge(
    lists: Vec<Vec<Offer>>,
    preference: &Preference,
    most: usize,
    mut random: impl FnMut() -> u64,
) -> Vec<Offer> {
    let offers = lists.into_iter().flatten();
    if preference.is_first() {
        return offers.take(most).collect();
    }
    let mut ranked: Vec<_> =
        offers.map(|offer| (preference.rank(&OfferProperties(&offer), &mut random), offer)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.truncate(most);
    ranked.into_iter().map(|(_, offer)| offer).collect()
}

/// The properties of an offer of another trader.
struct OfferProperties<'o>(&'o Offer);

impl Properties for OfferProperties<'_> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        let property = self.0.properties.iter().find(|property| property.name == name)?;
        Value::from_any(&property.value).ok()
    }
}
