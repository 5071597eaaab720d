//! The servant of `Link`, and the links in the store.

use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::link::{
    AddLinkError, DescribeLinkError, LinkInfo, ModifyLinkError, RemoveLinkError,
};
use spandrel::services::cos_trading::{FollowOption, LinkServant, Lookup};
use spandrel::types::Interface as _;
use spandrel::{Orb, SystemException};

use crate::components::TraderServant;
use crate::edit::LinkFields;
use crate::federation::linked::FollowSettings;
use crate::federation::links::{LinkRecord, LinkStore, Links};
use crate::federation::rules::{FollowLimits, LinkRules};
use crate::state::{Edit, SharedState};

/// The time limit of the call that asks a linked trader for its `Register`.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(5);

impl TraderServant {
    fn max_link_follow_policy(&self) -> FollowOption {
        self.0.shared.read(|state| state.attributes.max_link_follow_policy)
    }
}

impl LinkServant for TraderServant {
    fn add_link(
        &self,
        name: &str,
        target: Option<&Lookup>,
        default: FollowOption,
        limit: FollowOption,
    ) -> Result<(), AddLinkError> {
        self.0.followed.links.add(name, target, LinkRules { default, limit }, self.max_link_follow_policy())
    }

    fn remove_link(&self, name: &str) -> Result<(), RemoveLinkError> {
        self.0.followed.links.remove(name)
    }

    fn describe_link(&self, name: &str) -> Result<LinkInfo, DescribeLinkError> {
        self.0.followed.links.describe(name, REGISTER_TIMEOUT)
    }

    fn list_links(&self) -> Result<Vec<String>, SystemException> {
        Ok(self.0.followed.links.names())
    }

    fn modify_link(&self, name: &str, default: FollowOption, limit: FollowOption) -> Result<(), ModifyLinkError> {
        self.0.followed.links.modify(name, LinkRules { default, limit }, self.max_link_follow_policy())
    }
}

/// The links in the store of a trader.
#[derive(Debug)]
pub(crate) struct StoredLinks(pub(crate) Arc<SharedState>);

impl LinkStore for StoredLinks {
    fn store(&self, name: &str, link: Option<&LinkRecord>) -> Result<(), SystemException> {
        let new: Option<LinkFields> =
            link.map(|link| (link.target.as_object().ior().clone(), link.rules.default, link.rules.limit));
        self.0.change(|_| Ok(vec![Edit::Link { name: name.to_owned(), new: new.clone() }]))
    }
}

/// Adds the links of the store.
pub(crate) fn restore(links: &Links, stored: Vec<(String, LinkFields)>, orb: &Orb) {
    for (name, (target, default, limit)) in stored {
        let target = orb.reference(target).unchecked_narrow();
        links.restore(name, LinkRecord { target, rules: LinkRules { default, limit } });
    }
}

/// The attributes of a trader that links depend on, as they are at each call.
pub(crate) fn follow_settings(shared: &Arc<SharedState>) -> Arc<dyn Fn() -> FollowSettings + Send + Sync> {
    let shared = Arc::clone(shared);
    Arc::new(move || {
        shared.read(|state| FollowSettings {
            limits: FollowLimits {
                def_follow_policy: state.attributes.def_follow_policy,
                max_follow_policy: state.attributes.max_follow_policy,
                def_hop_count: state.attributes.def_hop_count,
                max_hop_count: state.attributes.max_hop_count,
            },
            request_id_stem: state.attributes.request_id_stem.clone(),
        })
    })
}
