//! The samples: a named value of each kind of type.

use anyhow::{Context, Result, ensure};
use spandrel::types::values::ValueRef;
use spandrel::{
    ObjectRef,
    types::{Any, Char, Fixed, TypeCode, Typed, WString},
};

use super::show::show;
use crate::anything_idl::*;

/// A named value: a constructor, and a function that extracts it from an any and inserts it into another.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) value: fn() -> Result<Any>,
    reinserted: fn(&Any) -> Result<Any>,
}

macro_rules! samples {
    ($($name:literal $type:ty [$type_code:expr] = $value:expr;)*) => {
        &[$(Sample {
            name: $name,
            value: || {
                let value: $type = $value;
                Ok(Any::with_type($type_code, &value)?)
            },
            reinserted: |any| Ok(Any::with_type($type_code, &any.extract::<$type>()?)?),
        }),*]
    };
    ($($name:literal $type:ty = $value:expr;)*) => {
        samples! { $($name $type [<$type as Typed>::type_code()] = $value;)* }
    };
}

const SIMPLE: &[Sample] = samples! {
    "short" i16 = -2;
    "ulonglong" u64 = 18_000_000_000_000_000_000;
    "float" f32 = 0.5;
    "double" f64 = -1e100;
    "boolean" bool = true;
    "octet" u8 = 254;
    "char" Char = Char(b'z');
    "string" String = "coffee".to_owned();
    "fixed" Fixed<9, 2> = Fixed::from_unscaled(-125);
    "colour" Colour = Colour::Green;
    "typecode" TypeCode = Tree::type_code();
    "nothing-there" Option<ObjectRef> = None;
};

const CONSTRUCTED: &[Sample] = samples! {
    "point" Point = point(-1, 2.5);
    "choice" Choice = choice("blue");
    "letter" Letter = Letter::Word("a word".to_owned());
    "letter-default" Letter = Letter::Rest { discriminator: Char(b'q'), value: 9 };
    "flag-none" Flag = Flag::Unlisted(false);
    "tree" Tree = tree();
    "parcel" Parcel = parcel()?;
    "any" Any = Any::new(point(-1, 2.5))?;
    "broke" Broke = Broke { why: "glass".to_owned(), what: Any::new(point(-1, 2.5))? };
};

const ALIASES: &[Sample] = samples! {
    "points" Points [points_tc()] = vec![point(1, 0.5), point(2, -0.5)];
    "matrix" Matrix [matrix_tc()] = [[1, 2, 3], [-4, -5, -6]];
    "anys" Anys [anys_tc()] = vec![Any::new(3_i16)?, Any::new(point(-1, 2.5))?, Any::new(tree())?];
};

/// Types that GIOP 1.0 does not have.
const WIDE: &[Sample] = samples! {
    "wchar" char = '€';
    "wstring" WString = WString::from("5 €");
};

/// Types that GIOP 1.2 introduced.
const VALUES: &[Sample] = samples! {
    "value" Option<ValueRef<dyn Node>> = Some(nodes());
    "value-box" Option<ValueRef<Text>> = Some(ValueRef::new(Text("boxed".to_owned())));
};

const NOTHING: Sample = Sample { name: "null", value: || Ok(Any::default()), reinserted: |any| Ok(any.clone()) };

/// All samples.
pub(super) fn all() -> impl Iterator<Item = &'static Sample> {
    [SIMPLE, CONSTRUCTED, ALIASES, WIDE, VALUES, &[NOTHING]].into_iter().flatten()
}

/// The sample of that name.
pub(super) fn find(name: &str) -> Result<&'static Sample> {
    all().find(|sample| sample.name == name).context("no sample of that name")
}

/// Fails unless the value extracts to the sample of that name with its Rust type.
pub(super) fn check(what: &str, name: &str, value: &Any) -> Result<()> {
    let sample = find(name)?;
    let seen = (sample.reinserted)(value).with_context(|| format!("{what} has another type"))?;
    let (seen, expected) = (show(&seen)?, show(&(sample.value)()?)?);
    ensure!(seen == expected, "{what}: expected {expected}, saw {seen}");
    Ok(())
}

/// A part of other samples.
pub(super) fn point(x: i16, y: f64) -> Point {
    Point { x, y }
}

fn choice(text: &str) -> Choice {
    Choice::Text { discriminator: Colour::Blue, value: text.to_owned() }
}

fn tree() -> Tree {
    let leaf = |value| Tree { value, below: Vec::new() };
    Tree { value: 1, below: vec![leaf(2), Tree { value: 3, below: vec![leaf(-4)] }] }
}

fn parcel() -> Result<Parcel> {
    let contents = Any::new(point(-1, 2.5))?;
    Ok(Parcel { lead: 7, contents, r#type: Tree::type_code(), chosen: choice("in a parcel") })
}

fn nodes() -> ValueRef<dyn Node> {
    let last: ValueRef<dyn Node> = ValueRef::new(NodeState { value: 2, ..NodeState::default() });
    ValueRef::new(NodeState { value: 1, next: Some(last).into() })
}
