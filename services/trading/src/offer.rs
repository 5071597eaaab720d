//! Offers, and their properties as the constraint language sees them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::{Policy, Property};
use spandrel::services::cos_trading_dynamic::DynamicProp;
use spandrel::types::{Any, Ior};
use spandrel_constraint::{Properties, Value};

/// An offer of a store.
#[derive(Debug)]
pub(crate) struct StoredOffer {
    pub(crate) number: u64,
    pub(crate) service_type: Arc<str>,
    pub(crate) reference: Ior,
    pub(crate) properties: Vec<Property>,
}

/// A proxy offer of a store.
#[derive(Debug)]
pub(crate) struct ProxyOffer {
    /// Its number, type and properties; the reference is that of the `Lookup`.
    pub(crate) offer: StoredOffer,
    pub(crate) if_match_all: bool,
    /// The text of the recipe, which is valid.
    pub(crate) recipe: String,
    pub(crate) policies: Vec<Policy>,
}

/// The proxy offers of a trader by number.
pub(crate) type ProxyOffers = BTreeMap<u64, Arc<ProxyOffer>>;

impl StoredOffer {
    pub(crate) fn property(&self, name: &str) -> Option<&Any> {
        self.properties.iter().find(|property| property.name == name).map(|property| &property.value)
    }

    pub(crate) fn has_dynamic_property(&self) -> bool {
        self.properties.iter().any(|property| is_dynamic(&property.value))
    }
}

/// Whether the value of a property is evaluated by the exporter: a `CosTradingDynamic::DynamicProp`.
pub(crate) fn is_dynamic(value: &Any) -> bool {
    value.type_code().id() == Ok("IDL:omg.org/CosTradingDynamic/DynamicProp:1.0")
}

/// The dynamic property of a value, if it is one.
pub(crate) fn dynamic(value: &Any) -> Option<DynamicProp> {
    if is_dynamic(value) { value.extract().ok() } else { None }
}

/// The evaluation of dynamic properties for one query.
pub(crate) trait PropertyValues: fmt::Debug + Send + Sync {
    /// The value of a dynamic property of the offer with this number; `None` if the evaluation fails, takes longer than
    /// its time limit or ends after the deadline of the query.
    fn value(&self, offer: u64, name: &str, property: &DynamicProp, deadline: Instant) -> Option<Any>;
}

/// The properties of an offer for one query. Values are decoded and evaluated when an expression needs them.
#[derive(Debug)]
pub(crate) struct OfferValues<'o> {
    pub(crate) offer: &'o StoredOffer,
    pub(crate) dynamic: &'o dyn PropertyValues,
    pub(crate) deadline: Instant,
}

impl OfferValues<'_> {
    /// The value of a property, evaluated if it is dynamic.
    pub(crate) fn any(&self, name: &str) -> Option<Any> {
        let value = self.offer.property(name)?;
        match dynamic(value) {
            Some(property) => self.dynamic.value(self.offer.number, name, &property, self.deadline),
            None => Some(value.clone()),
        }
    }
}

impl Properties for OfferValues<'_> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        let value = self.offer.property(name)?;
        if is_dynamic(value) {
            return Value::from_any(&self.any(name)?).ok();
        }
        Value::from_any(value).ok()
    }

    fn exists(&self, name: &str) -> bool {
        // A dynamic property exists without its evaluation (B.2.5).
        self.offer.property(name).is_some()
    }
}
