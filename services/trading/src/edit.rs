//! The types, offers and attributes of a trader, and the edits of which changes consist.

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::FollowOption;
use spandrel::services::cos_trading_repos::service_type_repository::TypeStruct;
use spandrel::types::Ior;

use crate::attributes::Attributes;
use crate::offer::{ProxyOffer, ProxyOffers, StoredOffer};
use crate::offers::Offers;
use crate::types::ServiceTypes;

/// The types, offers and attributes of a trader.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The links of the store, until the trader takes them.
    pub(crate) stored_links: Vec<(String, LinkFields)>,
    pub(crate) types: ServiceTypes,
    pub(crate) offers: Offers,
    pub(crate) proxies: ProxyOffers,
    pub(crate) attributes: Attributes,
    /// The number of the next offer. Numbers are not used again.
    pub(crate) next_offer: u64,
    /// The incarnation number of the next type.
    pub(crate) incarnation: u64,
    /// The random part of offer ids, by which the ids of other stores are told apart; 0 until it is chosen.
    pub(crate) instance: u32,
}

/// A replacement of one part of the state.
#[derive(Debug)]
pub(crate) enum Edit {
    Offer {
        number: u64,
        expected: Option<Arc<StoredOffer>>,
        new: Option<Arc<StoredOffer>>,
    },
    Proxy {
        number: u64,
        expected: Option<Arc<ProxyOffer>>,
        new: Option<Arc<ProxyOffer>>,
    },
    Type {
        name: String,
        expected: Option<Arc<TypeStruct>>,
        new: Option<Arc<TypeStruct>>,
    },
    Attributes(Attributes),
    /// A link; the trader keeps links beside its state.
    Link {
        name: String,
        new: Option<LinkFields>,
    },
}

/// A link as it is stored: the target and the rules.
pub(crate) type LinkFields = (Ior, FollowOption, FollowOption);

/// The part of the state that an edit replaces.
#[derive(Eq, Hash, PartialEq)]
pub(crate) enum Part {
    /// The number of an offer or a proxy offer.
    Offer(u64),
    Type(String),
    Attributes,
    Link(String),
}

impl Edit {
    pub(crate) fn part(&self) -> Part {
        match self {
            Self::Offer { number, .. } | Self::Proxy { number, .. } => Part::Offer(*number),
            Self::Type { name, .. } => Part::Type(name.clone()),
            Self::Attributes(_) => Part::Attributes,
            Self::Link { name, .. } => Part::Link(name.clone()),
        }
    }

    /// Whether the part is as it was when the edit was made.
    pub(crate) fn is_current(&self, state: &State) -> bool {
        fn same<T>(expected: Option<&Arc<T>>, current: Option<&Arc<T>>) -> bool {
            match (expected, current) {
                (None, None) => true,
                (Some(expected), Some(current)) => Arc::ptr_eq(expected, current),
                _ => false,
            }
        }
        match self {
            Self::Offer { number, expected, .. } => same(expected.as_ref(), state.offers.get(*number)),
            Self::Proxy { number, expected, .. } => same(expected.as_ref(), state.proxies.get(number)),
            Self::Type { name, expected, .. } => same(expected.as_ref(), state.types.get(name)),
            Self::Attributes(_) | Self::Link { .. } => true,
        }
    }

    pub(crate) fn apply(self, state: &mut State) {
        match self {
            Self::Offer { number, new, .. } => {
                let has_supertype = new.as_ref().is_some_and(|offer| state.types.has_supertype(&offer.service_type));
                state.offers.set(number, new, has_supertype);
            }
            Self::Proxy { number, new: Some(new), .. } => _ = state.proxies.insert(number, new),
            Self::Proxy { number, new: None, .. } => _ = state.proxies.remove(&number),
            Self::Type { name, new, .. } => {
                // Offers of an earlier type with this name become those of the new one.
                let is_new = state.types.get(&name).is_none();
                state.types.set(&name, new);
                if is_new && state.types.has_supertype(&name) {
                    state.offers.add_to_common(&name);
                }
            }
            Self::Attributes(attributes) => state.attributes = attributes,
            Self::Link { .. } => {}
        }
    }
}
