//! The servant of `Lookup`.

use std::time::Instant;

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::lookup::{IllegalPreference, InvalidPolicyValue, QueryError, SpecifiedProps};
use spandrel::services::cos_trading::{IllegalConstraint, LookupServant, Offer, OfferIterator, Policy};
use spandrel_constraint::{Constraint, Limits, Preference, ValueType};

use crate::admin::bounded;
use crate::components::TraderServant;
use crate::dynamic::{DYNAMIC_EVALUATIONS, DynamicOptions, DynamicValues};
use crate::federation::follow::{merge, requested_properties, retain_wanted};
use crate::federation::requests::MAX_REQUEST_ID;
use crate::federation::{Followed as _, FollowedQuery};
use crate::policies::QueryPolicies;
use crate::proxy_query;
use crate::query::{LocalQuery, LocalResult, SEARCH_CARD};
use crate::state::State;
use crate::trader::{DeclaredTypes, require_names};

impl LookupServant for TraderServant {
    fn query(
        &self,
        service_type: &str,
        constraint: &str,
        preference: &str,
        policies: &[Policy],
        desired_props: &SpecifiedProps,
        how_many: u32,
    ) -> Result<(Vec<Offer>, Option<OfferIterator>, Vec<String>), QueryError> {
        let trader = &self.0;
        let deadline = Instant::now() + trader.query_time;
        let (types, attributes) = trader.shared.read(|state| {
            let types = declared_types::<QueryError>(state, service_type)?;
            Ok::<_, QueryError>((types, state.attributes.clone()))
        })?;
        let parsed = parse_constraint::<QueryError>(constraint, &types)?;
        let illegal = || IllegalPreference { pref: preference.to_owned() };
        let order = Preference::parse(preference, Limits::default()).map_err(|_| illegal())?;
        order.check(&types).map_err(|_| illegal())?;
        let values = QueryPolicies::new(policies, &attributes)?;
        if let SpecifiedProps::PropNames(names) = desired_props {
            require_names::<QueryError>(names.iter())?;
        }
        let invalid = |name: &str| {
            let policy = policies.iter().find(|policy| policy.name == name);
            QueryError::from(InvalidPolicyValue { the_policy: policy.cloned().unwrap_or_default() })
        };
        if values.request_id.as_ref().is_some_and(|id| id.len() > MAX_REQUEST_ID) {
            return Err(invalid("request_id"));
        }
        if values.request_id.as_ref().is_some_and(|id| trader.followed.is_repeated(id)) {
            return Ok((Vec::new(), None, Vec::new()));
        }
        if values.starting_trader.first().is_some_and(|first| trader.followed.links.get(first).is_none()) {
            return Err(invalid("starting_trader"));
        }
        let lifetime = values.dynamic_age.map_or(trader.dynamic.lifetime, |age| age.min(trader.dynamic.lifetime));
        let options = DynamicOptions { lifetime, ..trader.dynamic };
        let dynamic = DynamicValues::cached(options, deadline, &trader.dynamic_cache);
        let query = LocalQuery {
            service_type,
            constraint: &parsed,
            preference: &order,
            policies: &values,
            dynamic: &dynamic,
            deadline,
        };
        // A query that starts at another trader has no offers of this one.
        let is_local = values.starting_trader.is_empty();
        let local = if is_local { query.run(&trader.shared) } else { LocalResult::default() };
        let (proxies, is_limited) = match is_local && values.use_proxy_offers {
            true => proxy_query::matching(trader, &query, constraint, local.examined),
            false => Default::default(),
        };
        // The preference orders the offers of several traders by their properties.
        let has_others = !trader.followed.links.is_empty() || !proxies.is_empty();
        let shown = if has_others { requested_properties(desired_props, &order) } else { desired_props.clone() };
        tracing::debug!(service_type, examined = local.examined, matching = local.offers.len(), "query");
        let mut limits_applied: Vec<String> = local.limits_applied.into_iter().map(str::to_owned).collect();
        if is_limited && !limits_applied.iter().any(|name| name == SEARCH_CARD) {
            limits_applied.push(SEARCH_CARD.to_owned());
        }
        let result = |offer: &Arc<_>| trader.result_offer(offer, &shown, &dynamic, deadline);
        let mut offers: Vec<Offer> = local.offers.iter().map(result).collect();
        let followed = trader.followed.follow(&FollowedQuery {
            service_type,
            constraint,
            preference,
            policies,
            desired_props,
            hop_count: values.hop_count,
            follow: values.follow,
            proxies: &proxies,
            starting_trader: &values.starting_trader,
            return_card: values.return_card,
            local: offers.len(),
            deadline,
        });
        if has_others {
            let most = bounded(values.return_card);
            offers = merge(vec![offers, followed.offers], &order, most, || fastrand::u64(..));
            retain_wanted(desired_props, &mut offers);
        }
        if dynamic.is_limited() {
            limits_applied.push(DYNAMIC_EVALUATIONS.to_owned());
        }
        for name in followed.limits_applied {
            if !limits_applied.contains(&name) {
                limits_applied.push(name);
            }
        }
        let (first, iterator) = trader.iterators.offers(offers, bounded(how_many), bounded(attributes.max_list))?;
        Ok((first, iterator, limits_applied))
    }
}

/// The types of all properties of a service type.
pub(crate) fn declared_types<E>(state: &State, service_type: &str) -> Result<DeclaredTypes, E>
where
    E: From<spandrel::services::cos_trading::IllegalServiceType>
        + From<spandrel::services::cos_trading::UnknownServiceType>,
{
    let full = state.types.full(state.types.find::<E>(service_type)?);
    let props = full.props.into_iter();
    Ok(DeclaredTypes(props.map(|prop| (prop.name, ValueType::from_type_code(&prop.value_type))).collect()))
}

/// Parses and checks a constraint.
pub(crate) fn parse_constraint<E: From<IllegalConstraint>>(text: &str, types: &DeclaredTypes) -> Result<Constraint, E> {
    let illegal = || IllegalConstraint { constr: text.to_owned() };
    let constraint = Constraint::parse(text, Limits::default()).map_err(|_| illegal())?;
    constraint.check(types).map_err(|_| illegal())?;
    Ok(constraint)
}
