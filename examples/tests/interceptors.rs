//! Runs the code of docs/interceptors.md, and compares the page with it.

use spandrel::interception::IfPresent;
use spandrel::{
    Orb, Poa, SystemException,
    cdr::GiopVersion,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Codec, Encoding, Interceptor, Interruption, IorInfo,
        IorInterceptor, OrbInitInfo, OrbInitializer, ServerRequestInfo, ServerRequestInterceptor, ServiceContext,
        SlotId, TaggedComponent,
    },
    types::{Any, IiopProfile, TypeCode},
};

mod idl {
    spandrel::include_idl!("bank");
}

use idl::bank::{Account, AccountServant, AccountSkeleton, account::WithdrawError};

/// The ids of a vendor's own service context and component.
const TELLER: u32 = 0x4241_4e01;
const BRANCH: u32 = 0x4241_4e02;

/// Sends the teller's name, kept in a slot of the calling thread, with every request.
struct TellerSender {
    slot: SlotId,
    codec: Codec,
}

impl Interceptor for TellerSender {}

impl ClientRequestInterceptor for TellerSender {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let teller = info.slot(self.slot).map_err(SystemException::from)?;
        if *teller.type_code() != TypeCode::NULL {
            let data = self.codec.encode_value(&teller).expect("a string can be encoded");
            info.add_request_service_context(ServiceContext { id: TELLER, data }, IfPresent::Fail)?;
        }
        Ok(())
    }
}

/// Stores the teller's name in a slot of the servant's thread; rejects deposits without one.
struct TellerReceiver {
    slot: SlotId,
    codec: Codec,
}

impl Interceptor for TellerReceiver {}

impl ServerRequestInterceptor for TellerReceiver {
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        if let Ok(context) = info.request_service_context(TELLER) {
            let teller = self.codec.decode_value(&context.data, &TypeCode::STRING);
            let teller = teller.map_err(|_| SystemException::marshal(0, spandrel::CompletionStatus::No))?;
            info.set_slot(self.slot, teller).map_err(SystemException::from)?;
        } else if info.operation() == "deposit" {
            return Err(SystemException::no_permission(0, spandrel::CompletionStatus::No).into());
        }
        Ok(())
    }
}

/// Adds the branch as a component to every reference.
struct BranchComponent;

impl Interceptor for BranchComponent {}

impl IorInterceptor for BranchComponent {
    fn establish_components(&self, info: &mut IorInfo<'_>) {
        let component = TaggedComponent { tag: BRANCH, data: b"High Street".to_vec() };
        info.add_ior_component(component).expect("components may be added now");
    }
}

/// The whole service, as an ORB initializer.
struct TellerService;

impl OrbInitializer for TellerService {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let slot = info.allocate_slot_id();
        let codec =
            info.codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2)).expect("a known encoding");
        info.add_client_request_interceptor(TellerSender { slot, codec: codec.clone() })?;
        info.add_server_request_interceptor(TellerReceiver { slot, codec })?;
        info.add_ior_interceptor(BranchComponent)?;
        Ok(())
    }
}

/// A servant that returns the teller's name.
struct Till(Orb);

impl AccountServant for Till {
    fn owner(&self) -> Result<String, SystemException> {
        let teller = self.0.pi_current().slot(0).map_err(SystemException::from)?;
        Ok(teller.extract().unwrap_or_else(|_| "nobody".to_owned()))
    }

    fn deposit(&self, cents: i64) -> Result<i64, SystemException> {
        Ok(cents)
    }

    fn withdraw(&self, cents: i64) -> Result<i64, WithdrawError> {
        Ok(-cents)
    }
}

#[test]
fn a_service_goes_with_every_request() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::builder().initializer(TellerService).build()?;
    let object = Poa::root(&server)?.activate(AccountSkeleton::new(Till(server.clone())))?;
    let reference = object.to_string();

    let client = Orb::builder().initializer(TellerService).build()?;
    let account: Account = client.string_to_object(&reference)?.narrow()?;
    assert!(account.deposit(5).is_err());
    client.pi_current().set_slot(0, Any::new("Grace")?)?;
    assert_eq!(account.deposit(5)?, 5);
    assert_eq!(account.owner()?, "Grace");

    let profile = IiopProfile::decode(&object.ior().profiles[0])?.expect("an IIOP profile");
    assert_eq!(profile.component(BRANCH), Some(&b"High Street"[..]));
    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}

#[test]
fn the_interceptors_page_shows_tested_rust() {
    crate::shown::check("docs/interceptors.md", "rust", &["tests/interceptors.rs"], 5);
}
