//! The state on disk.

use std::time::{Duration, Instant};

use spandrel::services::cos_trading_dynamic::DynamicProp;
use spandrel::types::{Any, TypeCode};
use spandrel_trading::{PurgeOptions, STORE_FILE, TradingOptions, check_store};

use crate::support::{Served, long, names, property, text};

#[test]
fn types_offers_and_attributes_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::with(TradingOptions::new(folder.path()));
    served.add_printer_type();
    let [unchanged, changed, withdrawn] = ["kept", "changed", "withdrawn"].map(|name| served.printer(name, 5, true));
    served.register.modify(&changed, &names(&["colour"]), &[property("ppm", long(9))]).unwrap();
    served.register.withdraw(&withdrawn).unwrap();
    served.types.add_type("Other", "", &[], &[]).unwrap();
    served.types.remove_type("Other").unwrap();
    served.types.mask_type("Printer").unwrap();
    served.admin.set_max_list(77).unwrap();
    let incarnation = served.types.incarnation().unwrap();
    drop(served);

    assert_eq!(check_store(&folder.path().join(STORE_FILE)).unwrap(), (1, 2));
    let served = Served::with(TradingOptions::new(folder.path()));
    assert_eq!(served.types.incarnation().unwrap(), incarnation);
    assert!(served.types.describe_type("Printer").unwrap().masked);
    assert_eq!(served.admin.max_list().unwrap(), 77);
    assert_eq!(served.names("Printer", "ppm == 9 and not exist colour", ""), names(&["changed"]));
    assert_eq!(served.names("Printer", "ppm > 0", "max ppm"), names(&["changed", "kept"]));
    served.types.unmask_type("Printer").unwrap();
    // Ids are not used again.
    let new = served.printer("new", 1, false);
    assert!(![&unchanged, &changed, &withdrawn].contains(&&new));
    served.register.withdraw(&unchanged).unwrap();
}

#[test]
fn changes_of_many_clients_are_each_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::with(TradingOptions::new(folder.path()));
    served.add_printer_type();
    let counted = served.printer("counted", 0, true);
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (served, counted) = (&served, &counted);
            scope.spawn(move || {
                for nth in 0..20 {
                    let own = served.printer(&format!("{client}-{nth}"), nth, true);
                    served.register.modify(counted, &[], &[property(&format!("c{client}n{nth}"), long(nth))]).unwrap();
                    if nth % 2 == 0 {
                        served.register.withdraw(&own).unwrap();
                    }
                }
            });
        }
    });
    // No modification of the shared offer was lost.
    assert_eq!(served.register.describe(&counted).unwrap().properties.len(), 3 + 4 * 20);
    drop(served);
    assert_eq!(check_store(&folder.path().join(STORE_FILE)).unwrap(), (1, 1 + 4 * 10));
}

#[test]
fn offers_of_objects_that_are_gone_are_withdrawn() {
    let purge = Some(PurgeOptions::new(Duration::from_millis(20)));
    let served = Served::with(TradingOptions { purge, ..TradingOptions::default() });
    served.types.add_type("T", "", &[], &[]).unwrap();
    // No adapter has the key; the lookup exists, and the server at port 1 may return.
    let address = served.orb.listen().unwrap()[0].clone();
    let gone_object =
        served.client.string_to_object(&format!("corbaloc::{}:{}/nothing", address.0, address.1)).unwrap();
    let gone = served.register.export(Some(&gone_object), "T", &[]).unwrap();
    let alive = served.register.export(Some(&served.lookup), "T", &[]).unwrap();
    let unreachable = served.export("T", &[]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while served.register.describe(&gone).is_ok() {
        assert!(Instant::now() < deadline, "the offer was not withdrawn");
        std::thread::yield_now();
    }
    served.register.describe(&alive).unwrap();
    served.register.describe(&unreachable).unwrap();
}

#[test]
fn a_dynamic_property_has_its_evaluator_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::with(TradingOptions::new(folder.path()));
    served.add_printer_type();
    let eval_if = Some(served.object("evaluator").unchecked_narrow());
    let dynamic = DynamicProp { eval_if, returned_type: TypeCode::LONG, extra_info: long(7) };
    let ppm = property("ppm", Any::new(dynamic.clone()).unwrap());
    let id = served.export("Printer", &[property("name", text("n")), ppm]);
    drop(served);

    let served = Served::with(TradingOptions::new(folder.path()));
    let offer = served.register.describe(&id).unwrap();
    assert_eq!(offer.properties[1].value.extract::<DynamicProp>().unwrap(), dynamic);
    // The type and the evaluator are checked again.
    served.register.modify(&id, &[], &[property("ppm", Any::new(dynamic).unwrap())]).unwrap();
}
