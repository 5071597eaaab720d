//! Transfers with a party whose requests come over TLS: never in clear, and with the same certificates.

use std::sync::{Arc, Mutex};

use spandrel_bulk::{
    BulkClient, BulkError, BulkServer, OfferedTo, Route,
    bulk::{Chunk, Endpoints, FailedError, Offer, Part, Progress, StreamEnd, StreamEndServant, Ticket, Token},
};
use spandrel_ipc::inet;
use spandrel_orb::{Orb, SystemException};
use spandrel_poa::Poa;
use spandrel_ssliop::{ClientVerification, Ssliop, pem};
use spandrel_test_support::{
    certificates::{Authority, Identity},
    pattern,
};

use crate::parties::patiently;

/// A servant whose operation `renew` makes an offer to its caller.
struct Offering(Arc<BulkServer>, Arc<Mutex<Option<Offer>>>, Vec<u8>);

impl StreamEndServant for Offering {
    fn renew(&self) -> Result<Ticket, FailedError> {
        *self.1.lock().unwrap() = Some(self.0.offer_source(self.2.clone(), &OfferedTo::Caller).unwrap().0);
        Ok(Ticket::default())
    }

    fn state(&self) -> Result<Progress, SystemException> {
        unreachable!()
    }

    fn dial(&self, _: &Endpoints, _: &Token) -> Result<(), FailedError> {
        unreachable!()
    }

    fn read(&self, _: u64, _: u32) -> Result<Part, FailedError> {
        unreachable!()
    }

    fn write(&self, _: u64, _: &Chunk) -> Result<(), FailedError> {
        unreachable!()
    }

    fn finish(&self, _: u64, _: u32) -> Result<(), FailedError> {
        unreachable!()
    }

    fn cancel(&self, _: &str) -> Result<(), SystemException> {
        unreachable!()
    }
}

fn protocol(authority: &Authority, identity: &Identity) -> Ssliop {
    Ssliop::ring()
        .identity(
            pem::certificates(identity.chain.as_bytes()).unwrap(),
            pem::private_key(identity.key.as_bytes()).unwrap(),
        )
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap())
        .verify_clients(ClientVerification::Required)
}

#[test]
fn a_party_with_tls_is_served_over_tls_alone_with_its_certificate() {
    let authority = Authority::new("Hospital");
    let server = protocol(&authority, &authority.issue("127.0.0.1"));
    let offering = Orb::builder().protocol(server.clone()).listen("ssliop://127.0.0.1:0".parse().unwrap());
    let offering = offering.build().unwrap();
    let poa = Poa::root(&offering).unwrap();
    let bulk = BulkServer::builder(&poa).tcp(inet::Addr::loopback(0)).tls(inet::Addr::loopback(0), &server);
    let bulk = Arc::new(bulk.open().unwrap());
    let data = pattern(3 << 20);
    let slot = Arc::new(Mutex::new(None));
    let object: StreamEnd = poa.serve(Offering(Arc::clone(&bulk), Arc::clone(&slot), data.clone())).unwrap();

    let viewer = protocol(&authority, &authority.issue("viewer"));
    let taking = Orb::builder().protocol(viewer.clone()).build().unwrap();
    let object: StreamEnd = taking.string_to_object(&object.to_string()).unwrap().narrow().unwrap();
    let next_offer = || {
        object.renew().unwrap();
        let offer: Offer = slot.lock().unwrap().take().unwrap();
        assert!(offer.at.len() == 1 && offer.at[0].starts_with("tls://127.0.0.1:"), "{:?}", offer.at);
        let control = offer.control.as_ref().unwrap().to_string();
        Offer { control: Some(taking.string_to_object(&control).unwrap().narrow().unwrap()), ..offer }
    };

    let mut received = Vec::new();
    let secure = BulkClient::default().tls(&viewer).calls(false);
    let outcome = patiently(|| secure.receive(&next_offer(), &mut received)).unwrap();
    assert!(received == data);
    assert_eq!((outcome.route, outcome.is_verified), (Route::Tls, true));

    // Another certificate of the same authority does not open the connection, and leaves the token to its owner.
    let other = BulkClient::default().tls(&protocol(&authority, &authority.issue("nurse"))).calls(false);
    let refused = || {
        let (offer, before) = (next_offer(), bulk.statistics().refused_tokens);
        let error = other.receive(&offer, &mut Vec::new()).unwrap_err();
        if matches!(error, BulkError::Unreachable(_)) {
            return Err(error);
        }
        assert!(matches!(error, BulkError::GaveUp { code: 1, .. }), "{error:?}");
        assert_eq!(bulk.statistics().refused_tokens, before + 1);
        secure.receive(&offer, &mut Vec::new())
    };
    patiently(refused).unwrap();

    // Without TLS for bulk connections, the calls over TLS are what is left.
    let clear = BulkClient::default();
    assert_eq!(clear.receive(&next_offer(), &mut Vec::new()).unwrap().route, Route::Calls);
    let offer = next_offer();
    let in_clear = Offer { at: vec![offer.at[0].replace("tls://", "tcp://")].try_into().unwrap(), ..offer };
    let error = clear.clone().calls(false).resumptions(0).receive(&in_clear, &mut Vec::new()).unwrap_err();
    assert!(!matches!(error, BulkError::GaveUp { .. }), "a TLS endpoint gives no answer in clear: {error:?}");
    // A client with TLS uses no endpoint in clear, whoever offers it.
    let error = secure.receive(&in_clear, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("not encrypted"), "{error}");

    taking.shutdown().unwrap();
    offering.shutdown().unwrap();
}
