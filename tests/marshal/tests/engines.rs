//! The engines, the walker of anys, dynamic anys and the reference have the same outcome for each random type.
//!
//! `SPANDREL_MARSHAL_CASES` sets the number of values of each type; see the build script for more types.

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
use spandrel_marshal_tests::{Input, Outcome, Subject, Variant, subjects};
use spandrel_reference::{Value, read, values_of, wires, write};

/// Tests each type with pseudorandom input from a fixed seed.
#[track_caller]
fn for_each_type<S: Strategy>(
    cases: u32,
    input: impl Fn(&TypeCode) -> S,
    test: impl Fn(&Subject, &TypeCode, &Orb, S::Value) -> Result<(), TestCaseError>,
) {
    // Adaptive types switch to compiled code during the test.
    engine::switch_after(200);
    let cases = env::var("SPANDREL_MARSHAL_CASES")
        .map_or(cases, |text| text.parse().expect("SPANDREL_MARSHAL_CASES is a number"));
    let orb = Orb::builder().build().unwrap();
    let subjects = subjects();
    assert!(!subjects.is_empty());
    let mut failures = Vec::new();
    for (nth, subject) in subjects.iter().enumerate() {
        let of = without_exception_id(&(subject.variants[0].type_code)());
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

/// The type without an exception's repository id, which the Rust form of an exception does not encode.
fn without_exception_id(of: &TypeCode) -> TypeCode {
    if of.kind() != TcKind::Except {
        return of.clone();
    }
    let count = of.member_count().expect("members");
    let member = |nth| (of.member_name(nth).expect("a name").to_owned(), of.member_type(nth).expect("a type"));
    let members: Vec<_> = (0..count).map(member).collect();
    TypeCode::structure("IDL:Members:1.0", "Members", &members).expect("a struct")
}

/// The outcome of each engine.
fn outcomes(
    subject: &Subject,
    operation: fn(&Variant) -> fn(Input<'_>) -> Outcome,
    input: Input<'_>,
) -> Vec<(&'static str, Outcome)> {
    subject.variants.iter().map(|variant| (variant.engine, operation(variant)(input))).collect()
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Each engine decodes and encodes the value to the same octets at each offset.
fn assert_reencoded(
    subject: &Subject,
    of: &TypeCode,
    orb: &Orb,
    value: &Value,
    wire: Wire,
    operation: fn(&Variant) -> fn(Input<'_>) -> Outcome,
) -> Result<(), TestCaseError> {
    for (order, start) in ORDERS.into_iter().flat_map(|order| (0..8).map(move |start| (order, start))) {
        let wire = Wire { order, ..wire };
        let Some(octets) = write(of, value, wire, start) else { continue };
        let input = Input::new(&octets, start, wire, orb);
        let expected = Some((octets.clone(), octets.len()));
        for (engine, outcome) in outcomes(subject, operation, input) {
            prop_assert_eq!(&outcome, &expected, "{} at {}, {:?}", engine, start, wire);
        }
    }
    Ok(())
}

#[test]
fn every_engine_has_the_same_type_code() {
    for subject in subjects() {
        let [first, others @ ..] = subject.variants.map(|variant| (variant.type_code)());
        for other in others {
            assert!(first.equal(&other), "{}: {first} is not {other}", subject.name);
        }
    }
}

#[test]
fn engines_read_and_write_values_like_the_reference() {
    for_each_type(
        6,
        |of| (values_of(of), wires()),
        |subject, of, orb, (value, wire)| assert_reencoded(subject, of, orb, &value, wire, |variant| variant.reencode),
    );
}

#[test]
fn engines_borrow_and_write_sequences_like_the_reference() {
    for_each_type(
        3,
        |of| (vec(values_of(of), 0..6).prop_map(Value::Parts), wires()),
        |subject, of, orb, (value, wire)| {
            let sequence = TypeCode::sequence(of, 0).expect("a sequence");
            assert_reencoded(subject, &sequence, orb, &value, wire, |variant| variant.reencode_borrowed)
        },
    );
}

#[test]
fn values_are_unchanged_after_passing_through_an_any() {
    for_each_type(
        2,
        |of| (values_of(of), wires(), 0..8_usize),
        |subject, of, orb, (value, wire, start)| {
            // Type codes may have wide labels, which GIOP 1.0 does not have.
            let wire = Wire { version: wire.version.max(GiopVersion::V1_1), ..wire };
            let Some(octets) = write(of, &value, wire, start) else { return Ok(()) };
            let input = Input::new(&octets, start, wire, orb);
            let expected = Some((octets.clone(), octets.len()));
            for (engine, outcome) in outcomes(subject, |variant| variant.through_any, input) {
                prop_assert_eq!(&outcome, &expected, "{} at {}, {:?}", engine, start, wire);
            }
            Ok(())
        },
    );
}

#[test]
fn anys_are_copied_and_decomposed_like_the_reference() {
    for_each_type(
        4,
        |of| (values_of(of), wires(), wires(), 0..8_usize, 0..8_usize),
        |_, of, orb, (value, from, to, start, place)| {
            let Some(octets) = write(of, &value, from, start) else { return Ok(()) };
            let any = Any::read(of.clone(), &mut Input::new(&octets, start, from, orb).decoder());
            let any = any.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let sent = Input::new(&[], place, to, orb).copy(&any);
            let expected = write(of, &value, to, place);
            prop_assert_eq!(&sent, &expected, "copied");
            let dynamic = DynAny::new(&any).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let rebuilt = dynamic.to_any().map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(Input::new(&[], place, to, orb).copy(&rebuilt), expected, "dynamic");
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

/// The engines, the walker and the reference have the same outcome for these octets.
fn assert_same_outcome(subject: &Subject, of: &TypeCode, input: Input<'_>, types: bool) -> Result<(), TestCaseError> {
    let all_outcomes = outcomes(subject, |variant| variant.reencode, input);
    let (_, first) = &all_outcomes[0];
    for (engine, outcome) in &all_outcomes {
        prop_assert_eq!(outcome, first, "{} and compiled, of {:02x?} at {}", engine, input.octets, input.start);
    }
    let mut from = input.decoder();
    let walker_end = walk::skip(of, &mut from).is_ok().then(|| from.position());
    let end = first.as_ref().map(|(_, end)| *end);
    prop_assert_eq!(walker_end, end, "the walker and the engines, of {:02x?} at {}", input.octets, input.start);
    if !types {
        // The reference does not check the names in type codes.
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
fn truncated_or_altered_octets_have_the_same_outcome_in_every_engine() {
    let changes = || vec((any::<Index>(), any::<u8>()), 12);
    for_each_type(
        4,
        |of| (values_of(of), wires(), 0..8_usize, vec(any::<Index>(), 6), changes()),
        |subject, of, orb, (value, wire, start, cuts, changes)| {
            let Some(octets) = write(of, &value, wire, start).filter(|octets| octets.len() > start) else {
                return Ok(());
            };
            let types = has_types(&value);
            for cut in cuts {
                let octets = &octets[..start + cut.index(octets.len() - start)];
                assert_same_outcome(subject, of, Input::new(octets, start, wire, orb), types)?;
            }
            for (at, with) in changes {
                let mut octets = octets.clone();
                let at = start + at.index(octets.len() - start);
                // Small numbers and single bits find more faults than random octets.
                octets[at] = match with {
                    0..64 => octets[at] ^ 1 << (with % 8),
                    64..128 => with % 4,
                    _ => with,
                };
                assert_same_outcome(subject, of, Input::new(&octets, start, wire, orb), types)?;
            }
            Ok(())
        },
    );
}

/// True if the type has an array of one element within `levels` levels. After a joint the engines treat it
/// differently: compiled code reads a block, as omniORB does, and tables do not distinguish it from its
/// element.
fn has_array_of_one(of: &TypeCode, levels: u32) -> bool {
    let of = of.without_aliases();
    let is_one = of.kind() == TcKind::Array && of.length() == Ok(1);
    let within = |of: &TypeCode| levels > 0 && has_array_of_one(of, levels - 1);
    is_one
        || of.content_type().is_ok_and(|content| within(&content))
        || (0..of.member_count().unwrap_or(0)).any(|nth| of.member_type(nth).is_ok_and(|member| within(&member)))
}

/// Alignment restarts at each joint, unless the joint does not change it.
#[test]
fn messages_joined_from_fragments_have_the_same_outcome_in_every_engine() {
    let joints = || vec((any::<Index>(), prop_oneof![Just(0), 0..8_usize]), 1..4);
    for_each_type(
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
            let all_outcomes = outcomes(subject, |variant| variant.reencode, input);
            for (engine, outcome) in &all_outcomes {
                prop_assert_eq!(
                    outcome,
                    &all_outcomes[0].1,
                    "{} and compiled, of {:02x?}, {:?}",
                    engine,
                    octets,
                    joints
                );
            }
            let mut from = input.decoder();
            let walker_end = walk::skip(of, &mut from).is_ok().then(|| from.position());
            let end = all_outcomes[0].1.as_ref().map(|(_, end)| *end);
            prop_assert_eq!(walker_end, end, "the walker and the engines, of {:02x?}, {:?}", octets, joints);
            Ok(())
        },
    );
}
