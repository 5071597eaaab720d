//! Value types in the form of generated code.

use std::sync::Arc;

use spandrel_cdr::{
    Cast, CdrError, ConcreteValue, Decode, Decoder, Encode, Encoder, Entry, ImplementedBy, IsA, Linked, PlainFactory,
    ValueBase, ValueFactory, ValueRef, ValueType,
};

macro_rules! state {
    ($name:ident { $($member:ident: $type:ty),* $(,)? }) => {
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct $name { $(pub(crate) $member: $type,)* }

        impl Encode for $name {
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                $(self.$member.encode(out)?;)*
                Ok(())
            }
        }

        impl Decode for $name {
            const MIN_OCTETS: usize = 1;

            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                Ok(Self { $($member: Decode::decode(input)?,)* })
            }
        }
    };
}

/// A concrete value type: its trait, its state, its id, the bases to which it may be truncated, all its
/// bases, and the member of `$state` with the base's state.
macro_rules! value {
    ($name:ident $state:ident $method:ident $id:literal [$($truncated:literal)*] [$($base:ident)*] [$($derived:ident)*]) => {
        pub(crate) trait $name: ValueBase $(+ $base)* {
            fn $method(&self) -> &$state;
        }

        impl ValueType for dyn $name {
            const REPOSITORY_ID: &'static str = $id;

            fn known(id: &str) -> Option<&'static dyn ValueFactory> {
                let plain: &'static dyn ValueFactory = &PlainFactory::<dyn $name>::NEW;
                if id == $id {
                    return Some(plain);
                }
                None$(.or_else(|| <dyn $derived as ValueType>::known(id)))*
            }
        }

        impl ConcreteValue for dyn $name {
            type State = $state;
            const IDS: &'static [&'static str] = &[$id $(, $truncated)*];
        }

        impl<I: $name> ImplementedBy<I> for dyn $name {
            fn offer(value: &Arc<I>, cast: &mut Cast<'_>) {
                cast.offer::<dyn $name>(|| value.clone());
                $(cast.offer::<dyn $base>(|| value.clone());)*
            }

            fn encode_state<'a>(value: &'a I, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                value.$method().encode(out)
            }
        }

        $(impl IsA<dyn $base> for dyn $name {
            fn upcast(value: Arc<Self>) -> Arc<dyn $base> {
                value
            }
        })*

        impl $name for $state {
            fn $method(&self) -> &$state {
                self
            }
        }
    };
}

pub(crate) type Nodes = Vec<Option<ValueRef<dyn Node>>>;

state!(NodeState { name: String, weight: f64, next: Linked<Option<ValueRef<dyn Node>>>, others: Linked<Nodes>, });
value!(Node NodeState node_state "IDL:Node:1.0" [] [] []);

state!(BaseState { x: i32 });
value!(Base BaseState base_state "IDL:Base:1.0" [] [] [Derived]);

state!(DerivedState { base: BaseState, y: i64, node: Linked<Option<ValueRef<dyn Node>>>, });
value!(Derived DerivedState derived_state "IDL:Derived:1.0" ["IDL:Base:1.0"] [Base] []);

impl Base for DerivedState {
    fn base_state(&self) -> &BaseState {
        &self.base
    }
}

/// Has its base only: a receiver without `Derived`.
pub(crate) trait OldBase: ValueBase {
    fn old_state(&self) -> &BaseState;
}

impl OldBase for BaseState {
    fn old_state(&self) -> &BaseState {
        self
    }
}

impl ValueType for dyn OldBase {
    const REPOSITORY_ID: &'static str = "IDL:Base:1.0";

    fn known(id: &str) -> Option<&'static dyn ValueFactory> {
        (id == Self::REPOSITORY_ID).then_some(&PlainFactory::<dyn OldBase>::NEW)
    }
}

impl ConcreteValue for dyn OldBase {
    type State = BaseState;
    const IDS: &'static [&'static str] = &["IDL:Base:1.0"];
}

impl<I: OldBase> ImplementedBy<I> for dyn OldBase {
    fn offer(value: &Arc<I>, cast: &mut Cast<'_>) {
        cast.offer::<dyn OldBase>(|| value.clone());
    }

    fn encode_state<'a>(value: &'a I, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        value.old_state().encode(out)
    }
}

/// The content of a value box of a `string`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text(pub(crate) String);

impl Encode for Text {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.0.encode(out)
    }
}

impl Decode for Text {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Decode::decode(input).map(Self)
    }
}

impl ValueType for Text {
    const REPOSITORY_ID: &'static str = "IDL:Text:1.0";

    fn known(id: &str) -> Option<&'static dyn ValueFactory> {
        (id == Self::REPOSITORY_ID).then_some(&PlainFactory::<Text>::NEW)
    }
}

impl ConcreteValue for Text {
    type State = Text;
    const IDS: &'static [&'static str] = &["IDL:Text:1.0"];
}

impl ImplementedBy<Text> for Text {
    fn offer(value: &Arc<Text>, cast: &mut Cast<'_>) {
        cast.offer::<Text>(|| value.clone());
    }

    fn encode_state<'a>(value: &'a Text, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        value.encode(out)
    }
}

/// A value of a custom type, with its own marshaling.
pub(crate) trait Recipe: ValueBase {
    fn marshal<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError>;
}

impl ValueType for dyn Recipe {
    const REPOSITORY_ID: &'static str = "IDL:Recipe:1.0";
}

impl ConcreteValue for dyn Recipe {
    type State = BaseState;
    const IDS: &'static [&'static str] = &["IDL:Recipe:1.0"];
    const IS_CUSTOM: bool = true;
}

impl<I: Recipe> ImplementedBy<I> for dyn Recipe {
    fn offer(value: &Arc<I>, cast: &mut Cast<'_>) {
        cast.offer::<dyn Recipe>(|| value.clone());
    }

    fn encode_state<'a>(value: &'a I, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        value.marshal(out)
    }
}

/// An entry with a value inside.
#[allow(dead_code, reason = "not every test program creates entries")]
pub(crate) fn entry(x: i32) -> Entry {
    Entry::new::<dyn Base, BaseState>(BaseState { x })
}
