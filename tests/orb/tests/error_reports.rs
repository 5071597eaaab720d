//! The form in which a `main` that returns an error prints it.

use std::error::Error;

use spandrel::{InitError, Orb, SystemException};
use spandrel_test_support::free_port;

fn as_main_prints(error: impl Error + 'static) -> String {
    let error: Box<dyn Error> = error.into();
    format!("Error: {error:?}")
}

#[test]
fn an_invalid_reference_is_reported_in_a_line() {
    let orb = Orb::builder().build().unwrap();
    let error: SystemException = orb.string_to_object("nonsense").unwrap_err();
    let printed = as_main_prints(error);
    assert!(printed.starts_with("Error: CORBA::BAD_PARAM (minor 0x"), "{printed}");
    assert!(printed.contains("nonsense"), "{printed}");
    assert_eq!(printed.lines().count(), 1, "the cause is part of the message: {printed}");
    orb.shutdown().unwrap();
}

#[test]
fn a_failed_call_is_reported_with_its_cause() {
    let orb = Orb::builder().build().unwrap();
    let address = format!("127.0.0.1:{}", free_port()); // nothing listens there
    let object = orb.string_to_object(&format!("corbaloc::{address}/Key")).unwrap();
    let printed = as_main_prints(object.is_a("IDL:Any:1.0").unwrap_err());
    assert!(printed.starts_with("Error: CORBA::TRANSIENT (minor 0x"), "{printed}");
    assert!(printed.contains(&address), "{printed}");
    assert!(!printed.contains("SystemException") && !printed.contains('{'), "{printed}");
    orb.shutdown().unwrap();
}

#[test]
fn an_invalid_option_is_reported_with_the_expected_value() {
    let error: InitError = Orb::init(["-ORBGiopVersion", "2.0"].map(String::from)).unwrap_err();
    assert_eq!(as_main_prints(error), "Error: invalid value `2.0` for `-ORBGiopVersion`: expected 1.0, 1.1 or 1.2");
}
