//! One case per type: sent as `in` and `inout`, and returned as result, `inout` and `out`.

use anyhow::Result;
use spandrel::types::{Char, LongDouble};

use crate::cases::{array_cases, primitive_cases, sequence_cases, string_cases, struct_cases};
use crate::idl::*;
use crate::suite::{Suite, check, not_nil};
use crate::values::{Value, value};

/// Runs the cases of all five interfaces.
pub(super) fn run(suite: &mut Suite<'_>, hub: &Hub) -> Result<()> {
    primitives(suite, &not_nil(hub.the_primitives()?)?);
    strings(suite, &not_nil(hub.the_strings()?)?);
    sequences(suite, &not_nil(hub.the_sequences()?)?);
    structs(suite, &not_nil(hub.the_structs()?)?);
    arrays(suite, &not_nil(hub.the_arrays()?)?);
    Ok(())
}

/// Calls once and checks the results.
fn rotate<T: Value, E: std::error::Error + Send + Sync + 'static>(
    seed: u32,
    call: impl FnOnce(T, &mut T) -> Result<(T, T), E>,
) -> Result<()> {
    let mut b = value(seed, 2);
    let (result, c) = call(value(seed, 1), &mut b)?;
    check("result", &result, seed, 3)?;
    check("b", &b, seed, 4)?;
    check("c", &c, seed, 5)
}

macro_rules! by_value {
    (($function:ident $interface:ident) $($method:ident $name:literal $error:ident ($given:ty) $type:ty;)*) => {
        fn $function(suite: &mut Suite<'_>, target: &$interface) {$(
            suite.seeded(concat!(stringify!($function), "/", $name), |seed| {
                rotate::<$type, _>(seed, |a, b| target.$method(seed, a, b))
            });
        )*}
    };
}

macro_rules! by_reference {
    (($function:ident $interface:ident) $($method:ident $name:literal $error:ident ($given:ty) $type:ty;)*) => {
        fn $function(suite: &mut Suite<'_>, target: &$interface) {$(
            suite.seeded(concat!(stringify!($function), "/", $name), |seed| {
                rotate::<$type, _>(seed, |a, b| target.$method(seed, &a, b))
            });
        )*}
    };
}

primitive_cases!(by_value!(primitives Primitives));
string_cases!(by_reference!(strings Strings));
sequence_cases!(by_reference!(sequences Sequences));
struct_cases!(by_reference!(structs Structs));
array_cases!(by_reference!(arrays Arrays));
