//! The servant of `Admin`: attributes, and lists of all offers.

use spandrel::services::cos_trading::{AdminServant, FollowOption, OfferIdIterator, TypeRepository, admin};
use spandrel::{CompletionStatus, SystemException};
use spandrel_daemon::require_at_most;

use crate::components::TraderServant;
use crate::trader::Trader;

/// The longest stem of request ids, in octets.
const MAX_STEM: usize = 1_024;

/// Implements operations that replace an attribute and return its former value.
macro_rules! setters {
    ($($operation:ident: $name:ident, $type:ty;)*) => {$(
        fn $operation(&self, value: $type) -> Result<$type, SystemException> {
            self.0.shared.change_attribute(|attributes| std::mem::replace(&mut attributes.$name, value))
        }
    )*};
}

impl AdminServant for TraderServant {
    setters! {
        set_def_search_card: def_search_card, u32;
        set_max_search_card: max_search_card, u32;
        set_def_match_card: def_match_card, u32;
        set_max_match_card: max_match_card, u32;
        set_def_return_card: def_return_card, u32;
        set_max_return_card: max_return_card, u32;
        set_max_list: max_list, u32;
        set_supports_modifiable_properties: supports_modifiable_properties, bool;
        set_supports_dynamic_properties: supports_dynamic_properties, bool;
        set_supports_proxy_offers: supports_proxy_offers, bool;
        set_def_hop_count: def_hop_count, u32;
        set_max_hop_count: max_hop_count, u32;
        set_def_follow_policy: def_follow_policy, FollowOption;
        set_max_follow_policy: max_follow_policy, FollowOption;
        set_max_link_follow_policy: max_link_follow_policy, FollowOption;
    }

    fn request_id_stem(&self) -> Result<Vec<u8>, SystemException> {
        Ok(self.0.shared.read(|state| state.attributes.request_id_stem.clone()))
    }

    /// The repository is a part of the trader, and cannot be another.
    fn set_type_repos(&self, _repository: Option<&TypeRepository>) -> Result<Option<TypeRepository>, SystemException> {
        let detail = || "the trader has its own repository of service types".to_owned();
        Err(SystemException::no_implement(0, CompletionStatus::No).with_detail(detail))
    }

    fn set_request_id_stem(&self, stem: &[u8]) -> Result<Vec<u8>, SystemException> {
        require_at_most(stem.len(), MAX_STEM, "octets in a stem of request ids")?;
        let stem = stem.to_vec();
        self.0.shared.change_attribute(|attributes| std::mem::replace(&mut attributes.request_id_stem, stem))
    }

    fn list_offers(&self, how_many: u32) -> Result<(Vec<String>, Option<OfferIdIterator>), admin::ListOffersError> {
        let ids = self
            .0
            .shared
            .read(|state| state.offers.after(None).map(|offer| Trader::id(state, offer.number)).collect::<Vec<_>>());
        Ok(self.listed(ids, how_many)?)
    }

    fn list_proxies(&self, how_many: u32) -> Result<(Vec<String>, Option<OfferIdIterator>), admin::ListProxiesError> {
        let ids = self.0.shared.read(|state| state.proxies.keys().map(|number| Trader::id(state, *number)).collect());
        Ok(self.listed(ids, how_many)?)
    }
}

impl TraderServant {
    fn listed(
        &self,
        ids: Vec<String>,
        how_many: u32,
    ) -> Result<(Vec<String>, Option<OfferIdIterator>), SystemException> {
        self.0.iterators.ids(ids, bounded(how_many), self.max_list())
    }

    /// The most elements of one reply.
    pub(crate) fn max_list(&self) -> usize {
        bounded(self.0.shared.read(|state| state.attributes.max_list))
    }
}

pub(crate) fn bounded(how_many: u32) -> usize {
    usize::try_from(how_many).unwrap_or(usize::MAX)
}
