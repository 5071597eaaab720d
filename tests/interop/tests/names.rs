//! Names: our client against our server, in one process.

use spandrel::Orb;
use spandrel_interop::names::{client, server};

#[test]
fn names_lead_to_their_object() {
    let orb = Orb::builder().build();
    let port = server::serve(&orb).unwrap().to_string();
    for version in ["1.0", "1.1", "1.2"] {
        let client_orb = Orb::init(["-ORBGiopVersion".to_owned(), version.to_owned()]).unwrap();
        let mut failures = Vec::new();
        let mut say = |line: &str| {
            if !line.starts_with("ok ") {
                failures.push(line.to_owned());
            }
        };
        let tally = client::run(&client_orb, &port, &mut say);
        assert!(tally.is_good() && tally.run == 9, "{tally}:\n{}", failures.join("\n"));
    }
    orb.shutdown(true).unwrap();
}
