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
    let object = Poa::root(&orb)?.activate(HelloSkeleton::new(Greeter))?;
    println!("{object}"); // for clients, in any language with a CORBA ORB

    let hello = Hello::narrow(&orb.string_to_object(&object.to_string())?)?;
    println!("{}", hello.greet("world")?);
    Ok(orb.run_until_signal()?)
}
