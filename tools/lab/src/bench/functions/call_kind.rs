//! The kinds of calls, and their timed loops.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A kind of call. The function adds its argument to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// No call: the loop, and an addition.
    Empty,
    /// A function that the compiler must inline.
    InlineFunction,
    /// A function that it must not inline.
    Function,
    /// A method that it must inline.
    InlineMethod,
    /// A method that it must not inline.
    Method,
    /// A method of a type parameter (static dispatch), inlined.
    InlineGeneric,
    /// A method of a type parameter, not inlined.
    Generic,
    /// A method of a trait object whose type the compiler can see.
    KnownTraitObject,
    /// A method of a trait object.
    TraitObject,
    /// A closure as a type parameter.
    Closure,
    /// A closure behind a pointer, `Box<dyn Fn>`.
    BoxedClosure,
    /// A call through a function pointer.
    FunctionPointer,
}

use CallKind::{
    BoxedClosure, Closure, Empty, Function, FunctionPointer, Generic, InlineFunction, InlineGeneric, InlineMethod,
    KnownTraitObject, Method, TraitObject,
};

impl CallKind {
    /// All kinds of call, in the order of the table.
    pub const ALL: [Self; 12] = [
        Empty,
        InlineFunction,
        Function,
        InlineMethod,
        Method,
        InlineGeneric,
        Generic,
        KnownTraitObject,
        TraitObject,
        Closure,
        BoxedClosure,
        FunctionPointer,
    ];

    /// The words for it in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Empty => "empty iteration",
            InlineFunction => "inline function",
            Function => "function",
            InlineMethod => "inline method",
            Method => "method",
            InlineGeneric => "inline method of a type parameter",
            Generic => "method of a type parameter",
            KnownTraitObject => "method of a trait object of a known type",
            TraitObject => "method of a trait object",
            Closure => "closure as a type parameter",
            BoxedClosure => "boxed closure",
            FunctionPointer => "function pointer",
        }
    }

    /// The row of appendix C of paper 004 that it corresponds to.
    #[must_use]
    pub fn paper_row(self) -> Option<&'static str> {
        match self {
            Empty => Some("empty iteration"),
            InlineFunction => Some("inline function call"),
            Function => Some("non-inline function call"),
            InlineMethod => Some("inline member function call"),
            Method => Some("non-inline member function call"),
            KnownTraitObject => Some("virtual member function call, optimizable"),
            TraitObject => Some("virtual member function call"),
            InlineGeneric | Generic | Closure | BoxedClosure | FunctionPointer => None,
        }
    }
}

/// A number to which calls add.
struct Sum(u64);

/// The interface of the calls by trait.
trait Add {
    fn add(&mut self, value: u64);
}

/// An implementation that is inlined.
struct Inlined(u64);

impl Add for Inlined {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }
}

impl Add for Sum {
    #[inline(never)]
    fn add(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }
}

/// Another implementation, so that the type of a trait object is not the only one.
struct Inverted(u64);

impl Add for Inverted {
    #[inline(never)]
    fn add(&mut self, value: u64) {
        self.0 = self.0.wrapping_sub(value);
    }
}

impl Sum {
    #[inline(always)]
    fn add_inline(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }

    #[inline(never)]
    fn add_plain(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }
}

#[inline(always)]
fn add_inline(sum: &mut u64, value: u64) {
    *sum = sum.wrapping_add(value);
}

#[inline(never)]
fn add_plain(sum: &mut u64, value: u64) {
    *sum = sum.wrapping_add(value);
}

/// Times a loop whose iterations the compiler cannot join: each argument comes from memory. Returns the time and the sum.
#[inline(always)]
fn timed<S>(iterations: u64, mut state: S, call: impl Fn(&mut S, u64), sum: impl Fn(&S) -> u64) -> (Duration, u64) {
    let start = Instant::now();
    for value in 0..iterations {
        call(&mut state, black_box(value));
    }
    let time = start.elapsed();
    (time, black_box(sum(&state)))
}

#[inline(always)]
fn add_to<A: Add>(adder: &mut A, value: u64) {
    adder.add(value);
}

/// A step as a boxed closure.
type Step = Box<dyn Fn(&mut u64, u64)>;

/// Runs so many calls of a kind; returns their time and the sum of their arguments.
pub(super) fn run(kind: CallKind, iterations: u64) -> (Duration, u64) {
    match kind {
        Empty => timed(iterations, 0_u64, |sum, value| *sum = sum.wrapping_add(value), |sum| *sum),
        InlineFunction => timed(iterations, 0, add_inline, |sum| *sum),
        Function => timed(iterations, 0, add_plain, |sum| *sum),
        InlineMethod => timed(iterations, Sum(0), Sum::add_inline, |sum| sum.0),
        Method => timed(iterations, Sum(0), Sum::add_plain, |sum| sum.0),
        InlineGeneric => timed(iterations, Inlined(0), add_to, |sum| sum.0),
        Generic => timed(iterations, Sum(0), add_to, |sum| sum.0),
        KnownTraitObject => timed(
            iterations,
            Sum(0),
            |sum, value| {
                let object: &mut dyn Add = sum;
                object.add(value);
            },
            |sum| sum.0,
        ),
        TraitObject => {
            let mut sums = (Sum(0), Inverted(0));
            // The compiler does not see which of them it is.
            let object: &mut dyn Add = if black_box(true) { &mut sums.0 } else { &mut sums.1 };
            let (time, _) = timed(iterations, black_box(object), |object, value| object.add(value), |_| 0);
            (time, black_box(sums.0.0))
        }
        Closure => {
            let step = black_box(1_u64);
            timed(iterations, 0_u64, move |sum, value| *sum = sum.wrapping_add(value * step), |sum| *sum)
        }
        BoxedClosure => {
            let step = 1_u64;
            let closure: Step = if black_box(true) {
                Box::new(move |sum, value| *sum = sum.wrapping_add(value * step))
            } else {
                Box::new(|sum, value| *sum = sum.wrapping_sub(value))
            };
            timed(iterations, 0_u64, black_box(closure), |sum| *sum)
        }
        FunctionPointer => timed(iterations, 0, black_box(add_plain as fn(&mut u64, u64)), |sum| *sum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_calls_the_function_as_often_as_it_says() {
        for kind in CallKind::ALL {
            assert_eq!(run(kind, 1_000).1, 499_500, "{kind:?}");
        }
    }
}
