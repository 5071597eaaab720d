//! Every engine, the walker of anys, dynamic anys and the reference say the same of every random type.
//!
//! `SPANDREL_MARSHAL_CASES` says how many values of each type are tried; see the build script for more types.

use std::env;

use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use spandrel::Orb;
use spandrel_cdr::{Any, ByteOrder, GiopVersion, Joint, TcKind, TypeCode, Wire, engine, walk};
use spandrel_dynamic::DynAny;
use spandrel_marshal_tests::{Contender, Input, Outcome, Subject, subjects};
use spandrel_reference::{Value, read, values_of, wires, write};

/// Tries a type with random input, the same in each run.
#[track_caller]
fn try_all<S: Strategy>(
    cases: u32,
    input: impl Fn(&TypeCode) -> S,
    test: impl Fn(&Subject, &TypeCode, &Orb, S::Value) -> Result<(), TestCaseError>,
) {
    // Adaptive types go over between two uses of this test.
    engine::switch_after(200);
    let cases = env::var("SPANDREL_MARSHAL_CASES").map_or(cases, |text| text.parse().expect("a number"));
    let orb = Orb::builder().build().unwrap();
    let subjects = subjects();
    assert!(!subjects.is_empty());
    let mut failures = Vec::new();
    for (nth, subject) in subjects.iter().enumerate() {
        let of = members_alone(&(subject.contenders[0].type_code)());
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&nth.to_le_bytes());
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
        match runner.run(&input(&of), |input| test(subject, &of, &orb, input)) {
            Ok(()) => {}
            Err(TestError::Abort(why)) => failures.push(format!("{}: {why}", subject.name)),
            Err(TestError::Fail(why, input)) => failures.push(format!("{}, {of}: {why}\nwith {input:?}", subject.name)),
        }
    }
    assert!(failures.is_empty(), "{} types: {}", failures.len(), failures[..failures.len().min(3)].join("\n\n"));
}

/// The Rust form of an exception leaves its id to whoever raises it.
fn members_alone(of: &TypeCode) -> TypeCode {
    if of.kind() != TcKind::Except {
        return of.clone();
    }
    let count = of.member_count().expect("members");
    let member = |nth| (of.member_name(nth).expect("a name").to_owned(), of.member_type(nth).expect("a type"));
    let members: Vec<_> = (0..count).map(member).collect();
    TypeCode::structure("IDL:Members:1.0", "Members", &members).expect("a struct")
}

/// What becomes of the input by each engine.
fn by_each(
    subject: &Subject,
    how: fn(&Contender) -> fn(Input<'_>) -> Outcome,
    input: Input<'_>,
) -> Vec<(&'static str, Outcome)> {
    subject.contenders.iter().map(|contender| (contender.engine, how(contender)(input))).collect()
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Every engine writes again what it reads, wherever it begins.
fn agree(
    subject: &Subject,
    of: &TypeCode,
    orb: &Orb,
    value: &Value,
    wire: Wire,
    how: fn(&Contender) -> fn(Input<'_>) -> Outcome,
) -> Result<(), TestCaseError> {
    for (order, start) in ORDERS.into_iter().flat_map(|order| (0..8).map(move |start| (order, start))) {
        let wire = Wire { order, ..wire };
        let Some(octets) = write(of, value, wire, start) else { continue };
        let input = Input::new(&octets, start, wire, orb);
        let expected = Some((octets.clone(), octets.len()));
        for (engine, outcome) in by_each(subject, how, input) {
            prop_assert_eq!(&outcome, &expected, "{} at {}, {:?}", engine, start, wire);
        }
    }
    Ok(())
}

#[test]
fn every_engine_has_the_same_type_code() {
    for subject in subjects() {
        let [first, others @ ..] = subject.contenders.map(|contender| (contender.type_code)());
        for other in others {
            assert!(first.equal(&other), "{}: {first} is not {other}", subject.name);
        }
    }
}

#[test]
fn values_are_read_and_written_as_the_reference_does() {
    try_all(
        6,
        |of| (values_of(of), wires()),
        |subject, of, orb, (value, wire)| agree(subject, of, orb, &value, wire, |contender| contender.recode),
    );
}

#[test]
fn sequences_are_lent_and_written_as_the_reference_does() {
    try_all(
        3,
        |of| (vec(values_of(of), 0..6).prop_map(Value::Parts), wires()),
        |subject, of, orb, (value, wire)| {
            let sequence = TypeCode::sequence(of, 0).expect("a sequence");
            agree(subject, &sequence, orb, &value, wire, |contender| contender.relend)
        },
    );
}

#[test]
fn values_come_out_of_an_any_as_they_went_in() {
    try_all(
        2,
        |of| (values_of(of), wires(), 0..8_usize),
        |subject, of, orb, (value, wire, start)| {
            // Type codes may have wide labels, which GIOP 1.0 cannot say.
            let wire = Wire { version: wire.version.max(GiopVersion::V1_1), ..wire };
            let Some(octets) = write(of, &value, wire, start) else { return Ok(()) };
            let input = Input::new(&octets, start, wire, orb);
            let expected = Some((octets.clone(), octets.len()));
            for (engine, outcome) in by_each(subject, |contender| contender.through_any, input) {
                prop_assert_eq!(&outcome, &expected, "{} at {}, {:?}", engine, start, wire);
            }
            Ok(())
        },
    );
}

#[test]
fn anys_are_copied_and_taken_apart_as_the_reference_does() {
    try_all(
        4,
        |of| (values_of(of), wires(), wires(), 0..8_usize, 0..8_usize),
        |_, of, orb, (value, from, to, start, place)| {
            let Some(octets) = write(of, &value, from, start) else { return Ok(()) };
            let any = Any::read(of.clone(), &mut Input::new(&octets, start, from, orb).decoder());
            let any = any.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let sent = Input::new(&[], place, to, orb).copied(&any);
            let expected = write(of, &value, to, place);
            prop_assert_eq!(&sent, &expected, "copied");
            let apart = DynAny::new(&any).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let together = apart.to_any().map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(Input::new(&[], place, to, orb).copied(&together), expected, "dynamic");
            Ok(())
        },
    );
}

fn has_types(value: &Value) -> bool {
    match value {
        Value::Any(..) | Value::Type(_) => true,
        Value::Parts(parts) => parts.iter().any(has_types),
        Value::Union(_, Some(member)) => has_types(member),
        _ => false,
    }
}

/// All give the same answer to these octets.
fn same_answer(subject: &Subject, of: &TypeCode, input: Input<'_>, types: bool) -> Result<(), TestCaseError> {
    let answers = by_each(subject, |contender| contender.recode, input);
    let (_, first) = &answers[0];
    for (engine, answer) in &answers {
        prop_assert_eq!(answer, first, "{} and compiled, of {:02x?} at {}", engine, input.octets, input.start);
    }
    let mut from = input.decoder();
    let walked = walk::skip(of, &mut from).is_ok().then(|| from.position());
    let end = first.as_ref().map(|(_, end)| *end);
    prop_assert_eq!(walked, end, "the walker and the engines, of {:02x?} at {}", input.octets, input.start);
    if !types {
        // The reference does not look at the names in type codes.
        let read = read(of, input.octets, input.wire, input.start);
        prop_assert_eq!(
            read.as_ref().map(|(_, end)| *end),
            end,
            "the reference, of {:02x?} at {}",
            input.octets,
            input.start
        );
        if let Some((value, _)) = read {
            let octets = write(of, &value, input.wire, input.start);
            prop_assert_eq!(octets.as_ref(), first.as_ref().map(|(octets, _)| octets), "the reference's octets");
        }
    }
    Ok(())
}

#[test]
fn what_was_cut_off_or_tampered_with_gets_the_same_answer_from_all() {
    let changes = || vec((any::<Index>(), any::<u8>()), 12);
    try_all(
        4,
        |of| (values_of(of), wires(), 0..8_usize, vec(any::<Index>(), 6), changes()),
        |subject, of, orb, (value, wire, start, cuts, changes)| {
            let Some(octets) = write(of, &value, wire, start).filter(|octets| octets.len() > start) else {
                return Ok(());
            };
            let types = has_types(&value);
            for cut in cuts {
                let octets = &octets[..start + cut.index(octets.len() - start)];
                same_answer(subject, of, Input::new(octets, start, wire, orb), types)?;
            }
            for (at, with) in changes {
                let mut octets = octets.clone();
                let at = start + at.index(octets.len() - start);
                // Small numbers and single bits find more than any octet would.
                octets[at] = match with {
                    0..64 => octets[at] ^ 1 << (with % 8),
                    64..128 => with % 4,
                    _ => with,
                };
                same_answer(subject, of, Input::new(&octets, start, wire, orb), types)?;
            }
            Ok(())
        },
    );
}

/// Whether there is an array of one element within so many levels. Right behind a joint the engines differ in them: compiled
/// code reads a block, as omniORB does, and tables do not tell them from their element.
fn has_array_of_one(of: &TypeCode, levels: u32) -> bool {
    let of = of.without_aliases();
    let is_one = of.kind() == TcKind::Array && of.length() == Ok(1);
    let within = |of: &TypeCode| levels > 0 && has_array_of_one(of, levels - 1);
    is_one
        || of.content_type().is_ok_and(|content| within(&content))
        || (0..of.member_count().unwrap_or(0)).any(|nth| of.member_type(nth).is_ok_and(|member| within(&member)))
}

/// In which alignment counts anew from each joint, unless the place there is what it would be without.
#[test]
fn messages_joined_from_fragments_get_the_same_answer_from_all() {
    let joints = || vec((any::<Index>(), prop_oneof![Just(0), 0..8_usize]), 1..4);
    try_all(
        5,
        |of| (values_of(of), wires(), 0..8_usize, joints()),
        |subject, of, orb, (value, wire, start, joints)| {
            if has_array_of_one(of, 8) {
                return Ok(());
            }
            let wire = Wire { version: GiopVersion::V1_1, ..wire };
            let Some(octets) = write(of, &value, wire, start).filter(|octets| octets.len() > start) else {
                return Ok(());
            };
            let joint = |(at, shift): (Index, usize)| {
                let at = start + at.index(octets.len() - start);
                Joint { at, alignment_position: at + shift }
            };
            let mut joints: Vec<_> = joints.into_iter().map(joint).collect();
            joints.sort_by_key(|joint| joint.at);
            joints.dedup_by_key(|joint| joint.at);
            let input = Input { joints: &joints, ..Input::new(&octets, start, wire, orb) };
            let answers = by_each(subject, |contender| contender.recode, input);
            for (engine, answer) in &answers {
                prop_assert_eq!(answer, &answers[0].1, "{} and compiled, of {:02x?}, {:?}", engine, octets, joints);
            }
            let mut from = input.decoder();
            let walked = walk::skip(of, &mut from).is_ok().then(|| from.position());
            let end = answers[0].1.as_ref().map(|(_, end)| *end);
            prop_assert_eq!(walked, end, "the walker and the engines, of {:02x?}, {:?}", octets, joints);
            Ok(())
        },
    );
}
