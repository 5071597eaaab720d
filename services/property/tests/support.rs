//! A property service on an ORB of its own, and its references as another ORB has them.

use spandrel::services::cos_property_service::{
    ExceptionReason, MultipleExceptionsError, Property, PropertyDef, PropertyModeType, PropertySet, PropertySetDef,
    PropertySetDefFactory, PropertySetFactory,
};
use spandrel::types::Any;
use spandrel::{Endpoint, Orb};
use spandrel_property::{PropertyOptions, PropertyService};

/// A running service, and its factories as a client has them.
pub(crate) struct Served {
    pub(crate) factory: PropertySetFactory,
    pub(crate) def_factory: PropertySetDefFactory,
    pub(crate) client: Orb,
    pub(crate) service: Option<PropertyService>,
    pub(crate) orb: Orb,
}

impl Served {
    /// A service with sets in memory.
    pub(crate) fn transient() -> Self {
        Self::with(PropertyOptions::default())
    }

    pub(crate) fn with(options: PropertyOptions) -> Self {
        let [orb, client] = [0; 2].map(|_| Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap());
        let service = PropertyService::start(&orb, options).unwrap();
        let at_client = |object: &spandrel::ObjectRef| client.string_to_object(&object.to_string()).unwrap();
        let factory = PropertySetFactory::narrow(&at_client(service.factory())).unwrap();
        let def_factory = PropertySetDefFactory::narrow(&at_client(service.set_def_factory())).unwrap();
        Self { factory, def_factory, client, service: Some(service), orb }
    }

    pub(crate) fn set(&self) -> PropertySet {
        self.factory.create_propertyset().unwrap().unwrap()
    }

    pub(crate) fn set_def(&self) -> PropertySetDef {
        self.def_factory.create_propertysetdef().unwrap().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop().unwrap();
        }
        self.client.shutdown().unwrap();
        self.orb.shutdown().unwrap();
    }
}

pub(crate) fn long(number: i32) -> Any {
    Any::new(number).unwrap()
}

pub(crate) fn text(text: &str) -> Any {
    Any::new(text.to_owned()).unwrap()
}

pub(crate) fn property(name: &str, value: Any) -> Property {
    Property { property_name: name.to_owned(), property_value: value }
}

pub(crate) fn def(name: &str, value: Any, mode: PropertyModeType) -> PropertyDef {
    PropertyDef { property_name: name.to_owned(), property_value: value, property_mode: mode }
}

pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The failures of a request with several properties, in their order.
pub(crate) fn failures(outcome: Result<(), MultipleExceptionsError>) -> Vec<(String, ExceptionReason)> {
    match outcome {
        Ok(()) => Vec::new(),
        Err(MultipleExceptionsError::MultipleExceptions(exceptions)) => {
            exceptions.exceptions.into_iter().map(|failure| (failure.failing_property_name, failure.reason)).collect()
        }
        Err(other) => panic!("{other}"),
    }
}
