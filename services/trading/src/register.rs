//! The servant of `Register`.

use spandrel::cdr::to_octets;
use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::register::{
    DescribeError, ExportError, IllegalTraderName, InterfaceTypeMismatch, InvalidObjectRef, MandatoryProperty,
    ModifyError, NoMatchingOffers, OfferInfo, ProxyOfferId, ReadonlyProperty, ResolveError, UnknownPropertyName,
    UnknownTraderName, WithdrawError, WithdrawUsingConstraintError,
};
use spandrel::services::cos_trading::{
    DuplicatePropertyName, IllegalOfferId, IllegalPropertyName, IllegalServiceType, MissingMandatoryProperty,
    NotImplemented, Property, PropertyTypeMismatch, ReadonlyDynamicProperty, Register, RegisterServant, UnknownOfferId,
    UnknownServiceType,
};
use spandrel::services::cos_trading_repos::service_type_repository::{PropStruct, TypeStruct};
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_constraint::Preference;
use spandrel_daemon::require_at_most;

use crate::components::TraderServant;
use crate::dynamic::DynamicValues;
use crate::federation::Followed as _;
use crate::interfaces::implements;
use crate::limits::Limits;
use crate::lookup::{declared_types, parse_constraint};
use crate::offer::{StoredOffer, dynamic, is_dynamic};
use crate::policies::QueryPolicies;
use crate::query::LocalQuery;
use crate::state::{Edit, State};
use crate::store::form;
use crate::trader::{Trader, require_names};
use crate::types::{is_mandatory, is_readonly};

/// Offers of one change by `withdraw_using_constraint`.
const WITHDRAWN_TOGETHER: usize = 10_000;

impl RegisterServant for TraderServant {
    fn export(
        &self,
        reference: Option<&ObjectRef>,
        service_type: &str,
        properties: &[Property],
    ) -> Result<String, ExportError> {
        let trader = &self.0;
        let Some(reference) = reference else { return Err(InvalidObjectRef { r#ref: None }.into()) };
        let full = type_of_export::<ExportError>(trader, service_type)?;
        if trader.checks_interfaces && !implements(reference, &full.if_name) {
            let reference = Some(reference.clone());
            return Err(InterfaceTypeMismatch { r#type: service_type.to_owned(), reference }.into());
        }
        require_bounds(reference, properties, &trader.limits)?;
        require_properties::<ExportError>(trader, service_type, &full, properties)?;
        let number = trader.shared.next_offer();
        let offer = Arc::new(StoredOffer {
            number,
            service_type: trader.shared.read(|state| state.offers.type_name(service_type)),
            reference: reference.ior().clone(),
            properties: properties.to_vec(),
        });
        trader.shared.change::<ExportError>(|state| {
            require_at_most(state.offers.len() + 1, trader.limits.offers, "offers")?;
            Ok(vec![Edit::Offer { number, expected: None, new: Some(Arc::clone(&offer)) }])
        })?;
        Ok(trader.shared.read(|state| Trader::id(state, number)))
    }

    fn withdraw(&self, id: &str) -> Result<(), WithdrawError> {
        self.0.shared.change(|state| {
            let offer = self.find::<WithdrawError>(state, id)?;
            Ok(vec![Edit::Offer { number: offer.number, expected: Some(offer), new: None }])
        })
    }

    fn describe(&self, id: &str) -> Result<OfferInfo, DescribeError> {
        let offer = self.0.shared.read(|state| self.find::<DescribeError>(state, id))?;
        Ok(OfferInfo {
            reference: Some(self.0.orb.reference(offer.reference.clone())),
            r#type: offer.service_type.to_string(),
            properties: offer.properties.clone(),
        })
    }

    fn modify(&self, id: &str, del_list: &[String], modify_list: &[Property]) -> Result<(), ModifyError> {
        self.0.shared.change::<ModifyError>(|state| {
            if !state.attributes.supports_modifiable_properties {
                return Err(NotImplemented {}.into());
            }
            let offer = self.find::<ModifyError>(state, id)?;
            let service_type = &*offer.service_type;
            let full = state.types.get(service_type).map(|declared| state.types.full(declared)).unwrap_or_default();
            let declared = |name: &str| full.props.iter().find(|prop| prop.name == name);
            require_names::<ModifyError>(del_list.iter().chain(modify_list.iter().map(|property| &property.name)))?;
            let owned = |name: &str| (service_type.to_owned(), name.to_owned());
            let mut properties = offer.properties.clone();
            for name in del_list {
                let Some(position) = properties.iter().position(|property| property.name == *name) else {
                    return Err(UnknownPropertyName { name: name.clone() }.into());
                };
                let (r#type, owned_name) = owned(name);
                match declared(name) {
                    Some(prop) if is_mandatory(prop.mode) => {
                        return Err(MandatoryProperty { r#type, name: owned_name }.into());
                    }
                    Some(prop) if is_readonly(prop.mode) => {
                        return Err(ReadonlyProperty { r#type, name: owned_name }.into());
                    }
                    _ => _ = properties.remove(position),
                }
            }
            for property in modify_list {
                let has_dynamic = state.attributes.supports_dynamic_properties;
                check_value::<ModifyError>(service_type, &full, property, has_dynamic)?;
                match properties.iter_mut().find(|current| current.name == property.name) {
                    Some(_) if declared(&property.name).is_some_and(|prop| is_readonly(prop.mode)) => {
                        let (r#type, name) = owned(&property.name);
                        return Err(ReadonlyProperty { r#type, name }.into());
                    }
                    Some(current) => current.value = property.value.clone(),
                    None => properties.push(property.clone()),
                }
            }
            let reference = self.0.orb.reference(offer.reference.clone());
            require_bounds(&reference, &properties, &self.0.limits)?;
            let new = Arc::new(StoredOffer {
                number: offer.number,
                service_type: Arc::clone(&offer.service_type),
                reference: offer.reference.clone(),
                properties,
            });
            Ok(vec![Edit::Offer { number: offer.number, expected: Some(offer), new: Some(new) }])
        })
    }

    fn withdraw_using_constraint(
        &self,
        service_type: &str,
        constraint: &str,
    ) -> Result<(), WithdrawUsingConstraintError> {
        let trader = &self.0;
        let types = trader.shared.read(|state| declared_types::<WithdrawUsingConstraintError>(state, service_type))?;
        let parsed = parse_constraint::<WithdrawUsingConstraintError>(constraint, &types)?;
        let (policies, order) = (QueryPolicies::unlimited(), Preference::default());
        let query = LocalQuery {
            service_type,
            constraint: &parsed,
            preference: &order,
            policies: &policies,
            dynamic: &DynamicValues::new(trader.dynamic, std::time::Instant::now() + trader.query_time),
            deadline: std::time::Instant::now() + trader.query_time,
        };
        let matching = query.run(&trader.shared);
        if let Some(limit) = matching.limits_applied.first() {
            // Nothing is withdrawn of offers that were not all examined.
            let detail = format!("the offers cannot be examined within {limit}");
            return Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(move || detail).into());
        }
        if matching.offers.is_empty() {
            return Err(NoMatchingOffers { constr: constraint.to_owned() }.into());
        }
        for offers in matching.offers.chunks(WITHDRAWN_TOGETHER) {
            trader.shared.change::<WithdrawUsingConstraintError>(|state| {
                // Offers that were changed or withdrawn meanwhile are not those that matched.
                let current = |offer: &&Arc<StoredOffer>| {
                    state.offers.get(offer.number).is_some_and(|current| Arc::ptr_eq(current, offer))
                };
                let withdrawn = offers.iter().filter(current).map(|offer| Edit::Offer {
                    number: offer.number,
                    expected: Some(Arc::clone(offer)),
                    new: None,
                });
                Ok(withdrawn.collect())
            })?;
        }
        Ok(())
    }

    fn resolve(&self, name: &[String]) -> Result<Option<Register>, ResolveError> {
        if name.is_empty() || name.iter().any(String::is_empty) {
            return Err(IllegalTraderName { name: name.to_vec() }.into());
        }
        self.0.followed.resolve(name).unwrap_or_else(|| Err(UnknownTraderName { name: name.to_vec() }.into()))
    }
}

impl TraderServant {
    /// The offer with this id.
    fn find<E>(&self, state: &State, id: &str) -> Result<Arc<StoredOffer>, E>
    where
        E: From<IllegalOfferId> + From<UnknownOfferId> + From<ProxyOfferId>,
    {
        let Some((number, is_own)) = Trader::number(state, id) else {
            return Err(IllegalOfferId { id: id.to_owned() }.into());
        };
        if is_own && state.proxies.contains_key(&number) {
            return Err(ProxyOfferId { id: id.to_owned() }.into());
        }
        let offer = if is_own { state.offers.get(number) } else { None };
        offer.cloned().ok_or_else(|| UnknownOfferId { id: id.to_owned() }.into())
    }
}

/// The type of a new offer with the properties of its supertypes.
pub(crate) fn type_of_export<E>(trader: &Trader, service_type: &str) -> Result<TypeStruct, E>
where
    E: From<IllegalServiceType> + From<UnknownServiceType>,
{
    trader.shared.read(|state| {
        let full = state.types.full(state.types.find::<E>(service_type)?);
        // A masked type has no new offers.
        if full.masked {
            return Err(UnknownServiceType { r#type: service_type.to_owned() }.into());
        }
        Ok(full)
    })
}

/// Checks the properties of a new offer, in the order of the exceptions of `export`.
pub(crate) fn require_properties<E>(
    trader: &Trader,
    service_type: &str,
    full: &TypeStruct,
    properties: &[Property],
) -> Result<(), E>
where
    E: From<IllegalPropertyName>
        + From<DuplicatePropertyName>
        + From<PropertyTypeMismatch>
        + From<ReadonlyDynamicProperty>
        + From<MissingMandatoryProperty>,
{
    let has_dynamic = trader.shared.read(|state| state.attributes.supports_dynamic_properties);
    require_names::<E>(properties.iter().map(|property| &property.name))?;
    for property in properties {
        check_value::<E>(service_type, full, property, has_dynamic)?;
    }
    let is_missing =
        |prop: &&PropStruct| is_mandatory(prop.mode) && !properties.iter().any(|property| property.name == prop.name);
    match full.props.iter().find(is_missing) {
        Some(missing) => {
            let (r#type, name) = (service_type.to_owned(), missing.name.clone());
            Err(MissingMandatoryProperty { r#type, name }.into())
        }
        None => Ok(()),
    }
}

pub(crate) fn require_bounds(
    reference: &ObjectRef,
    properties: &[Property],
    limits: &Limits,
) -> Result<(), SystemException> {
    require_at_most(properties.len(), limits.properties, "properties of an offer")?;
    let fields = (reference.ior().clone(), properties.to_vec());
    let octets = to_octets(&fields, &form()).map_err(|error| {
        let detail = move || format!("the offer has no encoding: {error}");
        SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
    })?;
    require_at_most(octets.len(), limits.offer_octets, "octets in an offer")
}

/// Checks a property of an offer against its declaration. Properties that are not declared have any type.
fn check_value<E>(service_type: &str, full: &TypeStruct, property: &Property, has_dynamic: bool) -> Result<(), E>
where
    E: From<PropertyTypeMismatch> + From<ReadonlyDynamicProperty>,
{
    let mismatch = || PropertyTypeMismatch { r#type: service_type.to_owned(), prop: property.clone() };
    let declared: Option<&PropStruct> = full.props.iter().find(|prop| prop.name == property.name);
    if !is_dynamic(&property.value) {
        let fits = |prop: &PropStruct| prop.value_type.equivalent(property.value.type_code());
        return if declared.is_none_or(fits) { Ok(()) } else { Err(mismatch().into()) };
    }
    let Some(value) = dynamic(&property.value).filter(|value| has_dynamic && value.eval_if.is_some()) else {
        return Err(mismatch().into());
    };
    if let Some(prop) = declared {
        if !prop.value_type.equivalent(&value.returned_type) {
            return Err(mismatch().into());
        }
        if is_readonly(prop.mode) {
            return Err(ReadonlyDynamicProperty { r#type: service_type.to_owned(), name: prop.name.clone() }.into());
        }
    }
    Ok(())
}
