//! Name resolution: our client against our server, in one process.

use spandrel::Orb;
use spandrel_interop::names::{client, server};

#[test]
fn names_resolve_to_their_object() {
    let orb = Orb::builder().build().unwrap();
    let port = server::serve(&orb).unwrap().to_string();
    for version in ["1.0", "1.1", "1.2"] {
        let client_orb = Orb::init(["-ORBGiopVersion".to_owned(), version.to_owned()]).unwrap();
        let tally = client::run(&client_orb, &port, &mut |_| {});
        assert!(tally.is_good() && tally.run == 9, "{tally:#?}");
    }
    orb.shutdown().unwrap();
}
