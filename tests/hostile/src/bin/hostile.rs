//! Every attack at length, against servers of each arrangement; prints what each has cost. `hostile [STRENGTH]`, by default 20.

use anyhow::{Result, bail};
use spandrel_hostile::{attacks, judge};

const ARRANGEMENTS: [&[&str]; 4] = [
    &[],
    &["-ORBConcurrency", "leader-followers"],
    &["-ORBConcurrency", "thread-pool:4:64"],
    &["-ORBConcurrency", "reactive"],
];

fn main() -> Result<()> {
    let strength = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    let mut fallen = Vec::new();
    for options in ARRANGEMENTS {
        println!("server: {}", if options.is_empty() { "as it comes".to_owned() } else { options.join(" ") });
        for attack in &attacks::ALL {
            match judge::attack(attack, options, strength) {
                Ok(outcome) => println!("  {outcome}"),
                Err(error) => {
                    println!("  {:28} FAILED: {error:#}", attack.name);
                    fallen.push(attack.name);
                }
            }
        }
    }
    let hundreds = attacks::crowd_hundreds();
    let crowd = attacks::crowd(hundreds);
    match judge::attack(&crowd, &[], hundreds) {
        Ok(outcome) => println!("one server, {} connections at once\n  {outcome}", hundreds * 100),
        Err(error) => {
            println!("  {:28} FAILED: {error:#}", crowd.name);
            fallen.push(crowd.name);
        }
    }
    if !fallen.is_empty() {
        bail!("not withstood: {}", fallen.join(", "));
    }
    Ok(())
}
