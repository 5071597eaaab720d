//! The servants of a trader, and the attributes that they share.

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::{
    Admin, FollowOption, ImportAttributesServant, Link, LinkAttributesServant, Lookup, Proxy, Register,
    SupportAttributesServant, TraderComponentsServant, TypeRepository,
};

use crate::trader::{Components, Trader};

/// The servant of all interfaces of a trader.
#[derive(Clone, Debug)]
pub(crate) struct TraderServant(pub(crate) Arc<Trader>);

impl TraderServant {
    fn component<T>(&self, component: impl FnOnce(&Components) -> Option<T>) -> Result<Option<T>, SystemException> {
        Ok(self.0.components.get().and_then(component))
    }
}

impl TraderComponentsServant for TraderServant {
    fn lookup_if(&self) -> Result<Option<Lookup>, SystemException> {
        self.component(|components| components.lookup.clone())
    }

    fn register_if(&self) -> Result<Option<Register>, SystemException> {
        self.component(|components| components.register.clone())
    }

    fn link_if(&self) -> Result<Option<Link>, SystemException> {
        self.component(|components| components.link.clone())
    }

    fn proxy_if(&self) -> Result<Option<Proxy>, SystemException> {
        self.component(|components| components.proxy.clone())
    }

    fn admin_if(&self) -> Result<Option<Admin>, SystemException> {
        self.component(|components| components.admin.clone())
    }
}

/// Implements operations that return an attribute of the same name.
macro_rules! attributes {
    ($servant:ty: $($name:ident: $type:ty),*) => {
        impl $servant for TraderServant {
            $(fn $name(&self) -> Result<$type, SystemException> {
                Ok(self.0.shared.read(|state| state.attributes.$name))
            })*
        }
    };
}

attributes! { ImportAttributesServant:
    def_search_card: u32, max_search_card: u32, def_match_card: u32, max_match_card: u32, def_return_card: u32,
    max_return_card: u32, max_list: u32, def_hop_count: u32, max_hop_count: u32, def_follow_policy: FollowOption,
    max_follow_policy: FollowOption
}

attributes! { LinkAttributesServant: max_link_follow_policy: FollowOption }

impl SupportAttributesServant for TraderServant {
    fn supports_modifiable_properties(&self) -> Result<bool, SystemException> {
        Ok(self.0.shared.read(|state| state.attributes.supports_modifiable_properties))
    }

    fn supports_dynamic_properties(&self) -> Result<bool, SystemException> {
        Ok(self.0.shared.read(|state| state.attributes.supports_dynamic_properties))
    }

    fn supports_proxy_offers(&self) -> Result<bool, SystemException> {
        Ok(self.0.shared.read(|state| state.attributes.supports_proxy_offers))
    }

    fn type_repos(&self) -> Result<Option<TypeRepository>, SystemException> {
        self.component(|components| components.type_repository.clone())
    }
}
