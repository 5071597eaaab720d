//! The trader that the servants of all interfaces share.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::{
    Admin, DuplicatePropertyName, IllegalPropertyName, Link, Lookup, Offer, Property, Proxy, Register, lookup,
};
use spandrel::{ObjectRef, Orb};
use spandrel_constraint::{PropertyTypes, ValueType};

use crate::dynamic::{DynamicCache, DynamicOptions, DynamicValues};
use crate::federation::linked::LinkedTraders;
use crate::iterators::Iterators;
use crate::limits::Limits;
use crate::names::require_property;
use crate::offer::{OfferValues, StoredOffer};
use crate::state::{SharedState, State};

/// The parts of a trader.
#[derive(Debug)]
pub(crate) struct Trader {
    pub(crate) orb: Orb,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) iterators: Arc<Iterators>,
    pub(crate) limits: Limits,
    pub(crate) query_time: Duration,
    pub(crate) checks_interfaces: bool,
    pub(crate) followed: LinkedTraders,
    pub(crate) dynamic: DynamicOptions,
    pub(crate) dynamic_cache: Arc<DynamicCache>,
    pub(crate) components: OnceLock<Components>,
}

/// The references to a trader's interfaces; `None` for one that it does not have.
#[derive(Clone, Debug)]
pub(crate) struct Components {
    pub(crate) lookup: Option<Lookup>,
    pub(crate) register: Option<Register>,
    pub(crate) link: Option<Link>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) admin: Option<Admin>,
    pub(crate) type_repository: Option<ObjectRef>,
}

impl Trader {
    /// The offer of a result, with the properties that were asked for. A dynamic property without a value is missing.
    pub(crate) fn result_offer(
        &self,
        offer: &StoredOffer,
        desired: &lookup::SpecifiedProps,
        dynamic: &DynamicValues,
        deadline: Instant,
    ) -> Offer {
        let values = OfferValues { offer, dynamic, deadline };
        let property = |name: &String| Some(Property { name: name.clone(), value: values.any(name)? });
        let properties = match desired {
            lookup::SpecifiedProps::PropNames(names) => names.iter().filter_map(property).collect(),
            lookup::SpecifiedProps::Unlisted(lookup::HowManyProps::All) => {
                offer.properties.iter().filter_map(|offered| property(&offered.name)).collect()
            }
            lookup::SpecifiedProps::Unlisted(_) => Vec::new(),
        };
        Offer { reference: Some(self.orb.reference(offer.reference.clone())), properties }
    }

    /// The offer's id: the random part of the store, and the number.
    pub(crate) fn id(state: &State, number: u64) -> String {
        format!("{:08x}-{number}", state.instance)
    }

    /// The number of a well-formed id; the second value tells whether it is one of this store.
    pub(crate) fn number(state: &State, id: &str) -> Option<(u64, bool)> {
        let (instance, number) = id.split_once('-')?;
        let is_canonical =
            instance.len() == 8 && instance.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let instance = u32::from_str_radix(instance, 16).ok()?;
        (is_canonical && is_number).then(|| number.parse().ok()).flatten().map(|n| (n, instance == state.instance))
    }
}

/// The types of a service type's properties, for the check of constraints.
pub(crate) struct DeclaredTypes(pub(crate) Vec<(String, ValueType)>);

impl PropertyTypes for DeclaredTypes {
    fn value_type(&self, name: &str) -> Option<ValueType> {
        self.0.iter().find(|(declared, _)| declared == name).map(|(_, value_type)| *value_type)
    }
}

/// Checks the names of properties, each of which stands once.
pub(crate) fn require_names<'n, E>(names: impl Iterator<Item = &'n String>) -> Result<(), E>
where
    E: From<IllegalPropertyName> + From<DuplicatePropertyName>,
{
    let mut checked = std::collections::HashSet::new();
    for name in names {
        require_property::<E>(name)?;
        if !checked.insert(name) {
            return Err(DuplicatePropertyName { name: name.clone() }.into());
        }
    }
    Ok(())
}
