//! The `rotate_*` operations as calls in JSON, whose values are those of the static types.

use spandrel::dynamic::DynAny;
use spandrel::types::{Any, Char, LongDouble};

use crate::cases::{array_cases, primitive_cases, sequence_cases, string_cases, struct_cases};
use crate::idl::*;
use crate::values::value;

/// A call with its arguments and its results in JSON. The servant compares the arguments with its own values.
#[derive(Clone, Debug)]
pub struct JsonCase {
    /// The attribute of the hub with the object.
    pub object: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// The arguments by name.
    pub arguments: String,
    /// The results: `{"result":…,"out":{"b":…,"c":…}}`.
    pub results: String,
}

macro_rules! json_cases_of {
    (($all:ident $seed:ident $object:literal) $($method:ident $name:literal $error:ident ($given:ty) $type:ty;)*) => {$(
        let json = |role: u32| -> String {
            let value: $type = value($seed, role);
            let any = Any::new(&value).expect("the values can be encoded");
            DynAny::new(&any).expect("it has components").to_json().expect("it is not too long")
        };
        $all.push(JsonCase {
            object: $object,
            operation: stringify!($method),
            arguments: format!("{{\"seed\":{},\"a\":{},\"b\":{}}}", $seed, json(1), json(2)),
            results: format!("{{\"result\":{},\"out\":{{\"b\":{},\"c\":{}}}}}", json(3), json(4), json(5)),
        });
    )*};
}

/// A case for each type, with the values of this seed.
#[must_use]
pub fn json_cases(seed: u32) -> Vec<JsonCase> {
    let mut all = Vec::new();
    primitive_cases!(json_cases_of!(all seed "the_primitives"));
    string_cases!(json_cases_of!(all seed "the_strings"));
    sequence_cases!(json_cases_of!(all seed "the_sequences"));
    struct_cases!(json_cases_of!(all seed "the_structs"));
    array_cases!(json_cases_of!(all seed "the_arrays"));
    all
}
