//! State kept between calls: attributes, and the effects of one-way calls.

use std::sync::{Mutex, MutexGuard};

use spandrel::SystemException;

use crate::idl::*;
use crate::values::require;

type Answer<T> = Result<T, SystemException>;

/// The value of each attribute.
#[derive(Debug, Default)]
struct AttributeValues {
    number: i16,
    title: String,
    hue: Colour,
    place: Point,
    entry: Record,
    numbers: DoubleSeq,
    block: Cube,
    peer: Option<Node>,
    writes: u32,
}

/// Stores attributes.
#[derive(Debug, Default)]
pub(super) struct AttributeStore(Mutex<AttributeValues>);

impl AttributeStore {
    fn values(&self) -> MutexGuard<'_, AttributeValues> {
        self.0.lock().expect("no thread panics with the lock held")
    }
}

macro_rules! attributes {
    ($($get:ident $set:ident ($given:ty) $type:ty;)*) => {
        impl AttributesServant for AttributeStore {
            $(
                fn $get(&self) -> Answer<$type> {
                    Ok(self.values().$get.clone())
                }

                fn $set(&self, value: $given) -> Answer<()> {
                    let mut values = self.values();
                    values.$get = value.to_owned();
                    values.writes += 1;
                    Ok(())
                }
            )*

            fn peer(&self) -> Answer<Option<Node>> {
                Ok(self.values().peer.clone())
            }

            fn set_peer(&self, value: Option<&Node>) -> Answer<()> {
                let mut values = self.values();
                values.peer = value.cloned();
                values.writes += 1;
                Ok(())
            }

            fn writes(&self) -> Answer<u32> {
                Ok(self.values().writes)
            }

            fn third(&self) -> Answer<f64> {
                Ok(DOUBLE_THIRD)
            }

            fn tenth(&self) -> Answer<f64> {
                Ok(0.1)
            }
        }
    };
}

attributes! {
    number set_number (i16) i16;
    title set_title (&str) String;
    hue set_hue (Colour) Colour;
    place set_place (&Point) Point;
    entry set_entry (&Record) Record;
    numbers set_numbers (&[f64]) DoubleSeq;
    block set_block (&Cube) Cube;
}

/// The effects of one-way calls.
#[derive(Debug, Default)]
struct OnewayRecord {
    pings: u32,
    notes: u32,
    complaint: String,
}

/// Records one-way calls.
#[derive(Debug, Default)]
pub(super) struct OnewayRecorder(Mutex<OnewayRecord>);

impl OnewayRecorder {
    fn record(&self) -> MutexGuard<'_, OnewayRecord> {
        self.0.lock().expect("no thread panics with the lock held")
    }
}

impl OnewaysServant for OnewayRecorder {
    fn ping(&self) -> Answer<()> {
        self.record().pings += 1;
        Ok(())
    }

    fn note(&self, seed: u32, text: &str, entry: &Record, numbers: &[f64]) -> Answer<()> {
        let checked = require("text", &text.to_owned(), seed, 1)
            .and_then(|()| require("entry", entry, seed, 2))
            .and_then(|()| require("numbers", &numbers.to_vec(), seed, 3));
        let mut record = self.record();
        match checked {
            Ok(()) => record.notes += 1,
            Err(Mismatch { what }) => record.complaint = what,
        }
        Ok(())
    }

    fn pings(&self) -> Answer<u32> {
        Ok(self.record().pings)
    }

    fn notes(&self) -> Answer<u32> {
        Ok(self.record().notes)
    }

    fn complaint(&self) -> Answer<String> {
        Ok(self.record().complaint.clone())
    }
}
