//! Type-erased values, encoded and decoded.

use std::borrow::Cow;

use super::*;
use crate::Wire;

fn octets(values: &[Value<'_>]) -> Vec<u8> {
    let mut out = Encoder::new(Wire::default());
    values.iter().try_for_each(|value| value.encode(&mut out)).unwrap();
    out.to_vec()
}

#[test]
fn arguments_are_lent_from_the_message() {
    let (number, texts) = (7u16, vec!["a".to_owned(), "b".to_owned()]);
    let message = octets(&[
        Value::of(&number),
        Value::text("text"),
        Value::sequence(&[1u8, 2, 3]),
        Value::sequence(&texts),
        Value::coded(&1.5f64),
    ]);
    let mut input = Decoder::new(&message, Wire::default());
    type All<'m> = (u16, Cow<'m, str>, Cow<'m, [u8]>, Vec<String>, f64);
    let serve = |(number, text, octets, texts, real): &mut All<'_>| {
        assert!(matches!(text, Cow::Borrowed("text")));
        assert!(matches!(octets, Cow::Borrowed([1, 2, 3])));
        texts.push(format!("{number} {real}"));
        std::mem::take(texts)
    };
    let kept = upcall(serve, |upcall| upcall.run(&mut input));
    assert_eq!(kept, Ok(vec!["a".into(), "b".into(), "7 1.5".into()]));
    for len in 0..message.len() {
        let mut input = Decoder::new(&message[..len], Wire::default());
        let refused = upcall(|_: &mut All<'_>| panic!("the input is truncated"), |upcall| upcall.run(&mut input));
        assert!(refused.is_err());
    }
}

#[test]
fn arguments_may_have_any_size() {
    fn sum<const N: usize>() {
        let numbers: [i64; N] = std::array::from_fn(|nth| nth as i64);
        let message = octets(&[Value::text("text"), Value::of(&numbers)]);
        let mut input = Decoder::new(&message, Wire::default());
        let serve = |(text, numbers): &mut (String, [i64; N])| (std::mem::take(text), numbers.iter().sum::<i64>());
        let served = upcall(serve, |upcall| upcall.run(&mut input));
        assert_eq!(served, Ok(("text".to_owned(), numbers.iter().sum())));
    }
    sum::<1>();
    sum::<61>();
    sum::<62>();
    sum::<1021>();
    sum::<1022>();
    sum::<2000>();
}

#[test]
fn arguments_are_dropped_after_a_panic_of_the_servant() {
    let message = octets(&[Value::text("text")]);
    let caught = std::panic::catch_unwind(|| {
        let mut input = Decoder::new(&message, Wire::default());
        let serve = |(text,): &mut (String,)| assert_eq!(text, "another", "a servant fails");
        upcall(serve, |upcall| upcall.run(&mut input))
    });
    assert!(caught.is_err()); // and Miri finds no leak
}

#[test]
fn results_are_the_content_of_the_filled_place() {
    let message = octets(&[Value::text("text"), Value::of(&[1i32, 2])]);
    let received: Result<(String, [i32; 2]), CdrError> =
        receive(|storage| storage.fill(&mut Decoder::new(&message, Wire::default())));
    assert_eq!(received, Ok(("text".into(), [1, 2])));
    let refused: Result<(String, [i32; 2]), &str> = receive(|storage| {
        storage.fill(&mut Decoder::new(&message, Wire::default())).unwrap();
        Err("all the same")
    });
    assert_eq!(refused, Err("all the same"));
    let cut: Result<(String, [i32; 2]), CdrError> =
        receive(|storage| storage.fill(&mut Decoder::new(&message[..10], Wire::default())));
    assert!(cut.is_err());
}

#[test]
fn results_of_a_servant_are_encoded_part_by_part() {
    let (one, both) = ("one".to_owned(), (7u16, "two".to_owned()));
    assert_eq!(octets(&[Value::returned(&())]), []);
    assert_eq!(octets(&[Value::returned(&one)]), octets(&[Value::of(&one)]));
    assert_eq!(octets(&[Value::returned(&both)]), octets(&[Value::of(&both.0), Value::of(&both.1)]));
}

#[test]
fn a_held_value_is_dropped_once() {
    let counted = std::rc::Rc::new(());
    let held = Held::new(Some(counted.clone()));
    assert!(held.is_some());
    assert_eq!(std::rc::Rc::strong_count(&counted), 2);
    drop(held);
    assert_eq!(std::rc::Rc::strong_count(&counted), 1);
}
