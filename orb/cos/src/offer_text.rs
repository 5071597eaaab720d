//! Offers of a trader from text: `NAME=VALUE`, as commands have properties.

use spandrel_cdr::{Any, TypeCode};
use spandrel_dynamic::{DynAny, DynAnyError, TextContext, TextError};
use spandrel_giop::SystemException;
use spandrel_orb::{ObjectRef, Orb};

use crate::cos_trading::{Lookup, Property, register::ExportError};
use crate::cos_trading_repos::ServiceTypeRepository;
use crate::cos_trading_repos::service_type_repository::FullyDescribeTypeError;

/// The name of a trader as an initial reference.
const INITIAL_REFERENCE: &str = "TradingService";
/// The trader where no initial reference names one.
const DEFAULT_TRADER: &str = "corbaloc::127.0.0.1:2811/TradingService";

/// The reason why a text is no value of a property's type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueTextError {
    /// The text is not in the form of a value of the type.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The value cannot be represented.
    #[error(transparent)]
    Value(#[from] DynAnyError),
}

/// The reason why a text is no property of a service type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PropertyTextError {
    /// It has no name, or no `=` behind it.
    #[error("expected NAME=VALUE instead of `{}`", spandrel_error::excerpt(.0))]
    Form(String),
    /// The service type does not declare the property, and the value has no type before it.
    #[error("the service type has no property `{}`", spandrel_error::escape(.name))]
    Undeclared {
        /// The name of the property.
        name: String,
        /// The reason why the value is none with its type before it.
        source: ValueTextError,
    },
    /// The value is not one of the declared type.
    #[error("invalid value for the property `{}`", spandrel_error::escape(.name))]
    Value {
        /// The name of the property.
        name: String,
        /// The place of the error in the value.
        source: ValueTextError,
    },
}

/// The reason why a text could not be exported as an offer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfferTextError {
    /// The trader cannot be reached, or lacks an interface.
    #[error("cannot use the trader")]
    Trader(#[from] SystemException),
    /// The trader has no such service type.
    #[error("cannot describe the service type")]
    ServiceType(#[from] FullyDescribeTypeError),
    /// A property's text has no name, or no value of its type.
    #[error(transparent)]
    Property(#[from] PropertyTextError),
    /// The trader refuses the offer.
    #[error("cannot export the offer")]
    Export(#[from] ExportError),
}

/// Divides `NAME=VALUE` at the first `=`; blanks around the name do not count.
///
/// # Errors
/// A text without a name, or without `=`.
pub fn split_property(text: &str) -> Result<(&str, &str), PropertyTextError> {
    let parts = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = parts.ok_or_else(|| PropertyTextError::Form(text.to_owned()))?;
    Ok((name.trim(), value))
}

/// Reads a value of this type from a text. Without a type, the text has it before the value, such as `short
/// 3`.
///
/// # Errors
/// A text that is no such value.
pub fn value_from_text(orb: &Orb, type_code: Option<&TypeCode>, text: &str) -> Result<Any, ValueTextError> {
    let resolve = |url: &str| {
        let object = orb.string_to_object(url);
        object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
    };
    let context = TextContext::new().references(&resolve);
    match type_code {
        Some(type_code) => Ok(DynAny::from_text_with(type_code, text, &context)?.to_any()?),
        None => Ok(DynAny::from_text_with(&TypeCode::ANY, text, &context)?.any()?.clone()),
    }
}

/// The property of a text `NAME=VALUE`. Its type is that of the service type's properties, or stands before the value.
///
/// # Errors
/// A text of another form; a value that is not of the type.
pub fn property_from_text(orb: &Orb, text: &str, types: &[(String, TypeCode)]) -> Result<Property, PropertyTextError> {
    let (name, value) = split_property(text)?;
    let declared =
        types.iter().find(|(declared, _)| declared.eq_ignore_ascii_case(name)).map(|(_, type_code)| type_code);
    let value = value_from_text(orb, declared, value).map_err(|source| match declared {
        Some(_) => PropertyTextError::Value { name: name.to_owned(), source },
        None => PropertyTextError::Undeclared { name: name.to_owned(), source },
    })?;
    Ok(Property { name: name.to_owned(), value })
}

/// The trader of the initial reference `TradingService`, or else that of this machine at its default port. No call is made.
///
/// # Errors
/// BAD_PARAM for a reference that cannot be read.
pub fn default_trader(orb: &Orb) -> Result<Lookup, SystemException> {
    let object = if orb.has_initial_reference(INITIAL_REFERENCE) {
        orb.resolve_initial_references(INITIAL_REFERENCE)?
    } else {
        orb.string_to_object(DEFAULT_TRADER)?
    };
    Ok(object.unchecked_narrow())
}

/// An offer that was read from text, and is not exported yet.
#[derive(Debug)]
pub struct TextOffer {
    lookup: Lookup,
    service_type: String,
    properties: Vec<Property>,
}

impl TextOffer {
    /// Reads the properties of an offer for a trader, which knows their types.
    ///
    /// # Errors
    /// A trader that cannot be reached or does not know the service type; a text that is no property.
    pub fn read(lookup: &Lookup, service_type: &str, properties: &[String]) -> Result<Self, OfferTextError> {
        let repository = lookup.type_repos()?.map(|repository| repository.unchecked_narrow::<ServiceTypeRepository>());
        let types = match repository {
            Some(repository) => repository.fully_describe_type(service_type)?.props,
            None => Vec::new(),
        };
        let types: Vec<_> = types.into_iter().map(|property| (property.name, property.value_type)).collect();
        let orb = lookup.as_object().orb();
        let properties = properties.iter().map(|text| property_from_text(orb, text, &types));
        Ok(Self {
            lookup: lookup.clone(),
            service_type: service_type.to_owned(),
            properties: properties.collect::<Result<_, _>>()?,
        })
    }

    /// Exports the offer of an object to the trader. Returns the offer's id.
    ///
    /// # Errors
    /// A trader that cannot be reached, has no `Register`, or refuses the offer.
    pub fn export(&self, object: &ObjectRef) -> Result<String, OfferTextError> {
        let register = self.lookup.register_if()?.ok_or_else(|| {
            SystemException::no_implement(0, spandrel_giop::CompletionStatus::No)
                .with_detail("the trader has no interface Register")
        })?;
        Ok(register.export(Some(object), &self.service_type, &self.properties)?)
    }
}
