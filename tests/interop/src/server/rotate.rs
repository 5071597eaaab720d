//! The operations that pass one type in each position.

use spandrel::types::{Char, LongDouble};

use crate::cases::{array_cases, primitive_cases, sequence_cases, string_cases, struct_cases};
use crate::idl::*;
use crate::values::{require, value};

/// Serves the five interfaces of `rotate_*` operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotate;

macro_rules! servant {
    (($trait:ident $module:ident) $($method:ident $name:literal $error:ident ($given:ty) $type:ty;)*) => {
        impl $trait for Rotate {$(
            fn $method(&self, seed: u32, a: $given, b: &mut $type) -> Result<($type, $type), $module::$error> {
                require("a", &a.to_owned(), seed, 1)?;
                require("b", b, seed, 2)?;
                *b = value(seed, 4);
                Ok((value(seed, 3), value(seed, 5)))
            }
        )*}
    };
}

primitive_cases!(servant!(PrimitivesServant primitives));
string_cases!(servant!(StringsServant strings));
sequence_cases!(servant!(SequencesServant sequences));
struct_cases!(servant!(StructsServant structs));
array_cases!(servant!(ArraysServant arrays));
