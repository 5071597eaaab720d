//! What is kept between calls: attributes, and what one-way calls leave behind.

use std::sync::{Mutex, MutexGuard};

use spandrel::SystemException;

use super::check;
use crate::idl::*;

type Answer<T> = Result<T, SystemException>;

/// Every attribute's value.
#[derive(Debug, Default)]
struct Kept {
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

/// Keeps attributes.
#[derive(Debug, Default)]
pub(super) struct Keeper(Mutex<Kept>);

impl Keeper {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("nothing panics while it is held")
    }
}

macro_rules! attributes {
    ($($get:ident $set:ident ($given:ty) $type:ty;)*) => {
        impl AttributesServant for Keeper {
            $(
                fn $get(&self) -> Answer<$type> {
                    Ok(self.kept().$get.clone())
                }

                fn $set(&self, value: $given) -> Answer<()> {
                    let mut kept = self.kept();
                    kept.$get = value.to_owned();
                    kept.writes += 1;
                    Ok(())
                }
            )*

            fn peer(&self) -> Answer<Option<Node>> {
                Ok(self.kept().peer.clone())
            }

            fn set_peer(&self, value: Option<&Node>) -> Answer<()> {
                let mut kept = self.kept();
                kept.peer = value.cloned();
                kept.writes += 1;
                Ok(())
            }

            fn writes(&self) -> Answer<u32> {
                Ok(self.kept().writes)
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

/// What one-way calls have left.
#[derive(Debug, Default)]
struct Heard {
    pings: u32,
    notes: u32,
    complaint: String,
}

/// Listens to one-way calls.
#[derive(Debug, Default)]
pub(super) struct Listener(Mutex<Heard>);

impl Listener {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().expect("nothing panics while it is held")
    }
}

impl OnewaysServant for Listener {
    fn ping(&self) -> Answer<()> {
        self.heard().pings += 1;
        Ok(())
    }

    fn note(&self, seed: u32, text: &str, entry: &Record, numbers: &[f64]) -> Answer<()> {
        let checked = check("text", &text.to_owned(), seed, 1)
            .and_then(|()| check("entry", entry, seed, 2))
            .and_then(|()| check("numbers", &numbers.to_vec(), seed, 3));
        let mut heard = self.heard();
        match checked {
            Ok(()) => heard.notes += 1,
            Err(Mismatch { what }) => heard.complaint = what,
        }
        Ok(())
    }

    fn pings(&self) -> Answer<u32> {
        Ok(self.heard().pings)
    }

    fn notes(&self) -> Answer<u32> {
        Ok(self.heard().notes)
    }

    fn complaint(&self) -> Answer<String> {
        Ok(self.heard().complaint.clone())
    }
}
