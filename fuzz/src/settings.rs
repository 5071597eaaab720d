//! Text from users and peers, except references: endpoints, settings, trace contexts, code sets, numbers, and
//! HTTP requests to the metrics endpoint. No panic; a parsed value prints to text that parses to an equal
//! one.
//!
//! The first octet selects the kind.
use std::fmt::{Debug, Display};
use std::str::FromStr;

use spandrel_cdr::{CharSet, Decimal, WcharSet};
use spandrel_orb::diagnostics::{MAX_STATE, TraceContext};
use spandrel_orb::transport::KeepAlive;
use spandrel_orb::{Concurrency, Endpoint};

#[allow(dead_code, reason = "the responses are used in the ORB only")]
#[path = "../../net/metrics/src/http.rs"]
mod http;

pub fn run(input: &[u8]) {
    let [kind, octets @ ..] = input else { return };
    if kind % 8 == 0 {
        return http_request(octets);
    }
    let Ok(text) = std::str::from_utf8(octets) else { return };
    match kind % 8 {
        1 => assert_round_trip::<Endpoint>(text),
        2 => parse::<Concurrency>(text),
        3 => _ = text.parse::<KeepAlive>(),
        4 => assert_round_trip::<CharSet>(text),
        5 => assert_round_trip::<WcharSet>(text),
        6 => assert_round_trip::<Decimal>(text),
        _ => trace(text),
    }
}

/// Further octets do not change a result, and there is a result for input beyond the limit.
fn http_request(octets: &[u8]) {
    const MAX_LEN: usize = 256;
    let Some((_, has_body)) = http::read(octets, MAX_LEN) else {
        assert!(octets.len() <= MAX_LEN);
        return;
    };
    let more = [octets, b"GET / HTTP/1.1\r\n\r\n"].concat();
    assert!(http::read(&more, MAX_LEN).is_some_and(|(_, body)| body == has_body || octets.len() > MAX_LEN));
}

fn parse<T: FromStr<Err: Display>>(text: &str) {
    if let Err(error) = text.parse::<T>() {
        assert!(!error.to_string().is_empty());
    }
}

fn assert_round_trip<T: FromStr<Err: Display + Debug> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse::<T>().expect("printed text can be parsed"), value),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn trace(text: &str) {
    let (parent, state) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(context) = TraceContext::parse(parent, state) else { return };
    assert!(context.state().len() <= MAX_STATE && context.trace_id() != [0; 16] && context.span_id() != [0; 8]);
    let printed = context.to_string();
    let assert_round_trip = TraceContext::parse(&printed, context.state()).expect("printed text can be parsed");
    assert_eq!((assert_round_trip.to_string(), assert_round_trip.state()), (printed, context.state()));
}
