//! References: from IORs and their string forms, as initial references, and to objects of this ORB's server, with
//! the profiles and alternate addresses of its endpoints; and the plain object keys that programs give them.
//!
//! `adapter_references` adds to the references of an adapter; `spandrel-cdr` (`reference`) encodes references
//! and nil.

use std::any::Any;

use spandrel_cdr::{Binder, CdrError, GiopVersion, Ior, TaggedComponent, ValueFactory};
use spandrel_error::escape;
use spandrel_giop::{
    Address, CompletionStatus, Corbaloc, IiopProfile, ObjectUrl, ReferenceError, SystemException, component::Component,
    ids, ior_from_string, ior_to_string, minor, percent,
};
use spandrel_sync::Arc;
use spandrel_transport::PublishedAddresses;

use crate::{
    ObjectRef, Orb,
    orb::{
        initial_references::{self, InvalidName},
        object_key_aliases::{Aliases, PlainKeyLookup},
        parts::UrlFunctions,
    },
    reference::{
        corbaname::{self, NameComponent},
        reference_file,
    },
};

/// The parser of URLs.
pub(crate) const URL_FUNCTIONS: UrlFunctions = UrlFunctions { read: from_url, check_initial };

/// Parses a stringified reference in the form `IOR:` and hexadecimal digits.
fn from_ior(orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
    let ior = ior_from_string(text).map_err(bad_url)?;
    if ior.is_nil() { Err(nil()) } else { Ok(orb.reference(ior)) }
}

/// Parses `IOR:`, `corbaloc:` and `corbaname:`.
fn from_url(orb: &Orb, text: &str) -> Result<Ior, SystemException> {
    Ok(orb.locate_url(text)?.resolve()?.ior().clone())
}

/// Checks that the initial references of the options can be read. No server is called, and names of other initial
/// references are not looked up: they may be registered later.
fn check_initial(orb: &Orb) -> Result<(), SystemException> {
    let initial = &orb.settings().initial;
    let unusable = |what: &str, error: SystemException| {
        let reason = error.detail().unwrap_or_default().to_owned();
        let detail = format!("cannot use the given initial reference {what}: {reason}");
        SystemException::bad_param(error.minor(), CompletionStatus::No).with_detail(detail)
    };
    for (name, url) in initial.entries() {
        parse_url(url).map_err(|error| unusable(&format!("`{}`", escape(name)), error))?;
    }
    match initial.below_default("NameService") {
        Some(url) => parse_url(&url).map(drop).map_err(|error| unusable("of `-ORBDefaultInitRef`", error)),
        None => Ok(()),
    }
}

/// The maximum number of initial references that are defined by each other.
const MAX_INDIRECTIONS: u32 = 8;

/// The parsed string form of a reference.
enum Url {
    Object(Ior),
    /// `corbaloc:rir:`, an initial reference of this ORB.
    Initial(String),
    /// `corbaname:`, a name in a naming context.
    Name(Box<Url>, Vec<NameComponent>),
}

/// An object, and the names that lead from it to the object of a URL: each is one of the naming context that
/// the names before it denote.
pub(crate) struct UrlPath {
    pub(crate) object: ObjectRef,
    pub(crate) names: Vec<Vec<NameComponent>>,
}

impl UrlPath {
    pub(crate) fn to(object: ObjectRef) -> Self {
        Self { object, names: Vec::new() }
    }

    /// Calls the naming services.
    fn resolve(self) -> Result<ObjectRef, SystemException> {
        self.names.iter().try_fold(self.object, |context, name| corbaname::resolve(&context, name))
    }
}

impl Orb {
    /// Creates a reference to the object of this IOR. No server is called.
    #[must_use]
    pub fn reference(&self, ior: Ior) -> ObjectRef {
        ObjectRef::new(self.clone(), ior)
    }

    /// The `IOR:` form of a reference.
    #[must_use]
    pub fn object_to_string(&self, object: &ObjectRef) -> String {
        ior_to_string(object.ior())
    }

    /// The reference with this string form: `IOR:`, `corbaloc:` or `corbaname:` (CORBA 3.3 Part 2, 7.6.9 and
    /// 7.6.10; Naming Service 1.3, 2.5.3), or `file://` with the path of a file that has one of these. A program that
    /// reads the texts of others must not pass on `file:`, nor `corbaname:` and `corbaloc:rir:`, which make it call
    /// servers.
    ///
    /// An ORB of [`OrbBuilder::bare`](crate::OrbBuilder::bare) parses only `IOR:` unless its builder adds
    /// [`urls`](crate::OrbBuilder::urls).
    ///
    /// The ORB sends no request except for a `corbaname:` with a name after `#`. It calls that naming service
    /// without policies of the reference's own.
    ///
    /// # Errors
    /// BAD_PARAM with a description of the syntax error, of a nil reference, or of the naming service's
    /// exception; any system exception of the call to the naming service.
    pub fn string_to_object(&self, text: &str) -> Result<ObjectRef, SystemException> {
        self.check_not_destroyed()?;
        self.check_process()?;
        match self.parts().urls() {
            Some(urls) => Ok(self.reference((urls.read)(self, text)?)),
            None => from_ior(self, text),
        }
    }

    /// Checks the initial references of the options, if this ORB parses URLs.
    ///
    /// # Errors
    /// BAD_PARAM for one that cannot be read.
    pub(crate) fn check_initial_references(&self) -> Result<(), SystemException> {
        self.parts().urls().map_or(Ok(()), |urls| (urls.check_initial)(self))
    }

    /// The path of a URL, for an ORB that parses them.
    pub(crate) fn locate_url(&self, text: &str) -> Result<UrlPath, SystemException> {
        self.locate(parse_url(text)?, 0)
    }

    /// `indirections`: the number of initial references resolved so far.
    fn locate(&self, url: Url, indirections: u32) -> Result<UrlPath, SystemException> {
        match url {
            Url::Object(ior) => Ok(UrlPath::to(self.reference(ior))),
            Url::Initial(name) => self.find_initial(&name, indirections),
            Url::Name(context, name) => {
                let mut path = self.locate(*context, indirections)?;
                // Without a name the URL denotes the context itself.
                if !name.is_empty() {
                    path.names.push(name);
                }
                Ok(path)
            }
        }
    }

    /// The initial reference with this name: the one [registered](Self::register_initial_reference), or else
    /// the one of `-ORBInitRef`, or else the one derived from `-ORBDefaultInitRef` (8.5.3.3).
    ///
    /// # Errors
    /// BAD_PARAM for a name that is not configured or has a malformed URL; otherwise as
    /// [`Orb::string_to_object`].
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, SystemException> {
        self.locate_initial(name)?.resolve()
    }

    /// Whether an initial reference of this name is given: registered, or by `-ORBInitRef` or `-ORBDefaultInitRef`. It may
    /// still be unreadable. A program with a reference of its own for a name uses that only if none is given.
    #[must_use]
    pub fn has_initial_reference(&self, name: &str) -> bool {
        self.registered().get(name).is_some() || self.settings().initial.url(name).is_some()
    }

    /// The path of an initial reference.
    pub(crate) fn locate_initial(&self, name: &str) -> Result<UrlPath, SystemException> {
        self.check_process()?;
        self.find_initial(name, 0)
    }

    fn find_initial(&self, name: &str, indirections: u32) -> Result<UrlPath, SystemException> {
        if let Some(ior) = self.registered().get(name) {
            return Ok(UrlPath::to(self.reference(ior)));
        }
        if let Some(local) = initial_references::local(name) {
            return Err(unusable(local.to_string()));
        }
        let url = self.settings().initial.url(name).ok_or_else(|| {
            unusable(format!("no initial reference `{name}` is configured (`-ORBInitRef {name}=URL` sets one)"))
        })?;
        if indirections == MAX_INDIRECTIONS {
            return Err(unusable(format!(
                "the initial reference `{name}` is defined by more than {MAX_INDIRECTIONS} others, last `{url}`"
            )));
        }
        self.locate(parse_url(&url)?, indirections + 1)
    }

    /// A reference to an object of this ORB's server, with these components in each profile: by the addresses of the
    /// ORB, or by others that its server has, if there are some (`at`). Begins to listen at first use.
    ///
    /// # Errors
    /// As [`Orb::listen`].
    pub(crate) fn make_reference_with(
        &self,
        type_id: &str,
        object_key: Vec<u8>,
        at: &[PublishedAddresses],
        added: &[TaggedComponent],
    ) -> Result<ObjectRef, SystemException> {
        let mut profiles = Vec::new();
        let own = [Component::OrbType(ids::ORB_TYPE).encode()?, self.settings().code_sets.component().encode()?];
        let of_orb = self.published()?;
        let version = self.settings().wire.version;
        for PublishedAddresses { hosts, components: offered, .. } in
            if at.is_empty() { std::slice::from_ref(&of_orb) } else { at }
        {
            let components = [&own, &offered[..], added].concat();
            let mut alternates = if version >= GiopVersion::V1_2 { alternates(hosts)? } else { Vec::new() };
            for (host, port) in hosts {
                let mut components = components.clone();
                components.append(&mut alternates);
                let (host, port) = (host.clone(), *port);
                let profile = IiopProfile { version, host, port, object_key: object_key.clone(), components };
                profiles.push(profile.encode()?);
            }
        }
        Ok(ObjectRef::new(self.clone(), Ior { type_id: type_id.to_owned(), profiles }))
    }

    /// The key of an object of this ORB, if one of the reference's addresses is an endpoint of this ORB: a
    /// published address, or another that reaches an open port, such as `localhost` and `0.0.0.0`. For a
    /// plain key it is the key of the object that the plain key stands for. `None` for an object of another
    /// server, and before this ORB listens.
    ///
    /// Host names are looked up if the port is that of an endpoint.
    #[must_use]
    pub fn own_object_key(&self, ior: &Ior) -> Option<Vec<u8>> {
        let published = self.published_already()?;
        let repository = self.implementation_repository_prefix();
        let protocols = self.peers().protocols();
        let profiles = ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten());
        let mut keys = profiles.filter_map(|profile| {
            // References by way of the implementation repository have its addresses.
            if let Some(key) = repository.as_ref().and_then(|prefix| profile.object_key.strip_prefix(&**prefix)) {
                return Some(key.to_vec());
            }
            let is_own = protocols.addresses(&profile).iter().any(|(address, _)| published.includes(address));
            is_own.then_some(profile.object_key)
        });
        let key = keys.next()?;
        let alias = self.alias(&key).and_then(|object| {
            let profile = object.profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten())?;
            Some(profile.object_key)
        });
        Some(alias.unwrap_or(key))
    }

    /// A reference with this ORB's published addresses, if `ior` denotes an object of this ORB by any address
    /// ([`own_object_key`](Self::own_object_key)). Calls by it are collocated.
    ///
    /// # Errors
    /// A reference that cannot be encoded.
    pub fn own_reference(&self, ior: &Ior) -> Result<Option<ObjectRef>, SystemException> {
        let key = self.own_object_key(ior);
        key.map(|key| self.make_reference_with(&ior.type_id, key, &[], &[])).transpose()
    }

    /// Registers an object as an initial reference of this ORB (8.5.2).
    ///
    /// The ORB stores its IOR, without policies of the reference's own.
    ///
    /// # Errors
    /// [`InvalidName`] for a name that is empty, registered, or reserved by the standard for a local object.
    pub fn register_initial_reference(&self, name: &str, object: &ObjectRef) -> Result<(), InvalidName> {
        self.registered().insert(name, object.ior().clone())
    }

    /// Gives an object a plain object key, so that `corbaloc:…/name` refers to it: clients are forwarded to
    /// the object's own reference. The name takes precedence over an adapter's key. A name in use gets the
    /// new object.
    ///
    /// The server listens once it has objects. Without an activated object, [`Orb::listen`] makes it listen.
    ///
    /// # Errors
    /// BAD_PARAM for a name that is empty, or begins with a control character like keys of adapters;
    /// IMP_LIMIT for more than 65,536 names.
    pub fn set_object_key_alias(&self, name: impl Into<Vec<u8>>, object: &ObjectRef) -> Result<(), SystemException> {
        self.aliases().get_or_make(Aliases::default).insert(name.into(), object.ior().clone())
    }

    /// Sets the search for objects with plain keys that are no [alias](Self::set_object_key_alias), in place of an
    /// earlier one. Clients are forwarded to the found object.
    #[doc(hidden)]
    pub fn set_plain_key_lookup(&self, lookup: Arc<PlainKeyLookup>) {
        self.aliases().get_or_make(Aliases::default).set_lookup(lookup);
    }

    /// Removes a plain object key; returns false if it was not in use.
    pub fn remove_object_key_alias(&self, name: impl AsRef<[u8]>) -> bool {
        self.aliases().get().is_some_and(|aliases: &Aliases| aliases.remove(name.as_ref()))
    }

    /// The names of the initial references. `-ORBDefaultInitRef` may resolve further names.
    #[must_use]
    pub fn list_initial_services(&self) -> Vec<String> {
        let mut names = self.registered().names();
        names.extend(self.settings().initial.names().cloned());
        names.sort();
        names.dedup();
        names
    }
}

impl Binder for Orb {
    fn bind(&self, ior: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError> {
        Ok(Arc::new(self.reference(ior)))
    }

    fn share(&self) -> Arc<dyn Binder> {
        Arc::new(self.clone())
    }

    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().get()?.get(repository_id)
    }
}

fn parse_url(text: &str) -> Result<Url, SystemException> {
    let text = text.trim_ascii();
    match text.get(..CORBANAME.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(CORBANAME) => parse_corbaname(&text[CORBANAME.len()..]),
        _ if reference_file::is_file_url(text) => match reference_file::read(text)? {
            nested if reference_file::is_file_url(nested.trim_ascii()) => {
                Err(unusable("a file with a reference names another file".to_owned()))
            }
            // No part of a file without a reference is shown.
            content => parse_url(&content).map_err(|error| {
                let detail = "the file has no reference: expected `IOR:`, `corbaloc:` or `corbaname:`";
                SystemException::bad_param(error.minor(), CompletionStatus::No).with_detail(detail)
            }),
        },
        _ => match text.parse().map_err(bad_url)? {
            ObjectUrl::Ior(ior) if ior.is_nil() => Err(nil()),
            ObjectUrl::Ior(ior) => Ok(Url::Object(ior)),
            ObjectUrl::Corbaloc(url) => corbaloc_url(url),
        },
    }
}

fn corbaloc_url(url: Corbaloc) -> Result<Url, SystemException> {
    if url.addresses.contains(&Address::Rir) {
        return Ok(Url::Initial(String::from_utf8_lossy(&url.key).into_owned()));
    }
    url.to_ior().map(Url::Object).map_err(bad_url)
}

/// The scheme of names.
const CORBANAME: &str = "corbaname:";

/// Parses *addresses* [`/` *key*] [`#` *name*]; the default key is `NameService` (Naming Service 1.3,
/// 2.5.3.2). The name's octets are UTF-8, or else ISO 8859-1.
fn parse_corbaname(text: &str) -> Result<Url, SystemException> {
    let (location, name) = text.split_once('#').unwrap_or((text, ""));
    let mut location: Corbaloc = format!("corbaloc:{location}").parse().map_err(bad_url)?;
    if location.key.is_empty() {
        location.key = b"NameService".to_vec();
    }
    let bad_name = |reason: &str| {
        SystemException::bad_param(minor::BAD_SCHEME_SPECIFIC_PART, CompletionStatus::No)
            .with_detail(|| format!("invalid name `{name}`: {reason}"))
    };
    if name.is_empty() {
        return Ok(Url::Name(Box::new(corbaloc_url(location)?), Vec::new()));
    }
    let begin = CORBANAME.len() + text.len() - name.len();
    let unescaped = percent::unescape_name(name).map_err(|at| bad_url(ReferenceError::BadEscape(begin + at)))?;
    let components = corbaname::parse(&unescaped).map_err(bad_name)?;
    Ok(Url::Name(Box::new(corbaloc_url(location)?), components))
}

fn nil() -> SystemException {
    unusable("the reference is nil".to_owned())
}

fn unusable(detail: String) -> SystemException {
    SystemException::bad_param(minor::BAD_URL_OTHER, CompletionStatus::No).with_detail(detail)
}

fn bad_url(error: ReferenceError) -> SystemException {
    error.into()
}

/// The components for the first profile, which name the other addresses. Some clients read only the first
/// profile, others ignore these components.
fn alternates(hosts: &[(String, u16)]) -> Result<Vec<TaggedComponent>, SystemException> {
    let others = hosts.iter().skip(1).filter(|(_, port)| *port != 0);
    let component =
        |(host, port): &(String, u16)| Component::AlternateIiopAddress { host: host.clone(), port: *port }.encode();
    Ok(others.map(component).collect::<Result<_, _>>()?)
}
