//! A slice lent from a message cannot be a result: results own their data.
use std::borrow::Cow;

use spandrel_cdr::{CdrError, Decoder, Wire, engine};

fn main() {
    let message = vec![0; 16];
    let results: Result<(Cow<'static, str>,), CdrError> =
        engine::receive(|place| place.fill(&mut Decoder::new(&message, Wire::default())));
    drop(message);
    drop(results);
}
