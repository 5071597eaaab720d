//! A connector makes connections and carries no octets.

use spandrel_ipc::inet::Connector;

fn wrong(connector: &Connector) {
    let _ = connector.send(b"octets");
}

fn main() {
    let _ = wrong;
}
