//! Binds an object to a name in the naming service: `bind NAME REFERENCE`.

use spandrel::{Orb, services::NamingClient};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().collect();
    let orb = Orb::builder().take_args(&mut args)?.build()?;
    let [_, name, reference] = &args[..] else { return Err("usage: bind NAME REFERENCE".into()) };

    let names = NamingClient::new(&orb)?; // the initial reference `NameService`
    names.publish(name, &orb.string_to_object(reference)?)?;
    println!("bound {name}");
    Ok(())
}
