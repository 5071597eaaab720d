//! Values with their types.

use std::sync::Mutex;

use spandrel::{
    SystemException,
    cdr::ByteOrder,
    types::{Any, TypeCode, Typed},
};

use super::idl::anything::{Celsius, Log, LogServant, LogSkeleton, Reading, celsius_tc};
use crate::pair::Pair;

#[derive(Default)]
struct Book(Mutex<Any>);

impl LogServant for Book {
    fn last(&self, entry: &Any) -> Result<Any, SystemException> {
        Ok(std::mem::replace(&mut *self.0.lock().expect("no panic"), entry.clone()))
    }

    fn kind(&self, entry: &Any) -> Result<TypeCode, SystemException> {
        Ok(entry.type_code().clone())
    }
}

#[test]
fn an_any_holds_anything() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let pair = Pair::new(order);
        let log: Log = pair.serve(LogSkeleton::new(Book::default()));

        let reading = Reading { sensor: "roof".to_owned(), value: 21.5 };
        let entry = Any::new(&reading).expect("a value that can be sent");
        assert_eq!(log.kind(&entry), Ok(Reading::type_code()));
        log.last(&entry).expect("an answer");

        // A typedef is not a distinct type in Rust: its type code is given explicitly.
        let degrees: Celsius = 21;
        let entry = Any::with_type(celsius_tc(), &degrees).expect("a long");
        let before = log.last(&entry).expect("an answer");
        assert_eq!(before.extract::<Reading>().expect("a reading"), reading);
        assert!(before.extract::<String>().is_err());

        let last = log.last(&Any::default()).expect("an answer");
        assert_eq!(last.type_code().name(), Ok("Celsius"));
        assert_eq!(last.extract::<Celsius>().expect("a long"), 21);
    }
}
