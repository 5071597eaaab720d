//! The proof for one place is not valid for another.
use spandrel_cdr::{CdrError, Decoder, Wire, engine};

fn main() {
    let mut input = Decoder::new(&[0; 16], Wire::default());
    let stolen: Result<(String,), CdrError> = engine::receive(|_outer| {
        let mut proof = None;
        let inner: Result<(u8,), CdrError> = engine::receive(|place| {
            proof = Some(place.fill(&mut input)?);
            Err(CdrError::Unbound)
        });
        drop(inner);
        proof.ok_or(CdrError::Unbound)
    });
    drop(stolen);
}
