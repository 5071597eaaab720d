//! The proxy offers that match a query, with the queries of their targets.

use spandrel::net::sync::Arc;

use crate::federation::ProxyTarget;
use crate::federation::recipe::Recipe;
use crate::offer::{OfferValues, ProxyOffer};
use crate::query::LocalQuery;
use crate::trader::Trader;
use crate::types::Conformance;

/// The targets of the proxy offers that match a query, and whether `search_card` ended the search. `examined` offers were
/// examined before.
pub(crate) fn matching(
    trader: &Trader,
    query: &LocalQuery<'_>,
    constraint: &str,
    examined: u64,
) -> (Vec<ProxyTarget>, bool) {
    let proxies: Vec<Arc<ProxyOffer>> = trader.shared.read(|state| {
        if state.proxies.is_empty() {
            return Vec::new();
        }
        let mut conformance = Conformance::new(&state.types, query.service_type);
        let mut conforms = |name: &str| match query.policies.exact_type_match {
            true => name == query.service_type,
            false => conformance.holds_for(name),
        };
        state.proxies.values().filter(|proxy| conforms(&proxy.offer.service_type)).cloned().collect()
    });
    let left = u64::from(query.policies.search_card).saturating_sub(examined);
    let mut targets = Vec::new();
    for (nth, proxy) in (0..).zip(&proxies) {
        if nth >= left {
            return (targets, true);
        }
        if !query.is_considered(&proxy.offer, &trader.shared) {
            continue;
        }
        let values = OfferValues { offer: &proxy.offer, dynamic: query.dynamic, deadline: query.deadline };
        if !proxy.if_match_all && query.constraint.matches(&values) != Ok(true) {
            continue;
        }
        let secondary = Recipe::parse(&proxy.recipe).ok().and_then(|recipe| recipe.constraint(constraint, &values));
        let Some(constraint) = secondary else {
            tracing::debug!(number = proxy.offer.number, "the recipe of a proxy offer has no constraint for a query");
            continue;
        };
        let target = trader.orb.reference(proxy.offer.reference.clone()).unchecked_narrow();
        targets.push(ProxyTarget { target, constraint, policies: proxy.policies.clone() });
    }
    (targets, false)
}
