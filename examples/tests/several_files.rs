//! IDL files that refer to each other: compiled in one call, and each to a module of its own.

use spandrel::{SystemException, types::Interface as _};

/// The files of one call.
mod shop {
    spandrel::include_idl!("counter");
    spandrel::include_idl!("orders");
    spandrel::include_idl!("customers");
}

/// Each file with the others as external modules.
pub(crate) mod modules {
    pub(crate) mod counter {
        include!(concat!(env!("OUT_DIR"), "/modules/counter.rs"));
    }
    pub(crate) mod orders {
        include!(concat!(env!("OUT_DIR"), "/modules/orders.rs"));
    }
    pub(crate) mod customers {
        include!(concat!(env!("OUT_DIR"), "/modules/customers.rs"));
    }
}

/// A servant of `Order` that has no buyer: the types of all three files meet in it.
macro_rules! closed_order {
    ($name:ident, $named_port:ident, $($modules:item)*) => {
        mod $name {
            $($modules)*

            pub(super) struct Closed;

            impl orders::OrderServant for Closed {
                fn buyer(&self) -> Result<Option<customers::Customer>, orders::order::BuyerError> {
                    Err(counter::Closed { reason: "holiday".to_owned() }.into())
                }

                fn port(&self) -> Result<counter::PortInfo, super::SystemException> {
                    Ok(counter::PortInfo { number: 7 })
                }

                fn named_port(&self) -> Result<orders::$named_port, super::SystemException> {
                    Ok(orders::$named_port { name: "seven".to_owned() })
                }
            }
        }
    };
}
closed_order! {
    together, PortInfo_,
    use super::shop::shop as counter;
    use super::shop::shop as customers;
    use super::shop::shop as orders;
}
closed_order! {
    apart, PortInfo,
    use super::modules::counter::shop as counter;
    use super::modules::customers::shop as customers;
    use super::modules::orders::shop as orders;
}

#[test]
fn files_in_a_circle_have_one_type_for_each_definition() {
    use modules::orders::shop::OrderServant as _;
    use shop::shop::OrderServant as _;

    let error = together::Closed.buyer().expect_err("nobody");
    assert_eq!(error.to_string(), apart::Closed.buyer().expect_err("nobody").to_string());
    assert_eq!(together::Closed.port().expect("a port").number, apart::Closed.port().expect("a port").number);
    assert_eq!(shop::shop::Order::REPOSITORY_ID, "IDL:orders.example/Shop/Order:1.0");
    assert_eq!(modules::customers::shop::Customer::REPOSITORY_ID, "IDL:Shop/Customer:1.0");
}
