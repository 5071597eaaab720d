//! A property set as a part of another servant.

use spandrel::services::cos_property_service::{
    PropertyModeType, PropertySet, PropertySetDef, PropertySetDefSkeleton, PropertySetServant, PropertySetSkeleton,
};
use spandrel::{Endpoint, Orb, Poa};
use spandrel_property::{IteratorOptions, Limits, LocalPropertySet, PropertyIterators, delegate_property_set};

use crate::support::{long, property};

// ANCHOR: device
/// A device with properties, as the streams of Audio and Video Streams have them.
struct Device {
    properties: LocalPropertySet,
}

delegate_property_set!(Device, properties);
// ANCHOR_END: device

struct Session {
    state: LocalPropertySet,
}

delegate_property_set!(Session, state: PropertySetDef);

#[test]
fn a_servant_has_the_operations_of_its_property_set() {
    let [orb, client] = [0; 2].map(|_| Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap());
    let root = Poa::root(&orb).unwrap();
    root.the_poa_manager().activate().unwrap();
    let iterators = PropertyIterators::new(&root, IteratorOptions::default()).unwrap();

    let properties = LocalPropertySet::new(&iterators, Limits::default());
    let device = root.activate(PropertySetSkeleton::new(Device { properties: properties.clone() })).unwrap();
    let remote = PropertySet::narrow(&client.string_to_object(&device.to_string()).unwrap()).unwrap();
    remote.define_properties(&[property("a", long(1)), property("b", long(2))]).unwrap();
    // The servant has the changes of clients, and clients have those of the servant.
    assert!(properties.is_property_defined("b").unwrap());
    properties.define_property("c", &long(3)).unwrap();
    let (first, rest) = remote.get_all_properties(1).unwrap();
    assert_eq!(first, [property("a", long(1))]);
    assert_eq!(rest.unwrap().next_n(5).unwrap().1, [property("b", long(2)), property("c", long(3))]);
    assert_eq!(iterators.active(), 1);

    let state = LocalPropertySet::new(&iterators, Limits::default());
    let session = root.activate(PropertySetDefSkeleton::new(Session { state })).unwrap();
    let remote = PropertySetDef::narrow(&client.string_to_object(&session.to_string()).unwrap()).unwrap();
    remote.define_property_with_mode("a", &long(1), PropertyModeType::FixedReadonly).unwrap();
    assert_eq!(remote.get_property_mode("a").unwrap(), PropertyModeType::FixedReadonly);
    assert!(remote.get_allowed_properties().unwrap().is_empty());
    client.shutdown().unwrap();
    orb.shutdown().unwrap();
}
