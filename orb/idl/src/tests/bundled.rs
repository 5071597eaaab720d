//! The stubs of services in `orb/cos`, and of `orb/bulk`, are the output of this compiler.

use std::fs;
use std::path::Path;

use spandrel_idl::rust::{Options, Sides, generate};
use spandrel_idl::{FrontEndOptions, compile};

fn options() -> Options {
    Options::new().runtime("crate::generated").expect("a path")
}

/// Rewrites the stubs if `UPDATE_GOLDEN` is set.
#[test]
fn bundled_stubs_are_up_to_date() {
    bundled("cos", "CosNaming.idl", "cos_naming.rs", &options());
    // `TypeCode` is of the runtime, and nothing else is used of the module CORBA.
    let without_corba = options().external("orb.idl", "crate::corba").expect("a path");
    bundled("cos", "CosPropertyService.idl", "cos_property_service.rs", &without_corba);
    bundled("cos", "CosTrading.idl", "cos_trading.rs", &without_corba);
    let with_properties = without_corba.external("CosPropertyService.idl", "crate").expect("a path");
    bundled("cos", "AVStreams.idl", "av_streams.rs", &with_properties.asynchronous_client(false));
    bundled("cos", "CosEvent.idl", "cos_event.rs", &options());
    let with_events = options().external("CosEvent.idl", "crate").expect("a path");
    bundled("cos", "CosNotification.idl", "cos_notification.rs", &with_events);
    let with_names = with_events.external("CosNaming.idl", "crate").expect("a path");
    bundled("cos", "EventFactory.idl", "event_factory.rs", &with_names);
    let with_factory = with_names.external("EventFactory.idl", "crate").expect("a path");
    bundled("cos", "EventMonitor.idl", "event_monitor.rs", &with_factory);
    let with_services = with_factory.external("EventMonitor.idl", "crate").expect("a path");
    let with_services = with_services.external("CosNotification.idl", "crate").expect("a path");
    let typed = with_services.clone().asynchronous_client(false);
    bundled("cos", "CosTypedNotification.idl", "cos_typed_notification.rs", &typed);
    bundled("cos", "NotificationMonitor.idl", "notification_monitor.rs", &with_services);
    bundled("cos", "ImplementationRepository.idl", "implementation_repository.rs", &options());
    bundled("bulk", "Bulk.idl", "bulk.rs", &options().asynchronous_client(false));
}

/// The types alone: the operations of all references of the interface repository are 17,000 lines of Rust, and its
/// skeletons as many. Rewrites the file if `UPDATE_GOLDEN` is set.
#[test]
fn bundled_types_of_the_interface_repository_are_up_to_date() {
    let options = options().asynchronous_client(false).sides(Sides::Types);
    bundled("cos", "InterfaceRepository.idl", "interface_repository.rs", &options);
}

fn bundled(package: &str, idl: &str, stubs: &str, options: &Options) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package);
    let model = match compile(&FrontEndOptions::default(), &package.join("idl").join(idl)) {
        Ok(model) => model,
        Err(diagnostics) => panic!("{diagnostics}"),
    };
    assert_eq!(model.warnings().to_string(), "", "{idl}");
    let rust = generate(&model, options);
    let stubs = package.join("src").join(stubs);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&stubs, &rust).expect("the stubs can be written");
    }
    let committed = fs::read_to_string(&stubs).expect("the stubs are committed");
    assert!(committed == rust, "{} is not the output of the compiler; set UPDATE_GOLDEN", stubs.display());
}
