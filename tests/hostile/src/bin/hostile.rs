//! Runs each attack at length against servers of each concurrency model, and prints the measurements.
//! `hostile [STRENGTH [NAME]]`: by default 20, and all attacks, not only those with NAME in their names.

use anyhow::{Result, bail};
use spandrel_hostile::{attacks, judge};

const CONFIGURATIONS: [&[&str]; 5] = [
    &[],
    &["-ORBConcurrency", "leader-followers"],
    &["-ORBConcurrency", "thread-pool:4:64"],
    &["-ORBConcurrency", "reactive"],
    &["-ORBConcurrency", "leader-followers", "-ORBReplyBatching", "yes"],
];

fn main() -> Result<()> {
    let strength = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    let name = std::env::args().nth(2).unwrap_or_default();
    let mut failed = Vec::new();
    for options in CONFIGURATIONS {
        println!("server: {}", if options.is_empty() { "default options".to_owned() } else { options.join(" ") });
        for attack in attacks::ALL.iter().filter(|attack| attack.name.contains(&name)) {
            match judge::attack(attack, options, strength) {
                Ok(outcome) => println!("  {outcome}"),
                Err(error) => {
                    println!("  {:28} FAILED: {error:#}", attack.name);
                    failed.push(attack.name);
                }
            }
        }
    }
    let hundreds = attacks::max_hundreds();
    let many_connections = attacks::many_connections(hundreds);
    match judge::attack(&many_connections, &[], hundreds) {
        Ok(outcome) => println!("one server, {} concurrent connections\n  {outcome}", hundreds * 100),
        Err(error) => {
            println!("  {:28} FAILED: {error:#}", many_connections.name);
            failed.push(many_connections.name);
        }
    }
    if !failed.is_empty() {
        bail!("not withstood: {}", failed.join(", "));
    }
    Ok(())
}
