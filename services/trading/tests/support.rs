//! A trading service on an ORB of its own, and its references as another ORB has them.

use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading::{Admin, Lookup, Offer, Policy, Property, Register};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::cos_trading_repos::service_type_repository::{PropStruct, PropertyMode};
use spandrel::types::{Any, TypeCode};
use spandrel::{Endpoint, ObjectRef, Orb};
use spandrel_test_support::TEST_TIMEOUT;
use spandrel_trading::{TradingOptions, TradingService};

/// No query and no evaluation ends by the default of its time limit, on a loaded machine neither.
pub(crate) fn patient(mut options: TradingOptions) -> TradingOptions {
    let defaults = TradingOptions::default();
    for (limit, default) in
        [(&mut options.query_time, defaults.query_time), (&mut options.dynamic.time_limit, defaults.dynamic.time_limit)]
    {
        if *limit == default {
            *limit = 5 * TEST_TIMEOUT;
        }
    }
    options
}

/// A running service, and its interfaces as a client has them.
pub(crate) struct Served {
    pub(crate) lookup: Lookup,
    pub(crate) register: Register,
    pub(crate) admin: Admin,
    pub(crate) types: ServiceTypeRepository,
    pub(crate) client: Orb,
    pub(crate) service: Option<TradingService>,
    pub(crate) orb: Orb,
}

impl Served {
    /// A service with its state in memory.
    pub(crate) fn transient() -> Self {
        Self::with(TradingOptions::default())
    }

    /// One with the type `Printer`: `name` is mandatory and read-only, `ppm` mandatory, `colour` and `queue` optional.
    pub(crate) fn printers() -> Self {
        let served = Self::transient();
        served.add_printer_type();
        served
    }

    pub(crate) fn with(options: TradingOptions) -> Self {
        Self::on(Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap(), options)
    }

    /// A service on this ORB.
    pub(crate) fn on(orb: Orb, options: TradingOptions) -> Self {
        let client = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = TradingService::start(&orb, patient(options)).unwrap();
        let lookup = client.string_to_object(&service.lookup().to_string()).unwrap();
        let lookup = Lookup::narrow(&lookup).unwrap();
        let register = lookup.register_if().unwrap().unwrap();
        let admin = lookup.admin_if().unwrap().unwrap();
        let types = ServiceTypeRepository::narrow(&lookup.type_repos().unwrap().unwrap()).unwrap();
        Self { lookup, register, admin, types, client, service: Some(service), orb }
    }

    pub(crate) fn add_printer_type(&self) {
        let props = [
            prop("name", TypeCode::string(0), PropertyMode::PropMandatoryReadonly),
            prop("ppm", TypeCode::LONG, PropertyMode::PropMandatory),
            prop("colour", TypeCode::BOOLEAN, PropertyMode::PropNormal),
            prop("queue", TypeCode::LONG, PropertyMode::PropNormal),
        ];
        self.types.add_type("Printer", "IDL:Office/Printer:1.0", &props, &[]).unwrap();
    }

    /// A reference to an object that does not exist.
    pub(crate) fn object(&self, name: &str) -> ObjectRef {
        self.client.string_to_object(&format!("corbaloc::127.0.0.1:1/{name}")).unwrap()
    }

    pub(crate) fn export(&self, service_type: &str, properties: &[Property]) -> String {
        self.register.export(Some(&self.object("offered")), service_type, properties).unwrap()
    }

    pub(crate) fn printer(&self, name: &str, ppm: i32, colour: bool) -> String {
        let properties = [property("name", text(name)), property("ppm", long(ppm)), property("colour", flag(colour))];
        self.export("Printer", &properties)
    }

    /// The property `name` of the offers that a query finds, in their order.
    pub(crate) fn names(&self, service_type: &str, constraint: &str, preference: &str) -> Vec<String> {
        let (offers, limits) = self.query(service_type, constraint, preference, &[]);
        assert!(limits.is_empty(), "{limits:?}");
        names_of(&offers)
    }

    pub(crate) fn query(
        &self,
        service_type: &str,
        constraint: &str,
        preference: &str,
        policies: &[Policy],
    ) -> (Vec<Offer>, Vec<String>) {
        let (offers, iterator, limits) =
            self.lookup.query(service_type, constraint, preference, policies, &all(), u32::MAX).unwrap();
        assert!(iterator.is_none());
        (offers, limits)
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

pub(crate) fn names_of(offers: &[Offer]) -> Vec<String> {
    let name = |offer: &Offer| offer.properties.iter().find(|property| property.name == "name").cloned();
    offers.iter().filter_map(name).map(|property| property.value.extract().unwrap()).collect()
}

pub(crate) fn all() -> SpecifiedProps {
    SpecifiedProps::Unlisted(HowManyProps::All)
}

pub(crate) fn none() -> SpecifiedProps {
    SpecifiedProps::Unlisted(HowManyProps::None)
}

pub(crate) fn prop(name: &str, value_type: TypeCode, mode: PropertyMode) -> PropStruct {
    PropStruct { name: name.to_owned(), value_type, mode }
}

pub(crate) fn property(name: &str, value: Any) -> Property {
    Property { name: name.to_owned(), value }
}

pub(crate) fn policy(name: &str, value: Any) -> Policy {
    Policy { name: name.to_owned(), value }
}

pub(crate) fn long(number: i32) -> Any {
    Any::new(number).unwrap()
}

pub(crate) fn text(text: &str) -> Any {
    Any::new(text.to_owned()).unwrap()
}

pub(crate) fn flag(value: bool) -> Any {
    Any::new(value).unwrap()
}

pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
