//! Binds an object to a name in the naming service: `bind NAME REFERENCE`.

use spandrel::{Orb, services::cos_naming::NamingContextExt};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().collect();
    let orb = Orb::builder().take_args(&mut args)?.build()?;
    let [_, name, reference] = &args[..] else { return Err("usage: bind NAME REFERENCE".into()) };

    let names: NamingContextExt = orb.resolve_initial_references("NameService")?.narrow()?;
    let object = orb.string_to_object(reference)?;
    names.rebind(&names.to_name(name)?, Some(&object))?;
    println!("bound {name}");
    Ok(())
}
