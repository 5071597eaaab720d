//! The policies of a query, with the defaults and bounds of the trader.

use std::collections::HashSet;
use std::time::Duration;

use spandrel::services::cos_trading::lookup::{IllegalPolicyName, InvalidPolicyValue, PolicyTypeMismatch, QueryError};
use spandrel::services::cos_trading::{DuplicatePolicyName, FollowOption, Policy};
use spandrel::types::Typed;
use spandrel::types::values::Decode;

use crate::attributes::Attributes;
use crate::dynamic::DYNAMIC_AGE;
use crate::federation::rules::stricter;
use crate::names::is_identifier;

/// The policies of one query after defaults and bounds.
#[derive(Debug)]
pub(crate) struct QueryPolicies {
    pub(crate) search_card: u32,
    pub(crate) match_card: u32,
    pub(crate) return_card: u32,
    pub(crate) hop_count: u32,
    pub(crate) follow: FollowOption,
    pub(crate) exact_type_match: bool,
    pub(crate) use_modifiable_properties: bool,
    pub(crate) use_dynamic_properties: bool,
    pub(crate) use_proxy_offers: bool,
    pub(crate) starting_trader: Vec<String>,
    pub(crate) request_id: Option<Vec<u8>>,
    /// The greatest age of the values of dynamic properties, if the importer limits it.
    pub(crate) dynamic_age: Option<Duration>,
}

impl QueryPolicies {
    /// Those of a query on all offers of this trader.
    pub(crate) fn unlimited() -> Self {
        Self {
            search_card: u32::MAX,
            match_card: u32::MAX,
            return_card: u32::MAX,
            hop_count: 0,
            follow: FollowOption::LocalOnly,
            exact_type_match: false,
            use_modifiable_properties: true,
            use_dynamic_properties: true,
            use_proxy_offers: false,
            starting_trader: Vec::new(),
            request_id: None,
            dynamic_age: None,
        }
    }

    /// Reads the policies of an importer. Those with other names are for other traders.
    pub(crate) fn new(policies: &[Policy], attributes: &Attributes) -> Result<Self, QueryError> {
        let mut values = Self {
            search_card: attributes.def_search_card.min(attributes.max_search_card),
            match_card: attributes.def_match_card.min(attributes.max_match_card),
            return_card: attributes.def_return_card.min(attributes.max_return_card),
            hop_count: attributes.def_hop_count.min(attributes.max_hop_count),
            follow: stricter(attributes.def_follow_policy, attributes.max_follow_policy),
            exact_type_match: false,
            use_modifiable_properties: attributes.supports_modifiable_properties,
            use_dynamic_properties: attributes.supports_dynamic_properties,
            use_proxy_offers: attributes.supports_proxy_offers,
            starting_trader: Vec::new(),
            request_id: None,
            dynamic_age: None,
        };
        let mut names = HashSet::new();
        for policy in policies {
            if !is_identifier(&policy.name) {
                return Err(IllegalPolicyName { name: policy.name.clone() }.into());
            }
            if !names.insert(&policy.name) {
                return Err(DuplicatePolicyName { name: policy.name.clone() }.into());
            }
            match &*policy.name {
                "search_card" => values.search_card = u32::min(value(policy)?, attributes.max_search_card),
                "match_card" => values.match_card = u32::min(value(policy)?, attributes.max_match_card),
                "return_card" => values.return_card = u32::min(value(policy)?, attributes.max_return_card),
                "hop_count" => values.hop_count = u32::min(value(policy)?, attributes.max_hop_count),
                "link_follow_rule" => values.follow = stricter(value(policy)?, attributes.max_follow_policy),
                "exact_type_match" => values.exact_type_match = value(policy)?,
                "use_modifiable_properties" => {
                    values.use_modifiable_properties = value::<bool>(policy)? && values.use_modifiable_properties;
                }
                "use_dynamic_properties" => {
                    values.use_dynamic_properties = value::<bool>(policy)? && values.use_dynamic_properties;
                }
                "use_proxy_offers" => values.use_proxy_offers = value::<bool>(policy)? && values.use_proxy_offers,
                "starting_trader" => {
                    values.starting_trader = value(policy)?;
                    if values.starting_trader.is_empty() {
                        return Err(InvalidPolicyValue { the_policy: policy.clone() }.into());
                    }
                }
                "request_id" => values.request_id = Some(value(policy)?),
                DYNAMIC_AGE => values.dynamic_age = Some(Duration::from_millis(value::<u32>(policy)?.into())),
                _ => {}
            }
        }
        Ok(values)
    }
}

/// The value of a policy as one of an IDL type.
fn value<T: Decode + Typed>(policy: &Policy) -> Result<T, QueryError> {
    policy.value.extract().map_err(|_| PolicyTypeMismatch { the_policy: policy.clone() }.into())
}
