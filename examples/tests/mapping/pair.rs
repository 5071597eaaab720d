//! A server and a client, as two ORBs that are connected by a socket only.

use spandrel::{ObjectRef, Orb, Poa, cdr::ByteOrder, server::Servant, types::Interface};

pub(crate) struct Pair {
    pub(crate) poa: Poa,
    pub(crate) server: Orb,
    pub(crate) client: Orb,
}

impl Pair {
    pub(crate) fn new(order: ByteOrder) -> Self {
        let server = Orb::builder().byte_order(order).build().unwrap();
        let client = Orb::builder().byte_order(order).build().unwrap();
        let poa = Poa::root(&server).expect("a root adapter");
        Self { poa, server, client }
    }

    /// Activates a servant, and passes its reference to the client as text.
    pub(crate) fn serve<I: Interface>(&self, servant: impl Servant + 'static) -> I {
        let object = self.poa.activate(servant).expect("an active object");
        self.as_client(&object).narrow().expect("an object of this interface")
    }

    /// The client's own reference to the same object.
    pub(crate) fn as_client(&self, object: &ObjectRef) -> ObjectRef {
        let text = self.server.object_to_string(object);
        self.client.string_to_object(&text).expect("a reference")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.client.shutdown().expect("the client ends");
        self.server.shutdown().expect("the server ends");
    }
}
