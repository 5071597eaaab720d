//! A server, which also calls its own object once.

use spandrel::{Orb, Poa, SystemException};

spandrel::include_idl!("hello");

struct Greeter;

impl HelloServant for Greeter {
    fn greet(&self, name: &str) -> Result<String, SystemException> {
        Ok(format!("Hello, {name}!"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::init(std::env::args())?;
    let hello: Hello = Poa::root(&orb)?.serve(Greeter)?;
    println!("{hello}"); // the reference, for clients in any language with a CORBA ORB
    println!("{}", hello.greet("world")?);
    Ok(orb.run_until_signal()?)
}
