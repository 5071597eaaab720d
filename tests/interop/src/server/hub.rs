//! The hub: the first object that a client calls.

use std::sync::Arc;

use spandrel::{ObjectRef, Orb, Poa, SystemException, types::Context};

use super::bulk::Carrier;
use super::errors::Raiser;
use super::objects::{Depths, Factory};
use super::records::{AttributeStore, OnewayRecorder};
use super::rotate::Rotate;
use crate::idl::*;
use crate::values::{require, value};

/// Returns the references of the other objects.
#[derive(Debug)]
pub struct HubServer {
    orb: Orb,
    primitives: Primitives,
    strings: Strings,
    sequences: Sequences,
    structs: Structs,
    arrays: Arrays,
    objects: Objects,
    lowest: Lowest,
    errors: Errors,
    bulk: Bulk,
    attributes: Attributes,
    oneways: Oneways,
}

impl HubServer {
    /// Activates the hub and the objects whose references it returns.
    ///
    /// # Errors
    /// If the ORB cannot listen.
    pub fn activate(orb: &Orb, poa: &Poa) -> Result<ObjectRef, SystemException> {
        let depths = Arc::new(Depths::default());
        let lowest = Lowest::narrow(&poa.activate(LowestSkeleton::new(Arc::clone(&depths)))?)?;
        depths.set_reference(lowest.clone());
        let hub = Self {
            orb: orb.clone(),
            primitives: Primitives::narrow(&poa.activate(PrimitivesSkeleton::new(Rotate))?)?,
            strings: Strings::narrow(&poa.activate(StringsSkeleton::new(Rotate))?)?,
            sequences: Sequences::narrow(&poa.activate(SequencesSkeleton::new(Rotate))?)?,
            structs: Structs::narrow(&poa.activate(StructsSkeleton::new(Rotate))?)?,
            arrays: Arrays::narrow(&poa.activate(ArraysSkeleton::new(Rotate))?)?,
            objects: Objects::narrow(&poa.activate(ObjectsSkeleton::new(Factory(poa.clone())))?)?,
            lowest,
            errors: Errors::narrow(&poa.activate(ErrorsSkeleton::new(Raiser))?)?,
            bulk: Bulk::narrow(&poa.activate(BulkSkeleton::new(Carrier))?)?,
            attributes: Attributes::narrow(&poa.activate(AttributesSkeleton::new(AttributeStore::default()))?)?,
            oneways: Oneways::narrow(&poa.activate(OnewaysSkeleton::new(OnewayRecorder::default()))?)?,
        };
        poa.activate(HubSkeleton::new(hub))
    }
}

macro_rules! hub {
    ($($attribute:ident $field:ident $type:ident;)*) => {
        impl HubServant for HubServer {
            $(
                fn $attribute(&self) -> Result<Option<$type>, SystemException> {
                    Ok(Some(self.$field.clone()))
                }
            )*

            fn nothing(&self) -> Result<(), SystemException> {
                Ok(())
            }

            fn all_constants(&self) -> Result<Constants, SystemException> {
                Ok(all_constants())
            }

            fn mixed(
                &self,
                text: &str,
                entry: &mut Record,
                hue: Colour,
            ) -> Result<(i32, f64, String, Colour), hub::MixedError> {
                mixed(text, entry, hue)
            }

            fn r#type(&self, r#match: i32, r#impl: i32) -> Result<(i32, i32), SystemException> {
                Ok((r#match * r#impl, r#match - r#impl))
            }

            fn surroundings(&self, before: &str, context: &Context) -> Result<String, SystemException> {
                let value = |name: &str| context.get(name).unwrap_or("-").to_owned();
                Ok([value("locale"), value("user.name"), value("user.secret"), before.to_owned()].join(" "))
            }

            fn shutdown(&self) -> Result<(), SystemException> {
                self.orb.begin_shutdown()
            }
        }
    };
}

hub! {
    the_primitives primitives Primitives;
    the_strings strings Strings;
    the_sequences sequences Sequences;
    the_structs structs Structs;
    the_arrays arrays Arrays;
    the_objects objects Objects;
    the_lowest lowest Lowest;
    the_errors errors Errors;
    the_bulk bulk Bulk;
    the_attributes attributes Attributes;
    the_oneways oneways Oneways;
}

fn mixed(text: &str, entry: &mut Record, hue: Colour) -> Result<(i32, f64, String, Colour), hub::MixedError> {
    match text {
        "mismatch" => return Err(Mismatch { what: "as you asked".into() }.into()),
        "plain" => return Err(Plain { code: -1, why: text.into() }.into()),
        _ => require("entry", entry, 7, 2)?,
    }
    *entry = value(7, 4);
    let next = Colour::try_from((hue as u32 + 1) % 4).expect("the value is below 4");
    let length = text.chars().count() as i32;
    Ok((length, DOUBLE_THIRD, text.chars().rev().collect(), next))
}

/// The constants that the IDL compiler generated.
#[must_use]
pub(crate) fn all_constants() -> Constants {
    Constants {
        short_least: SHORT_LEAST,
        ushort_most: USHORT_MOST,
        long_least: LONG_LEAST,
        ulong_mixed: ULONG_MIXED,
        longlong_least: LONGLONG_LEAST,
        ulonglong_most: ULONGLONG_MOST,
        float_half: FLOAT_HALF,
        double_third: DOUBLE_THIRD,
        yes: YES,
        tab: TAB,
        e_acute: E_ACUTE,
        octet_most: OCTET_MOST,
        greeting: GREETING.into(),
        bound: BOUND,
        favourite: FAVOURITE,
    }
}
