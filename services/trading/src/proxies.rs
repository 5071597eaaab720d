//! The servant of `Proxy`. Proxy offers are offers whose objects are found by a query of another trader (Trading Object Service 1.0, 2.5).
//!
//! A proxy offer has a service type and properties, and matches a query like an offer; with `if_match_all`, its type
//! alone decides. The query then goes on to its `Lookup` with the constraint of its recipe. A proxy offer counts as a hop,
//! and its target is asked at the same time as linked traders, within the same time.

use std::collections::HashSet;

use spandrel::cdr::to_octets;
use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::proxy::{
    DescribeProxyError, ExportProxyError, IllegalRecipe, NotProxyOfferId, ProxyInfo, WithdrawProxyError,
};
use spandrel::services::cos_trading::{
    DuplicatePolicyName, IllegalOfferId, InvalidLookupRef, Lookup, Policy, Property, ProxyServant, UnknownOfferId,
};
use spandrel::types::Interface as _;
use spandrel::{CompletionStatus, SystemException};
use spandrel_daemon::require_at_most;

use crate::components::TraderServant;
use crate::edit::Edit;
use crate::federation::recipe::Recipe;
use crate::offer::{ProxyOffer, StoredOffer};
use crate::register::{require_bounds, require_properties, type_of_export};
use crate::state::State;
use crate::store::form;
use crate::trader::Trader;

impl ProxyServant for TraderServant {
    fn export_proxy(
        &self,
        target: Option<&Lookup>,
        service_type: &str,
        properties: &[Property],
        if_match_all: bool,
        recipe: &str,
        policies: &[Policy],
    ) -> Result<String, ExportProxyError> {
        let trader = &self.0;
        if !trader.shared.read(|state| state.attributes.supports_proxy_offers) {
            let detail = || "the attribute supports_proxy_offers is false".to_owned();
            return Err(SystemException::no_implement(0, CompletionStatus::No).with_detail(detail).into());
        }
        let Some(target) = target else { return Err(InvalidLookupRef { target: None }.into()) };
        let full = type_of_export::<ExportProxyError>(trader, service_type)?;
        require_bounds(target.as_object(), properties, &trader.limits)?;
        require_properties::<ExportProxyError>(trader, service_type, &full, properties)?;
        let offers = |name: &String| properties.iter().any(|property| property.name == *name);
        // A property that is not offered has no value in any query.
        if !Recipe::parse(recipe).is_ok_and(|recipe| recipe.properties().all(offers)) {
            return Err(IllegalRecipe { recipe: recipe.to_owned() }.into());
        }
        let mut names = HashSet::new();
        if let Some(policy) = policies.iter().find(|policy| !names.insert(&policy.name)) {
            return Err(DuplicatePolicyName { name: policy.name.clone() }.into());
        }
        let octets = to_octets(&(recipe.to_owned(), policies.to_vec()), &form())
            .map_err(|_| SystemException::bad_param(0, CompletionStatus::No))?;
        require_at_most(octets.len(), trader.limits.offer_octets, "octets in recipe and policies")?;
        let number = trader.shared.next_offer();
        let proxy = Arc::new(ProxyOffer {
            offer: StoredOffer {
                number,
                service_type: trader.shared.read(|state| state.offers.type_name(service_type)),
                reference: target.as_object().ior().clone(),
                properties: properties.to_vec(),
            },
            if_match_all,
            recipe: recipe.to_owned(),
            policies: policies.to_vec(),
        });
        trader.shared.change::<ExportProxyError>(|state| {
            require_at_most(state.proxies.len() + 1, trader.limits.proxies, "proxy offers")?;
            Ok(vec![Edit::Proxy { number, expected: None, new: Some(Arc::clone(&proxy)) }])
        })?;
        Ok(trader.shared.read(|state| Trader::id(state, number)))
    }

    fn withdraw_proxy(&self, id: &str) -> Result<(), WithdrawProxyError> {
        self.0.shared.change(|state| {
            let proxy = find::<WithdrawProxyError>(state, id)?;
            Ok(vec![Edit::Proxy { number: proxy.offer.number, expected: Some(proxy), new: None }])
        })
    }

    fn describe_proxy(&self, id: &str) -> Result<ProxyInfo, DescribeProxyError> {
        let proxy = self.0.shared.read(|state| find::<DescribeProxyError>(state, id))?;
        Ok(ProxyInfo {
            r#type: proxy.offer.service_type.to_string(),
            target: Some(self.0.orb.reference(proxy.offer.reference.clone()).unchecked_narrow()),
            properties: proxy.offer.properties.clone(),
            if_match_all: proxy.if_match_all,
            recipe: proxy.recipe.clone(),
            policies_to_pass_on: proxy.policies.clone(),
        })
    }
}

/// The proxy offer with this id.
fn find<E>(state: &State, id: &str) -> Result<Arc<ProxyOffer>, E>
where
    E: From<IllegalOfferId> + From<UnknownOfferId> + From<NotProxyOfferId>,
{
    let Some((number, is_own)) = Trader::number(state, id) else {
        return Err(IllegalOfferId { id: id.to_owned() }.into());
    };
    match state.proxies.get(&number).filter(|_| is_own) {
        Some(proxy) => Ok(Arc::clone(proxy)),
        None if is_own && state.offers.get(number).is_some() => Err(NotProxyOfferId { id: id.to_owned() }.into()),
        None => Err(UnknownOfferId { id: id.to_owned() }.into()),
    }
}
