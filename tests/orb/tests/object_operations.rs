//! Operations that every object has (CORBA 3.3 Part 1, 8.3; Part 2, 9.4.2.1).

use std::sync::{Arc, Mutex};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    server::{Replied, Servant, ServerCall},
    types::{IiopProfile, TypeCode},
};
use spandrel_cdr::Decode;
use spandrel_orb_tests::{
    Server, corba,
    desk::{self, ClerkServant, ClerkSkeleton, clerk::ResponseError},
    probe::Target,
};

/// A servant with the implicit operations only.
struct ImplicitServant {
    exists: bool,
    interface: Option<ObjectRef>,
    component: Option<ObjectRef>,
    operations: Arc<Mutex<Vec<String>>>,
}

impl Servant for ImplicitServant {
    fn repository_id(&self) -> &str {
        "IDL:Tests/Facet:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        ["IDL:Tests/Facet:1.0", "IDL:Tests/Base:1.0"].contains(&repository_id)
    }

    fn non_existent(&self) -> bool {
        !self.exists
    }

    fn interface(&self) -> Option<ObjectRef> {
        self.interface.clone()
    }

    fn component(&self) -> Option<ObjectRef> {
        self.component.clone()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.operations.lock().unwrap().push(operation.to_owned());
        call.implicit(self)
    }
}

struct ImplicitServer {
    orb: Orb,
    poa: Poa,
    operations: Arc<Mutex<Vec<String>>>,
}

impl ImplicitServer {
    fn new() -> Self {
        let orb = Orb::builder().build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self { orb, poa, operations: Arc::default() }
    }

    /// Activates an object and returns its reference in another ORB.
    fn with(&self, exists: bool, interface: Option<&ObjectRef>, component: Option<&ObjectRef>) -> ObjectRef {
        let (interface, component, operations) = (interface.cloned(), component.cloned(), Arc::clone(&self.operations));
        let object = self.poa.activate(ImplicitServant { exists, interface, component, operations }).unwrap();
        Orb::builder().build().unwrap().reference(object.ior().clone())
    }
}

impl Drop for ImplicitServer {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

fn untyped(object: &ObjectRef, version: GiopVersion) -> ObjectRef {
    let mut ior = object.ior().clone();
    ior.type_id = String::new();
    Orb::builder().giop_version(version).build().unwrap().reference(ior)
}

#[test]
fn implicit_operations_are_answered_in_every_giop_version() {
    let server = ImplicitServer::new();
    let object = server.with(true, None, None);
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let object = untyped(&object, version);
        assert_eq!(object.repository_id().unwrap(), "IDL:Tests/Facet:1.0");
        assert!(object.is_a("IDL:Tests/Base:1.0").unwrap());
        assert!(object.is_a("IDL:omg.org/CORBA/Object:1.0").unwrap());
        assert!(!object.is_a("IDL:Tests/Other:1.0").unwrap());
        assert!(!object.non_existent().unwrap());
        assert!(object.domain_managers().unwrap().is_empty());
        assert_eq!(object.component().unwrap(), None);
        // The name that JacORB's clients send.
        let component =
            object.invoke::<Option<ObjectRef>, SystemException>("_get_component", |_| Ok(()), Decode::decode);
        assert_eq!(component.unwrap(), None);
        // 8.3.1: there is no interface repository.
        assert_eq!(object.interface().unwrap_err().kind(), SystemExceptionKind::IntfRepos);
    }
    // The names of Part 2, 9.4.2.1.
    let operations = server.operations.lock().unwrap().clone();
    for name in ["_repository_id", "_is_a", "_non_existent", "_domain_managers", "_component", "_interface"] {
        assert!(operations.iter().any(|operation| operation == name), "{name} was not invoked: {operations:?}");
    }
}

#[test]
fn generated_skeletons_answer_implicit_operations() {
    let server = Server::start();
    let object = server.client().as_object().clone();
    assert_eq!(object.repository_id().unwrap(), "IDL:Probe/Target:1.0");
    assert_eq!(object.component().unwrap(), None);
    assert!(object.domain_managers().unwrap().is_empty());
    assert_eq!(object.interface().unwrap_err().kind(), SystemExceptionKind::IntfRepos);
}

#[test]
fn a_servant_provides_interface_component_and_non_existent() {
    let server = ImplicitServer::new();
    let (interface, component) = (server.with(true, None, None), server.with(true, None, None));
    let object = server.with(false, Some(&interface), Some(&component));
    assert_eq!(object.interface().unwrap(), Some(interface));
    assert_eq!(object.component().unwrap(), Some(component));
    // 8.3.5: a default servant decides whether an object exists.
    assert!(object.non_existent().unwrap());
}

// 8.3.6.2.
#[test]
fn references_that_share_a_profile_are_equivalent() {
    let (one, other) = (Server::start(), Server::start());
    let there = other.object.ior().profiles[0].clone();
    let here = one.object.ior().profiles[0].clone();
    assert!(one.object.is_equivalent(&one.client().as_object().clone()));
    assert!(!one.object.is_equivalent(&other.object));
    let mut ior = one.object.ior().clone();
    ior.type_id = String::new();
    ior.profiles = vec![there.clone(), here.clone()];
    let both = one.orb.reference(ior);
    assert!(both.is_equivalent(&one.object) && one.object.is_equivalent(&both));
    assert_ne!(both, one.object, "the references are not equal");
    // Another version and other components of the same address.
    let profile = IiopProfile::decode(&here).unwrap().unwrap();
    let older = IiopProfile { version: GiopVersion::V1_0, components: Vec::new(), ..profile.clone() };
    let mut ior = one.object.ior().clone();
    ior.profiles = vec![older.encode().unwrap()];
    assert!(one.orb.reference(ior.clone()).is_equivalent(&one.object));
    // Another object of the same server, and the same key at another port.
    let mut object_key = profile.object_key.clone();
    object_key.push(0);
    for other_object in [
        IiopProfile { object_key, ..profile.clone() },
        IiopProfile { port: profile.port.wrapping_add(1), ..profile.clone() },
    ] {
        ior.profiles = vec![other_object.encode().unwrap()];
        assert!(!one.orb.reference(ior.clone()).is_equivalent(&one.object));
    }
}

// 8.3.6.1.
#[test]
fn a_hash_is_stable_and_does_not_exceed_its_maximum() {
    let server = Server::start();
    let object = &server.object;
    let elsewhere = Orb::builder().build().unwrap().string_to_object(&server.ior()).unwrap();
    let more = server.poa.activate_shared(servant(&server)).unwrap();
    for maximum in [0, 1, 2, 10, 1000, u32::MAX] {
        assert!(object.hash(maximum) <= maximum);
        assert_eq!(object.hash(maximum), elsewhere.hash(maximum), "the hash is the same in every ORB");
    }
    assert_ne!(object.hash(u32::MAX), more.hash(u32::MAX), "objects with different keys");
    let hashes: std::collections::HashSet<u32> =
        (0..64).map(|_| server.poa.activate_shared(servant(&server)).unwrap().hash(7)).collect();
    assert!(hashes.len() > 4, "64 objects share {hashes:?}");
}

fn servant(server: &Server) -> spandrel::net::sync::Arc<dyn Servant> {
    spandrel::net::sync::Arc::new(spandrel_orb_tests::probe::TargetSkeleton::new(Arc::clone(&server.probe)))
}

#[test]
fn a_reference_returns_its_orb() {
    let server = Server::with(Orb::builder().orb_id("the one"));
    assert_eq!(server.object.orb().id(), "the one");
    assert_eq!(Target::unchecked_narrow(&server.object).as_object().orb().id(), "the one");
}

/// A servant whose types come from the parts of `orb.idl` that are read on demand.
struct Clerk;

impl ClerkServant for Clerk {
    fn kind(&self, of: &TypeCode) -> Result<corba::TcKind, SystemException> {
        let number = of.kind() as u32;
        assert_eq!(corba::TcKind::TkEvent as u32, 36);
        [corba::TcKind::TkWstring, corba::TcKind::TkTypeCode, corba::TcKind::TkAbstractInterface]
            .into_iter()
            .find(|kind| *kind as u32 == number)
            .ok_or_else(|| SystemException::new(SystemExceptionKind::BadParam, 0, CompletionStatus::No))
    }

    fn services(&self, r#type: u16) -> Result<(bool, corba::ServiceInformation), SystemException> {
        let detail = corba::ServiceDetail { service_detail_type: 2, service_detail: vec![3] };
        let information = corba::ServiceInformation { service_options: vec![1], service_details: vec![detail] };
        Ok((r#type == corba::SECURITY, information))
    }

    fn response(&self) -> Result<(), ResponseError> {
        Err(corba::WrongTransaction {}.into())
    }
}

#[test]
fn types_of_the_corba_module_are_generated_and_marshaled() {
    let server = ImplicitServer::new();
    let object = server.poa.activate(ClerkSkeleton::new(Clerk)).unwrap();
    let clerk = desk::Clerk::unchecked_narrow(&Orb::builder().build().unwrap().reference(object.ior().clone()));
    assert_eq!(clerk.kind(&TypeCode::wstring(0)).unwrap(), corba::TcKind::TkWstring);
    assert_eq!(clerk.kind(&TypeCode::TYPE_CODE).unwrap(), corba::TcKind::TkTypeCode);
    let (is_known, information) = clerk.services(corba::SECURITY).unwrap();
    assert!(is_known);
    assert_eq!(information.service_details[0].service_detail, [3]);
    assert!(matches!(clerk.response(), Err(ResponseError::WrongTransaction(_))));
}
