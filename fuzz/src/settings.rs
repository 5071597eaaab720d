//! Text that people or peers say besides references: addresses to listen at, settings, traces, code sets, numbers, and questions asked of the
//! address of metrics. No panic; what is understood prints and reads as the same again.
//!
//! The first octet chooses which.
use std::fmt::{Debug, Display};
use std::str::FromStr;

use spandrel_cdr::{CharSet, Decimal, WcharSet};
use spandrel_orb::diagnostics::{MAX_STATE, TraceContext};
use spandrel_orb::transport::KeepAlive;
use spandrel_orb::{Concurrency, Endpoint};

#[allow(dead_code, reason = "answers are for the ORB to give")]
#[path = "../../orb/core/src/diagnostics/endpoint/http.rs"]
mod http;

pub fn run(input: &[u8]) {
    let [kind, octets @ ..] = input else { return };
    if kind % 8 == 0 {
        return question(octets);
    }
    let Ok(text) = std::str::from_utf8(octets) else { return };
    match kind % 8 {
        1 => again::<Endpoint>(text),
        2 => understood::<Concurrency>(text),
        3 => _ = text.parse::<KeepAlive>(),
        4 => again::<CharSet>(text),
        5 => again::<WcharSet>(text),
        6 => again::<Decimal>(text),
        _ => trace(text),
    }
}

/// Whatever more comes, an answer stays what it is; and there is one once more has come than may.
fn question(octets: &[u8]) {
    const LONGEST: usize = 256;
    let Some((_, is_body_wanted)) = http::read(octets, LONGEST) else {
        assert!(octets.len() <= LONGEST);
        return;
    };
    let more = [octets, b"GET / HTTP/1.1\r\n\r\n"].concat();
    assert!(http::read(&more, LONGEST).is_some_and(|(_, wanted)| wanted == is_body_wanted || octets.len() > LONGEST));
}

fn understood<T: FromStr<Err: Display>>(text: &str) {
    if let Err(error) = text.parse::<T>() {
        assert!(!error.to_string().is_empty());
    }
}

fn again<T: FromStr<Err: Display + Debug> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse::<T>().expect("what we print can be read"), value),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn trace(text: &str) {
    let (parent, state) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(context) = TraceContext::parse(parent, state) else { return };
    assert!(context.state().len() <= MAX_STATE && context.trace_id() != [0; 16] && context.span_id() != [0; 8]);
    let printed = context.to_string();
    let again = TraceContext::parse(&printed, context.state()).expect("what we print can be read");
    assert_eq!((again.to_string(), again.state()), (printed, context.state()));
}
