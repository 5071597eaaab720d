//! Sets on disk: restarts, values with references, failures of the disk, files of others.

use std::collections::BTreeMap;

use spandrel::poa::IfMissing;
use spandrel::services::cos_property_service::property_set::{DefinePropertyError, DeletePropertyError};
use spandrel::services::cos_property_service::{
    PropertyModeType, PropertySet, PropertySetDef, PropertySetDefFactory, PropertySetFactory,
};
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_property::{ADAPTER, PropertyOptions, PropertyService, STORE_FILE, check_store};
use spandrel_store::Storage;
use spandrel_test_support::{disk::Disk, free_port};

use crate::support::{Served, def, long, text};

#[test]
fn sets_survive_a_restart_with_their_constraints_modes_and_references() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let start = || {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
        let service = PropertyService::start(&orb, PropertyOptions::new(folder.path())).unwrap();
        (orb, service)
    };
    let client = Orb::builder().build().unwrap();
    let (orb, service) = start();
    let factory = client.string_to_object(&service.set_def_factory().to_string()).unwrap();
    let factory: PropertySetDefFactory = factory.narrow().unwrap();
    let allowed = [def("a", Any::default(), PropertyModeType::ReadOnly)];
    let set = factory.create_constrained_propertysetdef(&[TypeCode::LONG], &allowed).unwrap().unwrap();
    set.define_property("a", &long(7)).unwrap();
    let others =
        [def("ß", text("grüße"), PropertyModeType::FixedNormal), def("gone", long(1), PropertyModeType::Normal)];
    let other = factory.create_initial_propertysetdef(&others).unwrap().unwrap();
    other.delete_property("gone").unwrap();
    // A value with a reference, and one of any type.
    let reference = ObjectRef::from(other.clone());
    other.define_property("self", &Any::new(Some(reference.clone())).unwrap()).unwrap();
    let texts = [set.to_string(), other.to_string()];
    service.stop().unwrap();
    orb.shutdown().unwrap();
    client.shutdown().unwrap();

    let client = Orb::builder().build().unwrap();
    let (orb, service) = start();
    assert_eq!(service.sets(), 2);
    let [set, other] = texts.map(|text| PropertySetDef::narrow(&client.string_to_object(&text).unwrap()).unwrap());
    assert_eq!(set.get_property_value("a").unwrap(), long(7));
    assert_eq!(set.get_property_mode("a").unwrap(), PropertyModeType::ReadOnly);
    assert_eq!(set.get_allowed_property_types().unwrap(), [TypeCode::LONG]);
    assert_eq!(set.get_allowed_properties().unwrap(), allowed);
    set.define_property("b", &long(1)).unwrap_err();
    assert_eq!(other.get_all_property_names(10).unwrap().0, ["self", "ß"]);
    assert_eq!(other.get_property_value("ß").unwrap(), text("grüße"));
    let same: Option<ObjectRef> = other.get_property_value("self").unwrap().to_object().unwrap();
    assert_eq!(PropertySet::narrow(&same.unwrap()).unwrap().get_number_of_properties().unwrap(), 2);
    // The next set has a number of its own.
    let factory = client.string_to_object(&service.factory().to_string()).unwrap();
    let factory: PropertySetFactory = factory.narrow().unwrap();
    factory.create_propertyset().unwrap().unwrap().define_property("x", &long(1)).unwrap();
    assert_eq!(set.get_number_of_properties().unwrap(), 1);
    service.stop().unwrap();
    orb.shutdown().unwrap();
    client.shutdown().unwrap();
    assert_eq!(check_store(&folder.path().join(STORE_FILE)).unwrap(), (3, 4));
}

/// A service whose store is on this disk, and its sets by their numbers.
fn on_disk(disk: &Disk) -> Served {
    let disk = disk.clone();
    let storage = Some(Storage::backend(move || disk.clone()));
    Served::with(PropertyOptions { storage, ..PropertyOptions::default() })
}

/// The set with the number 0.
fn first_set(served: &Served) -> PropertySet {
    let root = Poa::root(&served.orb).unwrap();
    let adapter = root.find_poa(ADAPTER, IfMissing::Fail).unwrap();
    adapter.id_to_reference(&"0".into()).unwrap().narrow().unwrap()
}

type Contents = BTreeMap<String, i32>;

fn contents(set: &PropertySet) -> Contents {
    let (properties, rest) = set.get_all_properties(100).unwrap();
    assert!(rest.is_none());
    let entry = |property: spandrel::services::cos_property_service::Property| {
        (property.property_name, property.property_value.extract().unwrap())
    };
    properties.into_iter().map(entry).collect()
}

/// Makes a random change. It depends on nothing but the contents and the numbers.
fn change(set: &PropertySet, random: &mut fastrand::Rng) -> Result<(), SystemException> {
    let name = format!("p{}", random.u8(..5));
    if random.u8(..3) > 0 {
        return match set.define_property(&name, &long(random.i32(..))) {
            Ok(()) => Ok(()),
            Err(DefinePropertyError::System(error)) => Err(error),
            Err(other) => panic!("{other}"),
        };
    }
    match set.delete_property(&name) {
        Ok(()) | Err(DeletePropertyError::PropertyNotFound(_)) => Ok(()),
        Err(DeletePropertyError::System(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_loss_of_power_or_an_error_of_the_disk_loses_no_acknowledged_change() {
    const CHANGES: usize = 8;
    let count = {
        let disk = Disk::default();
        let served = on_disk(&disk);
        let set = served.set();
        let mut random = fastrand::Rng::with_seed(7);
        let first = disk.changes();
        (0..CHANGES).for_each(|_| change(&set, &mut random).unwrap());
        first..disk.changes()
    };
    let mut uncertain = 0;
    let mut losses = fastrand::Rng::with_seed(8);
    for cut in count {
        let disk = Disk::default();
        let served = on_disk(&disk);
        let set = served.set();
        let mut random = fastrand::Rng::with_seed(7);
        disk.cut_power_after(cut);
        let mut states = vec![contents(&set)];
        let mut failed = None;
        for _ in 0..CHANGES {
            match change(&set, &mut random) {
                Ok(()) => states.push(contents(&set)),
                Err(error) => {
                    failed = Some(error.completed());
                    break;
                }
            }
        }
        assert_eq!(contents(&set), *states.last().unwrap(), "reading goes on");
        // The file has the acknowledged state, or the next one if that is uncertain.
        let after_loss = on_disk(&disk.after_power_loss(&mut losses));
        assert_eq!(after_loss.service.as_ref().unwrap().sets(), 1);
        let stored = first_set(&after_loss);
        let restored = contents(&stored);
        if restored != *states.last().unwrap() {
            assert_eq!(failed, Some(CompletionStatus::Maybe), "power lost after {cut} writes: {restored:?}");
            uncertain += 1;
        }
        // After an error, the file follows the memory.
        disk.restore_power();
        set.define_property("last", &long(1)).unwrap();
        let expected = contents(&set);
        drop(served);
        let again = on_disk(&disk);
        let stored = first_set(&again);
        assert_eq!(contents(&stored), expected, "error at write {cut}");
    }
    println!("{uncertain} changes were made and not acknowledged");
}

#[test]
fn sets_in_memory_end_with_their_service() {
    let port = free_port();
    let client = Orb::builder().build().unwrap();
    let start = || {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
        (PropertyService::start(&orb, PropertyOptions::default()).unwrap(), orb)
    };
    let (service, orb) = start();
    let create = |service: &PropertyService| {
        let factory: PropertySetFactory = service.factory().narrow().unwrap();
        ObjectRef::from(factory.create_propertyset().unwrap().unwrap()).to_string()
    };
    let text = create(&service);
    service.stop().unwrap();
    orb.shutdown().unwrap();
    let (service, orb) = start();
    create(&service); // with the same number
    let old = client.string_to_object(&text).unwrap();
    assert!(old.non_existent().unwrap());
    service.stop().unwrap();
    orb.shutdown().unwrap();
    client.shutdown().unwrap();
}
