//! Operations of every object (CORBA 3.3 Part 1, 8.3; on the wire Part 2, 9.4.2.1). Some call the object,
//! others read only its reference. Servers answer them in `upcall/dispatch.rs` of `spandrel-server`, also
//! `_not_existent`, the old spelling.

use spandrel_cdr::{Decode, GiopVersion};
use spandrel_giop::{IiopProfile, SystemException, SystemExceptionKind};

use crate::{ObjectRef, reference::object::OBJECT_ID};

impl ObjectRef {
    /// Whether the object supports the interface with this repository id. Calls the object unless its
    /// reference has this id.
    ///
    /// # Errors
    /// Any system exception of the call.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == self.type_id() || repository_id == OBJECT_ID {
            return Ok(true);
        }
        self.invoke("_is_a", |out| out.short_str(repository_id), |input| input.bool())
    }

    /// Whether the object does not exist according to its server. A server that cannot be reached is an error
    /// (8.3.5).
    ///
    /// # Errors
    /// Any system exception of the call but OBJECT_NOT_EXIST.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        let invoke = |operation| self.invoke(operation, |_| Ok(()), |input| input.bool());
        let answer: Result<bool, SystemException> = invoke("_non_existent");
        let is_old = || self.wire().is_some_and(|wire| wire.version < GiopVersion::V1_2);
        match answer {
            // The name is misprinted in the standard up to 2.2, and some servers support only that name
            // (9.4.2.1).
            Err(error) if error.kind() == SystemExceptionKind::BadOperation && is_old() => invoke("_not_existent"),
            Err(error) if error.kind() == SystemExceptionKind::ObjectNotExist => Ok(true),
            other => other,
        }
    }

    /// The repository id of the object's most derived interface, by a call; [`ObjectRef::type_id`] is that in
    /// the reference (8.3.1).
    ///
    /// # Errors
    /// Any system exception of the call.
    pub fn repository_id(&self) -> Result<String, SystemException> {
        self.invoke("_repository_id", |_| Ok(()), String::decode)
    }

    /// The description of the object's interface in an interface repository, if there is one
    /// (`get_interface`, 8.3.1).
    ///
    /// # Errors
    /// INTF_REPOS from servers without an interface repository; any other system exception of the call.
    pub fn interface(&self) -> Result<Option<Self>, SystemException> {
        self.invoke("_interface", |_| Ok(()), Option::decode)
    }

    /// The component of which the object is a facet; `None` if it is of none (`get_component`, 8.3.12).
    ///
    /// # Errors
    /// Any system exception of the call.
    pub fn component(&self) -> Result<Option<Self>, SystemException> {
        self.invoke("_component", |_| Ok(()), Option::decode)
    }

    /// The managers of the object's policy domains (`get_domain_managers`, 8.3.11). This ORB's servers have
    /// none.
    ///
    /// # Errors
    /// Any system exception of the call.
    pub fn domain_managers(&self) -> Result<Vec<Option<Self>>, SystemException> {
        self.invoke("_domain_managers", |_| Ok(()), Vec::decode)
    }

    /// A hash of the object key, at most `maximum`; the same for all references to one object with one key
    /// (8.3.6.1).
    #[must_use]
    pub fn hash(&self, maximum: u32) -> u32 {
        // FNV-1a gives the same value on every machine and in every run.
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let key = self.iiop_profiles().next().map(|profile| profile.object_key);
        let octets = key.as_deref().or_else(|| self.ior().profiles.first().map(|profile| &*profile.data));
        let mix = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(PRIME);
        let hash = octets.unwrap_or_default().iter().fold(BASIS, mix);
        let hash = (hash ^ hash >> 32) % (u64::from(maximum) + 1);
        u32::try_from(hash).expect("it is no more than the maximum")
    }

    /// Whether both references certainly denote the same object: the same key at the same address, in any
    /// profile (8.3.6.2). It makes no call; `false` leaves the question open.
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let is_same = |one: &IiopProfile, other: &IiopProfile| {
            (one.port, &one.object_key) == (other.port, &other.object_key) && one.host.eq_ignore_ascii_case(&other.host)
        };
        let others: Vec<IiopProfile> = other.iiop_profiles().collect();
        self.iiop_profiles().any(|one| others.iter().any(|other| is_same(&one, other)))
    }

    fn iiop_profiles(&self) -> impl Iterator<Item = IiopProfile> {
        self.ior().profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten())
    }
}
